//! Times between events that a worker tells.

use super::define::layout;

/// Maximum number of pairs in an `EVENT_TIMES`.
pub const TIMES_MAX: usize = 64;

layout! {
    /// Two events: the times between them are wanted.
    EventPair { start: u64, stop: u64 }
}

layout! {
    /// The milliseconds between two events, or the error that asking for them returns.
    EventTime { milliseconds: f32, error_code: i32 }
}
