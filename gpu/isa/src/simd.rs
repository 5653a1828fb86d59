//! SIMD levels: every vector instruction is compiled once for each, and the machine determines which one runs.
//!
//! This module has the crate's unsafe code, but for that of the memory of blocks (`pairs.rs`). A function that was compiled for a
//! processor with AVX2 must not run on one without: a [`Level`] exists only where the processor has it, and an `Exec` only for a level.
#![allow(
    unsafe_code,
    reason = "calls functions that were compiled for processor extensions, and uses their intrinsics"
)]

pub(crate) mod exec;
pub mod halves;
pub mod words;

use std::fmt;
use std::str::FromStr;

use crate::wave::LANES;

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

/// The environment variable that chooses a level other than the best one.
const VARIABLE: &str = "HIPR_SIM_SIMD";

impl Level {
    /// The level of every processor that this program can run on.
    pub const BASE: Self = Self(Set::Base);

    /// All levels that this processor has, the lowest first.
    pub fn available() -> impl Iterator<Item = Self> {
        [(Set::Base, true), (Set::V3, has_v3()), (Set::V4, has_v3() && has_v4())]
            .into_iter()
            .filter_map(|(set, available)| available.then_some(Self(set)))
    }

    /// Returns the level that the variable `HIPR_SIM_SIMD` names (`base`, `v3` or `v4`); without it, the highest level that
    /// this processor has.
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

    /// Runs `task` in its version for this level. Only what is inlined into [`Task::run`] is.
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

    /// Returns the level's name: `base`, `v3` or `v4`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Set::Base => "base",
            Set::V3 => "v3",
            Set::V4 => "v4",
        }
    }

    /// Returns whether `f32::mul_add` is a single instruction on this level.
    #[inline(always)]
    pub(crate) fn has_fma(self) -> bool {
        self.0 != Set::Base
    }

    /// Returns whether this level has vectors of 512 bits.
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

/// The name of a level that does not exist or that this processor does not have.
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

/// A computation that is compiled for each level; see [`Level::run`].
pub trait Task {
    /// The type of the result.
    type Output;
    /// Runs the task on the level that it is compiled for. To be marked `#[inline(always)]`.
    fn run(self, level: Level) -> Self::Output;
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

/// Packs 64 bytes that are 0 or 1 into a bit mask.
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

/// Packs 64 bytes that are 0 or 1 into a bit mask.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn pack(flags: &[u8; LANES]) -> u64 {
    (0..).zip(flags).fold(0, |mask, (lane, flag)| mask | u64::from(*flag) << lane)
}
