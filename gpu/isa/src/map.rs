//! Maps addresses to blocks: a two-level page table that is cheap to snapshot.
//!
//! Every allocation starts on a page of its own and is followed by an unused page, so that an overrun hits nothing. Pages are
//! virtual: a small allocation takes no more host memory than its bytes. Tables are shared between the live map and the
//! snapshots that kernels run on, and copied only when the live map changes while a snapshot exists.

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

/// A page table: blocks by page number.
#[derive(Clone, Debug, Default)]
pub struct Map {
    leaves: Vec<Option<Arc<Leaf>>>,
}

impl Map {
    /// Returns the block that owns the page of `addr`.
    #[inline]
    pub fn block(&self, addr: u64) -> Option<&Arc<Block>> {
        let page = (addr.wrapping_sub(FIRST_ADDRESS) >> PAGE_SHIFT) as usize;
        self.leaves.get(page >> LEAF_SHIFT)?.as_ref()?[page % LEAF_PAGES].as_ref()
    }

    /// Inserts `block` at all its pages.
    pub fn insert(&mut self, block: &Arc<Block>) {
        for page in pages(block) {
            *self.entry(page) = Some(Arc::clone(block));
        }
    }

    /// Removes `block`, and tables that become empty.
    pub fn remove(&mut self, block: &Arc<Block>) {
        let mut last_leaf = None;
        for page in pages(block) {
            *self.entry(page) = None;
            let leaf = page >> LEAF_SHIFT;
            if last_leaf.is_some_and(|last| last != leaf) {
                self.drop_if_empty(leaf - 1);
            }
            last_leaf = Some(leaf);
        }
        if let Some(leaf) = last_leaf {
            self.drop_if_empty(leaf);
        }
        while let Some(None) = self.leaves.last() {
            self.leaves.pop();
        }
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

/// Returns the pages of a block, counted from [`FIRST_ADDRESS`].
fn pages(block: &Block) -> std::ops::Range<usize> {
    let first = (block.base() - FIRST_ADDRESS) >> PAGE_SHIFT;
    let count = page_count(block.len_bytes());
    first as usize..(first + count) as usize
}

/// Returns how many pages `len_bytes` bytes take.
pub fn page_count(len_bytes: u64) -> u64 {
    len_bytes.div_ceil(PAGE_BYTES).max(1)
}
