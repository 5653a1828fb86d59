//! What a worker tells for a trace.

use super::define::layout;

/// Maximum number of entries in a `TRACED`.
pub const TRACED_MAX: usize = 512;

/// What an entry of a `TRACED` is of.
pub mod trace_kind {
    /// A request.
    pub const REQUEST: u32 = 1;
    /// Work on the device.
    pub const WORK: u32 = 2;
}

layout! {
    /// When a request was carried out, or its work was done.
    TraceEntry {
        request: u32, kind: u32, stream: u64, function: u64, first_ns: u64, begin_ns: u64, end_ns: u64,
    }
}
