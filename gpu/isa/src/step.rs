//! Decodes programs when execution reaches them, and executes a wave's instructions.

use std::sync::OnceLock;

use crate::fault::{Cause, Fault};
pub use crate::flow::Stop;
use crate::flow::{Flow, Outcome};
use crate::isa;
use crate::machine::{Insn, PAGE_WORDS, Page, show};
pub use crate::machine::{Interrupts, Machine, Program};
use crate::wave::Wave;

/// Number of words that decoding looks ahead for an instruction that has an effect.
const STEP_WORDS_MAX: u8 = 32;

impl Program {
    /// Returns the page and the index of the instruction at `pc`, decoding it if necessary.
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

/// Executes `wave` from its program counter on, for at most `budget` instructions, and subtracts the number executed from
/// `budget`. Waits and hints, which mean nothing to an emulator, are not executed and do not count.
pub fn run(wave: &mut Wave, machine: &mut Machine<'_>, budget: &mut u64) -> Result<Stop, Fault> {
    let mut left = *budget;
    let stop = loop {
        if left == 0 {
            break Stop::Budget;
        }
        let pc = wave.pc;
        let fault = |cause, pc, mnemonic| Fault { cause, pc, mnemonic, kernel: None };
        let (page, index) = match machine.program.at(pc) {
            Ok(found) => found,
            Err(cause) => match machine.space.program(pc) {
                Some(program) if !std::ptr::eq(program, machine.program) => {
                    machine.program = program;
                    continue;
                }
                _ => return Err(fault(cause, pc, None)),
            },
        };
        let ran = if machine.watch.is_none() {
            run_page::<false>(wave, machine, &mut left, page, index)
        } else {
            run_page::<true>(wave, machine, &mut left, page, index)
        };
        match ran {
            None => {}
            Some((_, Ok(Flow::Next))) => {}
            Some((_, Ok(Flow::Jump(target)))) => wave.pc = target,
            Some((insn, Ok(Flow::Stop(stop)))) => {
                wave.pc = insn.next(wave.pc);
                break stop;
            }
            Some((_, Ok(Flow::Again))) => break Stop::Budget,
            Some((insn, Err(cause))) => return Err(fault(cause, wave.pc, Some(insn.row.name))),
        }
    };
    *budget = left;
    Ok(stop)
}

/// Executes the instructions of a page from `index` on, until the next one is missing or not decoded, `left` is used up, or one
/// does not continue with the next; returns that instruction with its outcome, with the program counter still at it. If `WATCHED`, shows
/// each of them to the machine's watch before.
#[inline(always)]
fn run_page<'a, const WATCHED: bool>(
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
        if WATCHED && !skipped {
            show(wave, machine, insn);
        }
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
