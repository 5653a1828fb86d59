//! Command line options for the limits of sessions.

use clap::Args;
use hipr_tls::Size;
use hipr_worker::{Config, IoConfig, RING_MAX_BYTES, RING_MIN_BYTES, SessionLimits};

/// Returns a size as a length in memory. (Hosts have 64 bits.)
fn len(size: Size) -> usize {
    usize::try_from(size.0).unwrap_or(usize::MAX)
}

/// Minimum of the buffer limit: it has to hold the longest message that is not streamed.
const BUFFERED_MIN: Size = Size(128 << 10);

/// Returns the size of a ring.
fn ring(text: &str) -> Result<Size, String> {
    let (least, most) = (Size(RING_MIN_BYTES as u64), Size(RING_MAX_BYTES as u64));
    match text.parse()? {
        size if size < least || size > most => Err(format!("it must be from {least} to {most}")),
        size => Ok(size),
    }
}

fn buffered(text: &str) -> Result<Size, String> {
    let size = text.parse()?;
    if size < BUFFERED_MIN { Err(format!("it must be at least {BUFFERED_MIN}")) } else { Ok(size) }
}

/// Limits that the owner of a GPU sets.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct Limits {
    /// Maximum number of sessions; further clients are disconnected. [default: 16384, or 64 with a process each]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    sessions_max: Option<u32>,
    /// Maximum number of sessions of one address (of one /64 network with IPv6). [default: half of --sessions-max, and no limit for
    /// this machine's own addresses]
    #[arg(long, value_name = "N", value_parser = count)]
    sessions_per_address_max: Option<usize>,
    /// Maximum number of connections of one address in a second; further clients are disconnected. [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    connections_per_second: Option<u32>,
    /// Maximum number of requests in a second of a tenant, or of an address without a key; further ones are read later. [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    requests_per_second: Option<u32>,
    /// Seconds after which a session ends whose program has sent nothing and waits for nothing. [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    idle_timeout: Option<u64>,
    /// Seconds for which a session is kept whose TCP link was cut, so that its client can go on over another; 0 ends it at once.
    #[arg(long, value_name = "SECONDS", default_value_t = IoConfig::default().resume_timeout_ms / 1000,
          value_parser = clap::value_parser!(u64).range(..=86_400))]
    resume_timeout: u64,
    /// Maximum number of sessions of a tenant, or of an address without a key, that are kept in this way at a time; one more ends with its
    /// link. [default: no limit but --sessions-max]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    parked_max: Option<u32>,
    /// Maximum bytes that such a session keeps until its client has them, and that its client may have on the way.
    #[arg(long, value_name = "SIZE", default_value_t = Size(IoConfig::default().resume_ring_bytes as u64),
          value_parser = ring)]
    resume_buffer: Size,
    /// Maximum bytes that a session may allocate (device, managed and pinned host memory, code objects); beyond it
    /// allocations fail with hipErrorOutOfMemory. [default: only the GPU's memory]
    #[arg(long, value_name = "SIZE")]
    memory_max: Option<Size>,
    /// Maximum bytes that all sessions together may have: what --memory-max counts, what is set aside for their kernels, unfinished commands,
    /// unread replies, and what is kept for clients whose links are cut. [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = Size::of_total)]
    memory_total: Option<Size>,
    /// Maximum number of allocations, streams, events, modules and functions of a session; beyond it hipErrorOutOfMemory.
    #[arg(long, value_name = "N", default_value_t = SessionLimits::default().handles_max,
          value_parser = count)]
    handles_max: usize,
    /// Maximum size of a code object; a larger one fails with hipErrorOutOfMemory.
    #[arg(long, value_name = "SIZE", default_value_t = Size(SessionLimits::default().collect_max_bytes as u64))]
    code_object_max: Size,
    /// Maximum number of unfinished requests of a session; when it is reached, no more are read.
    #[arg(long, value_name = "N", default_value_t = IoConfig::default().protocol.open_max,
          value_parser = count)]
    requests_open_max: usize,
    /// Maximum bytes of unfinished requests of a session, and of unsent replies; when it is reached, no more requests are
    /// read.
    #[arg(long, value_name = "SIZE", default_value_t = Size(IoConfig::default().in_flight_max_bytes as u64),
          value_parser = buffered)]
    buffered_max: Size,
}

fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("it must be at least 1".into()),
        Ok(count) => Ok(count),
        Err(why) => Err(format!("{why}")),
    }
}

impl Limits {
    /// Default maximum number of sessions if each has a process.
    const PROCESSES_MAX: usize = 64;

    /// Applies the limits to a worker's configuration.
    pub(crate) fn apply(&self, config: &mut Config) {
        let (io, session) = (&mut config.limits, &mut config.session);
        if let Some(count) = self.sessions_max {
            io.connections_max = usize::try_from(count).unwrap_or(usize::MAX);
        }
        io.connections_per_address_max = self.sessions_per_address_max;
        io.resume_timeout_ms = self.resume_timeout * 1000;
        io.parked_max = self.parked_max;
        io.resume_ring_bytes = len(self.resume_buffer);
        io.connections_per_second = self.connections_per_second;
        io.requests_per_second = self.requests_per_second;
        io.idle_timeout_ms = self.idle_timeout.map(|seconds| seconds.saturating_mul(1000));
        io.protocol.open_max = self.requests_open_max;
        io.in_flight_max_bytes = len(self.buffered_max);
        io.in_flight_total_max_bytes = io.in_flight_total_max_bytes.max(io.in_flight_max_bytes);
        io.unsent_max_bytes = len(self.buffered_max);
        session.handles_max = self.handles_max;
        session.collect_max_bytes = len(self.code_object_max);
        session.collect_total_max_bytes = session.collect_total_max_bytes.max(session.collect_max_bytes);
        if let Some(size) = self.memory_max {
            session.memory_max_bytes = size.0;
        }
        if let Some(size) = self.memory_total {
            session.memory_total_bytes = size.0;
            session.collect_total_max_bytes = session.collect_total_max_bytes.min(len(size));
        }
    }

    /// Returns the maximum bytes of all sessions together, if one was given.
    pub(crate) fn memory_total_bytes(&self) -> Option<u64> {
        self.memory_total.map(|size| size.0)
    }

    /// Returns the maximum number of connections of one address in a second.
    pub(crate) fn connections_per_second(&self) -> Option<u32> {
        self.connections_per_second
    }

    /// Returns the maximum number of sessions of one address, if one was given.
    pub(crate) fn per_address_max(&self) -> Option<usize> {
        self.sessions_per_address_max
    }

    /// Returns the maximum number of sessions if each has a process.
    pub(crate) fn processes_max(&self) -> usize {
        self.sessions_max.map_or(Self::PROCESSES_MAX, |count| usize::try_from(count).unwrap_or(usize::MAX))
    }
}
