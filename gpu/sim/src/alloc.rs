//! Allocation of device memory: addresses of one context, bytes of the whole device.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hipr_proto::{HipError, HipResult};

use crate::name::Name;
use hipr_isa::map::{FIRST_ADDRESS, Map, PAGE_BYTES, PAGES, page_count};
use hipr_isa::mem::Block;

/// The device memory and the addresses that all contexts share.
#[derive(Debug)]
pub(crate) struct Budget {
    total_bytes: u64,
    used_bytes: AtomicU64,
    next_page: AtomicU64,
}

impl Budget {
    pub(crate) fn new(total_bytes: u64) -> Arc<Self> {
        Arc::new(Self { total_bytes, used_bytes: AtomicU64::new(0), next_page: AtomicU64::new(0) })
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    pub(crate) fn free_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.used_bytes.load(Ordering::Relaxed))
    }

    fn reserve(self: &Arc<Self>, bytes: u64) -> HipResult<Reservation> {
        let add = |used: u64| used.checked_add(bytes).filter(|&used| used <= self.total_bytes);
        self.used_bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .map_err(|_| HipError::OUT_OF_MEMORY)?;
        Ok(Reservation { budget: Arc::clone(self), bytes })
    }

    /// Returns where to search for free pages: behind the last allocation of any context.
    fn next_place(&self, pages: u64) -> u64 {
        let place = |page: u64| if page.saturating_add(pages) <= PAGES { page } else { 0 };
        let next = |page| Some(place(page).saturating_add(pages));
        let before = self.next_page.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        place(before.unwrap_or(0))
    }
}

/// A reserved part of the budget, released when dropped.
#[derive(Debug)]
struct Reservation {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Memory allocated by one context, which others may share.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) block: Arc<Block>,
    /// The name by which other contexts find it.
    pub(crate) name: Name,
    _reservation: Reservation,
}

/// One context's allocations.
///
/// Addresses are given out upwards and start again from the bottom only at the end of the 16 TiB window, so that a freed
/// address stays invalid as long as possible. The contexts of a device take turns in one window: what one of them lends has the
/// same address for the borrower. The page after an allocation is never used.
#[derive(Debug)]
pub(crate) struct Allocator {
    budget: Arc<Budget>,
    map: Arc<Map>,
    /// Allocations by their first page.
    live: BTreeMap<u64, Allocation>,
}

#[derive(Debug)]
struct Allocation {
    pages: u64,
    memory: Arc<Memory>,
    /// Whether a command will free it: it is still mapped, but the program may no longer use it.
    freeing: bool,
    is_borrowed: bool,
}

impl Allocator {
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        Self { budget, map: Arc::default(), live: BTreeMap::new() }
    }

    /// Returns the current page table.
    pub(crate) fn snapshot(&self) -> Arc<Map> {
        Arc::clone(&self.map)
    }

    /// Allocates `len_bytes` (more than 0) zeroed bytes.
    ///
    /// # Errors
    /// `INVALID_VALUE` for 0 bytes; `OUT_OF_MEMORY` when the device's or the host's memory does not suffice.
    pub(crate) fn allocate(&mut self, len_bytes: u64) -> HipResult<Arc<Block>> {
        if len_bytes == 0 {
            return Err(HipError::INVALID_VALUE);
        }
        let reservation = self.budget.reserve(len_bytes)?;
        let pages = page_count(len_bytes) + 1;
        let page = self.find_pages(pages).ok_or(HipError::OUT_OF_MEMORY)?;
        let block =
            Block::new(FIRST_ADDRESS + page * PAGE_BYTES, len_bytes).ok_or(HipError::OUT_OF_MEMORY)?;
        let block = Arc::new(block);
        let memory = Memory { block: Arc::clone(&block), name: Name::default(), _reservation: reservation };
        self.map_at(page, pages, Arc::new(memory), false);
        Ok(block)
    }

    fn map_at(&mut self, page: u64, pages: u64, memory: Arc<Memory>, is_borrowed: bool) {
        Arc::make_mut(&mut self.map).insert(&memory.block);
        self.live.insert(page, Allocation { pages, memory, freeing: false, is_borrowed });
    }

    /// Returns the first of `pages` free pages, preferably behind the last allocation.
    fn find_pages(&self, pages: u64) -> Option<u64> {
        let next = self.budget.next_place(pages);
        self.gap(next, PAGES, pages).or_else(|| self.gap(0, next, pages))
    }

    /// Returns the allocation that starts at `ptr`, to be shared.
    ///
    /// # Errors
    /// `INVALID_VALUE` if this context has none there, or has it from another.
    pub(crate) fn lendable(&self, ptr: u64) -> HipResult<&Arc<Memory>> {
        let live = Self::page_of(ptr).and_then(|page| self.live.get(&page));
        let own = live.filter(|allocation| !allocation.freeing && !allocation.is_borrowed);
        own.map(|allocation| &allocation.memory).ok_or(HipError::INVALID_VALUE)
    }

    /// Maps shared memory of another context at the same address. It is freed like the context's own.
    ///
    /// # Errors
    /// `INVALID_CONTEXT` if it is mapped here already; `OUT_OF_MEMORY` if something else is there, which needs 16 TiB of addresses
    /// to have been given out meanwhile.
    pub(crate) fn borrow(&mut self, memory: Arc<Memory>) -> HipResult<Arc<Block>> {
        let block = Arc::clone(&memory.block);
        let page = Self::page_of(block.base()).ok_or(HipError::INVALID_VALUE)?;
        let pages = page_count(block.len_bytes()) + 1;
        if self.live.get(&page).is_some_and(|live| Arc::ptr_eq(&live.memory, &memory)) {
            return Err(HipError::INVALID_CONTEXT);
        }
        if self.gap(page, PAGES.min(page + pages), pages) != Some(page) {
            return Err(HipError::OUT_OF_MEMORY);
        }
        self.map_at(page, pages, memory, true);
        Ok(block)
    }

    fn gap(&self, from: u64, to: u64, pages: u64) -> Option<u64> {
        let before = self.live.range(..from).next_back();
        let mut start = before.map_or(from, |(&page, allocation)| from.max(page + allocation.pages));
        for (&page, allocation) in self.live.range(from..to) {
            if page.checked_sub(start)? >= pages {
                return Some(start);
            }
            start = page + allocation.pages;
        }
        (to.checked_sub(start)? >= pages).then_some(start)
    }

    fn page_of(ptr: u64) -> Option<u64> {
        let offset = ptr.checked_sub(FIRST_ADDRESS)?;
        offset.is_multiple_of(PAGE_BYTES).then_some(offset / PAGE_BYTES)
    }

    /// Marks the allocation that starts at `ptr` as being freed, so that it cannot be freed twice.
    ///
    /// # Errors
    /// `INVALID_VALUE` if no allocation starts there.
    pub(crate) fn start_free(&mut self, ptr: u64) -> HipResult<()> {
        let page = Self::page_of(ptr).ok_or(HipError::INVALID_VALUE)?;
        match self.live.get_mut(&page) {
            Some(allocation) if !allocation.freeing => {
                allocation.freeing = true;
                Ok(())
            }
            _ => Err(HipError::INVALID_VALUE),
        }
    }

    /// Returns whether an allocation starts at `ptr` that is not being freed.
    pub(crate) fn owns(&self, ptr: u64) -> bool {
        let live = Self::page_of(ptr).and_then(|page| self.live.get(&page));
        live.is_some_and(|allocation| !allocation.freeing)
    }

    /// Unmaps the allocation that starts at `ptr`. Its memory is released when the returned block, the last snapshot and
    /// the last command that uses it are dropped.
    pub(crate) fn finish_free(&mut self, ptr: u64) -> Option<Arc<Block>> {
        let allocation = Self::page_of(ptr).and_then(|page| self.live.remove(&page))?;
        Arc::make_mut(&mut self.map).remove(&allocation.memory.block);
        Some(Arc::clone(&allocation.memory.block))
    }

    /// Unmaps everything.
    pub(crate) fn clear(&mut self) -> Vec<Arc<Block>> {
        self.map = Arc::default();
        let live = std::mem::take(&mut self.live).into_values();
        live.map(|allocation| Arc::clone(&allocation.memory.block)).collect()
    }

    /// Returns the block that contains `len_bytes` bytes from `ptr` on.
    pub(crate) fn block(&self, ptr: u64, len_bytes: u64) -> Option<Arc<Block>> {
        let block = self.map.block(ptr)?;
        block.exact_offset(ptr, len_bytes)?;
        Some(Arc::clone(block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocator(total_bytes: u64) -> Allocator {
        Allocator::new(Budget::new(total_bytes))
    }

    #[test]
    fn allocations_are_aligned_and_apart() {
        let mut allocator = allocator(1 << 30);
        let mut end = FIRST_ADDRESS;
        for len in [1, 255, PAGE_BYTES - 1, PAGE_BYTES, PAGE_BYTES + 1, 7] {
            let block = allocator.allocate(len).unwrap();
            assert!(block.base().is_multiple_of(256));
            assert!(block.base() >= end);
            end = block.base() + len + 4096;
        }
    }

    #[test]
    fn a_freed_address_is_not_used_again_at_once() {
        let mut allocator = allocator(1 << 20);
        let first = allocator.allocate(64).unwrap().base();
        for _ in 0..1000 {
            let block = allocator.allocate(1 << 20 >> 1).unwrap().base();
            assert_ne!(block, first);
            allocator.start_free(block).unwrap();
            assert_eq!(allocator.start_free(block), Err(HipError::INVALID_VALUE));
            allocator.finish_free(block);
            assert!(allocator.block(block, 1).is_none());
        }
    }

    #[test]
    fn the_window_wraps_around_what_is_live() {
        let mut allocator = allocator(1 << 20);
        let kept = allocator.allocate(64).unwrap().base();
        allocator.budget.next_page.store(PAGES - 1, Ordering::Relaxed);
        let wrapped = allocator.allocate(64).unwrap().base();
        assert_eq!(wrapped, kept + 2 * PAGE_BYTES);
        assert!(allocator.find_pages(PAGES).is_none());
    }

    #[test]
    fn what_is_lent_has_one_address_and_lives_until_the_last_lets_go() {
        let mut lender = allocator(1000);
        let mut borrower = Allocator::new(Arc::clone(&lender.budget));
        let own = borrower.allocate(10).unwrap().base();
        let base = lender.allocate(600).unwrap().base();
        assert_ne!(base, own, "the contexts of a device take turns");
        let memory = Arc::clone(lender.lendable(base).unwrap());
        assert_eq!(lender.borrow(Arc::clone(&memory)).unwrap_err(), HipError::INVALID_CONTEXT);
        assert_eq!(borrower.borrow(memory).unwrap().base(), base);
        assert!(borrower.lendable(base).is_err(), "it is not the borrower's to lend");
        borrower.block(base, 600).unwrap().store_u32(8, 77);
        assert_eq!(lender.block(base, 600).unwrap().load_u32(8), 77);
        lender.finish_free(base);
        assert!(lender.block(base, 1).is_none());
        assert_eq!(borrower.block(base, 600).unwrap().load_u32(8), 77);
        assert_eq!(borrower.budget.free_bytes(), 390, "it is in use");
        borrower.finish_free(base);
        assert_eq!(borrower.budget.free_bytes(), 990);
    }

    #[test]
    fn memory_is_accounted_until_the_last_byte_is_back() {
        let mut allocator = allocator(1000);
        assert_eq!(allocator.allocate(0).unwrap_err(), HipError::INVALID_VALUE);
        let block = allocator.allocate(600).unwrap().base();
        assert_eq!(allocator.allocate(600).unwrap_err(), HipError::OUT_OF_MEMORY);
        assert_eq!(allocator.budget.free_bytes(), 400);
        allocator.finish_free(block);
        assert_eq!(allocator.budget.free_bytes(), 1000);
        assert_eq!(allocator.allocate(u64::MAX).unwrap_err(), HipError::OUT_OF_MEMORY);
    }

    #[test]
    fn ranges_are_checked_to_the_byte() {
        let mut allocator = allocator(1 << 20);
        let base = allocator.allocate(100).unwrap().base();
        assert!(allocator.block(base + 40, 60).is_some());
        assert!(allocator.block(base + 40, 61).is_none());
        assert!(allocator.block(base + 40, u64::MAX).is_none());
        assert!(allocator.block(0, 1).is_none());
    }
}
