//! Floating-point instructions while MODE asks for a rounding other than to nearest even: the usual shapes, with functions that
//! take a rounding direction.

use crate::machine::{Insn, Machine};
use crate::sem::half::F16;
use crate::sem::rounding::{self, Rounding};
use crate::shape::operand::Kind;
use crate::shape::packed::{mixed_sources, pk_accumulate, pk2, pk2_f32, pk3_clamp, pk3_f32, store_one_half};
use crate::shape::store::{adjusted_f32, store_bits};
use crate::shape::vector::{Value, accumulate, v1, v2, v3, v3_vcc, with_literal};
use crate::wave::{LANES, Mode, Wave};

/// The two rounding fields of MODE.
const ROUNDING: u32 = 0xf;

/// Returns whether MODE asks for any rounding other than to nearest even.
#[inline(always)]
pub(crate) fn is_directed(wave: &Wave) -> bool {
    wave.mode.0 & ROUNDING != 0
}

/// Returns the rounding of results of this type.
fn rounding_of(mode: Mode, kind: Kind) -> Rounding {
    Rounding::of_field(match kind {
        Kind::F16 | Kind::F64 => mode.round_f16_f64(),
        _ => mode.round_f32(),
    })
}

macro_rules! directed {
    ($($(#[$doc:meta])* $name:ident<$($p:ident),*> = $shape:ident, $result:ident,
       |$($a:ident: $t:ident),*|;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name<$($p: Value),*>(
            wave: &mut Wave,
            machine: &mut Machine<'_>,
            insn: &Insn,
            f: impl Fn($($t),*, Rounding) -> $result,
        ) {
            let rounding = rounding_of(wave.mode, $result::KIND);
            $shape(wave, machine, insn, |$($a: $t),*| f($($a),*, rounding));
        }
    )*};
}
directed! {
    /// Computes a result from one source.
    round1<A, D> = v1, D, |a: A|;
    /// Computes a result from two sources.
    round2<A, B, D> = v2, D, |a: A, b: B|;
    /// Computes a result from three sources.
    round3<A> = v3, A, |a: A, b: A, c: A|;
    /// Computes a result from two sources and the old value of the destination.
    round_accumulate<A> = accumulate, A, |a: A, b: A, c: A|;
    /// Computes a result from two sources and the literal.
    round_literal<A> = with_literal, A, |a: A, b: A, c: A|;
}

/// Computes a result from three sources and VCC.
pub(crate) fn round3_vcc<A: Value>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, A, A, bool, Rounding) -> A,
) {
    let rounding = rounding_of(wave.mode, A::KIND);
    v3_vcc(wave, machine, insn, |a, b, c, flag| f(a, b, c, flag, rounding));
}

/// Computes a pair of halves from two sources.
pub(crate) fn round_pk2(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(F16, F16, Rounding) -> F16,
) {
    let rounding = rounding_of(wave.mode, Kind::F16);
    pk2(wave, machine, insn, |a, b| f(a, b, rounding));
}

/// Computes a fused multiply-add of halves.
pub(crate) fn round_pk_fma(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) {
    let rounding = rounding_of(wave.mode, Kind::F16);
    let f = |a: F16, b, c| rounding::fma(a, b, c, rounding);
    pk3_clamp(wave, machine, insn, f, f);
}

/// Computes a fused multiply-add of halves that accumulates in the destination.
pub(crate) fn round_pk_fmac(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) {
    let rounding = rounding_of(wave.mode, Kind::F16);
    pk_accumulate(wave, machine, insn, |a: F16, b, c| rounding::fma(a, b, c, rounding));
}

/// Computes a pair of f32 from two sources.
pub(crate) fn round_pk2_f32(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(f32, f32, Rounding) -> f32,
) {
    let rounding = rounding_of(wave.mode, Kind::F32);
    pk2_f32(wave, machine, insn, |a, b| f(a, b, rounding));
}

/// Computes a fused multiply-add of f32 pairs.
pub(crate) fn round_pk_fma_f32(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) {
    let rounding = rounding_of(wave.mode, Kind::F32);
    pk3_f32(wave, machine, insn, |a, b, c| rounding::fma(a, b, c, rounding));
}

/// Computes a fused multiply-add of sources that are f32 or f16.
pub(crate) fn round_fma_mix(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) {
    let out = mixed(wave, insn).map(f32::to_bits);
    let out = adjusted_f32(wave, insn, out);
    store_bits(wave, insn, &out);
}

/// Computes a fused multiply-add of sources that are f32 or f16, and writes it to the halves at bit `shift`.
pub(crate) fn round_fma_mix_half(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn, shift: u32) {
    let rounding = rounding_of(wave.mode, Kind::F16);
    let out = mixed(wave, insn);
    let out = out.map(|value| u32::from(rounding::convert(value, rounding, F16::from_f32).0));
    store_one_half(wave, insn, out, shift);
}

fn mixed(wave: &mut Wave, insn: &Insn) -> [f32; LANES] {
    let rounding = rounding_of(wave.mode, Kind::F32);
    let indices = mixed_sources(wave, insn);
    let [a, b, c] = indices.map(|index| wave.row_at(index).map(f32::from_bits));
    std::array::from_fn(|lane| rounding::fma(a[lane], b[lane], c[lane], rounding))
}
