//! Vector ALU: each active lane's values in, one value out.
//!
//! An operand is first made a row of the register file: a plain VGPR is one already; anything else (scalars, constants,
//! modifiers, parts, other lanes) is put in a temporary row. Then one loop over 64 lanes that the compiler can vectorize.

use crate::enc::vop::{Extra, VGPR};
use crate::shape::operand::{Width, scalar};
use crate::step::{Insn, Machine};
use crate::wave::{LANES, Mode, Row, Wave};

/// Type of an operand as modifiers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    B16,
    F16,
    B32,
    F32,
    B64,
    F64,
}

impl Kind {
    const fn width(self) -> Width {
        match self {
            Self::B16 | Self::F16 => Width::W16,
            Self::B32 | Self::F32 => Width::W32,
            Self::B64 => Width::W64,
            Self::F64 => Width::Double,
        }
    }

    /// Bits of MODE that matter to operands of this type, and what they are where nothing has to be done.
    const fn plain_mode(self) -> (u32, u32) {
        match self {
            Self::B16 | Self::B32 | Self::B64 => (1 << 27, 0),
            Self::F32 => (1 << 27 | 0x10, 0x10),
            Self::F16 | Self::F64 => (1 << 27 | 0x40, 0x40),
        }
    }

    const fn is_wide(self) -> bool {
        matches!(self, Self::B64 | Self::F64)
    }
}

/// A type of vector operands.
pub(crate) trait Value: Copy {
    const KIND: Kind;
    /// What is stored of a result.
    type Raw: Copy;
    type View<'a>: Copy;
    fn view(wave: &Wave, place: usize) -> Self::View<'_>;
    fn at(view: Self::View<'_>, lane: usize) -> Self;
    fn raw(self) -> Self::Raw;
    fn store(wave: &mut Wave, insn: &Insn, out: &[Self::Raw; LANES]);
}

macro_rules! narrow_values {
    ($($t:ty, $kind:ident, |$bits:ident| $from:expr, |$value:ident| $to:expr, $store:ident;)*) => {$(
        impl Value for $t {
            const KIND: Kind = Kind::$kind;
            type Raw = u32;
            type View<'a> = &'a Row;
            #[inline(always)]
            fn view(wave: &Wave, place: usize) -> &Row {
                wave.place(place)
            }
            #[inline(always)]
            fn at(view: &Row, lane: usize) -> Self {
                let $bits = view[lane];
                $from
            }
            #[inline(always)]
            fn raw(self) -> u32 {
                let $value = self;
                $to
            }
            #[inline(always)]
            fn store(wave: &mut Wave, insn: &Insn, out: &Row) {
                $store(wave, insn, out);
            }
        }
    )*};
}
narrow_values! {
    u32, B32, |bits| bits, |value| value, store_bits;
    i32, B32, |bits| bits as i32, |value| value as u32, store_bits;
    f32, F32, |bits| f32::from_bits(bits), |value| value.to_bits(), store_f32;
}

macro_rules! wide_values {
    ($($t:ty, $kind:ident, |$bits:ident| $from:expr, |$value:ident| $to:expr, $store:ident;)*) => {$(
        impl Value for $t {
            const KIND: Kind = Kind::$kind;
            type Raw = u64;
            type View<'a> = (&'a Row, &'a Row);
            #[inline(always)]
            fn view(wave: &Wave, place: usize) -> (&Row, &Row) {
                (wave.place(place), wave.place(place + 1))
            }
            #[inline(always)]
            fn at((low, high): (&Row, &Row), lane: usize) -> Self {
                let $bits = u64::from(low[lane]) | u64::from(high[lane]) << 32;
                $from
            }
            #[inline(always)]
            fn raw(self) -> u64 {
                let $value = self;
                $to
            }
            #[inline(always)]
            fn store(wave: &mut Wave, insn: &Insn, out: &[u64; LANES]) {
                $store(wave, insn, out);
            }
        }
    )*};
}
wide_values! {
    u64, B64, |bits| bits, |value| value, store_wide;
    i64, B64, |bits| bits as i64, |value| value as u64, store_wide;
}

/// Where source `n` is as a row (or a pair of rows) of type `kind`.
#[inline(always)]
pub(crate) fn source(wave: &mut Wave, insn: &Insn, n: usize, kind: Kind) -> usize {
    let code = insn.valu.src[n];
    let (mask, plain) = kind.plain_mode();
    if code >= VGPR && !insn.valu.modified && wave.mode.0 & mask == plain {
        wave.place_of(usize::from(code - VGPR))
    } else {
        materialize(wave, insn, n, kind)
    }
}

/// Vector register number of operand slot `slot` (3: the destination), shifted by M0 if index mode says so.
fn register(wave: &Wave, number: usize, slot: usize) -> usize {
    let m0 = wave.m0();
    let shifted = wave.mode.gpr_index() && m0 >> (12 + slot) & 1 != 0;
    if shifted { number + (m0 & 0xff) as usize } else { number }
}

#[inline(never)]
fn materialize(wave: &mut Wave, insn: &Insn, n: usize, kind: Kind) -> usize {
    let valu = &insn.valu;
    let code = usize::from(valu.src[n]);
    let target = wave.temporary(n);
    if code >= usize::from(VGPR) {
        let number = register(wave, code - usize::from(VGPR), n);
        let place = wave.place_of(number);
        *wave.place_mut(target) = *wave.place(place);
        *wave.place_mut(target + 1) = *wave.place(place + 1);
    } else {
        let value = scalar(wave, code, insn.literal, kind.width());
        *wave.place_mut(target) = [value as u32; LANES];
        if kind.is_wide() {
            *wave.place_mut(target + 1) = [(value >> 32) as u32; LANES];
        }
    }
    target
}

/// The lanes whose results are written.
#[inline(always)]
pub(crate) fn lanes(wave: &Wave, insn: &Insn) -> u64 {
    match insn.valu.extra {
        Extra::None | Extra::Sdwa(_) => wave.exec(),
        Extra::Dpp(_) => wave.exec(),
    }
}

#[inline(always)]
fn destination(wave: &Wave, insn: &Insn) -> usize {
    let number = usize::from(insn.valu.vdst);
    if wave.mode.gpr_index() { register(wave, number, 3) } else { number }
}

#[inline(always)]
fn store_bits(wave: &mut Wave, insn: &Insn, out: &Row) {
    let lanes = lanes(wave, insn);
    wave.write_row(destination(wave, insn), lanes, out);
}

#[inline(always)]
fn store_f32(wave: &mut Wave, insn: &Insn, out: &Row) {
    let _ = Mode::DEFAULT;
    store_bits(wave, insn, out);
}

#[inline(always)]
fn store_wide(wave: &mut Wave, insn: &Insn, out: &[u64; LANES]) {
    let lanes = lanes(wave, insn);
    let number = destination(wave, insn);
    let low = std::array::from_fn(|lane| out[lane] as u32);
    let high = std::array::from_fn(|lane| (out[lane] >> 32) as u32);
    wave.write_row(number, lanes, &low);
    wave.write_row(number + 1, lanes, &high);
}

/// One source.
#[inline(always)]
pub(crate) fn v1<A: Value, D: Value>(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn, f: impl Fn(A) -> D) {
    let a = source(wave, insn, 0, A::KIND);
    let a = A::view(wave, a);
    let out = std::array::from_fn(|lane| f(A::at(a, lane)).raw());
    D::store(wave, insn, &out);
}

/// Two sources.
#[inline(always)]
pub(crate) fn v2<A: Value, B: Value, D: Value>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, B) -> D,
) {
    let a = source(wave, insn, 0, A::KIND);
    let b = source(wave, insn, 1, B::KIND);
    let (a, b) = (A::view(wave, a), B::view(wave, b));
    let out = std::array::from_fn(|lane| f(A::at(a, lane), B::at(b, lane)).raw());
    D::store(wave, insn, &out);
}

/// Three sources.
#[inline(always)]
pub(crate) fn v3<A: Value, B: Value, C: Value, D: Value>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, B, C) -> D,
) {
    let a = source(wave, insn, 0, A::KIND);
    let b = source(wave, insn, 1, B::KIND);
    let c = source(wave, insn, 2, C::KIND);
    let (a, b, c) = (A::view(wave, a), B::view(wave, b), C::view(wave, c));
    let out = std::array::from_fn(|lane| f(A::at(a, lane), B::at(b, lane), C::at(c, lane)).raw());
    D::store(wave, insn, &out);
}

/// A comparison: one bit a lane, 0 for lanes that do not run.
#[inline(always)]
pub(crate) fn vcmp<A: Value, B: Value>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, B) -> bool,
) {
    let a = source(wave, insn, 0, A::KIND);
    let b = source(wave, insn, 1, B::KIND);
    let (a, b) = (A::view(wave, a), B::view(wave, b));
    let flags: [u8; LANES] = std::array::from_fn(|lane| u8::from(f(A::at(a, lane), B::at(b, lane))));
    let mask = pack(&flags) & wave.exec();
    wave.set_pair(usize::from(insn.valu.sdst), mask);
}

/// One bit of each byte, which is 0 or 1.
#[inline(always)]
pub(crate) fn pack(flags: &[u8; LANES]) -> u64 {
    let mut mask = 0;
    for (index, group) in flags.as_chunks::<8>().0.iter().enumerate() {
        let bits = u64::from_le_bytes(*group).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= bits << (index * 8);
    }
    mask
}
