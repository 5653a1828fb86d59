//! Vector ALU: each active lane's values in, one value out.
//!
//! An operand is first made a row of the register file (see [`source`]); then one loop over 64 lanes computes a row of results,
//! which the compiler can vectorize; then the row is stored where lanes are active (see [`store`](crate::shape::store)).

use crate::enc::vop::VGPR;
use crate::sem::half::F16;
use crate::shape::operand::{Width, scalar64};
use crate::shape::source::{previous, source};
use crate::shape::store::{
    is_plain, lanes, store_bits, store_f16, store_f32, store_f64, store_half, store_wide,
};
use crate::step::{Insn, Machine};
use crate::wave::{Aligned, LANES, Row, Wave};

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
    pub(crate) const fn width(self) -> Width {
        match self {
            Self::B16 | Self::F16 => Width::W16,
            Self::B32 | Self::F32 => Width::W32,
            Self::B64 => Width::W64,
            Self::F64 => Width::Double,
        }
    }

    pub(crate) const fn is_wide(self) -> bool {
        matches!(self, Self::B64 | Self::F64)
    }
}

/// A type of vector operands.
pub(crate) trait Value: Copy {
    const KIND: Kind;
    /// Rows for results.
    type Rows;
    type View<'a>: Copy;
    fn view(wave: &Wave, place: usize) -> Self::View<'_>;
    fn at(view: Self::View<'_>, lane: usize) -> Self;
    fn from_literal(literal: u32) -> Self;
    fn take_rows(wave: &mut Wave) -> Self::Rows;
    fn put(self, rows: &mut Self::Rows, lane: usize);
    /// Makes a row of results the destination, with what modifiers make of it.
    fn store(wave: &mut Wave, insn: &Insn, rows: Self::Rows);
}

macro_rules! narrow_values {
    ($($t:ty, $kind:ident, |$bits:ident| $from:expr, |$value:ident| $to:expr, $store:ident;)*) => {$(
        impl Value for $t {
            const KIND: Kind = Kind::$kind;
            type Rows = Box<Aligned<Row>>;
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
            fn from_literal($bits: u32) -> Self {
                $from
            }
            #[inline(always)]
            fn take_rows(wave: &mut Wave) -> Box<Aligned<Row>> {
                wave.take_spare(0)
            }
            #[inline(always)]
            fn put(self, row: &mut Box<Aligned<Row>>, lane: usize) {
                let $value = self;
                row.0[lane] = $to;
            }
            #[inline(always)]
            fn store(wave: &mut Wave, insn: &Insn, row: Box<Aligned<Row>>) {
                if is_plain(wave, insn, Kind::$kind) {
                    wave.put_row(0, usize::from(insn.valu.vdst), wave.exec(), row);
                } else {
                    $store(wave, insn, &row.0);
                    wave.give_back(0, row);
                }
            }
        }
    )*};
}
narrow_values! {
    u32, B32, |bits| bits, |value| value, store_bits;
    i32, B32, |bits| bits as i32, |value| value as u32, store_bits;
    f32, F32, |bits| f32::from_bits(bits), |value| value.to_bits(), store_f32;
    u16, B16, |bits| bits as u16, |value| u32::from(value), store_half;
    i16, B16, |bits| bits as i16, |value| u32::from(value as u16), store_half;
    F16, F16, |bits| F16(bits as u16), |value| u32::from(value.0), store_f16;
}

macro_rules! wide_values {
    ($($t:ty, $kind:ident, |$bits:ident| $from:expr, |$value:ident| $to:expr, $literal:literal, $store:ident;)*) => {$(
        impl Value for $t {
            const KIND: Kind = Kind::$kind;
            type Rows = [Box<Aligned<Row>>; 2];
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
            fn from_literal(literal: u32) -> Self {
                let $bits = u64::from(literal) << $literal;
                $from
            }
            #[inline(always)]
            fn take_rows(wave: &mut Wave) -> [Box<Aligned<Row>>; 2] {
                [wave.take_spare(0), wave.take_spare(1)]
            }
            #[inline(always)]
            fn put(self, [low, high]: &mut [Box<Aligned<Row>>; 2], lane: usize) {
                let $value = self;
                let bits: u64 = $to;
                low.0[lane] = bits as u32;
                high.0[lane] = (bits >> 32) as u32;
            }
            #[inline(always)]
            fn store(wave: &mut Wave, insn: &Insn, [low, high]: [Box<Aligned<Row>>; 2]) {
                if is_plain(wave, insn, Kind::$kind) {
                    let number = usize::from(insn.valu.vdst);
                    wave.put_row(0, number, wave.exec(), low);
                    wave.put_row(1, number + 1, wave.exec(), high);
                } else {
                    let out = std::array::from_fn(|lane| u64::from(low.0[lane]) | u64::from(high.0[lane]) << 32);
                    $store(wave, insn, &out);
                    wave.give_back(0, low);
                    wave.give_back(1, high);
                }
            }
        }
    )*};
}
wide_values! {
    u64, B64, |bits| bits, |value| value, 0, store_wide;
    i64, B64, |bits| bits as i64, |value| value as u64, 0, store_wide;
    f64, F64, |bits| f64::from_bits(bits), |value| value.to_bits(), 32, store_f64;
}

/// Computes a row of results and stores it. `lane` gives each lane's.
///
/// No closures of the standard library's: those are not always inlined, and what is not is compiled for the baseline.
macro_rules! compute {
    ($wave:ident, $insn:ident, $type:ty, [$($view:ident: $operand:ty),*], |$lane:ident| $value:expr) => {
        let mut rows = <$type>::take_rows($wave);
        {
            $(let $view = <$operand>::view($wave, $view);)*
            for $lane in 0..LANES {
                let value: $type = $value;
                value.put(&mut rows, $lane);
            }
        }
        <$type>::store($wave, $insn, rows);
    };
}

/// One source.
#[inline(always)]
pub(crate) fn v1<A: Value, D: Value>(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn, f: impl Fn(A) -> D) {
    let a = source(wave, insn, 0, A::KIND);
    compute!(wave, insn, D, [a: A], |lane| f(A::at(a, lane)));
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
    compute!(wave, insn, D, [a: A, b: B], |lane| f(A::at(a, lane), B::at(b, lane)));
}

/// Two sources; with the clamp bit, the second function, which saturates.
#[inline(always)]
pub(crate) fn v2_clamp<A: Value, B: Value, D: Value>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    wrapping: impl Fn(A, B) -> D,
    saturating: impl Fn(A, B) -> D,
) {
    if insn.valu.clamp { v2(wave, machine, insn, saturating) } else { v2(wave, machine, insn, wrapping) }
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
    compute!(wave, insn, D, [a: A, b: B, c: C], |lane| f(A::at(a, lane), B::at(b, lane), C::at(c, lane)));
}

/// Three sources; with the clamp bit, the second function, which saturates.
#[inline(always)]
pub(crate) fn v3_clamp<A: Value, B: Value, C: Value, D: Value>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    wrapping: impl Fn(A, B, C) -> D,
    saturating: impl Fn(A, B, C) -> D,
) {
    if insn.valu.clamp { v3(wave, machine, insn, saturating) } else { v3(wave, machine, insn, wrapping) }
}

/// Three sources, of which the third is usually the same in all lanes: what it means is then worked out once. `f` does the whole
/// where it is not, or where `prepare` declines.
#[inline(always)]
pub(crate) fn v3_prepared<A: Value, B: Value, C: Value, D: Value, P>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    prepare: impl Fn(C) -> Option<P>,
    apply: impl Fn(&P, A, B) -> D,
    f: impl Fn(A, B, C) -> D,
) {
    let a = source(wave, insn, 0, A::KIND);
    let b = source(wave, insn, 1, B::KIND);
    let c = source(wave, insn, 2, C::KIND);
    let uniform = insn.valu.src[2] < VGPR;
    if uniform && let Some(prepared) = prepare(C::at(C::view(wave, c), 0)) {
        compute!(wave, insn, D, [a: A, b: B], |lane| apply(&prepared, A::at(a, lane), B::at(b, lane)));
    } else {
        compute!(wave, insn, D, [a: A, b: B, c: C], |lane| f(A::at(a, lane), B::at(b, lane), C::at(c, lane)));
    }
}

/// Two sources and what the destination holds.
#[inline(always)]
pub(crate) fn accumulate<A: Value, B: Value, D: Value>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, B, D) -> D,
) {
    let a = source(wave, insn, 0, A::KIND);
    let b = source(wave, insn, 1, B::KIND);
    let d = previous(wave, insn, D::KIND);
    compute!(wave, insn, D, [a: A, b: B, d: D], |lane| f(A::at(a, lane), B::at(b, lane), D::at(d, lane)));
}

/// Two sources and the literal.
#[inline(always)]
pub(crate) fn with_literal<A: Value>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, A, A) -> A,
) {
    let literal = A::from_literal(insn.literal);
    v2(wave, machine, insn, |a: A, b: A| f(a, b, literal));
}

/// Two sources and the number of the lane.
#[inline(always)]
pub(crate) fn v2_lane<A: Value, B: Value, D: Value>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(u32, A, B) -> D,
) {
    let a = source(wave, insn, 0, A::KIND);
    let b = source(wave, insn, 1, B::KIND);
    compute!(wave, insn, D, [a: A, b: B], |lane| f(lane as u32, A::at(a, lane), B::at(b, lane)));
}

/// A choice by a bit for each lane, which is the third source: VCC if the encoding has none.
#[inline(always)]
pub(crate) fn select(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) {
    let mask = scalar64(wave, usize::from(insn.valu.src[2]), insn.literal);
    v2_lane(wave, machine, insn, |lane, a: u32, b: u32| if mask >> lane & 1 == 0 { a } else { b });
}

/// Two sources and VCC.
#[inline(always)]
pub(crate) fn v3_vcc<A: Value>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, A, A, bool) -> A,
) {
    let vcc = wave.vcc();
    let a = source(wave, insn, 0, A::KIND);
    let b = source(wave, insn, 1, A::KIND);
    let c = source(wave, insn, 2, A::KIND);
    compute!(wave, insn, A, [a: A, b: A, c: A], |lane| {
        f(A::at(a, lane), A::at(b, lane), A::at(c, lane), vcc >> lane & 1 != 0)
    });
}

/// Sums and differences: a bit for each lane in (the third source, VCC if the encoding has none) and out (the scalar
/// destination).
#[inline(always)]
pub(crate) fn carry(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(u32, u32, bool) -> (u32, bool),
) {
    let carries = scalar64(wave, usize::from(insn.valu.src[2]), insn.literal);
    let a = source(wave, insn, 0, Kind::B32);
    let b = source(wave, insn, 1, Kind::B32);
    let (a, b) = (wave.place(a), wave.place(b));
    let mut flags = [0; LANES];
    let mut out = [0; LANES];
    for lane in 0..LANES {
        let (value, flag) = f(a[lane], b[lane], carries >> lane & 1 != 0);
        (out[lane], flags[lane]) = (value, u8::from(flag));
    }
    store_mask(wave, insn, &flags);
    store_bits(wave, insn, &out);
}

/// Sums and differences with a bit for each lane out; without one in.
#[inline(always)]
pub(crate) fn carry_out(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(u32, u32, bool) -> (u32, bool),
) {
    let a = source(wave, insn, 0, Kind::B32);
    let b = source(wave, insn, 1, Kind::B32);
    let (a, b) = (wave.place(a), wave.place(b));
    let mut flags = [0; LANES];
    let mut out = [0; LANES];
    for lane in 0..LANES {
        let (value, flag) = f(a[lane], b[lane], false);
        (out[lane], flags[lane]) = (value, u8::from(flag));
    }
    store_mask(wave, insn, &flags);
    store_bits(wave, insn, &out);
}

/// Three sources, a value and a bit for each lane out.
#[inline(always)]
pub(crate) fn v3_flag<A: Value, B: Value, C: Value, D: Value>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, B, C) -> (D, bool),
) {
    let a = source(wave, insn, 0, A::KIND);
    let b = source(wave, insn, 1, B::KIND);
    let c = source(wave, insn, 2, C::KIND);
    let mut flags = [0; LANES];
    let mut rows = D::take_rows(wave);
    {
        let (a, b, c) = (A::view(wave, a), B::view(wave, b), C::view(wave, c));
        for (lane, flag) in flags.iter_mut().enumerate() {
            let (value, is_set) = f(A::at(a, lane), B::at(b, lane), C::at(c, lane));
            *flag = u8::from(is_set);
            value.put(&mut rows, lane);
        }
    }
    store_mask(wave, insn, &flags);
    D::store(wave, insn, rows);
}

#[inline(always)]
fn compare<A: Value, B: Value>(wave: &mut Wave, insn: &Insn, f: impl Fn(A, B) -> bool) -> [u8; LANES] {
    let a = source(wave, insn, 0, A::KIND);
    let b = source(wave, insn, 1, B::KIND);
    let (a, b) = (A::view(wave, a), B::view(wave, b));
    let mut flags = [0; LANES];
    for (lane, flag) in flags.iter_mut().enumerate() {
        *flag = u8::from(f(A::at(a, lane), B::at(b, lane)));
    }
    flags
}

/// A comparison: one bit a lane, 0 for lanes that do not run.
#[inline(always)]
pub(crate) fn vcmp<A: Value, B: Value>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, B) -> bool,
) {
    let flags = compare(wave, insn, f);
    store_mask(wave, insn, &flags);
}

/// A comparison whose result is the new EXEC too.
#[inline(always)]
pub(crate) fn vcmpx<A: Value, B: Value>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, B) -> bool,
) {
    let flags = compare(wave, insn, f);
    let mask = store_mask(wave, insn, &flags);
    wave.set_exec(mask);
}

/// Writes a bit for each lane, 0 for those that do not run, to the scalar destination.
#[inline(always)]
fn store_mask(wave: &mut Wave, insn: &Insn, flags: &[u8; LANES]) -> u64 {
    let mask = pack(flags) & lanes(wave, insn);
    wave.set_pair(usize::from(insn.valu.sdst), mask);
    mask
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
