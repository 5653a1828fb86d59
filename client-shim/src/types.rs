//! Types of exported functions that are not HIP's own.

/// The result type of the runtime compiler's functions, `hiprtcResult`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtcResult(pub i32);
