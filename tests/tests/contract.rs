//! Tests every operation that HIPR 1.0 defines over a real socket, against the emulated GPU and against one behind HIP's C
//! API: success, failure, unanswered success, and unanswered failure that the next answered request reports once.

use hipr_proto::op;
use hipr_proto::{HipError, OPS, Op, Opcode, Source};
use hipr_tests::{Chain, WireClient, start_worker, suite};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;

/// The demo's kernels, a bundle with a code object for each GPU that can be emulated.
static KERNELS: &[u8] = include_bytes!("../../cli/demo/kernels.co");

/// The session of one check, and the objects that it has created.
struct Session {
    wire: WireClient,
    buffer: u64,
    stream: u64,
    /// An event that is recorded and complete.
    event: u64,
    module: u64,
    saxpy: u64,
}

const BUFFER_BYTES: u64 = 4096;
/// An address and a handle that no session was given.
const NOWHERE: u64 = 0xdead_0000_0000;

impl Session {
    fn open(worker: SocketAddr) -> Self {
        let mut wire = WireClient::open(worker);
        let buffer = wire.call(&op::Malloc { size: BUFFER_BYTES, flags: 0 }).expect("memory").device_ptr;
        let stream = wire.call(&op::StreamCreate { flags: 0, priority: 0 }).expect("a stream").stream;
        let event = wire.call(&op::EventCreate { flags: 0 }).expect("an event").event;
        wire.call(&op::EventRecord { event, stream: 0 }).expect("a recorded event");
        wire.call(&op::EventSynchronize { event }).expect("a complete event");
        let load = op::ModuleLoadData { data_size: KERNELS.len() as u64 };
        let module = wire.call_with(&load, &[], Some(KERNELS.to_vec())).result.expect("a module").module;
        let function = op::ModuleGetFunction { module };
        let saxpy = wire.call_with(&function, &name("saxpy"), None).result.expect("a function").function;
        Self { wire, buffer, stream, event, module, saxpy }
    }

    /// Checks that there is no kept error: the next answered request succeeds.
    fn assert_clear(&mut self, context: &str) {
        assert!(self.wire.call(&op::GetDevice {}).is_ok(), "{context}: an error is left over");
    }
}

fn name(name: &str) -> Vec<u8> {
    let mut tail = Vec::new();
    op::put_name(name, &mut tail).expect("a short name");
    tail
}

/// A request with its tail.
struct Message<O> {
    op: O,
    tail: Vec<u8>,
    inline: Option<Vec<u8>>,
}

fn plain<O: Op>(op: O) -> Message<O> {
    Message { op, tail: Vec::new(), inline: None }
}

fn with_tail<O: Op>(op: O, tail: Vec<u8>) -> Message<O> {
    Message { op, tail, inline: None }
}

fn with_inline<O: Op>(op: O, inline: Vec<u8>) -> Message<O> {
    Message { op, tail: Vec::new(), inline: Some(inline) }
}

/// Runs the four checks and notes the checked operations.
struct Contract {
    worker: SocketAddr,
    exercised: BTreeSet<u16>,
}

impl Contract {
    /// Runs the four checks: `good` makes a request that succeeds each time, `bad` one that fails with `error`.
    fn check<O: Op>(
        &mut self,
        good: impl Fn(&mut Session) -> Message<O>,
        bad: impl Fn(&mut Session) -> Message<O>,
        error: HipError,
    ) {
        self.succeeds(&good);
        self.fails(&bad, error);
    }

    /// Runs the checks of success, for operations that cannot fail by themselves.
    fn succeeds<O: Op>(&mut self, good: &impl Fn(&mut Session) -> Message<O>) {
        let context = O::OPCODE.to_string();
        let mut session = Session::open(self.worker);
        let message = good(&mut session);
        let replied = session.wire.call_with(&message.op, &message.tail, message.inline);
        assert!(replied.result.is_ok(), "{context}: {:?}", replied.result.err());
        session.assert_clear(&context);
        let message = good(&mut session);
        session.wire.forget_with(&message.op, &message.tail, message.inline);
        session.assert_clear(&context);
        self.exercised.insert(O::OPCODE.0);
    }

    /// Runs the checks of failure, for operations that cannot succeed here.
    fn fails<O: Op>(&mut self, bad: &impl Fn(&mut Session) -> Message<O>, error: HipError) {
        let context = O::OPCODE.to_string();
        let mut session = Session::open(self.worker);
        let message = bad(&mut session);
        let replied = session.wire.call_with(&message.op, &message.tail, message.inline);
        assert_eq!(replied.result.err(), Some(error), "{context}: answered");
        assert!(replied.inline.is_empty(), "{context}: a failure has no inline bytes");
        session.assert_clear(&context);
        session.wire.accept_notifications();
        let message = bad(&mut session);
        session.wire.forget_with(&message.op, &message.tail, message.inline);
        assert_eq!(session.wire.call(&op::Ping {}), Ok(()), "{context}: PING reports nothing");
        assert_told::<O>(&session.wire.take_failures(), error);
        // What only follows from it is not told.
        session.wire.forget(&op::SetDevice { device_id: 99 });
        assert_eq!(session.wire.call(&op::GetDevice {}).err(), Some(error), "{context}: reported");
        session.assert_clear(&context);
        assert!(session.wire.take_failures().is_empty(), "{context}: told again");
        self.exercised.insert(O::OPCODE.0);
    }
}

/// Checks that the client was told once of a failed request.
fn assert_told<O: Op>(failures: &[(op::RequestFailed, Vec<u8>)], error: HipError) {
    let [(failed, text)] = failures else { panic!("{} is told {} times", O::OPCODE, failures.len()) };
    assert_eq!(
        (failed.operation, HipError(failed.error_code)),
        (u32::from(O::OPCODE.0), error),
        "{failed:?}"
    );
    assert!(failed.request > 0 && std::str::from_utf8(text).is_ok(), "{failed:?}");
}

fn memcpy(dst: u64, src: u64, size: u64, kind: i32) -> op::Memcpy {
    op::Memcpy { dst, src, size, kind, stream: 0 }
}

fn memset(dst: u64, size: u64) -> op::Memset {
    op::Memset { dst, value: 7, size, stream: 0 }
}

fn copy_2d(dst: u64, src: u64, kind: i32) -> op::Memcpy2D {
    op::Memcpy2D { dst, dpitch: 64, src, spitch: 64, width: 16, height: 4, kind, reserved: 0, stream: 0 }
}

/// Returns a launch of saxpy on the session's buffer, or on `data`.
fn saxpy(session: &Session, function: u64, data: u64) -> Message<op::LaunchKernel> {
    with_tail(suite::saxpy(function, session.stream, 0, 0), suite::saxpy_arguments(data, data))
}

fn every_operation_of_the_contract(worker: SocketAddr) {
    let mut all = Contract { worker, exercised: BTreeSet::new() };
    let invalid = HipError::INVALID_VALUE;
    let handle = HipError::INVALID_HANDLE;

    // Connection and devices.
    all.succeeds(&|_| plain(op::Ping {}));
    all.succeeds(&|_| plain(op::GetDeviceCount {}));
    all.succeeds(&|_| plain(op::GetDevice {}));
    all.succeeds(&|_| plain(op::RuntimeGetVersion {}));
    all.succeeds(&|_| plain(op::DriverGetVersion {}));
    let invalid_device = HipError::INVALID_DEVICE;
    all.check(
        |_| plain(op::SetDevice { device_id: 0 }),
        |_| plain(op::SetDevice { device_id: 99 }),
        invalid_device,
    );
    all.check(
        |_| plain(op::GetDeviceProperties { device_id: 0 }),
        |_| plain(op::GetDeviceProperties { device_id: -1 }),
        invalid_device,
    );
    all.check(
        |_| plain(op::DeviceGetAttribute { device_id: 0, attribute: 87 }),
        |_| plain(op::DeviceGetAttribute { device_id: 7, attribute: 87 }),
        invalid_device,
    );
    const MALLOC_HEAP_SIZE: i32 = 2;
    all.check(
        |_| plain(op::DeviceGetLimit { limit: MALLOC_HEAP_SIZE, value: 0 }),
        |_| plain(op::DeviceGetLimit { limit: 999, value: 0 }),
        HipError::UNSUPPORTED_LIMIT,
    );
    const STACK_SIZE: i32 = 0;
    all.check(
        |_| plain(op::DeviceSetLimit { limit: STACK_SIZE, value: 2048 }),
        |_| plain(op::DeviceSetLimit { limit: 999, value: 1 }),
        HipError::UNSUPPORTED_LIMIT,
    );
    // One device has no peers.
    all.fails(&|_| plain(op::DeviceEnablePeerAccess { peer_device_id: 1, flags: 0 }), invalid_device);

    // Memory.
    all.check(
        |_| plain(op::Malloc { size: 100, flags: 0 }),
        |_| plain(op::Malloc { size: 1 << 60, flags: 0 }),
        HipError::OUT_OF_MEMORY,
    );
    all.check(
        |s| {
            plain(op::Free {
                device_ptr: s.wire.call(&op::Malloc { size: 64, flags: 0 }).expect("memory").device_ptr,
            })
        },
        |_| plain(op::Free { device_ptr: NOWHERE }),
        invalid,
    );
    all.check(
        |s| plain(op::MallocAsync { size: 100, stream: s.stream }),
        |_| plain(op::MallocAsync { size: 100, stream: NOWHERE }),
        handle,
    );
    all.check(
        |s| {
            let stream = s.stream;
            let device_ptr = s.wire.call(&op::MallocAsync { size: 64, stream }).expect("memory").device_ptr;
            plain(op::FreeAsync { device_ptr, stream })
        },
        |s| plain(op::FreeAsync { device_ptr: NOWHERE, stream: s.stream }),
        invalid,
    );
    all.check(
        |s| with_inline(memcpy(s.buffer, 0, 100, op::kind::HOST_TO_DEVICE), vec![9; 100]),
        |s| with_inline(memcpy(s.buffer + BUFFER_BYTES - 10, 0, 100, op::kind::HOST_TO_DEVICE), vec![9; 100]),
        invalid,
    );
    all.check(
        |s| plain(op::MemcpyAsync(memcpy(s.buffer + 512, s.buffer, 100, op::kind::DEVICE_TO_DEVICE))),
        |s| plain(op::MemcpyAsync(memcpy(NOWHERE, s.buffer, 100, op::kind::DEVICE_TO_DEVICE))),
        invalid,
    );
    all.check(
        |s| with_inline(copy_2d(s.buffer, 0, op::kind::HOST_TO_DEVICE), vec![1; 64]),
        |s| with_inline(copy_2d(s.buffer + BUFFER_BYTES - 100, 0, op::kind::HOST_TO_DEVICE), vec![1; 64]),
        invalid,
    );
    let peer = |dst, src| op::MemcpyPeer { dst, dst_device: 0, src, src_device: 0, size: 64, stream: 0 };
    all.check(|s| plain(peer(s.buffer, s.buffer + 64)), |s| plain(peer(s.buffer, NOWHERE)), invalid);
    all.check(|s| plain(memset(s.buffer, 64)), |s| plain(memset(s.buffer, BUFFER_BYTES + 1)), invalid);
    all.check(
        |s| plain(op::MemsetAsync(memset(s.buffer, 64))),
        |_| plain(op::MemsetAsync(memset(NOWHERE, 64))),
        invalid,
    );

    // Streams and events.
    all.check(
        |_| plain(op::StreamCreate { flags: 1, priority: 0 }),
        |_| plain(op::StreamCreate { flags: 0xffff, priority: 0 }),
        invalid,
    );
    all.check(
        |s| {
            plain(op::StreamDestroy {
                stream: s.wire.call(&op::StreamCreate { flags: 0, priority: 0 }).expect("a stream").stream,
            })
        },
        |_| plain(op::StreamDestroy { stream: NOWHERE }),
        handle,
    );
    all.check(
        |s| plain(op::StreamSynchronize { stream: s.stream }),
        |_| plain(op::StreamSynchronize { stream: NOWHERE }),
        handle,
    );
    all.check(
        |s| plain(op::StreamWaitEvent { stream: s.stream, event: s.event, flags: 0 }),
        |s| plain(op::StreamWaitEvent { stream: s.stream, event: NOWHERE, flags: 0 }),
        handle,
    );
    all.check(
        |_| plain(op::EventCreate { flags: 0 }),
        |_| plain(op::EventCreate { flags: 0xffff_0000 }),
        invalid,
    );
    all.check(
        |s| {
            plain(op::EventDestroy {
                event: s.wire.call(&op::EventCreate { flags: 0 }).expect("an event").event,
            })
        },
        |_| plain(op::EventDestroy { event: NOWHERE }),
        handle,
    );
    all.check(
        |s| plain(op::EventRecord { event: s.event, stream: s.stream }),
        |s| plain(op::EventRecord { event: s.event, stream: NOWHERE }),
        handle,
    );
    all.check(
        |s| plain(op::EventSynchronize { event: s.event }),
        |_| plain(op::EventSynchronize { event: NOWHERE }),
        handle,
    );
    all.check(
        |s| plain(op::EventQuery { event: s.event }),
        |_| plain(op::EventQuery { event: NOWHERE }),
        handle,
    );
    all.check(
        |s| plain(op::EventElapsedTime { start_event: s.event, stop_event: s.event }),
        |s| plain(op::EventElapsedTime { start_event: s.event, stop_event: NOWHERE }),
        handle,
    );

    // Modules and launches.
    let load =
        |image: &[u8]| with_inline(op::ModuleLoadData { data_size: image.len() as u64 }, image.to_vec());
    all.check(|_| load(KERNELS), |_| load(&[0x55; 1000]), HipError::INVALID_IMAGE);
    all.check(
        |s| {
            plain(op::ModuleUnload {
                module: s
                    .wire
                    .call_with(&load(KERNELS).op, &[], load(KERNELS).inline)
                    .result
                    .expect("a module")
                    .module,
            })
        },
        |_| plain(op::ModuleUnload { module: NOWHERE }),
        handle,
    );
    all.check(
        |s| with_tail(op::ModuleGetFunction { module: s.module }, name("matmul")),
        |s| with_tail(op::ModuleGetFunction { module: s.module }, name("no_such_kernel")),
        HipError::NOT_FOUND,
    );
    all.check(|s| saxpy(s, s.saxpy, s.buffer), |s| saxpy(s, NOWHERE, s.buffer), handle);

    // Combined operations.
    let combined = |kernel: &str| {
        let op = op::ModuleLoadAndGetFunction {
            data_size: KERNELS.len() as u64,
            name_length: kernel.len() as u32,
            pad: 0,
        };
        Message { op, tail: kernel.as_bytes().to_vec(), inline: Some(KERNELS.to_vec()) }
    };
    all.check(|_| combined("hash64"), |_| combined("no_such_kernel"), HipError::NOT_FOUND);
    let sizes = |size| {
        let mut sizes = [0; 64];
        sizes[..3].fill(size);
        sizes
    };
    all.check(
        |_| plain(op::MallocBatch { count: 3, pad: 0, sizes: sizes(64) }),
        |_| plain(op::MallocBatch { count: 65, pad: 0, sizes: sizes(64) }),
        invalid,
    );
    all.check(
        |_| plain(op::StreamCreateBatch { count: 2, flags: 0 }),
        |_| plain(op::StreamCreateBatch { count: 33, flags: 0 }),
        invalid,
    );
    all.check(
        |_| plain(op::EventCreateBatch { count: 2, flags: 0 }),
        |_| plain(op::EventCreateBatch { count: 33, flags: 0 }),
        invalid,
    );

    // A synchronization fails when the work that it waits for has failed.
    let fault = |s: &mut Session| {
        let wild = saxpy(s, s.saxpy, NOWHERE);
        s.wire.forget_with(&wild.op, &wild.tail, None);
        plain(op::DeviceSynchronize {})
    };
    all.succeeds(&|_| plain(op::DeviceSynchronize {}));
    all.fails(&fault, HipError::ILLEGAL_ADDRESS);

    let graph = |s: &mut Session| s.wire.call(&op::GraphCreate { flags: 0 }).expect("a graph").graph;
    all.succeeds(&|s| plain(op::GraphDestroy { graph: graph(s) }));
    all.fails(&|_| plain(op::GraphDestroy { graph: NOWHERE }), HipError::INVALID_VALUE);
    let exec = |s: &mut Session| {
        let made = op::GraphInstantiate { graph: graph(s), flags: 0 };
        s.wire.call(&made).expect("a ready graph").graph_exec
    };
    all.succeeds(&|s| plain(op::GraphLaunch { graph_exec: exec(s), stream: 0 }));
    all.fails(&|_| plain(op::GraphLaunch { graph_exec: NOWHERE, stream: 0 }), HipError::INVALID_VALUE);

    // INIT opened every session above; SHUTDOWN ends one.
    all.exercised.insert(Opcode::INIT.0);
    let mut last = Session::open(worker);
    assert_eq!(last.wire.call(&op::Shutdown {}), Ok(()));
    assert!(last.wire.closed(), "SHUTDOWN ends the connection");
    all.exercised.insert(Opcode::SHUTDOWN.0);

    let named: BTreeSet<u16> =
        OPS.iter().filter(|info| info.source != Source::Extension).map(|info| info.code.0).collect();
    let missing: Vec<_> = named.difference(&all.exercised).map(|code| Opcode(*code).to_string()).collect();
    assert!(missing.is_empty(), "operations of the contract without a check: {missing:?}");
}

fn the_first_kept_error_wins_and_creates_nothing(worker: SocketAddr) {
    let mut session = Session::open(worker);
    let (free_before, _) = memory(&mut session.wire);
    session.wire.forget(&op::EventRecord { event: NOWHERE, stream: 0 });
    session.wire.forget(&memset(NOWHERE, 4));
    let refused = session.wire.call(&op::Malloc { size: 1 << 20, flags: 0 });
    assert_eq!(refused.err(), Some(HipError::INVALID_HANDLE), "the first one, not the second");
    assert_eq!(memory(&mut session.wire).0, free_before, "an allocation that reports an error is not made");
    session.assert_clear("after it was reported");
}

fn memory(wire: &mut WireClient) -> (u64, u64) {
    let info = wire.call(&op::MemGetInfo {}).expect("memory information");
    (info.free_bytes, info.total_bytes)
}

fn bytes_go_there_and_back(worker: SocketAddr) {
    let mut session = Session::open(worker);
    let bytes: Vec<u8> = (0..BUFFER_BYTES).map(|i| (i * 7) as u8).collect();
    let up = memcpy(session.buffer, 0, BUFFER_BYTES, op::kind::HOST_TO_DEVICE);
    session.wire.forget_with(&up, &[], Some(bytes.clone()));
    let down = memcpy(0, session.buffer, BUFFER_BYTES, op::kind::DEVICE_TO_HOST);
    assert_eq!(session.wire.call_with(&down, &[], None).inline, bytes);

    // A rectangle of 4 rows of 16 bytes out of rows of 64.
    let rows =
        session.wire.call_with(&copy_2d(0, session.buffer, op::kind::DEVICE_TO_HOST), &[], None).inline;
    let expected: Vec<u8> = bytes.chunks(64).take(4).flat_map(|row| &row[..16]).copied().collect();
    assert_eq!(rows, expected);

    // A failed copy has no bytes and leaves the connection usable.
    let past = memcpy(0, session.buffer + 1, BUFFER_BYTES, op::kind::DEVICE_TO_HOST);
    let replied = session.wire.call_with(&past, &[], None);
    assert_eq!(replied.result.err(), Some(HipError::INVALID_VALUE));
    assert!(replied.inline.is_empty());
    session.assert_clear("after a failed copy");
}

/// Defines each check as two tests: on the emulated GPU, and through the device `hip`, whose runtime is hipr's own client
/// library with the emulated GPU behind it.
macro_rules! on_both {
    ($($check:ident)*) => {
        mod emulated {
            $(#[test]
            fn $check() {
                let worker = super::start_worker();
                super::$check(worker.address());
            })*
        }

        mod chained {
            $(#[test]
            fn $check() {
                let mut chain = super::Chain::start(super::Path::new(env!("CARGO_BIN_EXE_chain-worker")));
                super::$check(chain.address());
                assert!(chain.lives());
            })*
        }
    };
}

on_both! {
    every_operation_of_the_contract
    the_first_kept_error_wins_and_creates_nothing
    bytes_go_there_and_back
}
