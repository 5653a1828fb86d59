//! The transport between client and worker.

use clap::ValueEnum;
use std::fmt;

/// The transport between client and worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// TCP over loopback.
    Tcp,
    /// A Unix socket.
    Unix,
    /// Rings in shared memory.
    Shm,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
            Self::Shm => "shm",
        })
    }
}

impl Transport {
    /// Returns the kind of socket to compare with: shared memory is compared with a unix socket.
    pub(crate) fn socket(self) -> Self {
        if self == Self::Shm { Self::Unix } else { self }
    }
}
