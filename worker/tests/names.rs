//! Tests of the names that a client gives to what it makes: every operation that takes a handle, with every kind of name, and the
//! rules of `NAME`.

mod common;

use common::*;
use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult, Info, OPS, Op, Opcode, ReplyMode, TailLen, Wire};
use hipr_worker::device::script::{Live, Script};
use hipr_worker::{Config, Handle as Running};

const KERNEL: &str = "kernel";
/// A handle that no device has given.
const UNKNOWN: u64 = 0xdead_0000;
const DEVICE_FAILS: HipError = HipError::LAUNCH_FAILURE;

fn named(configure: impl FnOnce(&mut Config)) -> (Running, Script) {
    let (worker, script) = scripted(configure);
    script.define_kernel(KERNEL, 0, &[]);
    script.define_kernel("other", 0, &[]);
    (worker, script)
}

/// A session that may use names.
fn session(worker: &Running) -> Peer {
    let mut peer = Peer::hello(worker.local_addr());
    let accepted = peer.call(&Offer { features: Features::NAMES.bits(), part: 0 }).unwrap().features;
    assert_eq!(accepted, Features::NAMES.bits());
    peer
}

fn name(turn: u64, place: usize) -> u64 {
    ClientName::new(turn, place).unwrap().number()
}

impl Peer {
    /// Makes something: named and without an answer, or with the handle that the worker chooses.
    fn make<O: Op>(&mut self, name: Option<u64>, op: &O, tail: &[u8]) -> u64 {
        let Some(name) = name else { return self.call_with(op, tail).unwrap().first_handle() };
        self.forget(&Name { name }, &[]);
        self.forget(op, tail);
        name
    }

    /// Makes an object of a kind; `module` is where a kernel comes from, `graph` what is instantiated.
    fn object(&mut self, kind: Handle, name: Option<u64>, module: u64, graph: u64) -> u64 {
        match kind {
            Handle::Stream => self.make(name, &StreamCreate { flags: 0, priority: 0 }, &[]),
            Handle::Event => self.make(name, &EventCreate { flags: 0 }, &[]),
            Handle::Pool => self.make(name, &pool(1), &[]),
            Handle::Module => self.make(name, &ModuleLoadData { data_size: 4 }, b"code"),
            Handle::Function => self.make(name, &ModuleGetFunction { module }, &kernel_name(KERNEL)),
            Handle::Graph => self.make(name, &GraphCreate { flags: 0 }, &[]),
            Handle::Exec => self.make(name, &GraphInstantiate { graph, flags: 0 }, &[]),
        }
    }

    /// Fails to make an object of a kind that has this name.
    fn fail(&mut self, kind: Handle, name: u64, script: &Script) {
        let fails = |call| script.fail_next(call, DEVICE_FAILS);
        match kind {
            Handle::Stream => fails("stream_create"),
            Handle::Event => fails("event_create"),
            Handle::Module => fails("module_load"),
            Handle::Pool | Handle::Graph | Handle::Function | Handle::Exec => {}
        }
        let name = Some(name);
        match kind {
            Handle::Pool => self.make(name, &pool(7), &[]),
            Handle::Graph => self.make(name, &GraphCreate { flags: 7 }, &[]),
            _ => self.object(kind, name, UNKNOWN, UNKNOWN),
        };
    }

    /// Destroys an object; a kernel with its module.
    fn destroy(&mut self, kind: Handle, handle: u64, module: u64) {
        match kind {
            Handle::Stream => self.call(&StreamDestroy { stream: handle }),
            Handle::Event => self.call(&EventDestroy { event: handle }),
            Handle::Pool => self.call(&MemPoolDestroy { mem_pool: handle }),
            Handle::Module | Handle::Function => self.call(&ModuleUnload { module }),
            Handle::Graph => self.call(&GraphDestroy { graph: handle }),
            Handle::Exec => self.call(&GraphExecDestroy { graph_exec: handle }),
        }
        .unwrap();
    }

    /// Takes the kept error.
    fn told(&mut self) -> HipResult<()> {
        self.call(&GetLastError {})
    }
}

/// A pool of device memory if `alloc_type` is 1.
fn pool(alloc_type: i32) -> MemPoolCreate {
    MemPoolCreate { alloc_type, location_type: 1, ..Wire::ZERO }
}

fn kernel_name(name: &str) -> Vec<u8> {
    let mut tail = Vec::new();
    put_name(name, &mut tail).unwrap();
    tail
}

// ---- every operation -------------------------------------------------------------------------------------------------

/// What a handle of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    /// The object of the session.
    Own,
    /// Another object, by the handle that the worker chose.
    Object,
    /// Another object, by its name.
    Named,
    /// A handle that nobody gave.
    Unknown,
    /// The name of an object that was destroyed.
    Destroyed,
    /// A name that was never given.
    Never,
    /// The name of an object that could not be made.
    Failed,
    /// The name of an object of another kind.
    Other,
}

/// Objects of all kinds and, for one kind, numbers that mean something else.
struct World {
    peer: Peer,
    /// By kind, in the order of [`Handle::ALL`].
    objects: Vec<u64>,
    memory: u64,
    places: usize,
}

impl World {
    fn new(worker: &Running, is_named: bool) -> Self {
        let mut world =
            Self { peer: session(worker), objects: vec![0; Handle::ALL.len()], memory: 0, places: 0 };
        world.memory = world.peer.malloc(4096);
        for kind in Handle::ALL {
            let name = is_named.then(|| world.next());
            let (module, graph) = (world.object(Handle::Module), world.object(Handle::Graph));
            world.objects[kind as usize] = world.peer.object(kind, name, module, graph);
        }
        assert_eq!(world.peer.told(), Ok(()), "everything could be made");
        world
    }

    fn object(&self, kind: Handle) -> u64 {
        self.objects[kind as usize]
    }

    /// Returns a new name.
    fn next(&mut self) -> u64 {
        self.places += 1;
        name(0, self.places - 1)
    }

    /// Returns a handle of a kind.
    fn handle(&mut self, kind: Handle, is: Is, script: &Script) -> u64 {
        let (module, graph) = (self.object(Handle::Module), self.object(Handle::Graph));
        match is {
            Is::Own => self.object(kind),
            Is::Object => self.peer.object(kind, None, module, graph),
            Is::Named => {
                let name = self.next();
                self.peer.object(kind, Some(name), module, graph)
            }
            Is::Unknown => UNKNOWN,
            Is::Never => name(0, self.places),
            Is::Other => self.object(if kind == Handle::Event { Handle::Stream } else { Handle::Event }),
            Is::Destroyed => {
                let name = self.next();
                let module = self.peer.object(Handle::Module, Some(name), 0, 0);
                let number = match kind {
                    Handle::Module => module,
                    _ => {
                        let name = self.next();
                        self.peer.object(kind, Some(name), module, graph)
                    }
                };
                self.peer.destroy(kind, number, module);
                number
            }
            Is::Failed => {
                let number = self.next();
                self.peer.fail(kind, number, script);
                assert!(self.peer.told().is_err(), "{kind:?} could not be made");
                number
            }
        }
    }
}

/// Sends a request with good values in its fields, one of its handles (by number) being something else.
struct Good<'a> {
    world: &'a mut World,
    script: &'a Script,
    odd: Option<(usize, Is)>,
}

impl ForOp for Good<'_> {
    type Out = HipResult<()>;

    fn call<O: Op>(self) -> Self::Out {
        let World { memory, .. } = *self.world;
        let info = O::OPCODE.info().unwrap();
        let fixed: Vec<u8> =
            info.request.fields.iter().flat_map(|field| good(field.name, &field.layout, memory)).collect();
        let mut request = O::take(&mut fixed.as_slice()).unwrap();
        let mut kinds = Vec::new();
        request.handles(|kind, _| kinds.push(kind));
        let is = |at: usize| self.odd.filter(|(odd, _)| *odd == at).map_or(Is::Own, |(_, is)| is);
        let handles: Vec<u64> = kinds
            .iter()
            .enumerate()
            .map(|(at, kind)| self.world.handle(*kind, is(at), self.script))
            .collect();
        let mut left = handles.into_iter();
        request.handles(|_, handle| *handle = left.next().unwrap());
        let tail = match (O::OPCODE, request.tail_len()) {
            (Opcode::MODULE_GET_FUNCTION | Opcode::MODULE_GET_GLOBAL, _) => kernel_name(KERNEL),
            (_, TailLen::Exact(len) | TailLen::AtLeast(len) | TailLen::AtMost(len)) => vec![0; len as usize],
        };
        self.world.peer.call_with(&request, &tail).map(drop)
    }
}

/// Returns a field's bytes: values with which most operations succeed.
fn good(name: &str, layout: &hipr_proto::Layout, memory: u64) -> Vec<u8> {
    let one = |value: u64| match layout {
        hipr_proto::Layout::Number("u64") => value.to_le_bytes().to_vec(),
        _ => (value as u32).to_le_bytes().to_vec(),
    };
    match name {
        "dst" | "dst_ptr" | "ptr" | "dev_ptr" | "device_ptr" => one(memory),
        "src" | "src_ptr" => one(memory + 2048),
        "size" | "width" | "count" | "height" | "depth" | "element_size" => one(1),
        "src_pitch" | "dst_pitch" | "pitch" | "dpitch" | "spitch" | "src_height" | "dst_height" => one(64),
        // hipMemcpyDeviceToDevice.
        "kind" => one(3),
        "grid_dim_x" | "grid_dim_y" | "grid_dim_z" | "block_dim_x" | "block_dim_y" | "block_dim_z" => one(1),
        "grid_dim" | "block_dim" => [1u32; 3].iter().flat_map(|n| n.to_le_bytes()).collect(),
        "block_size" => one(64),
        "flags" | "attr" | "attribute" if layout == &hipr_proto::Layout::Number("i32") => one(1),
        _ => vec![0; layout_bytes(layout)],
    }
}

fn layout_bytes(layout: &hipr_proto::Layout) -> usize {
    use hipr_proto::Layout;
    match layout {
        Layout::Number("u64") => 8,
        Layout::Number("u8") => 1,
        Layout::Number(_) => 4,
        Layout::Text(len) => *len,
        Layout::Array(of, len) => layout_bytes(of) * len,
        Layout::Fields(fields) => fields.iter().map(|field| layout_bytes(&field.layout)).sum(),
    }
}

/// Carries out a request in a session of its own; returns its result, and what the device did for it.
fn outcome(info: &Info, is_named: bool, odd: Option<(usize, Is)>) -> (HipResult<()>, Vec<&'static str>) {
    let (worker, script) = named(|_| {});
    let mut world = World::new(&worker, is_named);
    // What is needed for the odd handle is not part of the outcome.
    let mark = |script: &Script| script.journal(0).iter().filter(|call| !is_setup(call)).count();
    let before = mark(&script);
    let result = with_op(info.code, Good { world: &mut world, script: &script, odd }).unwrap();
    (result, script.journal(0).into_iter().filter(|call| !is_setup(call)).skip(before).collect())
}

/// Returns whether a call of the device makes or destroys something, as the objects of a test do.
fn is_setup(call: &str) -> bool {
    let objects = ["stream_create", "event_create", "module_load", "function", "stream_destroy"];
    objects.contains(&call) || ["event_destroy", "module_unload", "device_count"].contains(&call)
}

#[test]
fn a_name_is_as_good_as_a_handle_in_every_operation() {
    let mut fields = 0;
    for info in OPS {
        let kinds = with_op(info.code, Kinds).unwrap();
        if kinds.is_empty() {
            continue;
        }
        let expected = outcome(info, false, None);
        assert_eq!(outcome(info, true, None), expected, "{}: all handles are names", info.name);
        for (at, kind) in kinds.iter().enumerate() {
            fields += 1;
            let expected = outcome(info, false, Some((at, Is::Unknown)));
            assert!(expected.0.is_err(), "{}: {kind:?}", info.name);
            for is in [Is::Destroyed, Is::Never, Is::Failed, Is::Other] {
                let seen = outcome(info, true, Some((at, is)));
                assert_eq!(seen, expected, "{}: {kind:?} {at} is {is:?}", info.name);
            }
            let [name, handle] = [Is::Named, Is::Object].map(|is| outcome(info, false, Some((at, is))));
            assert_eq!(name, handle, "{}: {kind:?} {at} is the only name", info.name);
        }
    }
    assert!(fields > 60, "{fields} fields were tried");
}

/// Returns the kinds of the handles in a request.
struct Kinds;

impl ForOp for Kinds {
    type Out = Vec<Handle>;

    fn call<O: Op>(self) -> Self::Out {
        let mut kinds = Vec::new();
        let mut zero = O::ZERO;
        zero.handles(|kind, _| kinds.push(kind));
        kinds
    }
}

#[test]
fn each_name_stands_for_its_own_object() {
    let (worker, script) = named(|_| {});
    let mut peer = session(&worker);
    let streams = [0u32, 1]
        .map(|flags| peer.make(Some(name(0, flags as usize)), &StreamCreate { flags, priority: 0 }, &[]));
    assert_eq!(streams.map(|stream| peer.call(&StreamGetFlags { stream }).unwrap().flags), [0, 1]);
    let module = peer.make(Some(name(0, 2)), &ModuleLoadData { data_size: 4 }, b"code");
    let functions = [(3, KERNEL), (4, "other")].map(|(place, kernel)| {
        peer.make(Some(name(0, place)), &ModuleGetFunction { module }, &kernel_name(kernel))
    });
    for function in [functions[0], functions[1], functions[0]] {
        peer.forget(&LaunchKernel { stream: streams[0], ..launch(function) }, &[]);
    }
    let pools = [5, 6].map(|place| peer.make(Some(name(0, place)), &pool(1), &[]));
    let attr = 4; // hipMemPoolAttrReleaseThreshold
    for (mem_pool, value) in pools.into_iter().zip([10, 20]) {
        peer.call(&MemPoolSetAttribute { mem_pool, attr, reserved: 0, value }).unwrap();
    }
    let thresholds = pools.map(|mem_pool| peer.call(&MemPoolGetAttribute { mem_pool, attr }).unwrap().value);
    assert_eq!(thresholds, [10, 20]);
    peer.call(&DeviceSetMemPool { device: 0, reserved: 0, mem_pool: pools[1] }).unwrap();
    assert_eq!(
        peer.call(&DeviceGetMemPool { device: 0 }).unwrap().mem_pool,
        pools[1],
        "it is told by its name"
    );
    let ptr = peer.call(&MallocFromPoolAsync { size: 64, mem_pool: pools[0], stream: 0 }).unwrap().device_ptr;
    let attribute = hipr_abi::HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE;
    let of = peer.call(&PointerGetAttribute { ptr, attribute, reserved: 0 }).unwrap();
    assert_eq!(of.data, pools[0]);

    // A graph that is captured, copied and instantiated under names.
    peer.call(&StreamBeginCapture { stream: streams[1], mode: 2 }).unwrap();
    peer.forget(&LaunchKernel { stream: streams[1], ..launch(functions[1]) }, &[]);
    let graph = peer.make(Some(name(0, 7)), &StreamEndCapture { stream: streams[1] }, &[]);
    let copy = peer.make(Some(name(0, 8)), &GraphClone { original_graph: graph }, &[]);
    let nodes =
        |peer: &mut Peer, graph| peer.call(&GraphGetNodes { graph, max_nodes: 9 }).map(|all| all.num_nodes);
    assert_eq!((nodes(&mut peer, graph), nodes(&mut peer, copy)), (Ok(1), Ok(1)));
    let exec = peer.make(Some(name(0, 9)), &GraphInstantiate { graph: copy, flags: 0 }, &[]);
    peer.forget(&GraphLaunch { graph_exec: exec, stream: streams[0] }, &[]);
    assert_eq!(peer.call(&DeviceSynchronize {}), Ok(()));
    let launched: Vec<String> = script.launches().into_iter().map(|launch| launch.kernel).collect();
    assert_eq!(launched, [KERNEL, "other", KERNEL, "other"]);

    // An answered request says the name.
    peer.forget(&Name { name: name(0, 10) }, &[]);
    assert_eq!(peer.call(&EventCreate { flags: 0 }).unwrap().event, name(0, 10));
}

#[test]
fn an_event_of_another_session_can_have_a_name() {
    let worker = worker("sim");
    let (mut lender, mut borrower) = (session(&worker), session(&worker));
    const INTERPROCESS: u32 = hipr_abi::hipEventInterprocess | hipr_abi::hipEventDisableTiming;
    let event = lender.make(Some(name(0, 0)), &EventCreate { flags: INTERPROCESS }, &[]);
    let handle = lender.call(&IpcGetEventHandle { event }).unwrap().handle;
    let opened = borrower.make(Some(name(7, 0)), &IpcOpenEventHandle { handle }, &[]);
    lender.call(&EventRecord { event, stream: 0 }).unwrap();
    assert_eq!(borrower.call(&EventSynchronize { event: opened }), Ok(()));
    assert_eq!(
        borrower.call(&EventSynchronize { event }),
        Err(HipError::INVALID_HANDLE),
        "names are a session's"
    );
}

// ---- the rules of NAME -----------------------------------------------------------------------------------------------

#[test]
fn a_wrong_name_makes_nothing() {
    let (worker, script) = named(|_| {});
    let mut peer = session(&worker);
    let one = Live { contexts: 1, events: 1, ..Live::default() };
    let make = |peer: &mut Peer, name| peer.make(Some(name), &EventCreate { flags: 0 }, &[]);
    let first = make(&mut peer, name(5, 0));
    let wrong = [0, 1, (1 << 62) - 1, 1 << 63, u64::MAX, name(0, 2), first, name(4, 0), name(6, 0)];
    for number in wrong {
        make(&mut peer, number);
        assert_eq!(peer.told(), Err(HipError::INVALID_VALUE), "{number:#x}");
        assert_eq!(peer.told(), Ok(()), "once");
        assert_eq!(script.live(), one);
        assert_eq!(peer.call(&Name { name: number }), Err(HipError::INVALID_VALUE), "{number:#x}, answered");
        let refused = peer.call(&EventCreate { flags: 0 }).map(drop);
        assert_eq!(refused, Err(HipError::INVALID_VALUE), "what has no name is not made");
    }
    peer.call(&EventDestroy { event: first }).unwrap();
    make(&mut peer, first);
    assert_eq!(peer.told(), Err(HipError::INVALID_VALUE), "a name is used once");
    let second = make(&mut peer, name(6, 0));
    assert_eq!(peer.told(), Ok(()));
    assert_eq!(peer.call(&EventQuery { event: second }), Ok(()));
    assert_eq!(peer.call(&EventQuery { event: first }), Err(HipError::INVALID_HANDLE));
    assert_eq!(script.live(), one);
}

/// Sends a request of zeros that is not answered.
struct Forget<'a>(&'a mut Peer);

impl ForOp for Forget<'_> {
    type Out = ();

    fn call<O: Op>(self) {
        let (TailLen::Exact(len) | TailLen::AtLeast(len) | TailLen::AtMost(len)) = O::ZERO.tail_len();
        self.0.forget(&O::ZERO, &vec![0; len as usize]);
    }
}

#[test]
fn a_request_that_makes_nothing_to_name_spoils_the_name() {
    let (worker, script) = named(|_| {});
    let mut tried = 0;
    for info in OPS.iter().filter(|info| info.code.makes().is_none() && info.code != Opcode::SHUTDOWN) {
        let mut peer = session(&worker);
        peer.forget(&Name { name: name(0, 0) }, &[]);
        with_op(info.code, Forget(&mut peer)).unwrap();
        // NAME is spoilt by another one, which is refused as it is zero.
        assert_eq!(peer.told(), Err(HipError::INVALID_VALUE), "{}", info.name);
        assert_eq!(peer.told(), Ok(()), "{}: once", info.name);
        let event = peer.make(None, &EventCreate { flags: 0 }, &[]);
        assert!(ClientName::of(event).is_none(), "{}: the name is lost", info.name);
        tried += 1;
    }
    assert!(tried > 100 && script.opened() > 100, "{tried} operations");
    let mut peer = session(&worker);
    peer.forget(&Name { name: name(0, 0) }, &[]);
    assert_eq!(peer.call(&Shutdown {}), Ok(()));
}

#[test]
fn the_request_between_is_carried_out() {
    let (worker, _) = named(|_| {});
    let mut peer = session(&worker);
    let ptr = peer.malloc(8);
    peer.forget(&Name { name: name(0, 0) }, &[]);
    peer.forget(&Memset { dst: ptr, value: 7, size: 8, stream: 0 }, &[]);
    peer.forget(&EventCreate { flags: 0 }, &[]);
    assert_eq!(peer.told(), Err(HipError::INVALID_VALUE));
    assert_eq!(peer.d2h(ptr, 8, 0), Ok(vec![7; 8]));
    assert_eq!(peer.call(&EventQuery { event: name(0, 0) }), Err(HipError::INVALID_HANDLE));
    // The error of NAME is kept before the request that reports it.
    peer.forget(&Name { name: name(0, 1) }, &[]);
    assert_eq!(peer.call(&Malloc { size: 8, flags: 0 }).map(drop), Err(HipError::INVALID_VALUE));
    assert_eq!(peer.told(), Ok(()));
}

/// The first error is that of the creation; what comes of it is told only when that has been told.
#[test]
fn the_error_of_a_creation_is_told_before_those_of_its_name() {
    for kind in Handle::ALL {
        let (worker, script) = named(|_| {});
        let mut world = World::new(&worker, true);
        let number = world.next();
        let peer = &mut world.peer;
        peer.fail(kind, number, &script);
        let later = |peer: &mut Peer| match kind {
            Handle::Stream => {
                peer.forget(&Memset { dst: world.memory, value: 0, size: 8, stream: number }, &[])
            }
            Handle::Event => peer.forget(&EventRecord { event: number, stream: 0 }, &[]),
            Handle::Pool => peer.forget(&MemPoolTrimTo { mem_pool: number, min_bytes_to_hold: 0 }, &[]),
            Handle::Module => peer.forget(&ModuleUnload { module: number }, &[]),
            Handle::Function => peer.forget(&launch(number), &[]),
            Handle::Graph => peer.forget(&GraphDestroy { graph: number }, &[]),
            Handle::Exec => peer.forget(&GraphLaunch { graph_exec: number, stream: 0 }, &[]),
        };
        later(peer);
        later(peer);
        let first = match kind {
            Handle::Stream | Handle::Event | Handle::Module => DEVICE_FAILS,
            Handle::Function => HipError::INVALID_HANDLE,
            Handle::Pool | Handle::Graph | Handle::Exec => HipError::INVALID_VALUE,
        };
        assert_eq!(peer.told(), Err(first), "{kind:?}");
        assert_eq!(peer.told(), Ok(()), "{kind:?}: its consequences went with it");
        later(peer);
        let unknown = match kind {
            Handle::Graph | Handle::Exec => HipError::INVALID_VALUE,
            _ => HipError::INVALID_HANDLE,
        };
        assert_eq!(peer.told(), Err(unknown), "{kind:?}: it stands for nothing");
    }
}

#[test]
fn a_creation_that_reports_an_older_error_uses_up_its_name() {
    let (worker, script) = named(|_| {});
    let mut peer = session(&worker);
    peer.forget(&EventDestroy { event: UNKNOWN }, &[]);
    peer.forget(&Name { name: name(0, 0) }, &[]);
    assert_eq!(peer.call(&EventCreate { flags: 0 }).map(drop), Err(HipError::INVALID_HANDLE));
    assert_eq!(script.live().events, 0, "it was not carried out");
    assert_eq!(peer.make(None, &EventCreate { flags: 0 }, &[]) >> 62, 0, "nor is the next one named");
    assert_eq!(peer.call(&Name { name: name(0, 0) }), Err(HipError::INVALID_VALUE));
    assert_eq!(peer.call(&EventCreate { flags: 0 }).map(drop), Err(HipError::INVALID_VALUE));
    assert_eq!(peer.call(&Name { name: name(1, 0) }), Ok(()));
    assert_eq!(peer.call(&EventCreate { flags: 0 }).map(|made| made.event), Ok(name(1, 0)));
}

#[test]
fn named_objects_count_and_a_session_has_so_many_places() {
    let (worker, script) = named(|config| config.session.handles_max = 3);
    let mut peer = session(&worker);
    let full = Err(HipError::OUT_OF_MEMORY);
    let events: Vec<u64> =
        (0..3).map(|place| peer.make(Some(name(0, place)), &EventCreate { flags: 0 }, &[])).collect();
    assert_eq!(peer.told(), Ok(()));
    assert_eq!(peer.call(&Name { name: name(0, 3) }), full);
    assert_eq!(peer.call(&EventCreate { flags: 0 }).map(drop), full);
    assert_eq!(peer.call(&StreamCreate { flags: 0, priority: 0 }).map(drop), full, "without a name too");
    for turn in 1..100 {
        peer.forget(&EventDestroy { event: events[0] + ((turn - 1) << ClientName::PLACE_BITS) }, &[]);
        peer.make(Some(name(turn, 0)), &EventCreate { flags: 0 }, &[]);
    }
    assert_eq!(peer.told(), Ok(()), "a place is used again and again");
    assert_eq!(script.live().events, 3);
}

#[test]
fn a_reset_takes_what_has_names_and_not_the_names() {
    let (worker, script) = named(|_| {});
    let mut peer = session(&worker);
    let event = peer.make(Some(name(0, 0)), &EventCreate { flags: 0 }, &[]);
    let stream = peer.make(Some(name(0, 1)), &StreamCreate { flags: 0, priority: 0 }, &[]);
    peer.call(&DeviceReset {}).unwrap();
    assert_eq!(script.live(), Live { contexts: 1, ..Live::default() });
    assert_eq!(peer.call(&EventQuery { event }), Err(HipError::INVALID_HANDLE));
    assert_eq!(peer.call(&StreamQuery { stream }), Err(HipError::INVALID_HANDLE));
    assert_eq!(peer.call(&Name { name: event }), Err(HipError::INVALID_VALUE));
    let again = peer.make(Some(name(1, 1)), &StreamCreate { flags: 1, priority: 0 }, &[]);
    assert_eq!(peer.call(&StreamGetFlags { stream: again }).unwrap().flags, 1);
}

#[test]
fn a_session_without_the_feature_has_no_names() {
    let (worker, script) = named(|_| {});
    let mut peer = Peer::hello(worker.local_addr());
    peer.make(Some(name(0, 0)), &EventCreate { flags: 0 }, &[]);
    assert_eq!(peer.told(), Err(HipError::NOT_SUPPORTED));
    assert_eq!(script.live().events, 0);
    let event = peer.event_create();
    assert_eq!(peer.call(&EventQuery { event }), Ok(()));
    let _ = peer.send(&Name { name: name(0, 0) }, &[], ReplyMode::Never);
    assert_eq!(peer.call(&DeviceSynchronize {}), Err(HipError::NOT_SUPPORTED));
}
