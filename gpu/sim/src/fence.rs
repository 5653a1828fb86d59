//! The completion of a command, which streams, events and waits refer to.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use crate::before::Before;

const PENDING: u8 = 0;
const WATCHED: u8 = 1;
const DONE: u8 = 2;

/// Whether a command is complete, and whether someone has to be notified.
#[derive(Debug, Default)]
pub(crate) struct Fence {
    state: AtomicU8,
    /// What is over when the command is complete, if something sees the work.
    before: OnceLock<Arc<Before>>,
}

impl Fence {
    /// Returns whether the command is complete.
    pub(crate) fn is_done(&self) -> bool {
        self.state.load(Ordering::Acquire) == DONE
    }

    /// Asks for the context's owner to be woken on completion; returns true if the command is complete already.
    pub(crate) fn watch(&self) -> bool {
        let watched = self.state.compare_exchange(PENDING, WATCHED, Ordering::AcqRel, Ordering::Acquire);
        watched == Err(DONE)
    }

    /// Completes the command; returns true if someone has to be notified.
    pub(crate) fn complete(&self) -> bool {
        self.state.swap(DONE, Ordering::AcqRel) == WATCHED
    }

    /// Returns what is over when the command is complete, if that is noted.
    pub(crate) fn before(&self) -> Option<&Arc<Before>> {
        self.before.get()
    }

    /// Notes what is over when the command is complete.
    pub(crate) fn set_before(&self, before: Arc<Before>) {
        // A command is enqueued once.
        let _ = self.before.set(before);
    }
}
