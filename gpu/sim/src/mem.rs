//! Device memory: blocks of 32-bit atomic words and one context's address space of them.
//!
//! Kernels of several streams, copies and the dispatch thread use one memory at the same time, so every word is an
//! [`AtomicU32`] and every access is checked against its block: a wild address is a [`BadAddress`], never a crash. Plain
//! loads and stores are relaxed; what orders threads are the atomics and the fences that a kernel itself executes.
//!
//! [`Space`] is a snapshot of the address space that stays as it is for one time slice of a kernel. [`Cursor`] is the fast
//! way through it: it remembers the block that the last lane hit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use crate::map::Map;

/// Kernels may touch a block up to this multiple of bytes beyond its exact length: compilers widen loads of the last element
/// to the natural vector size where the alignment allows it. Copies and fills are checked exactly.
const SLACK_BYTES: usize = 16;

/// An access that no allocation covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadAddress {
    /// The first byte of the access.
    pub addr: u64,
    /// How many bytes it wanted.
    pub len_bytes: u64,
}

impl std::fmt::Display for BadAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no memory at {:#x} ({} bytes)", self.addr, self.len_bytes)
    }
}

impl std::error::Error for BadAddress {}

/// A contiguous piece of device memory.
pub struct Block {
    base: u64,
    len_bytes: u64,
    words: Box<[AtomicU32]>,
}

impl Block {
    /// A zeroed block of `len_bytes` bytes at address `base` (a multiple of 4). The operating system provides the pages when
    /// they are first written. `None` if the host has no memory for it or if it would wrap around the address space.
    pub fn new(base: u64, len_bytes: u64) -> Option<Self> {
        let words = usize::try_from(len_bytes).ok()?.checked_next_multiple_of(SLACK_BYTES)? / 4;
        base.checked_add(words as u64 * 4)?;
        let words = bytemuck::try_zeroed_slice_box(words).ok()?;
        Some(Self { base, len_bytes, words })
    }

    /// The first byte's address.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The exact length in bytes that was asked for.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// The words themselves, for whoever has an offset from [`offset`](Self::offset).
    #[inline(always)]
    pub fn words(&self) -> &[AtomicU32] {
        &self.words
    }

    /// Where a kernel's access of `len_bytes` bytes at `addr` lies in the block, if it lies inside.
    #[inline(always)]
    pub fn offset(&self, addr: u64, len_bytes: usize) -> Option<usize> {
        let offset = addr.wrapping_sub(self.base);
        let capacity = self.words.len() as u64 * 4;
        (offset <= capacity && capacity - offset >= len_bytes as u64).then_some(offset as usize)
    }

    /// Where `len_bytes` bytes at `addr` lie in the block, by its exact length.
    pub fn exact_offset(&self, addr: u64, len_bytes: u64) -> Option<usize> {
        let offset = addr.checked_sub(self.base)?;
        let inside = offset.checked_add(len_bytes)? <= self.len_bytes;
        inside.then_some(offset as usize)
    }

    #[inline(always)]
    fn word(&self, offset: usize) -> u32 {
        self.words.get(offset / 4).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn set_word(&self, offset: usize, value: u32) {
        if let Some(word) = self.words.get(offset / 4) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn set_bits(&self, offset: usize, mask: u32, value: u32) {
        if let Some(word) = self.words.get(offset / 4) {
            let _ = word
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| Some(old & !mask | value & mask));
        }
    }

    /// The little-endian 32-bit value at byte `offset`, aligned or not.
    #[inline(always)]
    pub fn load_u32(&self, offset: usize) -> u32 {
        let shift = offset % 4 * 8;
        let low = self.word(offset);
        if shift == 0 { low } else { low >> shift | self.word(offset + 4) << (32 - shift) }
    }

    /// Stores the 32-bit value at byte `offset`, aligned or not. Neighbouring bytes keep what others store at the same time.
    #[inline(always)]
    pub fn store_u32(&self, offset: usize, value: u32) {
        let shift = offset % 4 * 8;
        if shift == 0 {
            self.set_word(offset, value);
        } else {
            self.set_bits(offset, u32::MAX << shift, value << shift);
            self.set_bits(offset + 4, u32::MAX >> (32 - shift), value >> (32 - shift));
        }
    }

    #[inline(always)]
    fn load_u16(&self, offset: usize) -> u16 {
        if offset % 4 == 3 {
            u16::from_le_bytes([self.load_u8(offset), self.load_u8(offset + 1)])
        } else {
            (self.word(offset) >> (offset % 4 * 8)) as u16
        }
    }

    #[inline(always)]
    fn store_u16(&self, offset: usize, value: u16) {
        if offset % 4 == 3 {
            let [low, high] = value.to_le_bytes();
            self.store_u8(offset, low);
            self.store_u8(offset + 1, high);
        } else {
            let shift = offset % 4 * 8;
            self.set_bits(offset, 0xffff << shift, u32::from(value) << shift);
        }
    }

    #[inline(always)]
    fn load_u8(&self, offset: usize) -> u8 {
        (self.word(offset) >> (offset % 4 * 8)) as u8
    }

    #[inline(always)]
    fn store_u8(&self, offset: usize, value: u8) {
        let shift = offset % 4 * 8;
        self.set_bits(offset, 0xff << shift, u32::from(value) << shift);
    }

    /// The 64-bit value at byte `offset`. Aligned, it is read as one: never half of a [`store_u64`](Self::store_u64) or of a
    /// 64-bit atomic.
    pub fn load_u64(&self, offset: usize) -> u64 {
        if !offset.is_multiple_of(8) {
            return self.load_pair(offset);
        }
        let stripe = stripe(self.base + offset as u64);
        loop {
            let before = stripe.0.load(Ordering::Acquire);
            if before.is_multiple_of(2) {
                let value = self.load_pair(offset);
                fence(Ordering::Acquire);
                if stripe.0.load(Ordering::Relaxed) == before {
                    return value;
                }
            }
            std::hint::spin_loop();
        }
    }

    /// Stores the 64-bit value at byte `offset`; aligned, as one.
    pub fn store_u64(&self, offset: usize, value: u64) {
        if !offset.is_multiple_of(8) {
            self.store_pair(offset, value);
        } else {
            exclusively(self.base + offset as u64, || self.store_pair(offset, value));
        }
    }

    fn load_pair(&self, offset: usize) -> u64 {
        u64::from(self.load_u32(offset)) | u64::from(self.load_u32(offset + 4)) << 32
    }

    fn store_pair(&self, offset: usize, value: u64) {
        self.store_u32(offset, value as u32);
        self.store_u32(offset + 4, (value >> 32) as u32);
    }

    /// Copies bytes from `offset` on into `out`. The caller has checked the range.
    pub fn read(&self, mut offset: usize, mut out: &mut [u8]) {
        while !offset.is_multiple_of(4) && !out.is_empty() {
            out[0] = self.load_u8(offset);
            offset += 1;
            out = &mut out[1..];
        }
        let mut chunks = out.chunks_exact_mut(4);
        let words = self.words.get(offset / 4..).unwrap_or_default();
        for (chunk, word) in chunks.by_ref().zip(words) {
            chunk.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
            offset += 4;
        }
        for byte in chunks.into_remainder() {
            *byte = self.load_u8(offset);
            offset += 1;
        }
    }

    /// Copies `bytes` to `offset` on. The caller has checked the range.
    pub fn write(&self, mut offset: usize, mut bytes: &[u8]) {
        while !offset.is_multiple_of(4) && !bytes.is_empty() {
            self.store_u8(offset, bytes[0]);
            offset += 1;
            bytes = &bytes[1..];
        }
        let (chunks, rest) = bytes.as_chunks::<4>();
        let words = self.words.get(offset / 4..).unwrap_or_default();
        for (chunk, word) in chunks.iter().zip(words) {
            word.store(u32::from_le_bytes(*chunk), Ordering::Relaxed);
        }
        offset += chunks.len() * 4;
        for &byte in rest {
            self.store_u8(offset, byte);
            offset += 1;
        }
    }
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Block")
            .field("base", &format_args!("{:#x}", self.base))
            .field("len_bytes", &self.len_bytes)
            .finish_non_exhaustive()
    }
}

/// A sequence counter that makes two words change as one: odd while a writer is at it. Process-wide, chosen by address, so
/// that memory itself stays plain words.
#[repr(align(64))]
struct Stripe(AtomicU32);

const STRIPES: usize = 256;
static STRIPE: [Stripe; STRIPES] = [const { Stripe(AtomicU32::new(0)) }; STRIPES];

fn stripe(addr: u64) -> &'static Stripe {
    let hash = (addr >> 3) ^ (addr >> 11) ^ (addr >> 21);
    &STRIPE[hash as usize % STRIPES]
}

/// Runs `change` while no other thread changes or reads the 64-bit value at `addr` as one.
fn exclusively<R>(addr: u64, change: impl FnOnce() -> R) -> R {
    let counter = &stripe(addr).0;
    let mut spins = 0u32;
    loop {
        let seen = counter.load(Ordering::Relaxed);
        if seen.is_multiple_of(2)
            && counter
                .compare_exchange_weak(seen, seen.wrapping_add(1), Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        {
            fence(Ordering::Release);
            let result = change();
            counter.store(seen.wrapping_add(2), Ordering::Release);
            return result;
        }
        spins += 1;
        if spins.is_multiple_of(64) {
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}

/// A snapshot of one context's address space.
///
/// It is made for one time slice of a kernel (or one copy) and used by one thread: memory that is freed meanwhile stays
/// readable until the snapshot goes; memory that is allocated meanwhile is in the next one.
#[derive(Debug)]
pub struct Space {
    map: Arc<Map>,
    /// The launch's own block (kernarg segment, dispatch packet), outside the map so that a launch costs no allocation there.
    launch: Arc<Block>,
}

impl Space {
    /// A snapshot of `map` in which the addresses of `launch` are visible too.
    pub(crate) fn new(map: Arc<Map>, launch: Arc<Block>) -> Self {
        Self { map, launch }
    }

    /// A space of nothing but `block`: for tests of the interpreter.
    pub fn of_block(block: Block) -> Self {
        Self::new(Arc::new(Map::default()), Arc::new(block))
    }

    /// The block in which a kernel may access `len_bytes` bytes at `addr`, and the access's offset in it.
    #[inline]
    pub fn find(&self, addr: u64, len_bytes: usize) -> Result<(&Block, usize), BadAddress> {
        let block = match self.map.block(addr) {
            Some(block) => block,
            None => &self.launch,
        };
        match block.offset(addr, len_bytes) {
            Some(offset) => Ok((block, offset)),
            None => Err(BadAddress { addr, len_bytes: len_bytes as u64 }),
        }
    }

    /// A cursor that remembers the block of the last access: what a loop over lanes should use.
    #[inline]
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor { space: self, block: &self.launch }
    }

    /// Copies bytes at `addr` into `out`.
    pub fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), BadAddress> {
        let (block, offset) = self.find(addr, out.len())?;
        block.read(offset, out);
        Ok(())
    }

    /// Copies `bytes` to `addr`.
    pub fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), BadAddress> {
        let (block, offset) = self.find(addr, bytes.len())?;
        block.write(offset, bytes);
        Ok(())
    }
}

/// Declares the accesses once, for the cursor, and the same for a space that is asked only now and then.
macro_rules! accesses {
    ($($(#[$doc:meta])* fn $name:ident $(<$g:ident: $bound:path>)? ($addr:ident $(, $arg:ident: $ty:ty)*) -> $out:ty, $len:expr, |$block:ident, $offset:ident| $body:expr;)*) => {
        impl<'s> Cursor<'s> {
            $(
                $(#[$doc])*
                #[inline(always)]
                pub fn $name $(<$g: $bound>)? (&mut self, $addr: u64 $(, $arg: $ty)*) -> Result<$out, BadAddress> {
                    let ($block, $offset) = self.locate($addr, $len)?;
                    $body
                }
            )*
        }
        impl Space {
            $(
                $(#[$doc])*
                #[inline]
                pub fn $name $(<$g: $bound>)? (&self, $addr: u64 $(, $arg: $ty)*) -> Result<$out, BadAddress> {
                    self.cursor().$name($addr $(, $arg)*)
                }
            )*
        }
    };
}

/// A way through a [`Space`] that is fast while accesses stay in one block.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'s> {
    space: &'s Space,
    block: &'s Block,
}

impl<'s> Cursor<'s> {
    /// The block in which a kernel may access `len_bytes` bytes at `addr`, and the access's offset in it.
    #[inline(always)]
    pub fn locate(&mut self, addr: u64, len_bytes: usize) -> Result<(&'s Block, usize), BadAddress> {
        match self.block.offset(addr, len_bytes) {
            Some(offset) => Ok((self.block, offset)),
            None => {
                let (block, offset) = self.space.find(addr, len_bytes)?;
                self.block = block;
                Ok((block, offset))
            }
        }
    }
}

accesses! {
    /// Loads a byte.
    fn load_u8(addr) -> u8, 1, |block, offset| Ok(block.load_u8(offset));
    /// Loads 16 bits, aligned or not.
    fn load_u16(addr) -> u16, 2, |block, offset| Ok(block.load_u16(offset));
    /// Loads 32 bits, aligned or not.
    fn load_u32(addr) -> u32, 4, |block, offset| Ok(block.load_u32(offset));
    /// Loads 64 bits, aligned or not; aligned, as one.
    fn load_u64(addr) -> u64, 8, |block, offset| Ok(block.load_u64(offset));
    /// Stores a byte; its neighbours keep what others store at the same time.
    fn store_u8(addr, value: u8) -> (), 1, |block, offset| { block.store_u8(offset, value); Ok(()) };
    /// Stores 16 bits, aligned or not.
    fn store_u16(addr, value: u16) -> (), 2, |block, offset| { block.store_u16(offset, value); Ok(()) };
    /// Stores 32 bits, aligned or not.
    fn store_u32(addr, value: u32) -> (), 4, |block, offset| { block.store_u32(offset, value); Ok(()) };
    /// Stores 64 bits, aligned or not; aligned, as one.
    fn store_u64(addr, value: u64) -> (), 8, |block, offset| { block.store_u64(offset, value); Ok(()) };
    /// Loads consecutive 32-bit words, aligned or not, each on its own.
    fn load_words(addr, out: &mut [u32]) -> (), out.len() * 4, |block, offset| {
        for (index, word) in out.iter_mut().enumerate() {
            *word = block.load_u32(offset + index * 4);
        }
        Ok(())
    };
    /// Stores consecutive 32-bit words, aligned or not, each on its own.
    fn store_words(addr, words: &[u32]) -> (), words.len() * 4, |block, offset| {
        for (index, &word) in words.iter().enumerate() {
            block.store_u32(offset + index * 4, word);
        }
        Ok(())
    };
    /// Replaces the 32-bit value at an aligned address by `update` of it, atomically, and returns what was there. `update` may
    /// run more than once. A misaligned address faults, as on the hardware.
    fn fetch_update_u32<F: UpdateU32>(addr, update: F) -> u32, 4, |block, offset| {
        let word = block.words().get(offset / 4).filter(|_| offset % 4 == 0);
        let word = word.ok_or(BadAddress { addr, len_bytes: 4 })?;
        match word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| Some(update(old))) {
            Ok(old) | Err(old) => Ok(old),
        }
    };
    /// Replaces the 64-bit value at an aligned address by `update` of it, atomically with regard to every other 64-bit atomic,
    /// [`load_u64`](Block::load_u64) and [`store_u64`](Block::store_u64), and returns what was there. A misaligned address faults.
    fn fetch_update_u64<F: UpdateU64>(addr, update: F) -> u64, 8, |block, offset| {
        if !offset.is_multiple_of(8) {
            return Err(BadAddress { addr, len_bytes: 8 });
        }
        Ok(exclusively(block.base() + offset as u64, || {
            let old = block.load_pair(offset);
            block.store_pair(offset, update(old));
            old
        }))
    };
}

/// What an atomic does to 32 bits.
pub trait UpdateU32: Fn(u32) -> u32 {}
impl<F: Fn(u32) -> u32> UpdateU32 for F {}

/// What an atomic does to 64 bits.
pub trait UpdateU64: Fn(u64) -> u64 {}
impl<F: Fn(u64) -> u64> UpdateU64 for F {}
