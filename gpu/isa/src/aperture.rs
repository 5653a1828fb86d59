//! The ranges of 64-bit flat addresses that stand for LDS and for scratch.
//!
//! A flat address whose high half is one of these means a byte of the workgroup's LDS or of the lane's scratch, at the offset in
//! the low half. No allocation lies there. Kernels read them as `src_shared_base` and `src_private_base`.

/// High half of a flat address of LDS.
pub const SHARED_HIGH: u32 = 0x0001_0000;
/// High half of a flat address of scratch.
pub const PRIVATE_HIGH: u32 = 0x0002_0000;
/// `src_shared_base`: the first flat address of LDS.
pub const SHARED_BASE: u64 = (SHARED_HIGH as u64) << 32;
/// `src_private_base`: the first flat address of scratch.
pub const PRIVATE_BASE: u64 = (PRIVATE_HIGH as u64) << 32;

/// The base in the buffer resource through which a gfx90a's kernels access their scratch: an address outside of user space.
pub const PRIVATE_BUFFER: u64 = 1 << 47;

/// The memory that a flat address refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aperture {
    /// Device memory, at the address itself.
    Memory(u64),
    /// LDS, at this byte.
    Shared(u32),
    /// The lane's own scratch, at this byte.
    Private(u32),
}

impl Aperture {
    /// Returns the memory that the flat address `addr` refers to.
    #[inline(always)]
    pub fn of(addr: u64) -> Self {
        match (addr >> 32) as u32 {
            SHARED_HIGH => Self::Shared(addr as u32),
            PRIVATE_HIGH => Self::Private(addr as u32),
            _ => Self::Memory(addr),
        }
    }
}
