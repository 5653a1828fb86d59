//! Results of vector instructions: output modifiers, active lanes, and the part of the register that is written.

use crate::enc::vop::{Dpp, Extra, Sdwa};
use crate::machine::Insn;
use crate::sem::float::clamp;
use crate::sem::half::F16;
use crate::shape::source::{destination, dpp_lanes, flush16, flush32, part};
use crate::wave::{LANES, RESULT, Row, Wave};

/// The bit of MODE that keeps denormal f32 results.
pub(crate) const KEEP_F32: u32 = 0x20;
/// The bit of MODE that keeps denormal f16 and f64 results.
pub(crate) const KEEP_F16_F64: u32 = 0x80;

/// Returns the lanes whose results are written.
#[inline(always)]
pub(crate) fn lanes(wave: &Wave, insn: &Insn) -> u64 {
    match insn.valu.extra {
        Extra::None | Extra::Sdwa => wave.exec(),
        Extra::Dpp => dpp_lanes(Dpp(insn.code), wave.exec()),
    }
}

/// Returns whether an instruction reads its operands unchanged and only writes its result, which takes `rows` rows; most do. It
/// has no modifiers, MODE is as compilers set it, and there is such a destination.
#[inline(always)]
pub(crate) fn is_plain(wave: &Wave, insn: &Insn, rows: usize) -> bool {
    insn.valu.plain && wave.mode.is_plain() && usize::from(insn.valu.result) + rows <= wave.row_count()
}

/// Writes a row of results to the destination or, if modifiers remain to be applied, to the row at [`RESULT`].
#[inline(always)]
pub(crate) fn put_result(wave: &mut Wave, insn: &Insn, index: usize, plain: bool, out: Row) {
    let first = if plain { usize::from(insn.valu.result) } else { RESULT };
    wave.put_row(first + index, out);
}

macro_rules! finish_results {
    ($($(#[$doc:meta])* $name:ident, |$wave:ident| $out:expr, $store:ident;)*) => {$(
        $(#[$doc])*
        #[inline(never)]
        pub(crate) fn $name($wave: &mut Wave, insn: &Insn) {
            let out = $out;
            $store($wave, insn, &out);
        }
    )*};
}
finish_results! {
    /// Writes the row at [`RESULT`] to the destination as 32-bit values.
    finish_bits, |wave| *wave.row_at(RESULT), store_bits;
    /// Writes the row at [`RESULT`] to the destination as 16-bit values.
    finish_half, |wave| *wave.row_at(RESULT), store_half;
    /// Writes the row at [`RESULT`] to the destination as f16.
    finish_f16, |wave| *wave.row_at(RESULT), store_f16;
    /// Writes the row at [`RESULT`] to the destination as f32.
    finish_f32, |wave| *wave.row_at(RESULT), store_f32;
    /// Writes the rows at [`RESULT`] to the destination as 64-bit values.
    finish_wide, |wave| wide_result(wave), store_wide;
    /// Writes the rows at [`RESULT`] to the destination as f64.
    finish_f64, |wave| wide_result(wave), store_f64;
}

fn wide_result(wave: &Wave) -> [u64; LANES] {
    let (low, high) = (wave.row_at(RESULT), wave.row_at(RESULT + 1));
    std::array::from_fn(|lane| u64::from(low[lane]) | u64::from(high[lane]) << 32)
}

/// Writes 32-bit values to the destination.
#[inline(always)]
pub(crate) fn store_bits(wave: &mut Wave, insn: &Insn, out: &Row) {
    let number = destination(wave, insn);
    match insn.valu.extra {
        Extra::None => wave.write_row(number, wave.exec(), out),
        Extra::Sdwa => store_part(wave, Sdwa(insn.code), number, out),
        Extra::Dpp => wave.write_row(number, dpp_lanes(Dpp(insn.code), wave.exec()), out),
    }
}

/// Writes the byte or half that SDWA selects; the rest of the register becomes 0 or the sign, or is kept.
#[inline(never)]
fn store_part(wave: &mut Wave, sdwa: Sdwa, number: usize, out: &Row) {
    const SIGN: usize = 1;
    const PRESERVE: usize = 2;
    let (shift, bits) = part(sdwa.dst_sel());
    let mask = u32::MAX >> (32 - bits) << shift;
    let old = wave.row(number);
    let merged = std::array::from_fn(|lane| {
        let value = out[lane] << shift & mask;
        match sdwa.dst_unused() {
            PRESERVE => value | old[lane] & !mask,
            SIGN if value << (32 - bits - shift) >> 31 != 0 && bits + shift < 32 => {
                value | u32::MAX << (bits + shift)
            }
            _ => value,
        }
    });
    wave.write_row(number, wave.exec(), &merged);
}

/// Writes 16-bit values to the destination. The instructions that choose a half by op_sel keep the other one; the others make
/// it 0.
fn store_half(wave: &mut Wave, insn: &Insn, out: &Row) {
    if insn.valu.keeps_half { store_selected(wave, insn, out) } else { store_bits(wave, insn, out) }
}

#[inline(never)]
fn store_selected(wave: &mut Wave, insn: &Insn, out: &Row) {
    let shift = u32::from(insn.valu.op_sel >> 3 & 1) * 16;
    let mask = 0xffff << shift;
    let number = destination(wave, insn);
    let old = wave.row(number);
    let merged = std::array::from_fn(|lane| old[lane] & !mask | out[lane] << shift & mask);
    store_bits(wave, insn, &merged);
}

#[inline(never)]
pub(crate) fn store_f16(wave: &mut Wave, insn: &Insn, out: &Row) {
    if insn.valu.clamp | (insn.valu.omod != 0) | (wave.mode.0 & KEEP_F16_F64 == 0) {
        let adjusted = adjust16(wave, insn, out);
        store_half(wave, insn, &adjusted);
    } else {
        store_half(wave, insn, out);
    }
}

#[inline(never)]
fn adjust16(wave: &Wave, insn: &Insn, out: &Row) -> Row {
    let keep = wave.mode.0 & KEEP_F16_F64 != 0;
    let scale = output_scale(wave, insn, keep);
    out.map(|bits| {
        let value = F16(bits as u16).map(|value| value * scale);
        let value = if insn.valu.clamp { clamp(value, wave.mode.dx10_clamp()) } else { value };
        let bits = u32::from(value.0);
        if keep { bits } else { flush16(bits) }
    })
}

fn store_f32(wave: &mut Wave, insn: &Insn, out: &Row) {
    if insn.valu.clamp | (insn.valu.omod != 0) | (wave.mode.0 & KEEP_F32 == 0) {
        let adjusted = adjust32(wave, insn, out);
        store_bits(wave, insn, &adjusted);
    } else {
        store_bits(wave, insn, out);
    }
}

/// Returns a row of f32 results after applying modifiers.
#[inline(always)]
pub(crate) fn adjusted_f32(wave: &Wave, insn: &Insn, out: Row) -> Row {
    if insn.valu.clamp | (wave.mode.0 & KEEP_F32 == 0) { adjust32(wave, insn, &out) } else { out }
}

#[inline(never)]
fn adjust32(wave: &Wave, insn: &Insn, out: &Row) -> Row {
    let keep = wave.mode.0 & KEEP_F32 != 0;
    let scale = output_scale(wave, insn, keep);
    out.map(|bits| {
        let value = f32::from_bits(bits) * scale;
        let value = if insn.valu.clamp { clamp(value, wave.mode.dx10_clamp()) } else { value };
        if keep { value.to_bits() } else { flush32(value.to_bits()) }
    })
}

/// Returns the factor of the output modifier. It is ignored where denormals or the IEEE mode are on.
fn output_scale(wave: &Wave, insn: &Insn, keep_denormals: bool) -> f32 {
    if keep_denormals || wave.mode.ieee() {
        return 1.0;
    }
    match insn.valu.omod {
        1 => 2.0,
        2 => 4.0,
        3 => 0.5,
        _ => 1.0,
    }
}

fn store_f64(wave: &mut Wave, insn: &Insn, out: &[u64; LANES]) {
    if insn.valu.clamp | (insn.valu.omod != 0) | (wave.mode.0 & KEEP_F16_F64 == 0) {
        let adjusted = adjust64(wave, insn, out);
        store_wide(wave, insn, &adjusted);
    } else {
        store_wide(wave, insn, out);
    }
}

#[inline(never)]
fn adjust64(wave: &Wave, insn: &Insn, out: &[u64; LANES]) -> [u64; LANES] {
    let keep = wave.mode.0 & KEEP_F16_F64 != 0;
    let scale = f64::from(output_scale(wave, insn, keep));
    out.map(|bits| {
        let value = f64::from_bits(bits) * scale;
        let value = if insn.valu.clamp { clamp(value, wave.mode.dx10_clamp()) } else { value };
        let denormal = value.to_bits() >> 52 & 0x7ff == 0;
        if denormal && !keep { value.to_bits() & 1 << 63 } else { value.to_bits() }
    })
}

/// Writes 64-bit values to the register pair of the destination.
#[inline(always)]
pub(crate) fn store_wide(wave: &mut Wave, insn: &Insn, out: &[u64; LANES]) {
    let lanes = lanes(wave, insn);
    let number = destination(wave, insn);
    let low = std::array::from_fn(|lane| out[lane] as u32);
    let high = std::array::from_fn(|lane| (out[lane] >> 32) as u32);
    wave.write_row(number, lanes, &low);
    wave.write_row(number + 1, lanes, &high);
}
