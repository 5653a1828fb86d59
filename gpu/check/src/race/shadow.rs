//! The last accesses to each word of device memory and LDS.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::lock::{Lock, lock};

/// Bytes of memory whose words are kept together.
pub(super) const PAGE_BYTES: u64 = 4096;
const PAGE_WORDS: usize = PAGE_BYTES as usize / 4;
/// The number of pages that are kept; beyond it all are forgotten. A page takes 64 KiB.
const PAGES_MAX: usize = 1 << 15;

/// Whether an access is atomic, so that other atomic ones may be made at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Atomicity {
    /// An ordinary access.
    #[default]
    Plain,
    /// A store of the gfx90a, which may be either. It is taken for atomic where an atomic access reads what it stores.
    Unknown,
    /// An atomic access.
    Atomic,
}

/// An access to a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    /// The number of the launch or transfer; 0 for none.
    pub(crate) launch: u32,
    /// The number of the workgroup.
    pub(crate) group: u32,
    /// The workgroup's tick.
    pub(crate) tick: u32,
    /// The instruction's offset in words from the kernel's first one.
    pub(crate) offset_words: i32,
    /// What was stored.
    pub(crate) value: u32,
    pub(crate) wave: u8,
    pub(crate) lane: u8,
    /// The bytes of the word, a bit each.
    pub(crate) bytes: u8,
    pub(crate) atomicity: Atomicity,
}

impl Access {
    /// Returns whether it is none.
    pub(crate) fn is_none(&self) -> bool {
        self.launch == 0
    }

    fn is_of_wave(&self, other: &Self) -> bool {
        (self.launch, self.group, self.wave) == (other.launch, other.group, other.wave)
    }
}

/// The last accesses to a word: a store, and two loads after it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Word {
    store: Access,
    loads: [Access; 2],
}

impl Word {
    /// Returns the last store.
    pub(crate) fn store(&self) -> &Access {
        &self.store
    }

    /// Returns the offset of a store that is an atomic one, although it does not say that: the last one if an atomic, `new`, reads it, or `new`
    /// itself if an atomic has read the word before.
    pub(crate) fn proved(&self, new: &Access, is_store: bool) -> Option<i32> {
        let meets = |old: &Access, has: Atomicity| {
            old.launch == new.launch && old.atomicity == has && old.bytes & new.bytes != 0
        };
        match new.atomicity {
            Atomicity::Atomic => meets(&self.store, Atomicity::Unknown).then_some(self.store.offset_words),
            Atomicity::Unknown if is_store => {
                self.loads.iter().any(|load| meets(load, Atomicity::Atomic)).then_some(new.offset_words)
            }
            Atomicity::Unknown | Atomicity::Plain => None,
        }
    }

    /// Returns whether the last loads have one of these bytes by the same instruction, wave and tick, for example of another lane: then `new`
    /// says nothing that is not known.
    pub(crate) fn has_load(&self, new: &Access) -> bool {
        self.loads.iter().any(|load| {
            load.is_of_wave(new)
                && (load.tick, load.offset_words) == (new.tick, new.offset_words)
                && load.atomicity == new.atomicity
                && new.bytes & !load.bytes == 0
        })
    }

    /// Returns the last store and the loads after it.
    fn all(&self) -> [(&Access, bool); 3] {
        [(&self.store, true), (&self.loads[0], false), (&self.loads[1], false)]
    }

    /// Notes an access. Returns an earlier one that it conflicts with, of those that are not `ordered` before it.
    pub(crate) fn note(
        &mut self,
        new: Access,
        is_store: bool,
        mut ordered: impl FnMut(&Access) -> bool,
    ) -> Option<(Access, bool)> {
        let mut conflicts = |old: &Access| {
            old.launch != 0
                && old.bytes & new.bytes != 0
                && !matches!(
                    (old.atomicity, new.atomicity),
                    (Atomicity::Atomic, Atomicity::Atomic | Atomicity::Unknown)
                        | (Atomicity::Unknown, Atomicity::Atomic)
                )
                && !old.is_of_wave(&new)
                && !ordered(old)
        };
        let mut found = None;
        let both_store_it = is_store && new.atomicity != Atomicity::Atomic && self.store.value == new.value;
        if !both_store_it && conflicts(&self.store) {
            found = Some((self.store, true));
        }
        if is_store {
            let load = self.loads.iter().find(|load| conflicts(load));
            found = found.or(load.map(|load| (*load, false)));
            *self = Self { store: new, loads: Default::default() };
        } else {
            let slot = self.loads.iter().position(|load| load.launch == 0 || load.is_of_wave(&new));
            self.loads[slot.unwrap_or(usize::from(ordered_first(&self.loads, &mut ordered)))] = new;
        }
        found
    }
}

/// Returns which of two loads is replaced: the second unless the first says less, as it is ordered before what comes.
fn ordered_first(loads: &[Access; 2], ordered: &mut impl FnMut(&Access) -> bool) -> bool {
    !ordered(&loads[0])
}

/// The words of a page.
#[derive(Debug)]
pub(crate) struct Page(pub(crate) Lock<Box<[Word; PAGE_WORDS]>>);

/// The pages that a workgroup has used last.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    pages: [Option<(u64, Arc<Page>)>; 8],
    generation: usize,
}

/// The last accesses to device memory.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    shards: [Lock<HashMap<u64, Arc<Page>>>; 32],
    pages: AtomicUsize,
    /// How often pages were forgotten.
    generation: AtomicUsize,
}

impl Shadow {
    fn shard(&self, page: u64) -> &Lock<HashMap<u64, Arc<Page>>> {
        &self.shards[page as usize % self.shards.len()]
    }

    /// Returns the words of a page, counted in [`PAGE_BYTES`] from address 0.
    pub(crate) fn page<'r>(&self, recent: &'r mut Recent, page: u64) -> &'r Page {
        let generation = self.generation.load(Ordering::Acquire);
        if recent.generation != generation {
            *recent = Recent { generation, ..Recent::default() };
        }
        let slot = page as usize % recent.pages.len();
        let entry = &mut recent.pages[slot];
        if entry.as_ref().is_none_or(|(known, _)| *known != page) {
            *entry = None;
        }
        let (_, page) = entry.get_or_insert_with(|| (page, self.get(page)));
        page
    }

    fn get(&self, page: u64) -> Arc<Page> {
        let mut shard = lock(self.shard(page));
        if let Some(known) = shard.get(&page) {
            return Arc::clone(known);
        }
        if self.pages.fetch_add(1, Ordering::Relaxed) >= PAGES_MAX {
            drop(shard);
            self.clear();
            shard = lock(self.shard(page));
        }
        let words = vec![Word::default(); PAGE_WORDS].into_boxed_slice();
        let words = words.try_into().unwrap_or_else(|_| Box::new([Word::default(); PAGE_WORDS]));
        Arc::clone(shard.entry(page).or_insert_with(|| Arc::new(Page(Lock::new(words)))))
    }

    /// Returns the first access to a word that `has` has, and its address, that `conflicts`.
    pub(crate) fn find(
        &self,
        has: impl Fn(u64, u64) -> bool,
        conflicts: impl Fn(&Access, bool) -> bool,
    ) -> Option<(Access, bool, u64)> {
        for shard in &self.shards {
            let known: Vec<_> = lock(shard).iter().map(|(page, words)| (*page, Arc::clone(words))).collect();
            for (page, words) in known {
                let base = page * PAGE_BYTES;
                for (index, word) in lock(&words.0).iter().enumerate() {
                    let address = base + index as u64 * 4;
                    let found = word.all().into_iter().find(|(access, is_store)| {
                        !access.is_none() && has(address, address + 4) && conflicts(access, *is_store)
                    });
                    if let Some((access, is_store)) = found {
                        return Some((*access, is_store, address));
                    }
                }
            }
        }
        None
    }

    fn clear(&self) {
        self.generation.fetch_add(1, Ordering::Release);
        self.pages.store(0, Ordering::Relaxed);
        self.shards.iter().for_each(|shard| lock(shard).clear());
    }

    /// Forgets the accesses to memory that is new.
    pub(crate) fn forget(&self, base: u64, len_bytes: u64) {
        let (first, last) = (base / PAGE_BYTES, base.saturating_add(len_bytes) / PAGE_BYTES);
        self.generation.fetch_add(1, Ordering::Release);
        for shard in &self.shards {
            lock(shard).retain(|page, _| !(first..=last).contains(page));
        }
    }
}
