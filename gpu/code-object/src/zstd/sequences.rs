//! Sequences: how literals and matches make up a block (RFC 8878, 3.1.1.3.2 and 3.1.1.4).

use super::bits::Backward;
use super::fse::Table;
use super::{Output, Result, ZstdError};

/// One of the three codes of a sequence: limits of its tables and the table it starts with.
struct Code {
    log_max: u32,
    symbols: usize,
    default_log: u32,
    default: &'static [i16],
}

#[rustfmt::skip]
const LITERALS_LENGTH: Code = Code {
    log_max: 9,
    symbols: 36,
    default_log: 6,
    default: &[
        4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1,
    ],
};

#[rustfmt::skip]
const MATCH_LENGTH: Code = Code {
    log_max: 9,
    symbols: 53,
    default_log: 6,
    default: &[
        1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
    ],
};

#[rustfmt::skip]
const OFFSET: Code = Code {
    log_max: 8,
    symbols: 32,
    default_log: 5,
    default: &[1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1],
};

/// First value and extra bits of the literals length codes from 16 on; lower codes are the value.
#[rustfmt::skip]
const LITERALS_LENGTHS: [(u32, u32); 20] = [
    (16, 1), (18, 1), (20, 1), (22, 1), (24, 2), (28, 2), (32, 3), (40, 3), (48, 4), (64, 6),
    (128, 7), (256, 8), (512, 9), (1024, 10), (2048, 11), (4096, 12), (8192, 13), (16384, 14), (32768, 15), (65536, 16),
];

/// First value and extra bits of the match length codes from 32 on; lower codes are the value less 3.
#[rustfmt::skip]
const MATCH_LENGTHS: [(u32, u32); 21] = [
    (35, 1), (37, 1), (39, 1), (41, 1), (43, 2), (47, 2), (51, 3), (59, 3), (67, 4), (83, 4), (99, 5),
    (131, 7), (259, 8), (515, 9), (1027, 10), (2051, 11), (4099, 12), (8195, 13), (16387, 14), (32771, 15), (65539, 16),
];

const BAD_CODE: ZstdError = ZstdError::Corrupt("a zstd sequence code that does not exist");

/// Tables and offsets that a block may reuse from the one before.
pub(super) struct Sequences {
    literals_length: Option<Table>,
    match_length: Option<Table>,
    offset: Option<Table>,
    recent: [u32; 3],
}

impl Default for Sequences {
    fn default() -> Sequences {
        Sequences { literals_length: None, match_length: None, offset: None, recent: [1, 4, 8] }
    }
}

impl Sequences {
    /// Writes a block: `section` is what follows the literals section.
    pub(super) fn execute(&mut self, section: &[u8], literals: &[u8], output: &mut Output) -> Result<()> {
        let (count, rest) = match *section {
            [] => return Err(ZstdError::Truncated),
            [low, ref rest @ ..] if low < 128 => (usize::from(low), rest),
            [255, low, high, ref rest @ ..] => (usize::from(u16::from_le_bytes([low, high])) + 0x7f00, rest),
            [high @ 128..=254, low, ref rest @ ..] => {
                ((usize::from(high - 128) << 8) + usize::from(low), rest)
            }
            _ => return Err(ZstdError::Truncated),
        };
        if count == 0 {
            let ends = rest.is_empty();
            return if ends {
                output.push(literals)
            } else {
                Err(ZstdError::Corrupt("bytes behind a zstd block"))
            };
        }
        let (modes, mut rest) = rest.split_first().ok_or(ZstdError::Truncated)?;
        if modes & 3 != 0 {
            return Err(ZstdError::Corrupt("reserved zstd sequence modes"));
        }
        let literals_lengths = select(&mut self.literals_length, modes >> 6, &LITERALS_LENGTH, &mut rest)?;
        let offsets = select(&mut self.offset, (modes >> 4) & 3, &OFFSET, &mut rest)?;
        let match_lengths = select(&mut self.match_length, (modes >> 2) & 3, &MATCH_LENGTH, &mut rest)?;

        let mut bits = Backward::new(rest)?;
        let mut literals_at = literals_lengths.start(&mut bits);
        let mut offset_at = offsets.start(&mut bits);
        let mut match_at = match_lengths.start(&mut bits);
        let mut literals = literals;
        for left in (0..count).rev() {
            let offset_bits = u32::from(offsets.symbol(offset_at));
            if offset_bits > 31 {
                return Err(BAD_CODE);
            }
            let offset = (1u32 << offset_bits) + bits.read(offset_bits);
            let match_len = length(match_lengths.symbol(match_at), 32, 3, &MATCH_LENGTHS, &mut bits)?;
            let literals_len =
                length(literals_lengths.symbol(literals_at), 16, 0, &LITERALS_LENGTHS, &mut bits)?;
            if left > 0 {
                literals_lengths.step(&mut literals_at, &mut bits);
                match_lengths.step(&mut match_at, &mut bits);
                offsets.step(&mut offset_at, &mut bits);
            }
            if bits.left() < 0 {
                return Err(ZstdError::Truncated);
            }
            let parts = literals.split_at_checked(literals_len);
            let (part, behind) = parts.ok_or(ZstdError::Corrupt("a zstd sequence without its literals"))?;
            output.push(part)?;
            literals = behind;
            let offset = distance(&mut self.recent, offset, literals_len)?;
            output.copy_match(offset as usize, match_len)?;
        }
        if bits.left() != 0 {
            return Err(ZstdError::Corrupt("bits behind the zstd sequences"));
        }
        output.push(literals)
    }
}

/// The table that a code's mode asks for: the standard one, one symbol, a new one, or the one before.
fn select<'t>(kept: &'t mut Option<Table>, mode: u8, code: &Code, rest: &mut &[u8]) -> Result<&'t Table> {
    let table = match mode {
        0 => Table::of_probabilities(code.default, code.default_log)?,
        1 => {
            let (symbol, behind) = rest.split_first().ok_or(ZstdError::Truncated)?;
            *rest = behind;
            Table::of_symbol(*symbol)
        }
        2 => {
            let (table, used) = Table::read(rest, code.log_max, code.symbols)?;
            *rest = rest.get(used..).ok_or(ZstdError::Truncated)?;
            table
        }
        _ => return kept.as_ref().ok_or(ZstdError::Corrupt("a zstd table that was never sent")),
    };
    Ok(kept.insert(table))
}

/// A length: codes below `direct` are it less `least`, others look up first value and extra bits.
fn length(code: u8, direct: u8, least: usize, long: &[(u32, u32)], bits: &mut Backward<'_>) -> Result<usize> {
    match code.checked_sub(direct) {
        None => Ok(usize::from(code) + least),
        Some(index) => {
            let (first, extra) = long.get(usize::from(index)).ok_or(BAD_CODE)?;
            Ok((first + bits.read(*extra)) as usize)
        }
    }
}

/// How far back a match is, after the rules for repeated offsets.
fn distance(recent: &mut [u32; 3], offset: u32, literals_len: usize) -> Result<u32> {
    let [first, second, third] = *recent;
    // Without literals the most recent offset would only continue the last match: the codes mean the next ones.
    let code = if literals_len == 0 { offset.saturating_add(1) } else { offset };
    let (distance, kept) = match (offset, code) {
        (4.., _) => (offset - 3, [first, second]),
        (_, 1) => return Ok(first),
        (_, 2) => (second, [first, third]),
        (_, 3) => (third, [first, second]),
        _ => (first.saturating_sub(1), [first, second]),
    };
    if distance == 0 {
        return Err(ZstdError::Corrupt("a zstd match at distance zero"));
    }
    *recent = [distance, kept[0], kept[1]];
    Ok(distance)
}
