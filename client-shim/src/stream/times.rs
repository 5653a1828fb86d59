//! Times between events that the worker was asked to tell ahead of a reply, so that `hipEventElapsedTime` need not wait.
//!
//! Which pairs of events a program asks for is seen from those that it has asked for: mostly two that were recorded one after the other, or the
//! first of all and each later one. So recordings of events that have times are numbered, and a pair is known by how far apart its
//! numbers are, or by its first event. Nothing is asked ahead before the program has asked once.
//!
//! A time that was told is that of two recordings. It is used as long as both are the last ones of their events.

use std::collections::{HashMap, VecDeque};

use hipr_proto::op::{EventPair, EventTime, TIMES_MAX};

use crate::convert::Event;

/// Number of recordings that are remembered.
const RECORDINGS_MAX: usize = 256;
/// Number of times that are remembered.
const TIMES_KEPT_MAX: usize = 256;
/// Number of requests to tell times that are remembered.
const ASKED_MAX: usize = 4;
/// Number of distances between the recordings of a pair that are remembered.
const DISTANCES_MAX: usize = 4;

/// Numbers of two recordings.
type Numbers = (u64, u64);

/// A pair of events that the worker is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The event with which the time begins.
    start: Event,
    /// The event with which it ends.
    stop: Event,
    numbers: Numbers,
}

impl Pair {
    /// Returns the pair as the worker is asked for it.
    pub fn on_wire(&self) -> EventPair {
        EventPair { start: self.start.wire(), stop: self.stop.wire() }
    }
}

/// What is known of the times between events.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// Number of the last recording; 0 before the first.
    last: u64,
    /// The events of the last recordings, the last one behind.
    recordings: VecDeque<Event>,
    /// How far apart the recordings of pairs are for which the program has asked, the last one behind.
    distances: VecDeque<u64>,
    /// The first recording of the last such pair.
    first: Option<u64>,
    /// Number of the last recording that there was when the worker was asked.
    asked: u64,
    /// The last requests to the worker: the number of each, and the pairs that it has asked for.
    requests: VecDeque<(u64, Vec<Pair>)>,
    /// The times that were told, in milliseconds, and their keys, the oldest first.
    told: HashMap<Numbers, f32>,
    order: VecDeque<Numbers>,
}

impl Times {
    /// Numbers a recording of an event; returns the number.
    pub(super) fn recorded(&mut self, event: Event) -> u64 {
        self.last += 1;
        if self.recordings.len() == RECORDINGS_MAX {
            self.recordings.pop_front();
        }
        self.recordings.push_back(event);
        self.last
    }

    /// Returns whether the program has asked for times, and recorded events since the worker was asked.
    pub(super) fn are_wanted(&self) -> bool {
        self.first.is_some() && self.asked < self.last
    }

    /// Returns the time between two recordings if it was told.
    pub(super) fn get(&self, numbers: Numbers) -> Option<f32> {
        self.told.get(&numbers).copied()
    }

    /// Notes that the program asks for a pair.
    pub(super) fn wanted(&mut self, (start, stop): Numbers) {
        self.first = Some(start);
        let Some(distance) = stop.checked_sub(start) else { return };
        self.distances.retain(|other| *other != distance);
        if self.distances.len() == DISTANCES_MAX {
            self.distances.pop_front();
        }
        self.distances.push_back(distance);
    }

    /// Returns pairs for which the program may ask next, with what was recorded since the last time, or with all recordings after `from`. `is_last` says whether a recording is the last one of its event, and was sent.
    pub(super) fn likely(&mut self, from: Option<u64>, is_last: impl Fn(Event, u64) -> bool) -> Vec<Pair> {
        let oldest = self.last + 1 - self.recordings.len() as u64;
        let event_of = |number: u64| {
            let place = usize::try_from(number.checked_sub(oldest)?).ok()?;
            let event = *self.recordings.get(place)?;
            is_last(event, number).then_some(event)
        };
        let mut pairs = Vec::new();
        let begin = from.unwrap_or(self.asked).saturating_add(1).max(oldest);
        for number in begin..=self.last {
            let Some(stop) = event_of(number) else { continue };
            let starts = self.distances.iter().rev().filter_map(|distance| number.checked_sub(*distance));
            let starts = starts.chain(self.first.filter(|first| *first < number));
            for start_number in starts {
                let numbers = (start_number, number);
                let is_new = !self.told.contains_key(&numbers)
                    && pairs.iter().all(|pair: &Pair| pair.numbers != numbers);
                if let Some(start) = event_of(start_number).filter(|_| is_new) {
                    pairs.push(Pair { start, stop, numbers });
                }
                if pairs.len() == TIMES_MAX {
                    return pairs;
                }
            }
        }
        self.asked = self.last;
        pairs
    }

    /// Notes that the worker was asked for these pairs, with the request of this number.
    pub(super) fn asked_for(&mut self, number: u64, pairs: Vec<Pair>) {
        if self.requests.len() == ASKED_MAX {
            self.requests.pop_front();
        }
        self.requests.push_back((number, pairs));
    }

    /// Returns whether the worker was asked and its answer is not known yet.
    pub(super) fn are_expected(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Learns what was told: `told` returns it for the request of a number. Pairs for which the worker tells an error are asked for again.
    pub(super) fn learn_told(&mut self, told: impl Fn(u64) -> Option<Box<[EventTime]>>) {
        let mut learnt = Vec::new();
        self.requests.retain(|(number, pairs)| {
            let times = told(*number);
            let times_of_pairs = pairs.iter().zip(times.iter().flatten());
            learnt.extend(
                times_of_pairs.filter(|(_, time)| time.error_code == 0).map(|(pair, time)| (*pair, *time)),
            );
            times.is_none()
        });
        learnt.iter().for_each(|(pair, time)| self.learn(pair, time.milliseconds));
    }

    /// Forgets what was told and what was asked for.
    pub(super) fn forget(&mut self) {
        *self = Self { last: self.last, asked: self.last, ..Self::default() };
    }

    /// Learns the time of a pair.
    fn learn(&mut self, pair: &Pair, milliseconds: f32) {
        if self.told.insert(pair.numbers, milliseconds).is_some() {
            return;
        }
        if self.order.len() == TIMES_KEPT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.told.remove(&oldest);
        }
        self.order.push_back(pair.numbers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u64) -> Event {
        Event::from_wire(number)
    }

    fn numbers(pairs: &[Pair]) -> Vec<Numbers> {
        pairs.iter().map(|pair| pair.numbers).collect()
    }

    #[test]
    fn nothing_is_likely_before_the_program_has_asked() {
        let mut times = Times::default();
        (0..10).for_each(|number| assert!(times.recorded(event(number)) > number));
        assert!(!times.are_wanted());
        assert_eq!(times.likely(None, |_, _| true), []);
    }

    #[test]
    fn pairs_as_far_apart_as_those_before_are_likely() {
        let mut times = Times::default();
        (0..6).for_each(|number| assert!(times.recorded(event(100 + number)) > number));
        times.wanted((1, 2));
        let pairs = times.likely(Some(2), |_, _| true);
        assert_eq!(numbers(&pairs), [(2, 3), (1, 3), (3, 4), (1, 4), (4, 5), (1, 5), (5, 6), (1, 6)]);
        assert_eq!((pairs[2].start, pairs[2].stop), (event(102), event(103)));
        pairs.iter().for_each(|pair| times.learn(pair, pair.numbers.1 as f32));
        assert_eq!((times.get((3, 4)), times.get((1, 2))), (Some(4.0), None));
        assert_eq!(times.likely(Some(2), |_, _| true), [], "all were told");
        // Ahead of a wait, those that are new.
        times.recorded(event(7));
        assert!(times.are_wanted());
        assert!(times.likely(None, |_, number| number != 7).is_empty(), "it is not the last of its event");
        assert!(!times.are_wanted());
        times.recorded(event(8));
        assert_eq!(numbers(&times.likely(None, |_, _| true)), [(7, 8), (1, 8)]);
        times.forget();
        assert_eq!((times.get((3, 4)), times.are_wanted()), (None, false));
        assert_eq!(times.recorded(event(9)), 9, "numbers go on rising");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut times = Times::default();
        for round in 0..2000 {
            let number = times.recorded(event(round % 7));
            times.wanted((number.saturating_sub(round % 11), number));
            let pairs = times.likely(Some(0), |_, _| true);
            assert!(pairs.len() <= TIMES_MAX);
            pairs.iter().for_each(|pair| times.learn(pair, 1.0));
        }
        assert_eq!((times.recordings.len(), times.distances.len()), (RECORDINGS_MAX, DISTANCES_MAX));
        assert_eq!((times.told.len(), times.order.len()), (TIMES_KEPT_MAX, TIMES_KEPT_MAX));
    }
}
