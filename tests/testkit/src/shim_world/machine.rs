//! The worker and the process's memory of a shim world, behind the stream layer's [`Port`].
//!
//! The worker takes commands and executes them later, one at a time, in any order that HIP allows: each behind what its stream has, behind
//! the legacy stream of its device where the two wait for each other, and behind the events that its stream waits for. A copy that brings bytes and
//! is synchronous holds up all that comes later, as the worker's dispatch does, and so does a wait that nobody waits
//! for. What it tells of memory on both sides is in [`changes`], what the process notes of it in [`written`].
//!
//! There may be two workers, one for each device. Each has memory of its own, knows only its own streams and events, and is held up by
//! nothing that the other one has.

mod changes;
mod written;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use amdhip64::command::{Arguments, KernelLaunch, MemoryCopy, Pattern, Transfer};
use amdhip64::convert::{Event as EventHandle, Ptr};
use amdhip64::stream::sync_mode::AHEAD_REQUESTS_MAX;
use amdhip64::worker::memory::{Allocation, Kind};
use amdhip64::worker::{Ahead, ChangesAnswer, HostMemory, Port, Wait};
use hipr_proto::op::{MemChanges, MemcpyPeer, kind};
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
    /// Whether it is a kernel, which reaches memory of its own worker only.
    pub(super) is_kernel: bool,
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
    /// Bytes on their way from one worker to the other, by the address that they have here.
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
        self.device.iter_mut().skip(worker).take(1).for_each(|memory| drop(memory.insert(at, bytes.clone())));
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

    /// Returns what an event was recorded as, for its use on a stream. Notes a use of it that its worker cannot know.
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
                self.changes.iter_mut().skip(worker).take(1).for_each(|changes| changes.mark(at));
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

/// Returns the words that begin at a place, with the bytes that they have.
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

impl HostMemory for Machine {
    fn read_host(&self, at: Ptr, into: &mut [u8]) {
        let mut state = self.0.borrow_mut();
        into.copy_from_slice(&state.read_host_bytes(at.0, into.len()));
        state.let_others_write();
    }

    fn write_host(&self, at: Ptr, bytes: &[u8]) {
        let mut state = self.0.borrow_mut();
        state.write_host_bytes(at.0, bytes);
        if state.is_fetching {
            return;
        }
        // A fill of memory that only the process has.
        let value = bytes.get(..WORD).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes);
        let (id, stream) = (value.wrapping_sub(FILLS) as usize, state.stream);
        let Some(item) = state.take_expected(id, stream, &Work::Nothing) else { return };
        let Some(Sheet { to, words, .. }) = state.sheets.get(&id).cloned() else { return };
        let writes = (0..words).map(|at| (Place { word: to.word + at, ..to }, value)).collect();
        state.note(Event::Executed { item, reads: Vec::new(), writes, by: By::Process });
    }
}

impl Port for Machine {
    fn allocation(&self, ptr: Ptr) -> Option<Allocation> {
        let state = self.0.borrow();
        let found = state.allocations.iter().find(|(base, len, _)| (*base..base + len).contains(&ptr.0));
        found.map(|(base, len, device)| Allocation {
            base: Ptr(*base),
            size_bytes: *len,
            kind: Kind::Device,
            device: *device,
            flags: 0,
            is_ambiguous: false,
        })
    }

    fn forget_allocation(&self, ptr: Ptr) {
        self.0.borrow_mut().allocations.retain(|(base, ..)| *base != ptr.0);
    }

    fn host_bytes(&self, at: Ptr, len: usize) -> Cow<'_, [u8]> {
        let mut state = self.0.borrow_mut();
        let passing = state.passing.take_if(|(passing, bytes)| (*passing, bytes.len()) == (at.0, len));
        Cow::Owned(passing.map_or_else(|| state.read_host_bytes(at.0, len), |(_, bytes)| bytes))
    }

    fn copy_host(&self, copy: &MemoryCopy) {
        let mut state = self.0.borrow_mut();
        let bytes = state.read_host_bytes(copy.src.at.0, copy.size.width);
        state.write_host_bytes(copy.dst.at.0, &bytes);
        let (id, stream) = (copy.dst.rows, state.stream);
        let Some(item) = state.take_expected(id, stream, &Work::Nothing) else { return };
        let Some(Sheet { to, from: Some(from), is_awaited, .. }) = state.sheets.get(&id).cloned() else {
            return;
        };
        let (reads, writes) = (words(from, &bytes), words(to, &bytes));
        let by = if is_awaited { By::Call } else { By::Process };
        state.note(Event::Executed { item, reads, writes, by });
    }

    fn allocate(&self, device: i32, host: Ptr, len: usize) -> HipResult<u64> {
        let mut state = self.0.borrow_mut();
        if !state.are_apart || state.elsewhere.contains(&host.0) {
            return Ok(state.allocate(device, len));
        }
        state.place(device, host.wire(), vec![GARBAGE; len]);
        Ok(host.wire())
    }

    fn create_event(&self, device: i32) -> HipResult<EventHandle> {
        Ok(EventHandle::from_wire(self.0.borrow_mut().create_event(device)))
    }

    fn create_stream(&self, device: i32) -> HipResult<u64> {
        Ok(self.0.borrow_mut().create_stream(true, device))
    }

    fn fetch(&self, ranges: &[(u64, usize)], stream: u64) -> HipResult<Vec<Vec<u8>>> {
        let mut state = self.0.borrow_mut();
        let haste = state.haste & 15;
        state.reach(stream, haste);
        state.is_fetching = true;
        let worker = state.worker(stream);
        Ok(ranges.iter().map(|(at, len)| state.read_device(worker, *at, *len)).collect())
    }

    fn tells_changes(&self) -> bool {
        self.0.borrow().changes.iter().all(changes::Changes::is_told)
    }

    fn changes(&self, ranges: &[MemChanges]) -> HipResult<Vec<ChangesAnswer>> {
        let mut state = self.0.borrow_mut();
        let answers = ranges.iter().map(|range| Ok(state.tell_changes(range))).collect();
        state.is_fetching = true;
        Ok(answers)
    }

    fn can_ask_behind(&self, _copy: &Transfer) -> bool {
        true
    }

    fn ask(&self, question: u64, ahead: Ahead<'_>, ranges: &[MemChanges]) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        let Some(stream) = ranges.first().map(|range| range.stream) else {
            return Err(HipError::INVALID_VALUE);
        };
        let (wait, copy) = match ahead {
            Ahead::Nothing => (None, None),
            Ahead::Wait(wait) => (Some(wait), None),
            Ahead::Copy(transfer) => (None, state.receive(transfer)),
        };
        let mut awaited = wait.map(|wait| state.awaited(wait)).unwrap_or_default();
        awaited.extend(copy);
        let command = state.put(stream, Work::Look { question, ranges: ranges.to_vec() }, None, None);
        if let Some(command) = state.commands.get_mut(command) {
            command.after.extend(awaited);
        }
        // The worker does what it is sent later when this is answered.
        let worker = state.worker(stream);
        state.hold_up(worker, vec![command]);
        state.questions.insert(question, Question { command, wait, copy, answers: Vec::new() });
        Ok(())
    }

    fn answers(&self, question: u64) -> (HipResult<()>, Vec<ChangesAnswer>) {
        let mut state = self.0.borrow_mut();
        state.is_fetching = true;
        let Some(Question { copy, answers, .. }) = state.questions.remove(&question) else {
            return (Err(HipError::UNKNOWN), Vec::new());
        };
        let was_refused = copy.is_some_and(|copy| state.was_refused(&[copy]));
        (if was_refused { Err(HipError::LAUNCH_FAILURE) } else { Ok(()) }, answers)
    }

    fn watch(&self, at: u64, len: usize, device: i32) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        let worker = state.worker_of(device);
        state.changes.iter_mut().skip(worker).take(1).for_each(|changes| changes.watch(at, len));
        Ok(())
    }

    fn begin_capture(&self, stream: u64) -> HipResult<()> {
        self.0.borrow_mut().recording = Some((stream, Vec::new()));
        Ok(())
    }

    fn end_capture(&self, stream: u64) -> HipResult<u64> {
        let mut state = self.0.borrow_mut();
        let Some((_, works)) = state.recording.take().filter(|(recorder, _)| *recorder == stream) else {
            return Err(HipError::ILLEGAL_STATE);
        };
        let graph = state.handle();
        state.graphs.insert(graph, works);
        Ok(graph)
    }

    fn instantiate(&self, graph: u64) -> HipResult<u64> {
        let mut state = self.0.borrow_mut();
        let works = state.graphs.get(&graph).cloned().ok_or(HipError::INVALID_VALUE)?;
        let exec = state.handle();
        state.execs.insert(exec, works);
        Ok(exec)
    }

    fn wait(&self, _wait: Wait) -> HipResult<()> {
        // The stream layer asks its caller to wait.
        Err(HipError::NOT_SUPPORTED)
    }

    fn can_watch(&self) -> bool {
        self.0.borrow().has_watches
    }

    fn hear(&self) {
        // The world decides what is heard, and when.
    }

    fn is_quiet(&self) -> bool {
        true
    }

    fn ahead(&self) -> (u64, u64) {
        // Every 16 commands the worker answers something.
        (self.0.borrow().count() as u64 % 16 * (AHEAD_REQUESTS_MAX / 12), 0)
    }

    fn flush(&self) -> HipResult<()> {
        Ok(())
    }

    fn wait_in_order(&self, wait: Wait) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        let worker = state.worker_of_wait(wait);
        let barrier = state.awaited(wait).into_iter().chain(state.held_up_by(worker)).collect();
        state.hold_up(worker, barrier);
        Ok(())
    }

    fn receive(&self, transfer: &Transfer) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        let Transfer { from, copy, stream, .. } = *transfer;
        let (haste, worker) = (state.haste & 15, state.worker(stream));
        state.reach(stream, haste);
        let bytes = state.read_device(worker, from, copy.size.width);
        let to = copy.dst.at.0;
        if state.host_place(to, bytes.len()).is_none() {
            state.passing = Some((to, bytes));
            return Ok(());
        }
        state.write_host_bytes(to, &bytes);
        state.carried_out(copy.dst.rows, &bytes);
        Ok(())
    }

    fn launch(&self, kernel: &KernelLaunch, arguments: &Arguments, stream: u64) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        let id = kernel.function.handle as usize;
        // Behind the one descriptor.
        let word =
            |at: usize| arguments.tail.get(8 + 8 * at..16 + 8 * at).and_then(|word| word.try_into().ok());
        let named = [word(0), word(1)].map(|word| word.map_or(0, u64::from_le_bytes));
        let known = state.sheets.get(&id).and_then(|sheet| sheet.known);
        let (to, from) = known.unwrap_or((named[0], named[1]));
        state.put_of(stream, id, Work::Kernel { to, from });
        Ok(())
    }

    fn copy(&self, transfer: &Transfer, inline: &[u8]) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        let Transfer { to, from, copy, stream, is_blocking, .. } = *transfer;
        let is_write = transfer.kind == kind::HOST_TO_DEVICE;
        let work = if is_write {
            Work::Write { to, bytes: inline.to_vec() }
        } else {
            Work::Copy { to, from, len: copy.size.width }
        };
        let command = state.put_of(stream, copy.dst.rows, work);
        if is_write && is_blocking {
            let worker = state.worker(stream);
            state.hold_up(worker, command.into_iter().collect());
        }
        Ok(())
    }

    fn copy_peer(&self, _copy: &MemcpyPeer) -> HipResult<()> {
        Err(HipError::NOT_SUPPORTED)
    }

    fn write(&self, to: u64, _from: Ptr, bytes: &[u8], stream: u64) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        let worker = state.worker(stream);
        state.learn(worker, to, bytes);
        state.put(stream, Work::Write { to, bytes: bytes.to_vec() }, None, None);
        Ok(())
    }

    fn fill(&self, to: u64, pattern: Pattern, count: usize, stream: u64) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        match pattern {
            Pattern::Word(value) => {
                let bytes = value.to_le_bytes().repeat(count);
                state.put_of(stream, value.wrapping_sub(FILLS) as usize, Work::Fill { to, bytes });
            }
            // Memory that kernels can reach from now on is zeroed.
            Pattern::Byte(value) => {
                state.put(stream, Work::Fill { to, bytes: vec![value; count] }, None, None);
            }
            Pattern::Half(_) => return Err(HipError::NOT_SUPPORTED),
        }
        Ok(())
    }

    fn record(&self, event: EventHandle, stream: u64, _is_shared: bool) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        if state.known_event(event, stream).is_some() {
            let command = state.put(stream, Work::Nothing, None, None);
            state.events.entry(event.wire()).and_modify(|(recorded, _)| *recorded = Some(command));
        }
        Ok(())
    }

    fn await_event(&self, event: EventHandle, stream: u64, _flags: u32) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        if let Some(recorded) = state.known_event(event, stream) {
            state.put(stream, Work::Nothing, None, recorded);
        }
        Ok(())
    }

    fn launch_graph(&self, exec: u64, stream: u64) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        let works = state.execs.get(&exec).cloned();
        if works.is_none() {
            state.note(Event::Unasked { what: format!("the graph {exec:#x}, which is no more") });
        }
        for (id, work) in works.unwrap_or_default() {
            state.put_of(stream, id, work);
        }
        Ok(())
    }

    fn free_async(&self, _ptr: Ptr, _stream: u64) -> HipResult<()> {
        Err(HipError::NOT_SUPPORTED)
    }

    fn destroy_stream(&self, stream: u64) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        match state.streams.get_mut(&stream).filter(|tail| !tail.is_destroyed) {
            Some(tail) => {
                tail.is_destroyed = true;
                state.free_streams.push(stream);
            }
            None => state.note(Event::Unasked { what: format!("the end of the stream {stream:#x}, again") }),
        }
        Ok(())
    }

    fn destroy_event(&self, event: EventHandle) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        match state.events.remove(&event.wire()) {
            Some(_) => state.free_events.push(event.wire()),
            None => state.note(Event::Unasked { what: format!("the end of {event:?}, again") }),
        }
        Ok(())
    }

    fn destroy_graph(&self, graph: u64) -> HipResult<()> {
        self.0.borrow_mut().graphs.remove(&graph);
        Ok(())
    }

    fn destroy_exec(&self, exec: u64) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        if state.execs.remove(&exec).is_none() {
            state.note(Event::Unasked { what: format!("the end of the graph {exec:#x}, again") });
        }
        Ok(())
    }
}
