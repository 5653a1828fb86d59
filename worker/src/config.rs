use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use hipr_io::Address;
use hipr_proto::Features;

use hipr_device::{Device, Share};

use crate::cache::CacheConfig;
use crate::peers::Peers;

/// The event loop that serves the sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// The readiness loop (epoll).
    Mio,
    /// The completion loop (io_uring). Binding fails where it is not available.
    Uring,
    /// io_uring where it is available, else epoll.
    #[default]
    Auto,
}

impl FromStr for Io {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "mio" => Ok(Self::Mio),
            "uring" => Ok(Self::Uring),
            "auto" => Ok(Self::Auto),
            _ => Err(format!("unknown event loop '{name}'; choose mio, uring or auto")),
        }
    }
}

impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mio => "mio",
            Self::Uring => "uring",
            Self::Auto => "auto",
        })
    }
}

/// The thread that executes requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DispatchOn {
    /// The event loop's thread: nothing is passed between threads.
    Inline,
    /// A thread of its own: sockets are served while the device blocks.
    Thread,
    /// A thread of its own for a device whose calls may block ([`Device::may_block`]), else the event loop's.
    #[default]
    Auto,
}

impl DispatchOn {
    /// Replaces `Auto` by the choice for a device.
    pub(crate) fn decided_for(self, device: &dyn Device) -> Self {
        match self {
            Self::Auto if device.may_block() => Self::Thread,
            Self::Auto => Self::Inline,
            decided => decided,
        }
    }
}

impl FromStr for DispatchOn {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "inline" => Ok(Self::Inline),
            "thread" => Ok(Self::Thread),
            "auto" => Ok(Self::Auto),
            _ => Err(format!("unknown dispatch thread '{name}'; choose inline, thread or auto")),
        }
    }
}

impl fmt::Display for DispatchOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inline => "inline",
            Self::Thread => "thread",
            Self::Auto => "auto",
        })
    }
}

/// Configuration of a worker.
#[derive(Clone)]
pub struct Config {
    /// Address to listen on, by default `127.0.0.1:18515`; port 0 takes a free one.
    pub listen: Address,
    /// Whether anybody may use the worker who reaches it from another machine; without it, and without
    /// [`IoConfig::identity`](hipr_io::Config::identity), a worker that other machines can reach does not start.
    pub insecure_no_auth: bool,
    /// The event loop.
    pub io: Io,
    /// The thread that executes requests.
    pub dispatch: DispatchOn,
    /// Limits and timeouts of the event loop.
    pub limits: hipr_io::Config,
    /// Limits of a session.
    pub session: SessionLimits,
    /// The device that is served.
    pub device: Arc<dyn Device>,
    /// The cache of uploads; `None` for none.
    pub cache: Option<CacheConfig>,
    /// What copies between this worker and others need; `None` if there are to be none.
    pub peers: Option<Peers>,
}

impl Config {
    /// Returns the default configuration with this device.
    pub fn new(device: Arc<dyn Device>) -> Self {
        Self {
            listen: Address::new("127.0.0.1"),
            insecure_no_auth: false,
            io: Io::default(),
            dispatch: DispatchOn::default(),
            limits: hipr_io::Config::default(),
            session: SessionLimits::default(),
            device,
            cache: None,
            peers: None,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("listen", &self.listen)
            .field("io", &self.io)
            .field("dispatch", &self.dispatch)
            .field("device", &self.device.name())
            .field("limits", &self.limits)
            .field("session", &self.session)
            .field("cache", &self.cache)
            .field("peers", &self.peers)
            .finish()
    }
}

/// Limits of what a session may use in the worker. What would exceed `handles_max`, `memory_max_bytes` or a limit
/// of code objects fails with `hipErrorOutOfMemory`; the log names the limit once per session.
#[derive(Clone, Debug)]
pub struct SessionLimits {
    /// Maximum size of a copy to a busy stream that is collected and enqueued; a longer one waits until the stream is idle,
    /// and is then written to device memory as it arrives.
    pub stage_max_bytes: usize,
    /// Maximum bytes of such copies that are enqueued at a time; beyond it copies wait.
    pub staged_max_bytes: usize,
    /// Maximum number of commands that the device has not finished, and maximum bytes of host memory that they take: their arguments,
    /// the data that they carry and what keeps their order. They also have to find room in what the session's memory leaves of its
    /// maximum, but for [`queued_min_bytes`](Self::queued_min_bytes). Beyond it the session executes nothing until commands are
    /// finished.
    pub queued_max: usize,
    /// See [`queued_max`](Self::queued_max).
    pub queued_max_bytes: u64,
    /// Bytes of host memory for commands that a session has even if its memory is used up.
    pub queued_min_bytes: u64,
    /// Bytes of device memory read at a time for a reply.
    pub chunk_bytes: usize,
    /// Maximum bytes of device memory that are read before the peer has received them, except for the last chunk: enough to
    /// keep a socket busy, and little enough for the cache and for other sessions.
    pub read_ahead_bytes: usize,
    /// Bytes transferred to or from the device in a turn of a session without competitors; with competitors it is a quarter
    /// of that.
    pub turn_max_bytes: usize,
    /// Bytes of replies that the peer has not received, beyond which the session executes nothing. Binding sets it to the
    /// event loop's limit.
    pub unsent_max_bytes: usize,
    /// Maximum size of a code object.
    pub collect_max_bytes: usize,
    /// Maximum bytes of arriving code objects of all sessions.
    pub collect_total_max_bytes: usize,
    /// Maximum number of handles and allocations of a session.
    pub handles_max: usize,
    /// Maximum bytes that a session may have allocated: device, managed and pinned host memory, and code objects. The free
    /// and total memory that the session is told is limited to it.
    pub memory_max_bytes: u64,
    /// Bytes beside those that only the session's kernels may have; where memory is lent, the worker sets it before each turn.
    pub aside_bytes: u64,
    /// Maximum bytes that all sessions together may have, and, in the limits of a session, those of its tenant, if that is less: their
    /// memory and what it takes to know of it, what the device sets aside for their kernels, unfinished commands, and replies that were not
    /// received. A session may have what the others leave, but always the device's minimum for kernels,
    /// [`queued_min_bytes`](Self::queued_min_bytes) and a reply of [`chunk_bytes`](Self::chunk_bytes).
    pub memory_total_bytes: u64,
    /// Bytes of shared memory in which a session's requests and replies are passed; they count among those of all sessions.
    pub rings_bytes: u64,
    /// Maximum bytes of host memory that the device sets aside for the workgroups of a session's kernels.
    pub working_max_bytes: u64,
    /// Maximum bytes of copies that are kept of what the client knows of watched memory; they have what the session's memory leaves of
    /// its maximum, too. Without them the client copies such memory whole.
    pub twin_max_bytes: u64,
    /// Whose device time the session's work takes; `None` if it is nobody else's.
    pub share: Option<Share>,
    /// Features of the extension that a session may use. With `None` the offer of features fails with `hipErrorNotSupported`, as
    /// by a worker that does not have the operation.
    pub features: Option<Features>,
}

/// The features of the extension that this worker has, with a device that has them, with a cache of uploads, and with peers.
pub const FEATURES: Features = Features::STATIC
    .union(Features::NAMES)
    .union(Features::PAGES)
    .union(Features::KERNEL_RULES)
    .union(Features::CACHE)
    .union(Features::NOTIFICATIONS)
    .union(Features::PLACES)
    .union(Features::MEM_INFO)
    .union(Features::WORK_ERRORS)
    .union(Features::WATCHES)
    .union(Features::VARIABLES)
    .union(Features::TRACE)
    .union(Features::PACKED)
    .union(Features::SHARED)
    .union(Features::MAPPINGS)
    .union(Features::APART)
    .union(Features::CAPABILITIES)
    .union(Features::PRINTF)
    .union(Features::TIMES)
    .union(Features::PACKED_CHANGES);

impl SessionLimits {
    /// What part of the memory of several sessions is set aside for the kernels of one, and the least of that.
    const WORKING_PART: u64 = 16;
    const WORKING_MIN_BYTES: u64 = 32 << 20;

    /// Lets the session and those that count with it have no more than `total_bytes`.
    pub(crate) fn bound_total(&mut self, total_bytes: u64) {
        self.memory_total_bytes = self.memory_total_bytes.min(total_bytes);
        if self.memory_total_bytes == u64::MAX {
            return;
        }
        let part = (self.memory_total_bytes / Self::WORKING_PART).max(Self::WORKING_MIN_BYTES);
        self.working_max_bytes = self.working_max_bytes.min(part);
        // What is free changes with what others do, which nobody tells.
        self.features = self.features.map(|features| features.without(Features::MEM_INFO));
    }

    /// Returns what the session may have allocated, with what only its kernels may have.
    pub(crate) fn with_aside_bytes(&self) -> u64 {
        self.memory_max_bytes.saturating_add(self.aside_bytes)
    }
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            stage_max_bytes: 64 << 10,
            staged_max_bytes: 8 << 20,
            queued_max: 16 << 10,
            queued_max_bytes: 32 << 20,
            queued_min_bytes: 1 << 20,
            chunk_bytes: 128 << 10,
            read_ahead_bytes: 512 << 10,
            turn_max_bytes: 512 << 10,
            unsent_max_bytes: 4 << 20,
            collect_max_bytes: 1 << 30,
            collect_total_max_bytes: 4 << 30,
            handles_max: 1 << 20,
            memory_max_bytes: u64::MAX,
            aside_bytes: 0,
            memory_total_bytes: u64::MAX,
            rings_bytes: 0,
            working_max_bytes: u64::MAX,
            twin_max_bytes: 4 << 30,
            share: None,
            features: Some(FEATURES),
        }
    }
}
