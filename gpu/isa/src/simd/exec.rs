//! Instructions compiled for each SIMD level, and the call of the one for a level that this processor has.

use super::{Level, Set};
use crate::flow::{Flow, Outcome};
use crate::machine::{Insn, Machine};
use crate::wave::Wave;

/// The implementation of an instruction, to be compiled for any level.
pub(crate) trait Instruction {
    fn execute(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) -> Outcome;
}

/// A compiled instruction. Returns whether execution continues with the next instruction; if not, the wave holds the outcome.
/// One bit, as that fits in a register.
type Compiled = unsafe fn(&mut Wave, &mut Machine<'_>, &Insn) -> bool;

#[inline(always)]
fn executed<I: Instruction>(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) -> bool {
    match I::execute(wave, machine, insn) {
        Ok(Flow::Next) => true,
        other => {
            wave.set_outcome(other);
            false
        }
    }
}

fn base<I: Instruction>(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) -> bool {
    executed::<I>(wave, machine, insn)
}

/// An instruction compiled for each level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Levels {
    base: Compiled,
    v3: Compiled,
    v4: Compiled,
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt")]
fn v3<I: Instruction>(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) -> bool {
    executed::<I>(wave, machine, insn)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
fn v4<I: Instruction>(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) -> bool {
    executed::<I>(wave, machine, insn)
}

impl Levels {
    /// Compiles `I` for each level: for instructions that process 64 lanes.
    pub(crate) const fn each<I: Instruction>() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            Self { base: base::<I>, v3: v3::<I>, v4: v4::<I> }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Self::one::<I>()
    }

    /// Compiles `I` once for all levels: for instructions that gain nothing from SIMD.
    pub(crate) const fn one<I: Instruction>() -> Self {
        Self { base: base::<I>, v3: base::<I>, v4: base::<I> }
    }

    /// Returns the instruction as compiled for `level`.
    pub(crate) fn at(self, level: Level) -> Exec {
        Exec(match level.0 {
            Set::Base => self.base,
            Set::V3 => self.v3,
            Set::V4 => self.v4,
        })
    }
}

/// An instruction compiled for a level that this processor has; one call processes all lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exec(Compiled);

impl Exec {
    /// Executes the instruction; returns `false` if the wave holds an outcome other than to continue with the next instruction.
    #[inline(always)]
    pub(crate) fn call(self, wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) -> bool {
        // SAFETY: the function was compiled for a level's extensions (`Levels::each`, `Levels::one`), it was chosen by a `Level`
        // of that kind (`Levels::at`), and there are only levels that this processor has (`Level::available`).
        unsafe { (self.0)(wave, machine, insn) }
    }
}
