//! Source operands of vector instructions.
//!
//! A plain VGPR is a row already. Anything else (scalars, constants, modifiers, parts of registers, other lanes) is put in a
//! temporary row of the register file, so that every shape reads nothing but rows.

use crate::enc::vop::{Dpp, Extra, Sdwa, VGPR};
use crate::machine::Insn;
use crate::shape::operand::{Kind, scalar};
use crate::wave::{LANES, Row, Wave};

/// The bit of MODE that makes M0 shift vector register numbers.
const INDEX_MODE: u32 = 1 << 27;

impl Kind {
    /// Returns the bits of MODE that matter to operands of this type, and their value if operands need no change.
    const fn plain_mode(self) -> (u32, u32) {
        match self {
            Self::B16 | Self::B32 | Self::B64 => (INDEX_MODE, 0),
            Self::F32 => (INDEX_MODE | 0x10, 0x10),
            Self::F16 | Self::F64 => (INDEX_MODE | 0x40, 0x40),
        }
    }

    /// Returns the sign bit, in the row that has it.
    const fn sign(self) -> u32 {
        match self {
            Self::B16 | Self::F16 => 1 << 15,
            _ => 1 << 31,
        }
    }
}

/// Returns the index in the register file of source `n` as a row (or a pair of rows) of type `kind`; `plain` is the result of
/// [`is_plain`](super::store::is_plain).
#[inline(always)]
pub(crate) fn operand(wave: &mut Wave, insn: &Insn, n: usize, kind: Kind, plain: bool) -> usize {
    if !plain {
        return modified_operand(wave, insn, n, kind);
    }
    let index = usize::from(insn.valu.src_rows[n]);
    if index + usize::from(kind.is_wide()) < wave.row_count() {
        index
    } else if insn.valu.src[n] >= VGPR {
        wave.index_of(usize::from(insn.valu.src[n] - VGPR))
    } else {
        splat(wave, insn, n, kind)
    }
}

#[inline(never)]
fn modified_operand(wave: &mut Wave, insn: &Insn, n: usize, kind: Kind) -> usize {
    source(wave, insn, n, kind)
}

/// Returns the index in the register file of source `n`, as [`operand`] does, without a hint.
#[inline(always)]
pub(crate) fn source(wave: &mut Wave, insn: &Insn, n: usize, kind: Kind) -> usize {
    let code = insn.valu.src[n];
    let (mask, plain) = kind.plain_mode();
    if insn.valu.modified || wave.mode.0 & mask != plain {
        materialize(wave, insn, n, kind)
    } else if code >= VGPR {
        wave.index_of(usize::from(code - VGPR))
    } else {
        splat(wave, insn, n, kind)
    }
}

/// Returns the index in the register file of the destination's old value as an operand of type `kind`; `plain` is the result of
/// [`is_plain`](super::store::is_plain).
#[inline(always)]
pub(crate) fn old_result(wave: &mut Wave, insn: &Insn, kind: Kind, plain: bool) -> usize {
    if plain { usize::from(insn.valu.result) } else { previous(wave, insn, kind) }
}

/// Returns the index in the register file of the destination's old value, as [`old_result`] does, without a hint.
#[inline(never)]
pub(crate) fn previous(wave: &mut Wave, insn: &Insn, kind: Kind) -> usize {
    let index = wave.index_of(destination(wave, insn));
    let (mask, plain) = kind.plain_mode();
    if (wave.mode.0 ^ plain) & mask & !INDEX_MODE == 0 {
        return index;
    }
    let target = wave.temporary(3);
    copy(wave, index, target, kind);
    flush(wave, target, kind);
    target
}

/// Returns the number of the destination register.
#[inline(always)]
pub(crate) fn destination(wave: &Wave, insn: &Insn) -> usize {
    let number = usize::from(insn.valu.vdst);
    if wave.mode.gpr_index() { register(wave, number, 3) } else { number }
}

/// Returns the vector register number of operand slot `slot` (3 is the destination), shifted by M0 if index mode is on.
pub(crate) fn register(wave: &Wave, number: usize, slot: usize) -> usize {
    let m0 = wave.m0();
    let shifted = wave.mode.gpr_index() && m0 >> (12 + slot) & 1 != 0;
    if shifted { number + (m0 & 0xff) as usize } else { number }
}

fn copy(wave: &mut Wave, index: usize, target: usize, kind: Kind) {
    *wave.row_at_mut(target) = *wave.row_at(index);
    if kind.is_wide() {
        *wave.row_at_mut(target + 1) = *wave.row_at(index + 1);
    }
}

/// Copies a scalar source to all lanes of its temporary row, and returns that row's index.
#[inline(always)]
fn splat(wave: &mut Wave, insn: &Insn, n: usize, kind: Kind) -> usize {
    let target = wave.temporary(n);
    let value = scalar(wave, usize::from(insn.valu.src[n]), insn.literal, kind.width());
    *wave.row_at_mut(target) = [value as u32; LANES];
    if kind.is_wide() {
        *wave.row_at_mut(target + 1) = [(value >> 32) as u32; LANES];
    }
    target
}

#[inline(never)]
fn materialize(wave: &mut Wave, insn: &Insn, n: usize, kind: Kind) -> usize {
    let valu = &insn.valu;
    let code = usize::from(valu.src[n]);
    let target = wave.temporary(n);
    if code >= usize::from(VGPR) {
        let number = register(wave, code - usize::from(VGPR), n);
        copy(wave, wave.index_of(number), target, kind);
    } else {
        splat(wave, insn, n, kind);
    }
    if valu.modified {
        modify(wave, insn, n, kind, target);
    }
    flush(wave, target, kind);
    target
}

fn modify(wave: &mut Wave, insn: &Insn, n: usize, kind: Kind, target: usize) {
    let valu = &insn.valu;
    if matches!(kind, Kind::B16 | Kind::F16) && valu.op_sel >> n & 1 != 0 {
        for value in wave.row_at_mut(target) {
            *value >>= 16;
        }
    }
    match valu.extra {
        Extra::Sdwa if n < 2 => select_part(wave.row_at_mut(target), Sdwa(insn.code), n),
        Extra::Dpp if n == 0 => {
            let dpp = Dpp(insn.code);
            let exec = wave.exec();
            permute(wave.row_at_mut(target), dpp, exec);
            if kind.is_wide() {
                permute(wave.row_at_mut(target + 1), dpp, exec);
            }
        }
        _ => {}
    }
    let (absolute, negated) = (valu.abs >> n & 1 != 0, valu.neg >> n & 1 != 0);
    if absolute || negated {
        let row = wave.row_at_mut(target + usize::from(kind.is_wide()));
        let sign = kind.sign();
        for value in row {
            *value = if absolute { *value & !sign } else { *value } ^ if negated { sign } else { 0 };
        }
    }
}

/// Replaces denormals by zeros if MODE asks for it for operands of this type.
fn flush(wave: &mut Wave, target: usize, kind: Kind) {
    let (mask, plain) = kind.plain_mode();
    if (wave.mode.0 ^ plain) & mask & !INDEX_MODE == 0 {
        return;
    }
    match kind {
        Kind::F32 => wave.row_at_mut(target).iter_mut().for_each(|value| *value = flush32(*value)),
        Kind::F16 => wave.row_at_mut(target).iter_mut().for_each(|value| *value = flush16(*value)),
        Kind::F64 => {
            for lane in 0..LANES {
                let high = wave.row_at(target + 1)[lane];
                if high & 0x7ff0_0000 == 0 {
                    wave.row_at_mut(target + 1)[lane] = high & 0x8000_0000;
                    wave.row_at_mut(target)[lane] = 0;
                }
            }
        }
        Kind::B16 | Kind::B32 | Kind::B64 => {}
    }
}

/// Returns a zero of the same sign if `bits` are a denormal f32, else `bits`.
#[inline(always)]
pub(crate) fn flush32(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

/// Returns a zero of the same sign if the low half of `bits` is a denormal f16, else `bits`.
#[inline(always)]
pub(crate) fn flush16(bits: u32) -> u32 {
    if bits & 0x7c00 == 0 { bits & 0x8000 } else { bits }
}

/// Replaces each lane's value by the byte or half that SDWA selects for source `n`.
fn select_part(row: &mut Row, sdwa: Sdwa, n: usize) {
    let (select, signed) =
        if n == 0 { (sdwa.src0_sel(), sdwa.src0_sext()) } else { (sdwa.src1_sel(), sdwa.src1_sext()) };
    let (shift, bits) = part(select);
    for value in row {
        let aligned = *value >> shift << (32 - bits);
        *value = if signed != 0 { (aligned as i32 >> (32 - bits)) as u32 } else { aligned >> (32 - bits) };
    }
}

/// Returns the lowest bit and the width of an SDWA selection.
pub(crate) fn part(select: usize) -> (u32, u32) {
    match select {
        0..=3 => (select as u32 * 8, 8),
        4 => (0, 16),
        5 => (16, 16),
        _ => (0, 32),
    }
}

/// Replaces each lane's value by that of the lane that DPP names, or by 0 if there is no such lane.
fn permute(row: &mut Row, dpp: Dpp, exec: u64) {
    let old = *row;
    *row = std::array::from_fn(|lane| match dpp_lane(dpp.ctrl(), lane) {
        Some(from) if exec >> from & 1 != 0 => old[from],
        _ => 0,
    });
}

/// Returns the lane that `lane` reads under DPP control `ctrl`.
pub(crate) fn dpp_lane(ctrl: usize, lane: usize) -> Option<usize> {
    let (row, column) = (lane & !15, lane & 15);
    let in_row = |column: Option<usize>| column.filter(|&column| column < 16).map(|column| row + column);
    let amount = ctrl & 15;
    match ctrl {
        // quad_perm
        0..=0xff => Some(lane & !3 | ctrl >> (lane % 4 * 2) & 3),
        // row_shl, row_shr, row_ror
        0x101..=0x10f => in_row(Some(column + amount)),
        0x111..=0x11f => in_row(column.checked_sub(amount)),
        0x121..=0x12f => in_row(Some((column + 16 - amount) % 16)),
        // wave_shl, wave_rol, wave_shr, wave_ror
        0x130 => (lane < 63).then_some(lane + 1),
        0x134 => Some((lane + 1) % LANES),
        0x138 => lane.checked_sub(1),
        0x13c => Some((lane + LANES - 1) % LANES),
        // row_mirror, row_half_mirror
        0x140 => Some(row + 15 - column),
        0x141 => Some(lane & !7 | (7 - (lane & 7))),
        // row_bcast:15, row_bcast:31: lanes without a row before them read themselves, whatever bound_ctrl says
        0x142 => Some(row.checked_sub(1).unwrap_or(lane)),
        0x143 => Some(if lane >= 32 { 31 } else { lane }),
        // row_newbcast
        0x150..=0x15f => Some(row + amount),
        _ => None,
    }
}

/// Returns the lanes that a DPP instruction writes.
pub(crate) fn dpp_lanes(dpp: Dpp, exec: u64) -> u64 {
    let written = (0..LANES).filter(|&lane| {
        let enabled = dpp.row_mask() >> (lane / 16) & 1 != 0 && dpp.bank_mask() >> (lane % 16 / 4) & 1 != 0;
        let has_source = dpp_lane(dpp.ctrl(), lane).is_some_and(|from| exec >> from & 1 != 0);
        enabled && (dpp.bound_ctrl() != 0 || has_source)
    });
    exec & written.fold(0, |mask, lane| mask | 1 << lane)
}
