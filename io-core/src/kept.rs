//! Bytes that sessions keep to outlive their connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of host memory that all sessions of a loop keep until their clients have them, or until they can be taken, and how many these may
/// be. The loop counts them, the dispatch says how many there may be. The default is without limit.
#[derive(Debug)]
pub struct Kept {
    bytes: AtomicU64,
    max: AtomicU64,
}

impl Default for Kept {
    fn default() -> Self {
        Self { bytes: AtomicU64::new(0), max: AtomicU64::new(u64::MAX) }
    }
}

impl Kept {
    /// Returns the number of bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Sets how many bytes there may be.
    pub fn set_max(&self, max_bytes: u64) {
        self.max.store(max_bytes, Relaxed);
    }

    /// Returns how many more bytes there may be.
    pub(crate) fn room(&self) -> u64 {
        self.max.load(Relaxed).saturating_sub(self.bytes())
    }
}

/// The part of one session, which counts until this is dropped.
#[derive(Debug)]
pub(crate) struct KeptBySession {
    all: Arc<Kept>,
    bytes: u64,
}

impl KeptBySession {
    /// Creates the part of a session that keeps nothing.
    pub(crate) fn new(all: &Arc<Kept>) -> Self {
        Self { all: all.clone(), bytes: 0 }
    }

    /// Notes what the session keeps now.
    pub(crate) fn set(&mut self, bytes: u64) {
        // Only the loop's thread changes it.
        let others = self.all.bytes().saturating_sub(self.bytes);
        self.all.bytes.store(others.saturating_add(bytes), Relaxed);
        self.bytes = bytes;
    }

    /// Returns how many more bytes all sessions may keep.
    pub(crate) fn room(&self) -> usize {
        usize::try_from(self.all.room()).unwrap_or(usize::MAX)
    }
}

impl Drop for KeptBySession {
    fn drop(&mut self) {
        self.set(0);
    }
}
