//! Device memory accesses of an instruction's lanes, fast while they stay in one block.

use std::sync::atomic::AtomicU32;

use super::unit::index;
use super::{Bits, SEGMENT, Unit, illegal};
use crate::fault::Cause;
use crate::mem::{BadAddress, Block, Cursor, Space};
use crate::simd::Level;
use crate::simd::words::{load_few, load_words, store_words};
use crate::wave::{Aligned, LANES, Row};

/// The words of the blocks that were accessed last. An instruction loads or stores; what it does not do costs it nothing.
pub(super) struct Window<'a> {
    /// The block that was loaded from.
    base: u64,
    words: &'a [AtomicU32],
    /// The block that was stored to: its words, or, if stores to it have to set marks, itself.
    target_base: u64,
    target: &'a [AtomicU32],
    marked: Option<&'a Block>,
    cursor: Cursor<'a>,
    level: Level,
}

impl<'a> Window<'a> {
    #[inline(always)]
    pub(super) fn new(space: &'a Space, level: Level) -> Self {
        let (words, target): (&[_], &[_]) = (&[], &[]);
        Self { base: 0, words, target_base: 0, target, marked: None, cursor: space.cursor(), level }
    }

    /// Switches to the block that contains `addr` for loads; fails if there is none.
    #[inline(always)]
    fn go(&mut self, addr: u64, len_bytes: usize) -> Result<(), BadAddress> {
        let (block, _) = self.cursor.locate(addr, len_bytes)?;
        self.base = block.base();
        self.words = block.words();
        Ok(())
    }

    /// Switches to the block that contains `addr` for stores; fails if there is none. Stores to a block with marks find no words there, so
    /// that each comes to a place that sets them.
    #[inline(always)]
    fn aim(&mut self, addr: u64, len_bytes: usize) -> Result<&'a Block, BadAddress> {
        let (block, _) = self.cursor.locate(addr, len_bytes)?;
        self.target_base = block.base();
        (self.target, self.marked) =
            if block.keeps_marks() { (&[][..], Some(block)) } else { (block.words(), None) };
        Ok(block)
    }

    /// Loads from the block that was accessed last, if the value lies inside and is aligned; else returns `None`.
    #[inline(always)]
    pub(super) fn peek<U: Unit>(&self, addr: u64) -> Option<U> {
        U::load_words(self.words, addr.wrapping_sub(self.base))
    }

    #[inline(always)]
    pub(super) fn load<U: Unit>(&mut self, lane: usize, addr: u64) -> Result<U, Cause> {
        match self.peek(addr) {
            Some(value) => Ok(value),
            None => self.load_elsewhere(lane, addr),
        }
    }

    #[cold]
    #[inline(never)]
    fn load_elsewhere<U: Unit>(&mut self, lane: usize, addr: u64) -> Result<U, Cause> {
        let value = U::load_device(&mut self.cursor, addr);
        let moved = self.go(addr, U::BYTES as usize);
        moved.and(value).map_err(|access| illegal(lane, access, false))
    }

    #[inline(always)]
    pub(super) fn store<U: Unit>(&mut self, lane: usize, addr: u64, value: U) -> Result<(), Cause> {
        match value.store_words(self.target, addr.wrapping_sub(self.target_base)) {
            Some(()) => Ok(()),
            None => self.store_elsewhere(lane, addr, value),
        }
    }

    #[cold]
    #[inline(never)]
    fn store_elsewhere<U: Unit>(&mut self, lane: usize, addr: u64, value: U) -> Result<(), Cause> {
        let stored = value.store_device(&mut self.cursor, addr);
        let moved = self.aim(addr, U::BYTES as usize);
        moved.and(stored).map_err(|access| illegal(lane, access, true))
    }

    /// Loads the part of a value that lies in the `len_bytes` bytes at `addr`.
    #[cold]
    #[inline(never)]
    pub(super) fn load_clipped<U: Unit>(
        &mut self,
        lane: usize,
        addr: u64,
        len_bytes: u64,
    ) -> Result<U, Cause> {
        U::load_clipped(&mut self.cursor, addr, len_bytes).map_err(|access| illegal(lane, access, false))
    }

    /// Stores the part of a value that lies in the `len_bytes` bytes at `addr`.
    #[cold]
    #[inline(never)]
    pub(super) fn store_clipped<U: Unit>(
        &mut self,
        lane: usize,
        addr: u64,
        value: U,
        len_bytes: u64,
    ) -> Result<(), Cause> {
        value.store_clipped(&mut self.cursor, addr, len_bytes).map_err(|access| illegal(lane, access, true))
    }

    /// Replaces a value atomically; faults if `addr` is not a multiple of its size.
    #[inline(always)]
    pub(super) fn update<B: Bits>(&mut self, lane: usize, addr: u64, f: impl Fn(B) -> B) -> Result<B, Cause> {
        check_aligned::<B>(lane, addr)?;
        B::update_device(&mut self.cursor, addr, f).map_err(|access| illegal(lane, access, true))
    }

    /// Returns the `len` words at `addr` for loads, if they are in one block and aligned.
    #[inline(always)]
    fn words(&mut self, addr: u64, len: usize) -> Option<&'a [AtomicU32]> {
        let rest = self.words.get(index(addr.wrapping_sub(self.base))..);
        rest.and_then(|rest| rest.get(..len)).or_else(|| self.words_elsewhere(addr, len))
    }

    #[inline(never)]
    fn words_elsewhere(&mut self, addr: u64, len: usize) -> Option<&'a [AtomicU32]> {
        self.go(addr, len * 4).ok()?;
        self.words.get(index(addr.wrapping_sub(self.base))..)?.get(..len)
    }

    /// Stores consecutive words to `addr` on and sets marks; returns false if they are not in one block and aligned.
    #[inline(always)]
    fn put(&mut self, addr: u64, values: &[u32]) -> bool {
        let Some(words) = self.place(addr, values.len()) else { return false };
        store_words(self.level, words, values);
        if let Some(block) = self.marked {
            mark(block, addr, values.len() * 4);
        }
        true
    }

    /// Returns the `len` words at `addr` for stores, if they are in one block and aligned.
    #[inline(never)]
    fn place(&mut self, addr: u64, len: usize) -> Option<&'a [AtomicU32]> {
        let block = self.aim(addr, len * 4).ok()?;
        block.words().get(index(addr.wrapping_sub(block.base()))..)?.get(..len)
    }

    /// Loads consecutive words from `addr` on; returns false if they are not in one block and aligned.
    #[inline(always)]
    pub(super) fn load_span(&mut self, addr: u64, out: &mut [u32]) -> bool {
        let Some(words) = self.words(addr, out.len()) else { return false };
        load_words(self.level, words, out);
        true
    }

    /// Stores consecutive words from `addr` on; returns false if they are not in one block and aligned.
    #[inline(always)]
    pub(super) fn store_span(&mut self, addr: u64, values: &[u32]) -> bool {
        self.put(addr, values)
    }

    /// Loads `N` words for each of `count` lanes from `lane` on, the first one's at `addr`: for all lanes or a segment.
    #[inline(always)]
    pub(super) fn load_rows<const N: usize>(
        &mut self,
        addr: u64,
        lane: usize,
        count: usize,
        out: &mut [&mut Row; N],
    ) -> bool {
        let Some(words) = self.words(addr, count * N) else { return false };
        if count < LANES && N == 1 {
            load_few(self.level, words, &mut out[0][lane..lane + count]);
        } else if count < LANES {
            let mut values = [[0; N]; SEGMENT];
            load_few(self.level, words, values.as_flattened_mut());
            for (n, row) in out.iter_mut().enumerate() {
                for (value, words) in row[lane..lane + count].iter_mut().zip(&values) {
                    *value = words[n];
                }
            }
        } else if N == 1 {
            load_words(self.level, words, out[0]);
        } else {
            let mut values = Aligned([[0; N]; LANES]);
            load_words(self.level, words, values.0.as_flattened_mut());
            for (n, row) in out.iter_mut().enumerate() {
                for lane in 0..LANES {
                    row[lane] = values.0[lane][n];
                }
            }
        }
        true
    }

    /// Stores `N` words for each lane to `addr` on.
    #[inline(always)]
    pub(super) fn store_rows<const N: usize>(&mut self, addr: u64, rows: [&Row; N]) -> bool {
        if N == 1 {
            return self.put(addr, rows[0]);
        }
        let mut values = Aligned([[0; N]; LANES]);
        for (lane, values) in values.0.iter_mut().enumerate() {
            for (row, value) in rows.iter().zip(values) {
                *value = row[lane];
            }
        }
        self.put(addr, values.0.as_flattened())
    }
}

/// Marks what was stored to a block with marks.
#[cold]
#[inline(never)]
fn mark(block: &Block, addr: u64, len_bytes: usize) {
    block.mark(addr.wrapping_sub(block.base()) as usize, len_bytes);
}

/// Returns a fault if an atomic's address is not a multiple of its size.
#[inline(always)]
pub(super) fn check_aligned<B: Bits>(lane: usize, addr: u64) -> Result<(), Cause> {
    if addr.is_multiple_of(B::BYTES) {
        Ok(())
    } else {
        Err(Cause::MisalignedAtomic { lane: lane as u32, addr })
    }
}
