//! How bits that nobody knows go through vector instructions that take bits apart and put them together.

use super::operands::has;
use crate::enc::vop::{Extra, VGPR};
use crate::machine::Insn;
use crate::shape::operand::scalar32;
use crate::wave::{LANES, Wave};

/// A value of which some bits are unknown.
#[derive(Clone, Copy)]
pub(super) struct Bits {
    pub(super) value: u64,
    pub(super) unknown: u64,
}

impl Bits {
    pub(super) fn and(self, other: Self) -> Self {
        let zeros = |bits: Self| !bits.value & !bits.unknown;
        let unknown = (self.unknown | other.unknown) & !zeros(self) & !zeros(other);
        Self { value: self.value & other.value, unknown }
    }

    pub(super) fn or(self, other: Self) -> Self {
        let ones = |bits: Self| bits.value & !bits.unknown;
        let unknown = (self.unknown | other.unknown) & !ones(self) & !ones(other);
        Self { value: self.value | other.value, unknown }
    }

    pub(super) fn xor(self, other: Self) -> Self {
        Self { value: self.value ^ other.value, unknown: self.unknown | other.unknown }
    }

    pub(super) fn not(self) -> Self {
        Self { value: !self.value, ..self }
    }

    /// Does the same to the low 32 bits of the value and to their unknown bits.
    fn move_by(self, change: impl Fn(u32) -> u32) -> Self {
        Self { value: change(self.value as u32).into(), unknown: change(self.unknown as u32).into() }
    }

    /// Returns the lowest `count` bits; `None` if one of them is unknown.
    fn low(self, count: u32) -> Option<u32> {
        let bits = (1 << count) - 1;
        (self.unknown & bits == 0).then_some((self.value & bits) as u32)
    }
}

/// Returns the unknown bits of a result; `None` where they are not known one by one.
fn result(name: &str, [a, b, c]: [Bits; 3]) -> Option<u32> {
    let begins = |begin: &str| name.starts_with(begin);
    let joined = a.unknown << 32 | b.unknown;
    let bits = match () {
        () if begins("v_and_b32") => a.and(b),
        () if begins("v_or_b32") => a.or(b),
        () if begins("v_or3_b32") => a.or(b).or(c),
        () if begins("v_and_or_b32") => a.and(b).or(c),
        () if begins("v_xor_b32") || begins("v_xnor_b32") => a.xor(b),
        () if begins("v_not_b32") => a.not(),
        () if begins("v_lshlrev_b32") => {
            let count = a.low(5)?;
            b.move_by(|bits| bits << count)
        }
        () if begins("v_lshrrev_b32") => {
            let count = a.low(5)?;
            b.move_by(|bits| bits >> count)
        }
        () if begins("v_ashrrev_i32") => {
            let count = a.low(5)?;
            b.move_by(|bits| (bits as i32 >> count) as u32)
        }
        () if begins("v_lshl_or_b32") => {
            let count = b.low(5)?;
            a.move_by(|bits| bits << count).or(c)
        }
        () if begins("v_bfe_u32") || begins("v_bfe_i32") => {
            let (first, count) = (b.low(5)?, c.low(5)?);
            let above = 32 - count;
            a.move_by(|bits| match (bits >> first).checked_shl(above) {
                None => 0,
                Some(bits) if begins("v_bfe_u32") => bits >> above,
                Some(bits) => (bits as i32 >> above) as u32,
            })
        }
        () if begins("v_bfi_b32") => {
            let chosen = a.and(b).or(a.not().and(c));
            // Where it is unknown which of two bits is chosen, it does not matter if they are equal.
            let differ = b.value ^ c.value | b.unknown | c.unknown;
            Bits { unknown: chosen.unknown & (!a.unknown | differ), ..chosen }
        }
        () if begins("v_alignbit_b32") => {
            let count = c.low(5)?;
            return Some((joined >> count) as u32);
        }
        () if begins("v_alignbyte_b32") => {
            let count = c.low(2)? * 8;
            return Some((joined >> count) as u32);
        }
        () if begins("v_perm_b32") => {
            let unknown = joined.to_le_bytes();
            if c.unknown != 0 {
                return None;
            }
            return Some(u32::from_le_bytes((c.value as u32).to_le_bytes().map(|select| match select {
                0..=7 => unknown[usize::from(select)],
                // The sign of the second, fourth, sixth or eighth byte.
                8..=11 if unknown[usize::from(select - 8) * 2 + 1] & 0x80 != 0 => 0xff,
                _ => 0,
            })));
        }
        () => return None,
    };
    Some(bits.unknown as u32)
}

/// Returns which bytes of a result come from marked bytes of the sources, the lanes for each byte. Where that is not known bit by bit, all
/// bytes are marked for lanes that have a mark in any.
pub(super) fn moved_bytes(insn: &Insn, wave: &Wave, sources: &[[u64; 4]; 3]) -> [u64; 4] {
    let name = insn.row.name;
    let marked: [u64; 4] = std::array::from_fn(|byte| sources.iter().fold(0, |all, lanes| all | lanes[byte]));
    let any = marked.iter().fold(0, |all, lanes| all | lanes);
    if has(name, &["swap"]) {
        return marked;
    }
    if insn.valu.extra != Extra::None {
        // What arrives from other lanes is not at hand.
        let keeps_bytes =
            insn.valu.extra == Extra::Dpp && has(name, &["v_and_b32", "v_or_b32", "v_xor_b32", "v_not_b32"]);
        return if keeps_bytes { marked } else { [any; 4] };
    }
    let operand = |index: usize, lane: usize| {
        let value = match insn.valu.src[index] {
            code if code < VGPR => scalar32(wave, code.into(), insn.literal),
            _ => wave.row(insn.valu.src_rows[index].into())[lane],
        };
        let is_unknown = |byte: &usize| sources[index][*byte] >> lane & 1 != 0;
        let unknown = (0..4).filter(is_unknown).fold(0, |bits, byte| bits | 0xff << (byte * 8));
        Bits { value: value.into(), unknown }
    };
    let mut moved = [0; 4];
    for lane in (0..LANES).filter(|lane| any >> lane & 1 != 0) {
        let Some(unknown) = result(name, [0, 1, 2].map(|index| operand(index, lane))) else {
            return [any; 4];
        };
        for (byte, bits) in unknown.to_le_bytes().into_iter().enumerate() {
            moved[byte] |= u64::from(bits != 0) << lane;
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of an instruction.
    fn evaluate(name: &str, [a, b, c]: [u32; 3]) -> u32 {
        let field = |shift: u32| if shift == 0 { 0 } else { u32::MAX >> (32 - shift) };
        let pair = u64::from(a) << 32 | u64::from(b);
        match name {
            "v_and_b32" => a & b,
            "v_or_b32" => a | b,
            "v_or3_b32" => a | b | c,
            "v_and_or_b32" => a & b | c,
            "v_xor_b32" => a ^ b,
            "v_xnor_b32" => !(a ^ b),
            "v_not_b32" => !a,
            "v_lshlrev_b32" => b << (a & 31),
            "v_lshrrev_b32" => b >> (a & 31),
            "v_ashrrev_i32" => (b as i32 >> (a & 31)) as u32,
            "v_lshl_or_b32" => a << (b & 31) | c,
            "v_bfe_u32" => a >> (b & 31) & field(c & 31),
            "v_bfe_i32" => match c & 31 {
                0 => 0,
                count => ((a >> (b & 31) << (32 - count)) as i32 >> (32 - count)) as u32,
            },
            "v_bfi_b32" => a & b | !a & c,
            "v_alignbit_b32" => (pair >> (c & 31)) as u32,
            "v_alignbyte_b32" => (pair >> ((c & 3) * 8)) as u32,
            "v_perm_b32" => u32::from_le_bytes(c.to_le_bytes().map(|select| match select {
                0..=7 => pair.to_le_bytes()[usize::from(select)],
                8..=11 => (pair.to_le_bytes()[usize::from(select - 8) * 2 + 1] as i8 >> 7) as u8,
                12 => 0,
                _ => 0xff,
            })),
            other => panic!("{other}"),
        }
    }

    /// Tries several values for unknown bytes of each operand: the bits of the result that change are those that are said to be unknown.
    #[test]
    fn bits_of_a_result_are_unknown_if_they_can_be_either() {
        let names = [
            "v_and_b32",
            "v_or_b32",
            "v_or3_b32",
            "v_and_or_b32",
            "v_xor_b32",
            "v_xnor_b32",
            "v_not_b32",
            "v_lshlrev_b32",
            "v_lshrrev_b32",
            "v_ashrrev_i32",
            "v_lshl_or_b32",
            "v_bfe_u32",
            "v_bfe_i32",
            "v_bfi_b32",
            "v_alignbit_b32",
            "v_alignbyte_b32",
            "v_perm_b32",
        ];
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        };
        let byte_mask = |bytes: u32| {
            u32::from_le_bytes(std::array::from_fn(|byte| if bytes >> byte & 1 != 0 { 0xff } else { 0 }))
        };
        for name in names {
            for _ in 0..2000 {
                let choose = random();
                let operands = [0, 1, 2].map(|index: u32| {
                    let value = match choose >> (index * 2) & 3 {
                        0 => 0,
                        1 => u32::MAX,
                        2 => random() & 0x0f0f_0f0f,
                        _ => random(),
                    };
                    let unknown = if choose >> (index + 8) & 1 == 0 { 0 } else { byte_mask(random() & 15) };
                    Bits { value: value.into(), unknown: unknown.into() }
                });
                let Some(unknown) = result(name, operands) else { continue };
                let of = |fill: [u32; 3]| {
                    let filled = [0, 1, 2].map(|index: usize| {
                        let Bits { value, unknown } = operands[index];
                        (value & !unknown) as u32 | fill[index] & unknown as u32
                    });
                    evaluate(name, filled)
                };
                let first = of([0; 3]);
                let mut changed = 0;
                for _ in 0..64 {
                    changed |= first ^ of([random(), random(), random()]);
                }
                assert_eq!(changed, unknown, "{name}: {:?}", operands.map(|bits| (bits.value, bits.unknown)));
            }
        }
    }
}
