//! When commands of a context were enqueued, began and ended: kept for a trace, and only if somebody wants it.

use std::time::Instant;

use hipr_device::{Origin, TIMES_MAX, WorkTimes};

/// What is known of a command that has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    origin: Origin,
    function: u64,
    enqueued: Instant,
    began: Option<Instant>,
}

impl Open {
    /// Notes that the device begins with it.
    pub(crate) fn begin(&mut self) {
        self.began = Some(Instant::now());
    }
}

/// The times of a context's work.
#[derive(Debug, Default)]
pub(crate) struct Times {
    /// Whose commands come next.
    origin: Option<Origin>,
    ended: Vec<WorkTimes>,
    lost: u32,
}

impl Times {
    /// Says which request enqueues what comes next; times are noted from the first one on.
    pub(crate) fn note(&mut self, origin: Origin) {
        self.origin = Some(origin);
    }

    /// Begins to note the times of work, if they are wanted: of a kernel, or 0 for other work.
    pub(crate) fn open(&self, function: u64) -> Option<Box<Open>> {
        let origin = self.origin?;
        Some(Box::new(Open { origin, function, enqueued: Instant::now(), began: None }))
    }

    /// Notes that work on a stream has ended.
    pub(crate) fn end(&mut self, stream: u64, open: &Open) {
        if self.ended.len() == TIMES_MAX {
            self.lost = self.lost.saturating_add(1);
            return;
        }
        let ended = Instant::now();
        let Open { origin, function, enqueued, began } = *open;
        let began = began.unwrap_or(ended);
        self.ended.push(WorkTimes { origin, stream, function, enqueued, began, ended });
    }

    /// Takes the times of what has ended; returns how many are lost.
    pub(crate) fn take(&mut self, into: &mut Vec<WorkTimes>) -> u32 {
        into.append(&mut self.ended);
        std::mem::take(&mut self.lost)
    }
}
