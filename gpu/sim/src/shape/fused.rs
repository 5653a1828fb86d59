//! Fused multiply-add of f32, which is most of what numerical kernels do.
//!
//! On a level without FMA, a row is computed the fast way first; if that may have been wrong in any lane, which is rare, the exact
//! way.

use crate::sem::float::{fma32, fma32_nearly};
use crate::shape::source::{previous, source};
use crate::shape::store::store_f32;
use crate::shape::vector::Kind;
use crate::simd::Level;
use crate::step::{Insn, Machine};
use crate::wave::{LANES, Row, Wave};

/// `a * b + c` in each lane.
#[inline(always)]
pub(crate) fn fma_row(level: Level, a: &Row, b: &Row, c: &Row) -> Row {
    let operand = |row: &Row, lane: usize| f32::from_bits(row[lane]);
    if level.has_fma() {
        return std::array::from_fn(|lane| {
            operand(a, lane).mul_add(operand(b, lane), operand(c, lane)).to_bits()
        });
    }
    let mut out = [0; LANES];
    let mut doubt = 0;
    for (lane, out) in out.iter_mut().enumerate() {
        let (value, doubtful) = fma32_nearly(operand(a, lane), operand(b, lane), operand(c, lane));
        *out = value.to_bits();
        doubt |= doubtful;
    }
    if doubt == 0 { out } else { fma_row_exactly(a, b, c) }
}

#[cold]
#[inline(never)]
fn fma_row_exactly(a: &Row, b: &Row, c: &Row) -> Row {
    let operand = |row: &Row, lane: usize| f32::from_bits(row[lane]);
    std::array::from_fn(|lane| fma32(operand(a, lane), operand(b, lane), operand(c, lane)).to_bits())
}

/// Three sources.
#[inline(always)]
pub(crate) fn fma(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) {
    let places = [0, 1, 2].map(|n| source(wave, insn, n, Kind::F32));
    let [a, b, c] = places.map(|place| wave.place(place));
    let out = fma_row(machine.program.level(), a, b, c);
    store_f32(wave, insn, &out);
}

/// Two sources and what the destination holds.
#[inline(always)]
pub(crate) fn fmac(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) {
    let a = source(wave, insn, 0, Kind::F32);
    let b = source(wave, insn, 1, Kind::F32);
    let c = previous(wave, insn, Kind::F32);
    let out = fma_row(machine.program.level(), wave.place(a), wave.place(b), wave.place(c));
    store_f32(wave, insn, &out);
}

/// Two sources and the literal, in the order that `order` puts them.
#[inline(always)]
pub(crate) fn fma_literal(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    order: impl for<'a> Fn(&'a Row, &'a Row, &'a Row) -> [&'a Row; 3],
) {
    let a = source(wave, insn, 0, Kind::F32);
    let b = source(wave, insn, 1, Kind::F32);
    let literal = [insn.literal; LANES];
    let [a, b, c] = order(wave.place(a), wave.place(b), &literal);
    let out = fma_row(machine.program.level(), a, b, c);
    store_f32(wave, insn, &out);
}
