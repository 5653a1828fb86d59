//! Capabilities to read memory of another session: their bounds.

/// Size of the token of a capability, in bytes.
pub const CAPABILITY_TOKEN_BYTES: usize = 32;
/// Maximum number of capabilities of a session that have not ended.
pub const CAPABILITIES_MAX: usize = 16;
/// Maximum time within which a capability has to be used, in milliseconds.
pub const CAPABILITY_TIMEOUT_MAX_MS: u32 = 60_000;
/// Maximum number of bytes that are read at a time.
pub const CAPABILITY_PIECE_MAX_BYTES: u64 = 4 << 20;
/// Maximum length of a worker's address, in bytes.
pub const CAPABILITY_ADDRESS_MAX_BYTES: usize = 256;
