//! How bits that nobody knows go through an instruction: bit by bit through scalar ones, which work on masks of lanes, and from where to where
//! through those that move values between lanes.

use super::bits::Bits;
use super::operands::{has, scalar_words};
use crate::enc::sop::{Sop1, Sop2, Sopc, Sopk};
use crate::enc::vop::{Dpp, Extra, VGPR};
use crate::machine::Insn;
use crate::shape::operand::{scalar32, scalar64};
use crate::shape::source::dpp_lane;
use crate::wave::{EXEC, FIRST, LANES, VCC, Wave};

/// What a vector instruction that accesses no memory does with its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// It computes each lane of its result from the same lane of its sources.
    Alone,
    /// It selects one of two sources for each lane, by a mask.
    Select,
    /// It compares, and writes a mask with a bit for each lane.
    Compare,
    /// It copies the value of one lane to a scalar register.
    Read,
    /// It writes a scalar to one lane.
    Write,
    /// It counts, for each lane, the bits of a scalar below the lane's own.
    Count,
    /// It gives each lane the value of the lane that an address names.
    Gather,
    /// It computes a lane of its result from several lanes, as matrix instructions do.
    Mixed,
}

/// What becomes of unknown bits in a scalar instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scalar {
    /// The first register of the result, how many there are, and their unknown bits.
    pub result: Option<(usize, usize, u64)>,
    /// The unknown bits of EXEC, if it writes that.
    pub exec: u64,
    /// Whether SCC is unknown, if it writes that.
    pub scc: Option<bool>,
    /// Whether it jumps by unknown bits, or to an unknown address.
    pub decides: bool,
}

/// Returns what a vector instruction does with its lanes.
pub(super) fn lanes(insn: &Insn) -> Lanes {
    let name = insn.row.name;
    match () {
        () if name == "ds_bpermute_b32" => Lanes::Gather,
        () if has(name, &["mfma", "smfmac", "ds_permute"]) => Lanes::Mixed,
        () if name.starts_with("v_cndmask") => Lanes::Select,
        () if name.starts_with("v_cmp") => Lanes::Compare,
        () if has(name, &["v_readlane", "v_readfirstlane"]) => Lanes::Read,
        () if name.starts_with("v_writelane") => Lanes::Write,
        () if name.starts_with("v_mbcnt") => Lanes::Count,
        () => Lanes::Alone,
    }
}

/// Returns the first register of the mask that a vector instruction reads for its lanes, if it does: of a selection or a carry.
pub(super) fn mask(insn: &Insn) -> Option<usize> {
    let name = insn.row.name;
    if has(name, &["div_fmas"]) {
        return Some(VCC);
    }
    let reads = has(name, &["v_cndmask", "v_addc_co", "v_subb_co", "v_subbrev_co"]);
    reads.then(|| usize::from(insn.valu.src[2])).filter(|code| *code < 128)
}

/// Returns the lanes of source 0 as they arrive: where DPP moves them.
pub(super) fn arriving(insn: &Insn, exec: u64, lanes: u64) -> u64 {
    if insn.valu.extra != Extra::Dpp {
        return lanes;
    }
    let ctrl = Dpp(insn.code).ctrl();
    let comes = |lane: &usize| dpp_lane(ctrl, *lane).is_some_and(|from| exec & lanes & 1 << from != 0);
    (0..LANES).filter(comes).fold(0, |all, lane| all | 1 << lane)
}

/// Returns the lane that `v_readlane`, `v_readfirstlane` or `v_writelane` names.
pub(super) fn named_lane(insn: &Insn, wave: &Wave) -> usize {
    if insn.row.name.starts_with("v_readfirstlane") {
        return wave.exec().trailing_zeros() as usize % LANES;
    }
    scalar32(wave, usize::from(insn.valu.src[1]), insn.literal) as usize % LANES
}

/// Returns the lanes of a value as they arrive where each lane reads the one that its address names.
pub(super) fn gathered(insn: &Insn, wave: &Wave, lanes: u64) -> u64 {
    let address = (insn.code >> 32 & 0xff) as usize;
    let offset = insn.code as u32 & 0xffff;
    let from = |lane: usize| wave.row(FIRST + address)[lane].wrapping_add(offset) as usize / 4 % LANES;
    (0..LANES).filter(|lane| lanes >> from(*lane) & 1 != 0).fold(0, |all, lane| all | 1 << lane)
}

/// Returns the lanes whose count depends on unknown bits of the scalar.
pub(super) fn counted(insn: &Insn, unknown: &dyn Fn(usize) -> u32) -> u64 {
    let code = insn.valu.src[0];
    if code >= VGPR.min(128) {
        return 0;
    }
    let bits = u64::from(unknown(code.into())) << if insn.row.name.contains("_hi_") { 32 } else { 0 };
    (0..LANES).filter(|lane| bits & ((1 << lane) - 1) != 0).fold(0, |all, lane| all | 1 << lane)
}

/// Returns the result of a logical operation on the bits of `width`; `None` if the mnemonic names none.
fn logic(name: &str, a: Bits, b: Bits, width: u64) -> Option<Bits> {
    let operation = name.strip_prefix("s_")?.split('_').next()?;
    let a = if operation.ends_with("n1") { a.not() } else { a };
    let b = if operation.ends_with("n2") { b.not() } else { b };
    let Bits { value, unknown } = match operation {
        "and" | "andn1" | "andn2" => a.and(b),
        "nand" => a.and(b).not(),
        "or" | "orn1" | "orn2" => a.or(b),
        "nor" => a.or(b).not(),
        "xor" => a.xor(b),
        "xnor" => a.xor(b).not(),
        _ => return None,
    };
    Some(Bits { value: value & width, unknown: unknown & width })
}

fn all_if(is_unknown: bool, words: usize) -> u64 {
    match (is_unknown, words) {
        (false, _) => 0,
        (true, 1) => u64::from(u32::MAX),
        (true, _) => u64::MAX,
    }
}

/// Returns what becomes of unknown bits in a scalar instruction. `unknown` returns those of a register, `scc` says whether SCC is.
pub(super) fn scalar(insn: &Insn, wave: &Wave, unknown: &dyn Fn(usize) -> u32, scc: bool) -> Scalar {
    let name = insn.row.name;
    let top = insn.code as u32 >> 23;
    let bits = |code: usize, words: usize| {
        let of = |code: usize| if code < 128 { u64::from(unknown(code)) } else { 0 };
        if words == 2 && code < 127 { of(code) | of(code + 1) << 32 } else { of(code) }
    };
    let value = |code: usize, words: usize| {
        if words == 2 {
            scalar64(wave, code, insn.literal)
        } else {
            scalar32(wave, code, insn.literal).into()
        }
    };
    let words = scalar_words(name);
    let nothing = Scalar::default();
    match top {
        // SOPP
        0b1_0111_1111 => {
            let vcc = bits(VCC, 2);
            let decides = match name {
                "s_cbranch_scc0" | "s_cbranch_scc1" => scc,
                // A bit that is known to be set decides by itself.
                "s_cbranch_vccz" | "s_cbranch_vccnz" => vcc != 0 && wave.vcc() & !vcc == 0,
                _ => false,
            };
            Scalar { decides, ..nothing }
        }
        // SOPC
        0b1_0111_1110 => {
            let code = Sopc(insn.code);
            let second = if name.starts_with("s_bitcmp") { 1 } else { words };
            let is_unknown = bits(code.ssrc0(), words) | bits(code.ssrc1(), second) != 0;
            Scalar { scc: has(name, &["s_cmp", "s_bitcmp"]).then_some(is_unknown), ..nothing }
        }
        0b1_0111_1101 => of_one(insn, wave, &bits, &value, scc),
        // SOPK
        _ if top >> 5 == 0b1011 => {
            let sdst = Sopk(insn.code).sdst();
            let is_unknown = bits(sdst, 1) != 0;
            match name {
                name if name.starts_with("s_cmpk") => Scalar { scc: Some(is_unknown), ..nothing },
                "s_addk_i32" | "s_mulk_i32" => {
                    let result = Some((sdst, 1, all_if(is_unknown, 1)));
                    Scalar { result, scc: (name == "s_addk_i32").then_some(is_unknown), ..nothing }
                }
                "s_cmovk_i32" if scc => Scalar { result: Some((sdst, 1, all_if(true, 1))), ..nothing },
                "s_cmovk_i32" if !wave.scc => nothing,
                "s_movk_i32" | "s_cmovk_i32" | "s_getreg_b32" => {
                    Scalar { result: Some((sdst, 1, 0)), ..nothing }
                }
                "s_call_b64" => Scalar { result: Some((sdst, 2, 0)), ..nothing },
                _ => nothing,
            }
        }
        _ => of_two(insn, wave, &bits, &value, scc),
    }
}

type OfOperand<'a> = &'a dyn Fn(usize, usize) -> u64;

/// Returns the same of an instruction with one source.
fn of_one(insn: &Insn, wave: &Wave, bits: OfOperand<'_>, value: OfOperand<'_>, scc: bool) -> Scalar {
    let (name, code) = (insn.row.name, Sop1(insn.code));
    let (src, dst) = (code.ssrc0(), code.sdst());
    let words = scalar_words(name);
    let dst_words = if has(name, &["s_bcnt", "s_ff", "s_flbit"]) { 1 } else { words };
    let src_words = if name.starts_with("s_bitreplicate") { 1 } else { words };
    let unknown = bits(src, src_words);
    let is_unknown = unknown != 0;
    let quiet = |unknown| result(dst, dst_words, unknown, None);
    match name {
        _ if has(name, &["saveexec", "wrexec"]) => {
            let exec = wave.exec();
            let (source, exec) = (Bits { value: value(src, 2), unknown }, Bits { value: exec, unknown: 0 });
            let Bits { value: set, unknown } =
                logic(name, source, exec, u64::MAX).unwrap_or(Bits { value: 0, unknown: u64::MAX });
            let kept = if name.contains("wrexec") { unknown } else { 0 };
            let scc = Some(unknown != 0 && set & !unknown == 0);
            Scalar { exec: unknown, ..result(dst, 2, kept, scc) }
        }
        "s_mov_b32" | "s_mov_b64" => quiet(unknown),
        "s_cmov_b32" | "s_cmov_b64" => match (scc, wave.scc) {
            (true, _) => quiet(all_if(true, words)),
            (false, true) => quiet(unknown),
            (false, false) => Scalar::default(),
        },
        "s_not_b32" | "s_not_b64" => {
            let is_zero = !value(src, words) & !unknown & all_if(true, words) == 0;
            result(dst, words, unknown, Some(is_unknown && is_zero))
        }
        "s_getpc_b64" => quiet(0),
        "s_setpc_b64" => Scalar { decides: is_unknown, ..Scalar::default() },
        "s_swappc_b64" => Scalar { decides: is_unknown, ..quiet(0) },
        _ if has(name, &["s_bcnt", "s_wqm", "s_quadmask", "s_abs"]) => {
            result(dst, dst_words, all_if(is_unknown, dst_words), Some(is_unknown))
        }
        _ if has(name, &["s_movrel", "s_rfe", "s_cbranch", "s_set_gpr"]) => Scalar::default(),
        _ => quiet(all_if(is_unknown, dst_words)),
    }
}

/// Returns the same of an instruction with two sources.
fn of_two(insn: &Insn, wave: &Wave, bits: OfOperand<'_>, value: OfOperand<'_>, scc: bool) -> Scalar {
    let (name, code) = (insn.row.name, Sop2(insn.code));
    let (first, second, dst) = (code.ssrc0(), code.ssrc1(), code.sdst());
    let words = scalar_words(name);
    let is_shift = has(name, &["s_lshl_", "s_lshr_", "s_ashr_"]);
    let first_words = if name.starts_with("s_bfm") { 1 } else { words };
    let second_words = if is_shift || has(name, &["s_bfe", "s_bfm"]) { 1 } else { words };
    let (a, b) = (bits(first, first_words), bits(second, second_words));
    let is_unknown = a | b != 0;
    let width = all_if(true, words);
    let values = || (value(first, words), value(second, second_words));
    let (one, other) = (Bits { value: values().0, unknown: a }, Bits { value: values().1, unknown: b });
    if let Some(Bits { value, unknown }) = logic(name, one, other, width) {
        return result(dst, words, unknown, Some(unknown != 0 && value & !unknown == 0));
    }
    match name {
        _ if name.starts_with("s_cselect") => {
            let chosen = if wave.scc { a } else { b };
            let differ = is_unknown || values().0 != values().1;
            result(dst, words, if scc { all_if(differ, words) } else { chosen }, None)
        }
        _ if is_shift && b == 0 => {
            let by = values().1 & (words as u64 * 32 - 1);
            let unknown = match () {
                () if name.contains("lshl") => a << by,
                () if name.contains("lshr") => a >> by,
                () if words == 1 => u64::from((a as u32 as i32 >> by) as u32),
                () => (a as i64 >> by) as u64,
            };
            result(dst, words, unknown & width, Some(unknown & width != 0))
        }
        "s_addc_u32" | "s_subb_u32" => result(dst, 1, all_if(is_unknown || scc, 1), Some(is_unknown || scc)),
        "s_pack_ll_b32_b16" => result(dst, 1, a & 0xffff | (b & 0xffff) << 16, None),
        "s_pack_lh_b32_b16" => result(dst, 1, a & 0xffff | b >> 16 << 16, None),
        "s_pack_hh_b32_b16" => result(dst, 1, a >> 16 | b >> 16 << 16, None),
        "s_cbranch_g_fork" | "s_rfe_restore_b64" => Scalar { decides: is_unknown, ..Scalar::default() },
        _ => {
            let is_quiet = has(name, &["s_bfm", "s_mul"]);
            result(dst, words, all_if(is_unknown, words), (!is_quiet).then_some(is_unknown))
        }
    }
}

/// Returns what an instruction does with this result: one that goes to EXEC decides which lanes are active.
fn result(dst: usize, words: usize, unknown: u64, scc: Option<bool>) -> Scalar {
    if dst == EXEC || dst == EXEC + 1 {
        return Scalar { exec: unknown, scc, ..Scalar::default() };
    }
    Scalar { result: Some((dst, words, unknown)), scc, ..Scalar::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tries all values of the unknown bits: the result has unknown bits where it can be either.
    #[test]
    fn logic_knows_which_bits_of_a_result_can_be_either() {
        type Operation = fn(u64, u64) -> u64;
        let operations: [(&str, Operation); 10] = [
            ("s_and_b64", |a, b| a & b),
            ("s_or_b64", |a, b| a | b),
            ("s_xor_b64", |a, b| a ^ b),
            ("s_andn2_b64", |a, b| a & !b),
            ("s_orn2_b64", |a, b| a | !b),
            ("s_nand_b64", |a, b| !(a & b)),
            ("s_nor_b64", |a, b| !(a | b)),
            ("s_xnor_b64", |a, b| !(a ^ b)),
            ("s_andn1_saveexec_b64", |a, b| !a & b),
            ("s_orn1_saveexec_b64", |a, b| !a | b),
        ];
        for (name, operation) in operations {
            for (a, b, not_a, not_b) in (0..16u64).map(|n| (n & 1, n >> 1 & 1, n >> 2 & 1, n >> 3 & 1)) {
                let (one, other) = (Bits { value: a, unknown: not_a }, Bits { value: b, unknown: not_b });
                let Bits { value, unknown } = logic(name, one, other, 1).expect("it is one");
                let choices = |value, not: u64| if not == 1 { vec![0, 1] } else { vec![value] };
                let mut results: Vec<u64> = choices(a, not_a)
                    .into_iter()
                    .flat_map(|a| choices(b, not_b).into_iter().map(move |b| operation(a, b) & 1))
                    .collect();
                results.dedup();
                results.sort_unstable();
                results.dedup();
                assert_eq!(unknown == 1, results.len() == 2, "{name} {a} {b} {not_a} {not_b}");
                assert!(results.contains(&value), "{name}");
            }
        }
        let one = Bits { value: 1, unknown: 0 };
        assert!(logic("s_add_u32", one, one, 1).is_none());
    }
}
