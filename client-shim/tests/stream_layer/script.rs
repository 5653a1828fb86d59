//! A process whose worker only writes down what it is asked for, and the calls that the tests make.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use amdhip64::command::{
    Arguments, Command, Function, HostFunction, KernelLaunch, LaunchConfiguration, MemoryCopy,
    PassedArguments, Pattern, Transfer,
};
use amdhip64::convert::{Event, In, Module, Ptr};
use amdhip64::stream::host_functions::{Next as Step, Threads};
use amdhip64::stream::sync_mode::SyncMode;
use amdhip64::stream::{Call, Caller, Next, Streams, WaitCall};
use amdhip64::worker::memory::{Allocation, Kind};
use amdhip64::worker::{Ahead, ChangesAnswer, HostMemory, Port, Wait, WrittenPages};
use hipr_proto::op::{MemChanges, MemcpyPeer, Param};
use hipr_proto::{HipError, HipResult};

/// A blocking stream, one that is not, and the legacy null stream.
pub(crate) const STREAM: u64 = 0x5000;
pub(crate) const NON_BLOCKING: u64 = 0x7000;
pub(crate) const LEGACY: u64 = 0;
/// An event of the program.
pub(crate) const EVENT: Event = Event(0xe000);
/// Address of device memory of four times [`LEN`] bytes.
pub(crate) const DEVICE: usize = 0xa000_0000;
/// Address of the program's memory that is mirrored, its size, and its address on the worker.
pub(crate) const HOST: usize = 0x10_0000;
pub(crate) const LEN: usize = 64;
pub(crate) const REMOTE: u64 = 0xd_0000;

/// The wait that a question was sent with, and the answers to it.
type Question = (Option<Wait>, Vec<ChangesAnswer>);

/// Writes down what is asked of the worker and of threads; has 64 bytes of host memory.
#[derive(Default)]
pub(crate) struct Script {
    log: RefCell<Vec<String>>,
    host: RefCell<BTreeMap<usize, u8>>,
    /// What the device has in the mirrored memory when it is fetched.
    pub(crate) device_byte: u8,
    /// The worker's answers to the questions what has changed, if it is one that has such.
    pub(crate) answers: Option<RefCell<VecDeque<ChangesAnswer>>>,
    /// The questions under way, with the waits that they were sent with and the answers.
    questions: RefCell<BTreeMap<u64, Question>>,
    /// Whether a request was sent whose error may still come.
    pub(crate) is_loud: bool,
    /// Whether copies to the program come in parts.
    pub(crate) packs: bool,
    /// Whether the worker tells of watches.
    pub(crate) can_watch: bool,
    /// How many requests and bytes were sent since the worker answered.
    pub(crate) ahead: (u64, u64),
    /// The error of the next launch.
    pub(crate) refuses: Option<HipError>,
}

impl Script {
    fn note(&self, line: String) -> HipResult<()> {
        self.log.borrow_mut().push(line);
        Ok(())
    }

    pub(crate) fn taken(&self) -> Vec<String> {
        self.log.take()
    }

    /// Returns the wait that a question was sent with.
    pub(crate) fn wait_of(&self, question: u64) -> Option<Wait> {
        self.questions.borrow().get(&question).and_then(|(wait, _)| *wait)
    }
}

impl HostMemory for Script {
    fn read_host(&self, at: Ptr, into: &mut [u8]) {
        let host = self.host.borrow();
        let byte = |(index, byte): (usize, &mut u8)| *byte = host.get(&(at.0 + index)).copied().unwrap_or(0);
        into.iter_mut().enumerate().for_each(byte);
    }

    fn write_host(&self, at: Ptr, bytes: &[u8]) {
        self.host.borrow_mut().extend(bytes.iter().enumerate().map(|(index, byte)| (at.0 + index, *byte)));
    }
}

impl WrittenPages for Script {}

impl Port for Script {
    fn allocation(&self, ptr: Ptr) -> Option<Allocation> {
        let (base, size_bytes, kind) = (Ptr(DEVICE), 4 * LEN, Kind::Device);
        let all = Allocation { base, size_bytes, kind, device: 0, flags: 0, is_ambiguous: false };
        (DEVICE..DEVICE + 4 * LEN).contains(&ptr.0).then_some(all)
    }

    fn forget_allocation(&self, ptr: Ptr) {
        let _ = self.note(format!("forget {ptr:?}"));
    }

    fn host_bytes(&self, at: Ptr, len: usize) -> Cow<'_, [u8]> {
        let mut bytes = vec![0; len];
        self.read_host(at, &mut bytes);
        Cow::Owned(bytes)
    }

    fn copy_host(&self, copy: &MemoryCopy) {
        let _ = self.note(format!("copy {:?} to {:?} here", copy.src.at, copy.dst.at));
    }

    fn allocate(&self, _device: i32, _host: Ptr, len: usize) -> HipResult<u64> {
        self.note(format!("allocate {len}")).map(|()| REMOTE)
    }

    fn create_event(&self, _device: i32) -> HipResult<Event> {
        self.note("create an event".to_owned()).map(|()| Event(0xe111))
    }

    fn create_stream(&self, _device: i32) -> HipResult<u64> {
        self.note("create a stream".to_owned()).map(|()| 0x9000)
    }

    fn fetch(&self, ranges: &[(u64, usize)], _: u64) -> HipResult<Vec<Vec<u8>>> {
        self.note("fetch".to_owned())?;
        Ok(ranges.iter().map(|(_, len)| vec![self.device_byte; *len]).collect())
    }

    fn tells_changes(&self) -> bool {
        self.answers.is_some()
    }

    fn changes(&self, ranges: &[MemChanges]) -> HipResult<Vec<ChangesAnswer>> {
        for MemChanges { address, length, stream } in ranges {
            self.note(format!("changes of {length} bytes at {address:#x} on {stream:#x}"))?;
        }
        let answer = || self.answers.as_ref().and_then(|answers| answers.borrow_mut().pop_front());
        Ok(ranges.iter().map(|_| answer().unwrap_or(Err(HipError::UNKNOWN))).collect())
    }

    fn can_ask_behind(&self, _: &Transfer) -> bool {
        !self.packs
    }

    fn ask(&self, question: u64, ahead: Ahead<'_>, ranges: &[MemChanges]) -> HipResult<()> {
        let wait = match ahead {
            Ahead::Nothing => None,
            Ahead::Wait(wait) => {
                self.note(format!("{wait:?}, and"))?;
                Some(wait)
            }
            Ahead::Copy(transfer) => {
                self.note(format!("receive on {:#x}, and", transfer.stream))?;
                None
            }
        };
        let answers = self.changes(ranges)?;
        self.questions.borrow_mut().insert(question, (wait, answers));
        Ok(())
    }

    fn answers(&self, question: u64) -> (HipResult<()>, Vec<ChangesAnswer>) {
        (
            Ok(()),
            self.questions.borrow_mut().remove(&question).map(|(_, answers)| answers).unwrap_or_default(),
        )
    }

    fn watch(&self, at: u64, len: usize, _device: i32) -> HipResult<()> {
        self.note(format!("watch {len} bytes at {at:#x}"))
    }

    fn begin_capture(&self, stream: u64) -> HipResult<()> {
        self.note(format!("begin a capture on {stream:#x}"))
    }

    fn end_capture(&self, stream: u64) -> HipResult<u64> {
        self.note(format!("end the capture on {stream:#x}")).map(|()| 1)
    }

    fn instantiate(&self, graph: u64) -> HipResult<u64> {
        self.note(format!("instantiate {graph}")).map(|()| 1)
    }

    fn can_watch(&self) -> bool {
        self.can_watch
    }

    fn hear(&self) {}

    fn is_quiet(&self) -> bool {
        !self.is_loud
    }

    fn ahead(&self) -> (u64, u64) {
        self.ahead
    }

    fn flush(&self) -> HipResult<()> {
        self.note("flush".to_owned())
    }

    fn wait_in_order(&self, wait: Wait) -> HipResult<()> {
        self.note(format!("wait in order: {wait:?}"))
    }

    fn wait(&self, wait: Wait) -> HipResult<()> {
        self.note(format!("{wait:?}"))
    }

    fn receive(&self, transfer: &Transfer) -> HipResult<()> {
        self.note(format!("receive on {:#x}", transfer.stream))
    }

    fn launch(&self, kernel: &KernelLaunch, arguments: &Arguments, stream: u64) -> HipResult<()> {
        let words: Vec<String> =
            arguments.tail.chunks(8).skip(1).map(|word| format!("{word:02x?}")).collect();
        self.note(format!("launch {} {} on {stream:#x}", kernel.function.name, words.concat()))?;
        self.refuses.map_or(Ok(()), Err)
    }

    fn copy(&self, transfer: &Transfer, inline: &[u8]) -> HipResult<()> {
        self.note(format!("copy {} bytes on {:#x}", inline.len(), transfer.stream))
    }

    fn copy_peer(&self, _: &MemcpyPeer, _: bool) -> HipResult<()> {
        self.note("copy between devices".to_owned())
    }

    fn copy_between(&self, _: &MemoryCopy, to: u64, from: u64) -> HipResult<bool> {
        self.note(format!("copy between workers, on {to:#x} and {from:#x}")).map(|()| false)
    }

    fn write(&self, to: u64, _: Ptr, bytes: &[u8], stream: u64) -> HipResult<()> {
        self.note(format!("write {} bytes to {to:#x} on {stream:#x}", bytes.len()))
    }

    fn fill(&self, to: u64, _: Pattern, count: usize, stream: u64) -> HipResult<()> {
        self.note(format!("fill {count} at {to:#x} on {stream:#x}"))
    }

    fn record(&self, event: Event, stream: u64, _: bool) -> HipResult<()> {
        self.note(format!("record {:#x} on {stream:#x}", event.0))
    }

    fn await_event(&self, event: Event, stream: u64, _: u32) -> HipResult<()> {
        self.note(format!("wait for {:#x} on {stream:#x}", event.0))
    }

    fn launch_graph(&self, exec: u64, stream: u64) -> HipResult<()> {
        self.note(format!("launch graph {exec} on {stream:#x}"))
    }

    fn free_async(&self, ptr: Ptr, stream: u64) -> HipResult<()> {
        self.note(format!("free {ptr:?} on {stream:#x}"))
    }

    fn destroy_stream(&self, stream: u64) -> HipResult<()> {
        self.note(format!("destroy stream {stream:#x}"))
    }

    fn destroy_event(&self, event: Event) -> HipResult<()> {
        self.note(format!("destroy event {:#x}", event.0))
    }

    fn destroy_graph(&self, graph: u64) -> HipResult<()> {
        self.note(format!("destroy graph {graph}"))
    }

    fn destroy_exec(&self, exec: u64) -> HipResult<()> {
        self.note(format!("destroy exec {exec}"))
    }
}

impl Threads for Script {
    fn start(&self, queue: u64) -> HipResult<()> {
        self.note(format!("start a thread for {queue:#x}"))
    }
}

/// A process with the three streams and one event.
pub(crate) struct Process {
    pub(crate) script: Script,
    pub(crate) streams: Streams,
}

impl Process {
    pub(crate) fn new() -> Self {
        Self::with(SyncMode::Strict)
    }

    pub(crate) fn with(mode: SyncMode) -> Self {
        let streams = Streams::new(mode);
        streams.order.add(STREAM, true, 0);
        streams.order.add(NON_BLOCKING, false, 0);
        streams.events.add(EVENT, 0, 0);
        Self { script: Script::default(), streams }
    }

    pub(crate) fn caller(&self) -> Caller<'_> {
        Caller {
            port: &self.script,
            threads: &self.script,
            thread: 1,
            device: 0,
            call: 0,
            capture_mode: 0,
            is_host_thread: false,
        }
    }

    pub(crate) fn next(&self, call: &mut Call) -> Next {
        call.next(&self.streams, &self.caller())
    }

    /// Makes a call; answers its waits with success. Returns what its phases asked for and how it ended.
    pub(crate) fn make(&self, call: &mut Call) -> (Vec<String>, HipResult<()>) {
        let mut asked = Vec::new();
        loop {
            let next = self.next(call);
            asked.push(format!("{next:?}"));
            match next {
                Next::Done(result) => return (asked, result),
                Next::CallHost(_, result) => call.resume(result),
                Next::Continue => {}
                Next::Answer(question) => {
                    self.answer(question);
                    call.resume(Ok(()));
                }
                _ => call.resume(Ok(())),
            }
        }
    }

    /// Hands in the answers to a question.
    pub(crate) fn answer(&self, question: u64) {
        let (_, answers) = self.script.answers(question);
        self.streams.mirrors.answered(&self.script, question, answers);
    }

    /// Makes a call that has to succeed; returns what was asked of the worker.
    pub(crate) fn log(&self, call: &mut Call) -> Vec<String> {
        assert_eq!(self.make(call).1, Ok(()));
        self.script.taken()
    }

    /// Executes the next step of a stream's queue; returns what was asked of the worker, or None if no step can be executed.
    pub(crate) fn step(&self, queue: u64) -> Option<Vec<String>> {
        let Step::Run(step) = self.streams.host_functions.next(queue) else { return None };
        let (_, result) = self.make(&mut Call::held(step.number, step.command, step.stream));
        self.streams.host_functions.finished(step.number, result);
        Some(self.script.taken())
    }
}

/// A launch of the kernel `k` with one argument.
pub(crate) fn kernel(argument: u64, start: Event) -> Command {
    let params = vec![Param { offset: 0, size: 8 }];
    let function = Arc::new(Function::new(1, "k".to_owned(), Module(1), Some(params), None));
    let pointers = [Ptr::from((&raw const argument).cast::<()>())];
    let passed = PassedArguments::of(In::from_slice(&pointers), In::NULL).expect("arguments");
    let arguments = passed.encode(&function).expect("one argument");
    let config = LaunchConfiguration {
        grid: [1; 3],
        block: [64, 1, 1],
        shared_mem_bytes: 0,
        start,
        stop: Event::NULL,
        ext_flags: 0,
        is_cooperative: false,
    };
    Command::Kernel(KernelLaunch::new(function, config, arguments))
}

pub(crate) fn launch(stream: u64) -> Call {
    Call::new(kernel(7, Event::NULL), stream, false)
}

pub(crate) fn host_function() -> Command {
    Command::Host(HostFunction::Plain(None, Ptr::NULL))
}

pub(crate) fn launched(stream: u64) -> String {
    format!("launch k [07, 00, 00, 00, 00, 00, 00, 00] on {stream:#x}")
}

/// Drives a wait to its end; returns what it waited for and the result.
pub(crate) fn drive(
    process: &Process,
    call: &mut WaitCall,
    answer: HipResult<()>,
) -> (Vec<Wait>, HipResult<()>) {
    let mut waits = Vec::new();
    loop {
        match call.next(&process.streams, &process.caller()) {
            Next::Continue => {}
            Next::Wait(wait) => {
                waits.push(wait);
                call.resume(answer);
            }
            Next::Answer(question) => {
                let wait = process.script.wait_of(question);
                process.answer(question);
                waits.extend(wait);
                call.resume(if wait.is_some() { answer } else { Ok(()) });
            }
            Next::Done(result) => return (waits, result),
            other => panic!("{other:?}"),
        }
    }
}
