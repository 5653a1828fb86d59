//! Global memory whose bytes derive from their addresses.

use crate::bench::{Bench, MEMORY};

pub(crate) const LEN_BYTES: u64 = 1 << 16;

/// Returns the byte at `offset` of the memory of [`bench`].
pub(crate) fn byte(offset: u64) -> u8 {
    (offset as u8).wrapping_mul(7) ^ (offset >> 8) as u8 ^ 0x80
}

/// Creates a wave whose v[0:1] and s[0:1] point to memory in which bytes derive from their addresses.
pub(crate) fn bench() -> Bench {
    let mut bench = Bench::default();
    let all: Vec<u8> = (0..LEN_BYTES).map(byte).collect();
    bench.space.write(MEMORY, &all).unwrap();
    bench.wave.set_pair(0, MEMORY);
    bench
}

pub(crate) fn read<const N: usize>(bench: &Bench, addr: u64) -> [u8; N] {
    let mut out = [0; N];
    bench.space.read(addr, &mut out).unwrap();
    out
}

pub(crate) fn read_word(bench: &Bench, offset: u64) -> u32 {
    u32::from_le_bytes(read(bench, MEMORY + offset))
}
