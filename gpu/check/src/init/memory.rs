//! Which bytes of device memory nobody wrote.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use hipr_device::{MemoryKind, Region};
use hipr_sim::watch::{Allocated, Moved};

use crate::lock::{Lock, lock};

/// Bytes of memory whose marks are kept together.
const PAGE_BYTES: u64 = 4096;
const PAGE_WORDS: usize = PAGE_BYTES as usize / 64;

/// The most bytes between the first and the last lane's accesses that are looked at at once.
const SPAN_MAX_BYTES: u64 = 256 * PAGE_BYTES;

/// The states of a page: nothing of it is written, some is, all is.
const NONE: u8 = 0;
const SOME: u8 = 1;
const ALL: u8 = 2;

/// Iterates over the words with the bits from `start` to `end`, each with a mask of those bits.
pub(super) fn masks(start: u64, end: u64) -> impl Iterator<Item = (usize, u64)> {
    let mut at = start;
    std::iter::from_fn(move || {
        let (word, first) = ((at / 64) as usize, at % 64);
        let count = (64 - first).min(end.checked_sub(at).filter(|count| *count > 0)?);
        at += count;
        Some((word, (u64::MAX >> (64 - count)) << first))
    })
}

/// The marks of one allocation, whose first byte begins a page.
#[derive(Debug)]
struct Allocation {
    base: u64,
    len_bytes: u64,
    states: Box<[AtomicU8]>,
    /// The written bytes of pages in which some are, a bit each.
    written: Lock<HashMap<u64, Box<[u64; PAGE_WORDS]>>>,
}

impl Allocation {
    fn new(base: u64, len_bytes: u64) -> Self {
        let pages = len_bytes.div_ceil(PAGE_BYTES) as usize;
        let states = (0..pages).map(|_| AtomicU8::new(NONE)).collect();
        Self { base, len_bytes, states, written: Lock::default() }
    }

    fn state(&self, page: u64) -> u8 {
        self.states.get(page as usize).map_or(ALL, |state| state.load(Ordering::Relaxed))
    }

    fn set_state(&self, page: u64, state: u8) {
        if let Some(known) = self.states.get(page as usize) {
            known.store(state, Ordering::Relaxed);
        }
    }

    /// Marks bytes from offset `start` to `end` as written, or as not.
    fn set(&self, mut start: u64, end: u64, is_written: bool) {
        let end = end.min(self.len_bytes);
        while start < end {
            let page = start / PAGE_BYTES;
            let page_end = ((page + 1) * PAGE_BYTES).min(end);
            let state = self.state(page);
            if state != if is_written { ALL } else { NONE } {
                self.set_in_page(page, start % PAGE_BYTES, page_end - page * PAGE_BYTES, is_written);
            }
            start = page_end;
        }
    }

    fn set_in_page(&self, page: u64, start: u64, end: u64, is_written: bool) {
        let len_bytes = (self.len_bytes - page * PAGE_BYTES).min(PAGE_BYTES);
        let mut written = lock(&self.written);
        let state = self.state(page);
        if start == 0 && end >= len_bytes {
            written.remove(&page);
            self.set_state(page, if is_written { ALL } else { NONE });
            return;
        }
        let fill = if state == ALL { u64::MAX } else { 0 };
        let words = written.entry(page).or_insert_with(|| Box::new([fill; PAGE_WORDS]));
        for (word, mask) in masks(start, end) {
            if is_written {
                words[word] |= mask;
            } else {
                words[word] &= !mask;
            }
        }
        let is_whole = masks(0, len_bytes).all(|(word, mask)| !words[word] & mask == 0);
        if is_whole {
            written.remove(&page);
            self.set_state(page, ALL);
        } else {
            self.set_state(page, SOME);
        }
    }

    /// Returns whether all bytes of the pages from that of offset `start` to that of the byte before `end` are written.
    fn has_whole_pages(&self, start: u64, end: u64) -> bool {
        (start / PAGE_BYTES..end.div_ceil(PAGE_BYTES)).all(|page| self.state(page) == ALL)
    }

    fn is_written(&self, offset: u64) -> bool {
        let page = offset / PAGE_BYTES;
        match self.state(page) {
            NONE => false,
            ALL => true,
            _ => {
                let at = offset % PAGE_BYTES;
                let written = lock(&self.written);
                written.get(&page).is_none_or(|words| words[(at / 64) as usize] >> (at % 64) & 1 != 0)
            }
        }
    }
}

/// The allocations that a workgroup has used last.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    version: u64,
    allocations: [Option<Arc<Allocation>>; 4],
    /// Ranges of addresses that have no marks.
    others: [(u64, u64); 2],
    next: usize,
}

/// The marks of a context's memory.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    version: AtomicU64,
    allocations: Lock<BTreeMap<u64, Arc<Allocation>>>,
}

impl Marks {
    /// Adds memory. What is only the device's begins unwritten.
    pub(crate) fn allocated(&self, memory: &Allocated) {
        if memory.kind == MemoryKind::Device && !memory.is_shared && !memory.is_of_kernels {
            let new = Arc::new(Allocation::new(memory.ptr, memory.len_bytes));
            lock(&self.allocations).insert(memory.ptr, new);
        } else {
            lock(&self.allocations).remove(&memory.ptr);
        }
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Forgets memory.
    pub(crate) fn freed(&self, ptr: u64) {
        lock(&self.allocations).remove(&ptr);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Handles bytes that are moved without a kernel.
    pub(crate) fn moved(&self, moved: &Moved) {
        match *moved {
            Moved::Write { dst } => self.each_run(&dst, |ptr, len_bytes| self.set(ptr, len_bytes, true)),
            Moved::Copy { dst, src } => self.copy(&dst, &src),
            Moved::Read { .. } => {}
        }
    }

    fn each_run(&self, region: &Region, mut each: impl FnMut(u64, u64)) {
        let mut offset = 0;
        while let Some((ptr, len_bytes)) = region.run_at(offset).filter(|(_, len_bytes)| *len_bytes > 0) {
            each(ptr, len_bytes);
            offset += len_bytes;
        }
    }

    fn copy(&self, dst: &Region, src: &Region) {
        let mut offset = 0;
        while let (Some((to, to_len)), Some((from, from_len))) = (dst.run_at(offset), src.run_at(offset)) {
            let len_bytes = to_len.min(from_len).min(PAGE_BYTES - from % PAGE_BYTES);
            if len_bytes == 0 {
                return;
            }
            match self.find(from) {
                Some(source) if source.state((from - source.base) / PAGE_BYTES) != ALL => {
                    for byte in 0..len_bytes {
                        self.set(to + byte, 1, source.is_written(from - source.base + byte));
                    }
                }
                _ => self.set(to, len_bytes, true),
            }
            offset += len_bytes;
        }
    }

    fn set(&self, ptr: u64, len_bytes: u64, is_written: bool) {
        if let Some(allocation) = self.find(ptr) {
            let start = ptr - allocation.base;
            allocation.set(start, start.saturating_add(len_bytes), is_written);
        }
    }

    fn find(&self, address: u64) -> Option<Arc<Allocation>> {
        let allocations = lock(&self.allocations);
        let (_, found) = allocations.range(..=address).next_back()?;
        (address - found.base < found.len_bytes).then(|| Arc::clone(found))
    }

    /// Returns the allocation of an address.
    #[inline]
    fn recent<'r>(&self, recent: &'r mut Recent, address: u64) -> Option<&'r Arc<Allocation>> {
        let version = self.version.load(Ordering::Acquire);
        if recent.version != version {
            *recent = Recent { version, ..Recent::default() };
        }
        let has = |known: &Option<Arc<Allocation>>| {
            known.as_ref().is_some_and(|known| address.wrapping_sub(known.base) < known.len_bytes)
        };
        if let Some(index) = recent.allocations.iter().position(has) {
            return recent.allocations[index].as_ref();
        }
        if recent.others.iter().any(|(start, end)| (*start..*end).contains(&address)) {
            return None;
        }
        let slot = recent.next;
        recent.next += 1;
        match self.find(address) {
            Some(found) => {
                let slot = slot % recent.allocations.len();
                recent.allocations[slot] = Some(found);
                recent.allocations[slot].as_ref()
            }
            None => {
                let page = address / PAGE_BYTES * PAGE_BYTES;
                recent.others[slot % 2] = (page, page + PAGE_BYTES);
                None
            }
        }
    }

    /// Returns whether all bytes from `start` to `end` are known to be written; `false` also where that takes long to find out.
    pub(crate) fn is_written(&self, recent: &mut Recent, start: u64, end: u64) -> bool {
        let Some(allocation) = self.recent(recent, start) else { return false };
        if end > allocation.base + allocation.len_bytes || end - start > SPAN_MAX_BYTES {
            return false;
        }
        allocation.has_whole_pages(start - allocation.base, end - allocation.base)
    }

    /// Marks bytes as written.
    #[inline]
    pub(crate) fn write(&self, recent: &mut Recent, address: u64, len_bytes: u64) {
        if let Some(allocation) = self.recent(recent, address) {
            let start = address - allocation.base;
            allocation.set(start, start + len_bytes, true);
        }
    }

    /// Marks a byte as not written.
    pub(crate) fn unwrite(&self, recent: &mut Recent, address: u64) {
        if let Some(allocation) = self.recent(recent, address) {
            let start = address - allocation.base;
            allocation.set(start, start + 1, false);
        }
    }

    /// Calls `each` with the offsets of the bytes that nobody wrote.
    #[inline]
    pub(crate) fn unwritten(
        &self,
        recent: &mut Recent,
        address: u64,
        len_bytes: u64,
        each: &mut dyn FnMut(u64),
    ) {
        let Some(allocation) = self.recent(recent, address) else { return };
        let start = address - allocation.base;
        if allocation.has_whole_pages(start, start + len_bytes) {
            return;
        }
        let end = len_bytes.min(allocation.len_bytes - start);
        (0..end).filter(|offset| !allocation.is_written(start + offset)).for_each(each);
    }
}
