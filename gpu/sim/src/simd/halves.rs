//! Rows of f16 to f32 and back: one instruction for eight or sixteen lanes where the processor has it.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    _MM_FROUND_TO_NEAREST_INT as NEAREST, _mm256_cvtph_ps, _mm256_cvtps_ph, _mm512_cvtph_ps, _mm512_cvtps_ph,
};

#[cfg(target_arch = "x86_64")]
use bytemuck::cast;

use super::{Level, Task};
use crate::sem::half::F16;
use crate::wave::{Aligned, LANES, Row};

/// Lanes of a vector of AVX, of one of AVX-512.
#[cfg(target_arch = "x86_64")]
const YMM: usize = 8;
#[cfg(target_arch = "x86_64")]
const ZMM: usize = 16;

/// What the halves that are `shift` bits up in each lane are as f32. A signalling NaN may become a quiet one.
#[inline(always)]
pub(crate) fn widened(level: Level, row: &Row, shift: u32) -> [f32; LANES] {
    let mut out = Aligned([0.0; LANES]);
    widen(level, row, shift, &mut out.0);
    out.0
}

/// Makes `out` that.
#[inline(always)]
pub(crate) fn widen(level: Level, row: &Row, shift: u32, out: &mut [f32; LANES]) {
    level.run(Widen { row, shift, out });
}

/// Each lane's number as f16, to nearest even, in the low half.
#[inline(always)]
pub(crate) fn narrowed(level: Level, row: &[f32; LANES]) -> Row {
    let mut out = Aligned([0; LANES]);
    level.run(Narrow { row, out: &mut out.0 });
    out.0
}

struct Widen<'a> {
    row: &'a Row,
    shift: u32,
    out: &'a mut [f32; LANES],
}

impl Task for Widen<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self, #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables))] level: Level) {
        #[cfg(target_arch = "x86_64")]
        if level.has_avx512() {
            // SAFETY: the level has AVX-512.
            return self.by(|halves: [u16; ZMM]| cast(unsafe { _mm512_cvtph_ps(cast(halves)) }));
        } else if level.has_fma() {
            // SAFETY: levels with FMA have F16C.
            return self.by(|halves: [u16; YMM]| cast(unsafe { _mm256_cvtph_ps(cast(halves)) }));
        }
        self.by(|[half]: [u16; 1]| [F16(half).to_f32()]);
    }
}

impl Widen<'_> {
    #[inline(always)]
    fn by<const N: usize>(self, convert: impl Fn([u16; N]) -> [f32; N]) {
        let words = self.row.as_chunks::<N>().0;
        for (words, out) in words.iter().zip(self.out.as_chunks_mut::<N>().0) {
            let mut halves = [0; N];
            for lane in 0..N {
                halves[lane] = (words[lane] >> self.shift) as u16;
            }
            *out = convert(halves);
        }
    }
}

struct Narrow<'a> {
    row: &'a [f32; LANES],
    out: &'a mut Row,
}

impl Task for Narrow<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self, #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables))] level: Level) {
        #[cfg(target_arch = "x86_64")]
        if level.has_avx512() {
            // SAFETY: the level has AVX-512.
            return self.by(|values: [f32; ZMM]| cast(unsafe { _mm512_cvtps_ph::<NEAREST>(cast(values)) }));
        } else if level.has_fma() {
            // SAFETY: levels with FMA have F16C.
            return self.by(|values: [f32; YMM]| cast(unsafe { _mm256_cvtps_ph::<NEAREST>(cast(values)) }));
        }
        self.by(|[value]: [f32; 1]| [F16::from_f32(value).0]);
    }
}

impl Narrow<'_> {
    #[inline(always)]
    fn by<const N: usize>(self, convert: impl Fn([f32; N]) -> [u16; N]) {
        let values = self.row.as_chunks::<N>().0;
        for (values, out) in values.iter().zip(self.out.as_chunks_mut::<N>().0) {
            let halves = convert(*values);
            for lane in 0..N {
                out[lane] = u32::from(halves[lane]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{narrowed, widened};
    use crate::sem::half::F16;
    use crate::simd::Level;
    use crate::wave::LANES;

    #[test]
    fn all_halves_are_widened_on_each_level() {
        for level in Level::available() {
            for first in (0..=u16::MAX - 63).step_by(LANES) {
                let row = std::array::from_fn(|lane| u32::from(first + lane as u16) << 16 | 0x1234);
                for (lane, wide) in widened(level, &row, 16).into_iter().enumerate() {
                    let expected = F16(first + lane as u16).to_f32();
                    let same = wide.to_bits() == expected.to_bits() || wide.is_nan() && expected.is_nan();
                    assert!(same, "{level:?}: {:#x}", first + lane as u16);
                }
                let low = widened(level, &row, 0);
                assert_eq!(low, [F16(0x1234).to_f32(); LANES], "{level:?}");
            }
        }
    }

    #[test]
    fn rows_are_narrowed_alike_on_each_level() {
        let mut bits = 1u32;
        for _ in 0..20_000 {
            let row: [f32; LANES] = std::array::from_fn(|lane| {
                bits = bits.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
                // Every other one where f16 has numbers, denormals included.
                let exponent = if lane % 2 == 0 { bits >> 23 } else { 100 + (bits >> 16) % 45 };
                f32::from_bits(bits & 0x807f_ffff | (exponent & 0xff) << 23)
            });
            let expected = narrowed(Level::BASE, &row);
            for level in Level::available() {
                assert_eq!(narrowed(level, &row), expected, "{level:?}: {row:?}");
            }
        }
    }
}
