//! Scalar ALU and program control: SGPRs in, SGPRs and SCC out.

use crate::enc::sop::{Sop1, Sop2, Sopc, Sopk, Sopp};
use crate::shape::operand::{scalar32, scalar64};
use crate::step::{Flow, Insn, Machine, Stop};
use crate::wave::Wave;

/// A type of scalar operands.
pub(crate) trait Scalar: Copy {
    fn fetch(wave: &Wave, code: usize, literal: u32) -> Self;
    fn put(wave: &mut Wave, number: usize, value: Self);
}

macro_rules! scalars {
    ($($t:ty, $fetch:ident, |$wave:ident, $number:ident, $value:ident| $put:expr;)*) => {$(
        impl Scalar for $t {
            #[inline(always)]
            fn fetch(wave: &Wave, code: usize, literal: u32) -> Self {
                $fetch(wave, code, literal) as $t
            }
            #[inline(always)]
            fn put($wave: &mut Wave, $number: usize, $value: Self) {
                $put
            }
        }
    )*};
}
scalars! {
    u32, scalar32, |wave, number, value| wave.sgpr[number & 127] = value;
    i32, scalar32, |wave, number, value| wave.sgpr[number & 127] = value as u32;
    u64, scalar64, |wave, number, value| wave.set_pair(number, value);
    i64, scalar64, |wave, number, value| wave.set_pair(number, value as u64);
}

/// SOP2 that sets SCC.
#[inline(always)]
pub(crate) fn sop2<A: Scalar, B: Scalar, D: Scalar>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, B) -> (D, bool),
) {
    let code = Sop2(insn.code);
    let a = A::fetch(wave, code.ssrc0(), insn.literal);
    let b = B::fetch(wave, code.ssrc1(), insn.literal);
    let (result, scc) = f(a, b);
    D::put(wave, code.sdst(), result);
    wave.scc = scc;
}

/// SOP2 that leaves SCC alone.
#[inline(always)]
pub(crate) fn sop2_quiet<A: Scalar, B: Scalar, D: Scalar>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, B) -> D,
) {
    let code = Sop2(insn.code);
    let a = A::fetch(wave, code.ssrc0(), insn.literal);
    let b = B::fetch(wave, code.ssrc1(), insn.literal);
    D::put(wave, code.sdst(), f(a, b));
}

/// SOP1 that leaves SCC alone.
#[inline(always)]
pub(crate) fn sop1_quiet<A: Scalar, D: Scalar>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A) -> D,
) {
    let code = Sop1(insn.code);
    let a = A::fetch(wave, code.ssrc0(), insn.literal);
    D::put(wave, code.sdst(), f(a));
}

/// SOPC.
#[inline(always)]
pub(crate) fn sopc<A: Scalar, B: Scalar>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, B) -> bool,
) {
    let code = Sopc(insn.code);
    let a = A::fetch(wave, code.ssrc0(), insn.literal);
    let b = B::fetch(wave, code.ssrc1(), insn.literal);
    wave.scc = f(a, b);
}

/// SOPK that only writes its destination.
#[inline(always)]
pub(crate) fn sopk_quiet(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn, f: impl Fn(i16) -> u32) {
    let code = Sopk(insn.code);
    u32::put(wave, code.sdst(), f(code.simm16() as u16 as i16));
}

/// A branch that is taken if `condition` holds. Its offset counts words from the next instruction.
#[inline(always)]
pub(crate) fn branch(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    condition: impl Fn(&Wave) -> bool,
) -> Flow {
    if condition(wave) {
        let offset = i64::from(Sopp(insn.code).simm16() as u16 as i16) * 4 + 4;
        Flow::Jump(wave.pc.wrapping_add_signed(offset))
    } else {
        Flow::Next
    }
}

/// Ends the run of the wave for now.
#[inline(always)]
pub(crate) fn stop(_: &mut Wave, _: &mut Machine<'_>, _: &Insn, stop: Stop) -> Flow {
    Flow::Stop(stop)
}

/// Nothing: waits and hints, which mean nothing to an emulator that does one thing after the other.
#[inline(always)]
pub(crate) fn nothing(_: &mut Wave, _: &mut Machine<'_>, _: &Insn) {}
