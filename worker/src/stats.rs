//! Counters that can be read while the worker runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hipr_proto::{OPS, Opcode};

use crate::cache::{CacheStats, Counters};

/// Counts requests by operation, and answered requests.
#[derive(Debug)]
pub(crate) struct Requests {
    by_op: Vec<AtomicU64>,
    unknown: AtomicU64,
    answered: AtomicU64,
}

impl Default for Requests {
    fn default() -> Self {
        let by_op = OPS.iter().map(|_| AtomicU64::new(0)).collect();
        Self { by_op, unknown: AtomicU64::new(0), answered: AtomicU64::new(0) }
    }
}

impl Requests {
    fn row(&self, op: Opcode) -> Option<&AtomicU64> {
        self.by_op.get(op.row()?)
    }

    fn count(&self, op: Opcode, begun: u64, answered: u64) {
        self.row(op).unwrap_or(&self.unknown).fetch_add(begun, Relaxed);
        self.answered.fetch_add(answered, Relaxed);
    }
}

/// Consecutive requests of one operation that have not been counted yet, because programs launch kernels in long sequences.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    op: Opcode,
    begun: u64,
    answered: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self { op: Opcode::INIT, begun: 0, answered: 0 }
    }
}

impl Tally {
    /// Adds a request; counts those of another operation.
    #[inline]
    pub(crate) fn add(&mut self, op: Opcode, wants_reply: bool, requests: &Requests) {
        if op != self.op {
            self.count(requests);
            self.op = op;
        }
        self.begun += 1;
        self.answered += u64::from(wants_reply);
    }

    /// Counts the requests that have not been counted.
    pub(crate) fn count(&mut self, requests: &Requests) {
        if self.begun > 0 {
            requests.count(self.op, self.begun, self.answered);
            (self.begun, self.answered) = (0, 0);
        }
    }
}

/// Counters of a worker.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    io: Arc<hipr_io::Stats>,
    requests: Arc<Requests>,
    cache: Arc<Counters>,
}

impl Stats {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Returns the event loop's counters.
    pub fn io_counters(&self) -> Arc<hipr_io::Stats> {
        self.io.clone()
    }

    pub(crate) fn requests_counters(&self) -> Arc<Requests> {
        self.requests.clone()
    }

    pub(crate) fn cache_counters(&self) -> Arc<Counters> {
        self.cache.clone()
    }

    /// Returns the counters of the cache of uploads.
    pub fn cache(&self) -> CacheStats {
        self.cache.snapshot()
    }

    /// Returns the numbers of connections and bytes.
    pub fn io(&self) -> hipr_io::StatsSnapshot {
        self.io.snapshot()
    }

    /// Returns the number of requests of one operation.
    pub fn requests_of(&self, op: Opcode) -> u64 {
        self.requests.row(op).map_or(0, |count| count.load(Relaxed))
    }

    /// Iterates over the operations that were requested, with the numbers of requests.
    pub fn requests(&self) -> impl Iterator<Item = (Opcode, u64)> {
        OPS.iter().map(|info| (info.code, self.requests_of(info.code))).filter(|(_, count)| *count > 0)
    }

    /// Returns the number of requests with unknown operations.
    pub fn unknown_requests(&self) -> u64 {
        self.requests.unknown.load(Relaxed)
    }

    /// Returns the number of requests that asked for a reply: those that a client may have waited for.
    pub fn answered_requests(&self) -> u64 {
        self.requests.answered.load(Relaxed)
    }
}
