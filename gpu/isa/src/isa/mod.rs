//! The tables of instructions: one row per instruction, `opcode mnemonic = shape(semantics)`, and the choice of the table
//! for a word.
//!
//! VOP1, VOP2 and VOPC instructions have a VOP3 form too; its number follows from theirs, so they have one row. A row marked
//! `e32` has none. A row marked with a GPU is that one's only; where the GPUs have two names for one instruction, the row ends
//! with the gfx90a's in brackets. A row marked `once` is not compiled for each SIMD level. What an instruction does where MODE wants another rounding than to nearest even follows the
//! word `directed`.

mod document;
pub(crate) mod ds;
pub(crate) mod flat;
pub(crate) mod mubuf;
pub(crate) mod smem;
pub(crate) mod sop;
pub(crate) mod vop1;
pub(crate) mod vop2;
pub(crate) mod vop3;
pub(crate) mod vop3p;
pub(crate) mod vopc;

pub use document::document;

use crate::Arch;
use crate::enc::ds::Ds;
use crate::enc::flat::Flat;
use crate::enc::mubuf::{Mtbuf, Mubuf};
use crate::enc::smem::Smem;
use crate::enc::sop::{Sop1, Sop2, Sopc, Sopk, Sopp};
use crate::enc::vop::{LITERAL, Valu, Vop1, Vop2, Vop3, Vop3p, Vopc};
use crate::fault::Cause;
use crate::flow::{Flow, Outcome};
use crate::machine::{Insn, Row};
use crate::simd::Level;

/// Rows by opcode and [`Arch`].
pub(crate) type Table<const N: usize> = [[Option<Row>; Arch::ALL.len()]; N];

/// The marks of rows, one bit each.
#[allow(non_upper_case_globals, reason = "rows name them as they are written there")]
pub(crate) mod mark {
    use crate::Arch;

    /// The instruction has no VOP3 form.
    pub(crate) const e32: u32 = 1 << 31;
    /// The instruction is compiled once and not for each SIMD level.
    pub(crate) const once: u32 = 1 << 30;
    /// Only the gfx90a has the instruction.
    pub(crate) const gfx90a: u32 = 1 << Arch::Gfx90a as u32;
    /// Only the gfx942 has the instruction.
    pub(crate) const gfx942: u32 = 1 << Arch::Gfx942 as u32;

    /// Returns whether GPU number `arch` has a row with these marks.
    pub(crate) const fn has(marks: u32, arch: usize) -> bool {
        marks & (gfx90a | gfx942) == 0 || marks >> arch & 1 != 0
    }
}

/// Puts a row into the table for the GPUs that its marks name; `alias` is its name on the gfx90a, if it has one of its own there.
pub(crate) const fn put<const N: usize>(
    table: &mut Table<N>,
    op: usize,
    row: Row,
    marks: u32,
    alias: Option<&'static str>,
    twice: &'static str,
) {
    let mut arch = 0;
    while arch < Arch::ALL.len() {
        if mark::has(marks, arch) {
            let mut row = row;
            if arch == Arch::Gfx90a as usize
                && let Some(alias) = alias
            {
                row.name = alias;
            }
            assert!(table[op][arch].is_none(), "{}", twice);
            table[op][arch] = Some(row);
        }
        arch += 1;
    }
}

/// The return type of a shape.
pub(crate) trait IntoOutcome {
    fn into_outcome(self) -> Outcome;
}
impl IntoOutcome for () {
    #[inline(always)]
    fn into_outcome(self) -> Outcome {
        Ok(Flow::Next)
    }
}
impl IntoOutcome for Flow {
    #[inline(always)]
    fn into_outcome(self) -> Outcome {
        Ok(self)
    }
}
impl IntoOutcome for Outcome {
    #[inline(always)]
    fn into_outcome(self) -> Outcome {
        self
    }
}
impl IntoOutcome for Result<(), Cause> {
    #[inline(always)]
    fn into_outcome(self) -> Outcome {
        self.map(|()| Flow::Next)
    }
}

/// A table of rows `opcode mnemonic marks… = shape(arguments…);`. A shape is a function
/// `(&mut Wave, &mut Machine, &Insn, arguments…)`. Two rows with one opcode for one GPU do not compile.
///
/// Rows are compiled for each SIMD level, but for those of a table that is marked `scalar` and those marked `once`: atomics, which
/// serve one lane after the other, and shapes that choose the level themselves.
macro_rules! rows {
    ($(#[$doc:meta])* $table:ident [$n:literal] { $($rows:tt)* }) => {
        $crate::isa::rows! { $(#[$doc])* $table [$n] lanes { $($rows)* } }
    };
    ($(#[$doc:meta])* $table:ident [$n:literal] $kind:ident {
        $($op:literal $name:ident $($mark:ident)* = $shape:ident $(::<$($t:tt),*>)? ($($argument:expr),* $(,)?)
          $(directed $directed:ident ($($directed_argument:expr),* $(,)?))? $([$alias:ident])?;)*
    }) => {
        $(#[$doc])*
        pub(crate) static $table: $crate::isa::Table<$n> = {
            let mut table: $crate::isa::Table<$n> = [const { [None; $crate::Arch::ALL.len()] }; $n];
            $(
                let marks: u32 = 0 $(| $crate::isa::mark::$mark)*;
                let row = $crate::machine::Row {
                    name: stringify!($name),
                    exec: {
                        struct Instruction;
                        impl $crate::simd::exec::Instruction for Instruction {
                            #[inline(always)]
                            fn execute(
                                wave: &mut $crate::wave::Wave,
                                machine: &mut $crate::machine::Machine<'_>,
                                insn: &$crate::machine::Insn,
                            ) -> $crate::flow::Outcome {
                                $(
                                    if $crate::shape::rounding::is_directed(wave) {
                                        return $crate::isa::IntoOutcome::into_outcome(
                                            $directed(wave, machine, insn $(, $directed_argument)*));
                                    }
                                )?
                                $crate::isa::IntoOutcome::into_outcome(
                                    $shape $(::<$($t),*>)? (wave, machine, insn $(, $argument)*))
                            }
                        }
                        $crate::isa::rows!(@levels $kind marks)
                    },
                    e32_only: marks & $crate::isa::mark::e32 != 0,
                    idle: $crate::isa::rows!(@idle $shape),
                    access: $crate::watch::shape(stringify!($name)),
                    effect: $crate::watch::effect(stringify!($name)),
                };
                let twice = concat!("two rows for the opcode of ", stringify!($name));
                $crate::isa::put(&mut table, $op, row, marks, $crate::isa::rows!(@alias $($alias)?), twice);
            )*
            table
        };
    };
    (@levels scalar $marks:ident) => { $crate::simd::exec::Levels::one::<Instruction>() };
    (@levels lanes $marks:ident) => {
        if $marks & $crate::isa::mark::once == 0 {
            $crate::simd::exec::Levels::each::<Instruction>()
        } else {
            $crate::simd::exec::Levels::one::<Instruction>()
        }
    };
    (@idle nothing) => { true };
    (@idle $shape:ident) => { false };
    (@alias) => { None };
    (@alias $alias:ident) => { Some(stringify!($alias)) };
}
pub(crate) use rows;

/// The table that an instruction is in. The forms of [`Encoding::Vop3`] that VOPC, VOP2 and VOP1 rows have are not in its
/// own table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Sop1,
    Sop2,
    Sopc,
    Sopk,
    Sopp,
    Vop1,
    Vop2,
    Vopc,
    Vop3,
    Vop3p,
    Smem,
    Ds,
    Flat,
    Global,
    Scratch,
    Mubuf,
    Mtbuf,
}

impl Encoding {
    /// Returns the encoding's name in the list of opcodes.
    fn name(self) -> &'static str {
        match self {
            Self::Sop1 => "SOP1",
            Self::Sop2 => "SOP2",
            Self::Sopc => "SOPC",
            Self::Sopk => "SOPK",
            Self::Sopp => "SOPP",
            Self::Vop1 => "VOP1",
            Self::Vop2 => "VOP2",
            Self::Vopc => "VOPC",
            Self::Vop3 => "VOP3",
            Self::Vop3p => "VOP3P",
            Self::Smem => "SMEM",
            Self::Ds => "DS",
            Self::Flat => "FLAT",
            Self::Global => "GLOBAL",
            Self::Scratch => "SCRATCH",
            Self::Mubuf => "MUBUF",
            Self::Mtbuf => "MTBUF",
        }
    }

    fn table(self) -> &'static [[Option<Row>; Arch::ALL.len()]] {
        match self {
            Self::Sop1 => &sop::SOP1,
            Self::Sop2 => &sop::SOP2,
            Self::Sopc => &sop::SOPC,
            Self::Sopk => &sop::SOPK,
            Self::Sopp => &sop::SOPP,
            Self::Vop1 => &vop1::VOP1,
            Self::Vop2 => &vop2::VOP2,
            Self::Vopc => &vopc::VOPC,
            Self::Vop3 => &vop3::VOP3,
            Self::Vop3p => &vop3p::VOP3P,
            Self::Smem => &smem::SMEM,
            Self::Ds => &ds::DS,
            Self::Flat => &flat::FLAT,
            Self::Global => &flat::GLOBAL,
            Self::Scratch => &flat::SCRATCH,
            Self::Mubuf => &mubuf::MUBUF,
            Self::Mtbuf => &mubuf::MTBUF,
        }
    }

    /// Returns the row of `op`, including VOP3 forms of other encodings.
    fn row(self, arch: Arch, op: usize) -> Option<&'static Row> {
        let (table, index) = match (self, op) {
            (Self::Vop3, 0..VOP3_OF_VOP2) => (Self::Vopc, op),
            (Self::Vop3, VOP3_OF_VOP2..VOP3_OF_VOP1) => (Self::Vop2, op - VOP3_OF_VOP2),
            (Self::Vop3, VOP3_OF_VOP1..VOP3_OWN) => (Self::Vop1, op - VOP3_OF_VOP1),
            _ => (self, op),
        };
        let row = table.table().get(index)?[arch as usize].as_ref()?;
        (table == self || !row.e32_only).then_some(row)
    }
}

/// The bits of an encoding's first word that are not operands.
struct Fixed {
    /// The bits that identify the encoding.
    prefix: u32,
    /// Those bits and the opcode's.
    mask: u32,
    /// The opcode's lowest bit.
    op_shift: u32,
}

impl Encoding {
    fn fixed(self, arch: Arch) -> Fixed {
        // Where the gfx90a has the bit that says: to LDS.
        let lds = if arch == Arch::Gfx90a { 1 << 13 } else { 0 };
        let (prefix, mask, op_shift) = match self {
            Self::Sop1 => (0xbe80_0000, 0xff80_ff00, 8),
            Self::Sop2 => (0x8000_0000, 0xff80_0000, 23),
            Self::Sopc => (0xbf00_0000, 0xffff_0000, 16),
            Self::Sopk => (0xb000_0000, 0xff80_0000, 23),
            Self::Sopp => (0xbf80_0000, 0xffff_0000, 16),
            Self::Vop1 => (0x7e00_0000, 0xfe01_fe00, 9),
            Self::Vop2 => (0x0000_0000, 0xfe00_0000, 25),
            Self::Vopc => (0x7c00_0000, 0xfffe_0000, 17),
            Self::Vop3 => (0xd000_0000, 0xffff_0000, 16),
            Self::Vop3p => (0xd380_0000, 0xffff_0000, 16),
            Self::Smem => (0xc000_0000, 0xfffc_0000, 18),
            Self::Ds => (0xd800_0000, 0xfdfe_0000, 17),
            Self::Flat => (0xdc00_0000, 0xfdfc_c000 | lds, 18),
            Self::Scratch => (0xdc00_4000, 0xfdfc_c000 | lds, 18),
            Self::Global => (0xdc00_8000, 0xfdfc_c000 | lds, 18),
            Self::Mubuf => (0xe000_0000, 0xfdfc_0000, 18),
            Self::Mtbuf => (0xe800_0000, 0xfc07_8000, 15),
        };
        Fixed { prefix, mask, op_shift }
    }
}

const VOP3_OF_VOP2: usize = 0x100;
const VOP3_OF_VOP1: usize = 0x140;
const VOP3_OWN: usize = 0x1c0;

const ENCODINGS: [Encoding; 17] = [
    Encoding::Sop1,
    Encoding::Sop2,
    Encoding::Sopc,
    Encoding::Sopk,
    Encoding::Sopp,
    Encoding::Vop1,
    Encoding::Vop2,
    Encoding::Vopc,
    Encoding::Vop3,
    Encoding::Vop3p,
    Encoding::Smem,
    Encoding::Ds,
    Encoding::Flat,
    Encoding::Global,
    Encoding::Scratch,
    Encoding::Mubuf,
    Encoding::Mtbuf,
];

/// Iterates over all implemented instructions: encoding, opcode, mnemonic. Encodings and instructions have LLVM's names.
pub fn implemented(arch: Arch) -> impl Iterator<Item = (&'static str, u32, &'static str)> {
    ENCODINGS.into_iter().flat_map(move |encoding| {
        let count = if encoding == Encoding::Vop3 { vop3::VOP3.len() } else { encoding.table().len() };
        (0..count).filter_map(move |op| Some((encoding.name(), op as u32, encoding.row(arch, op)?.name)))
    })
}

/// Returns mnemonic and length in words of the instruction at the start of `words`.
pub fn identify(arch: Arch, words: &[u32]) -> Result<(&'static str, usize), Cause> {
    let insn = decode(words, arch, Level::BASE)?;
    Ok((insn.row.name, insn.len_words as usize))
}

/// Returns the first two words of an instruction from [`implemented`], with `operands` in the bits of its operands; of a
/// one-word instruction the second word is what follows it. Returns `None` for an unknown encoding or opcode.
pub fn assemble(arch: Arch, encoding: &str, op: u32, operands: u64) -> Option<[u32; 2]> {
    let encoding = ENCODINGS.into_iter().find(|candidate| candidate.name() == encoding)?;
    encoding.row(arch, op as usize)?;
    let Fixed { prefix, mask, op_shift } = encoding.fixed(arch);
    Some([operands as u32 & !mask | prefix | op << op_shift, (operands >> 32) as u32])
}

/// Returns the fault for words that are not an instruction.
fn no_instruction(code: u64) -> Cause {
    Cause::Unknown { word: code, mnemonic: None }
}

/// Decodes the instruction of `arch` that `words` begin with, to be executed on `level`.
pub(crate) fn decode(words: &[u32], arch: Arch, level: Level) -> Result<Insn, Cause> {
    let word = *words.first().ok_or(Cause::BadPc)?;
    let second = words.get(1).copied();
    let short = u64::from(word);
    let code = short | u64::from(second.unwrap_or(0)) << 32;
    // The encoding, its opcode, its length without a literal, and whether a literal follows.
    let scalar_literal = |sources: &[usize]| sources.contains(&usize::from(LITERAL));
    let (encoding, op, len_words, literal) = if word >> 31 == 0 {
        match word >> 25 {
            0x3f => {
                let code = Vop1(code);
                (Encoding::Vop1, code.op(), vop_len(code.src0()), scalar_literal(&[code.src0()]))
            }
            0x3e => {
                let code = Vopc(code);
                (Encoding::Vopc, code.op(), vop_len(code.src0()), scalar_literal(&[code.src0()]))
            }
            _ => {
                let code = Vop2(code);
                let constant = matches!(code.op(), 0x17 | 0x18 | 0x24 | 0x25);
                (Encoding::Vop2, code.op(), vop_len(code.src0()), constant || scalar_literal(&[code.src0()]))
            }
        }
    } else if word >> 30 == 0b10 {
        match word >> 23 {
            0b1_0111_1101 => {
                let code = Sop1(short);
                (Encoding::Sop1, code.op(), 1, scalar_literal(&[code.ssrc0()]))
            }
            0b1_0111_1110 => {
                let code = Sopc(short);
                (Encoding::Sopc, code.op(), 1, scalar_literal(&[code.ssrc0(), code.ssrc1()]))
            }
            0b1_0111_1111 => (Encoding::Sopp, Sopp(short).op(), 1, false),
            _ if word >> 28 == 0b1011 => {
                let code = Sopk(short);
                (Encoding::Sopk, code.op(), 1, code.op() == sop::S_SETREG_IMM32)
            }
            _ => {
                let code = Sop2(short);
                (Encoding::Sop2, code.op(), 1, scalar_literal(&[code.ssrc0(), code.ssrc1()]))
            }
        }
    } else {
        match word >> 26 {
            0b110100 if word >> 23 == 0b1_1010_0111 => (Encoding::Vop3p, Vop3p(code).op(), 2, false),
            0b110100 => (Encoding::Vop3, Vop3(code).op(), 2, false),
            0b110000 => (Encoding::Smem, Smem(code).op(), 2, false),
            0b110110 => (Encoding::Ds, Ds(code).op(), 2, false),
            0b110111 => match Flat(code).seg() {
                0 => (Encoding::Flat, Flat(code).op(), 2, false),
                1 => (Encoding::Scratch, Flat(code).op(), 2, false),
                2 => (Encoding::Global, Flat(code).op(), 2, false),
                _ => return Err(no_instruction(code)),
            },
            0b111000 => (Encoding::Mubuf, Mubuf(code).op(), 2, false),
            0b111010 => (Encoding::Mtbuf, Mtbuf(code).op(), 2, false),
            _ => return Err(no_instruction(code)),
        }
    };
    let code = match (arch, encoding) {
        (Arch::Gfx90a, Encoding::Flat | Encoding::Global | Encoding::Scratch) => {
            Flat(code).as_gfx942().ok_or(no_instruction(code))?.0
        }
        (_, Encoding::Mtbuf) => Mtbuf(code).as_mubuf(),
        _ => code,
    };
    let total = len_words + u32::from(literal);
    let code = if len_words == 2 { code } else { short };
    if words.len() < total as usize {
        return Err(Cause::BadPc);
    }
    let Some(row) = encoding.row(arch, op) else {
        let elsewhere = encoding.row(arch.other(), op);
        return Err(Cause::Unknown { word: code, mnemonic: elsewhere.map(|row| row.name) });
    };
    let valu = match encoding {
        Encoding::Vop1 => Vop1(code).into(),
        Encoding::Vop2 => Vop2(code).into(),
        Encoding::Vopc => Vopc(code).into(),
        Encoding::Vop3 if has_scalar_destination(op) => Vop3(code).b(),
        Encoding::Vop3 => Vop3(code).a(),
        Encoding::Vop3p => Vop3p(code).into(),
        _ => Valu::default(),
    };
    let literal = if literal { words[total as usize - 1] } else { 0 };
    // At most three.
    let len_words = total as u8;
    Ok(Insn { exec: row.exec.at(level), row, code, literal, len_words, step_words: len_words, valu })
}

/// Returns the length in words of a 32-bit vector encoding without a literal: SDWA and DPP add one.
fn vop_len(src0: usize) -> u32 {
    if matches!(src0, 249 | 250) { 2 } else { 1 }
}

/// Returns whether a VOP3 opcode has the layout VOP3B.
fn has_scalar_destination(op: usize) -> bool {
    matches!(op, 0x119..=0x11e | 0x1e0 | 0x1e1 | 0x1e8 | 0x1e9)
}
