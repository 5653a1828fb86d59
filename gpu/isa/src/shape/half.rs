//! Arithmetic of f16, single and packed, in f32: rows are widened, computed and narrowed in separate loops, because those
//! vectorize and a single loop does not.

use crate::machine::{Insn, Machine};
use crate::sem::half::F16;
use crate::shape::operand::Kind;
use crate::shape::packed::{Half, floats_of, halves_of, sum_of};
use crate::shape::source::{old_result, operand, previous, source};
use crate::shape::store::{is_plain, store_bits, store_f16};
use crate::shape::vector::Value;
use crate::simd::halves::{narrowed, widened};
use crate::simd::{Level, Task};
use crate::wave::{LANES, Row, Wave};

/// Returns `f` of two rows of f16 that begin at bit `shift`.
#[inline(always)]
fn compute2(level: Level, a: &Row, b: &Row, shift: u32, f: impl Fn(f32, f32) -> f32) -> Row {
    let (a, b) = (widened(level, a, shift), widened(level, b, shift));
    narrowed(level, &std::array::from_fn(|lane| f(a[lane], b[lane])))
}

/// Returns `f` of three rows of f16 that begin at bit `shift`.
#[inline(always)]
fn compute3(level: Level, a: &Row, b: &Row, c: &Row, shift: u32, f: impl Fn(f32, f32, f32) -> f32) -> Row {
    let (a, b, c) = (widened(level, a, shift), widened(level, b, shift), widened(level, c, shift));
    narrowed(level, &std::array::from_fn(|lane| f(a[lane], b[lane], c[lane])))
}

/// Returns each lane's sum of the products of two rows' halves and a row of f32, added with `f`.
#[inline(always)]
fn dot2_rows(level: Level, a: &Row, b: &Row, sums: &Row, f: impl Fn(f32, f32, f32) -> f32) -> Row {
    let (a_low, a_high) = (widened(level, a, 0), widened(level, a, 16));
    let (b_low, b_high) = (widened(level, b, 0), widened(level, b, 16));
    let mut out = [0; LANES];
    for lane in 0..LANES {
        let (low, high) = (a_low[lane] * b_low[lane], a_high[lane] * b_high[lane]);
        out[lane] = f(low, high, f32::from_bits(sums[lane])).to_bits();
    }
    out
}

/// Declares shapes that are compiled as a whole for each level and take the level as an argument, so that the instructions
/// themselves are compiled once.
macro_rules! shapes {
    ($($(#[$doc:meta])* fn $name:ident($level:ident, $wave:ident, $insn:ident, $f:ident: [$($bound:tt)*]) $body:block)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn, f: impl $($bound)*) {
            struct Shape<'a, F> {
                wave: &'a mut Wave,
                insn: &'a Insn,
                f: F,
            }
            impl<F: $($bound)*> Task for Shape<'_, F> {
                type Output = ();
                #[inline(always)]
                fn run(self, $level: Level) {
                    let Self { wave: $wave, insn: $insn, f: $f } = self;
                    $body
                }
            }
            machine.program.level().run(Shape { wave, insn, f });
        }
    )*};
}
shapes! {
    /// Applies `f` to two sources. `f` must be an operation for which f32 is precise enough that rounding to f16 is exact.
    fn half2(level, wave, insn, f: [Fn(f32, f32) -> f32]) {
        let a = source(wave, insn, 0, Kind::F16);
        let b = source(wave, insn, 1, Kind::F16);
        let out = compute2(level, wave.row_at(a), wave.row_at(b), 0, f);
        store_f16(wave, insn, &out);
    }

    /// Applies `f`, which rounds to odd, to three sources.
    fn half3(level, wave, insn, f: [Fn(f32, f32, f32) -> f32]) {
        let a = source(wave, insn, 0, Kind::F16);
        let b = source(wave, insn, 1, Kind::F16);
        let c = source(wave, insn, 2, Kind::F16);
        let out = compute3(level, wave.row_at(a), wave.row_at(b), wave.row_at(c), 0, f);
        store_f16(wave, insn, &out);
    }

    /// Applies `f` to the halves of two sources.
    fn pk_half2(level, wave, insn, f: [Fn(f32, f32) -> f32]) {
        let a = floats_of(wave, insn, 0);
        let b = floats_of(wave, insn, 1);
        let (a, b) = (wave.row_at(a), wave.row_at(b));
        let (low, high) = (compute2(level, a, b, 0, &f), compute2(level, a, b, 16, &f));
        store_halves(wave, insn, &low, &high);
    }

    /// Applies `f`, which rounds to odd, to the halves of three sources.
    fn pk_half3(level, wave, insn, f: [Fn(f32, f32, f32) -> f32]) {
        let a = floats_of(wave, insn, 0);
        let b = floats_of(wave, insn, 1);
        let c = floats_of(wave, insn, 2);
        let (a, b, c) = (wave.row_at(a), wave.row_at(b), wave.row_at(c));
        let (low, high) = (compute3(level, a, b, c, 0, &f), compute3(level, a, b, c, 16, &f));
        store_halves(wave, insn, &low, &high);
    }

    /// Applies `f`, which rounds to odd, to the halves of two sources and of the destination.
    fn pk_half_accumulate(level, wave, insn, f: [Fn(f32, f32, f32) -> f32]) {
        let a = source(wave, insn, 0, Kind::B32);
        let b = source(wave, insn, 1, Kind::B32);
        let c = previous(wave, insn, Kind::B32);
        let (a, b, c) = (wave.row_at(a), wave.row_at(b), wave.row_at(c));
        let (low, high) = (compute3(level, a, b, c, 0, &f), compute3(level, a, b, c, 16, &f));
        store_halves(wave, insn, &low, &high);
    }

    /// Adds the products of two sources' halves to the destination with `f`.
    fn dot2_accumulate(level, wave, insn, f: [Fn(f32, f32, f32) -> f32]) {
        let plain = is_plain(wave, insn, 1);
        let a = operand(wave, insn, 0, Kind::B32, plain);
        let b = operand(wave, insn, 1, Kind::B32, plain);
        let sums = old_result(wave, insn, Kind::F32, plain);
        let out = dot2_rows(level, wave.row_at(a), wave.row_at(b), wave.row_at(sums), f);
        f32::store(wave, insn, plain, out);
    }

    /// Adds the products of two sources' halves to the third source with `f`.
    fn dot2_halves(level, wave, insn, f: [Fn(f32, f32, f32) -> f32]) {
        let a = halves_of(wave, insn, 0);
        let b = halves_of(wave, insn, 1);
        let sums = sum_of(wave, insn);
        let out = dot2_rows(level, wave.row_at(a), wave.row_at(b), wave.row_at(sums), f);
        store_bits(wave, insn, &out);
    }
}

#[inline(always)]
fn store_halves(wave: &mut Wave, insn: &Insn, low: &Row, high: &Row) {
    let out = std::array::from_fn(|lane| low[lane] | high[lane] << 16);
    let out = F16::finish(wave, insn, out);
    store_bits(wave, insn, &out);
}
