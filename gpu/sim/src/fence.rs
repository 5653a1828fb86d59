//! The completion of a command, which streams, events and waits refer to.

use std::sync::atomic::{AtomicU8, Ordering};

const PENDING: u8 = 0;
const WATCHED: u8 = 1;
const DONE: u8 = 2;

/// Whether a command is complete, and whether someone has to be notified.
#[derive(Debug, Default)]
pub(crate) struct Fence(AtomicU8);

impl Fence {
    /// Returns whether the command is complete.
    pub(crate) fn is_done(&self) -> bool {
        self.0.load(Ordering::Acquire) == DONE
    }

    /// Asks for the context's owner to be woken on completion; returns true if the command is complete already.
    pub(crate) fn watch(&self) -> bool {
        let watched = self.0.compare_exchange(PENDING, WATCHED, Ordering::AcqRel, Ordering::Acquire);
        watched == Err(DONE)
    }

    /// Completes the command; returns true if someone has to be notified.
    pub(crate) fn complete(&self) -> bool {
        self.0.swap(DONE, Ordering::AcqRel) == WATCHED
    }
}
