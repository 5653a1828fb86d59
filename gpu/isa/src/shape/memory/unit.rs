//! Values that one lane loads, stores or updates at once, for each kind of memory.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::lds::{Lds, Scratch};
use crate::mem::{BadAddress, Cursor};
use crate::simd::words::{load_each, store_each};
use crate::wave::{Row, Wave};

/// A value that one lane loads or stores at once: `u8`, `u16`, some words, or 64 bits.
pub(crate) trait Unit: Copy {
    /// Size in bytes.
    const BYTES: u64;
    const ZERO: Self;
    /// Loads the value from byte `offset` of a block's words; returns `None` if it is not completely inside or not aligned.
    fn load_words(words: &[AtomicU32], offset: u64) -> Option<Self>;
    /// Stores the value; returns `None` if it is not completely inside or not aligned.
    fn store_words(self, words: &[AtomicU32], offset: u64) -> Option<()>;
    fn load_device(cursor: &mut Cursor<'_>, addr: u64) -> Result<Self, BadAddress>;
    fn store_device(self, cursor: &mut Cursor<'_>, addr: u64) -> Result<(), BadAddress>;
    fn load_lds(lds: &Lds, addr: u32) -> Self;
    fn store_lds(self, lds: &mut Lds, addr: u32);
    fn load_scratch(scratch: &Scratch, lane: usize, addr: u32) -> Option<Self>;
    fn store_scratch(self, scratch: &mut Scratch, lane: usize, addr: u32) -> Option<()>;

    /// Converts the low bits of a word to a value smaller than a word.
    #[inline(always)]
    fn from_part(_word: u32) -> Self {
        Self::ZERO
    }

    /// Converts a value smaller than a word to the low bits of a word.
    #[inline(always)]
    fn to_part(self) -> u32 {
        0
    }

    /// Loads the part of the value that lies in the `len_bytes` bytes at `addr`; the rest is 0. Each word is loaded completely
    /// or not at all.
    #[inline(always)]
    fn load_clipped(cursor: &mut Cursor<'_>, addr: u64, len_bytes: u64) -> Result<Self, BadAddress> {
        if len_bytes < Self::BYTES { Ok(Self::ZERO) } else { Self::load_device(cursor, addr) }
    }

    /// Stores the part of the value that lies in the `len_bytes` bytes at `addr`.
    #[inline(always)]
    fn store_clipped(self, cursor: &mut Cursor<'_>, addr: u64, len_bytes: u64) -> Result<(), BadAddress> {
        if len_bytes < Self::BYTES { Ok(()) } else { self.store_device(cursor, addr) }
    }
}

/// Returns the index of the word at byte `offset`, or an index beyond all words if `offset` is not a multiple of 4.
#[inline(always)]
pub(super) fn index(offset: u64) -> usize {
    usize::try_from(offset.rotate_right(2)).unwrap_or(usize::MAX)
}

/// Replaces the bits of `word` that are set in `mask`; the others keep what other threads store at the same time.
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
        let mut out = [0; N];
        load_each(words, &mut out);
        Some(out)
    }

    #[inline(always)]
    fn store_words(self, words: &[AtomicU32], offset: u64) -> Option<()> {
        let words = words.get(index(offset)..)?.first_chunk::<N>()?;
        store_each(words, &self);
        Some(())
    }

    #[inline(always)]
    fn load_device(cursor: &mut Cursor<'_>, addr: u64) -> Result<Self, BadAddress> {
        let mut out = [0; N];
        cursor.load_words(addr, &mut out)?;
        Ok(out)
    }

    #[inline(always)]
    fn store_device(self, cursor: &mut Cursor<'_>, addr: u64) -> Result<(), BadAddress> {
        cursor.store_words(addr, &self)
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
        match out.get_mut(..(len_bytes / 4) as usize) {
            Some(inside) if !inside.is_empty() => cursor.load_words(addr, inside).map(|()| out),
            _ => Ok(out),
        }
    }

    #[inline(always)]
    fn store_clipped(self, cursor: &mut Cursor<'_>, addr: u64, len_bytes: u64) -> Result<(), BadAddress> {
        if len_bytes >= Self::BYTES {
            return self.store_device(cursor, addr);
        }
        match self.get(..(len_bytes / 4) as usize) {
            Some(inside) if !inside.is_empty() => cursor.store_words(addr, inside),
            _ => Ok(()),
        }
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

/// Splits 64 bits into two words.
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

    #[inline(always)]
    fn load_words(words: &[AtomicU32], offset: u64) -> Option<Self> {
        <[u32; 2]>::load_words(words, offset).map(join)
    }

    #[inline(always)]
    fn store_words(self, words: &[AtomicU32], offset: u64) -> Option<()> {
        split(self).store_words(words, offset)
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

/// A value that an atomic updates.
pub(crate) trait Bits: Unit {
    /// Number of registers that hold it.
    const WORDS: usize;
    /// Returns a lane's value in register `number`, and the one after it for 64 bits.
    fn register(wave: &Wave, number: usize, lane: usize) -> Self;
    /// Writes the value to a lane of the first rows of `out`.
    fn put(self, out: &mut [Row; 2], lane: usize);
    /// Replaces the value at an aligned address by the result of `f` and returns the old value.
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
