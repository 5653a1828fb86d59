//! LDS whose bytes derive from their addresses.

use crate::bench::Bench;

/// Size of the LDS of [`Bench`] in bytes.
pub(crate) const LEN_BYTES: u32 = 4096;

/// Returns the byte at `addr` of the LDS of [`bench`], 0 beyond its end.
pub(crate) fn byte(addr: u32) -> u8 {
    if addr < LEN_BYTES { (addr as u8).wrapping_mul(7) ^ (addr >> 8) as u8 ^ 0x80 } else { 0 }
}

pub(crate) fn word(addr: u32) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|index| byte(addr.wrapping_add(index as u32))))
}

/// Creates a wave with LDS in which bytes derive from their addresses.
pub(crate) fn bench() -> Bench {
    let mut bench = Bench::default();
    assert_eq!(bench.lds.len_bytes(), LEN_BYTES);
    (0..LEN_BYTES).for_each(|addr| bench.lds.store_u8(addr, byte(addr)));
    bench
}

pub(crate) fn contents(bench: &Bench) -> Vec<u8> {
    (0..LEN_BYTES).map(|addr| bench.lds.load_u8(addr)).collect()
}
