//! SIMD levels: every vector instruction is compiled once for each, and the machine says which one runs.
//!
//! This module is the crate's one place with unsafe code. A function that was compiled for a processor with AVX2 must not run on one
//! without: a [`Level`] exists only where the processor has it, and an `Exec` only for a level.
#![allow(
    unsafe_code,
    reason = "to call what was compiled for a processor's extensions, and what is one of its instructions"
)]

pub(crate) mod halves;
pub(crate) mod words;

use std::fmt;
use std::str::FromStr;

use crate::step::{Flow, Insn, Machine, Outcome};
use crate::wave::{LANES, Wave};

/// A set of instructions that this processor has: the psABI's baseline, x86-64-v3 (AVX2, FMA, F16C) or x86-64-v4 (AVX-512).
/// Results are the same on all levels, to the bit, but for a NaN's payload where several inputs are NaN: whose it is depends on how
/// the compiler orders the operands of the host's instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(Set);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Set {
    Base,
    V3,
    V4,
}

/// The variable that chooses a level in place of the best one.
const VARIABLE: &str = "HIPR_SIM_SIMD";

impl Level {
    /// What every processor has that this program was compiled for.
    pub const BASE: Self = Self(Set::Base);

    /// All levels that this processor has, the lowest first.
    pub fn available() -> impl Iterator<Item = Self> {
        [(Set::Base, true), (Set::V3, has_v3()), (Set::V4, has_v3() && has_v4())]
            .into_iter()
            .filter_map(|(set, available)| available.then_some(Self(set)))
    }

    /// What the variable `HIPR_SIM_SIMD` names (`base`, `v3` or `v4`); without it the highest level that this processor has.
    ///
    /// # Errors
    /// When the variable names no level, or one that this processor does not have.
    pub fn chosen() -> Result<Self, UnavailableLevel> {
        match std::env::var(VARIABLE) {
            Ok(name) => name.parse(),
            Err(std::env::VarError::NotPresent) => Ok(Self::available().last().unwrap_or(Self::BASE)),
            Err(std::env::VarError::NotUnicode(name)) => Err(UnavailableLevel(name.to_string_lossy().into())),
        }
    }

    /// Runs `task` as it was compiled for this level. Only what is inlined into [`Task::run`] is.
    pub fn run<T: Task>(self, task: T) -> T::Output {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this level exists, so the processor has its extensions (`Level::available`).
            Set::V3 => unsafe { task_v3(task) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Set::V4 => unsafe { task_v4(task) },
            _ => task.run(Self::BASE),
        }
    }

    /// Its name: `base`, `v3` or `v4`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Set::Base => "base",
            Set::V3 => "v3",
            Set::V4 => "v4",
        }
    }

    /// Whether `f32::mul_add` is one instruction on it.
    #[inline(always)]
    pub(crate) fn has_fma(self) -> bool {
        self.0 != Set::Base
    }

    /// Whether there are vectors of 512 bits on it.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn has_avx512(self) -> bool {
        self.0 == Set::V4
    }
}

impl fmt::Debug for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = UnavailableLevel;

    fn from_str(name: &str) -> Result<Self, UnavailableLevel> {
        Self::available().find(|level| level.name() == name).ok_or_else(|| UnavailableLevel(name.to_owned()))
    }
}

/// A name that is no level, or no level of this processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnavailableLevel(String);

impl fmt::Display for UnavailableLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VARIABLE}: {:?} is none of this processor's SIMD levels:", self.0)?;
        Level::available().try_for_each(|level| write!(f, " {}", level.name()))
    }
}

impl std::error::Error for UnavailableLevel {}

#[cfg(target_arch = "x86_64")]
fn has_v3() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2")
        && has!("fma")
        && has!("f16c")
        && has!("bmi1")
        && has!("bmi2")
        && has!("lzcnt")
        && has!("movbe")
        && has!("popcnt")
}

#[cfg(target_arch = "x86_64")]
fn has_v4() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx512f") && has!("avx512bw") && has!("avx512cd") && has!("avx512dq") && has!("avx512vl")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_v3() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn has_v4() -> bool {
    false
}

/// Something to be compiled for each level; see [`Level::run`].
pub trait Task {
    /// What it gives.
    type Output;
    /// Does it, on the level that it is compiled for. To be marked `#[inline(always)]`.
    fn run(self, level: Level) -> Self::Output;
}

/// What an instruction does, for whatever level it is compiled for.
pub(crate) trait Instruction {
    fn execute(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) -> Outcome;
}

/// Whether the next instruction is the one after it; if not, the wave has the outcome. One bit, as that fits in a register.
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

/// An instruction, compiled for each level.
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

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt")]
fn task_v3<T: Task>(task: T) -> T::Output {
    task.run(Level(Set::V3))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
fn task_v4<T: Task>(task: T) -> T::Output {
    task.run(Level(Set::V4))
}

impl Levels {
    /// `I` for each level: for what is done to 64 lanes.
    pub(crate) const fn each<I: Instruction>() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            Self { base: base::<I>, v3: v3::<I>, v4: v4::<I> }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Self::one::<I>()
    }

    /// `I` once for all levels: for what has nothing to gain.
    pub(crate) const fn one<I: Instruction>() -> Self {
        Self { base: base::<I>, v3: base::<I>, v4: base::<I> }
    }

    /// The one for `level`.
    pub(crate) fn at(self, level: Level) -> Exec {
        Exec(match level.0 {
            Set::Base => self.base,
            Set::V3 => self.v3,
            Set::V4 => self.v4,
        })
    }
}

/// What an instruction does, for a level that this processor has: one call serves all lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exec(Compiled);

impl Exec {
    /// Executes it; `false` if the wave has an outcome other than that it goes on.
    #[inline(always)]
    pub(crate) fn call(self, wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) -> bool {
        // SAFETY: the function was compiled for a level's extensions (`Levels::each`, `Levels::one`), it was chosen by a `Level`
        // of that kind (`Levels::at`), and there are only levels that this processor has (`Level::available`).
        unsafe { (self.0)(wave, machine, insn) }
    }
}

/// One bit of each byte, which is 0 or 1.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn pack(flags: &[u8; LANES]) -> u64 {
    use std::arch::x86_64::{_mm_movemask_epi8, _mm_slli_epi16};
    let mut mask = 0;
    for (index, flags) in flags.as_chunks::<16>().0.iter().enumerate() {
        // SAFETY: SSE2 belongs to the baseline of x86-64.
        let bits = unsafe { _mm_movemask_epi8(_mm_slli_epi16::<7>(bytemuck::cast(*flags))) };
        mask |= u64::from(bits as u16) << (index * 16);
    }
    mask
}

/// One bit of each byte, which is 0 or 1.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn pack(flags: &[u8; LANES]) -> u64 {
    (0..).zip(flags).fold(0, |mask, (lane, flag)| mask | u64::from(*flag) << lane)
}

#[cfg(test)]
mod tests {
    use super::{LANES, Level, pack};

    #[test]
    fn each_byte_gives_its_bit() {
        for lane in 0..LANES {
            let mut flags = [0; LANES];
            flags[lane] = 1;
            assert_eq!(pack(&flags), 1 << lane);
            assert_eq!(pack(&flags.map(|flag| 1 - flag)), !(1 << lane));
        }
    }

    #[test]
    fn levels_are_found_by_their_names() {
        for level in Level::available() {
            assert_eq!(level.name().parse(), Ok(level));
        }
        assert_eq!(Level::available().next(), Some(Level::BASE));
        let error = "v9".parse::<Level>().unwrap_err();
        assert!(error.to_string().starts_with("HIPR_SIM_SIMD: \"v9\" is none"), "{error}");
    }
}
