//! Where the lanes of one instruction go, and how their addresses lie.

use crate::simd::pack;
use crate::wave::{Aligned, LANES, Row};

/// Addresses that are a register or a register pair plus something that all lanes have in common.
///
/// Copies of the registers: what is loaded may go to the very same ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Linear<H = Aligned<Row>> {
    /// One more than there are lanes, so that every lane has a next one.
    pub(super) low: Aligned<[u32; LANES + 1]>,
    pub(super) high: H,
    pub(super) base: u64,
}

/// High halves of addresses.
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

/// None: addresses of 32 bits.
impl High for () {
    #[inline(always)]
    fn at(&self, _: usize) -> u32 {
        0
    }
}

/// Lanes that are looked at together where not all 64 follow each other: rows of two-dimensional groups are often of this size.
pub(super) const SEGMENT: usize = 8;
/// The lanes of a segment that have a next one in it.
pub(super) const WITHIN: u64 = (1 << (SEGMENT - 1)) - 1;

/// Whether addresses follow each other in steps of `stride` bytes.
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

/// How the addresses of a segment's lanes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// In steps of the access's size, from here on.
    Consecutive(u64),
    /// All here.
    Uniform(u64),
    Scattered,
}

/// Lanes whose next lane's address is the same, or a step further; one bit a lane.
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

    /// How each lane's address is related to the next one's, where a step is `stride` bytes.
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

    /// The first lane's address, if the other lanes' follow in steps of `stride` bytes.
    #[inline(always)]
    pub(super) fn consecutive(&self, stride: u32) -> Option<u64> {
        are_consecutive(self.low(), &self.high, stride).then(|| self.at(0))
    }

    /// The address, if it is the same in all lanes.
    #[inline(always)]
    pub(super) fn uniform(&self) -> Option<u64> {
        let (low, high) = (self.low.0[0], self.high.at(0));
        let mut difference = 0;
        for lane in 0..LANES {
            difference |= (self.low.0[lane] ^ low) | (self.high.at(lane) ^ high);
        }
        (difference == 0).then(|| self.at(0))
    }

    /// How the addresses of the segment that begins with `lane` lie, where steps of `stride` bytes have these relations.
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

/// What an access to LDS has to know of all lanes' addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    pub(super) relations: Relations,
    pub(super) greatest: u32,
    pub(super) aligned: bool,
}

impl Linear<()> {
    /// The same for accesses of `stride` bytes.
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
