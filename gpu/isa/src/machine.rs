//! Decoded instructions, the programs that they are in, and what they may access.
//!
//! These types refer to each other: an instruction's row holds the function that executes it, which takes the machine, whose
//! program holds decoded instructions. They know neither the tables of instructions nor how one is decoded.

use std::fmt;
use std::sync::OnceLock;
use std::time::Instant;

use crate::Arch;
use crate::enc::vop::Valu;
use crate::gws::WaveSync;
use crate::lds::{Lds, Scratch};
use crate::mem::Space;
use crate::simd::Level;
use crate::simd::exec::{Exec, Levels};
use crate::watch::{Effect, Shape};
use crate::wave::Wave;

/// Everything that an instruction may access beside its wave.
#[derive(Debug)]
pub struct Machine<'a> {
    /// Device memory.
    pub space: &'a Space,
    /// The workgroup's LDS.
    pub lds: &'a mut Lds,
    /// The wave's scratch.
    pub scratch: &'a mut Scratch,
    /// The code that the wave executes; changes when the wave enters other code of [`space`](Self::space).
    pub program: &'a Program,
    /// Barriers and semaphores between the launch's workgroups, if it is a cooperative one.
    pub wave_sync: Option<&'a WaveSync>,
    /// Time at which the device's clocks started.
    pub clock_start: Instant,
    /// Whom `s_sendmsg` interrupts, if anybody.
    pub interrupts: Option<&'a dyn Interrupts>,
    /// Who sees each instruction before it is executed, if anybody.
    pub watch: Option<&'a mut dyn Watch>,
}

/// Sees the instructions of waves.
pub trait Watch: Send {
    /// Sees an instruction that `wave` is about to execute.
    fn instruction(&mut self, wave: &Wave, step: &mut Step<'_, '_>);
}

impl fmt::Debug for dyn Watch + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

/// An instruction that is about to be executed.
pub struct Step<'a, 'm> {
    pub(crate) insn: &'a Insn,
    pub(crate) machine: &'a mut Machine<'m>,
}

/// Shows `insn` to the machine's watch.
pub(crate) fn show(wave: &Wave, machine: &mut Machine<'_>, insn: &Insn) {
    if let Some(watch) = machine.watch.take() {
        watch.instruction(wave, &mut Step { insn, machine });
        machine.watch = Some(watch);
    }
}

/// What the interrupts of kernels go to.
pub trait Interrupts: Send + Sync {
    /// Takes an interrupt from the thread that executes the wave: `m0` is the wave's register M0, in which it says what for. What the wave
    /// has stored before is visible to every thread that learns of the interrupt.
    fn interrupt(&self, m0: u32);
}

impl fmt::Debug for dyn Interrupts + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupts")
    }
}

/// An instruction's row in its table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The mnemonic, without `_e32` and the like.
    pub(crate) name: &'static str,
    pub(crate) exec: Levels,
    /// Whether it has no VOP3 form.
    pub(crate) e32_only: bool,
    /// Whether it does nothing, so that it need not be executed.
    pub(crate) idle: bool,
    /// What memory it accesses.
    pub(crate) access: Option<Shape>,
    /// What it does beside.
    pub(crate) effect: Effect,
}

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Insn {
    pub(crate) exec: Exec,
    pub(crate) row: &'static Row,
    /// The encoding without a literal; a second word is in the high half.
    pub(crate) code: u64,
    /// The literal that follows the encoding.
    pub(crate) literal: u32,
    /// Length in words, literal included.
    pub(crate) len_words: u8,
    /// Distance in words to the next instruction that has an effect.
    pub(crate) step_words: u8,
    /// Operands, if it is a vector instruction.
    pub(crate) valu: Valu,
}

impl Insn {
    /// Returns the address of the next instruction that has an effect, if this one is at `pc`.
    #[inline(always)]
    pub(crate) fn next(&self, pc: u64) -> u64 {
        pc.wrapping_add(u64::from(self.step_words) * 4)
    }

    /// Returns whether it is a vector instruction: one that computes for lanes, or accesses memory or LDS.
    pub(crate) fn is_vector(&self) -> bool {
        let word = self.code as u32;
        word >> 31 == 0 || matches!(word >> 26, 0b110100 | 0b110110 | 0b110111 | 0b111000 | 0b111010)
    }
}

/// Number of words that a page of decoded code covers.
pub(crate) const PAGE_WORDS: usize = 256;
/// Decoded instructions by their first word; empty where execution has not come to.
pub(crate) type Page = [OnceLock<Insn>; PAGE_WORDS];

/// The code of one executable segment, decoded when execution reaches it, because compilers put padding and tables between
/// functions.
pub struct Program {
    pub(crate) arch: Arch,
    pub(crate) base: u64,
    pub(crate) level: Level,
    pub(crate) words: Box<[u32]>,
    pub(crate) pages: Box<[OnceLock<Box<Page>>]>,
}

impl Program {
    /// Returns the GPU whose code it is.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// Memory of a word of code once it is decoded, in bytes: the word itself, and its share of a page.
    pub const BYTES_PER_WORD: usize = size_of::<u32>()
        + size_of::<Page>() / PAGE_WORDS
        + size_of::<OnceLock<Box<Page>>>().div_ceil(PAGE_WORDS);

    /// Creates the program of `code`, whose first byte is at address `base`, with the instructions of `arch`, to be executed on
    /// `level`.
    pub fn new(code: &[u8], base: u64, arch: Arch, level: Level) -> Self {
        let words: Box<[u32]> =
            code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let pages = (0..words.len().div_ceil(PAGE_WORDS)).map(|_| OnceLock::new()).collect();
        Self { arch, base, level, words, pages }
    }

    /// Returns the address of the first byte.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Returns the SIMD level that the program is executed on.
    #[inline(always)]
    pub(crate) fn level(&self) -> Level {
        self.level
    }

    /// Returns the length in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.words.len() as u64 * 4
    }

    /// Returns whether an instruction at `pc` would be part of it.
    pub(crate) fn contains(&self, pc: u64) -> bool {
        pc.wrapping_sub(self.base) < self.len_bytes()
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("base", &format_args!("{:#x}", self.base))
            .field("len_bytes", &self.len_bytes())
            .finish_non_exhaustive()
    }
}
