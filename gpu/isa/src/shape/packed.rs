//! Packed instructions: two results for each lane, from the halves (or registers of a pair) that op_sel selects.

use crate::enc::vop::VGPR;
use crate::machine::{Insn, Machine};
use crate::sem::float::clamp;
use crate::sem::half::F16;
use crate::shape::fused::fma_row;
use crate::shape::operand::{Kind, Width, scalar};
use crate::shape::source::{destination, flush16, flush32, previous, register, source};
use crate::shape::store::{adjusted_f32, put_result, store_bits};
use crate::wave::{Aligned, LANES, RESULT, Row, Wave};

/// A type of which two fit in a register.
pub(crate) trait Half: Copy {
    fn from_bits(bits: u16) -> Self;
    fn bits(self) -> u16;
    /// Returns a row of results after applying modifiers.
    fn finish(wave: &Wave, insn: &Insn, out: Row) -> Row;
    /// Returns the index in the register file of source `n` as a row of two halves, with the one for the low result in the low
    /// half.
    #[inline(always)]
    fn operand(wave: &mut Wave, insn: &Insn, n: usize) -> usize {
        halves_of(wave, insn, n)
    }
}

macro_rules! halves {
    ($($t:ty, |$bits:ident| $from:expr, |$value:ident| $to:expr;)*) => {$(
        impl Half for $t {
            #[inline(always)]
            fn from_bits($bits: u16) -> Self {
                $from
            }
            #[inline(always)]
            fn bits(self) -> u16 {
                let $value = self;
                $to
            }
            #[inline(always)]
            fn finish(_: &Wave, _: &Insn, out: Row) -> Row {
                out
            }
        }
    )*};
}
halves! {
    u16, |bits| bits, |value| value;
    i16, |bits| bits as i16, |value| value as u16;
}

impl Half for F16 {
    #[inline(always)]
    fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
    #[inline(always)]
    fn bits(self) -> u16 {
        self.0
    }
    #[inline(always)]
    fn finish(wave: &Wave, insn: &Insn, out: Row) -> Row {
        let keep = wave.mode.denormals_f16_f64() & 2 != 0;
        if keep && !insn.valu.clamp {
            out
        } else {
            finish_f16(out, insn.valu.clamp, wave.mode.dx10_clamp(), keep)
        }
    }
    #[inline(always)]
    fn operand(wave: &mut Wave, insn: &Insn, n: usize) -> usize {
        floats_of(wave, insn, n)
    }
}

/// Returns the index in the register file of source `n` as a row of two f16, with denormals replaced by 0 if MODE asks for it.
#[inline(always)]
pub(crate) fn floats_of(wave: &mut Wave, insn: &Insn, n: usize) -> usize {
    let index = halves_of(wave, insn, n);
    if wave.mode.denormals_f16_f64() & 1 != 0 { index } else { without_denormals(wave, index, n) }
}

#[inline(never)]
fn without_denormals(wave: &mut Wave, index: usize, n: usize) -> usize {
    let target = wave.temporary(n);
    *wave.row_at_mut(target) =
        wave.row_at(index).map(|pair| flush16(pair & 0xffff) | flush16(pair >> 16) << 16);
    target
}

#[inline(never)]
fn finish_f16(out: Row, clamped: bool, dx10: bool, keep: bool) -> Row {
    let finish = |bits: u32| {
        let value = if clamped { clamp(F16(bits as u16), dx10) } else { F16(bits as u16) };
        if keep { u32::from(value.0) } else { flush16(u32::from(value.0)) }
    };
    out.map(|pair| finish(pair & 0xffff) | finish(pair >> 16) << 16)
}

/// Returns the index in the register file of source `n` as a row of two halves, with the one for the low result in the low
/// half.
#[inline(always)]
pub(crate) fn halves_of(wave: &mut Wave, insn: &Insn, n: usize) -> usize {
    let valu = &insn.valu;
    let code = valu.src[n];
    let plain =
        valu.op_sel >> n & 1 == 0 && valu.op_sel_hi >> n & 1 == 1 && (valu.neg | valu.abs) >> n & 1 == 0;
    if code >= VGPR && plain && !wave.mode.gpr_index() {
        wave.index_of(usize::from(code - VGPR))
    } else {
        arrange(wave, insn, n)
    }
}

/// Copies source `n` as 32-bit values to its temporary row, and returns that row's index in the register file.
fn copy_of(wave: &mut Wave, insn: &Insn, n: usize, width: Width) -> usize {
    let code = usize::from(insn.valu.src[n]);
    let target = wave.temporary(n);
    *wave.row_at_mut(target) = if code >= usize::from(VGPR) {
        *wave.row(register(wave, code - usize::from(VGPR), n))
    } else {
        [scalar(wave, code, insn.literal, width) as u32; LANES]
    };
    target
}

#[inline(never)]
fn arrange(wave: &mut Wave, insn: &Insn, n: usize) -> usize {
    let valu = &insn.valu;
    let target = copy_of(wave, insn, n, Width::W16);
    let (low, high) = (u32::from(valu.op_sel >> n & 1) * 16, u32::from(valu.op_sel_hi >> n & 1) * 16);
    let signs = u32::from(valu.neg >> n & 1) << 15 | u32::from(valu.abs >> n & 1) << 31;
    for value in wave.row_at_mut(target) {
        *value = (*value >> low & 0xffff | *value >> high << 16) ^ signs;
    }
    target
}

/// Combines rows of low and high results into one. Two loops over simple rows vectorize better than one that does both.
#[inline(always)]
fn both<T: Half>(low: impl Fn(usize) -> T, high: impl Fn(usize) -> T) -> Row {
    let low: Row = std::array::from_fn(|lane| u32::from(low(lane).bits()));
    let high: Row = std::array::from_fn(|lane| u32::from(high(lane).bits()));
    std::array::from_fn(|lane| low[lane] | high[lane] << 16)
}

#[inline(always)]
fn low<T: Half>(value: u32) -> T {
    T::from_bits(value as u16)
}

#[inline(always)]
fn high<T: Half>(value: u32) -> T {
    T::from_bits((value >> 16) as u16)
}

/// Computes a pair of halves from two sources.
#[inline(always)]
pub(crate) fn pk2<T: Half>(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn, f: impl Fn(T, T) -> T) {
    let a = T::operand(wave, insn, 0);
    let b = T::operand(wave, insn, 1);
    let (a, b) = (wave.row_at(a), wave.row_at(b));
    let out = both(|lane| f(low(a[lane]), low(b[lane])), |lane| f(high(a[lane]), high(b[lane])));
    let out = T::finish(wave, insn, out);
    store_bits(wave, insn, &out);
}

/// Computes a pair of halves from two sources, with the second, saturating function if the clamp bit is set.
#[inline(always)]
pub(crate) fn pk2_clamp<T: Half>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    wrapping: impl Fn(T, T) -> T,
    saturating: impl Fn(T, T) -> T,
) {
    if insn.valu.clamp { pk2(wave, machine, insn, saturating) } else { pk2(wave, machine, insn, wrapping) }
}

/// Computes a pair of halves from three sources, with the second, saturating function if the clamp bit is set.
#[inline(always)]
pub(crate) fn pk3_clamp<T: Half>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    wrapping: impl Fn(T, T, T) -> T,
    saturating: impl Fn(T, T, T) -> T,
) {
    let clamp = insn.valu.clamp;
    let f = |a, b, c| if clamp { saturating(a, b, c) } else { wrapping(a, b, c) };
    let indices = [0, 1, 2].map(|n| T::operand(wave, insn, n));
    store_both(wave, insn, indices, f);
}

#[inline(always)]
fn store_both<T: Half>(wave: &mut Wave, insn: &Insn, indices: [usize; 3], f: impl Fn(T, T, T) -> T) {
    let [a, b, c] = indices.map(|index| wave.row_at(index));
    let out = both(
        |lane| f(low(a[lane]), low(b[lane]), low(c[lane])),
        |lane| f(high(a[lane]), high(b[lane]), high(c[lane])),
    );
    let out = T::finish(wave, insn, out);
    store_bits(wave, insn, &out);
}

/// Computes a pair of halves from two sources and the old value of the destination.
#[inline(always)]
pub(crate) fn pk_accumulate<T: Half>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(T, T, T) -> T,
) {
    let indices =
        [source(wave, insn, 0, Kind::B32), source(wave, insn, 1, Kind::B32), previous(wave, insn, Kind::B32)];
    store_both(wave, insn, indices, f);
}

/// Computes a 32-bit sum from two sources of packed fields and a third source to add.
#[inline(always)]
pub(crate) fn dot(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn, f: impl Fn(u32, u32, u32, bool) -> u32) {
    let a = halves_of(wave, insn, 0);
    let b = halves_of(wave, insn, 1);
    let c = sum_of(wave, insn);
    let (a, b, c) = (wave.row_at(a), wave.row_at(b), wave.row_at(c));
    let out = std::array::from_fn(|lane| f(a[lane], b[lane], c[lane], insn.valu.clamp));
    store_bits(wave, insn, &out);
}

/// Returns the index in the register file of the third source as a row of 32-bit values, negated as a float if its sign
/// modifier is set.
pub(super) fn sum_of(wave: &mut Wave, insn: &Insn) -> usize {
    let target = copy_of(wave, insn, 2, Width::W32);
    if insn.valu.neg >> 2 & 1 != 0 {
        wave.row_at_mut(target).iter_mut().for_each(|value| *value ^= 1 << 31);
    }
    target
}

/// Returns the indices in the register file of source `n`, a pair of f32: the rows for the low and for the high result.
#[inline(always)]
fn pair_of(wave: &mut Wave, insn: &Insn, n: usize) -> (usize, usize) {
    let valu = &insn.valu;
    let code = valu.src[n];
    let (low, high) = (usize::from(valu.op_sel >> n & 1), usize::from(valu.op_sel_hi >> n & 1));
    let plain = (valu.neg | valu.abs) >> n & 1 == 0 && wave.mode.denormals_f32() & 1 != 0;
    if code >= VGPR && plain && !wave.mode.gpr_index() {
        let number = usize::from(code - VGPR);
        (wave.index_of(number + low), wave.index_of(number + high))
    } else {
        arrange_pair(wave, insn, n, [low, high], wave.mode.denormals_f32() & 1 == 0)
    }
}

#[inline(never)]
fn arrange_pair(wave: &mut Wave, insn: &Insn, n: usize, select: [usize; 2], flushes: bool) -> (usize, usize) {
    let valu = &insn.valu;
    let code = usize::from(valu.src[n]);
    let target = wave.temporary(n);
    for (index, negated) in [valu.neg, valu.abs].into_iter().enumerate() {
        let mut row = if code >= usize::from(VGPR) {
            *wave.row(register(wave, code - usize::from(VGPR), n) + select[index])
        } else if code < 128 {
            [wave.sgpr[(code + select[index]) & 127]; LANES]
        } else {
            [scalar(wave, code, insn.literal, Width::W32) as u32; LANES]
        };
        if negated >> n & 1 != 0 {
            row.iter_mut().for_each(|value| *value ^= 1 << 31);
        }
        if flushes {
            row = row.map(flush32);
        }
        *wave.row_at_mut(target + index) = row;
    }
    (target, target + 1)
}

#[inline(always)]
fn store_pair(wave: &mut Wave, insn: &Insn, low: Row, high: Row) {
    let number = destination(wave, insn);
    let lanes = wave.exec();
    let (low, high) = (Aligned(adjusted_f32(wave, insn, low)), Aligned(adjusted_f32(wave, insn, high)));
    wave.write_row(number, lanes, &low.0);
    wave.write_row(number + 1, lanes, &high.0);
}

#[inline(always)]
fn f32_at(wave: &Wave, index: usize) -> impl Fn(usize) -> f32 + '_ {
    let row = wave.row_at(index);
    move |lane| f32::from_bits(row[lane])
}

/// Computes a pair of f32 from two sources.
#[inline(always)]
pub(crate) fn pk2_f32(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn, f: impl Fn(f32, f32) -> f32) {
    let a = pair_of(wave, insn, 0);
    let b = pair_of(wave, insn, 1);
    let result = |a: usize, b: usize| -> Row {
        let (a, b) = (f32_at(wave, a), f32_at(wave, b));
        std::array::from_fn(|lane| f(a(lane), b(lane)).to_bits())
    };
    let (low, high) = (result(a.0, b.0), result(a.1, b.1));
    store_pair(wave, insn, low, high);
}

/// Computes a fused multiply-add of f32 pairs.
#[inline(always)]
pub(crate) fn pk_fma_f32(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) {
    let level = machine.program.level();
    let a = pair_of(wave, insn, 0);
    let b = pair_of(wave, insn, 1);
    let c = pair_of(wave, insn, 2);
    let (mut low, mut high) = ([0; LANES], [0; LANES]);
    fma_row(level, wave.row_at(a.0), wave.row_at(b.0), wave.row_at(c.0), &mut low);
    fma_row(level, wave.row_at(a.1), wave.row_at(b.1), wave.row_at(c.1), &mut high);
    // Its modifiers are not those of other encodings.
    let plain =
        !insn.valu.altered && wave.mode.is_plain() && usize::from(insn.valu.result) + 2 <= wave.row_count();
    put_result(wave, insn, 0, plain, low);
    put_result(wave, insn, 1, plain, high);
    if !plain {
        let (low, high) = (*wave.row_at(RESULT), *wave.row_at(RESULT + 1));
        store_pair(wave, insn, low, high);
    }
}

/// Computes a pair of f32 from three sources.
#[inline(always)]
pub(crate) fn pk3_f32(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn, f: impl Fn(f32, f32, f32) -> f32) {
    let [a, b, c] = [0, 1, 2].map(|n| pair_of(wave, insn, n));
    let result = |a: usize, b: usize, c: usize| -> Row {
        let (a, b, c) = (f32_at(wave, a), f32_at(wave, b), f32_at(wave, c));
        std::array::from_fn(|lane| f(a(lane), b(lane), c(lane)).to_bits())
    };
    let (low, high) = (result(a.0, b.0, c.0), result(a.1, b.1, c.1));
    store_pair(wave, insn, low, high);
}

/// Moves one register of the first pair and one of the second, as op_sel selects.
#[inline(always)]
pub(crate) fn pk_mov(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) {
    let [low, high] = [0, 1].map(|n| usize::from(insn.valu.op_sel >> n & 1));
    let (low, _) = arrange_pair(wave, insn, 0, [low; 2], false);
    let low = *wave.row_at(low);
    let (_, high) = arrange_pair(wave, insn, 1, [high; 2], false);
    let high = *wave.row_at(high);
    let number = destination(wave, insn);
    let lanes = wave.exec();
    wave.write_row(number, lanes, &low);
    wave.write_row(number + 1, lanes, &high);
}

/// Returns the indices in the register file of three f32 sources; where op_sel_hi says so, the source is the half of a register
/// that op_sel selects.
#[inline(always)]
pub(super) fn mixed_sources(wave: &mut Wave, insn: &Insn) -> [usize; 3] {
    let valu = insn.valu;
    let keeps = [wave.mode.denormals_f32() & 1 != 0, wave.mode.denormals_f16_f64() & 1 != 0];
    std::array::from_fn(|n| {
        let is_half = valu.op_sel_hi >> n & 1 != 0;
        let target = copy_of(wave, insn, n, if is_half { Width::W16 } else { Width::W32 });
        let shift = u32::from(valu.op_sel >> n & 1) * 16;
        let (absolute, negated) = (valu.abs >> n & 1 != 0, valu.neg >> n & 1 != 0);
        for bits in wave.row_at_mut(target) {
            let value = if is_half {
                let half = *bits >> shift & 0xffff;
                F16(if keeps[1] { half } else { flush16(half) } as u16).to_f32()
            } else {
                f32::from_bits(if keeps[0] { *bits } else { flush32(*bits) })
            };
            let value = if absolute { value.abs() } else { value };
            *bits = (if negated { -value } else { value }).to_bits();
        }
        target
    })
}

#[inline(always)]
fn mixed(wave: &mut Wave, machine: &Machine<'_>, insn: &Insn) -> Row {
    let [a, b, c] = mixed_sources(wave, insn).map(|index| wave.row_at(index));
    let mut out = [0; LANES];
    fma_row(machine.program.level(), a, b, c, &mut out);
    out
}

/// Computes a fused multiply-add of sources that are f32 or f16.
#[inline(always)]
pub(crate) fn fma_mix(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) {
    let out = mixed(wave, machine, insn);
    let out = adjusted_f32(wave, insn, out);
    store_bits(wave, insn, &out);
}

/// Computes a fused multiply-add of sources that are f32 or f16, and writes it to one half of the destination; keeps the other
/// half.
#[inline(always)]
pub(crate) fn fma_mix_half(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn, shift: u32) {
    let out = mixed(wave, machine, insn).map(|bits| u32::from(F16::from_f32(f32::from_bits(bits)).0));
    store_one_half(wave, insn, out, shift);
}

/// Writes f16 to the halves at bit `shift` of the destination; keeps the other halves.
#[inline(always)]
pub(super) fn store_one_half(wave: &mut Wave, insn: &Insn, out: Row, shift: u32) {
    let out = F16::finish(wave, insn, out);
    let old = wave.row(destination(wave, insn));
    let out = std::array::from_fn(|lane| old[lane] & !(0xffff << shift) | out[lane] << shift);
    store_bits(wave, insn, &out);
}
