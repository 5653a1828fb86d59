//! Whether a synchronization waits for work that can show the program nothing.

/// The requests that a program may be ahead of the worker.
pub const AHEAD_REQUESTS_MAX: u64 = 1 << 16;

/// The bytes that a program may be ahead of the worker by default.
pub const AHEAD_MAX_BYTES: u64 = 64 << 20;

/// When synchronizations and queries wait for open work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// Always, so that they tell its errors.
    #[default]
    Strict,
    /// Only where the work may write to memory that the program can read, or where the program is far ahead of the worker. Otherwise
    /// they return at once with success: the worker waits before it does what is sent later, and an error comes with a later call that
    /// waits.
    Lazy {
        /// How many bytes may have been sent since the worker's last answer.
        ahead_max_bytes: u64,
    },
}

impl SyncMode {
    /// Reads the mode from the environment: `HIPR_SYNC` (`strict` or `lazy`) and `HIPR_AHEAD_MAX` (bytes). What cannot be read is logged,
    /// and as if it was not there.
    pub fn from_env() -> Self {
        let text = |name| std::env::var(name).unwrap_or_default().trim().to_ascii_lowercase();
        let ahead_max_bytes = match text("HIPR_AHEAD_MAX").as_str() {
            "" => AHEAD_MAX_BYTES,
            number => number.parse().unwrap_or_else(|_| {
                tracing::warn!(
                    "HIPR_AHEAD_MAX: '{number}' is not a number of bytes; using {AHEAD_MAX_BYTES}"
                );
                AHEAD_MAX_BYTES
            }),
        };
        match text("HIPR_SYNC").as_str() {
            "" | "strict" => Self::Strict,
            "lazy" => Self::Lazy { ahead_max_bytes },
            other => {
                tracing::warn!("HIPR_SYNC: '{other}' is not strict or lazy; using strict");
                Self::Strict
            }
        }
    }

    /// Returns whether a program that has sent so many requests and bytes since the worker's last answer may go on without one.
    pub(super) fn allows(self, (requests, bytes): (u64, u64)) -> bool {
        match self {
            Self::Strict => false,
            Self::Lazy { ahead_max_bytes } => requests <= AHEAD_REQUESTS_MAX && bytes <= ahead_max_bytes,
        }
    }
}
