//! Fused multiply-add of f32, the most frequent instruction of numerical kernels.
//!
//! On a level without FMA, a row is computed the fast way first; if that may have been wrong in any lane, which is rare, the exact
//! way.

use crate::machine::{Insn, Machine};
use crate::sem::float::{fma32, fma32_nearly};
use crate::shape::operand::Kind;
use crate::shape::source::{old_result, operand};
use crate::shape::store::is_plain;
use crate::shape::vector::Value;
use crate::simd::{Level, Task};
use crate::wave::{LANES, Row, Wave};

/// `a * b + c` in each lane.
#[inline(always)]
pub(crate) fn fma_row(level: Level, a: &Row, b: &Row, c: &Row, out: &mut Row) {
    if level.has_fma() {
        fused_row(a, b, c, out);
    } else {
        fma_row_without_unit(a, b, c, out);
    }
}

/// Computes `a * b + c` in each lane with an FMA unit.
#[inline(always)]
fn fused_row(a: &Row, b: &Row, c: &Row, out: &mut Row) {
    for lane in 0..LANES {
        out[lane] =
            f32::from_bits(a[lane]).mul_add(f32::from_bits(b[lane]), f32::from_bits(c[lane])).to_bits();
    }
}

/// Stores `a * b + c` of the rows at these three indices of the register file.
#[inline(always)]
fn store_fma(wave: &mut Wave, level: Level, insn: &Insn, plain: bool, [a, b, c]: [usize; 3]) {
    if level.has_fma() {
        let mut row = [0; LANES];
        fused_row(wave.row_at(a), wave.row_at(b), wave.row_at(c), &mut row);
        f32::store(wave, insn, plain, row);
    } else {
        let mut row = [0; LANES];
        fma_row_without_unit(wave.row_at(a), wave.row_at(b), wave.row_at(c), &mut row);
        f32::store(wave, insn, plain, row);
    }
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

/// Stores `a * b + c` of registers in the common case (no modifiers, all lanes active, an FMA unit); returns false
/// otherwise. As it calls no other function, no registers are saved.
#[inline(always)]
fn store_simple(wave: &mut Wave, machine: &Machine<'_>, insn: &Insn, c: u16) -> bool {
    let [a, b, c] = [insn.valu.src_rows[0], insn.valu.src_rows[1], c].map(usize::from);
    let last = a.max(b).max(c);
    let simple = is_plain(wave, insn, 1) && last < wave.row_count() && wave.exec() == u64::MAX;
    if !simple || !machine.program.level().has_fma() {
        return false;
    }
    let mut row = [0; LANES];
    fused_row(wave.row_at(a), wave.row_at(b), wave.row_at(c), &mut row);
    *wave.row_at_mut(usize::from(insn.valu.result)) = row;
    true
}

struct AnyFma<'a> {
    wave: &'a mut Wave,
    insn: &'a Insn,
    accumulates: bool,
}

impl Task for AnyFma<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self, level: Level) {
        let Self { wave, insn, accumulates } = self;
        let plain = is_plain(wave, insn, 1);
        let a = operand(wave, insn, 0, Kind::F32, plain);
        let b = operand(wave, insn, 1, Kind::F32, plain);
        let c = if accumulates {
            old_result(wave, insn, Kind::F32, plain)
        } else {
            operand(wave, insn, 2, Kind::F32, plain)
        };
        store_fma(wave, level, insn, plain, [a, b, c]);
    }
}

/// Multiplies and adds three sources.
#[inline(always)]
pub(crate) fn fma(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) {
    if !store_simple(wave, machine, insn, insn.valu.src_rows[2]) {
        machine.program.level().run(AnyFma { wave, insn, accumulates: false });
    }
}

/// Multiplies two sources and adds them to the destination.
#[inline(always)]
pub(crate) fn fmac(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) {
    if !store_simple(wave, machine, insn, insn.valu.result) {
        machine.program.level().run(AnyFma { wave, insn, accumulates: true });
    }
}

/// Multiplies and adds two sources and the literal, in the order of `order`.
#[inline(always)]
pub(crate) fn fma_literal(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    order: impl Fn(usize, usize, usize) -> [usize; 3],
) {
    let plain = is_plain(wave, insn, 1);
    let a = operand(wave, insn, 0, Kind::F32, plain);
    let b = operand(wave, insn, 1, Kind::F32, plain);
    let literal = wave.temporary(2);
    *wave.row_at_mut(literal) = [insn.literal; LANES];
    store_fma(wave, machine.program.level(), insn, plain, order(a, b, literal));
}
