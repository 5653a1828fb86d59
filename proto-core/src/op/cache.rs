//! Chunks of the cache of uploads: their sizes and names.

/// Size of the key of a cache, in bytes.
pub const CACHE_KEY_BYTES: usize = 32;
/// Size of the name of a chunk, in bytes.
pub const CACHE_NAME_BYTES: usize = 32;
/// Maximum number of names in a request.
pub const CACHE_NAMES_MAX: usize = 256;
/// Minimum size of a chunk in bytes.
pub const CACHE_CHUNK_MIN_BYTES: u64 = 64 << 10;
/// Maximum size of a chunk in bytes.
pub const CACHE_CHUNK_MAX_BYTES: u64 = 4 << 20;
