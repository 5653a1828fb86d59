//! Reserved addresses, physical memory, and which of it is mapped where.
//!
//! What the same devices may access and lies one beside the other is one block, a *run*, made anew whenever its neighbours change. Work that
//! has the block of before goes on with it: its bytes are the same ones.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hipr_isa::map::{FIRST_ADDRESS, PAGE_BYTES, page_count};
use hipr_isa::mem::{Block, Piece};
use hipr_proto::{HipError, HipResult};

use super::{Allocator, Devices, Maps, PLAIN_PAGES};
use crate::physical::{Part, Physical, PhysicalFile};
use crate::unused::Unused;

/// Of what addresses and sizes of mappings are multiples.
pub(crate) const GRANULARITY_BYTES: u64 = PAGE_BYTES;
/// Largest number of mappings of the operating system that the runs of one context take, and those of a device. A process has 65,530.
const PIECES_MAX: [usize; 2] = [4096, 16384];

/// What a context has mapped.
#[derive(Debug, Default)]
pub(super) struct Mapped {
    file: Option<Arc<PhysicalFile>>,
    last_handle: u64,
    physical: BTreeMap<u64, Arc<Physical>>,
    /// The reserved ranges by their first addresses.
    ranges: BTreeMap<u64, Reserved>,
    pieces: Arc<AtomicUsize>,
}

/// A range of reserved addresses.
#[derive(Debug)]
struct Reserved {
    len_bytes: u64,
    mappings: BTreeMap<u64, Mapping>,
    runs: BTreeMap<u64, Arc<Block>>,
}

#[derive(Debug)]
struct Mapping {
    physical: Arc<Physical>,
    /// The devices that may access it.
    devices: Devices,
}

/// What a change of access has changed.
#[derive(Default)]
pub(crate) struct Changed {
    /// The mappings: their addresses and lengths.
    pub(crate) mappings: Vec<(u64, u64)>,
    /// What has to be dropped.
    pub(crate) unused: Vec<Unused>,
}

/// What the block of a run keeps as long as it is mapped.
struct Kept {
    _parts: Vec<Arc<Part>>,
    pieces: usize,
    counters: [Arc<AtomicUsize>; 2],
}

impl Drop for Kept {
    fn drop(&mut self) {
        for counter in &self.counters {
            counter.fetch_sub(self.pieces, Ordering::Relaxed);
        }
    }
}

/// Makes the block of mappings that follow each other from `base` on. With `is_bound` fails if there are too many pieces.
fn run(
    base: u64,
    parts: &[Arc<Part>],
    counters: &[Arc<AtomicUsize>; 2],
    is_bound: bool,
) -> HipResult<Arc<Block>> {
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let piece = part.piece();
        let before = index.checked_sub(1).and_then(|before| parts.get(before));
        match pieces.last_mut() {
            Some(last) if before.is_some_and(|before| before.is_before(part)) => {
                last.len_bytes += piece.len_bytes;
            }
            _ => pieces.push(piece),
        }
    }
    let kept = Kept { _parts: parts.to_vec(), pieces: pieces.len(), counters: counters.clone() };
    let counts = counters.each_ref().map(|counter| counter.fetch_add(kept.pieces, Ordering::Relaxed));
    if is_bound && counts.iter().zip(PIECES_MAX).any(|(count, max)| count + kept.pieces > max) {
        tracing::info!(pieces = kept.pieces, "too many mappings of physical memory that lie apart");
        return Err(HipError::OUT_OF_MEMORY);
    }
    let block = Block::joined(base, &pieces, Box::new(kept)).map_err(|why| {
        tracing::info!("cannot map physical memory: {why}");
        HipError::OUT_OF_MEMORY
    })?;
    Ok(Arc::new(block))
}

impl Reserved {
    /// Makes the runs anew that touch `span`, whose access has changed; returns their blocks of before. If that fails nothing changes.
    fn renew(
        &mut self,
        maps: &mut Maps,
        span: Range<u64>,
        counters: &[Arc<AtomicUsize>; 2],
        is_bound: bool,
    ) -> HipResult<Vec<Unused>> {
        let end_of = |block: &Block| block.base() + block.len_bytes();
        let touched = |(_, block): &(&u64, &Arc<Block>)| end_of(block) >= span.start;
        let old: Vec<_> =
            self.runs.range(..=span.end).filter(touched).map(|(_, run)| Arc::clone(run)).collect();
        let start = old.first().map_or(span.start, |first| first.base().min(span.start));
        let end = old.last().map_or(span.end, |last| end_of(last).max(span.end));
        let mut new: Vec<(u64, Devices, Vec<Arc<Part>>)> = Vec::new();
        let mut next = 0;
        for (&ptr, mapping) in self.mappings.range(start..end).filter(|(_, mapping)| mapping.devices != 0) {
            let part = Arc::clone(&mapping.physical.part);
            match new.last_mut() {
                Some((_, devices, run)) if next == ptr && *devices == mapping.devices => run.push(part),
                _ => new.push((ptr, mapping.devices, vec![part])),
            }
            next = ptr + mapping.physical.len_bytes();
        }
        let new = new
            .into_iter()
            .map(|(base, devices, parts)| Ok((run(base, &parts, counters, is_bound)?, devices)))
            .collect::<HipResult<Vec<_>>>()?;
        for block in &old {
            maps.remove(block);
            self.runs.remove(&block.base());
        }
        for (block, devices) in new {
            maps.insert(&block, devices);
            self.runs.insert(block.base(), block);
        }
        Ok(old.into_iter().map(Unused::Block).collect())
    }

    /// Returns the addresses of the mappings that are these bytes.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the bytes are not whole mappings that follow each other.
    fn whole(&self, span: &Range<u64>) -> HipResult<Vec<u64>> {
        let (mut found, mut next) = (Vec::new(), span.start);
        for (&ptr, mapping) in self.mappings.range(span.clone()) {
            if ptr != next {
                break;
            }
            found.push(ptr);
            next = ptr + mapping.physical.len_bytes();
        }
        if next == span.end && !found.is_empty() { Ok(found) } else { Err(HipError::INVALID_VALUE) }
    }
}

/// Returns what is to be dropped of memory that a table does not have any more.
fn unused_part(physical: &Arc<Physical>) -> Unused {
    Unused::Part(Arc::clone(&physical.part))
}

/// Returns the addresses of `len_bytes` bytes.
fn span(ptr: u64, len_bytes: u64) -> HipResult<Range<u64>> {
    let is_whole = len_bytes > 0 && ptr.is_multiple_of(PAGE_BYTES) && len_bytes.is_multiple_of(PAGE_BYTES);
    let end = ptr.checked_add(len_bytes).filter(|_| is_whole).ok_or(HipError::INVALID_VALUE)?;
    Ok(ptr..end)
}

impl Mapped {
    /// Returns the range that has all of these addresses.
    fn range(&mut self, span: &Range<u64>) -> HipResult<&mut Reserved> {
        let (base, range) =
            self.ranges.range_mut(..=span.start).next_back().ok_or(HipError::INVALID_VALUE)?;
        if span.end <= base + range.len_bytes { Ok(range) } else { Err(HipError::INVALID_VALUE) }
    }

    /// Removes everything; returns what has to be dropped.
    pub(super) fn clear(&mut self) -> Vec<Unused> {
        let Self { physical, ranges, .. } = std::mem::take(self);
        let (mut unused, mut mapped) = (Vec::new(), Vec::new());
        for range in ranges.into_values() {
            unused.extend(range.runs.into_values().map(Unused::Block));
            mapped.extend(range.mappings.into_values().map(|mapping| unused_part(&mapping.physical)));
        }
        unused.extend(mapped);
        unused.extend(physical.values().map(unused_part));
        unused
    }
}

impl Allocator {
    /// Reserves `len_bytes` bytes of addresses, at `wanted` if they are free there; returns the first, otherwise a multiple of `alignment`.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the length is no multiple of the granularity, or 0, or the alignment no power of two; `OUT_OF_MEMORY` if so many addresses are not free.
    pub(crate) fn reserve_addresses(
        &mut self,
        len_bytes: u64,
        alignment: u64,
        wanted: u64,
    ) -> HipResult<u64> {
        span(0, len_bytes)?;
        if !alignment.is_power_of_two() {
            return Err(HipError::INVALID_VALUE);
        }
        let step = (alignment / PAGE_BYTES).max(1);
        let pages = page_count(len_bytes) + 1;
        let wanted = Self::page_of(wanted).filter(|&page| page < PLAIN_PAGES);
        let wanted =
            wanted.filter(|&page| self.gap(page, PLAIN_PAGES.min(page + pages), pages) == Some(page));
        // The first address of all is a multiple of more than what can be reserved.
        let found = || self.find_pages(pages.checked_add(step - 1)?).map(|page| page.next_multiple_of(step));
        let page = wanted.or_else(found).ok_or(HipError::OUT_OF_MEMORY)?;
        let base = FIRST_ADDRESS + page * PAGE_BYTES;
        self.taken.insert(page, pages);
        let (mappings, runs) = Default::default();
        self.mapped.ranges.insert(base, Reserved { len_bytes, mappings, runs });
        Ok(base)
    }

    /// Gives back the range of reserved addresses that begins at `base`.
    ///
    /// # Errors
    /// `INVALID_VALUE` if none of this length begins there, or something is mapped in it.
    pub(crate) fn free_addresses(&mut self, base: u64, len_bytes: u64) -> HipResult<()> {
        let range = self.mapped.ranges.get(&base).ok_or(HipError::INVALID_VALUE)?;
        if range.len_bytes != len_bytes || !range.mappings.is_empty() {
            return Err(HipError::INVALID_VALUE);
        }
        self.mapped.ranges.remove(&base);
        Self::page_of(base).map(|page| self.taken.remove(&page));
        Ok(())
    }

    /// Allocates physical memory of a device; returns its handle.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the length is no multiple of the granularity, or 0; `OUT_OF_MEMORY` if the device has no so many bytes.
    pub(crate) fn create_physical(&mut self, len_bytes: u64, device: usize) -> HipResult<u64> {
        span(0, len_bytes)?;
        let reservation = self.homes[device].budget.reserve(len_bytes)?;
        let file = match &self.mapped.file {
            Some(file) => Arc::clone(file),
            None => {
                let file = PhysicalFile::new().map_err(|why| {
                    tracing::info!("cannot make physical memory: {why}");
                    HipError::OUT_OF_MEMORY
                })?;
                Arc::clone(self.mapped.file.insert(file))
            }
        };
        Ok(self.add_physical(Arc::new(Physical::new(&file, reservation)?)))
    }

    /// Returns a new handle of physical memory, which may be another context's.
    pub(crate) fn add_physical(&mut self, physical: Arc<Physical>) -> u64 {
        self.mapped.last_handle += 1;
        self.mapped.physical.insert(self.mapped.last_handle, physical);
        self.mapped.last_handle
    }

    /// Returns the physical memory with this handle.
    ///
    /// # Errors
    /// `INVALID_HANDLE`.
    pub(crate) fn physical(&self, handle: u64) -> HipResult<&Arc<Physical>> {
        self.mapped.physical.get(&handle).ok_or(HipError::INVALID_HANDLE)
    }

    /// Gives up a handle; returns what has to be dropped.
    ///
    /// # Errors
    /// `INVALID_HANDLE`.
    pub(crate) fn release_physical(&mut self, handle: u64) -> HipResult<Unused> {
        self.mapped.physical.remove(&handle).map(|it| unused_part(&it)).ok_or(HipError::INVALID_HANDLE)
    }

    /// Maps all of physical memory at `ptr`. Nobody may access it there.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; `INVALID_VALUE` if it has not so many bytes, if the addresses are not all of one reserved range, or if something is
    /// mapped there.
    pub(crate) fn map_physical(&mut self, ptr: u64, len_bytes: u64, handle: u64) -> HipResult<()> {
        let span = span(ptr, len_bytes)?;
        let physical = Arc::clone(self.physical(handle)?);
        let range = self.mapped.range(&span)?;
        let before = range.mappings.range(..span.end).next_back();
        let is_free = before.is_none_or(|(&at, before)| at + before.physical.len_bytes() <= span.start);
        if physical.len_bytes() != len_bytes || !is_free {
            return Err(HipError::INVALID_VALUE);
        }
        range.mappings.insert(ptr, Mapping { physical, devices: 0 });
        Ok(())
    }

    /// Says whether devices may access mappings.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the bytes are not whole mappings of one range that follow each other; `OUT_OF_MEMORY` if the host has no place for
    /// them. Then nothing changes.
    pub(crate) fn set_access(
        &mut self,
        ptr: u64,
        len_bytes: u64,
        devices: Devices,
        is_accessible: bool,
    ) -> HipResult<Changed> {
        let span = span(ptr, len_bytes)?;
        let counters = self.pieces();
        let range = self.mapped.range(&span)?;
        let mut changed = Vec::new();
        for ptr in range.whole(&span)? {
            let Some(mapping) = range.mappings.get_mut(&ptr) else { continue };
            let before = mapping.devices;
            mapping.devices = if is_accessible { before | devices } else { before & !devices };
            if mapping.devices != before {
                changed.push((ptr, mapping.physical.len_bytes(), before));
            }
        }
        if changed.is_empty() {
            return Ok(Changed::default());
        }
        match range.renew(&mut self.maps, span, &counters, is_accessible) {
            Ok(unused) => {
                let mappings = changed.into_iter().map(|(ptr, len_bytes, _)| (ptr, len_bytes)).collect();
                Ok(Changed { mappings, unused })
            }
            Err(error) => {
                for (ptr, _, before) in changed {
                    range.mappings.entry(ptr).and_modify(|mapping| mapping.devices = before);
                }
                Err(error)
            }
        }
    }

    /// Returns whether a mapping of this length begins at `ptr`.
    pub(crate) fn is_mapping(&mut self, ptr: u64, len_bytes: u64) -> bool {
        let is_one = |range: &mut Reserved| {
            range.mappings.get(&ptr).is_some_and(|mapping| mapping.physical.len_bytes() == len_bytes)
        };
        span(ptr, len_bytes).and_then(|span| self.mapped.range(&span).map(is_one)).unwrap_or(false)
    }

    /// Ends a mapping. Its access has changed if it was accessible.
    ///
    /// # Errors
    /// As [`set_access`](Self::set_access); also `INVALID_VALUE` for several mappings.
    pub(crate) fn unmap_physical(&mut self, ptr: u64, len_bytes: u64) -> HipResult<Changed> {
        if !self.is_mapping(ptr, len_bytes) {
            return Err(HipError::INVALID_VALUE);
        }
        let mut changed = self.set_access(ptr, len_bytes, Devices::MAX, false)?;
        let mapping = self.mapped.range(&span(ptr, len_bytes)?)?.mappings.remove(&ptr);
        changed.unused.extend(mapping.map(|mapping| unused_part(&mapping.physical)));
        Ok(changed)
    }

    fn pieces(&self) -> [Arc<AtomicUsize>; 2] {
        [Arc::clone(&self.mapped.pieces), Arc::clone(&self.budget().common.pieces)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alloc::Reach;
    use crate::budget::Budget;

    const PAGE: u64 = PAGE_BYTES;

    fn allocator() -> Allocator {
        Allocator::new(Budget::of_devices(1, 64 * PAGE))
    }

    /// Maps new memory of so many pages at this page of a range; makes it accessible.
    fn map(allocator: &mut Allocator, at: u64, pages: u64) -> u64 {
        let handle = allocator.create_physical(pages * PAGE, 0).unwrap();
        allocator.map_physical(at, pages * PAGE, handle).unwrap();
        allocator.set_access(at, pages * PAGE, 1, true).unwrap();
        handle
    }

    #[test]
    fn neighbours_are_one_block_whatever_the_order() {
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1], [1, 2, 0], [2, 0, 1]] {
            let mut allocator = allocator();
            let base = allocator.reserve_addresses(8 * PAGE, 1, 0).unwrap();
            for index in order {
                map(&mut allocator, base + index * 2 * PAGE, 2);
            }
            let block = allocator.block(base + PAGE, 4 * PAGE).unwrap();
            assert_eq!((block.base(), block.len_bytes()), (base, 6 * PAGE), "{order:?}");
            assert!(allocator.block(base + 5 * PAGE, PAGE + 1).is_none());
            for page in 0..6 {
                block.store_u32((page * PAGE) as usize, page as u32 + 1);
            }
            // The neighbours of a mapping that ends are two blocks, with what they had.
            allocator.unmap_physical(base + 2 * PAGE, 2 * PAGE).unwrap();
            assert!(allocator.block(base + 2 * PAGE, 1).is_none());
            for (page, other) in [(0, 1), (4, 5)] {
                let block = allocator.block(base + page * PAGE, 2 * PAGE).unwrap();
                assert_eq!((block.base(), block.len_bytes()), (base + page * PAGE, 2 * PAGE));
                assert_eq!((block.load_u32(0), block.load_u32(PAGE as usize)), (page as u32 + 1, other + 1));
            }
        }
    }

    #[test]
    fn memory_is_the_same_at_all_its_addresses_and_after_it_was_mapped_anew() {
        let mut allocator = allocator();
        let base = allocator.reserve_addresses(8 * PAGE, 1, 0).unwrap();
        let handle = map(&mut allocator, base, 1);
        allocator.map_physical(base + 4 * PAGE, PAGE, handle).unwrap();
        assert!(allocator.block(base + 4 * PAGE, 1).is_none(), "nobody may access it");
        allocator.set_access(base + 4 * PAGE, PAGE, 1, true).unwrap();
        allocator.block(base, 8).unwrap().store_u32(4, 77);
        assert_eq!(allocator.block(base + 4 * PAGE, 8).unwrap().load_u32(4), 77);
        allocator.unmap_physical(base, PAGE).unwrap();
        allocator.unmap_physical(base + 4 * PAGE, PAGE).unwrap();
        allocator.map_physical(base + PAGE, PAGE, handle).unwrap();
        allocator.set_access(base + PAGE, PAGE, 1, true).unwrap();
        assert_eq!(allocator.block(base + PAGE, 8).unwrap().load_u32(4), 77);
        allocator.set_access(base + PAGE, PAGE, 1, false).unwrap();
        assert!(allocator.block(base + PAGE, 1).is_none());
    }

    #[test]
    fn memory_is_there_until_nothing_has_it() {
        let mut allocator = allocator();
        let base = allocator.reserve_addresses(4 * PAGE, 1, 0).unwrap();
        assert_eq!(allocator.budget().free_bytes(), 64 * PAGE, "addresses are no memory");
        let handle = map(&mut allocator, base, 2);
        let block = allocator.block(base, 8).unwrap();
        drop(allocator.release_physical(handle).unwrap());
        assert_eq!(allocator.physical(handle).map(drop), Err(HipError::INVALID_HANDLE));
        assert_eq!(allocator.budget().free_bytes(), 62 * PAGE, "it is mapped");
        block.store_u32(0, 1);
        drop(allocator.unmap_physical(base, 2 * PAGE).unwrap());
        assert_eq!(allocator.budget().free_bytes(), 64 * PAGE, "although work has its bytes");
        assert_eq!(block.load_u32(0), 1);
        map(&mut allocator, base + 2 * PAGE, 2);
        assert_eq!(allocator.block(base + 2 * PAGE, 8).unwrap().load_u32(0), 0, "others");
        drop(block);
        map(&mut allocator, base, 2);
        assert_eq!(allocator.block(base, 8).unwrap().load_u32(0), 0, "nobody finds what another one had");
        drop(allocator.clear());
        assert_eq!(allocator.budget().free_bytes(), 64 * PAGE);
    }

    #[test]
    fn addresses_are_reserved_once() {
        let mut allocator = allocator();
        let base = allocator.reserve_addresses(4 * PAGE, 1, 0).unwrap();
        let wanted = base + 100 * PAGE;
        assert_eq!(allocator.reserve_addresses(PAGE, 1, wanted), Ok(wanted));
        for taken in [base, base + PAGE, wanted, wanted - PAGE, wanted + 1, 5, u64::MAX, base - (1 << 44)] {
            let other = allocator.reserve_addresses(PAGE, 1, taken).unwrap();
            assert!(other != taken && !(base..base + 5 * PAGE).contains(&other), "{taken:#x}");
        }
        assert_eq!(allocator.free_addresses(base, 3 * PAGE), Err(HipError::INVALID_VALUE));
        assert_eq!(allocator.free_addresses(base + PAGE, 3 * PAGE), Err(HipError::INVALID_VALUE));
        map(&mut allocator, base + 3 * PAGE, 1);
        assert_eq!(allocator.free_addresses(base, 4 * PAGE), Err(HipError::INVALID_VALUE), "in use");
        let plain = allocator.allocate(PAGE * 3, Reach::Device).unwrap().base();
        assert!(plain >= base + 5 * PAGE || plain + 3 * PAGE < base);
        allocator.unmap_physical(base + 3 * PAGE, PAGE).unwrap();
        assert_eq!(allocator.free_addresses(base, 4 * PAGE), Ok(()));
        assert_eq!(allocator.free_addresses(base, 4 * PAGE), Err(HipError::INVALID_VALUE));
        assert_eq!(allocator.reserve_addresses(4 * PAGE, 1, base), Ok(base));
        for size in [0, 1, PAGE - 1, PAGE + 1, u64::MAX] {
            assert_eq!(allocator.reserve_addresses(size, 1, 0), Err(HipError::INVALID_VALUE), "{size:#x}");
            assert_eq!(allocator.create_physical(size, 0), Err(HipError::INVALID_VALUE), "{size:#x}");
        }
        assert_eq!(allocator.reserve_addresses(1 << 44, 1, 0), Err(HipError::OUT_OF_MEMORY));
    }

    #[test]
    fn reserved_addresses_are_aligned_as_wanted() {
        let mut allocator = allocator();
        for alignment in [1, 256, PAGE, 2 * PAGE, 64 * PAGE, 1 << 40] {
            let base = allocator.reserve_addresses(3 * PAGE, alignment, 0).unwrap();
            assert!(base.is_multiple_of(alignment), "{base:#x} {alignment:#x}");
        }
        for alignment in [0, 3, PAGE + 1, u64::MAX] {
            assert_eq!(allocator.reserve_addresses(PAGE, alignment, 0), Err(HipError::INVALID_VALUE));
        }
        assert_eq!(allocator.reserve_addresses(PAGE, 1 << 63, 0), Err(HipError::OUT_OF_MEMORY));
    }

    #[test]
    fn what_is_not_whole_is_refused_and_changes_nothing() {
        let mut allocator = allocator();
        let base = allocator.reserve_addresses(8 * PAGE, 1, 0).unwrap();
        let handle = map(&mut allocator, base + 2 * PAGE, 2);
        let refused = Err(HipError::INVALID_VALUE);
        for (at, len) in [(0, 2), (1, 2), (2, 2), (3, 2), (7, 2), (4, 1), (4, 3), (4, 0), (100, 2)] {
            let got = allocator.map_physical(base + at * PAGE, len * PAGE, handle);
            let expected = if (at, len) == (0, 2) { Ok(()) } else { refused };
            assert_eq!(got, expected, "{at} {len}");
        }
        for (at, len) in [(0, 1), (1, 1), (0, 3), (1, 3), (3, 1), (2, 3), (4, 2), (2, u64::MAX / PAGE)] {
            let at = base + at * PAGE;
            assert_eq!(allocator.set_access(at, len.wrapping_mul(PAGE), 1, true).map(drop), refused);
            assert_eq!(allocator.unmap_physical(at, len.wrapping_mul(PAGE)).map(drop), refused);
        }
        assert_eq!(allocator.unmap_physical(base, 4 * PAGE).map(drop), refused, "several");
        assert_eq!(
            allocator.set_access(base, 4 * PAGE, 1, true).unwrap().mappings,
            [(base, 2 * PAGE)],
            "of one it is known"
        );
        assert_eq!(allocator.block(base, 4 * PAGE).unwrap().len_bytes(), 4 * PAGE);
    }

    #[test]
    fn what_lies_apart_is_bound() {
        let mut allocator = allocator();
        let base = allocator.reserve_addresses(2 * (PIECES_MAX[0] as u64 + 1) * PAGE, 1, 0).unwrap();
        let handle = allocator.create_physical(PAGE, 0).unwrap();
        let mut accessible = 0;
        // Nobody's neighbour: each is a run of its own.
        while accessible <= PIECES_MAX[0] as u64 {
            let at = base + accessible * 2 * PAGE;
            allocator.map_physical(at, PAGE, handle).unwrap();
            if allocator.set_access(at, PAGE, 1, true).is_err() {
                break;
            }
            accessible += 1;
        }
        assert_eq!(accessible, PIECES_MAX[0] as u64);
        let at = base + accessible * 2 * PAGE;
        assert!(allocator.block(at, 1).is_none());
        assert!(allocator.unmap_physical(at, PAGE).unwrap().mappings.is_empty());
        drop(allocator.unmap_physical(base, PAGE).unwrap());
        map(&mut allocator, at, 1);
        drop(allocator.clear());
        assert_eq!(allocator.budget().common.pieces.load(Ordering::Relaxed), 0);
    }
}
