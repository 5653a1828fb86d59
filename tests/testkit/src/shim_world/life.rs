//! The threads of a shim world: they drive the calls of the stream layer phase by phase, in a drawn order.

mod calls;
mod program;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use amdhip64::command::Transfer;
use amdhip64::convert::{Event as EventHandle, Ptr};
use amdhip64::stream::host_functions::Threads;
use amdhip64::stream::mirror::{Origin, RegionInfo};
use amdhip64::stream::order::{legacy, per_thread};
use amdhip64::stream::sync_mode::{AHEAD_MAX_BYTES, SyncMode};
use amdhip64::stream::{Call, Caller, Streams, WaitCall};
use amdhip64::worker::Wait;
use hipr_proto::HipResult;

use super::machine::{Machine, STEP, WORD, value_of};
use super::script::{Case, Deed, MemoryKind, Place, StreamKind, WORDS, WorldStream};
use super::trace::{Event, ITEMS_MAX, Item, ItemKind, Trace, Who};
use crate::choices::Choices;

/// Number of steps after which a world counts as endless.
const STEPS_MAX: usize = 20_000;
/// How often a thread repeats a query that says not ready.
const POLLS_MAX: usize = 20;
/// Begin of the addresses of the program's memory.
const HOST_START: u64 = 0x1000_0000;
/// The mode of a capture that forbids other threads nothing.
const RELAXED: i32 = 2;
/// The flag of memory that all kernels reach.
const MAPPED: u32 = 2;

/// Runs a case.
pub fn run(case: &Case) -> Trace {
    let machine = Machine::default();
    let lived = catch_unwind(AssertUnwindSafe(|| Life::new(case, &machine).live()));
    let mut trace = std::mem::take(&mut machine.0.borrow_mut().trace);
    if let Err(panic) = lived {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        trace.panic = Some(text.unwrap_or("something that is no text").into());
    }
    trace
}

/// The threads for host functions that the stream layer asked for.
#[derive(Default)]
struct Starts(RefCell<Vec<u64>>);

impl Threads for Starts {
    fn start(&self, queue: u64) -> HipResult<()> {
        self.0.borrow_mut().push(queue);
        Ok(())
    }
}

/// What a thread is doing, or waiting for, inside a call.
enum Doing {
    /// The next phase of the call comes next.
    Phase,
    /// It waits for steps of host functions.
    Steps(Vec<u64>),
    /// It is about to ask the worker.
    Ask(Wait),
    /// It is about to ask the worker for bytes.
    AskBytes(Box<Transfer>),
    /// It waits for the answers to a question, behind a wait if there is one.
    Question(u64),
    /// It waits until the answers to a question have been applied.
    Applied(u64),
    /// It waits until an event of the stream layer has happened.
    Await(EventHandle),
    /// It waits for commands of the worker, and will get this answer, or an error of the work that it waits for.
    Answer(Vec<usize>, HipResult<()>, Option<Wait>),
    /// It executes deeds of a host function: its item, what comes next, the result to go on with.
    Deeds(usize, VecDeque<Deed>, HipResult<()>),
}

/// One part of a call of HIP.
enum Part {
    Call(Box<Call>),
    Wait(WaitCall),
    /// A wait of a step for an event of the stream layer.
    Await(EventHandle, WaitCall),
    /// The end of a synchronous fill, and whether the host functions before it are over.
    Finish(Ptr, bool),
}

/// A thread: of the program, or one that executes host functions.
struct Runner {
    who: Thread,
    parts: VecDeque<Part>,
    doing: Doing,
    is_in_call: bool,
    /// The stream of the call.
    stream: u64,
    /// Number of commands that the worker had been given when the call began.
    commands: usize,
}

/// The kinds of threads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Thread {
    Program(usize),
    Queue(u64),
}

impl Runner {
    fn new(who: Thread) -> Self {
        Self { who, parts: VecDeque::new(), doing: Doing::Phase, is_in_call: false, stream: 0, commands: 0 }
    }
}

/// A thread's place in the script, and its capture and graphs.
#[derive(Default)]
struct Progress {
    next: usize,
    /// The streams and events of the call that is being made.
    uses: (Option<usize>, Option<usize>),
    /// The items of that call.
    items: Vec<usize>,
    /// How often the query was repeated.
    polls: usize,
    /// The query that the call makes, until the worker is asked.
    query: Option<Wait>,
    /// The stream that captures, with the commands that it has.
    capture: Option<(usize, Vec<usize>)>,
    /// Instantiated graphs with the commands of their nodes.
    graphs: Vec<Option<(Ptr, Vec<usize>)>>,
}

/// A stream or event of the script: its handle, and its number in the trace. None when it was destroyed.
type Slot = Option<(u64, usize)>;

struct Life<'c> {
    case: &'c Case,
    machine: &'c Machine,
    streams: Streams,
    starts: Starts,
    choices: Choices<'c>,
    programs: Vec<(Runner, Progress)>,
    queues: Vec<(Runner, Option<Running>)>,
    stream_slots: Vec<Slot>,
    event_slots: Vec<Slot>,
    gates: Vec<bool>,
    /// Host addresses of the pieces of memory; device addresses of device memory.
    bases: Vec<usize>,
    functions: Vec<(usize, Vec<Deed>)>,
    /// Number of steps of threads inside calls.
    beats: usize,
}

/// A step that a queue's thread executes: its number, and the item of its function.
struct Running {
    number: u64,
    /// The number of the script's command, if it is a copy or a fill.
    command: Option<usize>,
    item: Option<usize>,
}

impl<'c> Life<'c> {
    fn new(case: &'c Case, machine: &'c Machine) -> Self {
        let threads = case.script.0.len();
        let programs = (0..threads).map(|thread| (Runner::new(Thread::Program(thread)), Progress::default()));
        let sync_mode = match case.options.is_lazy {
            true => SyncMode::Lazy { ahead_max_bytes: AHEAD_MAX_BYTES },
            false => SyncMode::Strict,
        };
        {
            let mut state = machine.0.borrow_mut();
            (state.trace.is_lazy, state.trace.are_apart) = (case.options.is_lazy, case.options.are_apart);
            state.are_apart = case.options.are_apart;
        }
        let workers = if case.options.are_apart { vec![0, 1] } else { Vec::new() };
        let mut life = Self {
            case,
            machine,
            streams: Streams::of_workers(sync_mode, workers),
            starts: Starts::default(),
            choices: Choices::new(&case.schedule),
            programs: programs.collect(),
            queues: Vec::new(),
            stream_slots: vec![None; case.options.streams.len()],
            event_slots: vec![None; case.options.events],
            gates: vec![false; case.options.gates],
            bases: Vec::new(),
            functions: Vec::new(),
            beats: 0,
        };
        // One memory tells the program sooner than the worker does.
        machine.0.borrow_mut().has_watches = case.options.has_watches && !case.options.is_near;
        for changes in &mut machine.0.borrow_mut().changes {
            changes.tells = Some(case.options.tells);
        }
        machine.0.borrow_mut().notes.are_kept = case.options.has_notes;
        if case.options.has_several_devices() {
            life.streams.share();
        }
        (0..case.options.streams.len()).for_each(|index| life.create_stream(index));
        (0..case.options.events).for_each(|index| life.create_event(index));
        (0..case.options.memory.len()).for_each(|index| life.create_memory(index));
        life
    }

    fn create_stream(&mut self, index: usize) {
        let Some(stream) = self.case.options.streams.get(index).copied() else { return };
        let WorldStream { kind, device } = stream;
        let mut state = self.machine.0.borrow_mut();
        let handle = match kind {
            StreamKind::Legacy => legacy(device),
            StreamKind::PerThread => per_thread(device),
            StreamKind::Blocking => state.create_stream(false, device),
            StreamKind::NonBlocking => state.create_stream(true, device),
        };
        if matches!(kind, StreamKind::Legacy | StreamKind::PerThread) {
            state.open_stream(handle, device, kind == StreamKind::Legacy);
        } else {
            self.streams.order.add(handle, kind == StreamKind::Blocking, device);
        }
        let number = state.trace.streams.len();
        state.trace.streams.push(stream);
        if let Some(slot) = self.stream_slots.get_mut(index) {
            *slot = Some((handle, number));
        }
    }

    fn create_event(&mut self, index: usize) {
        let mut state = self.machine.0.borrow_mut();
        let device = self.case.options.device_of_event(index);
        let handle = state.create_event(device);
        self.streams.events.add(EventHandle::from_wire(handle), 0, device);
        let number = state.trace.events_made;
        state.trace.events_made += 1;
        if let Some(slot) = self.event_slots.get_mut(index) {
            *slot = Some((handle, number));
        }
    }

    fn create_memory(&mut self, index: usize) {
        let kind = self.case.options.memory.get(index).copied().unwrap_or(MemoryKind::Pageable);
        let len = WORDS * WORD;
        let device = self.case.options.device_of_memory(index);
        let mut state = self.machine.0.borrow_mut();
        let host = (HOST_START + STEP * index as u64) as usize;
        let first = state.trace.items.len();
        let mut bytes = Vec::new();
        for word in 0..WORDS {
            // What is there at first counts as written by the program before everything else.
            let place = Place { memory: index, word };
            let value = value_of(first + word);
            state.trace.items.push(Item {
                kind: ItemKind::Write,
                name: "the start".into(),
                writes: vec![place],
                stream: None,
                beside: None,
                is_decided: true,
            });
            state.trace.start.push((place, value));
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        if kind == MemoryKind::Device {
            let at = state.allocate(device, len);
            state.place(device, at, bytes);
            state.allocations.push((at as usize, len, device));
            self.bases.push(at as usize);
            return;
        }
        self.bases.push(host);
        let flags = if kind == MemoryKind::Pinned { 0 } else { MAPPED };
        let origin = if kind == MemoryKind::Managed { Origin::Managed } else { Origin::Pinned };
        let info = RegionInfo { origin, host: Ptr(host), len, flags, device };
        if self.case.options.is_near && kind.is_shared_nearby() {
            let remote =
                if kind == MemoryKind::Elsewhere { state.allocate(device, len) } else { host as u64 };
            state.place(device, remote, bytes);
            state.shared.insert(host, remote);
            self.streams.mirrors.add_shared(info, remote, None);
            return;
        }
        state.host.insert(host, bytes);
        match kind {
            MemoryKind::Device | MemoryKind::Pageable => {}
            MemoryKind::Registered => {
                drop(state);
                // Refused only where something else is registered.
                let _ = self.streams.mirrors.register(Ptr(host), len, MAPPED);
            }
            MemoryKind::Elsewhere => {
                let remote = state.allocate(device, len);
                state.elsewhere.insert(host);
                self.streams.mirrors.add(info, remote, None);
            }
            MemoryKind::Pinned | MemoryKind::Mapped | MemoryKind::Managed => {
                state.place(device, host as u64, vec![0xee; len]);
                self.streams.mirrors.add(info, host as u64, None);
            }
        }
    }

    fn note(&self, event: Event) {
        self.machine.0.borrow_mut().note(event);
    }

    fn new_item(&self, item: Item) -> Option<usize> {
        let mut state = self.machine.0.borrow_mut();
        let number = state.trace.items.len();
        if number >= ITEMS_MAX {
            return None;
        }
        state.trace.items.push(item);
        Some(number)
    }

    fn caller(&self, who: Thread) -> Caller<'_> {
        let (thread, is_host_thread) = match who {
            Thread::Program(thread) => (thread as u64 + 1, false),
            Thread::Queue(queue) => (queue.wrapping_add(100), true),
        };
        let (port, threads) = (self.machine, &self.starts);
        let device = match who {
            Thread::Program(thread) => self.case.options.device_of(thread),
            Thread::Queue(_) => 0,
        };
        Caller { port, threads, thread, device, call: 0, capture_mode: 0, is_host_thread }
    }

    fn live(mut self) {
        let mut steps = 0;
        while !self.choices.is_exhausted() && steps < STEPS_MAX {
            let actors = self.actors();
            let actor = self.choices.index(actors);
            self.step(actor);
            steps += 1;
        }
        self.come_to_rest();
        self.end_everything();
    }

    /// Gives everybody turns until nobody can do anything.
    fn come_to_rest(&mut self) {
        for _ in 0..STEPS_MAX {
            let actors = self.actors();
            let moved = (0..actors).fold(false, |moved, actor| moved | self.step(actor));
            if !moved && !self.open_a_gate() {
                return;
            }
        }
    }

    /// Returns the number of actors: the threads, with those that were started, and the worker.
    fn actors(&mut self) -> usize {
        let started = self.starts.0.take();
        self.queues.extend(started.into_iter().map(|queue| (Runner::new(Thread::Queue(queue)), None)));
        self.programs.len() + self.queues.len() + 1
    }

    /// Lets one actor do a step; returns false if it could do nothing.
    fn step(&mut self, actor: usize) -> bool {
        if actor < self.programs.len() {
            return self.step_program(actor);
        }
        let queue = actor - self.programs.len();
        if queue < self.queues.len() {
            return self.step_queue(queue);
        }
        if self.case.options.is_slow && !self.choices.is_exhausted() && self.choices.below(6) > 0 {
            return false;
        }
        let mut state = self.machine.0.borrow_mut();
        let ready = state.ready();
        let Some(command) = self.choices.pick(&ready) else { return false };
        state.execute(*command);
        true
    }

    /// Notes that nothing goes on, and opens a gate that a function waits at, if there is one.
    fn open_a_gate(&mut self) -> bool {
        let waits = |doing: &Doing| {
            matches!(
                doing,
                Doing::Steps(_)
                    | Doing::Answer(..)
                    | Doing::Question(..)
                    | Doing::Applied(_)
                    | Doing::Await(_)
            )
        };
        let waiting: Vec<usize> = self
            .programs
            .iter()
            .enumerate()
            .filter(|(_, (runner, _))| runner.is_in_call && waits(&runner.doing))
            .map(|(thread, _)| thread)
            .collect();
        let gate = self.queues.iter().find_map(|(runner, _)| match &runner.doing {
            Doing::Deeds(_, deeds, _) => match deeds.front() {
                Some(Deed::Pass(gate)) => Some(*gate),
                _ => None,
            },
            _ => None,
        });
        self.note(Event::Still { waiting, at_gate: gate.is_some() });
        let Some(gate) = gate else { return false };
        self.open(None, gate);
        true
    }

    fn open(&mut self, who: Option<Who>, gate: usize) {
        if let Some(is_open) = self.gates.get_mut(gate) {
            *is_open = true;
        }
        self.note(Event::Opened { who, gate });
    }

    /// Destroys what is still there, and notes what is left of it.
    fn end_everything(&mut self) {
        if self.programs.is_empty() || self.programs.iter().any(|(runner, _)| runner.is_in_call) {
            return;
        }
        for thread in 0..self.programs.len() {
            let graphs = self.programs.get(thread).map_or(0, |(_, progress)| progress.graphs.len());
            self.end_capture(thread, graphs);
            for graph in 0..=graphs {
                self.begin_destroy_graph(thread, graph);
                self.come_to_rest();
            }
        }
        let handle = |slot: &Slot| slot.map(|(handle, _)| handle);
        let (streams, events): (Vec<u64>, Vec<u64>) = (
            self.stream_slots.iter().filter_map(handle).collect(),
            self.event_slots.iter().filter_map(handle).collect(),
        );
        for event in 0..self.event_slots.len() {
            self.begin_destroy_event(0, event);
            self.come_to_rest();
        }
        for stream in 0..self.stream_slots.len() {
            self.begin_destroy_stream(0, stream);
            self.come_to_rest();
        }
        let mut left = Vec::new();
        for event in events {
            if self.streams.events.info(EventHandle::from_wire(event)).is_ok() {
                left.push(format!("the stream layer knows the event {event:#x}"));
            }
        }
        let lives = |stream: &u64| !self.streams.order.is_blocking(*stream);
        left.extend(
            streams
                .iter()
                .filter(|stream| lives(stream))
                .map(|stream| format!("the stream layer takes {stream:#x} for a stream that does not block")),
        );
        if !self.queues.is_empty() || !self.streams.host_functions.is_idle() {
            left.push("threads for host functions go on".to_owned());
        }
        let mut state = self.machine.0.borrow_mut();
        let (streams, events, graphs) = state.leftovers();
        // What the stream layer has for itself: for each worker two streams, to fetch on and to keep records, and of each device one to
        // record on and two events. Where there are several workers, a stream of each device to copy on as well. Beside a stream that does not end,
        // one of the other device.
        let own = self
            .case
            .options
            .streams
            .iter()
            .filter(|stream| matches!(stream.kind, StreamKind::Legacy | StreamKind::PerThread));
        let devices = 1 + usize::from(self.case.options.has_several_devices());
        let of_library = if self.case.options.are_apart { 4 * devices } else { 2 + devices };
        if streams > own.count() * devices + of_library || events > 2 * devices || graphs > 0 {
            left.push(format!("the worker has {streams} streams, {events} events and {graphs} graphs"));
        }
        state.trace.left = left;
    }
}
