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
    pub(crate) len_words: u8,
    /// Words from here to the next instruction that does something.
    pub(crate) step_words: u8,
    /// Operands, of vector instructions.
    pub(crate) valu: Valu,
}

impl Insn {
    /// Address of the next instruction that does something, if this one is at `pc`.
    #[inline(always)]
    fn next(&self, pc: u64) -> u64 {
        pc.wrapping_add(u64::from(self.step_words) * 4)
    }

    /// Whether it is one for lanes: computes, or accesses memory or LDS.
    fn is_vector(&self) -> bool {
        let word = self.code as u32;
        word >> 31 == 0 || matches!(word >> 26, 0b110100 | 0b110110 | 0b110111 | 0b111000 | 0b111010)
    }
}

const PAGE_WORDS: usize = 256;
/// How far ahead decoding looks for an instruction that does something, in words.
const STEP_WORDS_MAX: u8 = 32;
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

    /// Where in a page the instruction at `pc` is, decoded if it was not yet.
    #[inline(never)]
    fn at(&self, pc: u64) -> Result<(&Page, usize), Cause> {
        let offset = pc.wrapping_sub(self.base);
        // An offset that is no multiple of 4 becomes one beyond all code.
        let index = offset.rotate_right(2) as usize;
        let page = self.pages.get(index / PAGE_WORDS).ok_or(Cause::BadPc)?;
        let page = page.get_or_init(|| Box::new([const { OnceLock::new() }; PAGE_WORDS]));
        if page[index % PAGE_WORDS].get().is_none() {
            self.decode(page, index)?;
        }
        Ok((page, index % PAGE_WORDS))
    }

    #[cold]
    fn decode(&self, page: &Page, index: usize) -> Result<(), Cause> {
        let words = self.words.get(index..).filter(|words| !words.is_empty()).ok_or(Cause::BadPc)?;
        let mut insn = isa::decode(words, self.arch, self.level)?;
        let mut ahead = words.get(usize::from(insn.len_words)..).unwrap_or_default();
        while let Some(idle) = isa::decode(ahead, self.arch, self.level).ok().filter(|next| next.row.idle)
            && insn.step_words < STEP_WORDS_MAX
        {
            insn.step_words += idle.len_words;
            ahead = ahead.get(usize::from(idle.len_words)..).unwrap_or_default();
        }
        page[index % PAGE_WORDS].get_or_init(|| insn);
        Ok(())
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
    let mut left = *budget;
    let stop = loop {
        if left == 0 {
            break Stop::Budget;
        }
        let pc = wave.pc;
        let fault = |cause, pc, mnemonic| Fault { cause, pc, mnemonic, kernel: None };
        let (page, index) = program.at(pc).map_err(|cause| fault(cause, pc, None))?;
        match run_page(wave, machine, &mut left, page, index) {
            None => {}
            Some((_, Ok(Flow::Next))) => {}
            Some((_, Ok(Flow::Jump(target)))) => wave.pc = target,
            Some((insn, Ok(Flow::Stop(stop)))) => {
                wave.pc = insn.next(wave.pc);
                break stop;
            }
            Some((insn, Err(cause))) => return Err(fault(cause, wave.pc, Some(insn.row.name))),
        }
    };
    *budget = left;
    Ok(stop)
}

/// Executes the instructions of a page from `index` on, until the next one is not there or not decoded, `left` is used up, or one
/// has another outcome than to go on: then it is returned with that, and the program counter is still at it.
#[inline(always)]
fn run_page<'a>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    left: &mut u64,
    page: &'a Page,
    mut index: usize,
) -> Option<(&'a Insn, Outcome)> {
    let mut pc = wave.pc;
    let mut budget = *left;
    let mut end = None;
    while budget > 0
        && let Some(insn) = page.get(index).and_then(OnceLock::get)
    {
        budget -= 1;
        let skipped = wave.mode.vector_skip() && insn.is_vector();
        if !skipped && !insn.exec.call(wave, machine, insn) {
            end = Some(insn);
            break;
        }
        index += usize::from(insn.step_words);
        pc = insn.next(pc);
        // Instructions look at it; here it is not read again, as that would have to wait until it is written.
        wave.pc = pc;
    }
    *left = budget;
    end.map(|insn| (insn, wave.take_outcome()))
}
