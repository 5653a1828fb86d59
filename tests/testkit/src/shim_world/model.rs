//! What HIP's rules say of the order of everything that happened in a trace: a fold over its events.
//!
//! Each piece of work, each host function and each write of the program is an item. An item comes *behind* others by the order of its
//! stream, by the rule of the legacy null stream, by events, by what its thread did and waited for before, and by gates. Where calls of
//! several threads overlap, HIP leaves the order open: what an item is certainly behind (`min`) and what it may be behind (`max`)
//! are kept apart.

use super::script::{Place, StreamKind, Target, WorldStream};
use super::trace::{Ask, Event, ITEMS_MAX, ItemKind, Shows, Trace, Who};

/// A set of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Items([u64; ITEMS_MAX.div_ceil(64)]);

impl Items {
    pub(super) fn add(&mut self, item: usize) {
        if let Some(word) = self.0.get_mut(item / 64) {
            *word |= 1 << (item % 64);
        }
    }

    fn remove(&mut self, item: usize) {
        if let Some(word) = self.0.get_mut(item / 64) {
            *word &= !(1 << (item % 64));
        }
    }

    pub(super) fn has(&self, item: usize) -> bool {
        self.0.get(item / 64).is_some_and(|word| word >> (item % 64) & 1 == 1)
    }

    pub(super) fn join(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
    }

    fn meet(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= other);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(index, word)| {
            let mut word = *word;
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
                word &= word - 1;
                Some(index * 64 + bit)
            })
        })
    }
}

/// What comes before something: certainly, and possibly.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Before {
    pub(super) min: Items,
    pub(super) max: Items,
}

impl Before {
    fn join(&mut self, other: &Self) {
        self.min.join(&other.min);
        self.max.join(&other.max);
    }

    fn add(&mut self, item: usize) {
        self.min.add(item);
        self.max.add(item);
    }
}

/// The state of an item.
#[derive(Debug, Clone, Default)]
pub(super) struct ItemState {
    pub(super) before: Before,
    pub(super) kind: Option<ItemKind>,
    /// Whether it has begun, for functions.
    pub(super) has_begun: bool,
    pub(super) is_done: bool,
    /// Whether another worker has it, which does nothing later before it.
    pub(super) is_sent: bool,
    /// Whether it was refused, so that it must not be executed.
    pub(super) has_failed: bool,
    /// Whether it has left an error that nobody was told.
    pub(super) has_error: bool,
    /// Whether its call has returned.
    pub(super) has_returned: bool,
    /// For functions: what is before their end.
    end: Before,
    /// The values that it wrote.
    pub(super) wrote: Vec<(Place, u32)>,
}

#[derive(Debug, Clone, Default)]
struct Recording {
    before: Before,
    /// Number of records that are being made, and of all that began.
    open: usize,
    begun: usize,
    /// Whether records overlapped, so that nobody knows which was the last.
    is_muddled: bool,
}

impl Recording {
    /// Returns the number of the last record; one that there is not while records are being made.
    fn certain_number(&self) -> usize {
        if self.open == 0 { self.begun } else { usize::MAX }
    }
}

/// A call that a thread is in.
#[derive(Debug, Clone)]
pub(super) struct Current {
    pub(super) ask: Ask,
    /// What the call has to wait for or follow, by what had returned when it began.
    pub(super) before: Before,
    /// The number of records of the event that had begun when the call began.
    begun: usize,
    /// Whether everything that the call may ask for was done when it began, and the worker had nothing to do.
    pub(super) was_done: bool,
    /// Number of calls that had put something on streams when it began.
    pub(super) puts: usize,
}

/// The model's state after some events.
pub(super) struct Model<'t> {
    pub(super) trace: &'t Trace,
    pub(super) items: Vec<ItemState>,
    threads: Vec<Before>,
    streams: Vec<Before>,
    recordings: Vec<Recording>,
    gates: Vec<Before>,
    pub(super) current: Vec<Option<Current>>,
    /// For each worker, items behind which all work comes that it is given: of synchronous calls that returned. It is no work of other
    /// streams, so that waits for these, and their functions, need not come behind it.
    over: [Items; 2],
    /// Number of calls that put something on streams.
    pub(super) puts: usize,
    /// Streams that have had records of events or waits for them, which are no items.
    marked: Vec<bool>,
    /// For each word the items that write it.
    pub(super) writers: Vec<(Place, Vec<usize>)>,
}

impl<'t> Model<'t> {
    pub(super) fn new(trace: &'t Trace) -> Self {
        let mut items = vec![ItemState::default(); trace.items.len()];
        let mut writers: Vec<(Place, Vec<usize>)> = Vec::new();
        for (number, (state, item)) in items.iter_mut().zip(&trace.items).enumerate() {
            state.kind = Some(item.kind);
            for place in &item.writes {
                match writers.iter_mut().find(|(other, _)| other == place) {
                    Some((_, all)) => all.push(number),
                    None => writers.push((*place, vec![number])),
                }
            }
        }
        let mut start = Items::default();
        for (number, (place, value)) in trace.start.iter().enumerate() {
            start.add(number);
            if let Some(state) = items.get_mut(number) {
                state.is_done = true;
                state.wrote.push((*place, *value));
            }
        }
        let start = Before { min: start, max: start };
        Self {
            trace,
            items,
            threads: vec![start; 8],
            streams: vec![Before::default(); trace.streams.len()],
            recordings: vec![Recording::default(); trace.events_made],
            gates: vec![Before::default(); 8],
            current: vec![None; 8],
            over: Default::default(),
            puts: 0,
            marked: vec![false; trace.streams.len()],
            writers,
        }
    }

    /// Returns the items of a set and everything that functions among them have seen.
    pub(super) fn close(&self, set: &Items) -> Items {
        let mut closed = *set;
        loop {
            let before = closed;
            for item in before.iter() {
                if let Some(state) =
                    self.items.get(item).filter(|state| state.kind == Some(ItemKind::Function))
                {
                    closed.join(&state.end.min);
                }
            }
            if closed == before {
                return closed;
            }
        }
    }

    fn stream(&self, stream: usize) -> WorldStream {
        let unknown = WorldStream { kind: StreamKind::Blocking, device: 0 };
        self.trace.streams.get(stream).copied().unwrap_or(unknown)
    }

    /// Returns the number of the worker that has a stream.
    pub(super) fn worker_of(&self, stream: usize) -> usize {
        if self.trace.are_apart { self.stream(stream).device as usize } else { 0 }
    }

    /// Joins what the streams have for which `is_fit`.
    fn join_streams(&self, is_fit: impl Fn(usize) -> bool) -> Before {
        let mut all = Before::default();
        for (stream, before) in self.streams.iter().enumerate() {
            if is_fit(stream) {
                all.join(before);
            }
        }
        all
    }

    /// Returns what new work on a stream comes behind.
    fn behind(&self, stream: usize) -> Before {
        self.join_streams(|other| self.covers(stream, other) || self.covers(other, stream))
    }

    /// Returns whether a wait for a stream waits for what another one has.
    fn covers(&self, stream: usize, other: usize) -> bool {
        let (own, others) = (self.stream(stream), self.stream(other));
        let is_joined = own.kind == StreamKind::Legacy && others.kind != StreamKind::NonBlocking;
        stream == other || (is_joined && own.device == others.device)
    }

    /// Returns what a wait for a stream waits for.
    fn covered(&self, stream: usize) -> Before {
        self.join_streams(|other| self.covers(stream, other))
    }

    /// Returns whether a wait tells the errors of what is on a stream. One for an event tells those of the stream that it was recorded
    /// on, which nobody needs to rely on.
    pub(super) fn tells_of(&self, target: Target, stream: usize) -> bool {
        match target {
            Target::Device(device) => self.stream(stream).device == device,
            Target::Stream(target) => self.covers(target, stream),
            Target::Event(_) => false,
        }
    }

    /// Returns what a wait or query of this target asks for now.
    pub(super) fn asked(&self, target: Target) -> Before {
        match target {
            Target::Device(device) => {
                let mut all = self.join_streams(|stream| self.stream(stream).device == device);
                // What is launched there beside a stream of another device, it may wait for.
                let beside =
                    self.trace.items.iter().enumerate().filter(|(_, item)| item.beside == Some(device));
                beside.for_each(|(item, _)| all.max.add(item));
                all
            }
            Target::Stream(stream) => self.covered(stream),
            Target::Event(event) => {
                let mut before = self.recordings.get(event).map_or_else(Before::default, |all| all.before);
                // Each record that has begun may be the one that is asked for.
                let open = self.current.iter().flatten().filter(|current| current.ask.records(event));
                open.for_each(|current| before.min.meet(&current.before.min));
                before
            }
        }
    }

    /// Returns what a call may wait for now.
    pub(super) fn may_wait_for(&self, ask: &Ask) -> Items {
        match ask {
            Ask::Work { stream, may_wait: true, items, .. } => {
                let mut all = self.behind(*stream).max;
                items.iter().for_each(|item| all.add(*item));
                all
            }
            Ask::Wait(target) | Ask::Query(target) => self.asked(*target).max,
            _ => Items::default(),
        }
    }

    /// Returns whether all items of a set are done, apart from those that failed.
    pub(super) fn are_done(&self, set: &Items) -> bool {
        set.iter().all(|item| {
            self.items
                .get(item)
                .is_none_or(|state| state.is_done || state.has_failed || state.kind == Some(ItemKind::Write))
        })
    }

    /// Returns what a reader or writer comes behind.
    pub(super) fn before(&self, who: Who) -> Items {
        match who {
            Who::Thread(thread) => {
                self.threads.get(thread).map_or(Items::default(), |before| self.close(&before.min))
            }
            Who::Function(item) => {
                self.items.get(item).map_or(Items::default(), |state| self.close(&state.end.min))
            }
        }
    }

    /// Returns what an item comes behind.
    pub(super) fn before_item(&self, item: usize) -> Items {
        self.items.get(item).map_or(Items::default(), |state| self.close(&state.before.min))
    }

    fn who_mut(&mut self, who: Who) -> Option<&mut Before> {
        match who {
            Who::Thread(thread) => self.threads.get_mut(thread),
            Who::Function(item) => self.items.get_mut(item).map(|state| &mut state.end),
        }
    }

    /// Takes an event into account; for calls that end, after they were judged.
    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::Began { thread, ask, is_idle } => self.began(*thread, ask, *is_idle),
            Event::Ended { thread, outcome, .. } => {
                let is_ok = *outcome == super::trace::Outcome::Ok;
                if let Some(current) = self.current.get_mut(*thread).and_then(Option::take) {
                    self.ended(*thread, &current, is_ok);
                }
            }
            Event::Executed { item, writes, .. } => {
                if let Some(state) = self.items.get_mut(*item) {
                    state.is_done = true;
                    state.wrote.clone_from(writes);
                }
            }
            Event::Sent { item } => {
                if let Some(state) = self.items.get_mut(*item) {
                    state.is_sent = true;
                }
            }
            Event::Refused { item } => {
                if let Some(state) = self.items.get_mut(*item) {
                    state.has_failed = true;
                }
            }
            Event::Erred { item } | Event::Told { item } => {
                if let Some(state) = self.items.get_mut(*item) {
                    state.has_error = matches!(event, Event::Erred { .. });
                }
            }
            Event::FunctionBegan { item } => {
                if let Some(state) = self.items.get_mut(*item) {
                    state.has_begun = true;
                    state.end = state.before;
                }
            }
            Event::FunctionEnded { item } => {
                if let Some(state) = self.items.get_mut(*item) {
                    state.is_done = true;
                }
            }
            Event::Wrote { who, item, place, value } => {
                let before = self.who_mut(*who).map(|before| {
                    let old = *before;
                    before.add(*item);
                    old
                });
                if let Some(state) = self.items.get_mut(*item) {
                    state.before = before.unwrap_or_default();
                    state.is_done = true;
                    state.wrote.push((*place, *value));
                }
            }
            Event::Opened { who: Some(who), gate } => {
                let before = self.who_mut(*who).map(|before| *before).unwrap_or_default();
                if let Some(gate) = self.gates.get_mut(*gate) {
                    gate.join(&before);
                }
            }
            Event::Passed { item, gate } => {
                let opened = self.gates.get(*gate).copied().unwrap_or_default();
                if let Some(state) = self.items.get_mut(*item) {
                    state.end.join(&opened);
                }
            }
            Event::Unasked { .. }
            | Event::Waits { .. }
            | Event::Answered { .. }
            | Event::Stale { .. }
            | Event::Read { .. }
            | Event::Opened { .. }
            | Event::Still { .. } => {}
        }
    }

    fn began(&mut self, thread: usize, ask: &Ask, is_idle: bool) {
        if !matches!(ask, Ask::Wait(_) | Ask::Query(_)) {
            self.puts += 1;
        }
        if let Ask::Record { stream, .. } | Ask::Await { stream, .. } = ask
            && let Some(is_marked) = self.marked.get_mut(*stream)
        {
            *is_marked = true;
        }
        let own = self.threads.get(thread).copied().unwrap_or_default();
        let mut current =
            Current { ask: ask.clone(), before: own, begun: 0, was_done: true, puts: self.puts };
        match ask {
            Ask::Work { stream, items, .. } => {
                let mut before = self.behind(*stream);
                before.join(&own);
                let over = self.over.get(self.worker_of(*stream)).copied().unwrap_or_default();
                for item in items {
                    if let Some(state) = self.items.get_mut(*item) {
                        state.before.join(&before);
                        if state.kind != Some(ItemKind::Function) {
                            state.before.min.join(&over);
                        }
                    }
                    before.add(*item);
                }
                // Whoever begins before the call has returned may come behind it or not.
                if let Some(stream) = self.streams.get_mut(*stream) {
                    stream.max.join(&before.max);
                }
                current.before = before;
            }
            Ask::Wait(target) | Ask::Query(target) => {
                if let Target::Event(event) = target
                    && let Some(recording) = self.recordings.get(*event)
                {
                    current.begun = recording.certain_number();
                }
                let asked = self.asked(*target);
                let puts = |current: &Option<Current>| {
                    current
                        .as_ref()
                        .is_some_and(|current| !matches!(current.ask, Ask::Wait(_) | Ask::Query(_)))
                };
                let is_marked = self.marked.iter().any(|is_marked| *is_marked);
                current.was_done =
                    is_idle && !is_marked && self.are_done(&asked.max) && !self.current.iter().any(puts);
                current.before = asked;
            }
            Ask::Record { event, stream } => {
                current.before = self.behind(*stream);
                current.before.join(&own);
                if let Some(stream) = self.streams.get_mut(*stream) {
                    stream.max.join(&current.before.max);
                }
                // The stream layer keeps the records of one event in order, also on different streams.
                if let Some(recording) = self.recordings.get(*event) {
                    current.before.max.join(&recording.before.max);
                }
                if let Some(stream) = self.streams.get_mut(*stream) {
                    stream.max.join(&current.before.max);
                }
                if let Some(recording) = self.recordings.get_mut(*event) {
                    recording.open += 1;
                    recording.begun += 1;
                    recording.is_muddled = recording.open > 1;
                    recording.before.max.join(&current.before.max);
                }
                // Whoever asks for the event meanwhile may be told of this record.
                let asks = self.current.iter_mut().flatten().filter(|other| other.ask.asks_for(*event));
                asks.for_each(|other| other.before.min.meet(&current.before.min));
            }
            Ask::Await { event, stream } => {
                if let Some(recording) = self.recordings.get(*event) {
                    current.begun = recording.certain_number();
                    current.before = recording.before;
                    current.before.max.join(&self.behind(*stream).max);
                    if let Some(stream) = self.streams.get_mut(*stream) {
                        stream.max.join(&current.before.max);
                    }
                }
            }
            Ask::End => self.marked.fill(true),
            Ask::Nothing => {}
        }
        if let Some(place) = self.current.get_mut(thread) {
            *place = Some(current);
        }
    }

    /// Returns what is certain of an event for a call that began when so many records had begun.
    fn certain(&self, event: usize, begun: usize) -> Option<Before> {
        let recording = self.recordings.get(event)?;
        let is_certain = recording.open == 0 && recording.begun == begun && !recording.is_muddled;
        is_certain.then_some(recording.before)
    }

    fn ended(&mut self, thread: usize, current: &Current, is_ok: bool) {
        let Current { ask, before, begun, .. } = current;
        match ask {
            Ask::Work { stream, items, shows, .. } => {
                // Calls that began meanwhile may have come first.
                let mut maybe = self.behind(*stream).max;
                items.iter().for_each(|item| maybe.remove(*item));
                for item in items {
                    if let Some(state) = self.items.get_mut(*item) {
                        state.before.max.join(&maybe);
                        state.has_returned = true;
                    }
                }
                // A call that fails has not put on its stream what was refused.
                let mut put = *before;
                for item in items {
                    if self.items.get(*item).is_some_and(|state| state.has_failed) {
                        put.min.remove(*item);
                        put.max.remove(*item);
                    }
                }
                let is_put = items.iter().any(|item| put.max.has(*item));
                if let (true, Some(stream)) = (is_put, self.streams.get_mut(*stream)) {
                    stream.join(&put);
                    stream.max.join(&maybe);
                }
                if !is_ok {
                    return;
                }
                if matches!(shows, Shows::Later | Shows::All) {
                    let worker = self.worker_of(*stream);
                    self.over.iter_mut().skip(worker).take(1).for_each(|over| over.join(&before.min));
                }
                if let Some(own) = self.threads.get_mut(thread) {
                    match shows {
                        Shows::All => own.join(before),
                        Shows::Own | Shows::Later => items.iter().for_each(|item| own.add(*item)),
                        Shows::Nothing => {}
                    }
                }
            }
            Ask::Wait(target) | Ask::Query(target) => {
                let seen = match target {
                    Target::Event(event) => self.certain(*event, *begun),
                    _ => Some(*before),
                };
                if let (true, Some(seen), Some(own)) = (is_ok, seen, self.threads.get_mut(thread)) {
                    own.join(&seen);
                }
            }
            Ask::Record { event, stream } => {
                let mut maybe = self.behind(*stream).max;
                if let Some(recording) = self.recordings.get(*event) {
                    maybe.join(&recording.before.max);
                }
                if let Some(stream) = self.streams.get_mut(*stream) {
                    // The record is work of the stream, which waits for it like for any other.
                    stream.max.join(&maybe);
                    if is_ok {
                        stream.join(before);
                    }
                }
                if let Some(recording) = self.recordings.get_mut(*event) {
                    recording.open -= 1;
                    if is_ok {
                        if recording.is_muddled || recording.open > 0 {
                            // Another one may be the later one; of the first that end, nobody knows what it comes behind.
                            recording.before.min.meet(&before.min);
                        } else {
                            recording.before.min = before.min;
                        }
                        recording.before.max.join(&maybe);
                        recording.before.max.join(&before.max);
                    }
                }
            }
            Ask::Await { event, stream } => {
                let certain = self.certain(*event, *begun);
                let mut maybe = self.behind(*stream).max;
                if let Some(recording) = self.recordings.get(*event) {
                    maybe.join(&recording.before.max);
                }
                if let (true, Some(stream)) = (is_ok, self.streams.get_mut(*stream)) {
                    if let Some(certain) = certain {
                        stream.join(&certain);
                    }
                    stream.max.join(&maybe);
                }
            }
            Ask::End | Ask::Nothing => {}
        }
    }

    /// Returns the items that can be what a reader sees in a word: those that it does not come before, and that nothing overwrote
    /// for it. `before` is what the reader comes behind, `reader` its own item, if it has one.
    pub(super) fn visible(&self, place: Place, before: &Items, reader: Option<usize>) -> Vec<usize> {
        let writers = self.writers.iter().find(|(other, _)| *other == place);
        let writers = writers.map(|(_, writers)| writers.as_slice()).unwrap_or_default();
        let exists = |item: usize| {
            let state = self.items.get(item);
            // Writes of the program are items from the beginning of the trace, but only happen later.
            state.is_some_and(|state| {
                !state.has_failed && (state.is_done || state.before.min != Items::default())
            })
        };
        let writers: Vec<usize> = writers.iter().copied().filter(|item| exists(*item)).collect();
        let is_later =
            |item: usize| reader.is_some_and(|reader| item == reader || self.before_item(item).has(reader));
        let is_overwritten = |item: usize| {
            writers
                .iter()
                .any(|other| *other != item && before.has(*other) && self.before_item(*other).has(item))
        };
        writers.iter().copied().filter(|item| !is_later(*item) && !is_overwritten(*item)).collect()
    }
}
