//! Which waits ask the worker: those for work that can still show the program something or fail, and no others.
//!
//! The rule is stated here anew, for every kind of stream, of work, and of wait.

mod lazy;
mod watched;

use amdhip64::command::{Command, MemoryCopy, MemoryFill, Pattern};
use amdhip64::convert::{Event, Ptr};
use amdhip64::stream::mirror::{Origin, RegionInfo};
use amdhip64::stream::sync_mode::SyncMode;
use amdhip64::stream::{Call, Next, WaitCall};
use amdhip64::worker::Wait;
use hipr_abi::{hipEventInterprocess, hipStreamCaptureModeRelaxed};
use hipr_proto::HipError;
use hipr_proto::op::{MemcpyPeer, kind};

use crate::script::{
    DEVICE, EVENT, HOST, LEGACY, LEN, NON_BLOCKING, Process, REMOTE, STREAM, drive, host_function, kernel,
    launch,
};

/// `hipStreamPerThread`, and a second stream of each created kind.
const PER_THREAD: u64 = 2;
const OTHER: u64 = 0x5100;
const OTHER_NON_BLOCKING: u64 = 0x7100;
const STREAMS: [u64; 6] = [LEGACY, PER_THREAD, STREAM, OTHER, NON_BLOCKING, OTHER_NON_BLOCKING];

/// The event that tests record after the work in question, and one whose record is the work.
const AFTER: Event = Event(0xe001);
const BEFORE: Event = Event(0xe002);
const SHARED: Event = Event(0xe003);
/// The stream that [`BEFORE`] is recorded on; nothing else in a test waits for it.
const APART: u64 = 0x7900;

/// Memory of the program that HIP does not know, and pinned memory that no kernel has seen.
const PAGEABLE: usize = 0x50_0000;
const PINNED: usize = 0x60_0000;

/// What was put on a stream last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Nothing,
    CopyIn {
        from: usize,
        is_blocking: bool,
    },
    Fill,
    Record,
    RecordShared,
    /// A wait for an event that was recorded behind a fill, or behind a kernel.
    AwaitDecided,
    AwaitOpen,
    AwaitShared,
    Kernel,
    TimedKernel,
    CopyOut {
        is_blocking: bool,
    },
    /// A kernel, and then bytes from the device.
    KernelAndCopyOut,
    CopyWithin,
    PeerCopy,
    Function,
    FunctionAfterKernel,
    /// A graph of fills, sent one by one, or launched by the worker.
    Graph {
        is_on_worker: bool,
    },
    FreeAsync,
    /// Copies and a fill of memory that a kernel has seen.
    CopyIntoMirror,
    CopyOutOfMirror,
    FillOfMirror,
    KernelWithMirror,
    /// Copies and a fill of memory that both sides map, and a kernel beside such memory, which it may reach without an argument.
    CopyIntoShared {
        is_blocking: bool,
    },
    CopyOutOfShared {
        is_blocking: bool,
    },
    FillOfShared,
    KernelBesideShared,
}

const WORK: [Work; 33] = [
    Work::Nothing,
    Work::CopyIn { from: PAGEABLE, is_blocking: false },
    Work::CopyIn { from: PAGEABLE, is_blocking: true },
    Work::CopyIn { from: PINNED, is_blocking: false },
    Work::CopyIn { from: PINNED, is_blocking: true },
    Work::Fill,
    Work::Record,
    Work::RecordShared,
    Work::AwaitDecided,
    Work::AwaitOpen,
    Work::AwaitShared,
    Work::Kernel,
    Work::TimedKernel,
    Work::CopyOut { is_blocking: false },
    Work::CopyOut { is_blocking: true },
    Work::KernelAndCopyOut,
    Work::CopyWithin,
    Work::PeerCopy,
    Work::Function,
    Work::FunctionAfterKernel,
    Work::Graph { is_on_worker: false },
    Work::Graph { is_on_worker: true },
    Work::FreeAsync,
    Work::CopyIntoMirror,
    Work::CopyOutOfMirror,
    Work::FillOfMirror,
    Work::KernelWithMirror,
    Work::CopyIntoShared { is_blocking: false },
    Work::CopyIntoShared { is_blocking: true },
    Work::CopyOutOfShared { is_blocking: false },
    Work::CopyOutOfShared { is_blocking: true },
    Work::FillOfShared,
    Work::KernelBesideShared,
];

/// What is left of work when its call has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Left {
    /// Nothing.
    Nothing,
    /// Work whose result nobody but the device sees, and which cannot fail.
    Decided,
    /// Work that can show something or fail.
    Open,
}

impl Work {
    fn left(self) -> Left {
        match self {
            Self::Nothing => Left::Nothing,
            // An answer has come after everything that the stream had.
            Self::CopyOut { .. } | Self::KernelAndCopyOut => Left::Nothing,
            // The program may look at the destination, or change the source, when the call returns.
            Self::CopyIntoShared { is_blocking: true } | Self::CopyOutOfShared { is_blocking: true } => {
                Left::Nothing
            }
            Self::CopyIn { .. } | Self::Fill | Self::Record | Self::AwaitDecided => Left::Decided,
            Self::Graph { is_on_worker: false } => Left::Decided,
            // It has run, and so the worker was asked for what is before it; all other work of it is done here.
            Self::Function | Self::FunctionAfterKernel => Left::Nothing,
            // The record was answered, but another process may record the event as well.
            Self::RecordShared => Left::Decided,
            _ => Left::Open,
        }
    }

    /// Returns whether the work is about memory that is on both sides.
    fn is_mirrored(self) -> bool {
        matches!(
            self,
            Self::CopyIntoMirror | Self::CopyOutOfMirror | Self::FillOfMirror | Self::KernelWithMirror
        )
    }

    /// Returns whether there is memory that both sides map.
    fn is_shared(self) -> bool {
        matches!(
            self,
            Self::CopyIntoShared { .. }
                | Self::CopyOutOfShared { .. }
                | Self::FillOfShared
                | Self::KernelBesideShared
        )
    }
}

fn process() -> Process {
    process_in(SyncMode::Strict)
}

fn process_in(mode: SyncMode) -> Process {
    let process = Process::with(mode);
    for stream in [NON_BLOCKING, OTHER_NON_BLOCKING, APART] {
        process.streams.order.add(stream, false, 0);
    }
    process.streams.events.add(AFTER, 0, 0);
    process.streams.events.add(BEFORE, 0, 0);
    process.streams.events.add(SHARED, hipEventInterprocess, 0);
    process
}

fn fill(dst: usize) -> Command {
    Command::Fill(MemoryFill { dst: Ptr(dst), pitch: 0, pattern: Pattern::Byte(1), width: LEN, height: 1 })
}

fn copy(dst: usize, src: usize, kind: i32) -> Command {
    Command::Copy(MemoryCopy::linear(Ptr(dst), Ptr(src), LEN, kind).expect("a kind of copy"))
}

impl Process {
    fn call(&self, command: Command, stream: u64) {
        self.log(&mut Call::new(command, stream, false));
    }

    /// Pins memory, and lets a kernel use it if it `is_known` to kernels; the work of that is over.
    fn pin(&self, host: usize, is_known: bool) {
        let info = RegionInfo { origin: Origin::Pinned, host: Ptr(host), len: LEN, flags: 0, device: 0 };
        self.streams.mirrors.add(info, REMOTE + host as u64, None);
        if is_known {
            self.call(kernel(host as u64, Event::NULL), STREAM);
            assert_eq!(drive(self, &mut WaitCall::new(Wait::Device(0)), Ok(())).1, Ok(()));
        }
    }

    fn put(&self, work: Work, stream: u64) {
        if work.is_mirrored() {
            self.pin(HOST, true);
        }
        if work.is_shared() {
            let (origin, host) = (Origin::Pinned, Ptr(HOST));
            let info = RegionInfo { origin, host, len: LEN, flags: 0, device: 0 };
            self.streams.mirrors.add_shared(info, HOST as u64, None);
        }
        match work {
            Work::Nothing => {}
            Work::CopyIn { from, is_blocking } => {
                if from == PINNED {
                    self.pin(PINNED, false);
                }
                let command = copy(DEVICE, from, kind::HOST_TO_DEVICE);
                self.log(&mut Call::new(command, stream, is_blocking));
            }
            Work::Fill => self.call(fill(DEVICE), stream),
            Work::Record => self.call(Command::Record(BEFORE), stream),
            Work::RecordShared => self.call(Command::Record(SHARED), stream),
            Work::AwaitDecided | Work::AwaitOpen => {
                match work {
                    Work::AwaitOpen => self.call(kernel(7, Event::NULL), APART),
                    _ => self.call(fill(DEVICE), APART),
                }
                self.call(Command::Record(BEFORE), APART);
                self.call(Command::Wait(BEFORE, 0), stream);
            }
            Work::AwaitShared => self.call(Command::Wait(SHARED, 0), stream),
            Work::Kernel => self.call(kernel(7, Event::NULL), stream),
            Work::TimedKernel => self.call(kernel(7, EVENT), stream),
            Work::CopyOut { is_blocking } => {
                let command = copy(PAGEABLE, DEVICE, kind::DEVICE_TO_HOST);
                self.log(&mut Call::new(command, stream, is_blocking));
            }
            Work::KernelAndCopyOut => {
                self.call(kernel(7, Event::NULL), stream);
                self.call(copy(PAGEABLE, DEVICE, kind::DEVICE_TO_HOST), stream);
            }
            Work::CopyWithin => self.call(copy(DEVICE, DEVICE + LEN, kind::DEVICE_TO_DEVICE), stream),
            Work::PeerCopy => {
                let (dst, src, size) = (DEVICE as u64, 1, LEN as u64);
                self.call(
                    Command::PeerCopy(MemcpyPeer { dst, dst_device: 0, src, src_device: 1, size, stream }),
                    stream,
                );
            }
            Work::Function | Work::FunctionAfterKernel => {
                if work == Work::FunctionAfterKernel {
                    self.call(kernel(7, Event::NULL), stream);
                }
                self.call(host_function(), stream);
                assert!(self.step(stream).is_some(), "the function runs");
                assert!(self.step(stream).is_none(), "it was all");
            }
            Work::Graph { is_on_worker } => {
                let graphs = &self.streams.graphs;
                graphs.begin(1, APART, false, hipStreamCaptureModeRelaxed, None).expect("a capture");
                [DEVICE, DEVICE + LEN].into_iter().for_each(|dst| self.call(fill(dst), APART));
                let graph = graphs.end(1, APART).expect("a graph");
                let exec = graphs.with(|tables| {
                    let exec = tables.graphs.instantiate(graph).expect("a good graph");
                    tables.add_exec(exec)
                });
                // A graph is given to the worker when it is launched again.
                for _ in 0..=u8::from(is_on_worker) {
                    let calls = self.streams.launch_graph(&self.caller(), exec, stream);
                    calls.expect("it is launched").iter_mut().for_each(|call| drop(self.log(call)));
                }
            }
            Work::FreeAsync => self.call(Command::Free(Ptr(DEVICE)), stream),
            Work::CopyIntoMirror => self.call(copy(HOST, PAGEABLE, kind::DEFAULT), stream),
            Work::CopyOutOfMirror => self.call(copy(DEVICE, HOST, kind::DEFAULT), stream),
            Work::FillOfMirror => self.call(fill(HOST), stream),
            Work::KernelWithMirror => self.call(kernel(HOST as u64, Event::NULL), stream),
            Work::CopyIntoShared { is_blocking } => {
                let command = copy(HOST, PAGEABLE, kind::DEFAULT);
                self.log(&mut Call::new(command, stream, is_blocking));
            }
            Work::CopyOutOfShared { is_blocking } => {
                let command = copy(DEVICE, HOST, kind::DEFAULT);
                self.log(&mut Call::new(command, stream, is_blocking));
            }
            Work::FillOfShared => self.call(fill(HOST), stream),
            Work::KernelBesideShared => self.call(kernel(7, Event::NULL), stream),
        }
        self.script.taken();
    }

    /// Makes a wait; returns what the worker was asked, and what it was told instead.
    fn wait(&self, wait: Wait) -> (Vec<Wait>, Vec<String>) {
        let (asked, result) = drive(self, &mut WaitCall::new(wait), Ok(()));
        assert_eq!(result, Ok(()));
        (asked, self.script.taken())
    }
}

/// Returns whether a stream and the legacy null stream wait for each other.
fn is_blocking(stream: u64) -> bool {
    ![NON_BLOCKING, OTHER_NON_BLOCKING, APART].contains(&stream)
}

/// HIP API: whether new work on one stream waits for what another one has.
fn comes_behind(stream: u64, other: u64) -> bool {
    let is_joined = [stream, other].contains(&LEGACY) && is_blocking(stream) && is_blocking(other);
    stream == other || is_joined
}

/// HIP API: whether a wait for one stream is one for what another one has.
fn includes(stream: u64, other: u64) -> bool {
    stream == other || (stream == LEGACY && is_blocking(other))
}

/// What a wait does that finds this left.
fn expected(left: Left, wait: Wait) -> (Vec<Wait>, Vec<String>) {
    match left {
        Left::Nothing => (Vec::new(), vec!["flush".to_owned()]),
        Left::Decided => (Vec::new(), vec![format!("wait in order: {wait:?}")]),
        Left::Open => (vec![wait], Vec::new()),
    }
}

/// Checks a wait, and that one behind it finds nothing left if it was told all.
fn check(process: &Process, left: Left, wait: Wait, case: &str) {
    let (asked, told) = process.wait(wait);
    let (must_ask, must_tell) = expected(left, wait);
    let kinds = |waits: &[Wait]| {
        waits.iter().map(|wait| format!("{wait:?}").replace("Query", "")).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&asked), kinds(&must_ask), "{case}, {wait:?}");
    if left != Left::Open {
        assert_eq!(told, must_tell, "{case}, {wait:?}");
    }
    // A query does not tell of errors, and so ends nothing, unless it waits.
    let is_query = asked.iter().any(|wait| matches!(wait, Wait::QueryStream(_) | Wait::QueryEvent(_)));
    if !is_query {
        let again = process.wait(wait);
        assert_eq!(again, expected(Left::Nothing, wait), "{case}, {wait:?} again");
    }
}

#[test]
fn a_wait_asks_only_for_work_that_can_show_something_or_fail() {
    for (work, on, of) in WORK
        .iter()
        .flat_map(|work| STREAMS.iter().flat_map(move |on| STREAMS.iter().map(move |of| (*work, *on, *of))))
    {
        let case = format!("{work:?} on {on:#x}");
        for wait in [Wait::Stream(of), Wait::QueryStream(of)] {
            let process = process();
            process.put(work, on);
            check(&process, if includes(of, on) { work.left() } else { Left::Nothing }, wait, &case);
        }
    }
}

#[test]
fn a_wait_for_the_device_asks_for_all_streams() {
    for (work, on) in WORK.iter().flat_map(|work| STREAMS.iter().map(move |on| (*work, *on))) {
        let process = process();
        process.put(work, on);
        check(&process, work.left(), Wait::Device(0), &format!("{work:?} on {on:#x}"));
    }
}

/// Decided work that comes behind open work is open, whichever stream has that.
#[test]
fn what_comes_behind_open_work_is_open() {
    for (work, on, of) in WORK
        .iter()
        .flat_map(|work| STREAMS.iter().flat_map(move |on| STREAMS.iter().map(move |of| (*work, *on, *of))))
    {
        let case = format!("{work:?} on {on:#x}, a fill on {of:#x}");
        let is_open = work.left() == Left::Open && comes_behind(of, on);
        let left = if is_open { Left::Open } else { Left::Decided };
        for wait in [Wait::Stream(of), Wait::QueryStream(of)] {
            let process = process();
            process.put(work, on);
            process.put(Work::Fill, of);
            check(&process, left, wait, &case);
        }
        for wait in [Wait::Event(AFTER), Wait::QueryEvent(AFTER)] {
            let process = process();
            process.put(work, on);
            process.put(Work::Fill, of);
            process.call(Command::Record(AFTER), of);
            process.put(Work::Kernel, of);
            check(&process, left, wait, &format!("{case}, an event, a kernel"));
        }
    }
}

/// A stream that waits for an event has what is before the event, and so has what comes behind that on a third stream.
#[test]
fn events_and_the_null_stream_carry_open_work() {
    for (first, second) in
        STREAMS.iter().flat_map(|first| STREAMS.iter().map(move |second| (*first, *second)))
    {
        let process = process();
        process.put(Work::Kernel, APART);
        process.call(Command::Record(BEFORE), APART);
        process.call(Command::Wait(BEFORE, 0), first);
        process.put(Work::Fill, second);
        let left = if comes_behind(second, first) { Left::Open } else { Left::Decided };
        check(&process, left, Wait::Stream(second), &format!("{first:#x}, then {second:#x}"));
    }
}

/// HIP API: the present record counts, and one that was never made has happened.
#[test]
fn an_event_is_as_its_last_record() {
    let process = process();
    assert_eq!(process.wait(Wait::Event(AFTER)), (vec![], vec![]));
    process.put(Work::Kernel, STREAM);
    process.call(Command::Record(AFTER), STREAM);
    process.call(Command::Record(AFTER), NON_BLOCKING);
    check(&process, Left::Decided, Wait::Event(AFTER), "recorded anew on an idle stream");
    process.call(Command::Record(AFTER), STREAM);
    check(&process, Left::Open, Wait::Event(AFTER), "recorded anew behind a kernel");
    // The wait for the event was one for the kernel, too.
    assert_eq!(process.wait(Wait::Stream(STREAM)), expected(Left::Nothing, Wait::Stream(STREAM)));
}

#[test]
fn events_of_other_processes_are_asked_for_always() {
    let process = process();
    for _ in 0..2 {
        assert_eq!(process.wait(Wait::Event(SHARED)).0, [Wait::Event(SHARED)]);
        assert_eq!(process.wait(Wait::QueryEvent(SHARED)).0, [Wait::QueryEvent(SHARED)]);
    }
}

#[test]
fn what_is_shared_with_other_processes_or_devices_is_asked_for_always() {
    let process = process();
    process.streams.share();
    process.put(Work::Fill, STREAM);
    process.call(Command::Record(AFTER), STREAM);
    for wait in [Wait::Device(0), Wait::Stream(STREAM), Wait::QueryStream(STREAM), Wait::Event(AFTER)] {
        for _ in 0..2 {
            assert_eq!(process.wait(wait).0, [wait]);
        }
    }
    assert!(!process.streams.is_decided());
}

/// The error of any request comes with the next answer, whatever else is pending.
#[test]
fn a_request_that_may_have_failed_is_asked_for() {
    let event = [Wait::Event(AFTER), Wait::QueryEvent(AFTER)];
    let waits = [Wait::Device(0), Wait::Stream(STREAM), Wait::QueryStream(STREAM)].into_iter().chain(event);
    for (work, wait) in waits.flat_map(|wait| WORK.map(|work| (work, wait))) {
        let mut process = process();
        process.put(work, STREAM);
        process.call(Command::Record(AFTER), STREAM);
        process.script.is_loud = true;
        for _ in 0..2 {
            let asked = process.wait(wait).0;
            assert_eq!(asked.len(), 1, "{work:?}, {wait:?}");
            let kind = |wait: Wait| format!("{wait:?}").replace("Query", "");
            assert_eq!(kind(asked[0]), kind(wait), "{work:?}");
        }
    }
}

/// What the process does by itself is before what other streams have, as what the worker does is.
#[test]
fn what_is_done_here_carries_order() {
    for (first, on) in STREAMS.iter().flat_map(|first| STREAMS.iter().map(move |on| (*first, *on))) {
        for work in [Work::Nothing, Work::Fill, Work::Kernel] {
            let process = process();
            process.pin(PINNED, false);
            process.put(work, first);
            let commands =
                [copy(PAGEABLE, PINNED, kind::HOST_TO_HOST), copy(PINNED, PAGEABLE, kind::HOST_TO_HOST)];
            let told: Vec<_> = commands
                .map(|command| process.log(&mut Call::new(command, on, false)))
                .into_iter()
                .flatten()
                .collect();
            let records = told.iter().filter(|line| line.starts_with("record")).count();
            let is_joined = first != on && comes_behind(on, first);
            let case = format!("{work:?} on {first:#x}, copies here on {on:#x}");
            assert_eq!(records, if is_joined && work != Work::Nothing { 2 } else { 0 }, "{case}");
            let left = if is_joined || first == on { work.left() } else { Left::Nothing };
            check(&process, left, Wait::Stream(on), &case);
        }
    }
}

/// A wait covers what was sent before it, and not what another thread sends while it waits.
#[test]
fn work_that_is_sent_while_somebody_waits_is_not_covered() {
    for wait in [Wait::Device(0), Wait::Stream(STREAM), Wait::Event(AFTER)] {
        for meanwhile in [Work::Fill, Work::Kernel, Work::AwaitOpen] {
            let process = process();
            process.put(Work::Kernel, STREAM);
            process.call(Command::Record(AFTER), STREAM);
            let mut call = WaitCall::new(wait);
            assert!(matches!(
                call.next(&process.streams, &process.caller()),
                amdhip64::stream::Next::Wait(asked) if asked == wait
            ));
            process.put(meanwhile, STREAM);
            call.resume(Ok(()));
            assert_eq!(drive(&process, &mut call, Ok(())), (vec![], Ok(())));
            let wait = Wait::Stream(STREAM);
            assert_eq!(process.wait(wait).0, expected(meanwhile.left(), wait).0, "{meanwhile:?}");
        }
    }
}

/// Bytes that arrived in pinned memory were behind everything that their stream had: the wait after them has only to fetch what kernels
/// wrote to memory on both sides.
#[test]
fn a_wait_behind_an_answer_only_fetches() {
    for (is_known, fetches) in [(false, vec![]), (true, vec!["fetch".to_owned()])] {
        let process = process();
        process.pin(HOST, is_known);
        process.put(Work::KernelAndCopyOut, STREAM);
        let (asked, did) = process.wait(Wait::Stream(STREAM));
        assert_eq!(asked, []);
        assert_eq!(did, [vec!["flush".to_owned()], fetches].concat());
        assert_eq!(process.wait(Wait::Device(0)), expected(Left::Nothing, Wait::Device(0)));
    }
}

/// Work that failed, or was not over, is still there for the next wait.
#[test]
fn a_wait_that_fails_ends_nothing() {
    let process = process();
    process.put(Work::Kernel, STREAM);
    for (wait, error) in [
        (Wait::Stream(STREAM), HipError::LAUNCH_FAILURE),
        (Wait::QueryStream(STREAM), HipError::NOT_READY),
        (Wait::Device(0), HipError::LAUNCH_FAILURE),
    ] {
        assert_eq!(drive(&process, &mut WaitCall::new(wait), Err(error)), (vec![wait], Err(error)));
    }
    check(&process, Left::Open, Wait::Stream(STREAM), "after errors");
}

/// A query that says done tells of no error: what can fail is still asked for.
#[test]
fn a_query_ends_nothing() {
    let process = process();
    process.put(Work::Kernel, STREAM);
    assert_eq!(process.wait(Wait::QueryStream(STREAM)).0, [Wait::QueryStream(STREAM)]);
    check(&process, Left::Open, Wait::Stream(STREAM), "after a query");
}

/// What a destroyed stream had is waited for with the device, and with the null stream if that waited for it.
#[test]
fn a_destroyed_stream_leaves_its_work() {
    for (stream, work) in [STREAM, NON_BLOCKING]
        .into_iter()
        .flat_map(|stream| [Work::Nothing, Work::Fill, Work::Kernel].map(|work| (stream, work)))
    {
        let case = format!("{work:?} on {stream:#x}, destroyed");
        for wait in [Wait::Device(0), Wait::Stream(LEGACY)] {
            let process = process();
            process.put(work, stream);
            process.call(Command::DestroyStream, stream);
            let is_meant = wait == Wait::Device(0) || stream == STREAM;
            check(&process, if is_meant { work.left() } else { Left::Nothing }, wait, &case);
        }
        // A stream that is given the same handle has nothing of it, nor has an event what only that did.
        let process = process();
        process.put(work, stream);
        process.call(Command::Record(AFTER), stream);
        process.call(Command::DestroyStream, stream);
        process.streams.order.add(stream, stream == STREAM, 0);
        assert_eq!(
            process.wait(Wait::Stream(stream)),
            expected(Left::Nothing, Wait::Stream(stream)),
            "{case}"
        );
        process.put(Work::Kernel, stream);
        assert_eq!(process.wait(Wait::Stream(stream)).0, [Wait::Stream(stream)], "{case}");
        let left = work.left().max(Left::Decided);
        assert_eq!(process.wait(Wait::Event(AFTER)).0, expected(left, Wait::Event(AFTER)).0, "{case}");
    }
}

#[test]
fn a_reset_device_has_nothing() {
    let process = process();
    process.put(Work::Kernel, STREAM);
    assert!(!process.streams.is_decided());
    process.streams.forget_work();
    assert!(process.streams.is_decided());
    for wait in [Wait::Device(0), Wait::Stream(STREAM)] {
        assert_eq!(process.wait(wait), expected(Left::Nothing, wait));
    }
}

/// A host function asks for what is before it in the same way.
#[test]
fn a_host_function_waits_for_open_work_only() {
    for work in WORK {
        let process = process();
        process.put(work, NON_BLOCKING);
        process.call(host_function(), NON_BLOCKING);
        let log = process.step(NON_BLOCKING).expect("it runs");
        let stream = Wait::Stream(NON_BLOCKING);
        if work.left() == Left::Open {
            assert!(
                !log.iter().any(|line| line == "flush" || line.starts_with("wait in order")),
                "{work:?}: {log:?}"
            );
        } else {
            assert_eq!(log, expected(work.left(), stream).1, "{work:?}");
        }
        assert_eq!(process.wait(stream), expected(Left::Nothing, stream), "{work:?}");
    }
}

#[test]
fn a_launch_is_noted_however_it_is_sent() {
    let process = process();
    for stream in STREAMS {
        assert_eq!(process.log(&mut launch(stream)).len(), 1);
        check(&process, Left::Open, Wait::Stream(stream), "a launch");
    }
}

/// HIP API: a synchronous copy is over when it returns, and with it what its stream had: a query of that is not told "not ready".
#[test]
fn a_query_waits_where_hip_says_that_all_is_over() {
    for (of, on) in STREAMS.iter().flat_map(|of| STREAMS.iter().map(move |on| (*of, *on))) {
        let case = format!("a kernel on {of:#x}, a synchronous copy on {on:#x}");
        let copy = Work::CopyIn { from: PAGEABLE, is_blocking: true };
        let (query, wait) = (Wait::QueryStream(of), Wait::Stream(of));
        let is_over = includes(on, of);

        let process = self::process();
        process.put(Work::Kernel, of);
        assert_eq!(process.wait(query).0, [query], "{case}");
        process.call(Command::Record(AFTER), of);
        process.put(copy, on);
        let event = if is_over { Wait::Event(AFTER) } else { Wait::QueryEvent(AFTER) };
        assert_eq!(process.wait(Wait::QueryEvent(AFTER)).0, [event], "{case}");

        let process = self::process();
        process.put(Work::Kernel, of);
        process.put(copy, on);
        assert_eq!(process.wait(query).0, [if is_over { wait } else { query }], "{case}");
        process.put(Work::Kernel, of);
        process.call(Command::Record(AFTER), of);
        assert_eq!(process.wait(query).0, [query], "{case}, another kernel");
        assert_eq!(
            process.wait(Wait::QueryEvent(AFTER)).0,
            [Wait::QueryEvent(AFTER)],
            "{case}, another kernel"
        );
        process.streams.settle_all(0);
        assert_eq!(process.wait(Wait::QueryEvent(AFTER)).0, [Wait::Event(AFTER)], "{case}, all is over");
    }
}

/// HIP API: hipStreamWaitEvent means the record that there is when it is called. One that is queued behind a function is sent later, and who
/// records the event meanwhile waits for nobody.
#[test]
fn a_wait_behind_a_function_means_the_record_that_there_was() {
    let process = process();
    let record = || process.log(&mut Call::new(Command::Record(AFTER), OTHER_NON_BLOCKING, false));
    process.call(Command::Record(AFTER), STREAM);
    for _ in 0..2 {
        process.call(host_function(), NON_BLOCKING);
        process.call(Command::Wait(AFTER, 0), NON_BLOCKING);
    }
    let recorded = format!("record {:#x} on {OTHER_NON_BLOCKING:#x}", AFTER.0);
    let waits = format!("wait for {:#x} on 0x9000", AFTER.0);
    let kept = ["create an event", &waits, "record 0xe111 on 0x9000"];
    assert_eq!(record(), [&["create a stream"], &kept[..], &kept[..], &[&recorded]].concat());
    assert_eq!(record(), [recorded], "what the waits mean is kept already");
    for _ in 0..2 {
        process.step(NON_BLOCKING).expect("the function");
        let sent = process.step(NON_BLOCKING).expect("the wait");
        assert_eq!(
            sent,
            [format!("wait for 0xe111 on {NON_BLOCKING:#x}"), "destroy event 0xe111".to_owned()]
        );
    }
    process.call(host_function(), NON_BLOCKING);
    process.call(Command::Wait(AFTER, 0), NON_BLOCKING);
    process.step(NON_BLOCKING).expect("the function");
    let sent = process.step(NON_BLOCKING).expect("the wait");
    assert_eq!(sent, [format!("wait for {:#x} on {NON_BLOCKING:#x}", AFTER.0)], "it was not recorded anew");
    assert_eq!(record().len(), 1, "nobody means an earlier record");
}
