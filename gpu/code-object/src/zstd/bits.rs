//! Streams of bits: forward for table descriptions, backward for entropy-coded data.

use super::{Result, ZstdError};

/// `len` bits (at most 56) of `bytes` from bit `at` on, zeros beyond the end.
fn extract(bytes: &[u8], at: usize, len: u32) -> u64 {
    let from = bytes.get(at / 8..).unwrap_or_default();
    let word = match from.first_chunk::<8>() {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => from.iter().rev().fold(0, |word, byte| (word << 8) | u64::from(*byte)),
    };
    (word >> (at % 8)) & ((1u64 << len) - 1)
}

/// Bits from the first byte's lowest on.
pub(super) struct Forward<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Forward<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Forward<'a> {
        Forward { bytes, at: 0 }
    }

    /// The next `len` bits without taking them; zeros beyond the end.
    pub(super) fn peek(&self, len: u32) -> u32 {
        extract(self.bytes, self.at, len) as u32
    }

    pub(super) fn skip(&mut self, len: u32) -> Result<()> {
        self.at += len as usize;
        if self.at > self.bytes.len() * 8 { Err(ZstdError::Truncated) } else { Ok(()) }
    }

    pub(super) fn read(&mut self, len: u32) -> Result<u32> {
        let value = self.peek(len);
        self.skip(len)?;
        Ok(value)
    }

    /// Bytes touched so far.
    pub(super) fn used_bytes(&self) -> usize {
        self.at.div_ceil(8)
    }
}

/// Bits from the last byte's highest on; the highest set bit marks the start.
pub(super) struct Backward<'a> {
    bytes: &'a [u8],
    left: i64,
}

impl<'a> Backward<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Backward<'a>> {
        match bytes.last() {
            None => Err(ZstdError::Truncated),
            Some(0) => Err(ZstdError::Corrupt("a zstd bit stream without its end mark")),
            Some(last) => {
                Ok(Backward { bytes, left: bytes.len() as i64 * 8 - 1 - i64::from(last.leading_zeros()) })
            }
        }
    }

    /// How many bits are left; negative if more were taken than there were.
    pub(super) fn left(&self) -> i64 {
        self.left
    }

    /// The next `len` bits (at most 31) without taking them; zeros beyond the end.
    pub(super) fn peek(&self, len: u32) -> u32 {
        let at = self.left - i64::from(len);
        if at >= 0 {
            return extract(self.bytes, at as usize, len) as u32;
        }
        match u32::try_from(self.left) {
            Ok(left) => (extract(self.bytes, 0, left) << (len - left)) as u32,
            Err(_) => 0,
        }
    }

    pub(super) fn skip(&mut self, len: u32) {
        self.left -= i64::from(len);
    }

    pub(super) fn read(&mut self, len: u32) -> u32 {
        let value = self.peek(len);
        self.skip(len);
        value
    }
}
