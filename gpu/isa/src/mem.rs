//! Device memory: blocks of atomic words and one context's address space of them.
//!
//! Kernels of several streams, copies and the dispatch thread use one memory at the same time, so all of it is atomic words and
//! every access is checked against its block: a wild address is a [`BadAddress`], never a crash. As on the hardware, 1, 2, 4 or 8
//! bytes at a multiple of their size are one access, also as a part of a wider one: no thread sees a half of what another one
//! stored. Plain loads and stores are relaxed; what orders threads are the atomics and the fences that a kernel itself executes.
//!
//! A block may keep [marks](crate::marks) of the pages that are written: every store to it then sets the marks of its bytes, after it has
//! stored them. Stores to a block without marks pay one test for an instruction, not one for a lane.
//!
//! [`Space`] is a snapshot of the address space that stays as it is for one time slice of a kernel. [`Cursor`] is the fast
//! way through it: it remembers the block that the last lane hit.

use std::any::Any;
use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

pub use crate::fault::BadAddress;
use crate::machine::Program;
use crate::map::Map;
use crate::marks::Marks;
use crate::pairs::Pairs;
pub use crate::pairs::Piece;
pub use crate::simd::words::Route;
use crate::simd::words::{self, load_each, store_each};

/// Kernels may access a block beyond its exact length up to a multiple of this: compilers widen loads of the last element
/// to the natural vector size. Copies and fills are checked exactly.
const SLACK_BYTES: usize = 16;

/// A contiguous piece of device memory.
pub struct Block {
    base: u64,
    len_bytes: u64,
    pairs: Pairs,
    is_shared: bool,
    code: OnceLock<Box<[Arc<Program>]>>,
    marks: OnceLock<Marks>,
}

impl Block {
    /// Allocates a zeroed block of `len_bytes` bytes at address `base`; the operating system provides its pages when they are
    /// first written. Returns `None` if `base` is no multiple of 8, if the host has no memory for it or the address range would
    /// wrap around.
    pub fn new(base: u64, len_bytes: u64) -> Option<Self> {
        let capacity = usize::try_from(len_bytes).ok()?.checked_next_multiple_of(SLACK_BYTES)?;
        base.checked_add(capacity as u64).filter(|_| base.is_multiple_of(8))?;
        Some(Self::of(base, len_bytes, Pairs::zeroed(capacity / 8)?, false))
    }

    /// Makes a block at address `base` of the `len_bytes` bytes of a file from `offset` on, a multiple of the system's page size. Other
    /// processes may read and write them at any time. Nobody can make the file shorter, and it has these bytes. Returns `None` if `base` is
    /// no multiple of 8, if `len_bytes` is none of 16, if the address range would wrap around, or if the file cannot be mapped.
    pub fn shared(base: u64, len_bytes: u64, file: impl AsFd, offset: u64) -> Option<Self> {
        let len = usize::try_from(len_bytes).ok().filter(|len| len.is_multiple_of(SLACK_BYTES))?;
        base.checked_add(len_bytes).filter(|_| base.is_multiple_of(8))?;
        Some(Self::of(base, len_bytes, Pairs::mapped(len / 8, file, offset).ok()?, true))
    }

    /// Makes a block at address `base` of pieces of files, one beside the other. Nobody can make the files shorter, and other blocks may have
    /// the same bytes. `keep` is dropped when the block's bytes are not mapped any more.
    ///
    /// # Errors
    /// `InvalidInput` if `base` is no multiple of 8, if a piece is not of whole pages, or if the address range would wrap around; else those
    /// of the system's mmap.
    pub fn joined(base: u64, pieces: &[Piece<'_>], keep: Box<dyn Any + Send + Sync>) -> io::Result<Self> {
        let len_bytes = pieces.iter().fold(0_u64, |len, piece| len.saturating_add(piece.len_bytes as u64));
        let is_range = base.checked_add(len_bytes).is_some() && base.is_multiple_of(8);
        let len = usize::try_from(len_bytes).ok().filter(|_| is_range).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self::of(base, len_bytes, Pairs::joined(len / 8, pieces, keep)?, false))
    }

    /// Maps `len_bytes` zeroed bytes at address `base` of this process and makes a block of them there, so that a kernel and the program
    /// reach them at one address. They are unmapped when the block is dropped, which a snapshot of the address space may put off.
    ///
    /// # Errors
    /// `InvalidInput` if `base` or `len_bytes` is no multiple of the system's page size, or `len_bytes` is 0; `AlreadyExists` if something
    /// is mapped there; else those of the system's mmap.
    pub fn at_own_address(base: u64, len_bytes: u64) -> io::Result<Self> {
        let len = usize::try_from(len_bytes).ok().filter(|len| len.is_multiple_of(SLACK_BYTES));
        let len = len.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self::of(base, len_bytes, Pairs::mapped_at(base, len / 8)?, false))
    }

    /// Makes a block of the `len_bytes` bytes at address `base` of this process, which somebody else has mapped and unmaps: a kernel and the
    /// program reach them at one address. Returns `None` if `base` is 0, if it or `len_bytes` is no multiple of 16, or if the
    /// address range would wrap around.
    ///
    /// # Safety
    /// These bytes are mapped, readable and writable, until the block is dropped, which a snapshot of the address space may put off.
    // The promise is the caller's; the memory is taken in `pairs`.
    #[allow(unsafe_code)]
    pub unsafe fn over(base: u64, len_bytes: u64) -> Option<Self> {
        let multiple = |bytes: u64| bytes.is_multiple_of(SLACK_BYTES as u64);
        let len = usize::try_from(len_bytes).ok().filter(|_| multiple(base) && multiple(len_bytes))?;
        // SAFETY: as the caller promises.
        Some(Self::of(base, len_bytes, unsafe { Pairs::lent(base, len / 8) }?, false))
    }

    fn of(base: u64, len_bytes: u64, pairs: Pairs, is_shared: bool) -> Self {
        Self { base, len_bytes, pairs, is_shared, code: OnceLock::new(), marks: OnceLock::new() }
    }

    /// Returns whether other processes have the block's bytes, too.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Begins to mark the pages that are written; only the first call has an effect. A kernel that is running may store by one more
    /// instruction without marking.
    pub fn keep_marks(&self) {
        self.marks.get_or_init(|| Marks::new(self.pairs.len() * 8));
    }

    /// Takes the marks of the pages that the `len_bytes` bytes at `offset` touch: returns the offsets of the marked ones, in runs that do
    /// not touch each other, and clears the marks of those that lie wholly within these bytes or end with the block. What
    /// is read afterwards has what was stored before. Returns `None` if no marks are kept.
    pub fn take_marks(&self, offset: usize, len_bytes: usize) -> Option<Vec<Range<usize>>> {
        self.marks.get().map(|marks| marks.take(offset, len_bytes, self.len_bytes as usize))
    }

    /// Returns whether stores have to mark what they write.
    #[inline(always)]
    pub(crate) fn keeps_marks(&self) -> bool {
        self.marks.get().is_some()
    }

    /// Marks the pages of `len_bytes` bytes at `offset`, which were stored before, if marks are kept.
    #[inline(always)]
    pub(crate) fn mark(&self, offset: usize, len_bytes: usize) {
        if let Some(marks) = self.marks.get() {
            marks.set(offset, len_bytes);
        }
    }

    /// Sets the code that is executed in the block; only the first call has an effect.
    pub fn set_code(&self, programs: &[Arc<Program>]) {
        self.code.get_or_init(|| programs.into());
    }

    /// Returns the code that the instruction at address `pc` is part of, if any.
    fn program(&self, pc: u64) -> Option<&Program> {
        let programs = self.code.get()?.iter().map(Arc::as_ref);
        programs.into_iter().find(|program| program.contains(pc))
    }

    /// Returns the address of the first byte.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Returns the exact length in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Returns the words, for a caller with an [`offset`](Self::offset). Stores through them set no marks.
    #[inline(always)]
    pub fn words(&self) -> &[AtomicU32] {
        words::of_pairs(&self.pairs)
    }

    /// Returns the offset of a kernel's access of `len_bytes` bytes at `addr`, if it lies inside.
    #[inline(always)]
    pub fn offset(&self, addr: u64, len_bytes: usize) -> Option<usize> {
        let offset = addr.wrapping_sub(self.base);
        let capacity = self.pairs.len() as u64 * 8;
        (offset <= capacity && capacity - offset >= len_bytes as u64).then_some(offset as usize)
    }

    /// Returns the offset of `len_bytes` bytes at `addr`, if they lie within the exact length.
    pub fn exact_offset(&self, addr: u64, len_bytes: u64) -> Option<usize> {
        let offset = addr.checked_sub(self.base)?;
        let inside = offset.checked_add(len_bytes)? <= self.len_bytes;
        inside.then_some(offset as usize)
    }

    #[inline(always)]
    fn word(&self, offset: usize) -> u32 {
        self.words().get(offset / 4).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn set_word(&self, offset: usize, value: u32) {
        if let Some(word) = self.words().get(offset / 4) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn set_bits(&self, offset: usize, mask: u32, value: u32) {
        if let Some(word) = self.words().get(offset / 4) {
            let _ = word
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| Some(old & !mask | value & mask));
        }
    }

    /// Returns the little-endian 32-bit value at byte `offset`, aligned or not.
    #[inline(always)]
    pub fn load_u32(&self, offset: usize) -> u32 {
        let shift = offset % 4 * 8;
        let low = self.word(offset);
        if shift == 0 { low } else { low >> shift | self.word(offset + 4) << (32 - shift) }
    }

    /// Stores the 32-bit value at byte `offset`, aligned or not. Neighbouring bytes keep what others store at the same time.
    #[inline(always)]
    pub fn store_u32(&self, offset: usize, value: u32) {
        self.put_u32(offset, value);
        self.mark(offset, 4);
    }

    #[inline(always)]
    fn put_u32(&self, offset: usize, value: u32) {
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
    fn put_u16(&self, offset: usize, value: u16) {
        if offset % 4 == 3 {
            let [low, high] = value.to_le_bytes();
            self.put_u8(offset, low);
            self.put_u8(offset + 1, high);
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
    fn put_u8(&self, offset: usize, value: u8) {
        let shift = offset % 4 * 8;
        self.set_bits(offset, 0xff << shift, u32::from(value) << shift);
    }

    /// Returns the 64-bit value at byte `offset`; read atomically if aligned.
    #[inline(always)]
    pub fn load_u64(&self, offset: usize) -> u64 {
        match self.pairs.get(offset / 8).filter(|_| offset.is_multiple_of(8)) {
            Some(pair) => words::in_order(pair.load(Ordering::Relaxed)),
            None => self.load_pair(offset),
        }
    }

    /// Stores the 64-bit value at byte `offset`; atomically if aligned.
    #[inline(always)]
    pub fn store_u64(&self, offset: usize, value: u64) {
        match self.pairs.get(offset / 8).filter(|_| offset.is_multiple_of(8)) {
            Some(pair) => pair.store(words::in_order(value), Ordering::Relaxed),
            None => self.put_pair(offset, value),
        }
        self.mark(offset, 8);
    }

    fn load_pair(&self, offset: usize) -> u64 {
        u64::from(self.load_u32(offset)) | u64::from(self.load_u32(offset + 4)) << 32
    }

    fn put_pair(&self, offset: usize, value: u64) {
        self.put_u32(offset, value as u32);
        self.put_u32(offset + 4, (value >> 32) as u32);
    }

    /// Loads consecutive 32-bit words from byte `offset` on, aligned or not.
    #[inline(always)]
    pub fn load_words(&self, offset: usize, out: &mut [u32]) {
        if offset.is_multiple_of(4) {
            return load_each(self.words().get(offset / 4..).unwrap_or_default(), out);
        }
        for (index, word) in out.iter_mut().enumerate() {
            *word = self.load_u32(offset + index * 4);
        }
    }

    /// Stores consecutive 32-bit words from byte `offset` on, aligned or not.
    #[inline(always)]
    pub fn store_words(&self, offset: usize, values: &[u32]) {
        if offset.is_multiple_of(4) {
            store_each(self.words().get(offset / 4..).unwrap_or_default(), values);
        } else {
            for (index, &value) in values.iter().enumerate() {
                self.put_u32(offset + index * 4, value);
            }
        }
        self.mark(offset, values.len() * 4);
    }

    /// Copies bytes from `offset` on into `out`. The caller has checked the range.
    pub fn read(&self, mut offset: usize, mut out: &mut [u8]) {
        while !out.is_empty() {
            if offset.is_multiple_of(8) && out.len() >= 8 {
                let (chunks, rest) = out.as_chunks_mut::<8>();
                let pairs = self.pairs.get(offset / 8..).unwrap_or_default();
                words::load_pairs(pairs, chunks);
                offset += chunks.len() * 8;
                out = rest;
            }
            let len = piece(offset, out.len());
            let (piece, rest) = out.split_at_mut(len);
            match len {
                4 => piece.copy_from_slice(&self.load_u32(offset).to_le_bytes()),
                2 => piece.copy_from_slice(&self.load_u16(offset).to_le_bytes()),
                1 => piece.fill(self.load_u8(offset)),
                _ => {}
            }
            offset += len;
            out = rest;
        }
    }

    /// Copies `bytes` to `offset` on. The caller has checked the range.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        self.write_by(Route::Cache, offset, bytes);
    }

    /// Copies `bytes` to `offset` on, by this route. The caller has checked the range.
    pub fn write_by(&self, route: Route, offset: usize, bytes: &[u8]) {
        self.put(route, offset, bytes);
        self.mark(offset, bytes.len());
    }

    /// Copies `len_bytes` bytes of another block, from `from` on, to `offset` on, by this route. The caller has checked both ranges, which
    /// do not overlap.
    pub fn copy_by(&self, route: Route, offset: usize, source: &Self, from: usize, len_bytes: usize) {
        /// Bytes on their way from one block to another where no vectors can take them.
        const PIECE_BYTES: usize = 4096;
        let mut done = 0;
        while done < len_bytes {
            let (to, at, left) = (offset + done, from + done, len_bytes - done);
            if to.is_multiple_of(8) && at.is_multiple_of(8) && left >= 8 {
                let pairs = |from: usize| from / 8..from / 8 + left / 8;
                let (into, out_of) = (self.pairs.get(pairs(to)), source.pairs.get(pairs(at)));
                words::copy_pairs(into.unwrap_or_default(), out_of.unwrap_or_default(), route);
                done += left / 8 * 8;
                continue;
            }
            // Up to where both begin a pair, if they do at the same time.
            let most = if to % 8 == at % 8 { (8 - to % 8) % 8 } else { PIECE_BYTES };
            let mut piece = [0; PIECE_BYTES];
            let piece = &mut piece[..if most == 0 { left } else { left.min(most) }];
            source.read(at, piece);
            self.put(route, to, piece);
            done += piece.len();
        }
        self.mark(offset, len_bytes);
    }

    fn put(&self, route: Route, mut offset: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if offset.is_multiple_of(8) && bytes.len() >= 8 {
                let (chunks, rest) = bytes.as_chunks::<8>();
                let pairs = self.pairs.get(offset / 8..).unwrap_or_default();
                words::store_pairs(pairs, chunks, route);
                offset += chunks.len() * 8;
                bytes = rest;
            }
            let len = piece(offset, bytes.len());
            match *bytes {
                [a, b, c, d, ..] if len == 4 => self.put_u32(offset, u32::from_le_bytes([a, b, c, d])),
                [a, b, ..] if len == 2 => self.put_u16(offset, u16::from_le_bytes([a, b])),
                [byte, ..] => self.put_u8(offset, byte),
                [] => {}
            }
            offset += len;
            bytes = bytes.get(len..).unwrap_or_default();
        }
    }
}

/// Returns the largest access that `len` bytes at `offset` allow: 4, 2, 1, or 0 bytes if none are left.
fn piece(offset: usize, len: usize) -> usize {
    [4, 2, 1].into_iter().find(|&size| offset.is_multiple_of(size) && len >= size).unwrap_or(0)
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Block")
            .field("base", &format_args!("{:#x}", self.base))
            .field("len_bytes", &self.len_bytes)
            .finish_non_exhaustive()
    }
}

/// A snapshot of one context's address space.
///
/// It is made for one time slice of a kernel (or one copy) and used by one thread: memory that is freed meanwhile stays
/// readable until the snapshot goes; memory that is allocated meanwhile is in the next one, unless the space
/// [has newer maps](Self::with_newer).
#[derive(Debug)]
pub struct Space {
    map: Arc<Map>,
    /// The launch's own block (kernarg segment, dispatch packet), outside the map so that a launch costs no allocation there.
    launch: Arc<Block>,
    /// Where there are newer maps than `map`, and those that were needed.
    newer: Option<Arc<dyn Newer>>,
    later: OnceLock<Box<Later>>,
}

/// Has the page table of a context as it is now. A kernel that allocates memory accesses it at once, from any wave.
pub trait Newer: Send + Sync {
    /// Returns the current page table.
    fn newer(&self) -> Arc<Map>;
}

impl fmt::Debug for dyn Newer + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Newer")
    }
}

/// A page table that an access needed after the snapshot, and the next such one.
#[derive(Debug)]
struct Later {
    map: Arc<Map>,
    next: OnceLock<Box<Self>>,
}

/// Returns the block of a page table in which `len_bytes` bytes at `addr` are, and the offset in it.
fn find_in(map: &Map, addr: u64, len_bytes: usize) -> Option<(&Block, usize)> {
    let block = map.block(addr)?;
    Some((block, block.offset(addr, len_bytes)?))
}

impl Space {
    /// Creates a snapshot of `map` that also contains `launch`.
    pub fn new(map: Arc<Map>, launch: Arc<Block>) -> Self {
        Self { map, launch, newer: None, later: OnceLock::new() }
    }

    /// Lets the space find memory that is allocated after the snapshot, too.
    #[must_use]
    pub fn with_newer(self, newer: Option<Arc<dyn Newer>>) -> Self {
        Self { newer, ..self }
    }

    /// Creates an address space of a single block, for tests of the interpreter.
    pub fn of_block(block: Block) -> Self {
        Self::new(Arc::new(Map::default()), Arc::new(block))
    }

    /// Returns the code that the instruction at address `pc` is part of, if any: that of any loaded module.
    pub(crate) fn program(&self, pc: u64) -> Option<&Program> {
        self.map.block(pc).unwrap_or(&self.launch).program(pc)
    }

    /// Returns the block in which a kernel may access `len_bytes` bytes at `addr`, and the offset in it.
    #[inline]
    pub fn find(&self, addr: u64, len_bytes: usize) -> Result<(&Block, usize), BadAddress> {
        let block = match self.map.paged(addr) {
            Some(block) => block,
            None => &self.launch,
        };
        match block.offset(addr, len_bytes) {
            Some(offset) => Ok((block, offset)),
            None => self.find_foreign(addr, len_bytes),
        }
    }

    /// Does the same for what is neither in the page table nor the launch's.
    #[cold]
    #[inline(never)]
    fn find_foreign(&self, addr: u64, len_bytes: usize) -> Result<(&Block, usize), BadAddress> {
        let found = self.map.foreign(addr).and_then(|block| Some((&**block, block.offset(addr, len_bytes)?)));
        let found = found.or_else(|| self.find_later(addr, len_bytes));
        found.ok_or(BadAddress { addr, len_bytes: len_bytes as u64 })
    }

    /// Does the same for what may have been allocated after the snapshot.
    fn find_later(&self, addr: u64, len_bytes: usize) -> Option<(&Block, usize)> {
        let newer = self.newer.as_ref()?;
        let (mut last, mut next) = (&self.map, &self.later);
        while let Some(later) = next.get() {
            if let Some(found) = find_in(&later.map, addr, len_bytes) {
                return Some(found);
            }
            (last, next) = (&later.map, &later.next);
        }
        let map = newer.newer();
        if Arc::ptr_eq(&map, last) {
            return None;
        }
        let later = next.get_or_init(|| Box::new(Later { map, next: OnceLock::new() }));
        find_in(&later.map, addr, len_bytes)
    }

    /// Returns a cursor that remembers the block of the last access, for loops over lanes.
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

/// Defines the accesses of [`Cursor`], and the same for a [`Space`] that is accessed rarely.
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

/// A cursor in a [`Space`] that is fast while accesses stay in one block.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'s> {
    space: &'s Space,
    block: &'s Block,
}

impl<'s> Cursor<'s> {
    /// Returns the block in which a kernel may access `len_bytes` bytes at `addr`, and the offset in it.
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
    /// Loads 64 bits, aligned or not; atomically if aligned.
    fn load_u64(addr) -> u64, 8, |block, offset| Ok(block.load_u64(offset));
    /// Stores a byte without changing its neighbours, which other threads may store at the same time.
    fn store_u8(addr, value: u8) -> (), 1, |block, offset| {
        block.put_u8(offset, value);
        block.mark(offset, 1);
        Ok(())
    };
    /// Stores 16 bits, aligned or not.
    fn store_u16(addr, value: u16) -> (), 2, |block, offset| {
        block.put_u16(offset, value);
        block.mark(offset, 2);
        Ok(())
    };
    /// Stores 32 bits, aligned or not.
    fn store_u32(addr, value: u32) -> (), 4, |block, offset| { block.store_u32(offset, value); Ok(()) };
    /// Stores 64 bits, aligned or not; atomically if aligned.
    fn store_u64(addr, value: u64) -> (), 8, |block, offset| { block.store_u64(offset, value); Ok(()) };
    /// Loads consecutive 32-bit words, aligned or not; aligned pairs are loaded atomically.
    fn load_words(addr, out: &mut [u32]) -> (), out.len() * 4, |block, offset| { block.load_words(offset, out); Ok(()) };
    /// Stores consecutive 32-bit words, aligned or not; aligned pairs are stored atomically.
    fn store_words(addr, words: &[u32]) -> (), words.len() * 4, |block, offset| { block.store_words(offset, words); Ok(()) };
    /// Replaces the 32-bit value at an aligned address by the result of `update`, atomically, and returns the old value.
    /// `update` may run more than once. A misaligned address faults, as on the hardware.
    fn fetch_update_u32<F: UpdateU32>(addr, update: F) -> u32, 4, |block, offset| {
        let word = block.words().get(offset / 4).filter(|_| offset % 4 == 0);
        let word = word.ok_or(BadAddress { addr, len_bytes: 4 })?;
        let (Ok(old) | Err(old)) = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| Some(update(old)));
        block.mark(offset, 4);
        Ok(old)
    };
    /// Replaces the 64-bit value at an aligned address by the result of `update`, atomically, and returns the old value.
    /// `update` may run more than once. A misaligned address faults.
    fn fetch_update_u64<F: UpdateU64>(addr, update: F) -> u64, 8, |block, offset| {
        let pair = block.pairs.get(offset / 8).filter(|_| offset % 8 == 0);
        let pair = pair.ok_or(BadAddress { addr, len_bytes: 8 })?;
        let update = |old| Some(words::in_order(update(words::in_order(old))));
        let (Ok(old) | Err(old)) = pair.fetch_update(Ordering::AcqRel, Ordering::Acquire, update);
        block.mark(offset, 8);
        Ok(words::in_order(old))
    };
}

/// A function from the old to the new value of a 32-bit atomic.
pub trait UpdateU32: Fn(u32) -> u32 {}
impl<F: Fn(u32) -> u32> UpdateU32 for F {}

/// A function from the old to the new value of a 64-bit atomic.
pub trait UpdateU64: Fn(u64) -> u64 {}
impl<F: Fn(u64) -> u64> UpdateU64 for F {}
