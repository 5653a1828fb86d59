//! The worker and the process's memory of a shim world, behind the stream layer's `Port`.
//!
//! The worker takes commands and executes them later, one at a time, in any order that HIP allows: each behind what its stream has, behind
//! the legacy stream of its device where the two wait for each other, and behind the events that its stream waits for. A copy that brings bytes and
//! is synchronous holds up all that comes later, as the worker's dispatch does, and so does a wait that nobody waits
//! for. What it tells of memory on both sides is in [`changes`], what the process notes of it in [`written`], what the stream layer
//! asks of both in [`port`].
//!
//! There may be two workers, one for each device. Each has memory of its own, knows only its own streams and events, and is held up by
//! nothing that the other one has.

mod changes;
mod port;
mod written;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use amdhip64::command::Transfer;
use amdhip64::convert::{Event as EventHandle, Ptr};
use amdhip64::stream::order::is_legacy;
use amdhip64::worker::{ChangesAnswer, Wait};
use hipr_proto::op::MemChanges;
use hipr_proto::{HipError, HipResult};

use super::script::Place;
use super::trace::{By, Event, Trace};

pub(super) use self::written::Write;

/// Number of bytes of a word.
pub(super) const WORD: usize = 4;
/// What device memory has before anything is written to it.
const GARBAGE: u8 = 0xee;
/// Maximum number of workers.
pub(super) const WORKERS: usize = 2;
/// The value of the first fill; that of a fill tells the number of its command.
pub(super) const FILLS: u32 = 0x4000_0000;

/// What is known of a command of the script by its number.
#[derive(Debug, Clone)]
pub(super) struct Sheet {
    pub(super) to: Place,
    pub(super) from: Option<Place>,
    pub(super) words: usize,
    /// Device addresses that a kernel knows without arguments: of the word that it writes, and of the one that it reads.
    pub(super) known: Option<(u64, u64)>,
    /// The device of a kernel, which can access device memory of its own worker only.
    pub(super) kernel_of: Option<i32>,
    /// Whether it leaves an error when it is done.
    pub(super) fails: bool,
    /// Whether it only writes to memory of the device what is known when it is sent.
    pub(super) is_decided: bool,
    /// Whether it is a copy that is over when its call returns.
    pub(super) is_awaited: bool,
}

/// What the worker does for a command.
#[derive(Debug, Clone)]
enum Work {
    Kernel {
        to: u64,
        from: u64,
    },
    Fill {
        to: u64,
        bytes: Vec<u8>,
    },
    Copy {
        to: u64,
        from: u64,
        len: usize,
    },
    Write {
        to: u64,
        bytes: Vec<u8>,
    },
    Receive {
        to: Ptr,
        from: u64,
        len: usize,
    },
    /// Tells what has changed, in answer to a question.
    Look {
        question: u64,
        ranges: Vec<MemChanges>,
    },
    Nothing,
}

#[derive(Debug)]
struct Command {
    stream: u64,
    /// The device of the stream.
    on: i32,
    after: Vec<usize>,
    work: Work,
    /// The number of the script's command, and its item.
    of: Option<(usize, usize)>,
    is_done: bool,
}

/// A question what has changed.
#[derive(Debug)]
struct Question {
    /// The command that answers it.
    command: usize,
    /// The wait that it was sent with.
    wait: Option<Wait>,
    /// The copy that it was sent with.
    copy: Option<usize>,
    /// The answers, when the command is done.
    answers: Vec<ChangesAnswer>,
}

/// Where a queue of commands ends.
#[derive(Debug, Default)]
struct Tail {
    last: Option<usize>,
    is_non_blocking: bool,
    is_legacy: bool,
    /// The device that has the stream.
    device: i32,
    is_destroyed: bool,
}

impl Tail {
    /// Returns whether the legacy stream of the stream's device is this one, and the stream waits for it.
    fn waits_for(&self, other: &Self) -> bool {
        other.is_legacy && !self.is_non_blocking && self.device == other.device
    }
}

/// The stream of work that has failed.
#[derive(Debug, Clone, Copy)]
struct Failed {
    stream: u64,
    is_blocking: bool,
    device: i32,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) trace: Trace,
    /// Memory of the process, by address.
    pub(super) host: BTreeMap<usize, Vec<u8>>,
    /// Memory of each worker, by address.
    pub(super) device: [BTreeMap<u64, Vec<u8>>; WORKERS],
    /// Whether each device is of a worker of its own.
    pub(super) are_apart: bool,
    /// Memory of the program that no worker can have at the same address.
    pub(super) elsewhere: BTreeSet<usize>,
    /// Bytes that were read from one worker and are to be written to the other, and the address of the buffer that has them meanwhile.
    passing: Option<(usize, Vec<u8>)>,
    /// Memory of the device that the process maps, by its address there.
    pub(super) shared: BTreeMap<usize, u64>,
    /// Allocations that the program knows as device memory, with their devices.
    pub(super) allocations: Vec<(usize, usize, i32)>,
    /// What commands of the script mean, by number.
    pub(super) sheets: BTreeMap<usize, Sheet>,
    /// Items that wait for being executed, by command and stream, in order.
    pub(super) expected: Vec<(usize, u64, usize)>,
    commands: Vec<Command>,
    open: Vec<usize>,
    streams: BTreeMap<u64, Tail>,
    free_streams: Vec<u64>,
    /// What each event was recorded as, and its device.
    events: BTreeMap<u64, (Option<usize>, i32)>,
    free_events: Vec<u64>,
    /// The commands that hold up all later ones of each worker.
    barriers: [Vec<usize>; WORKERS],
    /// Items whose kernels failed, with their streams, until somebody is told.
    errors: Vec<(Failed, usize)>,
    /// Copies to the process's memory that were refused because of errors before them.
    refused: Vec<usize>,
    recording: Option<(u64, Vec<(usize, Work)>)>,
    graphs: BTreeMap<u64, Vec<(usize, Work)>>,
    execs: BTreeMap<u64, Vec<(usize, Work)>>,
    handles: u64,
    /// Whether what is written to the process's memory is what was fetched.
    is_fetching: bool,
    /// The wire stream of the call that is being executed.
    pub(super) stream: u64,
    /// Bits that decide which commands are executed before bytes are fetched (the low four), and while they are.
    pub(super) haste: u64,
    /// What each worker knows of memory on both sides.
    pub(super) changes: [changes::Changes; WORKERS],
    /// What the process notes of writes to its memory.
    pub(super) notes: written::Notes,
    questions: BTreeMap<u64, Question>,
    /// Whether the worker tells when what is watched is done.
    pub(super) has_watches: bool,
    /// What is watched, by number.
    watches: BTreeMap<u64, Wait>,
    /// Numbers of watches whose ends were told, and have not been heard.
    told: Vec<u64>,
}

/// The worker and the process's memory.
#[derive(Debug, Default)]
pub(super) struct Machine(pub(super) RefCell<State>);

/// Begin of the addresses that device memory is given.
const DEVICE_START: u64 = 0x9000_0000;
/// Distance between two pieces of memory.
pub(super) const STEP: u64 = 0x1_0000;

impl State {
    pub(super) fn note(&mut self, event: Event) {
        self.trace.events.push(event);
    }

    /// Adds a stream that a device always has.
    pub(super) fn open_stream(&mut self, handle: u64, device: i32, is_legacy: bool) {
        self.streams.insert(handle, Tail { device, is_legacy, ..Tail::default() });
    }

    fn handle(&mut self) -> u64 {
        self.handles += 1;
        0x100 + self.handles
    }

    /// Allocates memory of a device.
    pub(super) fn allocate(&mut self, device: i32, len: usize) -> u64 {
        let at = DEVICE_START + STEP * self.handle();
        self.place(device, at, vec![GARBAGE; len]);
        at
    }

    /// Gives a device memory at an address.
    pub(super) fn place(&mut self, device: i32, at: u64, bytes: Vec<u8>) {
        let worker = self.worker_of(device);
        if let Some(memory) = self.device.get_mut(worker) {
            memory.insert(at, bytes);
        }
    }

    /// Returns the number of the worker that has a device.
    pub(super) fn worker_of(&self, device: i32) -> usize {
        if self.are_apart { device as usize % WORKERS } else { 0 }
    }

    /// Returns the number of the worker that has a stream.
    fn worker(&self, stream: u64) -> usize {
        self.worker_of(self.device_of(stream))
    }

    /// Creates a stream of a device. Handles of destroyed streams are used again.
    pub(super) fn create_stream(&mut self, is_non_blocking: bool, device: i32) -> u64 {
        let reused = self.free_streams.iter().position(|stream| {
            let last = self.streams.get(stream).and_then(|tail| tail.last);
            last.is_none_or(|last| self.is_done(last))
        });
        let handle = match reused {
            Some(at) => self.free_streams.swap_remove(at),
            None => self.handle(),
        };
        self.streams.insert(handle, Tail { is_non_blocking, device, ..Tail::default() });
        handle
    }

    /// Creates an event. Handles of destroyed events are used again.
    pub(super) fn create_event(&mut self, device: i32) -> u64 {
        let handle = self.free_events.pop().unwrap_or_else(|| self.handle());
        self.events.insert(handle, (None, device));
        handle
    }

    /// Returns the command as which an event was recorded.
    fn record_of(&self, event: EventHandle) -> Option<usize> {
        self.events.get(&event.wire()).and_then(|(recorded, _)| *recorded)
    }

    /// Returns the command as which an event was last recorded, `Some(None)` if it never was. Returns `None`, and notes a violation, if the
    /// stream's worker does not have the event.
    fn known_event(&mut self, event: EventHandle, stream: u64) -> Option<Option<usize>> {
        match self.events.get(&event.wire()).copied() {
            Some((recorded, device)) if self.worker_of(device) == self.worker(stream) => Some(recorded),
            Some(_) => {
                let what = format!("{event:?} on the stream {stream:#x}, which another worker has");
                self.note(Event::Unasked { what });
                None
            }
            None => {
                self.note(Event::Unasked { what: format!("a use of {event:?}, which is no more") });
                None
            }
        }
    }

    fn is_done(&self, command: usize) -> bool {
        self.commands.get(command).is_none_or(|command| command.is_done)
    }

    fn device_of(&self, stream: u64) -> i32 {
        self.streams.get(&stream).map_or(0, |tail| tail.device)
    }

    fn is_blocking(&self, stream: u64) -> bool {
        !self.streams.get(&stream).is_some_and(|tail| tail.is_non_blocking)
    }

    /// Returns the last commands of a stream and of those that it waits for.
    fn tails(&self, stream: u64, joins_legacy: bool) -> Vec<usize> {
        let none = Tail::default();
        let own = self.streams.get(&stream).unwrap_or(&none);
        let joined = self.streams.iter().filter(|(other, tail)| {
            **other == stream || tail.waits_for(own) || (joins_legacy && own.waits_for(tail))
        });
        joined.filter_map(|(_, tail)| tail.last).filter(|last| !self.is_done(*last)).collect()
    }

    /// Puts a command on a stream.
    fn put(&mut self, stream: u64, work: Work, of: Option<(usize, usize)>, also: Option<usize>) -> usize {
        if self.streams.get(&stream).is_none_or(|tail| tail.is_destroyed) {
            self.note(Event::Unasked {
                what: format!("{work:?} on the stream {stream:#x}, which is no more"),
            });
        }
        let mut after = self.tails(stream, true);
        after.extend(also.into_iter().filter(|other| !self.is_done(*other)));
        after.extend(self.held_up_by(self.worker(stream)));
        let number = self.commands.len();
        let on = self.device_of(stream);
        self.commands.push(Command { stream, on, after, work, of, is_done: false });
        self.open.push(number);
        self.streams.entry(stream).or_default().last = Some(number);
        number
    }

    /// Returns the commands that hold up what a worker is given now.
    fn held_up_by(&self, worker: usize) -> impl Iterator<Item = usize> + '_ {
        let barrier = self.barriers.get(worker).map(Vec::as_slice).unwrap_or_default();
        barrier.iter().copied().filter(|command| !self.is_done(*command))
    }

    /// Lets commands hold up all that a worker is given later.
    fn hold_up(&mut self, worker: usize, commands: Vec<usize>) {
        if let Some(barrier) = self.barriers.get_mut(worker) {
            *barrier = commands;
        }
    }

    /// Puts a command of the script on a stream, or records it.
    fn put_of(&mut self, stream: u64, id: usize, work: Work) -> Option<usize> {
        if let Some((recorder, works)) = &mut self.recording
            && *recorder == stream
        {
            works.push((id, work));
            return None;
        }
        let of = self.take_expected(id, stream, &work)?;
        Some(self.put(stream, work, Some((id, of)), None))
    }

    /// Expects the kernels of a graph that are of other devices on the streams of these, among those that the launch on `stream` uses.
    pub(super) fn expect_beside(&mut self, stream: u64, items: &[usize], streams: impl Iterator<Item = u64>) {
        let sides: BTreeMap<i32, u64> = streams
            .filter(|side| *side != stream && !is_legacy(*side))
            .map(|side| (self.device_of(side), side))
            .collect();
        let own = self.device_of(stream);
        for (id, on, item) in &mut self.expected {
            let device =
                self.sheets.get(id).and_then(|sheet| sheet.kernel_of).filter(|device| *device != own);
            let side = device.and_then(|device| sides.get(&device)).filter(|_| items.contains(item));
            if let (Some(side), Some(item)) = (side, self.trace.items.get_mut(*item)) {
                (*on, item.beside) = (*side, device);
            }
        }
    }

    fn take_expected(&mut self, id: usize, stream: u64, work: &Work) -> Option<usize> {
        let is_it = |(of, on, _): &(usize, u64, usize)| (*of, *on) == (id, stream);
        // What concerns two workers is carried out on a stream of the stream layer.
        let is_across = |(of, on, _): &(usize, u64, usize)| self.are_apart && (*of, *on) == (id, self.stream);
        let all = || self.expected.iter();
        let at = all().position(is_it).or_else(|| all().position(is_across));
        let Some(at) = at else {
            self.note(Event::Unasked { what: format!("{work:?}, command {id}, on the stream {stream:#x}") });
            return None;
        };
        let (_, on, item) = self.expected.remove(at);
        if on != stream {
            self.note(Event::Sent { item });
        }
        Some(item)
    }

    /// Notes that a step will not do its command.
    pub(super) fn refuse(&mut self, command: Option<usize>, stream: u64) {
        let is_it = |(of, on, _): &(usize, u64, usize)| Some(*of) == command && *on == stream;
        if let Some(at) = self.expected.iter().position(is_it) {
            let item = self.expected.remove(at).2;
            self.note(Event::Refused { item });
        }
    }

    /// Returns how many commands can be executed now.
    pub(super) fn ready(&self) -> Vec<usize> {
        let is_ready = |command: &usize| {
            let after = self.commands.get(*command).map(|command| command.after.as_slice());
            after.unwrap_or_default().iter().all(|other| self.is_done(*other))
        };
        self.open.iter().copied().filter(is_ready).collect()
    }

    /// Returns the number of commands that the worker was ever given.
    pub(super) fn count(&self) -> usize {
        self.commands.len()
    }

    /// Returns whether all commands are done.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the commands of a wait that are not done.
    pub(super) fn awaited(&self, wait: Wait) -> Vec<usize> {
        match wait {
            Wait::Device(device) => {
                let is_there =
                    |command: &usize| self.commands.get(*command).is_some_and(|command| command.on == device);
                let mut all: Vec<usize> = self.open.iter().copied().filter(is_there).collect();
                all.extend(self.held_up_by(self.worker_of(device)));
                all
            }
            Wait::Stream(stream) | Wait::QueryStream(stream) | Wait::WatchStream(stream, _) => {
                let mut all = self.tails(stream, false);
                all.extend(self.held_up_by(self.worker(stream)));
                all
            }
            Wait::Event(event) | Wait::QueryEvent(event) | Wait::WatchEvent(event, _) => {
                let recorded = self.record_of(event).filter(|command| !self.is_done(*command));
                recorded.into_iter().chain(self.held_up_by(self.worker_of_wait(wait))).collect()
            }
        }
    }

    /// Returns the number of the worker that is asked to wait.
    fn worker_of_wait(&self, wait: Wait) -> usize {
        match wait {
            Wait::Device(device) => self.worker_of(device),
            Wait::Stream(stream) | Wait::QueryStream(stream) | Wait::WatchStream(stream, _) => {
                self.worker(stream)
            }
            Wait::Event(event) | Wait::QueryEvent(event) | Wait::WatchEvent(event, _) => {
                self.events.get(&event.wire()).map_or(0, |(_, device)| self.worker_of(*device))
            }
        }
    }

    /// Answers a query; what it found unfinished is watched if it says so.
    pub(super) fn query(&mut self, query: Wait) -> HipResult<()> {
        self.tell_watched();
        if self.awaited(query).is_empty() {
            return Ok(());
        }
        if let Wait::WatchStream(_, number) | Wait::WatchEvent(_, number) = query {
            self.watches.insert(number, query);
        }
        Err(HipError::NOT_READY)
    }

    /// Tells of everything that is watched and done.
    pub(super) fn tell_watched(&mut self) {
        let watches = std::mem::take(&mut self.watches);
        let (open, over) = watches.into_iter().partition(|(_, watch)| !self.awaited(*watch).is_empty());
        self.watches = open;
        self.told.extend(BTreeMap::into_keys(over));
    }

    /// Takes the numbers of the watches whose ends were told.
    pub(super) fn take_told(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.told)
    }

    /// Returns whether the worker has told of everything that is watched and done, and that was heard.
    pub(super) fn has_told_all(&mut self) -> bool {
        self.tell_watched();
        self.told.is_empty()
    }

    /// Returns whether a wait is answered with an error: work that it is for has failed, and nobody was told.
    pub(super) fn tell_errors(&mut self, wait: Wait) -> bool {
        let (stream, device) = match wait {
            Wait::Device(device) => (None, device),
            Wait::Stream(stream) => (Some(stream), self.device_of(stream)),
            Wait::Event(event) => {
                let recorded = self.record_of(event);
                let Some(command) = recorded.and_then(|recorded| self.commands.get(recorded)) else {
                    return false;
                };
                (Some(command.stream), command.on)
            }
            Wait::QueryStream(_) | Wait::QueryEvent(_) | Wait::WatchStream(..) | Wait::WatchEvent(..) => {
                return false;
            }
        };
        let is_legacy =
            stream.is_some_and(|stream| self.streams.get(&stream).is_some_and(|tail| tail.is_legacy));
        let is_meant = |(failed, _): &mut (Failed, usize)| match stream {
            None => failed.device == device,
            Some(_) if is_legacy => failed.is_blocking && failed.device == device,
            Some(stream) => stream == failed.stream,
        };
        let told: Vec<usize> = self.errors.extract_if(.., is_meant).map(|(_, item)| item).collect();
        told.iter().for_each(|item| self.trace.events.push(Event::Told { item: *item }));
        !told.is_empty()
    }

    /// Returns whether one of these commands, which are done, was refused because of an error before it.
    pub(super) fn was_refused(&self, commands: &[usize]) -> bool {
        commands.iter().any(|command| self.refused.contains(command))
    }

    pub(super) fn are_done(&self, commands: &[usize]) -> bool {
        commands.iter().all(|command| self.is_done(*command))
    }

    /// Executes a command, and before it those that it comes after.
    fn execute_with_all_before(&mut self, command: usize) {
        let after = self.commands.get(command).map(|command| command.after.clone()).unwrap_or_default();
        for other in after {
            if !self.is_done(other) {
                self.execute_with_all_before(other);
            }
        }
        self.execute(command);
    }

    /// Answers a question. What comes behind it waits until it is answered.
    fn answer(&mut self, question: u64, ranges: &[MemChanges]) {
        let answers = ranges.iter().map(|range| Ok(self.look_for_changes(range))).collect();
        if let Some(question) = self.questions.get_mut(&question) {
            question.answers = answers;
        }
    }

    /// Returns whether a question has been answered, and the wait that it was sent with.
    pub(super) fn is_answered(&self, question: u64) -> (bool, Option<Wait>) {
        let question = self.questions.get(&question);
        question.map_or((true, None), |question| (self.is_done(question.command), question.wait))
    }

    /// Executes a command.
    pub(super) fn execute(&mut self, number: usize) {
        self.open.retain(|other| *other != number);
        if let Some(Work::Look { question, ranges }) = self.commands.get(number).map(|command| &command.work)
        {
            let (question, ranges) = (*question, ranges.clone());
            self.answer(question, &ranges);
            self.learn_what_came_behind(number);
        }
        let Some(command) = self.commands.get_mut(number) else { return };
        command.is_done = true;
        let (work, of) = (std::mem::replace(&mut command.work, Work::Nothing), command.of);
        let stream = command.stream;
        let worker = self.worker(stream);
        if matches!(work, Work::Receive { .. }) && self.tell_errors(Wait::Stream(stream)) {
            self.refused.push(number);
            self.trace.events.extend(of.map(|(_, item)| Event::Refused { item }));
            return;
        }
        let sheet = of.and_then(|(id, _)| self.sheets.get(&id).cloned());
        // What it reads, and what it writes.
        let (seen, written) = match work {
            Work::Kernel { to, from } => {
                let value = of.map_or(0, |(_, item)| value_of(item)).to_le_bytes();
                let seen = self.read_device(worker, from, WORD);
                self.write_device(worker, to, &value);
                (seen, value.to_vec())
            }
            Work::Fill { to, bytes } => {
                self.write_device(worker, to, &bytes);
                (Vec::new(), bytes)
            }
            Work::Copy { to, from, len } => {
                let bytes = self.read_device(worker, from, len);
                self.write_device(worker, to, &bytes);
                (bytes.clone(), bytes)
            }
            Work::Write { to, bytes } => {
                self.write_device(worker, to, &bytes);
                (bytes.clone(), bytes)
            }
            Work::Receive { to, from, len } => {
                let bytes = self.read_device(worker, from, len);
                self.write_host_bytes(to.0, &bytes);
                (bytes.clone(), bytes)
            }
            Work::Look { .. } | Work::Nothing => (Vec::new(), Vec::new()),
        };
        let has_failed = sheet.as_ref().is_some_and(|sheet| sheet.fails);
        let (reads, writes) = match sheet {
            Some(Sheet { to, from, .. }) => {
                (from.map(|from| words(from, &seen)).unwrap_or_default(), words(to, &written))
            }
            None => Default::default(),
        };
        if let Some((_, item)) = of {
            self.note(Event::Executed { item, reads, writes, by: By::Worker });
            if has_failed {
                self.note(Event::Erred { item });
                let (is_blocking, device) = (self.is_blocking(stream), self.device_of(stream));
                self.errors.push((Failed { stream, is_blocking, device }, item));
            }
        }
    }

    /// Waits until the worker has come to the end of a stream. Others may get on meanwhile, as these bits say.
    fn reach(&mut self, stream: u64, haste: u64) {
        let end = self.put(stream, Work::Nothing, None, None);
        self.get_on(haste);
        if !self.is_done(end) {
            self.execute_with_all_before(end);
        }
    }

    /// Executes a command that is ready for each of the low bits that are set, up to the first that is not.
    fn get_on(&mut self, haste: u64) {
        for _ in 0..haste.trailing_ones() {
            if let Some(next) = self.ready().first().copied() {
                self.execute(next);
            }
        }
    }

    fn read_device(&mut self, worker: usize, at: u64, len: usize) -> Vec<u8> {
        let memory = self.device.get(worker);
        let found = memory.and_then(|memory| memory.range(..=at).next_back()).and_then(|(base, bytes)| {
            let offset = (at - base) as usize;
            bytes.get(offset..offset + len).map(<[u8]>::to_vec)
        });
        found.unwrap_or_else(|| {
            self.note(Event::Unasked { what: format!("a read of {len} bytes at {at:#x}, where nothing is") });
            vec![0; len]
        })
    }

    fn write_device(&mut self, worker: usize, at: u64, bytes: &[u8]) {
        let memory = self.device.get_mut(worker);
        let found = memory.and_then(|memory| memory.range_mut(..=at).next_back());
        let place = found.and_then(|(base, all)| {
            let offset = (at - base) as usize;
            all.get_mut(offset..offset + bytes.len())
        });
        match place {
            Some(place) => {
                place.copy_from_slice(bytes);
                if let Some(changes) = self.changes.get_mut(worker) {
                    changes.mark(at);
                }
            }
            None => {
                let what = format!("a write of {} bytes at {at:#x}, where nothing is", bytes.len());
                self.note(Event::Unasked { what });
            }
        }
    }

    /// Returns bytes that the process has mapped.
    fn host_place(&mut self, at: usize, len: usize) -> Option<&mut [u8]> {
        let own = self.host.range_mut(..=at).next_back();
        let shared = self.shared.range(..=at).next_back();
        let (base, bytes) = match (own, shared) {
            (own, Some((base, remote))) if own.as_ref().is_none_or(|(own, _)| *own < base) => {
                (base, self.device.first_mut()?.get_mut(remote)?)
            }
            (own, _) => own?,
        };
        bytes.get_mut(at - base..at - base + len)
    }

    pub(super) fn read_host_bytes(&mut self, at: usize, len: usize) -> Vec<u8> {
        let bytes = self.host_place(at, len).map(|place| place.to_vec());
        bytes.unwrap_or_else(|| {
            self.note(Event::Unasked { what: format!("a read of {len} bytes of the process at {at:#x}") });
            vec![0; len]
        })
    }

    pub(super) fn write_host_bytes(&mut self, at: usize, bytes: &[u8]) {
        match self.host_place(at, bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.notes.mark(at);
            }
            None => {
                let what = format!("a write of {} bytes of the process at {at:#x}", bytes.len());
                self.note(Event::Unasked { what });
            }
        }
    }

    /// Notes that a call or the worker's answer comes next.
    pub(super) fn next_step(&mut self, stream: u64) {
        self.is_fetching = false;
        self.stream = stream;
    }

    /// Begins to copy to the process's memory; returns the command to wait for.
    pub(super) fn receive(&mut self, transfer: &Transfer) -> Option<usize> {
        let len = transfer.copy.size.width;
        let work = Work::Receive { to: transfer.copy.dst.at, from: transfer.from, len };
        self.put_of(transfer.stream, transfer.copy.dst.rows, work)
    }

    /// Notes that the process has carried out a copy between workers, whose bytes are these.
    fn carried_out(&mut self, id: usize, bytes: &[u8]) {
        let own = (id, self.stream);
        let Some(at) = self.expected.iter().position(|(of, on, _)| (*of, *on) == own) else {
            self.note(Event::Unasked { what: format!("a copy between workers, command {id}") });
            return;
        };
        let item = self.expected.remove(at).2;
        let Some(Sheet { to, from: Some(from), .. }) = self.sheets.get(&id).cloned() else { return };
        let (reads, writes) = (words(from, bytes), words(to, bytes));
        self.note(Event::Executed { item, reads, writes, by: By::Across });
    }

    /// Returns what exists on the worker besides what the program has: streams, events, graphs.
    pub(super) fn leftovers(&self) -> (usize, usize, usize) {
        let streams = self.streams.values().filter(|tail| !tail.is_destroyed).count();
        (streams, self.events.len(), self.graphs.len() + self.execs.len())
    }
}

/// Splits bytes that begin at a place into words; returns each word's place and value.
fn words(place: Place, bytes: &[u8]) -> Vec<(Place, u32)> {
    let word = |(at, word): (usize, &[u8])| {
        let place = Place { word: place.word + at, ..place };
        (place, word.try_into().map_or(0, u32::from_le_bytes))
    };
    bytes.chunks(WORD).enumerate().map(word).collect()
}

/// Returns what a kernel, or the program, writes in an item.
pub(super) fn value_of(item: usize) -> u32 {
    0x0101_0101_u32.wrapping_mul(item as u32 + 1) ^ 0x8000_0000
}
