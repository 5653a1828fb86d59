//! Handles, names and addresses of another session, guessed in every field of every operation that has one.

use super::random::len_bytes;
use super::{Case, KERNELS, Scale, Sent, Target};
use crate::WireClient;
use hipr_proto::op::{self, ClientName, ForOp, Handle, ReplyRule, TailLen, kind, put_name, with_op};
use hipr_proto::{Features, HipResult, Info, Layout, OPS, Op, Opcode, Wire};
use hipr_testkit::{Choices, seed_bytes};
use std::collections::BTreeSet;

/// Bytes of an allocation of either session.
const LEN_BYTES: u64 = 4096;
/// What is in the other session's.
const BYTE: u8 = 0x3c;
/// Events that processes may share.
const INTERPROCESS: u32 = 6;

/// Returns the cases.
pub(super) fn cases(scale: &Scale) -> Vec<Case> {
    let (seed, count) = (scale.seed, scale.guesses);
    let name = format!("{count} guesses at another session's handles, seed {seed}");
    vec![Case::new(name, move |worker| guess(worker, seed, count))]
}

fn guess(worker: Target, seed: u64, count: usize) -> Sent {
    let mut sent = Sent::default();
    let mut other = Session::open(worker);
    other.client.forget(&op::Memset {
        dst: other.memory,
        value: i32::from(BYTE),
        size: LEN_BYTES,
        stream: 0,
    });
    let targets: Vec<(&Info, usize, Guessed)> = OPS.iter().flat_map(guessed_fields).collect();

    // A request whose handles are all the session's own is carried out: what is refused below is refused for the guess.
    let with_guesses: BTreeSet<_> = targets.iter().map(|(info, ..)| info.code).collect();
    let can = |code: &Opcode| Session::open(worker).ask(code.info()?, None).ok().map(|()| *code);
    let works: BTreeSet<_> = with_guesses.iter().filter_map(can).collect();

    let mut session = Session::open(worker);
    let mut through = BTreeSet::new();
    for number in 0..count {
        let (info, field, what) = targets[number % targets.len()];
        let bytes = seed_bytes(seed.wrapping_add(number as u64));
        let value = what.value(&mut Choices::new(&bytes), &other, &session);
        let answer = session.ask(info, Some((field, &value)));
        sent.bytes += info.request.size as u64;
        if answer.is_ok() {
            through.insert(format!("{}.{} = {value:02x?}", info.name, info.request.fields[field].name));
        }
        sent.answered(answer);
    }
    sent.say(format!(
        "in {} fields of {} operations, of which {} can be carried out",
        targets.len(),
        with_guesses.len(),
        works.len()
    ));
    sent.expect(through.is_empty(), || format!("carried out: {through:?}"));
    sent.expect(2 * works.len() > with_guesses.len(), || "most could not be carried out anyway".into());
    let harm = other.harm();
    sent.expect(harm.is_empty(), || format!("the other session has another {harm:?}"));
    let harm = session.harm();
    sent.expect(harm.is_empty(), || format!("the session itself has another {harm:?}"));
    sent
}

/// What a field holds that can be guessed.
#[derive(Debug, Clone, Copy)]
enum Guessed {
    Handle(Handle),
    Node,
    Address,
    /// What a session gives to another one, so that this opens something of it.
    Shared(Opcode),
}

/// Returns the fields of a request that can be guessed, by number.
fn guessed_fields(info: &'static Info) -> impl Iterator<Item = (&'static Info, usize, Guessed)> {
    // Memory of the client, of which the worker knows nothing.
    let of_client = match info.code {
        Opcode::HOST_REGISTER => "host_ptr",
        Opcode::MEMCPY_DTOH | Opcode::MEMCPY_DTOH_ASYNC => "dst",
        Opcode::MEMCPY_HTOD | Opcode::MEMCPY_HTOD_ASYNC => "src",
        _ => "",
    };
    let what = move |name: &str| match name {
        _ if name == of_client || info.reply_rule == ReplyRule::Notification => None,
        "node" => Some(Guessed::Node),
        "handle" => Some(Guessed::Shared(info.code)),
        "dst" | "src" | "ptr" | "dev_ptr" | "device_ptr" | "src_ptr" | "dst_ptr" | "host_ptr" | "address" => {
            Some(Guessed::Address)
        }
        name => Handle::of_field(name).map(Guessed::Handle),
    };
    let fields = info.request.fields.iter().enumerate();
    fields.filter_map(move |(index, field)| Some((info, index, what(field.name)?)))
}

impl Guessed {
    /// Returns a value that is none of the session's own: what the other session has, something near it, or anything.
    fn value(self, choices: &mut Choices<'_>, other: &Session, session: &Session) -> Vec<u8> {
        if let Self::Shared(op) = self {
            let real = if op == Opcode::IPC_OPEN_EVENT_HANDLE { &other.shared[1] } else { &other.shared[0] };
            let mut value = real.to_vec();
            // Somewhere in what is not known, or everywhere.
            if choices.percent(50) {
                let used = real.iter().rposition(|&byte| byte != 0).map_or(1, |last| last + 1);
                value[choices.index(used)] ^= 1 << choices.below(8);
            } else {
                value.fill_with(|| choices.below(256) as u8);
            }
            return value;
        }
        loop {
            let base = match (self, choices.below(4)) {
                (Self::Handle(kind), 0) => other.handles[kind as usize],
                (Self::Node, 0) => other.node,
                (Self::Address, 0) => other.memory + 8,
                (_, 1) => 1 << 62 | choices.below(2) << ClientName::PLACE_BITS | choices.below(64),
                (_, 2) => other.handles[choices.index(other.handles.len())],
                _ => choices.below(u64::MAX),
            };
            let near = [0, 1, 2, 8, 16, 64, 4096][choices.index(7)];
            let value = if choices.percent(50) { base.wrapping_add(near) } else { base.wrapping_sub(near) };
            if !self.is_own(value, session) {
                return value.to_le_bytes().to_vec();
            }
        }
    }

    /// Returns whether a value means something in the session that guesses: its own, or what all have.
    fn is_own(self, value: u64, session: &Session) -> bool {
        match self {
            // The null stream, the legacy and the thread's one; no event.
            Self::Handle(kind) => value <= 2 || session.handles[kind as usize] == value,
            Self::Node => value == session.node,
            _ => (session.memory..session.memory + LEN_BYTES).contains(&value) || value == 0,
        }
    }
}

/// A session that has one object of each kind.
struct Session {
    client: WireClient,
    /// By kind, in the order of [`Handle::ALL`].
    handles: [u64; Handle::ALL.len()],
    node: u64,
    memory: u64,
    /// What opens the memory, and the event, from another session.
    shared: [[u8; 64]; 2],
}

fn name() -> Vec<u8> {
    let mut name = Vec::new();
    put_name("count", &mut name).expect("a short name");
    name
}

impl Session {
    fn open(worker: Target) -> Self {
        let mut client = WireClient::open(worker.address);
        let features = Features::NAMES.bits();
        client.call(&op::Offer { features, part: 0 }).expect("a worker that knows the extension");
        let stream = client.call(&op::StreamCreate { flags: 1, priority: 0 }).expect("a stream").stream;
        let event = client.call(&op::EventCreate { flags: INTERPROCESS }).expect("an event").event;
        let pool = op::MemPoolCreate { alloc_type: 1, location_type: 1, ..Wire::ZERO };
        let pool = client.call(&pool).expect("a pool").mem_pool;
        let load = op::ModuleLoadData { data_size: KERNELS.len() as u64 };
        let module = client.call_with(&load, &[], Some(KERNELS.to_vec())).result.expect("a module").module;
        let function = op::ModuleGetFunction { module };
        let function = client.call_with(&function, &name(), None).result.expect("a kernel").function;
        let memory = client.call(&op::Malloc { size: LEN_BYTES, flags: 0 }).expect("memory").device_ptr;
        let graph = client.call(&op::GraphCreate { flags: 0 }).expect("a graph").graph;
        let (pitch, value, element_size, width, height) = (0, i32::from(BYTE), 1, 1, 1);
        let node = op::GraphAddMemsetNode {
            graph,
            dst: memory,
            pitch,
            value,
            element_size,
            width,
            height,
            ..Wire::ZERO
        };
        let node = client.call(&node).expect("a node").node;
        let exec = client.call(&op::GraphInstantiate { graph, flags: 0 }).expect("an instance").graph_exec;
        // Emulated GPUs in processes of their own share nothing.
        let of_memory = client.call(&op::IpcGetMemHandle { device_ptr: memory });
        let of_event = client.call(&op::IpcGetEventHandle { event });
        let shared =
            [of_memory.map_or([0; 64], |got| got.handle), of_event.map_or([0; 64], |got| got.handle)];
        client.call(&op::EventRecord { event, stream }).expect("an event of the session");
        client.call(&op::DeviceSynchronize {}).expect("nothing has failed");
        Self { client, handles: [stream, event, pool, module, function, graph, exec], node, memory, shared }
    }

    /// Sends a request whose fields are the session's own but for one.
    fn ask(&mut self, info: &'static Info, odd: Option<(usize, &[u8])>) -> HipResult<()> {
        with_op(info.code, Ask { session: self, info, odd }).expect("an operation of the table")
    }

    /// Returns what is not as it was.
    fn harm(&mut self) -> Vec<&'static str> {
        let [stream, event, mem_pool, module, function, graph, graph_exec] = self.handles;
        let client = &mut self.client;
        let copy =
            op::Memcpy { dst: 0, src: self.memory, size: LEN_BYTES, kind: kind::DEVICE_TO_HOST, stream: 0 };
        let [before, after] = [0; 2].map(|_| {
            let copied = client.call_with(&copy, &[], None);
            copied.result.is_ok().then_some(copied.inline)
        });
        let nodes = client.call_with(&op::GraphGetNodes { graph, max_nodes: 8 }, &[], None).result;
        let found = client.call_with(&op::ModuleGetFunction { module }, &name(), None).result;
        let held = [
            ("memory", before.is_some() && before == after),
            ("stream", client.call(&op::StreamQuery { stream }).is_ok()),
            (
                "flags of a stream",
                client.call(&op::StreamGetFlags { stream }).is_ok_and(|got| got.flags == 1),
            ),
            (
                "capture",
                client.call(&op::StreamIsCapturing { stream }).is_ok_and(|got| got.capture_status == 0),
            ),
            ("event", client.call(&op::EventQuery { event }).is_ok()),
            ("pool", client.call(&op::MemPoolGetAttribute { mem_pool, attr: 4 }).is_ok()),
            ("module", found.is_ok()),
            ("function", client.call(&op::FuncGetAttributes { function }).is_ok()),
            ("graph", nodes.is_ok_and(|got| got.num_nodes == 1)),
            ("node", client.call(&op::GraphNodeGetType { node: self.node }).is_ok()),
            ("instance", client.call(&op::GraphLaunch { graph_exec, stream }).is_ok()),
            ("outcome", client.call(&op::DeviceSynchronize {}).is_ok()),
        ];
        held.into_iter().filter(|(_, holds)| !holds).map(|(what, _)| what).collect()
    }
}

struct Ask<'a> {
    session: &'a mut Session,
    info: &'static Info,
    odd: Option<(usize, &'a [u8])>,
}

impl ForOp for Ask<'_> {
    type Out = HipResult<()>;

    fn call<O: Op>(self) -> Self::Out {
        let mut fixed = Vec::new();
        for (index, field) in self.info.request.fields.iter().enumerate() {
            match self.odd {
                Some((odd, value)) if odd == index => fixed.extend_from_slice(value),
                _ => fixed.extend(self.session.field(field.name, &field.layout)),
            }
        }
        let request = O::take(&mut fixed.as_slice()).expect("all fields");
        let tail = match (O::OPCODE, request.tail_len()) {
            (Opcode::MODULE_GET_FUNCTION | Opcode::MODULE_GET_GLOBAL, _) => name(),
            (Opcode::LAUNCH_KERNEL | Opcode::LAUNCH_COOPERATIVE_KERNEL | Opcode::MODULE_LAUNCH_KERNEL, _) => {
                let mut tail = Vec::new();
                let argument = op::Param { offset: 0, size: 8 };
                op::LaunchArgs::put(&[argument], &self.session.memory.to_le_bytes(), &mut tail);
                tail
            }
            (_, TailLen::Exact(len) | TailLen::AtLeast(len) | TailLen::AtMost(len)) => vec![0; len as usize],
        };
        self.session.client.call_with(&request, &tail, None).result.map(drop)
    }
}

impl Session {
    /// Returns a field's bytes: values with which most operations succeed.
    fn field(&self, name: &str, layout: &Layout) -> Vec<u8> {
        if let Some(kind) = Handle::of_field(name) {
            return self.handles[kind as usize].to_le_bytes().to_vec();
        }
        let number = |value: u64| value.to_le_bytes()[..len_bytes(layout)].to_vec();
        match name {
            "dst" | "dst_ptr" | "ptr" | "dev_ptr" | "device_ptr" | "address" | "host_ptr" => {
                number(self.memory)
            }
            "src" | "src_ptr" => number(self.memory + LEN_BYTES / 2),
            "node" => number(self.node),
            "size" | "width" | "count" | "height" | "depth" | "element_size" | "length" => number(1),
            "src_pitch" | "dst_pitch" | "pitch" | "dpitch" | "spitch" | "src_height" | "dst_height" => {
                number(64)
            }
            "kind" => number(kind::DEVICE_TO_DEVICE as u64),
            "grid_dim_x" | "grid_dim_y" | "grid_dim_z" | "block_dim_x" | "block_dim_y" | "block_dim_z"
            | "num_args" => number(1),
            "grid_dim" | "block_dim" => [1u32; 3].iter().flat_map(|one| one.to_le_bytes()).collect(),
            "block_size" => number(64),
            "flags" | "attr" | "attribute" if layout == &Layout::Number("i32") => number(1),
            _ => vec![0; len_bytes(layout)],
        }
    }
}
