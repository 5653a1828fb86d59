//! Decoded programs, and the loop that runs a wave through one: the only dispatch.

use std::sync::OnceLock;
use std::time::Instant;

use crate::Arch;
use crate::enc::vop::Valu;
use crate::fault::{Cause, Fault};
use crate::isa::{self, Row};
use crate::lds::{Lds, Scratch};
use crate::mem::Space;
use crate::simd::{Exec, Level};
use crate::wave::Wave;

/// What an instruction may touch beside its wave.
#[derive(Debug)]
pub struct Machine<'a> {
    /// Device memory.
    pub space: &'a Space,
    /// The workgroup's LDS.
    pub lds: &'a mut Lds,
    /// The wave's scratch.
    pub scratch: &'a mut Scratch,
    /// The code.
    pub program: &'a Program,
    /// Zero of the device's clocks.
    pub clock_start: Instant,
}

/// Why [`run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// `s_endpgm`.
    End,
    /// `s_barrier`: go on when every live wave of the workgroup is here.
    Barrier,
    /// The budget is used up, or the wave sleeps (`s_sleep`): another one should have its turn.
    Budget,
}

/// Where execution goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// On.
    Next,
    /// To this address.
    Jump(u64),
    /// Nowhere for now; the next instruction is the one to go on with.
    Stop(Stop),
}

pub(crate) type Outcome = Result<Flow, Cause>;

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Insn {
    pub(crate) exec: Exec,
    pub(crate) row: &'static Row,
    /// The encoding without a literal; the second word, if there is one, in the high half.
    pub(crate) code: u64,
    /// The literal that follows the encoding.
    pub(crate) literal: u32,
    /// Length in words, literal included.
    pub(crate) len_words: u32,
    /// Words from here to the next instruction that does something.
    pub(crate) step_words: u32,
    /// Operands, of vector instructions.
    pub(crate) valu: Valu,
}

impl Insn {
    /// Whether it is one for lanes: computes, or accesses memory or LDS.
    fn is_vector(&self) -> bool {
        let word = self.code as u32;
        word >> 31 == 0 || matches!(word >> 26, 0b110100 | 0b110110 | 0b110111 | 0b111000 | 0b111010)
    }
}

const PAGE_WORDS: usize = 256;
/// How far ahead decoding looks for an instruction that does something, in words.
const STEP_WORDS_MAX: u32 = 32;
type Page = [OnceLock<Insn>; PAGE_WORDS];

/// The code of one executable segment, decoded where execution gets to: compilers put padding and tables between functions.
pub struct Program {
    arch: Arch,
    base: u64,
    level: Level,
    words: Box<[u32]>,
    pages: Box<[OnceLock<Box<Page>>]>,
}

impl Program {
    /// The program of `code`, whose first byte is at address `base`, in the instructions of `arch`, to be executed on `level`.
    pub fn new(code: &[u8], base: u64, arch: Arch, level: Level) -> Self {
        let words: Box<[u32]> =
            code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let pages = (0..words.len().div_ceil(PAGE_WORDS)).map(|_| OnceLock::new()).collect();
        Self { arch, base, level, words, pages }
    }

    /// Address of the first byte.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The SIMD level that it is executed on.
    #[inline(always)]
    pub(crate) fn level(&self) -> Level {
        self.level
    }

    /// Length in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.words.len() as u64 * 4
    }

    #[inline(always)]
    fn at(&self, pc: u64) -> Result<&Insn, Cause> {
        let offset = pc.wrapping_sub(self.base);
        // An offset that is no multiple of 4 becomes one beyond all code.
        let index = offset.rotate_right(2) as usize;
        let Some(page) = self.pages.get(index / PAGE_WORDS) else { return Err(Cause::BadPc) };
        if let Some(page) = page.get()
            && let Some(insn) = page[index % PAGE_WORDS].get()
        {
            return Ok(insn);
        }
        self.decode(offset)
    }

    #[cold]
    fn decode(&self, offset: u64) -> Result<&Insn, Cause> {
        let index = (offset / 4) as usize;
        let words = self.words.get(index..).filter(|words| !words.is_empty() && offset.is_multiple_of(4));
        let words = words.ok_or(Cause::BadPc)?;
        let mut insn = isa::decode(words, self.arch, self.level)?;
        let mut ahead = words.get(insn.len_words as usize..).unwrap_or_default();
        while let Some(idle) = isa::decode(ahead, self.arch, self.level).ok().filter(|next| next.row.idle)
            && insn.step_words < STEP_WORDS_MAX
        {
            insn.step_words += idle.len_words;
            ahead = ahead.get(idle.len_words as usize..).unwrap_or_default();
        }
        let page =
            self.pages[index / PAGE_WORDS].get_or_init(|| Box::new([const { OnceLock::new() }; PAGE_WORDS]));
        Ok(page[index % PAGE_WORDS].get_or_init(|| insn))
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("base", &format_args!("{:#x}", self.base))
            .field("len_bytes", &self.len_bytes())
            .finish_non_exhaustive()
    }
}

/// Runs `wave` from its program counter on, for at most `budget` instructions, and takes those that it executed off `budget`. Waits
/// and hints, which mean nothing to an emulator, are not executed and do not count.
pub fn run(wave: &mut Wave, machine: &mut Machine<'_>, budget: &mut u64) -> Result<Stop, Fault> {
    let program = machine.program;
    let skipping = wave.mode.vector_skip();
    let mut left = *budget;
    let mut pc = wave.pc;
    let stop = loop {
        if left == 0 {
            break Stop::Budget;
        }
        left -= 1;
        let insn = match program.at(pc) {
            Ok(insn) => insn,
            Err(cause) => return Err(Fault { cause, pc, mnemonic: None, kernel: None }),
        };
        let next = pc.wrapping_add(u64::from(insn.step_words) * 4);
        if skipping && wave.mode.vector_skip() && insn.is_vector() {
            pc = next;
            wave.pc = pc;
            continue;
        }
        match insn.exec.call(wave, machine, insn) {
            Ok(Flow::Next) => pc = next,
            Ok(Flow::Jump(target)) => pc = target,
            Ok(Flow::Stop(stop)) => {
                wave.pc = next;
                break stop;
            }
            Err(cause) => return Err(Fault { cause, pc, mnemonic: Some(insn.row.name), kernel: None }),
        }
        // Instructions look at it; here it is not read again, as that would have to wait until it is written.
        wave.pc = pc;
    };
    *budget = left;
    Ok(stop)
}
