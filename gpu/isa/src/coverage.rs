//! Finds instructions of kernels that the interpreter lacks.
//!
//! Code is followed from a kernel's entry along branches and calls, as data and padding lie between functions. A call's target is
//! what an address computation just before it says (`s_getpc` and a sum); where a program keeps addresses of functions, all of them
//! count as called.

use std::collections::{BTreeMap, BTreeSet};

use crate::Arch;
use crate::enc::sop::{Sop1, Sop2, Sopk, Sopp};
use crate::fault::Cause;
use crate::isa;
use crate::machine::Insn;
use crate::simd::Level;

/// A kernel's instructions: those that are implemented, and those that are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCoverage {
    /// Name of the kernel.
    pub name: String,
    /// Number of its instructions, including those of functions that it may call.
    pub instructions: usize,
    /// The mnemonics of implemented instructions.
    pub used: BTreeSet<&'static str>,
    /// Missing instructions and how often they occur: mnemonics if another GPU has the instruction, else its words.
    pub missing: BTreeMap<String, usize>,
}

impl KernelCoverage {
    /// Returns whether all instructions are implemented.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }
}

/// A code object's code, by its address.
#[derive(Debug)]
pub struct Code {
    arch: Arch,
    segments: Vec<(u64, Vec<u32>)>,
    /// Addresses of code that are kept in memory.
    kept: Vec<u64>,
}

/// Where execution may continue after an instruction.
#[derive(Default)]
struct After {
    /// Whether it may continue with the next instruction.
    next: bool,
    /// The target of a jump.
    target: Option<u64>,
    /// Whether it continues at an address in a register.
    computed: bool,
}

impl Code {
    /// Creates the code for `arch` from executable segments with their addresses, and the addresses of code that the
    /// program keeps in memory.
    pub fn new<'a>(
        arch: Arch,
        segments: impl IntoIterator<Item = (u64, &'a [u8])>,
        kept: impl IntoIterator<Item = u64>,
    ) -> Self {
        let words =
            |bytes: &[u8]| bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let segments = segments.into_iter().map(|(vaddr, bytes)| (vaddr, words(bytes))).collect();
        let mut code = Self { arch, segments, kept: Vec::new() };
        code.kept = kept.into_iter().filter(|vaddr| code.words(*vaddr).is_some()).collect();
        code
    }

    /// Returns the words from `vaddr` on.
    fn words(&self, vaddr: u64) -> Option<&[u32]> {
        self.segments.iter().find_map(|(base, words)| {
            let offset = vaddr.checked_sub(*base).filter(|offset| offset.is_multiple_of(4))?;
            words.get(usize::try_from(offset / 4).ok()?..).filter(|words| !words.is_empty())
        })
    }

    /// Returns the instructions of the kernel that begins at `entry`.
    pub fn kernel(&self, name: &str, entry: u64) -> KernelCoverage {
        let (mut seen, mut waiting) = (BTreeSet::new(), vec![entry]);
        let (mut used, mut missing) = (BTreeSet::new(), BTreeMap::new());
        let mut calls = false;
        while let Some(start) = waiting.pop() {
            let mut pc = start;
            // What s_getpc and additions to it left in registers.
            let mut addresses: BTreeMap<usize, u64> = BTreeMap::new();
            while seen.insert(pc) {
                let Some(words) = self.words(pc) else {
                    *missing.entry("code outside of the code object".to_owned()).or_insert(0) += 1;
                    break;
                };
                match isa::decode(words, self.arch, Level::BASE) {
                    Ok(insn) => {
                        used.insert(insn.row.name);
                        let next = pc.wrapping_add(u64::from(insn.len_words) * 4);
                        note_address(&insn, next, &mut addresses);
                        let after = after(&insn, next, &addresses);
                        waiting.extend(after.target.filter(|target| self.words(*target).is_some()));
                        calls |= after.computed;
                        if !after.next {
                            break;
                        }
                        pc = next;
                    }
                    Err(cause) => {
                        *missing.entry(name_of(&cause)).or_insert(0) += 1;
                        // A guess, right for all but literals.
                        let long = words.first().is_some_and(|word| word >> 30 == 0b11);
                        pc = pc.wrapping_add(if long { 8 } else { 4 });
                    }
                }
            }
            if waiting.is_empty() && calls {
                calls = false;
                waiting.extend(self.kept.iter().filter(|vaddr| !seen.contains(vaddr)));
            }
        }
        KernelCoverage { name: name.to_owned(), instructions: seen.len(), used, missing }
    }
}

fn name_of(cause: &Cause) -> String {
    match cause {
        Cause::Unknown { mnemonic: Some(mnemonic), .. } => (*mnemonic).to_owned(),
        Cause::Unknown { word, .. } => format!("{word:#x}"),
        _ => cause.to_string(),
    }
}

/// Tracks addresses of code in the registers that hold them.
fn note_address(insn: &Insn, next: u64, addresses: &mut BTreeMap<usize, u64>) {
    let (one, two) = (Sop1(insn.code), Sop2(insn.code));
    match insn.row.name {
        "s_getpc_b64" => {
            addresses.insert(one.sdst(), next);
        }
        "s_add_u32" | "s_addc_u32" if two.ssrc0() == two.sdst() => {
            let (register, high) = if insn.row.name == "s_addc_u32" {
                (two.sdst().wrapping_sub(1), 32)
            } else {
                (two.sdst(), 0)
            };
            let constant = match two.ssrc1() {
                code @ 128..=192 => code as u64 - 128,
                code @ 193..=208 => (192i64 - code as i64) as u64,
                255 => u64::from(insn.literal),
                _ => {
                    addresses.remove(&register);
                    return;
                }
            };
            if let Some(address) = addresses.get_mut(&register) {
                // The halves are added one after the other; a carry from the lower one is in the sum already.
                *address = address.wrapping_add((constant & 0xffff_ffff) << high);
            }
        }
        _ => {}
    }
}

fn after(insn: &Insn, next: u64, addresses: &BTreeMap<usize, u64>) -> After {
    let distance = |constant: usize| next.wrapping_add_signed(i64::from(constant as u16 as i16) * 4);
    let (sopp, sopk) = (Sopp(insn.code).simm16(), Sopk(insn.code).simm16());
    match insn.row.name {
        name if name.starts_with("s_endpgm") => After::default(),
        "s_branch" => After { target: Some(distance(sopp)), ..After::default() },
        "s_call_b64" | "s_cbranch_i_fork" => {
            After { next: true, target: Some(distance(sopk)), computed: false }
        }
        "s_cbranch_g_fork" | "s_cbranch_join" => After { next: true, target: None, computed: true },
        name if name.starts_with("s_cbranch") => {
            After { next: true, target: Some(distance(sopp)), computed: false }
        }
        name @ ("s_swappc_b64" | "s_setpc_b64" | "s_rfe_b64") => {
            let target = addresses.get(&Sop1(insn.code).ssrc0()).copied();
            After { next: name == "s_swappc_b64", target, computed: target.is_none() }
        }
        _ => After { next: true, ..After::default() },
    }
}
