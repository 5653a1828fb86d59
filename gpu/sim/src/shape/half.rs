//! Arithmetic of f16, single and packed, by way of f32: rows are widened, computed and narrowed one after the other, each of which
//! vectorizes, as all of it in one loop does not.

use crate::sem::half::F16;
use crate::shape::packed::{Half, floats_of};
use crate::shape::source::{previous, source};
use crate::shape::store::{store_bits, store_f16};
use crate::shape::vector::Kind;
use crate::step::{Insn, Machine};
use crate::wave::{LANES, Row, Wave};

#[inline(always)]
fn widened(row: &Row, shift: u32) -> [f32; LANES] {
    std::array::from_fn(|lane| F16((row[lane] >> shift) as u16).to_f32())
}

#[inline(always)]
fn narrowed(row: &[f32; LANES]) -> Row {
    std::array::from_fn(|lane| u32::from(F16::from_f32(row[lane]).0))
}

/// Results of two rows of f16 that are `shift` bits up.
#[inline(always)]
fn compute2(a: &Row, b: &Row, shift: u32, f: impl Fn(f32, f32) -> f32) -> Row {
    let (a, b) = (widened(a, shift), widened(b, shift));
    narrowed(&std::array::from_fn(|lane| f(a[lane], b[lane])))
}

/// Results of three rows of f16 that are `shift` bits up.
#[inline(always)]
fn compute3(a: &Row, b: &Row, c: &Row, shift: u32, f: impl Fn(f32, f32, f32) -> f32) -> Row {
    let (a, b, c) = (widened(a, shift), widened(b, shift), widened(c, shift));
    narrowed(&std::array::from_fn(|lane| f(a[lane], b[lane], c[lane])))
}

/// Two sources. `f` must be an operation that f32 has precision enough for to be rounded only once.
#[inline(always)]
pub(crate) fn half2(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn, f: impl Fn(f32, f32) -> f32) {
    let a = source(wave, insn, 0, Kind::F16);
    let b = source(wave, insn, 1, Kind::F16);
    let out = compute2(wave.place(a), wave.place(b), 0, f);
    store_f16(wave, insn, &out);
}

/// Three sources. `f` rounds to odd.
#[inline(always)]
pub(crate) fn half3(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn, f: impl Fn(f32, f32, f32) -> f32) {
    let a = source(wave, insn, 0, Kind::F16);
    let b = source(wave, insn, 1, Kind::F16);
    let c = source(wave, insn, 2, Kind::F16);
    let out = compute3(wave.place(a), wave.place(b), wave.place(c), 0, f);
    store_f16(wave, insn, &out);
}

/// Two sources of halves.
#[inline(always)]
pub(crate) fn pk_half2(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn, f: impl Fn(f32, f32) -> f32) {
    let a = floats_of(wave, insn, 0);
    let b = floats_of(wave, insn, 1);
    let (a, b) = (wave.place(a), wave.place(b));
    let (low, high) = (compute2(a, b, 0, &f), compute2(a, b, 16, &f));
    store_halves(wave, insn, &low, &high);
}

/// Three sources of halves. `f` rounds to odd.
#[inline(always)]
pub(crate) fn pk_half3(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn, f: impl Fn(f32, f32, f32) -> f32) {
    let places = [0, 1, 2].map(|n| floats_of(wave, insn, n));
    let [a, b, c] = places.map(|place| wave.place(place));
    let (low, high) = (compute3(a, b, c, 0, &f), compute3(a, b, c, 16, &f));
    store_halves(wave, insn, &low, &high);
}

/// Two sources of halves and what the destination holds. `f` rounds to odd.
#[inline(always)]
pub(crate) fn pk_half_accumulate(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(f32, f32, f32) -> f32,
) {
    let a = source(wave, insn, 0, Kind::B32);
    let b = source(wave, insn, 1, Kind::B32);
    let c = previous(wave, insn, Kind::B32);
    let (a, b, c) = (wave.place(a), wave.place(b), wave.place(c));
    let (low, high) = (compute3(a, b, c, 0, &f), compute3(a, b, c, 16, &f));
    store_halves(wave, insn, &low, &high);
}

#[inline(always)]
fn store_halves(wave: &mut Wave, insn: &Insn, low: &Row, high: &Row) {
    let out = std::array::from_fn(|lane| low[lane] | high[lane] << 16);
    let out = F16::finish(wave, insn, out);
    store_bits(wave, insn, &out);
}
