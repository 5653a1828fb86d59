//! Allocation of device memory: addresses of one context, bytes of the device that is current.
//!
//! All devices of a context have one set of addresses, and each sees what it may reach: its own memory, that of peers to whose memory it was
//! given access, and memory of the host. What moves bytes without a kernel reaches everything.

mod mapped;

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use hipr_device::MemoryKind;
use hipr_isa::map::{FIRST_ADDRESS, Map, PAGE_BYTES, PAGES, page_count};
use hipr_isa::mem::Block;
use hipr_proto::{HipError, HipResult, PLACE_PAGE_BYTES};

use self::mapped::Mapped;
pub(crate) use self::mapped::{Changed, GRANULARITY_BYTES};
use crate::budget::{Budget, Reservation, Reserved, Window};
use crate::host_file::HostFile;
use crate::name::Name;
use crate::unused::Unused;
use crate::windows::{APART_PAGES, PLAIN_PAGES};

// What a client places has the layout of this device's own allocations.
const _: () = assert!(PLACE_PAGE_BYTES == PAGE_BYTES);

/// Memory allocated by one context, which others may share.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) block: Arc<Block>,
    /// The name by which other contexts find it.
    pub(crate) name: Name,
    reservation: Reservation,
}

/// Devices, a bit for each.
pub(crate) type Devices = u32;

/// Page tables of a context.
#[derive(Debug)]
struct Maps {
    /// What there is on any device.
    all: Arc<Map>,
    /// What each device reaches; empty if there is one device, which reaches everything.
    views: Vec<Arc<Map>>,
}

impl Maps {
    fn new(devices: usize) -> Self {
        let views = if devices > 1 { vec![Arc::default(); devices] } else { Vec::new() };
        Self { all: Arc::default(), views }
    }

    /// Inserts a block that these devices reach.
    fn insert(&mut self, block: &Arc<Block>, devices: Devices) {
        insert(Arc::make_mut(&mut self.all), block);
        let reaching = self.views.iter_mut().enumerate().filter(|(number, _)| devices >> number & 1 != 0);
        reaching.for_each(|(_, view)| insert(Arc::make_mut(view), block));
    }

    fn remove(&mut self, block: &Arc<Block>) {
        let maps = self.views.iter_mut().chain([&mut self.all]);
        maps.for_each(|map| Arc::make_mut(map).remove(block));
    }
}

/// Which devices reach memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Its own, and those that were given access to that one's memory.
    Device,
    /// All: it is the host's, or managed.
    Everywhere,
}

impl From<MemoryKind> for Reach {
    fn from(kind: MemoryKind) -> Self {
        match kind {
            MemoryKind::Device => Self::Device,
            MemoryKind::Host | MemoryKind::Managed => Self::Everywhere,
        }
    }
}

/// What a context has of one device.
#[derive(Debug)]
struct Home {
    budget: Arc<Budget>,
    reserved: Reserved,
    /// The devices whose memory it may reach.
    peers: Devices,
}

impl Home {
    fn new(budget: Arc<Budget>) -> Self {
        Self { reserved: Reserved::new(&budget), budget, peers: 0 }
    }
}

/// One context's allocations.
///
/// Addresses are given out upwards and start again from the bottom only at the end of the 8 TiB that are no windows, so that a freed
/// address stays invalid as long as possible. The contexts of a device take turns there: what one of them lends has the
/// same address for the borrower. The page after an allocation is never used. In the upper 8 TiB a context may have a window of its
/// own, where its client places memory in bytes that were reserved before.
#[derive(Debug)]
pub(crate) struct Allocator {
    homes: Vec<Home>,
    /// The device that is current.
    current: usize,
    window: Option<Window>,
    /// The pages among which allocations are that no client places.
    plain: Range<u64>,
    /// Where memory is that the client maps as well.
    file: Option<HostFile>,
    maps: Maps,
    /// Allocations by their first page.
    live: BTreeMap<u64, Allocation>,
    mapped: Mapped,
    /// The pages that nothing else may have, by the first: of allocations and of reserved addresses.
    taken: BTreeMap<u64, u64>,
}

#[derive(Debug)]
struct Allocation {
    memory: Arc<Memory>,
    /// Whether a command will free it: it is still mapped, but the program may no longer use it.
    freeing: bool,
    is_borrowed: bool,
    /// The device that has it.
    device: usize,
    reach: Reach,
}

impl Allocator {
    /// Creates the allocations of a context with memory of these devices, of which the first is current.
    pub(crate) fn new(budgets: Vec<Arc<Budget>>) -> Self {
        let (live, mapped, taken) = Default::default();
        let homes: Vec<_> = budgets.into_iter().map(Home::new).collect();
        let maps = Maps::new(homes.len());
        Self { homes, current: 0, window: None, plain: 0..PLAIN_PAGES, file: None, maps, live, mapped, taken }
    }

    /// Ends the use of this allocator; returns an empty one with the same window, whose memory no client maps.
    pub(crate) fn successor(&mut self) -> Self {
        let budgets = self.homes.iter().map(|home| Arc::clone(&home.budget)).collect();
        let plain = self.plain.clone();
        Self { window: self.window.take(), plain, current: self.current, ..Self::new(budgets) }
    }

    /// Gives addresses of one of several parts from now on, and has the window that is the same on all devices.
    pub(crate) fn keep_apart(&mut self, number: u32, parts: u32) {
        let pages = APART_PAGES / u64::from(parts.max(1));
        let start = u64::from(number) * pages;
        self.plain = start..start + pages;
        self.window = Some(self.budget().common_window());
    }

    /// Makes a device the one whose memory is allocated.
    pub(crate) fn set_current(&mut self, device: usize) {
        self.current = device;
    }

    fn home(&mut self) -> &mut Home {
        &mut self.homes[self.current]
    }

    fn budget(&self) -> &Arc<Budget> {
        &self.homes[self.current].budget
    }

    /// Returns the current page table of a device.
    pub(crate) fn snapshot(&self, device: usize) -> Arc<Map> {
        Arc::clone(self.maps.views.get(device).unwrap_or(&self.maps.all))
    }

    /// Lets the kernels of the current device reach the memory of another one, or no longer.
    ///
    /// # Errors
    /// `PEER_ACCESS_ALREADY_ENABLED`, `PEER_ACCESS_NOT_ENABLED`.
    pub(crate) fn set_peer_access(&mut self, peer: usize, is_enabled: bool) -> HipResult<()> {
        let (device, home) = (self.current, self.home());
        match (home.peers & 1 << peer != 0, is_enabled) {
            (true, true) => return Err(HipError::PEER_ACCESS_ALREADY_ENABLED),
            (false, false) => return Err(HipError::PEER_ACCESS_NOT_ENABLED),
            _ => home.peers ^= 1 << peer,
        }
        let Some(view) = self.maps.views.get_mut(device).map(Arc::make_mut) else { return Ok(()) };
        for allocation in self.live.values() {
            let block = &allocation.memory.block;
            match (allocation.device == peer && allocation.reach == Reach::Device, is_enabled) {
                (true, true) => insert(view, block),
                (true, false) => view.remove(block),
                (false, _) => {}
            }
        }
        Ok(())
    }

    /// Returns the devices that reach memory of a device.
    fn devices(&self, device: usize, reach: Reach) -> Devices {
        match reach {
            Reach::Everywhere => Devices::MAX,
            Reach::Device => {
                self.homes.iter().enumerate().fold(1 << device, |devices, (number, home)| {
                    devices | (home.peers >> device & 1) << number
                })
            }
        }
    }

    /// Allocates `len_bytes` (more than 0) zeroed bytes.
    ///
    /// # Errors
    /// `INVALID_VALUE` for 0 bytes; `OUT_OF_MEMORY` when the device's or the host's memory does not suffice.
    pub(crate) fn allocate(&mut self, len_bytes: u64, reach: Reach) -> HipResult<Arc<Block>> {
        if len_bytes == 0 {
            return Err(HipError::INVALID_VALUE);
        }
        let reservation = self.budget().reserve(len_bytes)?;
        let pages = page_count(len_bytes) + 1;
        let page = self.find_pages(pages).ok_or(HipError::OUT_OF_MEMORY)?;
        let block =
            Block::new(FIRST_ADDRESS + page * PAGE_BYTES, len_bytes).ok_or(HipError::OUT_OF_MEMORY)?;
        let block = Arc::new(block);
        let memory = Memory { block: Arc::clone(&block), name: Name::default(), reservation };
        self.map_at(page, pages, Arc::new(memory), reach, false);
        Ok(block)
    }

    /// Allocates as [`allocate`](Self::allocate) does, memory of this device.
    ///
    /// # Errors
    /// As for [`allocate`](Self::allocate).
    pub(crate) fn allocate_on(&mut self, device: usize, len_bytes: u64) -> HipResult<Arc<Block>> {
        let current = std::mem::replace(&mut self.current, device);
        let allocated = self.allocate(len_bytes, Reach::Device);
        self.current = current;
        allocated
    }

    /// Returns the addresses of the window, which is chosen when they are first asked for; an empty range if there is none left.
    pub(crate) fn window(&mut self) -> Range<u64> {
        if self.window.is_none() {
            // Memory of another context, which had a window there, may have been borrowed.
            let is_free =
                |pages: &Range<u64>| self.gap(pages.start, pages.end, pages.end - pages.start).is_some();
            self.window = self.budget().choose_window(is_free);
        }
        let pages = self.window.as_ref().map_or(0..0, |window| window.pages.clone());
        FIRST_ADDRESS + pages.start * PAGE_BYTES..FIRST_ADDRESS + pages.end * PAGE_BYTES
    }

    /// Reserves bytes of the device.
    ///
    /// # Errors
    /// `OUT_OF_MEMORY` if there are fewer.
    pub(crate) fn reserve(&mut self, bytes: u64) -> HipResult<()> {
        self.home().reserved.add(bytes)
    }

    /// Gives reserved bytes back, at most those that there are.
    pub(crate) fn unreserve(&mut self, bytes: u64) {
        self.home().reserved.give_back(bytes);
    }

    /// Allocates `len_bytes` zeroed bytes of those that are reserved at `ptr`.
    ///
    /// # Errors
    /// `INVALID_VALUE` for 0 bytes, and if the address begins no page, or its pages are not in the window or not free; `OUT_OF_MEMORY`
    /// if fewer bytes are reserved or the host has no memory.
    pub(crate) fn allocate_at(&mut self, ptr: u64, len_bytes: u64, reach: Reach) -> HipResult<()> {
        self.place(ptr, len_bytes, reach, |_| Block::new(ptr, len_bytes))
    }

    /// Creates the file for memory that the client maps as well; returns a descriptor for the client.
    ///
    /// # Errors
    /// `INVALID_VALUE` if there is one, or no window; `OUT_OF_MEMORY` if the system cannot make it.
    pub(crate) fn share(&mut self) -> HipResult<OwnedFd> {
        let window = self.window();
        if window.is_empty() || self.file.is_some() {
            return Err(HipError::INVALID_VALUE);
        }
        let file = HostFile::new(window).and_then(|file| Ok((file.descriptor()?, file)));
        let (descriptor, file) = file.map_err(|why| {
            tracing::info!("cannot make memory to share with a client: {why}");
            HipError::OUT_OF_MEMORY
        })?;
        self.file = Some(file);
        Ok(descriptor)
    }

    /// Does what [`allocate_at`](Self::allocate_at) does with the bytes that the file has for these addresses.
    ///
    /// # Errors
    /// As there; also `INVALID_VALUE` without a file, and for a length that is no multiple of 4096; `OUT_OF_MEMORY` if the client
    /// has written to more of the file than it may use.
    pub(crate) fn allocate_shared(&mut self, ptr: u64, len_bytes: u64) -> HipResult<()> {
        let room = self.home().reserved.bytes;
        let file =
            self.file.as_ref().filter(|_| len_bytes.is_multiple_of(4096)).ok_or(HipError::INVALID_VALUE)?;
        if !file.is_within(room) {
            tracing::info!("a client has written to memory that it shares and has not allocated");
            return Err(HipError::OUT_OF_MEMORY);
        }
        self.place(ptr, len_bytes, Reach::Everywhere, |file| file?.block(ptr, len_bytes))
    }

    fn place(
        &mut self,
        ptr: u64,
        len_bytes: u64,
        reach: Reach,
        block: impl FnOnce(Option<&mut HostFile>) -> Option<Block>,
    ) -> HipResult<()> {
        let page = Self::page_of(ptr).filter(|_| len_bytes > 0).ok_or(HipError::INVALID_VALUE)?;
        let pages = page_count(len_bytes) + 1;
        let window = self.window.as_ref().map_or(0..0, |window| window.pages.clone());
        if page < window.start || self.gap(page, window.end.min(page + pages), pages) != Some(page) {
            return Err(HipError::INVALID_VALUE);
        }
        if len_bytes > self.home().reserved.bytes {
            return Err(HipError::OUT_OF_MEMORY);
        }
        let block = Arc::new(block(self.file.as_mut()).ok_or(HipError::OUT_OF_MEMORY)?);
        let reservation = self.home().reserved.take(len_bytes)?;
        let memory = Memory { block, name: Name::default(), reservation };
        self.map_at(page, pages, Arc::new(memory), reach, false);
        Ok(())
    }

    fn map_at(&mut self, page: u64, pages: u64, memory: Arc<Memory>, reach: Reach, is_borrowed: bool) {
        let device = self.current;
        self.maps.insert(&memory.block, self.devices(device, reach));
        self.live.insert(page, Allocation { memory, freeing: false, is_borrowed, device, reach });
        self.taken.insert(page, pages);
    }

    /// Returns the first of `pages` free pages, preferably behind the last allocation.
    fn find_pages(&self, pages: u64) -> Option<u64> {
        let next = self.budget().next_place(pages);
        let Range { start, end } = self.plain;
        let next = start + next % (end - start);
        self.gap(next, end, pages).or_else(|| self.gap(start, next, pages))
    }

    /// Returns the allocation that starts at `ptr`, to be shared.
    ///
    /// # Errors
    /// `INVALID_VALUE` if this context has none there, has it from another, or the client maps it.
    pub(crate) fn lendable(&self, ptr: u64) -> HipResult<&Arc<Memory>> {
        let live = Self::page_of(ptr).and_then(|page| self.live.get(&page));
        let own = live.filter(|allocation| {
            !allocation.freeing && !allocation.is_borrowed && !allocation.memory.block.is_shared()
        });
        own.map(|allocation| &allocation.memory).ok_or(HipError::INVALID_VALUE)
    }

    /// Maps shared memory of another context at the same address. It is freed like the context's own.
    ///
    /// # Errors
    /// `INVALID_CONTEXT` if it is mapped here already; `OUT_OF_MEMORY` if something else is there, or may be placed there, which needs
    /// all of its addresses to have been given out once more meanwhile.
    pub(crate) fn borrow(&mut self, memory: Arc<Memory>) -> HipResult<Arc<Block>> {
        let block = Arc::clone(&memory.block);
        let page = Self::page_of(block.base()).ok_or(HipError::INVALID_VALUE)?;
        let pages = page_count(block.len_bytes()) + 1;
        if self.live.get(&page).is_some_and(|live| Arc::ptr_eq(&live.memory, &memory)) {
            return Err(HipError::INVALID_CONTEXT);
        }
        let is_ours = self.window.as_ref().is_some_and(|window| window.pages.contains(&page));
        if is_ours || self.gap(page, PAGES.min(page + pages), pages) != Some(page) {
            return Err(HipError::OUT_OF_MEMORY);
        }
        self.map_at(page, pages, memory, Reach::Device, true);
        Ok(block)
    }

    fn gap(&self, from: u64, to: u64, pages: u64) -> Option<u64> {
        let before = self.taken.range(..from).next_back();
        let mut start = before.map_or(from, |(&page, taken)| from.max(page + taken));
        for (&page, taken) in self.taken.range(from..to) {
            if page.checked_sub(start)? >= pages {
                return Some(start);
            }
            start = page + taken;
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
    /// `INVALID_VALUE` if no allocation starts there, or one that the client maps.
    pub(crate) fn start_free(&mut self, ptr: u64) -> HipResult<()> {
        let page = Self::page_of(ptr).ok_or(HipError::INVALID_VALUE)?;
        match self.live.get_mut(&page) {
            Some(allocation) if !allocation.freeing && !allocation.memory.block.is_shared() => {
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
        let allocation = self.remove(ptr)?;
        Some(self.unmap(&allocation.memory))
    }

    fn remove(&mut self, ptr: u64) -> Option<Allocation> {
        let page = Self::page_of(ptr)?;
        let allocation = self.live.remove(&page)?;
        self.taken.remove(&page);
        Some(allocation)
    }

    /// Clears the next bytes of the allocation at `ptr`, if the client maps it and nothing uses it any more; returns whether there are more.
    /// Until there are none it is not freed.
    pub(crate) fn clear_shared(&mut self, ptr: u64) -> bool {
        let live = Self::page_of(ptr).and_then(|page| self.live.get(&page));
        let block = live.map(|allocation| &allocation.memory.block).filter(|block| block.is_shared());
        block.zip(self.file.as_mut()).is_some_and(|(block, file)| file.clear(block))
    }

    /// Removes memory from the page table.
    fn unmap(&mut self, memory: &Memory) -> Arc<Block> {
        let block = Arc::clone(&memory.block);
        self.maps.remove(&block);
        if let Some(file) = self.file.as_mut().filter(|_| block.is_shared()) {
            file.forget(&block);
        }
        block
    }

    /// Does what [`finish_free`](Self::finish_free) does for memory that was never lent, and reserves its bytes again.
    pub(crate) fn finish_free_reserved(&mut self, ptr: u64) -> Option<Arc<Block>> {
        let allocation = self.remove(ptr)?;
        let block = self.unmap(&allocation.memory);
        if let Some(memory) = Arc::into_inner(allocation.memory) {
            self.homes[allocation.device].reserved.put(memory.reservation);
        }
        Some(block)
    }

    /// Unmaps everything, and gives the window and what is reserved back.
    pub(crate) fn clear(&mut self) -> Vec<Unused> {
        self.window = None;
        self.file = None;
        self.homes.iter_mut().for_each(|home| home.reserved.give_back(u64::MAX));
        self.maps = Maps::new(self.homes.len());
        self.taken.clear();
        let live = std::mem::take(&mut self.live).into_values();
        let blocks = live.map(|allocation| Unused::Block(Arc::clone(&allocation.memory.block)));
        blocks.chain(self.mapped.clear()).collect()
    }

    /// Returns the block that contains `len_bytes` bytes from `ptr` on.
    pub(crate) fn block(&self, ptr: u64, len_bytes: u64) -> Option<Arc<Block>> {
        let block = self.maps.all.block(ptr)?;
        block.exact_offset(ptr, len_bytes)?;
        Some(Arc::clone(block))
    }
}

fn insert(map: &mut Map, block: &Arc<Block>) {
    let inserted = map.insert(block);
    debug_assert_eq!(inserted, Ok(()), "the pages are free");
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    fn place(allocator: &mut Allocator, ptr: u64, len_bytes: u64) -> HipResult<()> {
        allocator.allocate_at(ptr, len_bytes, Reach::Device)
    }

    fn allocator(total_bytes: u64) -> Allocator {
        Allocator::new(Budget::of_devices(1, total_bytes))
    }

    #[test]
    fn allocations_are_aligned_and_apart() {
        let mut allocator = allocator(1 << 30);
        let mut end = FIRST_ADDRESS;
        for len in [1, 255, PAGE_BYTES - 1, PAGE_BYTES, PAGE_BYTES + 1, 7] {
            let block = allocator.allocate(len, Reach::Device).unwrap();
            assert!(block.base().is_multiple_of(256));
            assert!(block.base() >= end);
            end = block.base() + len + 4096;
        }
    }

    #[test]
    fn a_freed_address_is_not_used_again_at_once() {
        let mut allocator = allocator(1 << 20);
        let first = allocator.allocate(64, Reach::Device).unwrap().base();
        for _ in 0..1000 {
            let block = allocator.allocate(1 << 20 >> 1, Reach::Device).unwrap().base();
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
        let kept = allocator.allocate(64, Reach::Device).unwrap().base();
        allocator.budget().common.next_page.store(PLAIN_PAGES - 1, Ordering::Relaxed);
        let wrapped = allocator.allocate(64, Reach::Device).unwrap().base();
        assert_eq!(wrapped, kept + 2 * PAGE_BYTES);
        assert!(allocator.find_pages(PAGES).is_none());
    }

    #[test]
    fn what_is_lent_has_one_address_and_lives_until_the_last_lets_go() {
        let mut lender = allocator(1000);
        let mut borrower = Allocator::new(vec![Arc::clone(lender.budget())]);
        let own = borrower.allocate(10, Reach::Device).unwrap().base();
        let base = lender.allocate(600, Reach::Device).unwrap().base();
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
        assert_eq!(borrower.budget().free_bytes(), 390, "it is in use");
        borrower.finish_free(base);
        assert_eq!(borrower.budget().free_bytes(), 990);
    }

    #[test]
    fn what_is_placed_lies_in_a_window_and_takes_what_was_reserved() {
        let mut allocator = allocator(1000);
        assert_eq!(place(&mut allocator, FIRST_ADDRESS, 1), Err(HipError::INVALID_VALUE), "it has no window");
        let window = allocator.window();
        assert_eq!(allocator.window(), window);
        assert_eq!(window.end - window.start, 1 << 40);
        let (start, last) = (window.start, window.end - PAGE_BYTES);
        assert_eq!(place(&mut allocator, start, 1), Err(HipError::OUT_OF_MEMORY), "nothing is reserved");
        assert_eq!(allocator.reserve(1001), Err(HipError::OUT_OF_MEMORY));
        allocator.reserve(700).unwrap();
        assert_eq!(allocator.budget().free_bytes(), 1000, "what is reserved is free");
        assert_eq!(allocator.budget().available_bytes(), 300, "and nobody can have it");
        assert_eq!(allocator.allocate(301, Reach::Device).unwrap_err(), HipError::OUT_OF_MEMORY);
        place(&mut allocator, start + 2 * PAGE_BYTES, 300).unwrap();
        for ptr in
            [start - PAGE_BYTES, start + 1, start + 2 * PAGE_BYTES, start + 3 * PAGE_BYTES, last, window.end]
        {
            assert_eq!(place(&mut allocator, ptr, 1), Err(HipError::INVALID_VALUE), "{ptr:#x}");
        }
        assert_eq!(place(&mut allocator, start, 0), Err(HipError::INVALID_VALUE));
        assert_eq!(place(&mut allocator, start, PAGE_BYTES + 1), Err(HipError::INVALID_VALUE));
        assert_eq!(place(&mut allocator, start, 401), Err(HipError::OUT_OF_MEMORY));
        place(&mut allocator, start, 400).unwrap();
        assert_eq!((allocator.budget().free_bytes(), allocator.budget().available_bytes()), (300, 300));
        allocator.finish_free_reserved(start);
        assert_eq!((allocator.budget().free_bytes(), allocator.budget().available_bytes()), (700, 300));
        allocator.finish_free(start + 2 * PAGE_BYTES);
        assert_eq!((allocator.budget().free_bytes(), allocator.budget().available_bytes()), (1000, 600));
        allocator.unreserve(u64::MAX);
        assert_eq!(allocator.budget().available_bytes(), 1000, "no more than there is");
    }

    #[test]
    fn parts_of_addresses_are_apart_and_have_one_window() {
        let budgets = || Budget::of_devices(1, 1 << 40);
        let mut parts: Vec<_> = (0..3).map(|_| Allocator::new(budgets())).collect();
        let mut bases = Vec::new();
        for (number, part) in (0..).zip(&mut parts) {
            part.keep_apart(number, 3);
            let mut own: Vec<u64> =
                (0..4).map(|_| part.allocate(PAGE_BYTES, Reach::Device).expect("memory").base()).collect();
            assert!(
                own.windows(2).all(|pair| pair[0] < pair[1]),
                "a freed address stays invalid as long as possible"
            );
            bases.append(&mut own);
        }
        assert!(bases.windows(2).all(|pair| pair[0] < pair[1]), "{bases:x?}");
        let windows: Vec<_> = parts.iter_mut().map(Allocator::window).collect();
        assert!(windows.iter().all(|window| *window == windows[0] && !window.is_empty()));
        assert!(bases.iter().all(|base| !windows[0].contains(base)));
        let ptr = windows[0].start;
        for part in &mut parts {
            part.reserve(100).expect("there is so much");
            assert_eq!(part.allocate_at(ptr, 100, Reach::Everywhere), Ok(()), "the same address for all");
        }
        let mut again = parts[1].successor();
        assert_eq!(again.window(), windows[0]);
        let base = again.allocate(1, Reach::Device).expect("memory").base();
        assert!(bases[4] <= base && base < bases[8], "{base:x}");
    }

    #[test]
    fn windows_are_apart_and_given_back() {
        let mut all = vec![allocator(1000)];
        let budget = Arc::clone(all[0].budget());
        all.extend((0..95).map(|_| Allocator::new(vec![Arc::clone(&budget)])));
        let mut windows: Vec<_> = all.iter_mut().map(Allocator::window).collect();
        assert_eq!(windows.iter().filter(|window| window.is_empty()).count(), 4, "there are so many");
        windows.retain(|window| !window.is_empty());
        windows.sort_by_key(|window| window.start);
        assert!(windows.windows(2).all(|pair| pair[0].end <= pair[1].start));
        for allocator in &mut all {
            let plain = allocator.allocate(1, Reach::Device).unwrap().base();
            assert!(windows.iter().all(|window| !window.contains(&plain)));
        }
        let first = all[0].window();
        all[0].reserve(500).unwrap();
        let mut next = all[0].successor();
        all[0].clear();
        assert_eq!(next.window(), first, "it is the context's as long as that lives");
        assert_eq!(budget.available_bytes(), 1000 - 95, "all but its bytes are back");
        assert!(all[95].window().is_empty());
        next.clear();
        assert_eq!(all[95].window(), first);
        drop(all);
        assert_eq!((budget.free_bytes(), budget.available_bytes()), (1000, 1000));
    }

    #[test]
    fn memory_of_an_earlier_owner_of_a_window_is_in_nobodys_way() {
        let mut lender = allocator(1000);
        let mut borrower = Allocator::new(vec![Arc::clone(lender.budget())]);
        let first = lender.window();
        lender.reserve(100).unwrap();
        place(&mut lender, first.start, 100).unwrap();
        let memory = Arc::clone(lender.lendable(first.start).unwrap());
        borrower.borrow(Arc::clone(&memory)).unwrap();
        drop(lender);
        for _ in 0..3 {
            Allocator::new(vec![Arc::clone(borrower.budget())]).window();
        }
        assert_ne!(borrower.window(), first, "it has something there");
        let mut other = Allocator::new(vec![Arc::clone(borrower.budget())]);
        assert_eq!(other.window(), first, "another has nothing");
        assert_eq!(other.borrow(memory).unwrap_err(), HipError::OUT_OF_MEMORY, "and may place memory there");
        assert_eq!(borrower.budget().available_bytes(), 900, "it is in use");
        borrower.finish_free(first.start);
        assert_eq!(borrower.budget().available_bytes(), 1000);
    }

    #[test]
    fn memory_is_accounted_until_the_last_byte_is_back() {
        let mut allocator = allocator(1000);
        assert_eq!(allocator.allocate(0, Reach::Device).unwrap_err(), HipError::INVALID_VALUE);
        let block = allocator.allocate(600, Reach::Device).unwrap().base();
        assert_eq!(allocator.allocate(600, Reach::Device).unwrap_err(), HipError::OUT_OF_MEMORY);
        assert_eq!(allocator.budget().free_bytes(), 400);
        allocator.finish_free(block);
        assert_eq!(allocator.budget().free_bytes(), 1000);
        assert_eq!(allocator.allocate(u64::MAX, Reach::Device).unwrap_err(), HipError::OUT_OF_MEMORY);
    }

    #[test]
    fn ranges_are_checked_to_the_byte() {
        let mut allocator = allocator(1 << 20);
        let base = allocator.allocate(100, Reach::Device).unwrap().base();
        assert!(allocator.block(base + 40, 60).is_some());
        assert!(allocator.block(base + 40, 61).is_none());
        assert!(allocator.block(base + 40, u64::MAX).is_none());
        assert!(allocator.block(0, 1).is_none());
    }
}
