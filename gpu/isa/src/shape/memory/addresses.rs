//! The addresses of an instruction's lanes, and regular patterns among them.

use crate::simd::pack;
use crate::wave::{Aligned, LANES, Row};

/// Addresses that consist of a register or register pair and an offset common to all lanes.
///
/// Copies of the registers: what is loaded may go to the very same ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Linear<H = Aligned<Row>> {
    /// The low halves, with one more element than there are lanes, so that every lane has a next one.
    pub(super) low: Aligned<[u32; LANES + 1]>,
    pub(super) high: H,
    pub(super) base: u64,
}

/// The high halves of 64-bit addresses, or nothing for 32-bit addresses.
pub(super) trait High {
    fn at(&self, lane: usize) -> u32;
}

impl High for Aligned<Row> {
    #[inline(always)]
    fn at(&self, lane: usize) -> u32 {
        self.0[lane]
    }
}

impl High for &Row {
    #[inline(always)]
    fn at(&self, lane: usize) -> u32 {
        self[lane]
    }
}

/// Addresses of 32 bits, which have no high halves.
impl High for () {
    #[inline(always)]
    fn at(&self, _: usize) -> u32 {
        0
    }
}

/// Number of lanes that are examined together if not all 64 lanes are consecutive: rows of two-dimensional workgroups often
/// have this size.
pub(super) const SEGMENT: usize = 8;
/// The lanes of a segment, without its last one, as a mask.
pub(super) const WITHIN: u64 = (1 << (SEGMENT - 1)) - 1;

/// Returns whether addresses follow each other in steps of `stride` bytes.
#[inline(always)]
pub(super) fn are_consecutive(low: &[u32], high: &impl High, stride: u32) -> bool {
    let first = low[0];
    if first.checked_add((LANES as u32 - 1) * stride).is_none() {
        return false;
    }
    let mut difference = 0;
    for (lane, low) in low.iter().enumerate().take(LANES) {
        let expected = first.wrapping_add(lane as u32 * stride);
        difference |= (low ^ expected) | (high.at(lane) ^ high.at(0));
    }
    difference == 0
}

/// The pattern of the addresses of a segment's lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// Consecutive accesses, from this address on.
    Consecutive(u64),
    /// The same address for all lanes.
    Uniform(u64),
    Scattered,
}

/// Masks of the lanes whose next lane has the same address, and of those whose next lane's address is one step higher.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relations {
    pub(super) step: u64,
    pub(super) same: u64,
}

impl Linear<()> {
    #[inline(always)]
    pub(super) fn narrow(low: &Row, base: u64) -> Self {
        Self { low: Self::with_next(low), high: (), base }
    }
}

impl Linear {
    #[inline(always)]
    pub(super) fn wide(low: &Row, high: &Row, base: u64) -> Self {
        Self { low: Self::with_next(low), high: Aligned(*high), base }
    }
}

impl<H: High> Linear<H> {
    #[inline(always)]
    fn with_next(row: &Row) -> Aligned<[u32; LANES + 1]> {
        let mut out = Aligned([0; LANES + 1]);
        out.0[..LANES].copy_from_slice(row);
        out
    }

    #[inline(always)]
    pub(super) fn low(&self) -> &[u32] {
        &self.low.0[..LANES]
    }

    #[inline(always)]
    pub(super) fn at(&self, lane: usize) -> u64 {
        self.base.wrapping_add(u64::from(self.low.0[lane]) | u64::from(self.high.at(lane)) << 32)
    }

    /// Returns how each lane's address relates to the next lane's, for a step of `stride` bytes.
    #[inline(always)]
    pub(super) fn relations(&self, stride: u32) -> Relations {
        let (mut step, mut same) = ([0; LANES], [0; LANES]);
        for lane in 0..LANES {
            let difference = self.low.0[lane + 1].wrapping_sub(self.low.0[lane]);
            let high = self.high.at(lane) == self.high.at(0);
            step[lane] = u8::from((difference == stride) & high);
            same[lane] = u8::from((difference == 0) & high);
        }
        Relations { step: pack(&step), same: pack(&same) }
    }

    /// Returns the first lane's address, if those of the other lanes follow it in steps of `stride` bytes.
    #[inline(always)]
    pub(super) fn consecutive(&self, stride: u32) -> Option<u64> {
        are_consecutive(self.low(), &self.high, stride).then(|| self.at(0))
    }

    /// Returns the common address, if all lanes have the same one.
    #[inline(always)]
    pub(super) fn uniform(&self) -> Option<u64> {
        let (low, high) = (self.low.0[0], self.high.at(0));
        let mut difference = 0;
        for lane in 0..LANES {
            difference |= (self.low.0[lane] ^ low) | (self.high.at(lane) ^ high);
        }
        (difference == 0).then(|| self.at(0))
    }

    /// Returns the pattern of the addresses in the segment that begins with `lane`.
    #[inline(always)]
    pub(super) fn pattern(&self, relations: Relations, lane: usize, stride: u32) -> Pattern {
        if relations.same >> lane & WITHIN == WITHIN {
            Pattern::Uniform(self.at(lane))
        } else if relations.step >> lane & WITHIN == WITHIN
            && self.low.0[lane].checked_add(SEGMENT as u32 * stride).is_some()
        {
            Pattern::Consecutive(self.at(lane))
        } else {
            Pattern::Scattered
        }
    }
}

/// Properties of all lanes' addresses that an LDS access needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    pub(super) relations: Relations,
    pub(super) greatest: u32,
    pub(super) aligned: bool,
}

impl Linear<()> {
    /// Returns the properties of the addresses for accesses of `stride` bytes.
    #[inline(always)]
    pub(super) fn spread(&self, stride: u32) -> Spread {
        let (mut greatest, mut bits) = (0, 0);
        for &low in self.low() {
            greatest = low.max(greatest);
            bits |= low;
        }
        Spread { relations: self.relations(stride), greatest, aligned: bits.is_multiple_of(4) }
    }
}
