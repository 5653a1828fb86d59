//! The events between which the client wants to be told the times (`EVENT_TIMES`).

use hipr_proto::op::{EventPair, EventTime, Handle, TimesTold};
use hipr_proto::{HipError, HipResult, Wire};

use super::Owned;

/// What is to be told with the next reply.
#[derive(Debug)]
pub(crate) struct AskedTimes {
    /// The number of the request.
    pub(crate) number: u64,
    /// The events, as the client knows them.
    pub(crate) pairs: Vec<EventPair>,
}

impl Owned {
    /// Returns what the client is told, and its tail.
    #[cold]
    pub(crate) fn times_of(&mut self, AskedTimes { number, pairs }: AskedTimes) -> (TimesTold, Vec<u8>) {
        let mut list = Vec::with_capacity(pairs.len() * EventTime::SIZE);
        for EventPair { start, stop } in &pairs {
            let start = self.names.resolve(Handle::Event, *start);
            let stop = self.names.resolve(Handle::Event, *stop);
            let time = match self.event_elapsed_ms(start, stop) {
                Ok(milliseconds) => EventTime { milliseconds, error_code: 0 },
                Err(HipError(error_code)) => EventTime { milliseconds: 0.0, error_code },
            };
            time.put(&mut list);
        }
        // At most `TIMES_MAX`.
        (TimesTold { number, count: pairs.len() as u32, reserved: 0 }, list)
    }

    /// Returns the milliseconds between two events.
    ///
    /// # Errors
    /// `INVALID_HANDLE` for what is no event, `CAPTURED_EVENT`; those of the context, `NOT_READY` if one has not happened.
    pub(crate) fn event_elapsed_ms(&mut self, start: u64, stop: u64) -> HipResult<f32> {
        for event in [start, stop] {
            self.check_event(event)?;
            self.graphs.captures.check_event(event)?;
        }
        self.context()?.event_elapsed_ms(start, stop)
    }
}
