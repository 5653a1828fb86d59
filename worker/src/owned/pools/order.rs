//! Determines which frees precede later work of a stream, because of events and of the null stream.
//!
//! Frees are numbered in the order of their calls. A stream's [`Clock`] says of each stream up to which free its later work is
//! ordered behind that stream's work. Recording an event keeps the clock of the stream, waiting for the event adds that clock to
//! the waiting stream's. Between the null stream and the blocking streams the order holds without events.
//!
//! Everything here may know less than is so, never more: then memory is taken from the device instead of used again. Nothing is
//! kept while pools hold no memory, and never more than [`CLOCK_MAX`] streams of at most [`EVENTS_MAX`] events.

use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of streams in a clock.
const CLOCK_MAX: usize = 64;
/// Maximum number of events, and of streams, whose clocks are kept.
const EVENTS_MAX: usize = 1024;

/// For each stream, the sequence number of the last free on it that comes before something.
type Clock = BTreeMap<u64, u64>;

/// Handle of the legacy null stream.
const NULL_STREAM: u64 = 0;

#[derive(Debug, Default)]
pub(super) struct FreeOrder {
    made: u64,
    streams: BTreeMap<u64, Clock>,
    /// Streams with a clock that synchronize with the null stream.
    blocking: BTreeSet<u64>,
    events: BTreeMap<u64, Clock>,
    /// Events that other sessions may record.
    shared: BTreeSet<u64>,
}

fn merge(into: &mut Clock, from: &Clock) {
    for (&stream, &free) in from {
        if into.len() < CLOCK_MAX || into.contains_key(&stream) {
            let known = into.entry(stream).or_default();
            *known = free.max(*known);
        }
    }
}

impl FreeOrder {
    /// Returns the frees that precede a command enqueued on `stream` now.
    fn clock(&self, stream: u64, is_blocking: bool) -> Clock {
        let mut clock = self.streams.get(&stream).cloned().unwrap_or_default();
        if stream == NULL_STREAM {
            let others = self.streams.iter().filter(|(other, _)| self.blocking.contains(other));
            others.for_each(|(_, other)| merge(&mut clock, other));
        } else if is_blocking && let Some(null) = self.streams.get(&NULL_STREAM) {
            merge(&mut clock, null);
        }
        clock
    }

    fn set_clock(&mut self, stream: u64, is_blocking: bool, clock: Clock) {
        if self.streams.len() < EVENTS_MAX || self.streams.contains_key(&stream) {
            self.streams.insert(stream, clock);
            if is_blocking {
                self.blocking.insert(stream);
            }
        }
    }

    /// Notes a free in the order of `stream`; returns its number.
    pub(super) fn free(&mut self, stream: u64, is_blocking: bool) -> u64 {
        self.made += 1;
        let mut clock = self.clock(stream, is_blocking);
        merge(&mut clock, &Clock::from([(stream, self.made)]));
        self.set_clock(stream, is_blocking, clock);
        self.made
    }

    /// Returns whether a free of stream `other` precedes work that is enqueued on `stream` now.
    pub(super) fn is_behind(&self, stream: u64, is_blocking: bool, other: u64, free: u64) -> bool {
        self.clock(stream, is_blocking).get(&other).is_some_and(|&known| known >= free)
    }

    /// Notes that an event is recorded on `stream`.
    pub(super) fn record(&mut self, event: u64, stream: u64, is_blocking: bool) {
        self.events.remove(&event);
        let clock = self.clock(stream, is_blocking);
        if clock.is_empty() {
            return;
        }
        if self.events.len() < EVENTS_MAX && !self.shared.contains(&event) {
            self.events.insert(event, clock.clone());
        }
        self.set_clock(stream, is_blocking, clock);
    }

    /// Notes that `stream` waits for an event.
    pub(super) fn wait(&mut self, stream: u64, is_blocking: bool, event: u64) {
        let mut clock = self.clock(stream, is_blocking);
        if let Some(recorded) = self.events.get(&event) {
            merge(&mut clock, recorded);
        }
        if !clock.is_empty() {
            self.set_clock(stream, is_blocking, clock);
        }
    }

    /// Notes that another session may record the event from now on.
    pub(super) fn share_event(&mut self, event: u64) {
        self.events.remove(&event);
        self.shared.insert(event);
    }

    /// Removes a destroyed event.
    pub(super) fn forget_event(&mut self, event: u64) {
        self.events.remove(&event);
        self.shared.remove(&event);
    }

    /// Removes a destroyed stream.
    pub(super) fn forget_stream(&mut self, stream: u64) {
        self.streams.remove(&stream);
        self.blocking.remove(&stream);
    }

    /// Removes all clocks, because no pool holds memory.
    pub(super) fn clear(&mut self) {
        self.streams.clear();
        self.blocking.clear();
        self.events.clear();
    }
}
