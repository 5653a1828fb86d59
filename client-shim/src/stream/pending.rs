//! What each stream has pending, and each event: nothing, work whose outcome is decided, or open work.
//!
//! * **Open** work can still show the program something or fail: kernels, graphs, copies within the device or between devices, work on
//!   memory that exists on both sides, allocations and frees in the order of a stream.
//! * **Decided** work can do neither: copies to the device and fills whose ranges were checked here and whose bytes have been read, and
//!   records of events and waits for events that have nothing open before them.
//!
//! A synchronization waits for an answer only if what it covers has open work; decided work is waited for by the worker alone, before
//! it does what is sent later. Implicit order counts: work that comes behind open work of another stream is open itself.
//!
//! Work is numbered, and noted when it has been sent. A wait covers what was noted when the wait was about to be sent, and is over when
//! its answer has come: what other threads sent meanwhile has higher numbers. Notes of work that may be shared with other processes or
//! devices tell nothing; a program that has either is answered by the worker alone.
//!
//! Settled streams are known here, too: their work counts as finished by HIP's documentation, although nobody has waited for it. A
//! synchronous copy to the device has its bytes read when it returns, and so need not wait for the worker; but HIP says that it is over,
//! and with it all that its stream had before. Until something else is put on the stream, a query that has to ask waits instead, as the
//! program need not expect "not ready".

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use smallvec::SmallVec;

use super::order::{Order, legacy};
use super::watches::Watches;
use crate::convert::Event;
use crate::worker::{Wait, lock};

/// A value that is no stream's handle.
const NONE: u64 = u64::MAX;

/// Whether work can still show the program something, or fail, when its call has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It can do neither.
    Decided,
    /// It can do either.
    Open,
}

/// What a stream, an event or the device has pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// Nothing.
    Nothing,
    /// Only decided work.
    Decided,
    /// Open work.
    Open,
    /// What other devices or processes take part in, of which nothing is known.
    Unknown,
}

/// What a wait is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scope {
    /// The work of all streams of a device.
    Device(i32),
    /// The work of a stream.
    Stream(u64),
    /// What was before the record of an event on a stream.
    Record(u64, Mark),
}

/// The place of an event's record among the work of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Number of the record.
    number: u64,
    /// Number of the last open work before it; 0 if there was none.
    open: u64,
}

/// The work that a wait covers: that of the streams up to these numbers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Covered {
    streams: SmallVec<[(u64, u64); 2]>,
    /// The number up to which all work of all streams is covered; 0 if it is not.
    all: u64,
}

/// What the worker has told of the work of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// It is done. Whether it has failed is not said.
    Done,
    /// It is not done; the worker tells when something is that it comes behind.
    NotDone,
    /// Nothing.
    Nothing,
}

/// The notes about all streams.
#[derive(Debug)]
pub struct Pending {
    /// The stream on which open work was put last, if nothing was asked of the notes since then.
    open_on: AtomicU64,
    /// The stream on which decided work was put last, if nothing was asked since then and no open work was put on another stream.
    decided_on: AtomicU64,
    /// Whether anything is watched.
    is_watching: AtomicBool,
    /// Whether other devices or processes take part, so that the notes tell nothing.
    is_shared: AtomicBool,
    table: Mutex<Table>,
}

/// The notes about a stream: numbers of its work, 0 for none.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// The last number before the stream's first work; what has an earlier number is of another stream of this handle.
    since: u64,
    /// The last work.
    last: u64,
    /// The last open work.
    open: u64,
    /// The last work that is over: a wait for it was answered, or the worker waits for it before it does what is sent later.
    over: u64,
    /// The last work that counts as finished.
    settled: u64,
    /// The last work of which the worker has told that it is done. It may have failed.
    done: u64,
}

#[derive(Debug, Default)]
struct Table {
    /// The number of the last work.
    count: u64,
    /// In the order of the handles.
    streams: Vec<(u64, Line)>,
    /// Index of the stream that was used last.
    recent: usize,
    /// The number up to which all work is over.
    all_over: u64,
    /// The number up to which all work counts as finished.
    all_settled: u64,
    /// The last work of streams that were destroyed, and the last open work of such.
    gone: Line,
    watches: Watches,
}

impl Default for Pending {
    fn default() -> Self {
        Self {
            open_on: AtomicU64::new(NONE),
            decided_on: AtomicU64::new(NONE),
            is_watching: AtomicBool::new(false),
            is_shared: AtomicBool::new(false),
            table: Mutex::default(),
        }
    }
}

impl Pending {
    /// Notes that work has been sent for a stream.
    #[inline]
    pub(super) fn put(&self, order: &Order, stream: u64, outcome: Outcome) {
        // Nothing was asked since the last work of this stream, so that nobody can tell the two apart.
        let is_noted = self.open_on.load(Ordering::Relaxed) == stream
            || outcome == Outcome::Decided && self.decided_on.load(Ordering::Relaxed) == stream;
        if !is_noted {
            self.note(order, stream, outcome);
        }
    }

    /// Notes work as the first of its stream since the notes were asked, or since work of another stream.
    fn note(&self, order: &Order, stream: u64, outcome: Outcome) {
        let mut table = lock(&self.table);
        if table.put(order, stream, outcome) {
            self.open_on.store(stream, Ordering::Relaxed);
            if self.decided_on.load(Ordering::Relaxed) != stream {
                // Decided work of that stream may come behind this.
                self.decided_on.store(NONE, Ordering::Relaxed);
            }
        } else {
            self.decided_on.store(stream, Ordering::Relaxed);
        }
    }

    /// Notes that a synchronous call has put decided work on a stream and has returned: the stream's work counts as finished.
    pub(super) fn put_and_settle(&self, order: &Order, stream: u64) {
        let mut table = self.table();
        table.put(order, stream, Outcome::Decided);
        table.settle(order, stream);
    }

    /// Notes that an event has been recorded behind the work of a stream; returns the place of the record.
    pub(super) fn record(&self, order: &Order, stream: u64) -> Mark {
        let mut table = self.table();
        table.put(order, stream, Outcome::Decided);
        let line = table.line(stream);
        Mark { number: line.last, open: line.open }
    }

    /// Returns the notes for reading: work that is sent from now on gets new numbers.
    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        let table = lock(&self.table);
        self.open_on.store(NONE, Ordering::Relaxed);
        self.decided_on.store(NONE, Ordering::Relaxed);
        table
    }

    /// Notes that a synchronous call on a stream has returned.
    pub(super) fn settle(&self, order: &Order, stream: u64) {
        self.table().settle(order, stream);
    }

    /// Notes that a call that waits for all streams of a device has returned.
    pub(super) fn settle_all(&self, order: &Order, device: i32) {
        let mut table = self.table();
        if !self.is_shared.load(Ordering::Relaxed) {
            table.all_settled = table.count;
            return;
        }
        for (stream, line) in &mut table.streams {
            if order.device_of(*stream) == device {
                line.settled = line.last;
            }
        }
    }

    /// Returns whether a synchronous call followed all work in a scope.
    pub(super) fn is_settled(&self, order: &Order, scope: Scope) -> bool {
        let table = self.table();
        let is_settled = |line: &Line, number| number <= line.settled.max(table.all_settled);
        match scope {
            Scope::Device(device) => {
                let mut own = table.streams.iter().filter(|(stream, _)| order.device_of(*stream) == device);
                own.all(|(_, line)| is_settled(line, line.last))
            }
            Scope::Stream(stream) => {
                table.included(order, stream).all(|(_, line)| is_settled(line, line.last))
            }
            Scope::Record(stream, mark) => match table.find(stream) {
                Some(line) if line.since < mark.number => is_settled(line, mark.number),
                _ => mark.number <= table.all_settled,
            },
        }
    }

    /// Returns what is pending in a scope, and the work that a wait covers which is sent after this.
    pub(super) fn look(&self, order: &Order, scope: Scope) -> (State, Covered) {
        let table = self.table();
        let is_shared = self.is_shared.load(Ordering::Relaxed);
        let (state, covered) = table.look(order, scope, is_shared);
        (if is_shared { State::Unknown } else { state }, covered)
    }

    /// Returns whether other streams have work that new work on a stream comes behind.
    pub(super) fn others_before(&self, order: &Order, stream: u64) -> bool {
        let table = lock(&self.table);
        let is_pending = |line: &Line| table.state(line, line.last, line.open) != State::Nothing;
        let mut streams = table.streams.iter();
        streams.any(|(other, line)| *other != stream && is_pending(line) && order.is_behind(stream, *other))
    }

    /// Notes that a wait is over: it was answered with success, or the worker waits for the work before it does what is sent later.
    pub(super) fn end(&self, covered: &Covered) {
        let mut table = lock(&self.table);
        table.all_over = table.all_over.max(covered.all);
        for (stream, number) in &covered.streams {
            if let Some(line) = table.find_mut(*stream).filter(|line| line.since < *number) {
                line.over = line.over.max(*number);
            }
        }
    }

    // ---- what the worker tells ---------------------------------------------------------------------------------------

    /// Returns what the worker has told of the work that a query covers.
    pub(super) fn said(&self, query: Wait, covered: &Covered) -> Said {
        let table = lock(&self.table);
        let is_done = |(stream, number): &(u64, u64)| {
            let line = table.find(*stream).filter(|line| line.since < *number);
            line.is_some_and(|line| *number <= line.done.max(line.over).max(table.all_over))
        };
        if !covered.streams.is_empty() && covered.streams.iter().all(is_done) {
            return Said::Done;
        }
        if table.watches.holds_up(query, &covered.streams) { Said::NotDone } else { Said::Nothing }
    }

    /// Begins to watch what a query is about; returns the number of the watch. The worker need not have been asked yet.
    pub(super) fn begin_watch(&self, query: Wait, covered: &Covered) -> Option<u64> {
        let mut table = lock(&self.table);
        let number = table.watches.begin(query, &covered.streams);
        self.is_watching.store(!table.watches.is_empty(), Ordering::Release);
        number
    }

    /// Notes that the worker will tell of a watch, unless it has.
    pub(super) fn open_watch(&self, number: u64) {
        lock(&self.table).watches.open(number);
    }

    /// Ends a watch; its work is done if `is_done` says so. Has no effect for one that is not known.
    pub(super) fn end_watch(&self, number: u64, is_done: bool) {
        let mut table = lock(&self.table);
        let covered = table.watches.end(number).filter(|_| is_done);
        for (stream, number) in covered.into_iter().flatten() {
            if let Some(line) = table.find_mut(stream).filter(|line| line.since < number) {
                line.done = line.done.max(number);
            }
        }
        self.is_watching.store(!table.watches.is_empty(), Ordering::Release);
    }

    /// Ends the watches of an event, which is recorded anew or destroyed.
    pub(super) fn forget_event(&self, event: Event) {
        if self.is_watching.load(Ordering::Acquire) {
            lock(&self.table).watches.forget_event(event);
        }
    }

    /// Notes that other devices are used, or memory of other processes: from now on the worker is asked in any case.
    pub(super) fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// Removes a stream that has been destroyed.
    pub(super) fn forget(&self, stream: u64, order: &Order) {
        let mut table = self.table();
        table.watches.forget_stream(stream);
        let Ok(place) = table.streams.binary_search_by_key(&stream, |(other, _)| *other) else { return };
        let (_, line) = table.streams.remove(place);
        table.recent = 0;
        let state = table.state(&line, line.last, line.open);
        if state == State::Nothing {
            return;
        }
        let is_open = state == State::Open;
        table.gone.last = table.gone.last.max(line.last);
        if is_open {
            table.gone.open = table.gone.open.max(line.open);
        }
        if order.is_blocking(stream) {
            // The legacy stream waits for it still.
            table.count += 1;
            let number = table.count;
            let legacy = table.line(legacy(order.device_of(stream)));
            legacy.last = number;
            if is_open {
                legacy.open = number;
            }
        }
    }

    /// Returns whether streams that were destroyed have left open work.
    pub(super) fn has_orphans(&self) -> bool {
        let table = lock(&self.table);
        table.state(&table.gone, table.gone.last, table.gone.open) == State::Open
    }

    /// Forgets all work: the device was reset.
    pub(super) fn clear(&self) {
        let mut table = self.table();
        let count = table.count;
        // Watches are numbered on: the worker may still tell of those.
        let mut watches = std::mem::take(&mut table.watches);
        watches.clear();
        *table = Table { count, all_over: count, all_settled: count, watches, ..Table::default() };
    }
}

impl Table {
    fn find(&self, stream: u64) -> Option<&Line> {
        let found = self.streams.binary_search_by_key(&stream, |(other, _)| *other).ok()?;
        self.streams.get(found).map(|(_, line)| line)
    }

    fn find_mut(&mut self, stream: u64) -> Option<&mut Line> {
        let found = self.streams.binary_search_by_key(&stream, |(other, _)| *other).ok()?;
        self.streams.get_mut(found).map(|(_, line)| line)
    }

    /// Returns the notes about a stream, for changing.
    fn line(&mut self, stream: u64) -> &mut Line {
        if self.streams.get(self.recent).is_none_or(|(other, _)| *other != stream) {
            self.recent = self.place(stream);
        }
        &mut self.streams[self.recent].1
    }

    /// Returns the index of a stream, which is added if it is new. Its first work is that which is being numbered.
    fn place(&mut self, stream: u64) -> usize {
        self.streams.binary_search_by_key(&stream, |(other, _)| *other).unwrap_or_else(|place| {
            let line = Line { since: self.count.saturating_sub(1), ..Line::default() };
            self.streams.insert(place, (stream, line));
            place
        })
    }

    /// Notes work; returns whether it is open, by itself or because of what it comes behind.
    fn put(&mut self, order: &Order, stream: u64, outcome: Outcome) -> bool {
        self.count += 1;
        let number = self.count;
        // What the stream itself has is noted there.
        let comes_behind = |other: &u64| *other != stream && order.is_behind(stream, *other);
        let is_open = outcome == Outcome::Open
            || self.streams.iter().any(|(other, line)| self.is_open(line) && comes_behind(other));
        let line = self.line(stream);
        line.last = number;
        if is_open {
            line.open = number;
        }
        is_open
    }

    fn is_open(&self, line: &Line) -> bool {
        line.open > line.over.max(self.all_over)
    }

    /// Returns the notes about a stream and those that a wait for it includes.
    fn included(&self, order: &Order, stream: u64) -> impl Iterator<Item = &(u64, Line)> {
        self.streams.iter().filter(move |(other, _)| order.includes(stream, *other))
    }

    fn settle(&mut self, order: &Order, stream: u64) {
        for (other, line) in &mut self.streams {
            if order.includes(stream, *other) {
                line.settled = line.last;
            }
        }
    }

    /// Returns what is pending up to these numbers: of the last work, and of the last open work.
    fn state(&self, line: &Line, last: u64, open: u64) -> State {
        let over = line.over.max(self.all_over);
        match (open > over, last > over) {
            (true, _) => State::Open,
            (false, true) => State::Decided,
            (false, false) => State::Nothing,
        }
    }

    /// Returns what is pending in a scope, and what a wait covers. With `is_shared` there may be other devices.
    fn look(&self, order: &Order, scope: Scope, is_shared: bool) -> (State, Covered) {
        let mut covered = Covered::default();
        let state = match scope {
            Scope::Device(device) if is_shared => {
                let own = self.streams.iter().filter(|(stream, _)| order.device_of(*stream) == device);
                covered.streams.extend(own.map(|(stream, line)| (*stream, line.last)));
                State::Unknown
            }
            Scope::Device(_) => {
                covered.all = self.count;
                let lines = self.streams.iter().map(|(_, line)| line).chain([&self.gone]);
                lines.map(|line| self.state(line, line.last, line.open)).fold(State::Nothing, State::max)
            }
            Scope::Stream(stream) => {
                let mut state = State::Nothing;
                for (other, line) in self.included(order, stream) {
                    state = state.max(self.state(line, line.last, line.open));
                    covered.streams.push((*other, line.last));
                }
                state
            }
            Scope::Record(stream, mark) => {
                // What a destroyed stream had is over when everything is.
                let line = self.find(stream).filter(|line| line.since < mark.number);
                covered.streams.extend(line.map(|_| (stream, mark.number)));
                self.state(line.unwrap_or(&Line::default()), mark.number, mark.open)
            }
        };
        (state, covered)
    }
}
