//! Permits to read memory of another session: their bounds.

/// Size of the token of a permit, in bytes.
pub const PERMIT_TOKEN_BYTES: usize = 32;
/// Maximum number of permits of a session that have not ended.
pub const PERMITS_MAX: usize = 16;
/// Maximum time within which a permit has to be used, in milliseconds.
pub const PERMIT_TIMEOUT_MAX_MS: u32 = 60_000;
/// Maximum number of bytes that are read at a time.
pub const PERMIT_PIECE_MAX_BYTES: u64 = 4 << 20;
/// Maximum length of a worker's address, in bytes.
pub const PERMIT_ADDRESS_MAX_BYTES: usize = 256;
