//! Which registers an instruction reads and writes, and whether it computes with what it reads or moves it.
//!
//! It follows from the operands that the instruction was decoded to, and from its mnemonic. Where that does not say how many registers
//! a source has, it is the first one; a result is as long as any instruction's of that name.

use super::Register;
use crate::enc::sop::{Sop1, Sop2};
use crate::enc::vop::{Extra, Mai, Sdwa, VGPR};
use crate::machine::Insn;
use crate::shape::source::part;
use crate::wave::FIRST;

/// What an instruction does with what it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It moves it: its result has the bytes of its source.
    Move,
    /// It takes bits apart or puts them together, or selects.
    Bits,
    /// It computes with it, or decides by it.
    Use,
}

/// A register that an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The first register.
    pub register: Register,
    /// Number of registers.
    pub words: usize,
    /// The bytes that are read of each, a bit each.
    pub bytes: u8,
    /// Its place among the instruction's sources.
    pub index: usize,
}

pub(super) fn has(name: &str, parts: &[&str]) -> bool {
    parts.iter().any(|part| name.contains(part))
}

/// Returns what the instruction `name` does with what it reads.
pub(super) fn role(name: &str) -> Role {
    const MOVES: [&str; 8] = [
        "v_mov_b",
        "v_accvgpr_",
        "v_pk_mov",
        "s_mov_b",
        "v_readfirstlane",
        "v_readlane",
        "v_writelane",
        "s_cmov_b",
    ];
    const BITS: [&str; 21] = [
        "v_and_",
        "v_or_",
        "v_or3",
        "v_xor_",
        "v_xad_",
        "v_not_",
        "v_lshl",
        "v_lshr",
        "v_ashr",
        "v_bfe",
        "v_bfi",
        "v_perm_",
        "v_align",
        "v_cndmask",
        "v_swap",
        "s_and_b",
        "s_or_b",
        "s_lsh",
        "s_bfe",
        "s_cselect",
        "s_pack",
    ];
    if MOVES.iter().any(|begin| name.starts_with(begin)) {
        Role::Move
    } else if BITS.iter().any(|begin| name.starts_with(begin))
        && !has(name, &["lshl_add", "saveexec", "add_lshl"])
    {
        Role::Bits
    } else {
        Role::Use
    }
}

/// Returns the words of the type that a mnemonic names first or last, 1 if it names none.
fn words(name: &str, is_first: bool) -> usize {
    let mut types = name.split('_').filter(|part| {
        let mut letters = part.chars();
        letters.next().is_some_and(|first| "fuib".contains(first)) && letters.as_str().parse::<u8>().is_ok()
    });
    let named = if is_first { types.next() } else { types.next_back() };
    if named.is_some_and(|named| named.ends_with("64")) { 2 } else { 1 }
}

/// Returns the number of registers of a vector result.
fn result_words(name: &str) -> usize {
    match () {
        () if has(name, &["mfma", "smfmac"]) && name.contains("32x32") => 32,
        () if has(name, &["mfma", "smfmac"]) && name.contains("16x16") => 16,
        () if has(name, &["mfma", "qsad"]) => 4,
        () if has(name, &["pk_fma_f32", "pk_mul_f32", "pk_add_f32", "pk_mov_b32"]) => 2,
        () => words(name, true),
    }
}

/// Returns the number of registers of a vector source.
fn source_words(name: &str, index: usize) -> usize {
    match index {
        _ if has(name, &["mfma", "smfmac"]) => 1,
        _ if has(name, &["pk_fma_f32", "pk_mul_f32", "pk_add_f32", "pk_mov_b32"]) => 2,
        0 if has(name, &["lshlrev", "lshrrev", "ashrrev"]) => 1,
        1 if has(name, &["lshl_add_u64", "ldexp", "class", "preop"]) => 1,
        2 if name.starts_with("v_mad_u64") || name.starts_with("v_mad_i64") => 2,
        _ => words(name, false),
    }
}

/// Returns the bytes that are read of a vector source.
fn source_bytes(insn: &Insn, index: usize) -> u8 {
    let name = insn.row.name;
    if insn.valu.extra == Extra::Sdwa && index < 2 {
        let sdwa = Sdwa(insn.code);
        let (shift, bits) = part(if index == 0 { sdwa.src0_sel() } else { sdwa.src1_sel() });
        return (((1u16 << (bits / 8)) - 1) << (shift / 8)) as u8;
    }
    if let Some(byte) = name.strip_prefix("v_cvt_f32_ubyte").and_then(|byte| byte.parse::<u8>().ok()) {
        return 1 << (byte & 3);
    }
    let is_half = !has(name, &["pk_", "dot", "mix", "mfma", "smfmac", "perm"]) && has(name, &["16"]);
    if !is_half {
        return 0xf;
    }
    // A conversion has halves on one side only.
    let last = name.rsplit('_').find(|part| part.len() == 3 || part.len() == 2).unwrap_or("");
    match (last.ends_with("16"), insn.valu.op_sel >> index & 1) {
        (false, _) => 0xf,
        (true, 0) => 0b0011,
        (true, _) => 0b1100,
    }
}

/// Returns the register of a scalar operand, if it is one.
fn scalar(code: usize) -> Option<Register> {
    (code < 106).then_some(Register::Scalar(code))
}

pub(super) fn scalar_words(name: &str) -> usize {
    if name.contains("64") || name.contains("pc_b") { 2 } else { 1 }
}

/// Returns whether the instruction has the operands of vector instructions that access no memory.
fn is_valu(insn: &Insn) -> bool {
    let word = insn.code as u32;
    word >> 31 == 0 || word >> 26 == 0b11_0100
}

/// Calls `each` with the registers that an instruction reads, those of addresses and data of memory left out.
pub(super) fn sources(insn: &Insn, accum_offset: usize, each: &mut dyn FnMut(Source)) {
    let name = insn.row.name;
    if insn.is_vector() && !is_valu(insn) {
        // What moves values between lanes by way of the LDS.
        let data = (insn.code >> 40 & 0xff) as usize;
        return each(Source { register: Register::Vector(data), words: 1, bytes: 0xf, index: 0 });
    }
    if insn.is_vector() {
        for (index, &code) in insn.valu.src.iter().enumerate() {
            let bytes = source_bytes(insn, index);
            let words = source_words(name, index);
            if code >= VGPR {
                let is_accumulator = match () {
                    () if has(name, &["accvgpr_read", "accvgpr_mov"]) => true,
                    () if has(name, &["mfma", "smfmac"]) && index < 2 => {
                        Mai(insn.code).acc() >> index & 1 != 0
                    }
                    () if has(name, &["mfma", "smfmac"]) => Mai(insn.code).acc_cd() != 0,
                    () => false,
                };
                let first = if is_accumulator { accum_offset } else { 0 };
                let register = Register::Vector(first + usize::from(insn.valu.src_rows[index]) - FIRST);
                each(Source { register, words, bytes, index });
            } else if let Some(register) = scalar(usize::from(code)).filter(|_| index == 0 || code != 0) {
                each(Source { register, words, bytes, index });
            }
        }
        return;
    }
    let (top, words) = (insn.code as u32 >> 23, scalar_words(name));
    let codes = match top {
        0b1_0111_1101 => [Some(Sop1(insn.code).ssrc0()), None],
        0b1_0111_1111 => [None, None],
        _ if top >> 5 == 0b1011 && top != 0b1_0111_1110 => [None, None],
        _ => [Some(Sop2(insn.code).ssrc0()), Some(Sop2(insn.code).ssrc1())],
    };
    for (index, code) in codes.into_iter().enumerate() {
        if let Some(register) = code.and_then(scalar) {
            each(Source { register, words, bytes: 0xf, index });
        }
    }
}

/// Calls `each` with the first register and the number of registers of each result, those of loads left out.
pub(super) fn results(insn: &Insn, accum_offset: usize, each: &mut dyn FnMut(Register, usize)) {
    let name = insn.row.name;
    if !insn.is_vector() {
        let top = insn.code as u32 >> 23;
        // SOPC and SOPP have none.
        if top != 0b1_0111_1110 && top != 0b1_0111_1111 {
            scalar(Sop2(insn.code).sdst())
                .into_iter()
                .for_each(|register| each(register, scalar_words(name)));
        }
        return;
    }
    if !is_valu(insn) {
        return each(Register::Vector((insn.code >> 56 & 0xff) as usize), 1);
    }
    if name.starts_with("v_readlane") || name.starts_with("v_readfirstlane") {
        scalar(usize::from(insn.valu.vdst)).into_iter().for_each(|register| each(register, 1));
        return;
    }
    if !name.starts_with("v_cmp") {
        let is_accumulator = has(name, &["accvgpr_write", "accvgpr_mov"])
            || has(name, &["mfma", "smfmac"]) && Mai(insn.code).acc_cd() != 0;
        let first = if is_accumulator { accum_offset } else { 0 };
        each(Register::Vector(first + usize::from(insn.valu.result) - FIRST), result_words(name));
    }
    if name.starts_with("v_cmp") || has(name, &["_co_", "div_scale", "mad_u64", "mad_i64"]) {
        each(Register::Scalar(usize::from(insn.valu.sdst)), 2);
    }
}
