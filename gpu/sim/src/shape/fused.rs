//! Fused multiply-add of f32, which is most of what numerical kernels do.
//!
//! On a level without FMA, a row is computed the fast way first; if that may have been wrong in any lane, which is rare, the exact
//! way.

use crate::sem::float::{fma32, fma32_nearly};
use crate::shape::source::{previous, source};
use crate::shape::vector::{Kind, Value};
use crate::simd::Level;
use crate::step::{Insn, Machine};
use crate::wave::{LANES, Row, Wave};

/// `a * b + c` in each lane.
#[inline(always)]
pub(crate) fn fma_row(level: Level, a: &Row, b: &Row, c: &Row, out: &mut Row) {
    if level.has_fma() {
        for (((out, &a), &b), &c) in out.iter_mut().zip(a).zip(b).zip(c) {
            *out = f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c)).to_bits();
        }
    } else {
        fma_row_without_unit(a, b, c, out);
    }
}

/// Stores `a * b + c` of rows at these places.
#[inline(always)]
fn store_fma(wave: &mut Wave, machine: &Machine<'_>, insn: &Insn, [a, b, c]: [usize; 3]) {
    let mut row = f32::take_rows(wave);
    fma_row(machine.program.level(), wave.place(a), wave.place(b), wave.place(c), &mut row.0);
    f32::store(wave, insn, row);
}

#[inline(never)]
fn fma_row_without_unit(a: &Row, b: &Row, c: &Row, out: &mut Row) {
    let operand = |row: &Row, lane: usize| f32::from_bits(row[lane]);
    let mut doubt = 0;
    for (lane, out) in out.iter_mut().enumerate() {
        let (value, doubtful) = fma32_nearly(operand(a, lane), operand(b, lane), operand(c, lane));
        *out = value.to_bits();
        doubt |= doubtful;
    }
    if doubt != 0 {
        fma_row_exactly(a, b, c, out);
    }
}

#[cold]
#[inline(never)]
fn fma_row_exactly(a: &Row, b: &Row, c: &Row, out: &mut Row) {
    let operand = |row: &Row, lane: usize| f32::from_bits(row[lane]);
    for (lane, out) in out.iter_mut().enumerate() {
        *out = fma32(operand(a, lane), operand(b, lane), operand(c, lane)).to_bits();
    }
}

/// Three sources.
#[inline(always)]
pub(crate) fn fma(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) {
    let a = source(wave, insn, 0, Kind::F32);
    let b = source(wave, insn, 1, Kind::F32);
    let c = source(wave, insn, 2, Kind::F32);
    store_fma(wave, machine, insn, [a, b, c]);
}

/// Two sources and what the destination holds.
#[inline(always)]
pub(crate) fn fmac(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) {
    let a = source(wave, insn, 0, Kind::F32);
    let b = source(wave, insn, 1, Kind::F32);
    let c = previous(wave, insn, Kind::F32);
    store_fma(wave, machine, insn, [a, b, c]);
}

/// Two sources and the literal, in the order that `order` puts them.
#[inline(always)]
pub(crate) fn fma_literal(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    order: impl Fn(usize, usize, usize) -> [usize; 3],
) {
    let a = source(wave, insn, 0, Kind::F32);
    let b = source(wave, insn, 1, Kind::F32);
    let literal = wave.temporary(2);
    *wave.place_mut(literal) = [insn.literal; LANES];
    store_fma(wave, machine, insn, order(a, b, literal));
}
