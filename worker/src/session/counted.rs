//! Bytes of requests that sessions together may have only so many of.

use std::sync::Arc;

use hipr_io::Budget;

use crate::SessionLimits;

/// Bytes that are counted among those of all sessions, until this is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    bytes: usize,
    budget: Arc<Budget>,
}

impl Counted {
    /// Counts nothing yet.
    pub(super) fn nothing(budget: &Arc<Budget>) -> Self {
        Self { bytes: 0, budget: budget.clone() }
    }

    /// Counts bytes, as [`add`](Self::add) does.
    pub(super) fn new(
        bytes: usize,
        budget: &Arc<Budget>,
        limits: &SessionLimits,
    ) -> Result<Self, (&'static str, usize)> {
        let mut counted = Self::nothing(budget);
        counted.add(bytes, limits).map(|()| counted)
    }

    /// Counts more bytes; fails with the name and value of the limit that they exceed, and has not counted them.
    pub(super) fn add(&mut self, bytes: usize, limits: &SessionLimits) -> Result<(), (&'static str, usize)> {
        let max = limits.collect_total_max_bytes;
        if bytes as u64 > self.budget.collectable_bytes(max as u64) {
            return Err(("collect_total_max_bytes", max));
        }
        self.add_bounded(bytes);
        Ok(())
    }

    /// Counts more bytes that have another bound, even if that leaves no room for others.
    pub(super) fn add_bounded(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.budget.collect_bytes(0, bytes as u64);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.budget.collect_bytes(self.bytes as u64, 0);
    }
}
