//! Vector ALU: instructions that compute one result for each active lane.
//!
//! An operand is first made a row of the register file (see [`operand`]); then one loop over 64 lanes computes a row of results,
//! which the compiler can vectorize; then the row is stored where lanes are active (see [`store`](crate::shape::store)).

use crate::enc::vop::VGPR;
use crate::machine::{Insn, Machine};
use crate::sem::half::F16;
use crate::shape::operand::{Kind, scalar32, scalar64};
use crate::shape::source::{old_result, operand};
use crate::shape::store::{
    finish_bits, finish_f16, finish_f32, finish_f64, finish_half, finish_wide, is_plain, lanes, put_result,
};
use crate::simd::pack;
use crate::wave::{LANES, Row, Wave};

/// A type of vector operands.
pub(crate) trait Value: Copy {
    const KIND: Kind;
    /// Number of rows that a value takes.
    const ROWS: usize = if Self::KIND.is_wide() { 2 } else { 1 };
    /// The type of the results of all lanes.
    type Results;
    const ZEROS: Self::Results;
    type View<'a>: Copy;
    fn view(wave: &Wave, index: usize) -> Self::View<'_>;
    fn at(view: Self::View<'_>, lane: usize) -> Self;
    fn from_literal(literal: u32) -> Self;
    fn put(self, results: &mut Self::Results, lane: usize);
    /// Applies modifiers to results and writes them to the destination; `plain` is the result of [`is_plain`].
    fn store(wave: &mut Wave, insn: &Insn, plain: bool, results: Self::Results);
}

macro_rules! narrow_values {
    ($($t:ty, $kind:ident, |$bits:ident| $from:expr, |$value:ident| $to:expr, $finish:ident;)*) => {$(
        impl Value for $t {
            const KIND: Kind = Kind::$kind;
            type Results = Row;
            const ZEROS: Row = [0; LANES];
            type View<'a> = &'a Row;
            #[inline(always)]
            fn view(wave: &Wave, index: usize) -> &Row {
                wave.row_at(index)
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
            fn put(self, row: &mut Row, lane: usize) {
                let $value = self;
                row[lane] = $to;
            }
            #[inline(always)]
            fn store(wave: &mut Wave, insn: &Insn, plain: bool, row: Row) {
                put_result(wave, insn, 0, plain, row);
                if !plain {
                    $finish(wave, insn);
                }
            }
        }
    )*};
}
narrow_values! {
    u32, B32, |bits| bits, |value| value, finish_bits;
    i32, B32, |bits| bits as i32, |value| value as u32, finish_bits;
    f32, F32, |bits| f32::from_bits(bits), |value| value.to_bits(), finish_f32;
    u16, B16, |bits| bits as u16, |value| u32::from(value), finish_half;
    i16, B16, |bits| bits as i16, |value| u32::from(value as u16), finish_half;
    F16, F16, |bits| F16(bits as u16), |value| u32::from(value.0), finish_f16;
}

macro_rules! wide_values {
    ($($t:ty, $kind:ident, |$bits:ident| $from:expr, |$value:ident| $to:expr, $literal:literal, $finish:ident;)*) => {$(
        impl Value for $t {
            const KIND: Kind = Kind::$kind;
            type Results = [Row; 2];
            const ZEROS: [Row; 2] = [[0; LANES]; 2];
            type View<'a> = (&'a Row, &'a Row);
            #[inline(always)]
            fn view(wave: &Wave, index: usize) -> (&Row, &Row) {
                (wave.row_at(index), wave.row_at(index + 1))
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
            fn put(self, [low, high]: &mut [Row; 2], lane: usize) {
                let $value = self;
                let bits: u64 = $to;
                low[lane] = bits as u32;
                high[lane] = (bits >> 32) as u32;
            }
            #[inline(always)]
            fn store(wave: &mut Wave, insn: &Insn, plain: bool, [low, high]: [Row; 2]) {
                put_result(wave, insn, 0, plain, low);
                put_result(wave, insn, 1, plain, high);
                if !plain {
                    $finish(wave, insn);
                }
            }
        }
    )*};
}
wide_values! {
    u64, B64, |bits| bits, |value| value, 0, finish_wide;
    i64, B64, |bits| bits as i64, |value| value as u64, 0, finish_wide;
    f64, F64, |bits| f64::from_bits(bits), |value| value.to_bits(), 32, finish_f64;
}

/// Computes the results of all lanes and stores them. `lane` gives each lane's.
///
/// They are a local array that nothing else sees, so that the compiler keeps them in registers from the loop to the destination.
/// No closures of the standard library's: those are not always inlined, and what is not is compiled for the baseline.
macro_rules! compute {
    ($wave:ident, $insn:ident, $plain:ident, $type:ty, [$($view:ident: $operand:ty),*], |$lane:ident| $value:expr) => {
        let mut results = <$type>::ZEROS;
        {
            $(let $view = <$operand>::view($wave, $view);)*
            for $lane in 0..LANES {
                let value: $type = $value;
                value.put(&mut results, $lane);
            }
        }
        <$type>::store($wave, $insn, $plain, results);
    };
}

/// Computes a result from one source.
#[inline(always)]
pub(crate) fn v1<A: Value, D: Value>(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn, f: impl Fn(A) -> D) {
    let plain = is_plain(wave, insn, D::ROWS);
    let a = operand(wave, insn, 0, A::KIND, plain);
    compute!(wave, insn, plain, D, [a: A], |lane| f(A::at(a, lane)));
}

/// Computes a result from two sources.
#[inline(always)]
pub(crate) fn v2<A: Value, B: Value, D: Value>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, B) -> D,
) {
    let plain = is_plain(wave, insn, D::ROWS);
    let a = operand(wave, insn, 0, A::KIND, plain);
    let b = operand(wave, insn, 1, B::KIND, plain);
    compute!(wave, insn, plain, D, [a: A, b: B], |lane| f(A::at(a, lane), B::at(b, lane)));
}

/// Computes a result from two sources, with the second, saturating function if the clamp bit is set.
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

/// Computes a result from three sources.
#[inline(always)]
pub(crate) fn v3<A: Value, B: Value, C: Value, D: Value>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, B, C) -> D,
) {
    let plain = is_plain(wave, insn, D::ROWS);
    let a = operand(wave, insn, 0, A::KIND, plain);
    let b = operand(wave, insn, 1, B::KIND, plain);
    let c = operand(wave, insn, 2, C::KIND, plain);
    compute!(wave, insn, plain, D, [a: A, b: B, c: C], |lane| f(A::at(a, lane), B::at(b, lane), C::at(c, lane)));
}

/// Computes a result from three sources, the second and third of which are often the same in all lanes, so that no rows are
/// made of them.
#[inline(always)]
pub(crate) fn v3_uniform(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(u64, u32, u64) -> u64,
) {
    let plain = is_plain(wave, insn, u64::ROWS);
    let [_, b, c] = insn.valu.src;
    if !plain || b >= VGPR {
        return v3(wave, machine, insn, f);
    }
    let b = scalar32(wave, usize::from(b), insn.literal);
    let a = operand(wave, insn, 0, Kind::B64, plain);
    if c < VGPR {
        let c = scalar64(wave, usize::from(c), insn.literal);
        compute!(wave, insn, plain, u64, [a: u64], |lane| f(u64::at(a, lane), b, c));
    } else {
        let c = operand(wave, insn, 2, Kind::B64, plain);
        compute!(wave, insn, plain, u64, [a: u64, c: u64], |lane| f(u64::at(a, lane), b, u64::at(c, lane)));
    }
}

/// Computes a result from three sources, with the second, saturating function if the clamp bit is set.
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

/// Computes a result from three sources, the third of which is usually the same in all lanes, so that it is prepared only once.
/// `f` does the whole where it is not, or where `prepare` declines.
#[inline(always)]
pub(crate) fn v3_prepared<A: Value, B: Value, C: Value, D: Value, P>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    prepare: impl Fn(C) -> Option<P>,
    apply: impl Fn(&P, A, B) -> D,
    f: impl Fn(A, B, C) -> D,
) {
    let plain = is_plain(wave, insn, D::ROWS);
    let a = operand(wave, insn, 0, A::KIND, plain);
    let b = operand(wave, insn, 1, B::KIND, plain);
    let c = operand(wave, insn, 2, C::KIND, plain);
    let uniform = insn.valu.src[2] < VGPR;
    if uniform && let Some(prepared) = prepare(C::at(C::view(wave, c), 0)) {
        compute!(wave, insn, plain, D, [a: A, b: B], |lane| apply(&prepared, A::at(a, lane), B::at(b, lane)));
    } else {
        compute!(wave, insn, plain, D, [a: A, b: B, c: C], |lane| f(A::at(a, lane), B::at(b, lane), C::at(c, lane)));
    }
}

/// Computes a result from two sources and the old value of the destination.
#[inline(always)]
pub(crate) fn accumulate<A: Value, B: Value, D: Value>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, B, D) -> D,
) {
    let plain = is_plain(wave, insn, D::ROWS);
    let a = operand(wave, insn, 0, A::KIND, plain);
    let b = operand(wave, insn, 1, B::KIND, plain);
    let d = old_result(wave, insn, D::KIND, plain);
    compute!(wave, insn, plain, D, [a: A, b: B, d: D], |lane| f(A::at(a, lane), B::at(b, lane), D::at(d, lane)));
}

/// Computes a result from two sources and the literal.
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

/// Computes a result from two sources and the number of the lane.
#[inline(always)]
pub(crate) fn v2_lane<A: Value, B: Value, D: Value>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(u32, A, B) -> D,
) {
    let plain = is_plain(wave, insn, D::ROWS);
    let a = operand(wave, insn, 0, A::KIND, plain);
    let b = operand(wave, insn, 1, B::KIND, plain);
    compute!(wave, insn, plain, D, [a: A, b: B], |lane| f(lane as u32, A::at(a, lane), B::at(b, lane)));
}

/// Selects one of two sources by each lane's bit of the third source, or of VCC if the encoding has none.
#[inline(always)]
pub(crate) fn select(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) {
    let mask = scalar64(wave, usize::from(insn.valu.src[2]), insn.literal);
    v2_lane(wave, machine, insn, |lane, a: u32, b: u32| if mask >> lane & 1 == 0 { a } else { b });
}

/// Computes a result from two sources and VCC.
#[inline(always)]
pub(crate) fn v3_vcc<A: Value>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, A, A, bool) -> A,
) {
    let vcc = wave.vcc();
    let plain = is_plain(wave, insn, A::ROWS);
    let a = operand(wave, insn, 0, A::KIND, plain);
    let b = operand(wave, insn, 1, A::KIND, plain);
    let c = operand(wave, insn, 2, A::KIND, plain);
    compute!(wave, insn, plain, A, [a: A, b: A, c: A], |lane| {
        f(A::at(a, lane), A::at(b, lane), A::at(c, lane), vcc >> lane & 1 != 0)
    });
}

/// Computes sums or differences with a bit for each lane in (the third source, or VCC if the encoding has none) and out (the
/// scalar destination).
#[inline(always)]
pub(crate) fn carry(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(u32, u32, bool) -> (u32, bool),
) {
    let carries = scalar64(wave, usize::from(insn.valu.src[2]), insn.literal);
    let plain = is_plain(wave, insn, 1);
    let a = operand(wave, insn, 0, Kind::B32, plain);
    let b = operand(wave, insn, 1, Kind::B32, plain);
    let (a, b) = (wave.row_at(a), wave.row_at(b));
    let mut flags = [0; LANES];
    let mut out = [0; LANES];
    for lane in 0..LANES {
        let (value, flag) = f(a[lane], b[lane], carries >> lane & 1 != 0);
        (out[lane], flags[lane]) = (value, u8::from(flag));
    }
    store_mask(wave, insn, &flags);
    u32::store(wave, insn, plain, out);
}

/// Computes sums or differences with a bit for each lane out but none in.
#[inline(always)]
pub(crate) fn carry_out(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(u32, u32, bool) -> (u32, bool),
) {
    let plain = is_plain(wave, insn, 1);
    let a = operand(wave, insn, 0, Kind::B32, plain);
    let b = operand(wave, insn, 1, Kind::B32, plain);
    let (a, b) = (wave.row_at(a), wave.row_at(b));
    let mut flags = [0; LANES];
    let mut out = [0; LANES];
    for lane in 0..LANES {
        let (value, flag) = f(a[lane], b[lane], false);
        (out[lane], flags[lane]) = (value, u8::from(flag));
    }
    store_mask(wave, insn, &flags);
    u32::store(wave, insn, plain, out);
}

/// Computes a value and a bit for each lane from three sources.
#[inline(always)]
pub(crate) fn v3_flag<A: Value, B: Value, C: Value, D: Value>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, B, C) -> (D, bool),
) {
    let plain = is_plain(wave, insn, D::ROWS);
    let a = operand(wave, insn, 0, A::KIND, plain);
    let b = operand(wave, insn, 1, B::KIND, plain);
    let c = operand(wave, insn, 2, C::KIND, plain);
    let mut flags = [0; LANES];
    let mut results = D::ZEROS;
    {
        let (a, b, c) = (A::view(wave, a), B::view(wave, b), C::view(wave, c));
        for (lane, flag) in flags.iter_mut().enumerate() {
            let (value, is_set) = f(A::at(a, lane), B::at(b, lane), C::at(c, lane));
            *flag = u8::from(is_set);
            value.put(&mut results, lane);
        }
    }
    store_mask(wave, insn, &flags);
    D::store(wave, insn, plain, results);
}

#[inline(always)]
fn compare<A: Value, B: Value>(wave: &mut Wave, insn: &Insn, f: impl Fn(A, B) -> bool) -> [u8; LANES] {
    let plain = is_plain(wave, insn, 1);
    let a = operand(wave, insn, 0, A::KIND, plain);
    let b = operand(wave, insn, 1, B::KIND, plain);
    let (a, b) = (A::view(wave, a), B::view(wave, b));
    let mut flags = [0; LANES];
    for (lane, flag) in flags.iter_mut().enumerate() {
        *flag = u8::from(f(A::at(a, lane), B::at(b, lane)));
    }
    flags
}

/// Compares two sources and writes one bit for each lane, 0 for inactive ones.
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

/// Compares two sources and writes the result to EXEC, too.
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

/// Writes a bit for each lane, 0 for inactive ones, to the scalar destination.
#[inline(always)]
fn store_mask(wave: &mut Wave, insn: &Insn, flags: &[u8; LANES]) -> u64 {
    let mask = pack(flags) & lanes(wave, insn);
    wave.set_pair(usize::from(insn.valu.sdst), mask);
    mask
}
