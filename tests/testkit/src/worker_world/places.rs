//! What a client may place and has placed, page by page.

use hipr_proto::{HipError, PLACE_PAGE_BYTES};
use hipr_worker::device::script::Script;

const PAGES: usize = (Script::WINDOW_BYTES / PLACE_PAGE_BYTES) as usize;

/// A page of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Page {
    Free,
    /// Part of the memory that begins at this page, or the one behind it.
    Of(usize),
    /// Not used again.
    Gone,
}

/// A session's lease.
#[derive(Debug)]
pub struct Places {
    /// Bytes that are left.
    pub bytes: u64,
    /// Allocations that are left.
    pub allocations: u64,
    start: u64,
    /// Whether there is a lease, and with it a window.
    is_granted: bool,
    pages: [Page; PAGES],
}

impl Places {
    /// Creates the lease of the session with context number `context`, which has nothing yet.
    pub fn new(context: usize) -> Self {
        let start = Script::window(context).start;
        Self { bytes: 0, allocations: 0, start, is_granted: false, pages: [Page::Free; PAGES] }
    }

    /// Returns the address of a page of the window, or of one behind it.
    pub fn address(&self, page: u64) -> u64 {
        self.start + page * PLACE_PAGE_BYTES
    }

    /// Returns the address of the first page of the window from which `size` bytes can be placed.
    pub fn free_address(&self, size: u64) -> Option<u64> {
        let fits = |page: &u64| self.span(self.address(*page), size).is_some();
        (0..PAGES as u64).find(fits).map(|page| self.address(page))
    }

    /// Adds to the lease.
    pub fn grant(&mut self, bytes: u64, allocations: u64) {
        self.is_granted = true;
        self.bytes += bytes;
        self.allocations += allocations;
    }

    /// Returns the pages that memory takes, if they are free.
    fn span(&self, ptr: u64, size: u64) -> Option<std::ops::Range<usize>> {
        let offset = ptr.checked_sub(self.start)?;
        if !offset.is_multiple_of(PLACE_PAGE_BYTES) || size == 0 || !self.is_granted {
            return None;
        }
        let first = usize::try_from(offset / PLACE_PAGE_BYTES).ok()?;
        let count = usize::try_from(size.div_ceil(PLACE_PAGE_BYTES)).ok()?;
        let span = first..first.checked_add(count)?.checked_add(1)?;
        self.pages.get(span.clone())?.iter().all(|page| *page == Page::Free).then_some(span)
    }

    /// Checks whether memory can be placed.
    pub fn check(&self, ptr: u64, size: u64) -> Result<(), HipError> {
        self.span(ptr, size).ok_or(HipError::INVALID_VALUE)?;
        if size > self.bytes || self.allocations == 0 { Err(HipError::OUT_OF_MEMORY) } else { Ok(()) }
    }

    /// Places memory.
    pub fn place(&mut self, ptr: u64, size: u64) {
        if let Some(span) = self.span(ptr, size) {
            let first = span.start;
            self.pages.iter_mut().take(span.end).skip(first).for_each(|page| *page = Page::Of(first));
            self.bytes -= size;
            self.allocations -= 1;
        }
    }

    /// Returns whether memory that begins at an address was placed.
    pub fn has(&self, ptr: u64) -> bool {
        self.first(ptr).is_some()
    }

    fn first(&self, ptr: u64) -> Option<usize> {
        let page = usize::try_from(ptr.checked_sub(self.start)? / PLACE_PAGE_BYTES).ok()?;
        self.pages.get(page).filter(|of| **of == Page::Of(page)).map(|_| page)
    }

    /// Frees memory of `size` bytes. If it comes back, the lease has it again.
    pub fn free(&mut self, ptr: u64, size: u64, comes_back: bool) {
        let Some(first) = self.first(ptr) else { return };
        let now = if comes_back { Page::Free } else { Page::Gone };
        self.pages.iter_mut().filter(|page| **page == Page::Of(first)).for_each(|page| *page = now);
        if comes_back {
            self.bytes += size;
            self.allocations += 1;
        }
    }

    /// Checks whether so much is unused.
    pub fn check_return(&self, bytes: u64, allocations: u64) -> Result<(), HipError> {
        let has = bytes <= self.bytes && allocations <= self.allocations;
        if has { Ok(()) } else { Err(HipError::INVALID_VALUE) }
    }

    /// Takes unused bytes and allocations out of the lease.
    pub fn give_back(&mut self, bytes: u64, allocations: u64) {
        self.bytes -= bytes;
        self.allocations -= allocations;
    }
}
