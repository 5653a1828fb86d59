//! What is at which address of a context: allocations, also those that are freed, and modules with their variables.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hipr_isa::map::{FIRST_ADDRESS, PAGE_BYTES, PAGES};
use hipr_sim::watch::Allocated;

use crate::finding::{Kind, Near};
use crate::lock::{Lock, lock};
use crate::module::Module;

/// Number of freed allocations of which it is known that they were there.
const FREED_MAX: usize = 1 << 16;
/// Addresses below it are taken for a null pointer and an index.
const NULL_END: u64 = 1 << 20;
/// The end of the addresses that a program can have.
const USER_END: u64 = 1 << 47;
/// The end of the addresses that device memory can have.
const DEVICE_END: u64 = FIRST_ADDRESS + PAGES * PAGE_BYTES;

/// What is at an address.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) base: u64,
    pub(crate) len_bytes: u64,
    /// How often an allocation had begun at its address before it.
    pub(crate) earlier: u64,
    pub(crate) is_freed: bool,
    /// The module, if the memory is one's.
    pub(crate) module: Option<Arc<Module>>,
    /// Whether only kernels know of it.
    is_of_kernels: bool,
}

impl Piece {
    fn end(&self) -> u64 {
        self.base + self.len_bytes
    }

    fn near(&self) -> Near {
        let &Self { base: address, len_bytes, earlier, is_freed, .. } = self;
        Near { address, len_bytes, variable: None, earlier, is_freed }
    }
}

/// What is wrong with an access.
#[derive(Clone, Debug)]
pub(crate) struct Wrong {
    pub(crate) kind: Kind,
    pub(crate) near: Option<Near>,
}

/// Addresses that may be accessed, until the map changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    version: u64,
    ranges: [(u64, u64); 4],
    next: usize,
}

impl Known {
    /// Returns whether all bytes from `start` to `end` may be accessed, as far as it is known.
    #[inline]
    fn contains(&self, start: u64, end: u64) -> bool {
        self.ranges.iter().any(|&(first, last)| first <= start && end <= last)
    }

    fn add(&mut self, range: Range<u64>) {
        self.ranges[self.next] = (range.start, range.end);
        self.next = (self.next + 1) % self.ranges.len();
    }
}

#[derive(Debug, Default)]
struct Pieces {
    by_base: BTreeMap<u64, Piece>,
    /// How many allocations have begun at an address.
    begun: HashMap<u64, u64>,
    /// Bases of freed pieces, the oldest first.
    freed: VecDeque<u64>,
}

/// The map of one context.
#[derive(Debug, Default)]
pub(crate) struct Map {
    /// Number of changes.
    version: AtomicU64,
    pieces: Lock<Pieces>,
}

impl Map {
    /// Adds an allocation. What was freed there before is forgotten.
    pub(crate) fn allocated(&self, memory: &Allocated) {
        self.insert(memory.ptr, memory.len_bytes, None, memory.is_of_kernels);
    }

    /// Adds the memory of a module.
    pub(crate) fn loaded(&self, base: u64, len_bytes: u64, module: Arc<Module>) {
        self.insert(base, len_bytes, Some(module), false);
    }

    fn insert(&self, base: u64, len_bytes: u64, module: Option<Arc<Module>>, is_of_kernels: bool) {
        let mut pieces = lock(&self.pieces);
        let end = base.saturating_add(len_bytes.max(1));
        let before = pieces.by_base.range(..base).next_back().filter(|(_, piece)| piece.end() > base);
        let over = before.into_iter().chain(pieces.by_base.range(base..end)).map(|(&base, _)| base);
        for base in over.collect::<Vec<_>>() {
            pieces.by_base.remove(&base);
        }
        let earlier = pieces.begun.entry(base).or_default();
        let piece = Piece { base, len_bytes, earlier: *earlier, is_freed: false, module, is_of_kernels };
        *earlier += 1;
        pieces.by_base.insert(base, piece);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Returns whether only kernels know of the memory at an address: the heap that they allocate from, and what they call the host with.
    pub(crate) fn is_of_kernels(&self, address: u64) -> bool {
        let pieces = lock(&self.pieces);
        let before = pieces.by_base.range(..=address).next_back();
        before.is_some_and(|(_, piece)| piece.is_of_kernels && address < piece.end())
    }

    /// Notes that what begins at `ptr` is freed.
    pub(crate) fn freed(&self, ptr: u64) {
        let mut pieces = lock(&self.pieces);
        let Some(piece) = pieces.by_base.get_mut(&ptr).filter(|piece| !piece.is_freed) else { return };
        piece.is_freed = true;
        pieces.freed.push_back(ptr);
        if pieces.freed.len() > FREED_MAX
            && let Some(oldest) = pieces.freed.pop_front()
            && pieces.by_base.get(&oldest).is_some_and(|piece| piece.is_freed)
        {
            pieces.by_base.remove(&oldest);
        }
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Returns the module in whose memory `address` is.
    pub(crate) fn module(&self, address: u64) -> Option<Arc<Module>> {
        let pieces = lock(&self.pieces);
        let (_, piece) = pieces.by_base.range(..=address).next_back()?;
        piece.module.clone().filter(|_| address < piece.end())
    }

    /// Returns the allocation or variable at `address`.
    pub(crate) fn at(&self, address: u64) -> Option<Near> {
        let pieces = lock(&self.pieces);
        let (_, piece) = pieces.by_base.range(..=address).next_back()?;
        let near = (address < piece.end()).then(|| piece.near())?;
        let variable = piece.module.as_ref().and_then(|module| module.variable(address - piece.base));
        Some(match variable {
            None => near,
            Some(found) => Near {
                address: piece.base + found.range.start,
                len_bytes: found.range.end - found.range.start,
                variable: Some(found.name),
                ..near
            },
        })
    }

    /// Returns whether all bytes from `start` to `end` are of one allocation that is not freed. Remembers it in `known`.
    #[inline]
    pub(crate) fn contains(&self, known: &mut Known, start: u64, end: u64) -> bool {
        let version = self.version.load(Ordering::Acquire);
        if known.version == version {
            if known.contains(start, end) {
                return true;
            }
        } else {
            *known = Known { version, ..Known::default() };
        }
        let pieces = lock(&self.pieces);
        let Some((_, piece)) = pieces.by_base.range(..=start).next_back() else { return false };
        if piece.is_freed || end > piece.end() {
            return false;
        }
        // Of a module's memory only what is in a variable is known to be right.
        let range = match &piece.module {
            None => piece.base..piece.end(),
            Some(module) => match module.whole(start - piece.base, end - piece.base) {
                Some(range) => piece.base + range.start..piece.base + range.end,
                None => return false,
            },
        };
        drop(pieces);
        known.add(range);
        true
    }

    /// Returns what is wrong with an access of `len_bytes` at `address`; `None` if nothing is.
    pub(crate) fn check(&self, address: u64, len_bytes: u64) -> Option<Wrong> {
        let end = address.saturating_add(len_bytes);
        if address < NULL_END {
            return Some(Wrong { kind: Kind::NullPointer, near: None });
        }
        if !(FIRST_ADDRESS..DEVICE_END).contains(&address) && !self.has(address) {
            let is_host =
                [DEVICE_END..USER_END, 1 << 40..1 << 44].iter().any(|range| range.contains(&address));
            let kind = if is_host { Kind::HostPointer } else { Kind::WildPointer };
            return Some(Wrong { kind, near: None });
        }
        let pieces = lock(&self.pieces);
        let before = pieces.by_base.range(..=address).next_back().map(|(_, piece)| piece);
        let behind = pieces.by_base.range(address..).next().map(|(_, piece)| piece);
        let Some(piece) = before.filter(|piece| address < piece.end()) else {
            let to_before = before.map(|piece| address - piece.end());
            let to_behind = behind.map(|piece| piece.base - address);
            // What is not freed is meant rather than what is.
            let nearest = match (before, behind) {
                (Some(before), Some(behind)) if before.is_freed == behind.is_freed => {
                    if to_before <= to_behind { before } else { behind }
                }
                (Some(before), Some(behind)) => {
                    let (freed, live) =
                        if before.is_freed { (to_before, to_behind) } else { (to_behind, to_before) };
                    let is_far = freed.zip(live).is_some_and(|(freed, live)| live / 16 > freed);
                    if before.is_freed == is_far { before } else { behind }
                }
                (Some(piece), None) | (None, Some(piece)) => piece,
                (None, None) => return Some(Wrong { kind: Kind::WildPointer, near: None }),
            };
            return Some(Wrong { kind: Kind::OutOfBounds, near: Some(nearest.near()) });
        };
        if piece.is_freed {
            return Some(Wrong { kind: Kind::UseAfterFree, near: Some(piece.near()) });
        }
        if let Some(module) = &piece.module {
            let left = module.left(address - piece.base, end - piece.base)?;
            let near = Near {
                address: piece.base + left.range.start,
                len_bytes: left.range.end - left.range.start,
                variable: Some(left.name),
                ..piece.near()
            };
            return Some(Wrong { kind: Kind::OutOfBounds, near: Some(near) });
        }
        (end > piece.end()).then(|| Wrong { kind: Kind::OutOfBounds, near: Some(piece.near()) })
    }

    fn has(&self, address: u64) -> bool {
        let pieces = lock(&self.pieces);
        pieces.by_base.range(..=address).next_back().is_some_and(|(_, piece)| address < piece.end())
    }
}
