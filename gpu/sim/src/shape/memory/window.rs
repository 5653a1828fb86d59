//! Device memory as the lanes of one instruction see it: fast while they stay in one block.

use std::sync::atomic::{AtomicU32, Ordering};

use super::unit::index;
use super::{Bits, Unit, illegal};
use crate::fault::Cause;
use crate::mem::{BadAddress, Cursor, Space};
use crate::simd::Level;
use crate::simd::words::{load_words, store_words};
use crate::wave::{Aligned, LANES, Row};

/// The block that was hit last, as its words.
pub(super) struct Window<'a> {
    base: u64,
    words: &'a [AtomicU32],
    cursor: Cursor<'a>,
    level: Level,
}

impl<'a> Window<'a> {
    #[inline(always)]
    pub(super) fn new(space: &'a Space, level: Level) -> Self {
        Self { base: 0, words: &[], cursor: space.cursor(), level }
    }

    /// Goes to the block of `addr`.
    #[inline(always)]
    fn go(&mut self, addr: u64, len_bytes: usize) -> Result<(), BadAddress> {
        let (block, _) = self.cursor.locate(addr, len_bytes)?;
        self.base = block.base();
        self.words = block.words();
        Ok(())
    }

    /// Loads from the block that was hit last, if it lies there as is simplest.
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
        match value.store_words(self.words, addr.wrapping_sub(self.base)) {
            Some(()) => Ok(()),
            None => self.store_elsewhere(lane, addr, value),
        }
    }

    #[cold]
    #[inline(never)]
    fn store_elsewhere<U: Unit>(&mut self, lane: usize, addr: u64, value: U) -> Result<(), Cause> {
        let stored = value.store_device(&mut self.cursor, addr);
        let moved = self.go(addr, U::BYTES as usize);
        moved.and(stored).map_err(|access| illegal(lane, access, true))
    }

    /// Loads of it what lies in the `len_bytes` bytes at `addr`.
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

    /// Stores of it what lies in the `len_bytes` bytes at `addr`.
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

    /// Faults if `addr` is no multiple of the value's size.
    #[inline(always)]
    pub(super) fn update<B: Bits>(&mut self, lane: usize, addr: u64, f: impl Fn(B) -> B) -> Result<B, Cause> {
        check_aligned::<B>(lane, addr)?;
        B::update_device(&mut self.cursor, addr, f).map_err(|access| illegal(lane, access, true))
    }

    /// The words of `len` at `addr`, if they are in one block and aligned.
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

    /// Loads words from `addr` on.
    #[inline(always)]
    pub(super) fn load_span(&mut self, addr: u64, out: &mut [u32]) -> bool {
        let Some(words) = self.words(addr, out.len()) else { return false };
        load_words(self.level, words, out);
        true
    }

    /// Stores words to `addr` on.
    #[inline(always)]
    pub(super) fn store_span(&mut self, addr: u64, values: &[u32]) -> bool {
        let Some(words) = self.words(addr, values.len()) else { return false };
        store_words(self.level, words, values);
        true
    }

    /// Loads `N` words for each of `count` lanes from `lane` on, the first one's at `addr`.
    #[inline(always)]
    pub(super) fn load_rows<const N: usize>(
        &mut self,
        addr: u64,
        lane: usize,
        count: usize,
        out: &mut [&mut Row; N],
    ) -> bool {
        let Some(words) = self.words(addr, count * N) else { return false };
        if count < LANES {
            for (n, row) in out.iter_mut().enumerate() {
                for (value, words) in row[lane..lane + count].iter_mut().zip(words.as_chunks::<N>().0) {
                    *value = words[n].load(Ordering::Relaxed);
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
        let Some(words) = self.words(addr, LANES * N) else { return false };
        if N == 1 {
            store_words(self.level, words, rows[0]);
            return true;
        }
        let mut values = Aligned([[0; N]; LANES]);
        for (lane, values) in values.0.iter_mut().enumerate() {
            for (row, value) in rows.iter().zip(values) {
                *value = row[lane];
            }
        }
        store_words(self.level, words, values.0.as_flattened());
        true
    }
}

/// Faults if an atomic's address is no multiple of its size.
#[inline(always)]
pub(super) fn check_aligned<B: Bits>(lane: usize, addr: u64) -> Result<(), Cause> {
    if addr.is_multiple_of(B::BYTES) {
        Ok(())
    } else {
        Err(Cause::MisalignedAtomic { lane: lane as u32, addr })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Window;
    use crate::fault::Cause;
    use crate::map::{FIRST_ADDRESS, Map, PAGE_BYTES};
    use crate::mem::{Block, Space};
    use crate::simd::Level;

    /// A space of three blocks of 1 MiB, two pages apart.
    fn space() -> (Space, [u64; 3]) {
        let addresses = [0, 1, 2].map(|index| FIRST_ADDRESS + index * 2 * PAGE_BYTES);
        let [first, second, third] = addresses.map(|addr| Arc::new(Block::new(addr, 1 << 20).unwrap()));
        let mut map = Map::default();
        map.insert(&first);
        map.insert(&second);
        (Space::new(Arc::new(map), third), addresses)
    }

    #[test]
    fn lanes_may_be_in_several_blocks() {
        let (space, addresses) = space();
        let mut window = Window::new(&space, Level::BASE);
        for lane in 0..64 {
            let addr = addresses[lane % 3] + lane as u64 * 16;
            window.store(lane, addr, [lane as u32, 1, 2]).unwrap();
            window.store(lane, addr + 12, 0x55u8).unwrap();
            window.store(lane, addr + 13, 0x6677u16).unwrap();
        }
        let mut window = Window::new(&space, Level::BASE);
        for lane in 0..64 {
            let writer = lane * 7 % 64;
            let addr = addresses[writer % 3] + writer as u64 * 16;
            let expected = [writer as u32, 1, 2, 0x66_7755];
            assert_eq!(window.load::<[u32; 4]>(lane, addr), Ok(expected), "lane {lane}");
            assert_eq!(window.peek::<[u32; 4]>(addr), Some(expected), "the block is remembered");
        }
    }

    #[test]
    fn between_blocks_there_is_nothing() {
        let (space, addresses) = space();
        let mut window = Window::new(&space, Level::BASE);
        window.load::<u32>(0, addresses[0]).unwrap();
        for addr in
            [addresses[0] - 4, addresses[0] + (1 << 20) - 2, addresses[1] - 4, addresses[2] + (1 << 20)]
        {
            let fault = window.load::<u32>(7, addr).unwrap_err();
            let Cause::IllegalAddress { lane: Some(7), access, write: false } = fault else {
                panic!("{fault}")
            };
            assert_eq!((access.addr, access.len_bytes), (addr, 4));
            assert!(window.store(7, addr, [1, 2]).is_err());
        }
    }
}
