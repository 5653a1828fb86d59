//! Packed bytes: their sizes, and when packing pays. What packs and unpacks is not here, as this crate has no allocations of that size.

/// Base-2 logarithm of the largest window that a frame of packed bytes may need.
pub const PACKED_WINDOW_LOG: u32 = 20;
/// Maximum size in bytes of a part of a copy, before it is packed.
pub const PACKED_PART_MAX_BYTES: u64 = 4 << 20;
/// Minimum size in bytes of what is worth packing.
pub const PACKED_MIN_BYTES: usize = 4096;

/// Values of `purpose` in `PUT_PACKED`.
pub mod purpose {
    /// The bytes are written.
    pub const WRITTEN: u32 = 0;
    /// The client is taken to know them, too.
    pub const KNOWN: u32 = 1;
    /// They are put into the cache of uploads, too.
    pub const KEPT: u32 = 2;
}

/// Returns the maximum size in bytes of `length` bytes when they are packed and cannot be made fewer.
pub const fn packed_max_bytes(length: u64) -> u64 {
    // A block of 128 KiB has 3 bytes more, the frame less than 32.
    length.saturating_add(length >> 12).saturating_add(64)
}

/// Returns the maximum size in bytes of `length` bytes when they are packed and that pays: an eighth has to be saved.
pub const fn packed_worth_bytes(length: usize) -> usize {
    length - length / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_pays_from_an_eighth_on_and_never_for_nothing() {
        for (length, worth) in
            [(0, 0), (1, 1), (8, 7), (4096, 3584), (usize::MAX, usize::MAX - usize::MAX / 8)]
        {
            assert_eq!(packed_worth_bytes(length), worth);
        }
        assert_eq!(packed_max_bytes(0), 64);
        assert_eq!(packed_max_bytes(u64::MAX), u64::MAX);
        assert!(packed_max_bytes(1 << 20) < (1 << 20) + 400);
    }
}
