//! What one lane loads, stores or updates at once, and how that is done to each kind of memory.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::lds::{Lds, Scratch};
use crate::mem::{BadAddress, Cursor};
use crate::wave::{Row, Wave};

/// What one lane loads or stores at once: `u8`, `u16`, some words, or 64 bits that nobody sees half of.
pub(crate) trait Unit: Copy {
    /// Its size.
    const BYTES: u64;
    const ZERO: Self;
    /// Loads it from byte `offset` of a block's words, if it is all there and lies as is simplest.
    fn load_words(words: &[AtomicU32], offset: u64) -> Option<Self>;
    /// Stores it, on the same condition.
    fn store_words(self, words: &[AtomicU32], offset: u64) -> Option<()>;
    fn load_device(cursor: &mut Cursor<'_>, addr: u64) -> Result<Self, BadAddress>;
    fn store_device(self, cursor: &mut Cursor<'_>, addr: u64) -> Result<(), BadAddress>;
    fn load_lds(lds: &Lds, addr: u32) -> Self;
    fn store_lds(self, lds: &mut Lds, addr: u32);
    fn load_scratch(scratch: &Scratch, lane: usize, addr: u32) -> Option<Self>;
    fn store_scratch(self, scratch: &mut Scratch, lane: usize, addr: u32) -> Option<()>;

    /// It from the low bits of a word, if it is smaller than one.
    #[inline(always)]
    fn from_part(_word: u32) -> Self {
        Self::ZERO
    }

    /// It as the low bits of a word, if it is smaller than one.
    #[inline(always)]
    fn to_part(self) -> u32 {
        0
    }

    /// Loads of it what lies in the `len_bytes` bytes at `addr`; the rest is 0. Of several words, each is there or not.
    #[inline(always)]
    fn load_clipped(cursor: &mut Cursor<'_>, addr: u64, len_bytes: u64) -> Result<Self, BadAddress> {
        if len_bytes < Self::BYTES { Ok(Self::ZERO) } else { Self::load_device(cursor, addr) }
    }

    /// Stores of it what lies in the `len_bytes` bytes at `addr`.
    #[inline(always)]
    fn store_clipped(self, cursor: &mut Cursor<'_>, addr: u64, len_bytes: u64) -> Result<(), BadAddress> {
        if len_bytes < Self::BYTES { Ok(()) } else { self.store_device(cursor, addr) }
    }
}

/// The place of the word at byte `offset`. One that is no multiple of 4 becomes a place beyond all words.
#[inline(always)]
pub(super) fn index(offset: u64) -> usize {
    usize::try_from(offset.rotate_right(2)).unwrap_or(usize::MAX)
}

/// Replaces the bits of `word` that are set in `mask`; the others keep what others store at the same time.
#[inline(always)]
fn replace_bits(word: &AtomicU32, mask: u32, value: u32) {
    let replace = |old: u32| Some(old & !mask | value & mask);
    // The closure never refuses.
    let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, replace);
}

impl Unit for u8 {
    const BYTES: u64 = 1;
    const ZERO: Self = 0;

    #[inline(always)]
    fn load_words(words: &[AtomicU32], offset: u64) -> Option<Self> {
        let word = words.get(usize::try_from(offset / 4).ok()?)?;
        Some((word.load(Ordering::Relaxed) >> (offset % 4 * 8)) as u8)
    }

    #[inline(always)]
    fn store_words(self, words: &[AtomicU32], offset: u64) -> Option<()> {
        let word = words.get(usize::try_from(offset / 4).ok()?)?;
        let shift = offset % 4 * 8;
        replace_bits(word, 0xff << shift, u32::from(self) << shift);
        Some(())
    }

    #[inline(always)]
    fn load_device(cursor: &mut Cursor<'_>, addr: u64) -> Result<Self, BadAddress> {
        cursor.load_u8(addr)
    }

    #[inline(always)]
    fn store_device(self, cursor: &mut Cursor<'_>, addr: u64) -> Result<(), BadAddress> {
        cursor.store_u8(addr, self)
    }

    #[inline(always)]
    fn load_lds(lds: &Lds, addr: u32) -> Self {
        lds.load_u8(addr)
    }

    #[inline(always)]
    fn store_lds(self, lds: &mut Lds, addr: u32) {
        lds.store_u8(addr, self);
    }

    #[inline(always)]
    fn load_scratch(scratch: &Scratch, lane: usize, addr: u32) -> Option<Self> {
        scratch.load_u8(lane, addr)
    }

    #[inline(always)]
    fn store_scratch(self, scratch: &mut Scratch, lane: usize, addr: u32) -> Option<()> {
        scratch.store_u8(lane, addr, self)
    }

    #[inline(always)]
    fn from_part(word: u32) -> Self {
        word as u8
    }

    #[inline(always)]
    fn to_part(self) -> u32 {
        u32::from(self)
    }
}

impl Unit for u16 {
    const BYTES: u64 = 2;
    const ZERO: Self = 0;

    #[inline(always)]
    fn load_words(words: &[AtomicU32], offset: u64) -> Option<Self> {
        let word = words.get(usize::try_from(offset / 4).ok()?).filter(|_| offset.is_multiple_of(2))?;
        Some((word.load(Ordering::Relaxed) >> (offset % 4 * 8)) as u16)
    }

    #[inline(always)]
    fn store_words(self, words: &[AtomicU32], offset: u64) -> Option<()> {
        let word = words.get(usize::try_from(offset / 4).ok()?).filter(|_| offset.is_multiple_of(2))?;
        let shift = offset % 4 * 8;
        replace_bits(word, 0xffff << shift, u32::from(self) << shift);
        Some(())
    }

    #[inline(always)]
    fn load_device(cursor: &mut Cursor<'_>, addr: u64) -> Result<Self, BadAddress> {
        cursor.load_u16(addr)
    }

    #[inline(always)]
    fn store_device(self, cursor: &mut Cursor<'_>, addr: u64) -> Result<(), BadAddress> {
        cursor.store_u16(addr, self)
    }

    #[inline(always)]
    fn load_lds(lds: &Lds, addr: u32) -> Self {
        lds.load_u16(addr)
    }

    #[inline(always)]
    fn store_lds(self, lds: &mut Lds, addr: u32) {
        lds.store_u16(addr, self);
    }

    #[inline(always)]
    fn load_scratch(scratch: &Scratch, lane: usize, addr: u32) -> Option<Self> {
        let bytes = [scratch.load_u8(lane, addr)?, scratch.load_u8(lane, addr.checked_add(1)?)?];
        Some(u16::from_le_bytes(bytes))
    }

    #[inline(always)]
    fn store_scratch(self, scratch: &mut Scratch, lane: usize, addr: u32) -> Option<()> {
        let [low, high] = self.to_le_bytes();
        scratch.store_u8(lane, addr, low)?;
        scratch.store_u8(lane, addr.checked_add(1)?, high)
    }

    #[inline(always)]
    fn from_part(word: u32) -> Self {
        word as u16
    }

    #[inline(always)]
    fn to_part(self) -> u32 {
        u32::from(self)
    }
}

impl<const N: usize> Unit for [u32; N] {
    const BYTES: u64 = N as u64 * 4;
    const ZERO: Self = [0; N];

    #[inline(always)]
    fn load_words(words: &[AtomicU32], offset: u64) -> Option<Self> {
        let words = words.get(index(offset)..)?.first_chunk::<N>()?;
        Some(std::array::from_fn(|index| words[index].load(Ordering::Relaxed)))
    }

    #[inline(always)]
    fn store_words(self, words: &[AtomicU32], offset: u64) -> Option<()> {
        let words = words.get(index(offset)..)?.first_chunk::<N>()?;
        for (word, value) in words.iter().zip(self) {
            word.store(value, Ordering::Relaxed);
        }
        Some(())
    }

    #[inline(always)]
    fn load_device(cursor: &mut Cursor<'_>, addr: u64) -> Result<Self, BadAddress> {
        let (block, offset) = cursor.locate(addr, N * 4)?;
        Ok(std::array::from_fn(|index| block.load_u32(offset + index * 4)))
    }

    #[inline(always)]
    fn store_device(self, cursor: &mut Cursor<'_>, addr: u64) -> Result<(), BadAddress> {
        let (block, offset) = cursor.locate(addr, N * 4)?;
        for (index, value) in self.into_iter().enumerate() {
            block.store_u32(offset + index * 4, value);
        }
        Ok(())
    }

    #[inline(always)]
    fn load_lds(lds: &Lds, addr: u32) -> Self {
        let first = addr as usize / 4;
        if addr.is_multiple_of(4)
            && let Some(words) = lds.words().get(first..first + N)
        {
            return std::array::from_fn(|index| words[index]);
        }
        std::array::from_fn(|index| lds.load_u32(addr.wrapping_add(index as u32 * 4)))
    }

    #[inline(always)]
    fn store_lds(self, lds: &mut Lds, addr: u32) {
        for (index, value) in self.into_iter().enumerate() {
            lds.store_u32(addr.wrapping_add(index as u32 * 4), value);
        }
    }

    #[inline(always)]
    fn load_scratch(scratch: &Scratch, lane: usize, addr: u32) -> Option<Self> {
        let mut out = [0; N];
        for (index, value) in out.iter_mut().enumerate() {
            *value = scratch.load_u32(lane, addr.checked_add(index as u32 * 4)?)?;
        }
        Some(out)
    }

    #[inline(always)]
    fn store_scratch(self, scratch: &mut Scratch, lane: usize, addr: u32) -> Option<()> {
        for (index, value) in self.into_iter().enumerate() {
            scratch.store_u32(lane, addr.checked_add(index as u32 * 4)?, value)?;
        }
        Some(())
    }

    #[inline(always)]
    fn load_clipped(cursor: &mut Cursor<'_>, addr: u64, len_bytes: u64) -> Result<Self, BadAddress> {
        if len_bytes >= Self::BYTES {
            return Self::load_device(cursor, addr);
        }
        let mut out = [0; N];
        for (value, offset) in out.iter_mut().zip((0..).step_by(4)).take((len_bytes / 4) as usize) {
            *value = cursor.load_u32(addr.wrapping_add(offset))?;
        }
        Ok(out)
    }

    #[inline(always)]
    fn store_clipped(self, cursor: &mut Cursor<'_>, addr: u64, len_bytes: u64) -> Result<(), BadAddress> {
        if len_bytes >= Self::BYTES {
            return self.store_device(cursor, addr);
        }
        for (value, offset) in self.into_iter().zip((0..).step_by(4)).take((len_bytes / 4) as usize) {
            cursor.store_u32(addr.wrapping_add(offset), value)?;
        }
        Ok(())
    }
}

impl Unit for u32 {
    const BYTES: u64 = 4;
    const ZERO: Self = 0;

    #[inline(always)]
    fn load_words(words: &[AtomicU32], offset: u64) -> Option<Self> {
        Some(words.get(index(offset))?.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn store_words(self, words: &[AtomicU32], offset: u64) -> Option<()> {
        words.get(index(offset))?.store(self, Ordering::Relaxed);
        Some(())
    }

    #[inline(always)]
    fn load_device(cursor: &mut Cursor<'_>, addr: u64) -> Result<Self, BadAddress> {
        cursor.load_u32(addr)
    }

    #[inline(always)]
    fn store_device(self, cursor: &mut Cursor<'_>, addr: u64) -> Result<(), BadAddress> {
        cursor.store_u32(addr, self)
    }

    #[inline(always)]
    fn load_lds(lds: &Lds, addr: u32) -> Self {
        lds.load_u32(addr)
    }

    #[inline(always)]
    fn store_lds(self, lds: &mut Lds, addr: u32) {
        lds.store_u32(addr, self);
    }

    #[inline(always)]
    fn load_scratch(scratch: &Scratch, lane: usize, addr: u32) -> Option<Self> {
        scratch.load_u32(lane, addr)
    }

    #[inline(always)]
    fn store_scratch(self, scratch: &mut Scratch, lane: usize, addr: u32) -> Option<()> {
        scratch.store_u32(lane, addr, self)
    }
}

/// The words of 64 bits.
#[inline(always)]
fn split(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

#[inline(always)]
fn join([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

impl Unit for u64 {
    const BYTES: u64 = 8;
    const ZERO: Self = 0;

    /// Two words are no simple access: nobody may see one of them alone.
    #[inline(always)]
    fn load_words(_: &[AtomicU32], _: u64) -> Option<Self> {
        None
    }

    #[inline(always)]
    fn store_words(self, _: &[AtomicU32], _: u64) -> Option<()> {
        None
    }

    #[inline(always)]
    fn load_device(cursor: &mut Cursor<'_>, addr: u64) -> Result<Self, BadAddress> {
        cursor.load_u64(addr)
    }

    #[inline(always)]
    fn store_device(self, cursor: &mut Cursor<'_>, addr: u64) -> Result<(), BadAddress> {
        cursor.store_u64(addr, self)
    }

    #[inline(always)]
    fn load_lds(lds: &Lds, addr: u32) -> Self {
        join(Unit::load_lds(lds, addr))
    }

    #[inline(always)]
    fn store_lds(self, lds: &mut Lds, addr: u32) {
        split(self).store_lds(lds, addr);
    }

    #[inline(always)]
    fn load_scratch(scratch: &Scratch, lane: usize, addr: u32) -> Option<Self> {
        Unit::load_scratch(scratch, lane, addr).map(join)
    }

    #[inline(always)]
    fn store_scratch(self, scratch: &mut Scratch, lane: usize, addr: u32) -> Option<()> {
        split(self).store_scratch(scratch, lane, addr)
    }
}

/// The bits that an atomic works on.
pub(crate) trait Bits: Unit {
    /// How many registers it is in.
    const WORDS: usize;
    /// A lane's value in register `number` and the one after it.
    fn register(wave: &Wave, number: usize, lane: usize) -> Self;
    /// Puts it in a lane of the first rows of `out`.
    fn put(self, out: &mut [Row; 2], lane: usize);
    /// Replaces what is at an aligned address by `f` of it and returns what was there.
    fn update_device(
        cursor: &mut Cursor<'_>,
        addr: u64,
        f: impl Fn(Self) -> Self,
    ) -> Result<Self, BadAddress>;
}

impl Bits for u32 {
    const WORDS: usize = 1;

    #[inline(always)]
    fn register(wave: &Wave, number: usize, lane: usize) -> Self {
        wave.row(number)[lane]
    }

    #[inline(always)]
    fn put(self, out: &mut [Row; 2], lane: usize) {
        out[0][lane] = self;
    }

    #[inline(always)]
    fn update_device(
        cursor: &mut Cursor<'_>,
        addr: u64,
        f: impl Fn(Self) -> Self,
    ) -> Result<Self, BadAddress> {
        cursor.fetch_update_u32(addr, f)
    }
}

impl Bits for u64 {
    const WORDS: usize = 2;

    #[inline(always)]
    fn register(wave: &Wave, number: usize, lane: usize) -> Self {
        join([wave.row(number)[lane], wave.row(number + 1)[lane]])
    }

    #[inline(always)]
    fn put(self, out: &mut [Row; 2], lane: usize) {
        let [low, high] = split(self);
        out[0][lane] = low;
        out[1][lane] = high;
    }

    #[inline(always)]
    fn update_device(
        cursor: &mut Cursor<'_>,
        addr: u64,
        f: impl Fn(Self) -> Self,
    ) -> Result<Self, BadAddress> {
        cursor.fetch_update_u64(addr, f)
    }
}

/// A type of an atomic's operands.
pub(crate) trait Word: Copy {
    type Bits: Bits;
    fn from_bits(bits: Self::Bits) -> Self;
    fn to_bits(self) -> Self::Bits;
}

macro_rules! words {
    ($($t:ty: $bits:ty, |$b:ident| $from:expr, |$v:ident| $to:expr;)*) => {$(
        impl Word for $t {
            type Bits = $bits;
            #[inline(always)]
            fn from_bits($b: $bits) -> Self {
                $from
            }
            #[inline(always)]
            fn to_bits(self) -> $bits {
                let $v = self;
                $to
            }
        }
    )*};
}
words! {
    u32: u32, |bits| bits, |value| value;
    i32: u32, |bits| bits as i32, |value| value as u32;
    f32: u32, |bits| f32::from_bits(bits), |value| value.to_bits();
    u64: u64, |bits| bits, |value| value;
    i64: u64, |bits| bits as i64, |value| value as u64;
    f64: u64, |bits| f64::from_bits(bits), |value| value.to_bits();
}
