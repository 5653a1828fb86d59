//! Finite state entropy: tables and their descriptions (RFC 8878, 4.1).

use super::bits::{Backward, Forward};
use super::{Result, ZstdError};

/// One state: the symbol it stands for and how to get to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct State {
    symbol: u8,
    bits: u8,
    base: u16,
}

/// A decoding table of 2^log states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    states: Vec<State>,
    log: u32,
}

/// A position in a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor(u32);

impl Table {
    /// The table that stays at one symbol and takes no bits.
    pub(super) fn of_symbol(symbol: u8) -> Table {
        Table { states: vec![State { symbol, bits: 0, base: 0 }], log: 0 }
    }

    /// The table of these probabilities, which add up to 2^log; -1 is "less than one" and counts as one.
    pub(super) fn of_probabilities(probabilities: &[i16], log: u32) -> Result<Table> {
        const BAD: ZstdError = ZstdError::Corrupt("zstd probabilities that do not add up");
        let size = 1usize << log;
        let mut states = vec![State::default(); size];
        let mut next: Vec<u32> = Vec::with_capacity(probabilities.len());
        let mut high = size;
        for (symbol, probability) in (0..=u8::MAX).zip(probabilities) {
            next.push(probability.unsigned_abs().into());
            if *probability == -1 {
                high = high.checked_sub(1).ok_or(BAD)?;
                states.get_mut(high).ok_or(BAD)?.symbol = symbol;
            }
        }
        if next.iter().sum::<u32>() as usize != size {
            return Err(BAD);
        }
        let step = (size >> 1) + (size >> 3) + 3;
        let mut at = 0;
        for (symbol, probability) in (0..=u8::MAX).zip(probabilities) {
            for _ in 0..(*probability).max(0) {
                states.get_mut(at).ok_or(BAD)?.symbol = symbol;
                at = (at + step) & (size - 1);
                while at >= high {
                    at = (at + step) & (size - 1);
                }
            }
        }
        for state in &mut states {
            let next = next.get_mut(usize::from(state.symbol)).filter(|next| **next != 0).ok_or(BAD)?;
            let bits = log.checked_sub(next.ilog2()).ok_or(BAD)?;
            state.bits = bits as u8;
            state.base = ((*next << bits) as usize).checked_sub(size).ok_or(BAD)? as u16;
            *next += 1;
        }
        Ok(Table { states, log })
    }

    /// Reads a table's description with at most `log_max` bits and `symbols_max` symbols; the second value is its
    /// length in bytes.
    pub(super) fn read(bytes: &[u8], log_max: u32, symbols_max: usize) -> Result<(Table, usize)> {
        let mut bits = Forward::new(bytes);
        let log = bits.read(4)? + 5;
        if log > log_max {
            return Err(ZstdError::Corrupt("a zstd table that is too large"));
        }
        let mut probabilities = Vec::new();
        let mut remaining = 1u32 << log;
        while remaining > 0 {
            // A value is 0 to remaining + 1; the lower ones take one bit less.
            let len = (remaining + 1).ilog2() + 1;
            let value = bits.peek(len);
            let low = value & ((1 << (len - 1)) - 1);
            let threshold = (1 << len) - 1 - (remaining + 1);
            let value = if low < threshold {
                bits.skip(len - 1)?;
                low
            } else {
                bits.skip(len)?;
                if value >= 1 << (len - 1) { value - threshold } else { value }
            };
            let probability = value as i16 - 1;
            let taken = u32::from(probability.unsigned_abs());
            remaining =
                remaining.checked_sub(taken).ok_or(ZstdError::Corrupt("zstd probabilities over one"))?;
            probabilities.push(probability);
            if probability == 0 {
                loop {
                    let zeros = bits.read(2)?;
                    probabilities.resize(probabilities.len() + zeros as usize, 0);
                    if zeros != 3 || probabilities.len() > symbols_max {
                        break;
                    }
                }
            }
            if probabilities.len() > symbols_max {
                return Err(ZstdError::Corrupt("a zstd table with too many symbols"));
            }
        }
        Ok((Self::of_probabilities(&probabilities, log)?, bits.used_bytes()))
    }

    /// The first state, which the stream begins with.
    pub(super) fn start(&self, bits: &mut Backward<'_>) -> Cursor {
        Cursor(bits.read(self.log))
    }

    fn state(&self, cursor: Cursor) -> State {
        // Every cursor comes from this table's own bits and bases.
        self.states.get(cursor.0 as usize).copied().unwrap_or_default()
    }

    pub(super) fn symbol(&self, cursor: Cursor) -> u8 {
        self.state(cursor).symbol
    }

    /// The next state.
    pub(super) fn step(&self, cursor: &mut Cursor, bits: &mut Backward<'_>) {
        let state = self.state(*cursor);
        cursor.0 = u32::from(state.base) + bits.read(state.bits.into());
    }
}
