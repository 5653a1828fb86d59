//! Maps addresses to blocks: a two-level page table that is cheap to snapshot, and a list for what lies elsewhere.
//!
//! Every allocation of the page table starts on a page of its own and is followed by an unused page, so that an overrun hits nothing. Pages are
//! virtual: a small allocation takes no more host memory than its bytes. Tables are shared between the live map and the
//! snapshots that kernels run on, and copied only when the live map changes while a snapshot exists.
//!
//! *Foreign* blocks lie anywhere else in the addresses of a program: its own memory, which it has made known to the GPU. They are looked for
//! only where the page table has nothing, and have no unused bytes around them: an access that leaves one faults, also where another begins.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::mem::Block;

/// First device address: far from null, from small integers and from the apertures.
pub const FIRST_ADDRESS: u64 = 0x2000_0000_0000;
/// Virtual page size: 2 MiB.
pub const PAGE_BYTES: u64 = 1 << PAGE_SHIFT;
const PAGE_SHIFT: u32 = 21;
/// Number of pages of device addresses: 16 TiB.
pub const PAGES: u64 = 1 << 23;
const LEAF_SHIFT: u32 = 10;
const LEAF_PAGES: usize = 1 << LEAF_SHIFT;

type Leaf = [Option<Arc<Block>>; LEAF_PAGES];

/// The first address that is not the program's: kernels' windows to LDS and scratch lie above.
const USER_END: u64 = 1 << 47;
/// The first address behind the pages.
const PAGES_END: u64 = FIRST_ADDRESS + PAGES * PAGE_BYTES;

/// The blocks of an address space: a page table, and a list of foreign blocks.
#[derive(Clone, Debug, Default)]
pub struct Map {
    leaves: Vec<Option<Arc<Leaf>>>,
    /// The foreign blocks by their addresses.
    foreign: Arc<Vec<Arc<Block>>>,
}

/// Why a block cannot be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPlace {
    /// A page or a byte of it is another block's.
    Occupied,
    /// It is neither wholly among the pages nor wholly outside of them and below 128 TiB, or it is foreign and empty.
    BadRange,
}

impl fmt::Display for NoPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Occupied => "another block is there",
            Self::BadRange => "no block can be there",
        })
    }
}

impl std::error::Error for NoPlace {}

/// Where a block is kept.
enum Place {
    /// At these pages.
    Pages(Range<usize>),
    /// In the list of foreign blocks.
    Foreign,
}

impl Place {
    /// Returns the place of `block`, which only its addresses decide.
    fn of(block: &Block) -> Result<Self, NoPlace> {
        let (base, len_bytes) = (block.base(), block.len_bytes());
        let end = base.checked_add(len_bytes).ok_or(NoPlace::BadRange)?;
        if (FIRST_ADDRESS..PAGES_END).contains(&base) && end <= PAGES_END {
            let first = (base - FIRST_ADDRESS) >> PAGE_SHIFT;
            return Ok(Self::Pages(first as usize..(first + page_count(len_bytes)) as usize));
        }
        let is_outside = end <= FIRST_ADDRESS || base >= PAGES_END && end <= USER_END;
        if is_outside && len_bytes > 0 { Ok(Self::Foreign) } else { Err(NoPlace::BadRange) }
    }
}

impl Map {
    /// Returns the block that owns the page of `addr`, or the foreign one that has the byte there.
    pub fn block(&self, addr: u64) -> Option<&Arc<Block>> {
        self.paged(addr).or_else(|| self.foreign(addr))
    }

    /// Returns the block that owns the page of `addr`.
    #[inline]
    pub(crate) fn paged(&self, addr: u64) -> Option<&Arc<Block>> {
        self.page((addr.wrapping_sub(FIRST_ADDRESS) >> PAGE_SHIFT) as usize)
    }

    /// Returns the foreign block that has the byte at `addr`.
    pub(crate) fn foreign(&self, addr: u64) -> Option<&Arc<Block>> {
        let behind = self.foreign.partition_point(|block| block.base() <= addr);
        let block = self.foreign.get(behind.checked_sub(1)?)?;
        (addr - block.base() < block.len_bytes()).then_some(block)
    }

    /// Inserts `block`: at all its pages if it lies among the addresses of the page table, [`PAGES`] pages from [`FIRST_ADDRESS`] on, else
    /// as a foreign one, of which the bytes of its exact length are found.
    ///
    /// # Errors
    /// If another block is there, or none can be; then nothing changes.
    pub fn insert(&mut self, block: &Arc<Block>) -> Result<(), NoPlace> {
        match Place::of(block)? {
            Place::Pages(pages) => {
                if pages.clone().any(|page| self.page(page).is_some()) {
                    return Err(NoPlace::Occupied);
                }
                for page in pages {
                    *self.entry(page) = Some(Arc::clone(block));
                }
            }
            Place::Foreign => {
                let index = self.foreign.partition_point(|other| other.base() < block.base());
                let ends = |block: &Block| block.base() + block.len_bytes();
                let before = index.checked_sub(1).and_then(|index| self.foreign.get(index));
                let overlaps_before = before.is_some_and(|before| ends(before) > block.base());
                if overlaps_before || self.foreign.get(index).is_some_and(|next| ends(block) > next.base()) {
                    return Err(NoPlace::Occupied);
                }
                Arc::make_mut(&mut self.foreign).insert(index, Arc::clone(block));
            }
        }
        Ok(())
    }

    /// Removes `block`, and tables that become empty. Of a block that was not inserted nothing is removed.
    pub fn remove(&mut self, block: &Arc<Block>) {
        match Place::of(block) {
            Ok(Place::Pages(pages)) => self.remove_pages(pages, block),
            Ok(Place::Foreign) => {
                if let Ok(index) = self.foreign.binary_search_by_key(&block.base(), |other| other.base())
                    && Arc::ptr_eq(&self.foreign[index], block)
                {
                    Arc::make_mut(&mut self.foreign).remove(index);
                }
            }
            Err(_) => {}
        }
    }

    fn remove_pages(&mut self, pages: Range<usize>, block: &Arc<Block>) {
        let mut last_leaf = None;
        for page in pages {
            if !self.page(page).is_some_and(|there| Arc::ptr_eq(there, block)) {
                continue;
            }
            *self.entry(page) = None;
            let leaf = page >> LEAF_SHIFT;
            if let Some(last) = last_leaf.replace(leaf).filter(|&last| last != leaf) {
                self.drop_if_empty(last);
            }
        }
        if let Some(leaf) = last_leaf {
            self.drop_if_empty(leaf);
        }
        while let Some(None) = self.leaves.last() {
            self.leaves.pop();
        }
    }

    #[inline]
    fn page(&self, page: usize) -> Option<&Arc<Block>> {
        self.leaves.get(page >> LEAF_SHIFT)?.as_ref()?[page % LEAF_PAGES].as_ref()
    }

    fn entry(&mut self, page: usize) -> &mut Option<Arc<Block>> {
        let index = page >> LEAF_SHIFT;
        if self.leaves.len() <= index {
            self.leaves.resize(index + 1, None);
        }
        let leaf = self.leaves[index].get_or_insert_with(|| Arc::new([const { None }; LEAF_PAGES]));
        &mut Arc::make_mut(leaf)[page % LEAF_PAGES]
    }

    fn drop_if_empty(&mut self, leaf: usize) {
        if let Some(slot) = self.leaves.get_mut(leaf)
            && slot.as_ref().is_some_and(|leaf| leaf.iter().all(Option::is_none))
        {
            *slot = None;
        }
    }
}

/// Returns how many pages `len_bytes` bytes take.
pub fn page_count(len_bytes: u64) -> u64 {
    len_bytes.div_ceil(PAGE_BYTES).max(1)
}
