//! When work was done, for a trace.

use std::time::Instant;

use crate::Origin;

/// Number of commands whose times a context keeps until they are taken.
pub const TIMES_MAX: usize = 4096;

/// When the device did the work of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkTimes {
    /// The request that has enqueued it.
    pub origin: Origin,
    /// The stream.
    pub stream: u64,
    /// The kernel; 0 for other work.
    pub function: u64,
    /// When it was enqueued.
    pub enqueued: Instant,
    /// When the device began with it.
    pub began: Instant,
    /// When it ended.
    pub ended: Instant,
}
