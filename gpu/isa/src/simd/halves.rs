//! Conversion of rows between f16 and f32, eight or sixteen lanes at a time where the processor supports it.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    _MM_FROUND_TO_NEAREST_INT as NEAREST, _mm256_cvtph_ps, _mm256_cvtps_ph, _mm512_cvtph_ps, _mm512_cvtps_ph,
};

#[cfg(target_arch = "x86_64")]
use bytemuck::cast;

use super::{Level, Task};
use crate::sem::half::F16;
use crate::wave::{Aligned, LANES, Row};

/// Number of 32-bit values in a vector of AVX.
#[cfg(target_arch = "x86_64")]
const YMM: usize = 8;
/// Number of 32-bit values in a vector of AVX-512.
#[cfg(target_arch = "x86_64")]
const ZMM: usize = 16;

/// Returns each lane's f16 at bit `shift`, widened to f32. A signalling NaN may become a quiet one.
#[inline(always)]
pub fn widened(level: Level, row: &Row, shift: u32) -> [f32; LANES] {
    let mut out = Aligned([0.0; LANES]);
    widen(level, row, shift, &mut out.0);
    out.0
}

/// Sets `out` to each lane's f16 at bit `shift`, widened to f32.
#[inline(always)]
pub fn widen(level: Level, row: &Row, shift: u32, out: &mut [f32; LANES]) {
    level.run(Widen { row, shift, out });
}

/// Returns each lane's number as f16 in the low half, rounded to nearest even.
#[inline(always)]
pub fn narrowed(level: Level, row: &[f32; LANES]) -> Row {
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
