//! What a worker counts, as numbers that can be added, and passed from a session's process to the supervisor.

use hipr_io::StatsSnapshot;
use hipr_io_shm::Numbers;
use hipr_proto::{HipError, OPS};
use hipr_worker::{CacheStats, SessionCounts, Stats};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

/// The most that a number of a session's process can be: up to here Prometheus, whose numbers are floating point, counts exactly.
const NUMBER_MAX: u64 = 1 << 53;

/// The numbers of a worker, or of the process of a session.
#[derive(Clone, Debug)]
pub(in crate::worker) struct Counts {
    /// Requests, by the row of the operation; the last is for unknown ones.
    requests: Vec<u64>,
    /// Requests that were answered.
    pub(super) answered_requests: u64,
    /// Bytes that came from other workers.
    pub(super) peer_bytes: u64,
    /// Requests that failed, by the row of the error; the last is for errors without a name.
    errors: Vec<u64>,
    /// The event loop's.
    pub(super) io: StatsSnapshot,
    /// Those of the cache of uploads.
    pub(super) cache: CacheStats,
    /// Time that work had on the device, in nanoseconds.
    pub(super) device_ns: u64,
    /// Bytes of memory that sessions have now.
    pub(super) memory_bytes: u64,
    /// Commands that are enqueued and not finished now, and streams that have some.
    pub(super) queued_commands: u64,
    pub(super) busy_streams: u64,
}

impl Default for Counts {
    fn default() -> Self {
        let (requests, errors) = (vec![0; OPS.len() + 1], vec![0; HipError::all().len() + 1]);
        let (answered_requests, peer_bytes, io, cache, device_ns) = Default::default();
        let (memory_bytes, queued_commands, busy_streams) = Default::default();
        Self {
            requests,
            answered_requests,
            peer_bytes,
            errors,
            io,
            cache,
            device_ns,
            memory_bytes,
            queued_commands,
            busy_streams,
        }
    }
}

impl Counts {
    /// Reads the counters of a worker.
    pub(super) fn of(stats: &Stats) -> Self {
        let requests = OPS.iter().map(|info| stats.requests_of(info.code));
        let sessions = stats.sessions();
        let sum = |number: fn(&SessionCounts) -> u64| {
            sessions.iter().map(number).fold(0, |sum: u64, more| sum.saturating_add(more))
        };
        Self {
            requests: requests.chain([stats.unknown_requests()]).collect(),
            answered_requests: stats.answered_requests(),
            peer_bytes: stats.peer_bytes(),
            errors: stats.failures().map(|(_, count)| count).collect(),
            io: stats.io(),
            cache: stats.cache(),
            device_ns: stats.device_ns(),
            memory_bytes: sum(|session| session.memory_bytes),
            queued_commands: sum(|session| session.queued_commands),
            busy_streams: sum(|session| session.busy_streams),
        }
    }

    /// Returns all numbers, always in the same order.
    fn values_mut(&mut self) -> impl Iterator<Item = &mut u64> {
        let Self {
            requests,
            answered_requests,
            peer_bytes,
            errors,
            io,
            cache,
            device_ns,
            memory_bytes,
            queued_commands,
            busy_streams,
        } = self;
        let others = [answered_requests, peer_bytes, device_ns, memory_bytes, queued_commands, busy_streams];
        requests.iter_mut().chain(errors).chain(others).chain(io.values_mut()).chain(cache.values_mut())
    }

    /// Adds the numbers of another.
    pub(super) fn add(&mut self, mut other: Self) {
        for (sum, number) in self.values_mut().zip(other.values_mut()) {
            *sum = sum.saturating_add(*number);
        }
    }

    /// Takes over what the process of a session says it has counted. Nothing that only grows becomes less, and nothing is more than can be.
    fn renew(&mut self, numbers: impl Iterator<Item = u64>) {
        let mut said = Self::default();
        said.values_mut().zip(numbers).for_each(|(value, number)| *value = number.min(NUMBER_MAX));
        let now = (said.memory_bytes, said.queued_commands, said.busy_streams, said.cache.memory_bytes);
        for (value, number) in self.values_mut().zip(said.values_mut()) {
            *value = (*number).max(*value);
        }
        (self.memory_bytes, self.queued_commands, self.busy_streams, self.cache.memory_bytes) = now;
    }

    /// Removes what ends with the process that has counted it.
    fn end(&mut self) {
        (self.memory_bytes, self.queued_commands, self.busy_streams, self.cache.memory_bytes) = (0, 0, 0, 0);
        self.io.requests_done = self.io.requests;
        self.io.connections_closed = self.io.connections_opened;
    }

    /// Returns the operations that were requested, with the numbers of requests.
    pub(super) fn by_operation(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let names = OPS.iter().map(|info| info.name).chain(["unknown"]);
        names.zip(self.requests.iter().copied()).filter(|(_, count)| *count > 0)
    }

    /// Returns the errors with which requests failed, with the numbers of requests.
    pub(super) fn by_error(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let names = HipError::all().map(HipError::name).chain(["other"]);
        names.zip(self.errors.iter().copied()).filter(|(_, count)| *count > 0)
    }

    /// Returns what is counted of the one session of a process.
    pub(super) fn of_session(&self, number: u64) -> SessionCounts {
        let Self { device_ns, memory_bytes, queued_commands, busy_streams, .. } = *self;
        let requests = self.requests.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
        let sent_bytes = self.io.sent_bytes;
        SessionCounts { number, memory_bytes, requests, sent_bytes, device_ns, queued_commands, busy_streams }
    }

    /// Returns the number of requests that came and were not completed.
    pub(super) fn unfinished_requests(&self) -> u64 {
        self.io.requests.saturating_sub(self.io.requests_done)
    }

    /// Returns how many numbers they are.
    fn len() -> usize {
        Self::default().values_mut().count()
    }
}

/// The numbers of a session's process, in memory that the supervisor reads: whatever the process writes there, they are that many, and
/// what it has written is there when it was killed.
#[derive(Debug)]
pub(in crate::worker) struct Counted {
    numbers: Numbers,
    last: Counts,
}

impl Counted {
    /// Creates the numbers; returns them with what is to be passed to the process.
    ///
    /// # Errors
    /// Those of the system.
    pub(in crate::worker) fn make() -> io::Result<(Self, OwnedFd)> {
        let (numbers, given) = Numbers::make(Counts::len())?;
        Ok((Self { numbers, last: Counts::default() }, given))
    }

    /// Reads the numbers.
    pub(super) fn read(&mut self) -> Counts {
        self.last.renew(self.numbers.get());
        self.last.clone()
    }

    /// Reads the numbers of a process that has ended.
    pub(super) fn read_last(mut self) -> Counts {
        let mut counts = self.read();
        counts.end();
        counts
    }
}

/// The side of the process: writes what its worker has counted.
#[derive(Debug)]
pub(in crate::worker) struct Counting(Mutex<Numbers>);

impl Counting {
    /// Takes what the supervisor has passed.
    ///
    /// # Errors
    /// It cannot be mapped.
    pub(in crate::worker) fn new(given: &OwnedFd) -> io::Result<Self> {
        Numbers::take(given, Counts::len()).map(Mutex::new).map(Self)
    }

    /// Writes what has been counted so far. Of several threads that do so, the last one has counted last.
    pub(in crate::worker) fn write(&self, stats: &Stats) {
        let numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut counts = Counts::of(stats);
        numbers.set(counts.values_mut().map(|value| *value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter;

    #[test]
    fn a_process_takes_nothing_back_and_has_no_impossible_numbers() {
        let (mut counted, given) = Counted::make().expect("memory");
        let process = Numbers::take(&given, Counts::len()).expect("mapped");
        let memory_at = {
            let mut counts = Counts { memory_bytes: 7, ..Counts::default() };
            counts.values_mut().position(|value| *value == 7).expect("one of them")
        };
        // What it writes everywhere, what is read of its requests then, and of its memory.
        for (written, requests, memory) in
            [(5, 5, 5), (3, 5, 3), (u64::MAX, NUMBER_MAX, NUMBER_MAX), (0, NUMBER_MAX, 0)]
        {
            process.set(iter::repeat_n(written, Counts::len()));
            let mut read = counted.read();
            assert_eq!(read.values_mut().nth(memory_at).copied(), Some(memory), "{written}");
            assert!(read.requests.iter().chain(&read.errors).all(|count| *count == requests), "{written}");
        }
        process.set(iter::repeat_n(9, Counts::len()));
        let last = counted.read_last();
        assert_eq!((last.memory_bytes, last.cache.memory_bytes, last.unfinished_requests()), (0, 0, 0));
        let mut sum = Counts::default();
        (0..10_000).for_each(|_| sum.add(last.clone()));
        assert_eq!(sum.answered_requests, u64::MAX, "a sum has an end instead of beginning again");
    }

    #[test]
    fn each_number_has_a_place_of_its_own() {
        let (mut counted, given) = Counted::make().expect("memory");
        let process = Numbers::take(&given, Counts::len()).expect("mapped");
        process.set(1..);
        let values: Vec<u64> = counted.read().values_mut().map(|value| *value).collect();
        assert_eq!(values, (1..=Counts::len() as u64).collect::<Vec<_>>());
        let named = counted.read().by_operation().count() + counted.read().by_error().count();
        assert_eq!(named, OPS.len() + HipError::all().len() + 2);
    }
}
