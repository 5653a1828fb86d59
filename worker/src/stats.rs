//! Counters that can be read while the worker runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hipr_proto::{HipError, OPS, Opcode};

use crate::cache::{CacheStats, Counters};
use hipr_device::Load;

/// Counts requests by operation, answered requests, and the bytes that came from other workers.
#[derive(Debug)]
pub(crate) struct Requests {
    by_op: Vec<AtomicU64>,
    unknown: AtomicU64,
    answered: AtomicU64,
    peer_bytes: AtomicU64,
}

impl Default for Requests {
    fn default() -> Self {
        let by_op = OPS.iter().map(|_| AtomicU64::new(0)).collect();
        let (unknown, answered, peer_bytes) = Default::default();
        Self { by_op, unknown, answered, peer_bytes }
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

    /// Counts bytes that came from another worker and that the device has taken.
    pub(crate) fn count_peer_bytes(&self, len_bytes: usize) {
        self.peer_bytes.fetch_add(len_bytes as u64, Relaxed);
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

/// Counts requests that failed, by error.
#[derive(Debug)]
pub(crate) struct Failures {
    /// By the place of the error in its table; the last is for errors without a name of their own.
    by_error: Vec<AtomicU64>,
}

impl Default for Failures {
    fn default() -> Self {
        Self { by_error: (0..=HipError::all().len()).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Failures {
    /// Counts a request that failed.
    #[inline(never)]
    pub(crate) fn count(&self, error: HipError) {
        let row = error.row().unwrap_or(self.by_error.len() - 1);
        if let Some(count) = self.by_error.get(row) {
            count.fetch_add(1, Relaxed);
        }
    }
}

/// What a session has, as it was after its last turn.
#[derive(Debug, Default)]
pub(crate) struct SessionStats {
    /// Bytes of memory.
    pub(crate) memory_bytes: AtomicU64,
    /// Requests that have begun.
    pub(crate) requests: AtomicU64,
    /// Bytes that were handed to the loop, to be sent.
    pub(crate) sent_bytes: AtomicU64,
    /// Where the device counts the time of the session's work, and what is not finished, once it does.
    pub(crate) device: OnceLock<DeviceCounts>,
}

/// Where a device counts what a session's work takes.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceCounts {
    /// The time that the work has had, in nanoseconds.
    pub(crate) time_ns: Option<Arc<AtomicU64>>,
    /// The work that is not finished.
    pub(crate) load: Option<Arc<Load>>,
}

impl SessionStats {
    fn device_ns(&self) -> u64 {
        let time = self.device.get().and_then(|device| device.time_ns.as_ref());
        time.map_or(0, |time| time.load(Relaxed))
    }

    fn counts(&self, number: u64) -> SessionCounts {
        let load = self.device.get().and_then(|device| device.load.as_ref());
        SessionCounts {
            number,
            memory_bytes: self.memory_bytes.load(Relaxed),
            requests: self.requests.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            device_ns: self.device_ns(),
            queued_commands: load.map_or(0, |load| load.commands.load(Relaxed)),
            busy_streams: load.map_or(0, |load| load.streams.load(Relaxed)),
        }
    }
}

/// What is counted of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// Its number, from 1 on.
    pub number: u64,
    /// Bytes of memory that it had after its last turn.
    pub memory_bytes: u64,
    /// Requests that have begun.
    pub requests: u64,
    /// Bytes of answers.
    pub sent_bytes: u64,
    /// Time that its work has had on the device, in nanoseconds, as far as the device knows.
    pub device_ns: u64,
    /// Commands that were enqueued and are not finished, as far as the device knows.
    pub queued_commands: u64,
    /// Streams that have such commands.
    pub busy_streams: u64,
}

/// The sessions that have begun and not ended.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<Living>);

#[derive(Debug, Default)]
struct Living {
    /// By the number of the session.
    sessions: BTreeMap<u64, Arc<SessionStats>>,
    /// The device time of those that have ended.
    ended_device_ns: u64,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, Living> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a session that begins.
    pub(crate) fn begin(&self, number: u64) -> Arc<SessionStats> {
        let stats = Arc::new(SessionStats::default());
        self.lock().sessions.insert(number, Arc::clone(&stats));
        stats
    }

    /// Removes a session that has ended.
    pub(crate) fn end(&self, number: u64) {
        let mut living = self.lock();
        let device_ns = living.sessions.remove(&number).map_or(0, |stats| stats.device_ns());
        living.ended_device_ns = living.ended_device_ns.saturating_add(device_ns);
    }
}

/// Counters of a worker.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    io: Arc<hipr_io::Stats>,
    requests: Arc<Requests>,
    failures: Arc<Failures>,
    sessions: Arc<Sessions>,
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

    pub(crate) fn failures_counters(&self) -> Arc<Failures> {
        self.failures.clone()
    }

    pub(crate) fn sessions_counters(&self) -> Arc<Sessions> {
        self.sessions.clone()
    }

    /// Returns the numbers of requests that failed, by error; those whose error has no name of its own are counted as
    /// [`HipError::UNKNOWN`]. A request that reports the error of an earlier one has failed as well.
    pub fn failures(&self) -> impl Iterator<Item = (HipError, u64)> {
        let errors = HipError::all().chain([HipError::UNKNOWN]);
        errors.zip(&self.failures.by_error).map(|(error, count)| (error, count.load(Relaxed)))
    }

    /// Returns what is counted of each session that there is.
    pub fn sessions(&self) -> Vec<SessionCounts> {
        let living = self.sessions.lock();
        living.sessions.iter().map(|(&number, stats)| stats.counts(number)).collect()
    }

    /// Returns the time that the work of all sessions has had on the device, in nanoseconds, as far as the device knows.
    pub fn device_ns(&self) -> u64 {
        let living = self.sessions.lock();
        let times = living.sessions.values().map(|stats| stats.device_ns());
        times.fold(living.ended_device_ns, u64::saturating_add)
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

    /// Returns the number of bytes that came from other workers, for copies between devices of both.
    pub fn peer_bytes(&self) -> u64 {
        self.requests.peer_bytes.load(Relaxed)
    }

    /// Returns the number of requests that asked for a reply: those that a client may have waited for.
    pub fn answered_requests(&self) -> u64 {
        self.requests.answered.load(Relaxed)
    }
}
