//! Scalar ALU and program control: instructions on SGPRs and SCC.

use std::sync::atomic::{Ordering, fence};

use crate::aperture::{PRIVATE_HIGH, SHARED_HIGH};
use crate::enc::sop::{Sop1, Sop2, Sopc, Sopk, Sopp};
use crate::fault::Cause;
use crate::flow::{Flow, Stop};
use crate::machine::{Insn, Machine};
use crate::shape::operand::{scalar32, scalar64};
use crate::wave::{M0, Mode, Wave};

/// Returns the fault of an instruction whose variant is not implemented.
#[cold]
pub(crate) fn unimplemented(insn: &Insn) -> Cause {
    Cause::Unknown { word: insn.code, mnemonic: Some(insn.row.name) }
}

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

/// Executes a SOP2 instruction that sets SCC.
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

/// Executes a SOP2 instruction that does not change SCC.
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

/// Executes a SOP2 instruction that reads and sets SCC.
#[inline(always)]
pub(crate) fn sop2_carry(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(u32, u32, bool) -> (u32, bool),
) {
    let code = Sop2(insn.code);
    let a = u32::fetch(wave, code.ssrc0(), insn.literal);
    let b = u32::fetch(wave, code.ssrc1(), insn.literal);
    let (result, scc) = f(a, b, wave.scc);
    u32::put(wave, code.sdst(), result);
    wave.scc = scc;
}

/// Selects the first source if SCC is set, else the second.
#[inline(always)]
pub(crate) fn select<T: Scalar>(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) {
    let code = Sop2(insn.code);
    let source = if wave.scc { code.ssrc0() } else { code.ssrc1() };
    let value = T::fetch(wave, source, insn.literal);
    T::put(wave, code.sdst(), value);
}

/// Executes a SOP1 instruction that sets SCC.
#[inline(always)]
pub(crate) fn sop1<A: Scalar, D: Scalar>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A) -> (D, bool),
) {
    let code = Sop1(insn.code);
    let a = A::fetch(wave, code.ssrc0(), insn.literal);
    let (result, scc) = f(a);
    D::put(wave, code.sdst(), result);
    wave.scc = scc;
}

/// Executes a SOP1 instruction that does not change SCC.
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

/// Moves the source to the destination if SCC is set.
#[inline(always)]
pub(crate) fn move_if_scc<T: Scalar>(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) {
    if wave.scc {
        let code = Sop1(insn.code);
        let value = T::fetch(wave, code.ssrc0(), insn.literal);
        T::put(wave, code.sdst(), value);
    }
}

/// Executes a SOP1 instruction that updates its destination: `f` takes the old value and the source.
#[inline(always)]
pub(crate) fn sop1_update<T: Scalar>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(T, u32) -> T,
) {
    let code = Sop1(insn.code);
    let source = u32::fetch(wave, code.ssrc0(), insn.literal);
    let old = T::fetch(wave, code.sdst(), 0);
    T::put(wave, code.sdst(), f(old, source));
}

/// Sets EXEC to `f(source, EXEC)` and the destination to the old EXEC.
#[inline(always)]
pub(crate) fn save_exec(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn, f: impl Fn(u64, u64) -> u64) {
    let code = Sop1(insn.code);
    let source = u64::fetch(wave, code.ssrc0(), insn.literal);
    let old = wave.exec();
    let new = f(source, old);
    u64::put(wave, code.sdst(), old);
    wave.set_exec(new);
    wave.scc = new != 0;
}

/// Sets EXEC and the destination to `f(source, EXEC)`.
#[inline(always)]
pub(crate) fn write_exec(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn, f: impl Fn(u64, u64) -> u64) {
    let code = Sop1(insn.code);
    let source = u64::fetch(wave, code.ssrc0(), insn.literal);
    let new = f(source, wave.exec());
    u64::put(wave, code.sdst(), new);
    wave.set_exec(new);
    wave.scc = new != 0;
}

/// Moves from the register whose number is the source's plus M0.
#[inline(always)]
pub(crate) fn move_from_relative<T: Scalar>(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) {
    let code = Sop1(insn.code);
    let number = code.ssrc0().wrapping_add(wave.m0() as usize) & 127;
    let value = T::fetch(wave, number, 0);
    T::put(wave, code.sdst(), value);
}

/// Moves to the register whose number is the destination's plus M0.
#[inline(always)]
pub(crate) fn move_to_relative<T: Scalar>(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) {
    let code = Sop1(insn.code);
    let value = T::fetch(wave, code.ssrc0(), insn.literal);
    let number = code.sdst().wrapping_add(wave.m0() as usize);
    T::put(wave, number, value);
}

/// Returns the address of the instruction after `insn`.
#[inline(always)]
fn next_pc(wave: &Wave, insn: &Insn) -> u64 {
    wave.pc.wrapping_add(u64::from(insn.len_words) * 4)
}

/// Writes the address of the next instruction to the destination.
#[inline(always)]
pub(crate) fn read_pc(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) {
    let pc = next_pc(wave, insn);
    u64::put(wave, Sop1(insn.code).sdst(), pc);
}

/// Jumps to the address in the source.
#[inline(always)]
pub(crate) fn jump(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) -> Flow {
    Flow::Jump(u64::fetch(wave, Sop1(insn.code).ssrc0(), insn.literal))
}

/// Jumps to the address in the first of two sources, as a trap handler does to return.
#[inline(always)]
pub(crate) fn jump_to_first(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) -> Flow {
    Flow::Jump(u64::fetch(wave, Sop2(insn.code).ssrc0(), insn.literal))
}

/// Jumps to the address in the source and writes the address of the next instruction to the destination.
#[inline(always)]
pub(crate) fn jump_and_link(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) -> Flow {
    let code = Sop1(insn.code);
    let target = u64::fetch(wave, code.ssrc0(), insn.literal);
    let back = next_pc(wave, insn);
    u64::put(wave, code.sdst(), back);
    Flow::Jump(target)
}

/// Jumps by a constant distance and writes the address of the next instruction to the destination.
#[inline(always)]
pub(crate) fn call(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) -> Flow {
    let code = Sopk(insn.code);
    let back = next_pc(wave, insn);
    u64::put(wave, code.sdst(), back);
    Flow::Jump(back.wrapping_add_signed(i64::from(code.simm16() as u16 as i16) * 4))
}

/// Executes a SOPC instruction: sets SCC to the result of a comparison.
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

/// Executes a SOPK instruction that only writes its destination.
#[inline(always)]
pub(crate) fn sopk_quiet(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn, f: impl Fn(i16) -> u32) {
    let code = Sopk(insn.code);
    u32::put(wave, code.sdst(), f(code.simm16() as u16 as i16));
}

/// Lowest bit of the field of MODE that counts the forks on the stack: its highest three bits.
const FORKS_SHIFT: u32 = 29;

/// Divides the active lanes: those in `pass` continue at `target`, the others with the next instruction. The smaller part goes
/// first; what the other one needs is put on a stack in scalar registers, whose height is a field of MODE, until [`join`].
fn fork(wave: &mut Wave, insn: &Insn, pass: u64, target: u64) -> Flow {
    let exec = wave.exec();
    let (pass, fail) = (pass & exec, !pass & exec);
    if pass == exec {
        return Flow::Jump(target);
    }
    if fail == exec {
        return Flow::Next;
    }
    let next = next_pc(wave, insn);
    let fail_first = fail.count_ones() < pass.count_ones();
    let (first, later, later_pc) = if fail_first { (fail, pass, target) } else { (pass, fail, next) };
    let height = wave.mode.0 >> FORKS_SHIFT;
    wave.set_pair(height as usize * 4, later);
    wave.set_pair(height as usize * 4 + 2, later_pc);
    set_forks(wave, height.wrapping_add(1));
    wave.set_exec(first);
    if fail_first { Flow::Next } else { Flow::Jump(target) }
}

fn set_forks(wave: &mut Wave, height: u32) {
    let mask = u32::MAX << FORKS_SHIFT;
    wave.mode = Mode(wave.mode.0 & !mask | height << FORKS_SHIFT);
}

/// Divides the active lanes: those that are set in the first source continue at the address in the second.
pub(crate) fn fork_to(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) -> Flow {
    let code = Sop2(insn.code);
    let pass = u64::fetch(wave, code.ssrc0(), insn.literal);
    let target = u64::fetch(wave, code.ssrc1(), insn.literal);
    fork(wave, insn, pass, target)
}

/// Divides the active lanes: those that are set in the register continue at the constant distance.
pub(crate) fn fork_by(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) -> Flow {
    let code = Sopk(insn.code);
    let pass = u64::fetch(wave, code.sdst(), 0);
    let target = next_pc(wave, insn).wrapping_add_signed(i64::from(code.simm16() as u16 as i16) * 4);
    fork(wave, insn, pass, target)
}

/// Continues with the lanes that wait on the fork stack or, if it is as low as the source says, with the next instruction.
pub(crate) fn join(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) -> Flow {
    let height = wave.mode.0 >> FORKS_SHIFT;
    if height == u32::fetch(wave, Sop1(insn.code).ssrc0(), insn.literal) {
        return Flow::Next;
    }
    let height = height.wrapping_sub(1) & 7;
    set_forks(wave, height);
    let lanes = wave.pair(height as usize * 4);
    let target = wave.pair(height as usize * 4 + 2);
    wave.set_exec(lanes);
    Flow::Jump(target)
}

/// Executes a SOPK instruction that does nothing unless SCC is set.
#[inline(always)]
pub(crate) fn sopk_if_scc(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn, f: impl Fn(i16) -> u32) {
    if wave.scc {
        sopk_quiet(wave, machine, insn, f);
    }
}

/// Compares a register with the sign-extended constant (SOPK).
#[inline(always)]
pub(crate) fn sopk_compare_i32(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(i32, i32) -> bool,
) {
    let code = Sopk(insn.code);
    wave.scc = f(i32::fetch(wave, code.sdst(), 0), i32::from(code.simm16() as u16 as i16));
}

/// Compares a register with the zero-extended constant (SOPK).
#[inline(always)]
pub(crate) fn sopk_compare_u32(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(u32, u32) -> bool,
) {
    let code = Sopk(insn.code);
    wave.scc = f(u32::fetch(wave, code.sdst(), 0), code.simm16() as u32);
}

/// Executes a SOPK instruction that updates its destination and sets SCC.
#[inline(always)]
pub(crate) fn sopk_update(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(i32, i32) -> (i32, bool),
) {
    let code = Sopk(insn.code);
    let (value, scc) = f(i32::fetch(wave, code.sdst(), 0), i32::from(code.simm16() as u16 as i16));
    i32::put(wave, code.sdst(), value);
    wave.scc = scc;
}

/// Executes a SOPK instruction that updates its destination and does not change SCC.
#[inline(always)]
pub(crate) fn sopk_update_quiet(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(i32, i32) -> i32,
) {
    let code = Sopk(insn.code);
    let value = f(i32::fetch(wave, code.sdst(), 0), i32::from(code.simm16() as u16 as i16));
    i32::put(wave, code.sdst(), value);
}

/// Numbers of hardware registers.
mod hwreg {
    pub(super) const MODE: usize = 1;
    pub(super) const STATUS: usize = 2;
    pub(super) const HW_ID: usize = 4;
    pub(super) const GPR_ALLOC: usize = 5;
    pub(super) const LDS_ALLOC: usize = 6;
    pub(super) const SH_MEM_BASES: usize = 15;
}

/// Returns the value of hardware register `id`. Those that mean nothing here (trap status, counters, the XCC's number) are 0.
fn hardware_register(wave: &Wave, machine: &Machine<'_>, id: usize) -> u32 {
    match id {
        hwreg::MODE => wave.mode.0,
        // SCC, EXECZ, VCCZ, in a workgroup, valid.
        hwreg::STATUS => {
            u32::from(wave.scc)
                | u32::from(wave.exec() == 0) << 9
                | u32::from(wave.vcc() == 0) << 10
                | 1 << 11
                | 1 << 16
        }
        hwreg::HW_ID => wave.hardware_id,
        // Vector registers in eights less one, where AccVGPRs begin in fours less one.
        hwreg::GPR_ALLOC => {
            let size = (wave.vgpr_count() as u32).div_ceil(8).saturating_sub(1) & 0x3f;
            let acc = (wave.accum_offset as u32 / 4).saturating_sub(1) & 0x3f;
            size << 6 | acc << 12
        }
        // Size in units of 512 bytes.
        hwreg::LDS_ALLOC => (machine.lds.len_bytes().div_ceil(512) & 0x1ff) << 12,
        hwreg::SH_MEM_BASES => SHARED_HIGH & 0xffff_0000 | PRIVATE_HIGH >> 16,
        _ => 0,
    }
}

/// Returns the register, the first bit and the mask (not shifted) of a `hwreg` constant.
fn hardware_field(constant: usize) -> (usize, u32, u32) {
    let width = (constant >> 11 & 31) as u32 + 1;
    (constant & 0x3f, (constant >> 6 & 31) as u32, u32::MAX >> (32 - width))
}

/// Reads a field of a hardware register.
pub(crate) fn read_hardware(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) {
    let code = Sopk(insn.code);
    let (id, offset, mask) = hardware_field(code.simm16());
    let value = hardware_register(wave, machine, id) >> offset & mask;
    u32::put(wave, code.sdst(), value);
}

fn set_hardware_field(wave: &mut Wave, constant: usize, value: u32) {
    let (id, offset, mask) = hardware_field(constant);
    // A program may change MODE; what else it may change means nothing here.
    if id == hwreg::MODE {
        let mask = mask << offset & !Mode::VECTOR_SKIP;
        wave.mode = Mode(wave.mode.0 & !mask | value << offset & mask);
    }
}

/// Writes a register to a field of a hardware register.
pub(crate) fn write_hardware(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) {
    let code = Sopk(insn.code);
    let value = u32::fetch(wave, code.sdst(), 0);
    set_hardware_field(wave, code.simm16(), value);
}

/// Writes the literal to a field of a hardware register.
pub(crate) fn write_hardware_literal(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) {
    set_hardware_field(wave, Sopk(insn.code).simm16(), insn.literal);
}

/// Turns the skipping of vector instructions on or off, by the bit of the first source whose number is the second one. To turn
/// that on ends the turn, as the loop that runs a wave looks at it only when it begins.
pub(crate) fn skip_vector(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) -> Flow {
    let code = Sopc(insn.code);
    let bits = u32::fetch(wave, code.ssrc0(), insn.literal);
    let bit = u32::fetch(wave, code.ssrc1(), insn.literal) & 31;
    let on = bits >> bit & 1 != 0;
    wave.mode.set_vector_skip(on);
    if on { Flow::Stop(Stop::Budget) } else { Flow::Next }
}

/// Turns the shifting of vector register numbers on: by the source, for the operands that the raw second source names.
pub(crate) fn index_on(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) {
    let code = Sopc(insn.code);
    let index = u32::fetch(wave, code.ssrc0(), insn.literal) & 0xff;
    wave.sgpr[M0] = wave.m0() & !0xf0ff | index | (code.ssrc1() as u32 & 0xf) << 12;
    wave.mode.set_gpr_index(true);
}

/// Turns the shifting of vector register numbers off.
pub(crate) fn index_off(wave: &mut Wave, _: &mut Machine<'_>, _: &Insn) {
    wave.mode.set_gpr_index(false);
}

/// Sets how far vector register numbers are shifted.
pub(crate) fn index_by(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) {
    let index = u32::fetch(wave, Sop1(insn.code).ssrc0(), insn.literal) & 0xff;
    wave.sgpr[M0] = wave.m0() & !0xff | index;
}

/// Sets which operands' vector register numbers are shifted.
pub(crate) fn index_operands(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) {
    wave.sgpr[M0] = wave.m0() & !0xf000 | (Sopp(insn.code).simm16() as u32 & 0xf) << 12;
}

/// Jumps if `condition` holds. Its offset counts words from the next instruction.
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

/// Stops the wave with the given reason.
#[inline(always)]
pub(crate) fn stop(_: &mut Wave, _: &mut Machine<'_>, _: &Insn, stop: Stop) -> Flow {
    Flow::Stop(stop)
}

/// Does nothing: for waits and hints, which an emulator that executes instructions in order does not need.
#[inline(always)]
pub(crate) fn nothing(_: &mut Wave, _: &mut Machine<'_>, _: &Insn) {}

/// Sends a message: an interrupt reaches whoever wants the machine's, others mean something to a graphics pipeline only.
pub(crate) fn message(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) {
    const INTERRUPT: usize = 1;
    if Sopp(insn.code).simm16() & 0xf == INTERRUPT
        && let Some(interrupts) = machine.interrupts
    {
        // Stores are relaxed, and who is woken looks at what they have stored.
        fence(Ordering::SeqCst);
        interrupts.interrupt(wave.m0());
    }
}

/// Halts the wave, from which only a debugger would wake it.
pub(crate) fn halt(_: &mut Wave, _: &mut Machine<'_>, insn: &Insn) -> Result<(), Cause> {
    Err(unimplemented(insn))
}

/// Does nothing if the constant's lowest bit is 0; any other constant is a fault.
pub(crate) fn nothing_if_zero(_: &mut Wave, _: &mut Machine<'_>, insn: &Insn) -> Result<(), Cause> {
    if Sopp(insn.code).simm16() & 1 == 0 { Ok(()) } else { Err(unimplemented(insn)) }
}

/// Ends the wave if the constant's lowest bit is 1.
pub(crate) fn end_if_set(_: &mut Wave, _: &mut Machine<'_>, insn: &Insn) -> Flow {
    if Sopp(insn.code).simm16() & 1 == 0 { Flow::Next } else { Flow::Stop(Stop::End) }
}

/// Calls the trap handler, which ends the kernel; a debugger's breakpoint is ignored, as there is no debugger.
pub(crate) fn trap(_: &mut Wave, _: &mut Machine<'_>, insn: &Insn) -> Result<(), Cause> {
    const DEBUG_TRAP: u8 = 3;
    match Sopp(insn.code).simm16() as u8 {
        DEBUG_TRAP => Ok(()),
        id => Err(Cause::Trap(id)),
    }
}

/// Orders this wave's memory accesses as other threads see them: for cache write-back and invalidation.
pub(crate) fn memory_fence(_: &mut Wave, _: &mut Machine<'_>, _: &Insn) {
    fence(Ordering::SeqCst);
}
