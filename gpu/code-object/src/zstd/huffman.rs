//! Huffman codes of literals (RFC 8878, 4.2).

use super::bits::Backward;
use super::fse::Table;
use super::{Result, ZstdError};

/// RFC 8878, Maximum_Number_of_Bits.
const BITS_MAX: u32 = 11;
/// The largest alphabet; the last weight is not written.
const WEIGHTS_MAX: usize = 255;

const BAD_WEIGHTS: ZstdError = ZstdError::Corrupt("zstd Huffman weights that make no code");

/// A decoding table of 2^bits entries, for the next so many bits of a stream.
pub(super) struct Huffman {
    entries: Vec<Entry>,
    bits: u32,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    symbol: u8,
    bits: u8,
}

impl Huffman {
    /// Reads a table's description; the second value is its length in bytes.
    pub(super) fn read(bytes: &[u8]) -> Result<(Huffman, usize)> {
        let (header, rest) = bytes.split_first().ok_or(ZstdError::Truncated)?;
        let header = usize::from(*header);
        let (weights, used) = if header >= 128 {
            let count = header - 127;
            let nibbles = rest.get(..count.div_ceil(2)).ok_or(ZstdError::Truncated)?;
            let weights = nibbles.iter().flat_map(|byte| [byte >> 4, byte & 15]).take(count).collect();
            (weights, nibbles.len())
        } else {
            let coded = rest.get(..header).ok_or(ZstdError::Truncated)?;
            (coded_weights(coded)?, header)
        };
        Ok((Self::of_weights(weights)?, 1 + used))
    }

    fn of_weights(mut weights: Vec<u8>) -> Result<Huffman> {
        let share = |weight: u8| if weight == 0 { 0 } else { 1u32 << (weight - 1) };
        if weights.iter().any(|weight| u32::from(*weight) > BITS_MAX) {
            return Err(BAD_WEIGHTS);
        }
        // The shares add up to a power of two; what is missing is the last symbol's.
        let sum: u32 = weights.iter().map(|weight| share(*weight)).sum();
        let bits = sum.checked_ilog2().ok_or(BAD_WEIGHTS)? + 1;
        let missing = (1u32 << bits) - sum;
        if bits > BITS_MAX || !missing.is_power_of_two() {
            return Err(BAD_WEIGHTS);
        }
        weights.push(missing.ilog2() as u8 + 1);
        // Codes are given by weight, lowest first, then by symbol.
        let mut entries = Vec::with_capacity(1 << bits);
        for weight in 1..=bits as u8 {
            for (symbol, _) in (0..=u8::MAX).zip(&weights).filter(|(_, other)| **other == weight) {
                let entry = Entry { symbol, bits: (bits + 1) as u8 - weight };
                entries.resize(entries.len() + share(weight) as usize, entry);
            }
        }
        if entries.len() == 1 << bits { Ok(Huffman { entries, bits }) } else { Err(BAD_WEIGHTS) }
    }

    /// Decodes one stream of `len` symbols.
    pub(super) fn decode(&self, stream: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        let mut bits = Backward::new(stream)?;
        for _ in 0..len {
            let entry = self.entries.get(bits.peek(self.bits) as usize).copied().unwrap_or_default();
            bits.skip(entry.bits.into());
            out.push(entry.symbol);
        }
        if bits.left() == 0 { Ok(()) } else { Err(ZstdError::Corrupt("zstd literals of another length")) }
    }

    /// Decodes four streams behind their table of lengths; `len` symbols in all.
    pub(super) fn decode_four(&self, bytes: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        let [a, b, c, d, e, f, ref streams @ ..] = *bytes else { return Err(ZstdError::Truncated) };
        let part = len.div_ceil(4);
        let last =
            len.checked_sub(3 * part).ok_or(ZstdError::Corrupt("too few zstd literals for four streams"))?;
        let mut rest = streams;
        for pair in [[a, b], [c, d], [e, f]] {
            let stream = rest.split_at_checked(u16::from_le_bytes(pair).into());
            let (stream, behind) = stream.ok_or(ZstdError::Truncated)?;
            self.decode(stream, part, out)?;
            rest = behind;
        }
        self.decode(rest, last, out)
    }
}

/// Weights that are themselves coded, by two states that take turns until the bits are used up.
fn coded_weights(bytes: &[u8]) -> Result<Vec<u8>> {
    let (table, used) = Table::read(bytes, 6, BITS_MAX as usize + 1)?;
    let mut bits = Backward::new(bytes.get(used..).ok_or(ZstdError::Truncated)?)?;
    let mut now = table.start(&mut bits);
    let mut other = table.start(&mut bits);
    let mut weights = Vec::new();
    while weights.len() < WEIGHTS_MAX {
        weights.push(table.symbol(now));
        table.step(&mut now, &mut bits);
        if bits.left() < 0 {
            weights.push(table.symbol(other));
            return if weights.len() <= WEIGHTS_MAX { Ok(weights) } else { Err(BAD_WEIGHTS) };
        }
        std::mem::swap(&mut now, &mut other);
    }
    Err(BAD_WEIGHTS)
}
