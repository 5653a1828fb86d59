//! What threads note for the trace. Times are nanoseconds of the monotonic clock.

use hipr_client::Requested;
use hipr_proto::op::TraceEntry;

use super::SHOWN_MAX;
use crate::calls::Exported;

/// A call of a HIP function that has returned.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) function: Exported,
    /// Its word ([`Exported::call`]).
    pub(super) call: u64,
    pub(super) began_ns: u64,
    pub(super) ended_ns: u64,
    /// The error, or 0.
    pub(super) code: i32,
    /// Those of its arguments that are shown.
    pub(super) shown: [u64; SHOWN_MAX],
    /// The return addresses on the stack, the innermost first, of a call that has waited.
    pub(super) stack: Option<Box<[usize]>>,
}

/// A wait for the answer to a request, which is over.
#[derive(Debug)]
pub(super) struct Wait {
    pub(super) request: u32,
    pub(super) len_bytes: u64,
    pub(super) began_ns: u64,
    pub(super) ended_ns: u64,
    /// The word of the call that waited.
    pub(super) call: u64,
}

/// Something that has happened.
#[derive(Debug)]
pub(super) enum Event {
    Call(Call),
    Connected { began_ns: u64, ended_ns: u64, call: u64 },
    Requested(Requested),
    Sent { began_ns: u64, ended_ns: u64, len_bytes: u64, last_request: u32 },
    Received { at_ns: u64, len_bytes: u64 },
    Waited(Wait),
    Told { entries: Box<[TraceEntry]>, lost: u32 },
    Reconnected { at_ns: u64 },
    Named { function: u64, symbol: Box<str> },
}
