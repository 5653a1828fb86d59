//! The times between events that the worker was asked to tell, and what it has told.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hipr_proto::Wire;
use hipr_proto::op::{EventTime, TimesTold};

/// Number of requests that have not been read, at most; older ones are forgotten.
const UNREAD_MAX: usize = 4;

/// The times between events, by the number of the request.
#[derive(Debug, Default)]
pub(crate) struct Times {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of the last request.
    last: u64,
    asked: VecDeque<Asked>,
}

/// A request.
#[derive(Debug)]
struct Asked {
    number: u64,
    /// How many times it has asked for.
    count: u32,
    /// What was told.
    times: Option<Box<[EventTime]>>,
}

impl Times {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number for a request that is about to ask for so many times.
    pub(crate) fn expect(&self, count: u32) -> u64 {
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        if state.asked.len() == UNREAD_MAX {
            state.asked.pop_front();
        }
        state.asked.push_back(Asked { number, count, times: None });
        number
    }

    /// Learns what the worker tells, once, and only of as many as were asked for: a worker may say anything.
    pub(crate) fn learn(&self, told: TimesTold, mut list: &[u8]) {
        let mut state = self.state();
        let is_open = |asked: &&mut Asked| {
            asked.number == told.number && asked.count == told.count && asked.times.is_none()
        };
        let Some(asked) = state.asked.iter_mut().find(is_open) else { return };
        let list: Result<Box<[EventTime]>, _> = (0..told.count).map(|_| EventTime::take(&mut list)).collect();
        asked.times = list.ok();
    }

    /// Returns what was told for a request, once; `None` if nothing was, or it is not known.
    pub(crate) fn take(&self, number: u64) -> Option<Box<[EventTime]>> {
        let mut state = self.state();
        let place = state.asked.iter().position(|asked| asked.number == number && asked.times.is_some())?;
        state.asked.remove(place)?.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(times: &Times, number: u64, count: u32, list: &[f32]) {
        let mut bytes = Vec::new();
        list.iter().for_each(|time| EventTime { milliseconds: *time, error_code: 0 }.put(&mut bytes));
        times.learn(TimesTold { number, count, reserved: 0 }, &bytes);
    }

    fn taken(times: &Times, number: u64) -> Option<Vec<f32>> {
        times.take(number).map(|list| list.iter().map(|time| time.milliseconds).collect())
    }

    #[test]
    fn what_is_told_is_taken_once() {
        let times = Times::default();
        let (first, second) = (times.expect(2), times.expect(1));
        told(&times, second, 1, &[3.0]);
        assert_eq!(taken(&times, first), None, "it was not told yet");
        told(&times, first, 2, &[1.0, 2.0]);
        told(&times, first, 2, &[7.0, 8.0]);
        assert_eq!(taken(&times, first), Some(vec![1.0, 2.0]));
        assert_eq!((taken(&times, first), taken(&times, second)), (None, Some(vec![3.0])));
    }

    #[test]
    fn what_was_not_asked_for_is_not_kept() {
        let times = Times::default();
        let number = times.expect(2);
        for (other, count, list) in [
            (number + 1, 2, vec![1.0; 2]),
            (number, 1, vec![1.0]),
            (number, 3, vec![1.0; 3]),
            (number, 2, vec![1.0]),
        ] {
            told(&times, other, count, &list);
            assert_eq!(taken(&times, number), None, "{other} {count} {list:?}");
        }
        told(&times, number, u32::MAX, &[]);
        (0..UNREAD_MAX).for_each(|_| assert!(times.expect(1) > number));
        told(&times, number, 2, &[1.0, 2.0]);
        assert_eq!(taken(&times, number), None, "it is too long ago");
        assert_eq!(times.state().asked.len(), UNREAD_MAX);
    }
}
