//! Windows of addresses: which context may place memory where.

use std::ops::Range;

use hipr_isa::map::{PAGE_BYTES, PAGES};

/// The pages that are no windows: the lower half of all.
pub(crate) const PLAIN_PAGES: u64 = PAGES / 2;

/// The pages that contexts of the same client on several devices divide: the lower half of those. The upper half is their window.
pub(crate) const APART_PAGES: u64 = PLAIN_PAGES / 2;

const GIB_PAGES: u64 = (1 << 30) / PAGE_BYTES;

/// The windows, large ones first: pages of each, and how many there are.
const CLASSES: [(u64, u64); 4] =
    [(1024 * GIB_PAGES, 4), (256 * GIB_PAGES, 8), (64 * GIB_PAGES, 16), (16 * GIB_PAGES, 64)];

const WINDOWS: usize = 92;

const _: () = {
    let (mut pages, mut windows, mut class) = (PLAIN_PAGES, 0, 0);
    while class < CLASSES.len() {
        pages += CLASSES[class].0 * CLASSES[class].1;
        windows += CLASSES[class].1;
        class += 1;
    }
    assert!(pages == PAGES && windows == WINDOWS as u64, "the windows are the upper half");
};

/// The number of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(usize);

/// The windows of a device, by number.
#[derive(Debug)]
pub(crate) struct Windows {
    /// For each window, the turn in which it was last chosen, 0 for never, and whether it is in use.
    chosen: [(u64, bool); WINDOWS],
    turn: u64,
}

impl Default for Windows {
    fn default() -> Self {
        Self { chosen: [(0, false); WINDOWS], turn: 0 }
    }
}

impl Windows {
    /// Chooses a window that nobody has and whose pages suit; returns its number and its pages. Of the largest ones that are left it is
    /// the one that was chosen longest ago, so that an address stays invalid as long as possible.
    pub(crate) fn choose(&mut self, suits: impl Fn(&Range<u64>) -> bool) -> Option<(Slot, Range<u64>)> {
        let (mut page, mut first) = (PLAIN_PAGES, 0);
        for (pages, count) in CLASSES {
            let windows =
                (first..).zip((0..count).map(|window| page + window * pages..page + (window + 1) * pages));
            let free = windows.filter(|(slot, window)| {
                self.chosen.get(*slot).is_some_and(|(_, used)| !used) && suits(window)
            });
            if let Some((slot, window)) =
                free.min_by_key(|(slot, _)| self.chosen.get(*slot).map(|(turn, _)| *turn))
            {
                self.turn += 1;
                self.chosen[slot] = (self.turn, true);
                return Some((Slot(slot), window));
            }
            page += count * pages;
            first += count as usize;
        }
        None
    }

    /// Gives a window back.
    pub(crate) fn give_back(&mut self, slot: Slot) {
        self.chosen[slot.0].1 = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_apart_and_the_large_ones_go_first() {
        let mut windows = Windows::default();
        let all: Vec<_> = std::iter::from_fn(|| windows.choose(|_| true)).collect();
        assert_eq!(all.len(), WINDOWS);
        assert_eq!(all[0].1.start, PLAIN_PAGES);
        assert_eq!(all.last().map(|(_, window)| window.end), Some(PAGES));
        for pair in all.windows(2) {
            let len = |(_, window): &(Slot, Range<u64>)| window.end - window.start;
            assert!(pair[0].1.end == pair[1].1.start && len(&pair[0]) >= len(&pair[1]));
        }
        windows.give_back(all[3].0);
        windows.give_back(all[1].0);
        windows.give_back(all[20].0);
        assert_eq!(windows.choose(|_| true), Some(all[1].clone()), "the one that was chosen longest ago");
        windows.give_back(all[1].0);
        assert_eq!(windows.choose(|_| true), Some(all[3].clone()), "the other one is used again before it");
        let avoided = all[1].1.clone();
        assert_eq!(windows.choose(|window| *window != avoided), Some(all[20].clone()), "what suits");
    }
}
