//! Inputs of kernels.

use crate::Random;

/// Work-items of a workgroup, as in `prelude.h`.
pub(crate) const GROUP: usize = 128;
/// Workgroups of a launch.
pub(crate) const GROUPS: usize = 3;
/// Input words of a lane, as in `prelude.h`.
const IN_WORDS: usize = 8;

/// Returns random inputs with many special values.
pub fn inputs(seed: u64) -> Vec<u32> {
    const SPECIAL: [u32; 24] = [
        0,
        1,
        u32::MAX,
        0x8000_0000,
        0x7fff_ffff,
        0x3f80_0000,
        0xbf80_0000,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x0080_0000,
        0x007f_ffff,
        0x8000_0001,
        0x7f7f_ffff,
        0x3c00_bc00,
        0x7c00_fc00,
        0x0001_8001,
        0x7fef_ffff,
        0x7ff0_0000,
        0x4b00_0001,
        0x4f00_0000,
        0x5f00_0000,
        0x0000_ffff,
        32,
    ];
    let mut random = Random::new(seed);
    let mut word = move || match random.below(8) {
        0 => SPECIAL[random.below(SPECIAL.len())],
        1 => random.below(100) as u32,
        // Floats of moderate size, also as the upper half of a double.
        2 | 3 => (random.u64() as u32 & 0x807f_ffff) | (0x3e00_0000 + ((random.below(12) as u32) << 23)),
        // Pairs of half floats of moderate size.
        4 => random.u64() as u32 & 0x8bff_8bff | 0x3400_3000,
        _ => random.u64() as u32,
    };
    (0..GROUPS * GROUP * IN_WORDS).map(|_| word()).collect()
}
