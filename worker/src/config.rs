use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use hipr_io::Address;

use crate::device::Device;

/// Which event loop serves the sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// Readiness: epoll and its kin.
    Mio,
    /// Completion: io_uring. Binding fails where it cannot be had.
    Uring,
    /// io_uring where it can be had, else mio.
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
            _ => Err(format!("there is no event loop '{name}'; there are mio, uring and auto")),
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

/// Which thread carries requests out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DispatchOn {
    /// The event loop's own: nothing is handed over between threads.
    Inline,
    /// One of its own: sockets are served while the device blocks.
    Thread,
    /// One of its own for a device whose calls may block ([`Device::may_block`]), else the loop's.
    #[default]
    Auto,
}

impl DispatchOn {
    /// `Auto` decided for a device.
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
            _ => Err(format!("requests are carried out inline, on a thread, or auto; not on '{name}'")),
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

/// What a worker is told.
#[derive(Clone)]
pub struct Config {
    /// Where to listen, `127.0.0.1:18515` if nothing else is said; port 0 takes a free one.
    pub listen: Address,
    /// The event loop.
    pub io: Io,
    /// The thread that carries requests out.
    pub dispatch: DispatchOn,
    /// Limits and time-outs of the event loop.
    pub limits: hipr_io::Config,
    /// Limits of a session.
    pub session: SessionLimits,
    /// What performs the requests.
    pub device: Arc<dyn Device>,
}

impl Config {
    /// The defaults, with this device.
    pub fn new(device: Arc<dyn Device>) -> Self {
        Self {
            listen: Address::new("127.0.0.1"),
            io: Io::default(),
            dispatch: DispatchOn::default(),
            limits: hipr_io::Config::default(),
            session: SessionLimits::default(),
            device,
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
            .finish()
    }
}

/// Limits of what a session may make the worker hold. What would exceed `handles_max`, `memory_max_bytes` or one of the
/// limits of code objects is refused with `hipErrorOutOfMemory`; the log says which, once for a session.
#[derive(Clone, Debug)]
pub struct SessionLimits {
    /// A copy to a busy stream of at most so many bytes is collected and enqueued; a longer one waits until the stream is
    /// idle, and then goes to device memory as it arrives.
    pub stage_max_bytes: usize,
    /// Bytes that may be enqueued so at a time; above it, copies wait.
    pub staged_max_bytes: usize,
    /// Bytes of device memory read at a time for a reply.
    pub chunk_bytes: usize,
    /// Bytes of device memory that are read before the peer has taken them, except for the last chunk: enough to keep a socket
    /// busy, little enough for the cache and for the others' turns.
    pub read_ahead_bytes: usize,
    /// Bytes given to the device or read from it in a turn of a session that has been the only one with something to do for a
    /// while; else it is a quarter of that before it is another's turn.
    pub turn_max_bytes: usize,
    /// Bytes of replies that the peer has not taken, above which the session does nothing more. Binding sets it to the event
    /// loop's limit.
    pub unsent_max_bytes: usize,
    /// The longest code object.
    pub collect_max_bytes: usize,
    /// Code objects of all sessions together that are arriving at a time.
    pub collect_total_max_bytes: usize,
    /// Handles and allocations of one session.
    pub handles_max: usize,
    /// Bytes that one session may have allocated at a time: device, managed and pinned host memory, and its code objects.
    /// What the session is told of free and total memory is cut to it.
    pub memory_max_bytes: u64,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            stage_max_bytes: 64 << 10,
            staged_max_bytes: 8 << 20,
            chunk_bytes: 128 << 10,
            read_ahead_bytes: 512 << 10,
            turn_max_bytes: 512 << 10,
            unsent_max_bytes: 4 << 20,
            collect_max_bytes: 1 << 30,
            collect_total_max_bytes: 4 << 30,
            handles_max: 1 << 20,
            memory_max_bytes: u64::MAX,
        }
    }
}
