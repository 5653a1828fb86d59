//! Tracks which uses of mirrored memory may still be in progress.
//!
//! A use is a launch, or a copy or set in place, on a stream. Uses are numbered. What a stream or an event comes after is a
//! clock: for each stream, the number of the last use that is over when the stream gets there or the event has happened. What
//! nothing is known of counts as being under way, which costs one fetch too many and nothing else.
//!
//! Threads may launch while others wait. So a clock is read before the worker is asked to wait, and a use is announced before it is sent,
//! so that nobody takes the memory for idle, and begins when it was sent: the clocks that others read in between are of requests that
//! may have left before it.

use std::collections::{BTreeMap, HashMap};

/// For each stream, the number of the last use that is included.
pub(super) type Clock = BTreeMap<u64, u64>;

/// The uses of mirrored memory since the last synchronisation with all of them.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// The number of the last use.
    count: u64,
    /// Number of uses that are announced and have not begun.
    announced: usize,
    /// For each stream with uses that may be in progress, the last of them.
    open: Clock,
    /// Uses that each stream follows because it waited for events.
    streams: HashMap<u64, Clock>,
    /// Uses that each event followed when it was last recorded.
    events: HashMap<u64, Clock>,
}

impl Uses {
    /// Returns whether all uses have finished, and none is announced.
    pub(super) fn are_over(&self) -> bool {
        self.are_over_but_for(0)
    }

    /// Returns whether all uses have finished, and none is announced but so many, which are the caller's own.
    pub(super) fn are_over_but_for(&self, own: usize) -> bool {
        self.open.is_empty() && self.announced <= own
    }

    /// Notes that a use is about to be sent.
    pub(super) fn announce(&mut self) {
        self.announced += 1;
    }

    /// Notes that an announced use has begun, or will not be sent.
    pub(super) fn retract(&mut self) {
        self.announced = self.announced.saturating_sub(1);
    }

    /// Notes a use on `stream`.
    pub(super) fn begin(&mut self, stream: u64) {
        self.count += 1;
        self.open.insert(stream, self.count);
    }

    /// Returns the uses that have finished when everything that was sent on the streams `is_meant` has finished.
    pub(super) fn before_all(&self, is_meant: impl Fn(u64) -> bool) -> Clock {
        let mut clock = Clock::new();
        let followed =
            self.streams.iter().filter(|(stream, _)| is_meant(**stream)).flat_map(|(_, uses)| uses);
        let own = self.open.iter().filter(|(stream, _)| is_meant(**stream));
        followed.chain(own).for_each(|(stream, last)| advance(&mut clock, *stream, *last));
        clock
    }

    /// Returns the uses that have finished when an event has happened.
    pub(super) fn before_event(&self, event: u64) -> Clock {
        self.events.get(&event).cloned().unwrap_or_default()
    }

    /// Returns the uses that have finished when the work of `stream` has; `joins` lists the other streams for whose work it
    /// waits.
    pub(super) fn before(&self, stream: u64, joins: impl Fn(u64) -> bool) -> Clock {
        let mut clock = self.streams.get(&stream).cloned().unwrap_or_default();
        let own = self.open.iter().filter(|(other, _)| **other == stream || joins(**other));
        own.for_each(|(other, last)| advance(&mut clock, *other, *last));
        clock
    }

    /// Notes that an event is recorded on `stream`.
    pub(super) fn record(&mut self, event: u64, stream: u64, joins: impl Fn(u64) -> bool) {
        let clock = self.before(stream, joins);
        self.events.insert(event, clock);
    }

    /// Lets an event follow the uses that another one follows.
    pub(super) fn copy_event(&mut self, event: u64, copy: u64) {
        if let Some(clock) = self.events.get(&event).cloned() {
            self.events.insert(copy, clock);
        }
    }

    /// Forgets a destroyed event.
    pub(super) fn forget_event(&mut self, event: u64) {
        self.events.remove(&event);
    }

    /// Makes `stream` follow the uses that an event followed.
    pub(super) fn wait(&mut self, stream: u64, event: u64) {
        let Some(clock) = self.events.get(&event) else { return };
        let own = self.streams.entry(stream).or_default();
        clock.iter().for_each(|(other, last)| advance(own, *other, *last));
    }

    /// Forgets the uses that have finished according to `clock`.
    pub(super) fn finish(&mut self, clock: &Clock) {
        self.open.retain(|stream, last| clock.get(stream).is_none_or(|done| done < last));
        if self.open.is_empty() {
            self.clear();
        }
    }

    /// Forgets all uses that have begun.
    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.streams.clear();
        // An event that is recorded comes after uses that are all over.
        self.events.clear();
    }

    /// Forgets a destroyed stream, whose work has finished when that of `heir` has.
    pub(super) fn bequeath(&mut self, stream: u64, heir: u64) {
        self.streams.remove(&stream);
        if self.open.remove(&stream).is_some() {
            self.begin(heir);
        }
    }
}

fn advance(clock: &mut Clock, stream: u64, last: u64) {
    let known = clock.entry(stream).or_default();
    *known = last.max(*known);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: u64) -> bool {
        false
    }

    #[test]
    fn an_event_ends_what_was_before_it_and_no_more() {
        let mut uses = Uses::default();
        uses.begin(5);
        uses.record(50, 5, none);
        uses.finish(&uses.before_event(50));
        assert!(uses.are_over());
        uses.begin(5);
        uses.record(50, 5, none);
        uses.begin(5);
        uses.finish(&uses.before_event(50));
        assert!(!uses.are_over(), "the second use came after the event");
        uses.finish(&uses.before(5, none));
        assert!(uses.are_over());
    }

    #[test]
    fn what_begins_while_somebody_waits_is_not_over() {
        let mut uses = Uses::default();
        uses.begin(5);
        let clock = uses.before(5, none);
        uses.begin(5);
        uses.finish(&clock);
        assert!(!uses.are_over());
        let clock = uses.before_all(|_| true);
        uses.begin(6);
        uses.finish(&clock);
        assert!(!uses.are_over());
        uses.finish(&uses.before_all(|_| true));
        assert!(uses.are_over());
    }

    #[test]
    fn an_announced_use_is_over_for_no_wait() {
        let mut uses = Uses::default();
        uses.announce();
        uses.finish(&uses.before_all(|_| true));
        assert!(!uses.are_over() && uses.are_over_but_for(1));
        uses.clear();
        assert!(!uses.are_over(), "it is still to be sent");
        uses.begin(5);
        uses.retract();
        assert!(!uses.are_over());
        uses.finish(&uses.before(5, none));
        assert!(uses.are_over());
    }

    #[test]
    fn an_event_of_another_stream_ends_what_that_stream_waited_for() {
        let mut uses = Uses::default();
        uses.begin(5);
        uses.record(60, 6, none);
        uses.finish(&uses.before_event(60));
        assert!(!uses.are_over(), "the streams have nothing to do with each other");
        uses.record(50, 5, none);
        uses.wait(6, 50);
        uses.record(60, 6, none);
        uses.finish(&uses.before_event(60));
        assert!(uses.are_over());
    }

    #[test]
    fn an_event_that_is_recorded_anew_ends_what_comes_before_it_now() {
        let mut uses = Uses::default();
        uses.begin(5);
        uses.record(50, 5, none);
        uses.record(50, 6, none);
        uses.finish(&uses.before_event(50));
        assert!(!uses.are_over());
    }

    #[test]
    fn the_null_stream_comes_after_the_streams_that_it_joins() {
        let mut uses = Uses::default();
        uses.begin(5);
        uses.begin(6);
        uses.finish(&uses.before(0, |stream| stream == 5));
        assert!(!uses.are_over());
        uses.finish(&uses.before(6, none));
        assert!(uses.are_over());
    }

    #[test]
    fn work_of_a_stream_that_is_gone_is_under_way_until_everything_is_done() {
        let mut uses = Uses::default();
        uses.begin(5);
        uses.record(60, 6, none);
        uses.bequeath(5, 0);
        uses.finish(&uses.before_event(60));
        assert!(!uses.are_over());
        uses.clear();
        assert!(uses.are_over());
    }
}
