//! What a device says of work that has failed.

use hipr_proto::Opcode;

/// The request of a client that work belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Number of the request among those of its connection; 0 if the work belongs to none.
    pub request: u32,
    /// The operation.
    pub op: Opcode,
}

impl Origin {
    /// The origin of work that no client has asked for.
    pub const NONE: Self = Self { request: 0, op: Opcode(0) };
}

/// A launch that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkFailure {
    /// The request that has launched it ([`Launch::origin`](crate::Launch::origin)).
    pub origin: Origin,
    /// Handle of the kernel.
    pub function: u64,
    /// The stream.
    pub stream: u64,
    /// Name of the kernel.
    pub kernel: String,
    /// What happened.
    pub text: String,
}

/// What a kernel has printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// Whether it is for standard error instead of standard output.
    pub is_error: bool,
    /// The bytes, as C's `printf` makes them of what the kernel says.
    pub text: Vec<u8>,
}
