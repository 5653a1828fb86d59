//! Range reduction of trigonometric functions: pieces of 2/pi.

/// The first 1216 bits of 2/pi after the binary point, most significant first.
const TWO_OVER_PI: [u64; 19] = [
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
];
/// Number of bits of 2/pi that the instruction knows.
const KNOWN_BITS: u32 = 1201;

/// Returns 53 bits of 2/pi as a number: segment number `segment` of those that matter to an argument as large as `x`.
#[inline(always)]
pub(crate) fn trig_preop64(x: f64, segment: u32) -> f64 {
    let exponent = (x.to_bits() >> 52 & 0x7ff) as u32;
    let shift = (segment & 31) * 53 + exponent.saturating_sub(1077);
    let scale = -53 - shift as i32 + if exponent >= 1968 { 128 } else { 0 };
    crate::sem::float::ldexp64(bits(shift) as f64, scale)
}

/// Returns 53 bits of 2/pi, from `shift` bits after the binary point on. Beyond the known ones there are zeros.
fn bits(shift: u32) -> u64 {
    let word = |index: usize| TWO_OVER_PI.get(index).copied().unwrap_or(0);
    let (index, offset) = ((shift / 64) as usize, shift % 64);
    let pair = u128::from(word(index)) << 64 | u128::from(word(index + 1));
    let piece = (pair << offset >> 75) as u64;
    let known = KNOWN_BITS.saturating_sub(shift).min(53);
    piece & (u64::MAX >> 11) & !((1u64 << (53 - known)) - 1)
}
