//! Length of an image as far as its first bytes determine it.

/// Maximum length of a code object, bundle or compressed bundle (4 GiB).
pub const IMAGE_MAX_BYTES: u64 = 1 << 32;

/// The length of an image, as far as a prefix of it determines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The image has at least this many bytes, more than were given; pass as many to learn more.
    More(u64),
    /// The image has this many bytes.
    Total(u64),
}
