//! Bytes that all sessions together may have only so many of.

use std::cell::Cell;
use std::rc::Rc;

use crate::SessionLimits;

/// Bytes that are counted among those of all sessions, until this is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    bytes: usize,
    total_bytes: Rc<Cell<usize>>,
}

impl Counted {
    /// Counts nothing yet.
    pub(super) fn nothing(total_bytes: &Rc<Cell<usize>>) -> Self {
        Self { bytes: 0, total_bytes: total_bytes.clone() }
    }

    /// Counts bytes, as [`add`](Self::add) does.
    pub(super) fn new(
        bytes: usize,
        total_bytes: &Rc<Cell<usize>>,
        limits: &SessionLimits,
    ) -> Result<Self, (&'static str, usize)> {
        let mut counted = Self::nothing(total_bytes);
        counted.add(bytes, limits).map(|()| counted)
    }

    /// Counts more bytes; fails with the name and value of the limit that they exceed, and has not counted them.
    pub(super) fn add(&mut self, bytes: usize, limits: &SessionLimits) -> Result<(), (&'static str, usize)> {
        let max = limits.collect_total_max_bytes;
        if self.total_bytes.get().saturating_add(bytes) > max {
            return Err(("collect_total_max_bytes", max));
        }
        self.add_bounded(bytes);
        Ok(())
    }

    /// Counts more bytes that have another bound, even if that leaves no room for others.
    pub(super) fn add_bounded(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.total_bytes.set(self.total_bytes.get().saturating_add(bytes));
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.total_bytes.set(self.total_bytes.get() - self.bytes);
    }
}
