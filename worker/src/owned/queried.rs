//! The streams and events of which the client is told when a query of them no longer finds that they are not done (`STREAM_WATCH`,
//! `EVENT_WATCH`).

use std::mem;
use std::task::Poll;

use hipr_device::WaitFor;
use hipr_proto::HipError;
use hipr_proto::op::{WATCHES_MAX, WatchOver};

use super::Owned;

/// What is watched, with the numbers of the requests.
#[derive(Debug, Default)]
pub(crate) struct Queried {
    open: Vec<(WaitFor, u64)>,
    /// What is to be told at once.
    refused: Vec<u64>,
}

impl Queried {
    /// Returns whether there is nothing to tell, now or later.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.refused.is_empty()
    }

    /// Notes that the client is to be told when a query of `what` no longer finds that it is not done. The place of an earlier request for
    /// the same is taken.
    pub(crate) fn add(&mut self, what: WaitFor, number: u64) {
        let has_room = self.open.len() < WATCHES_MAX;
        match self.open.iter_mut().find(|(other, _)| *other == what) {
            Some((_, other)) => *other = number,
            None if has_room => self.open.push((what, number)),
            // As many as a turn has requests: its end tells them, if no reply does.
            None => self.refused.push(number),
        }
    }
}

impl Owned {
    /// Removes what is done, and what could not be watched; returns what the client is told of it. The device wakes the session when
    /// something of the rest is done.
    #[cold]
    pub(crate) fn take_over(&mut self) -> Vec<WatchOver> {
        let over = |number, error: Option<HipError>| WatchOver {
            number,
            error_code: error.map_or(0, |error| error.0),
            reserved: 0,
        };
        let refused = mem::take(&mut self.queried.refused).into_iter();
        let mut told: Vec<_> = refused.map(|number| over(number, Some(HipError::NOT_READY))).collect();
        // While the context is on another thread nothing is known; the session has another turn when it is back.
        let Some(context) = &mut self.context else { return told };
        self.queried.open.retain(|(what, number)| match context.poll_query(*what) {
            Poll::Pending => true,
            Poll::Ready(result) => {
                told.push(over(*number, result.err()));
                false
            }
        });
        told
    }
}
