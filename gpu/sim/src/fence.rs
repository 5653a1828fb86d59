//! One command's completion: what other streams, events and waits hold on to.

use std::sync::atomic::{AtomicU8, Ordering};

const PENDING: u8 = 0;
const WATCHED: u8 = 1;
const DONE: u8 = 2;

/// Done or not, and whether somebody wants to hear of it.
#[derive(Debug, Default)]
pub(crate) struct Fence(AtomicU8);

impl Fence {
    /// Whether the command has completed.
    pub(crate) fn is_done(&self) -> bool {
        self.0.load(Ordering::Acquire) == DONE
    }

    /// Asks that the completion wakes the context's owner; `true` if it is complete already.
    pub(crate) fn watch(&self) -> bool {
        let watched = self.0.compare_exchange(PENDING, WATCHED, Ordering::AcqRel, Ordering::Acquire);
        watched == Err(DONE)
    }

    /// Completes the command; `true` if somebody watches.
    pub(crate) fn complete(&self) -> bool {
        self.0.swap(DONE, Ordering::AcqRel) == WATCHED
    }
}
