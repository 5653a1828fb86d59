//! The times between events.

use hipr_proto::op::{EventPair, EventTime, TIMES_MAX};
use hipr_proto::{Features, Wire, op};

use super::{Connection, Extra};
use crate::CallError;

impl Connection {
    /// Asks the worker to tell the times between the events of the first [`TIMES_MAX`] pairs, ahead of the next reply, and waits for nothing.
    /// Returns the number of the request, by which [`take_times`](Self::take_times) finds what was told; `None`, and nothing is sent, if
    /// there is no pair or the worker has not accepted [`Features::TIMES`].
    ///
    /// # Errors
    /// The connection is lost.
    pub fn ask_times(&self, pairs: &[EventPair]) -> Result<Option<u64>, CallError> {
        let pairs = &pairs[..pairs.len().min(TIMES_MAX)];
        if pairs.is_empty() || !self.features().contains(Features::TIMES) {
            return Ok(None);
        }
        let mut tail = Vec::with_capacity(pairs.len() * EventPair::SIZE);
        pairs.iter().for_each(|pair| pair.put(&mut tail));
        // At most `TIMES_MAX`.
        let count = pairs.len() as u32;
        let number = self.inner.replies.listeners().times.expect(count);
        let request = op::EventTimes { number, count, reserved: 0 };
        self.tell_with(&request, Extra { tail: &tail, ..Extra::default() })?;
        Ok(Some(number))
    }

    /// Returns what the worker has told for the request with this number, a time for each pair; `None` if it has not, or this was called
    /// for the request before, or some others were made since. [`hear_arrived`](Self::hear_arrived) takes in what it has told.
    pub fn take_times(&self, number: u64) -> Option<Box<[EventTime]>> {
        self.inner.replies.listeners().times.take(number)
    }
}
