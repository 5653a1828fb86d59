//! Moves between lanes, between scalar and vector registers, and between VGPRs and AccVGPRs.

use crate::enc::vop::VGPR;
use crate::machine::{Insn, Machine};
use crate::shape::operand::{Kind, scalar32};
use crate::shape::source::{operand, register, source};
use crate::shape::store::{is_plain, store_bits};
use crate::shape::vector::{Value, v2_lane};
use crate::wave::{LANES, Wave};

/// Returns the value of source 0, which is a VGPR or, independent of the lane, a scalar, in `lane`.
fn lane_of(wave: &Wave, insn: &Insn, lane: usize) -> u32 {
    let code = insn.valu.src[0];
    match code.checked_sub(VGPR) {
        Some(number) => wave.row(register(wave, usize::from(number), 0))[lane % LANES],
        None => scalar32(wave, usize::from(code), insn.literal),
    }
}

/// Reads the lane given by the second source, active or not.
pub(crate) fn readlane(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) {
    let lane = scalar32(wave, usize::from(insn.valu.src[1]), insn.literal) as usize;
    wave.sgpr[usize::from(insn.valu.sdst) & 127] = lane_of(wave, insn, lane);
}

/// Reads the first active lane; lane 0 if there is none.
pub(crate) fn readfirstlane(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) {
    let lane = wave.exec().trailing_zeros() as usize;
    wave.sgpr[usize::from(insn.valu.sdst) & 127] = lane_of(wave, insn, lane);
}

/// Writes the lane given by the second source, active or not.
pub(crate) fn writelane(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) {
    let lane = scalar32(wave, usize::from(insn.valu.src[1]), insn.literal) as usize % LANES;
    let value = scalar32(wave, usize::from(insn.valu.src[0]), insn.literal);
    let number = register(wave, usize::from(insn.valu.vdst), 3);
    wave.row_mut(number)[lane] = value;
}

/// Adds to the second source, for each lane, the number of set bits of the first source below that lane; the first source holds
/// the bits of 32 lanes from lane `first` on.
#[inline(always)]
pub(crate) fn count_below(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn, first: usize) {
    let code = insn.valu.src[0];
    let plain = is_plain(wave, insn, 1);
    if !plain || code >= VGPR {
        return count_each_below(wave, machine, insn, first);
    }
    let mask = scalar32(wave, usize::from(code), insn.literal);
    let b = operand(wave, insn, 1, Kind::B32, plain);
    let mut out = [0; LANES];
    if mask == u32::MAX {
        for (lane, (out, b)) in out.iter_mut().zip(wave.row_at(b)).enumerate() {
            *out = b.wrapping_add(lane.saturating_sub(first).min(32) as u32);
        }
    } else {
        let mut bits = u64::from(mask) << first;
        let mut count = 0;
        for (out, b) in out.iter_mut().zip(wave.row_at(b)) {
            *out = b.wrapping_add(count);
            count += bits as u32 & 1;
            bits >>= 1;
        }
    }
    u32::store(wave, insn, plain, out);
}

#[inline(never)]
fn count_each_below(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn, first: usize) {
    let below = |lane: u32| ((1u64 << lane.saturating_sub(first as u32).min(32)) - 1) as u32;
    v2_lane(wave, machine, insn, |lane, a: u32, b: u32| (a & below(lane)).count_ones().wrapping_add(b));
}

/// Exchanges two VGPRs.
#[inline(always)]
pub(crate) fn swap(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) {
    let first = usize::from(insn.valu.vdst);
    let second = usize::from(insn.valu.src[0].saturating_sub(VGPR));
    let lanes = wave.exec();
    let (a, b) = (*wave.row(first), *wave.row(second));
    wave.write_row(first, lanes, &b);
    wave.write_row(second, lanes, &a);
}

/// Returns the number of the AccVGPR that source 0 names, counted over VGPRs and AccVGPRs.
fn acc_source(wave: &Wave, insn: &Insn) -> usize {
    wave.accum_offset + usize::from(insn.valu.src[0]) % usize::from(VGPR)
}

/// Copies an AccVGPR to a VGPR.
#[inline(always)]
pub(crate) fn acc_read(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) {
    let values = *wave.row(acc_source(wave, insn));
    wave.write_row(usize::from(insn.valu.vdst), wave.exec(), &values);
}

/// Copies a VGPR, scalar or constant to an AccVGPR.
#[inline(always)]
pub(crate) fn acc_write(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) {
    let index = source(wave, insn, 0, Kind::B32);
    let values = *wave.row_at(index);
    wave.write_row(wave.accum_offset + usize::from(insn.valu.vdst), wave.exec(), &values);
}

/// Copies an AccVGPR to an AccVGPR.
#[inline(always)]
pub(crate) fn acc_move(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) {
    let values = *wave.row(acc_source(wave, insn));
    wave.write_row(wave.accum_offset + usize::from(insn.valu.vdst), wave.exec(), &values);
}

/// Writes the result of two sources to the byte of the destination that the upper two bits of op_sel select; keeps the other
/// bytes.
#[inline(always)]
pub(crate) fn v2_byte<A: Value, B: Value>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, B) -> u8,
) {
    let a = source(wave, insn, 0, A::KIND);
    let b = source(wave, insn, 1, B::KIND);
    let shift = u32::from(insn.valu.op_sel >> 2 & 3) * 8;
    let (a, b, old) = (A::view(wave, a), B::view(wave, b), wave.row(usize::from(insn.valu.vdst)));
    let out = std::array::from_fn(|lane| {
        let byte = u32::from(f(A::at(a, lane), B::at(b, lane)));
        old[lane] & !(0xff << shift) | byte << shift
    });
    store_bits(wave, insn, &out);
}
