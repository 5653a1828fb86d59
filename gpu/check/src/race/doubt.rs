//! Races that may be meant.
//!
//! A program that changes a word with a loop of compare-and-swap loads it once before: what it loads is a guess, which the compare-and-swap
//! proves right or wrong. Some of its waves may see that there is nothing to change. So such a race is reported only when the launch has
//! ended and no wave has proved a guess of the same instruction.
//!
//! Of the stores of the gfx90a it cannot be seen which are atomic. Two of them race, unless an atomic reads what one of them stores.

use std::collections::{HashMap, HashSet};

use hipr_grid::GroupStart;
use hipr_isa::watch::Access;
use hipr_isa::wave::LANES;

use super::shadow::Access as Old;
use crate::finding::{Accessed, Kind};
use crate::lock::{Lock, lock};

/// A race between two accesses.
pub(crate) struct Race {
    pub(crate) kind: Kind,
    /// The later access.
    pub(crate) pc: u64,
    pub(crate) callers: Vec<u64>,
    pub(crate) start: GroupStart,
    pub(crate) wave: usize,
    pub(crate) lane: usize,
    pub(crate) accessed: Accessed,
    /// The earlier one.
    pub(crate) old: Old,
    pub(crate) is_old_store: bool,
}

/// What a race that may be meant is the same as: its kind, the later access, and the accesses that may be meant, by their offsets in words
/// from the kernel.
pub(crate) type Key = (Kind, i32, [i32; 2]);

/// The races of a launch that may be meant.
#[derive(Default)]
pub(crate) struct Doubts {
    races: Lock<HashMap<Key, Race>>,
    /// Accesses that were meant.
    meant: Lock<HashSet<i32>>,
}

impl Doubts {
    /// Keeps a race.
    pub(crate) fn keep(&self, key: Key, race: impl FnOnce() -> Race) {
        lock(&self.races).entry(key).or_insert_with(race);
    }

    /// Notes that the accesses of the instruction at an offset were meant: a load was a guess, or a store an atomic one.
    pub(crate) fn proved(&self, offset_words: i32) {
        lock(&self.meant).insert(offset_words);
    }

    /// Takes the races that were not meant, in an order that stays.
    pub(crate) fn take(&self) -> Vec<Race> {
        let meant = lock(&self.meant);
        let mut all: Vec<_> = lock(&self.races).drain().collect();
        all.retain(|((_, _, unless), _)| !unless.iter().any(|offset_words| meant.contains(offset_words)));
        all.sort_by_key(|(key, _)| *key);
        all.into_iter().map(|(_, race)| race).collect()
    }
}

/// The last loads of a wave.
#[derive(Debug, Default)]
pub(crate) struct Loads {
    last: Vec<Load>,
    next: usize,
}

#[derive(Debug)]
struct Load {
    /// The offset of the instruction.
    offset_words: i32,
    is_scalar: bool,
    addresses: [u64; LANES],
}

impl Loads {
    /// How many are known.
    const MAX: usize = 8;

    /// Notes a load of the instruction at an offset.
    pub(crate) fn note(&mut self, offset_words: i32, access: &Access<'_>) {
        if access.len_bytes != 4 && access.len_bytes != 8 {
            return;
        }
        let load = Load { offset_words, is_scalar: access.is_scalar, addresses: *access.addresses };
        match self.last.get_mut(self.next) {
            Some(old) => *old = load,
            None => self.last.push(load),
        }
        self.next = (self.next + 1) % Self::MAX;
    }

    /// Tells of the loads of what a compare-and-swap accesses.
    pub(crate) fn proved(&self, access: &Access<'_>, doubts: &Doubts) {
        for load in &self.last {
            let mut is_guess = false;
            access.each_lane(|lane, address| {
                is_guess |= load.addresses[if load.is_scalar { 0 } else { lane }] == address;
            });
            if is_guess {
                doubts.proved(load.offset_words);
            }
        }
    }
}
