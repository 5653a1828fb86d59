//! Memory that is not in the file of the pools: memory of the program, and memory of handles that is mapped.
//!
//! Who makes such memory known to agents *claims* ranges of it, in whole pages. Claims may overlap and touch each other: what an agent
//! reaches is the union of its claims, and each connected part of it is one block, so that an access over the border of two claims is
//! none of a border. A part is made anew when it grows or shrinks; what a kernel has of the old one in its turn it keeps for its rest.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Weak};

use hipr_isa::map::{FIRST_ADDRESS, Map, PAGE_BYTES, PAGES};
use hipr_isa::mem::Block;

use crate::facts::Agents;
use crate::segment::GRANULE_BYTES;

/// The first address that no program has.
const USER_END: u64 = 1 << 47;
/// The addresses of the pools.
const POOLS: Range<u64> = FIRST_ADDRESS..FIRST_ADDRESS + PAGES * PAGE_BYTES;

/// Returns whether all of these addresses, of which there are some, may be the program's, and none a pool's.
pub(crate) fn is_foreign(range: &Range<u64>) -> bool {
    let is_outside = range.end <= POOLS.start || range.start >= POOLS.end;
    range.start > 0 && range.start < range.end && range.end <= USER_END && is_outside
}

/// Returns whether one of these addresses is a pool's.
pub(crate) fn touches_pools(range: &Range<u64>) -> bool {
    range.start < POOLS.end && POOLS.start < range.end
}

/// Returns the pages that the `len_bytes` bytes at `addr` touch; `None` if they wrap around.
pub(crate) fn pages_of(addr: u64, len_bytes: u64) -> Option<Range<u64>> {
    let end = addr.checked_add(len_bytes)?.checked_next_multiple_of(GRANULE_BYTES)?;
    Some(addr / GRANULE_BYTES * GRANULE_BYTES..end)
}

/// A claim: its first address and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claim {
    start: u64,
    number: u64,
}

/// All claims, and what agents reach by them.
#[derive(Debug)]
pub(crate) struct Foreign {
    next: u64,
    /// The end of each claim, and who may access it.
    claims: BTreeMap<Claim, (u64, Agents)>,
    /// The connected parts of what each agent reaches, by their first addresses.
    parts: Vec<BTreeMap<u64, Arc<Block>>>,
    /// Parts that are no more, while a kernel or a copy may still have them.
    leaving: Vec<Weak<Block>>,
}

impl Foreign {
    /// Creates the claims of so many agents.
    pub(crate) fn new(agents: usize) -> Self {
        Self { next: 0, claims: BTreeMap::new(), parts: vec![BTreeMap::new(); agents], leaving: Vec::new() }
    }

    /// Ends claims and makes others, all at once, and returns the new ones. The caller has checked that the new ones are whole pages, that
    /// they [are foreign](is_foreign), and that they are readable and writable until the claims end and [nobody](Self::has_left) has them.
    pub(crate) fn change(
        &mut self,
        maps: &mut [Arc<Map>],
        ended: &[Claim],
        made: &[(Range<u64>, Agents)],
    ) -> Vec<Claim> {
        let mut touched: Option<Range<u64>> = None;
        let mut touch = |range: Range<u64>| {
            let touched = touched.get_or_insert(range.clone());
            *touched = touched.start.min(range.start)..touched.end.max(range.end);
        };
        for claim in ended {
            if let Some((end, _)) = self.claims.remove(claim) {
                touch(claim.start..end);
            }
        }
        let mut claims = Vec::with_capacity(made.len());
        for (range, agents) in made {
            let claim = Claim { start: range.start, number: self.next };
            self.next += 1;
            self.claims.insert(claim, (range.end, *agents));
            claims.push(claim);
            touch(range.clone());
        }
        if let Some(touched) = touched {
            self.leaving.retain(|block| block.strong_count() > 0);
            for (agent, map) in maps.iter_mut().enumerate() {
                self.renew(agent, map, &touched);
            }
        }
        claims
    }

    /// Makes an agent's parts anew that overlap or touch a range.
    fn renew(&mut self, agent: usize, map: &mut Arc<Map>, touched: &Range<u64>) {
        let old: Vec<Arc<Block>> = {
            let near = self.parts[agent].range(..=touched.end).rev().map(|(_, block)| block);
            near.take_while(|block| end_of(block) >= touched.start).map(Arc::clone).collect()
        };
        let start = old.last().map_or(touched.start, |block| block.base().min(touched.start));
        let end = old.first().map_or(touched.end, |block| end_of(block).max(touched.end));
        // Whatever claims something there begins there: it is new, or within an old part.
        let claims = self.claims.range(Claim { start, number: 0 }..=Claim { start: end, number: u64::MAX });
        let mut parts: Vec<Range<u64>> = Vec::new();
        for (claim, &(end, agents)) in claims {
            match parts.last_mut() {
                _ if !agents.contains(agent) => {}
                Some(last) if claim.start <= last.end => last.end = last.end.max(end),
                _ => parts.push(claim.start..end),
            }
        }
        let (kept, gone): (Vec<_>, Vec<_>) =
            old.into_iter().partition(|block| parts.contains(&(block.base()..end_of(block))));
        parts.retain(|part| kept.iter().all(|block| block.base() != part.start));
        if parts.is_empty() && gone.is_empty() {
            return;
        }
        let map = Arc::make_mut(map);
        for block in gone {
            map.remove(&block);
            self.parts[agent].remove(&block.base());
            self.leaving.push(Arc::downgrade(&block));
        }
        for part in parts {
            // SAFETY: as the caller of `change` has checked: the claims of this part stand while it is in `parts`, and whoever ends one and
            // then unmaps its memory waits until `has_left`.
            let block = unsafe { Block::over(part.start, part.end - part.start) };
            let Some(block) = block.map(Arc::new) else {
                tracing::error!(?part, "an agent cannot be given access to memory of the program");
                continue;
            };
            match map.insert(&block) {
                Ok(()) => drop(self.parts[agent].insert(part.start, block)),
                Err(error) => {
                    tracing::error!(%error, ?part, "an agent cannot be given access to memory of the program")
                }
            }
        }
    }

    /// Returns whether no kernel and no copy has a former part any more that has one of these addresses.
    pub(crate) fn has_left(&mut self, range: &Range<u64>) -> bool {
        self.leaving.retain(|block| block.strong_count() > 0);
        let overlaps = |block: Arc<Block>| block.base() < range.end && range.start < end_of(&block);
        !self.leaving.iter().filter_map(Weak::upgrade).any(overlaps)
    }

    /// Returns the host's part that has this address, or the first address behind it at which one begins.
    pub(crate) fn at(&self, addr: u64) -> Result<&Arc<Block>, u64> {
        let Some(parts) = self.parts.first() else { return Err(u64::MAX) };
        let before = parts.range(..=addr).next_back().map(|(_, block)| block);
        match before.filter(|block| addr < end_of(block)) {
            Some(block) => Ok(block),
            None => Err(parts.range(addr..).next().map_or(u64::MAX, |(&start, _)| start)),
        }
    }
}

fn end_of(block: &Block) -> u64 {
    block.base() + block.len_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = GRANULE_BYTES;

    /// Pages of the test, which are given to kernels and never accessed.
    struct Pages {
        foreign: Foreign,
        maps: Vec<Arc<Map>>,
        base: u64,
        _memory: Vec<u8>,
    }

    impl Pages {
        fn new(count: usize) -> Self {
            let memory = vec![0u8; (count + 1) * PAGE as usize];
            let base = (memory.as_ptr().expose_provenance() as u64).next_multiple_of(PAGE);
            Self { foreign: Foreign::new(3), maps: vec![Arc::default(); 3], base, _memory: memory }
        }

        fn range(&self, pages: Range<u64>) -> Range<u64> {
            self.base + pages.start * PAGE..self.base + pages.end * PAGE
        }

        fn change(&mut self, ended: &[Claim], made: &[(Range<u64>, u64)]) -> Vec<Claim> {
            let made: Vec<_> =
                made.iter().map(|(pages, agents)| (self.range(pages.clone()), Agents(*agents))).collect();
            self.foreign.change(&mut self.maps, ended, &made)
        }

        /// Returns for each page the number of the first page of the part that an agent reaches there.
        fn reach(&self, agent: usize, count: u64) -> Vec<Option<u64>> {
            let part = |page: u64| {
                let block = self.maps[agent].block(self.base + page * PAGE)?;
                Some((block.base() - self.base) / PAGE)
            };
            (0..count).map(part).collect()
        }
    }

    #[test]
    fn agents_reach_the_union_of_their_claims() {
        let mut pages = Pages::new(8);
        let first = pages.change(&[], &[(1..3, 0b010)]);
        assert_eq!(pages.reach(1, 5), [None, Some(1), Some(1), None, None]);
        assert_eq!(pages.reach(2, 5), [None; 5]);
        // One that overlaps, one that touches, one that does neither.
        let second = pages.change(&[], &[(2..4, 0b110)]);
        let third = pages.change(&[], &[(4..5, 0b010), (6..7, 0b010)]);
        assert_eq!(pages.reach(1, 8), [None, Some(1), Some(1), Some(1), Some(1), None, Some(6), None]);
        assert_eq!(pages.reach(2, 8), [None, None, Some(2), Some(2), None, None, None, None]);
        pages.change(&second, &[]);
        assert_eq!(pages.reach(1, 8), [None, Some(1), Some(1), None, Some(4), None, Some(6), None]);
        assert_eq!(pages.reach(2, 8), [None; 8]);
        pages.change(&[first[0], third[1]], &[(4..7, 0b100)]);
        assert_eq!(pages.reach(1, 8), [None, None, None, None, Some(4), None, None, None]);
        assert_eq!(pages.reach(2, 8), [None, None, None, None, Some(4), Some(4), Some(4), None]);
    }

    #[test]
    fn every_order_of_claims_gives_the_same_reach() {
        // All pairs of ranges within six pages, made in both orders and ended in both.
        let ranges: Vec<_> = (0..6).flat_map(|start| (start + 1..=6).map(move |end| start..end)).collect();
        for a in &ranges {
            for b in &ranges {
                let mut pages = Pages::new(6);
                let claims = pages.change(&[], &[(a.clone(), 2), (b.clone(), 2)]);
                let both = pages.reach(1, 6);
                for page in 0..6 {
                    let is_claimed = a.contains(&page) || b.contains(&page);
                    assert_eq!(both[page as usize].is_some(), is_claimed, "{a:?} {b:?} {page}");
                }
                let is_connected = a.start <= b.end && b.start <= a.end;
                let parts = both.iter().flatten().collect::<std::collections::BTreeSet<_>>().len();
                assert_eq!(parts, if is_connected { 1 } else { 2 }, "{a:?} {b:?}");
                pages.change(&claims[..1], &[]);
                let rest = pages.reach(1, 6);
                for page in 0..6 {
                    assert_eq!(
                        rest[page as usize],
                        b.contains(&page).then_some(b.start),
                        "{a:?} {b:?} {page}"
                    );
                }
                pages.change(&claims[1..], &[]);
                assert_eq!(pages.reach(1, 6), [None; 6]);
            }
        }
    }

    #[test]
    fn what_a_turn_has_stays_until_it_ends() {
        let mut pages = Pages::new(4);
        let first = pages.change(&[], &[(0..1, 2)]);
        let turn = Arc::clone(&pages.maps[1]);
        // The part of the turn is replaced, and then what replaced it ends.
        let second = pages.change(&[], &[(1..2, 2)]);
        let (one, other) = (pages.range(0..1), pages.range(2..3));
        assert!(!pages.foreign.has_left(&one));
        assert!(pages.foreign.has_left(&other), "nothing of this has been claimed");
        pages.change(&[first[0], second[0]], &[]);
        assert_eq!(pages.reach(1, 4), [None; 4]);
        assert!(!pages.foreign.has_left(&one));
        drop(turn);
        assert!(pages.foreign.has_left(&one));
    }

    #[test]
    fn addresses_of_pools_are_not_the_programs() {
        for (range, expected) in [
            (PAGE..2 * PAGE, true),
            (0..PAGE, false),
            (PAGE..PAGE, false),
            (POOLS.start - PAGE..POOLS.start, true),
            (POOLS.start - PAGE..POOLS.start + PAGE, false),
            (POOLS.end - PAGE..POOLS.end, false),
            (POOLS.end..POOLS.end + PAGE, true),
            (PAGE..USER_END, false),
            (USER_END - PAGE..USER_END, true),
            (USER_END - PAGE..USER_END + PAGE, false),
        ] {
            assert_eq!(is_foreign(&range), expected, "{range:x?}");
        }
        assert_eq!(pages_of(1, 1), Some(0..PAGE));
        assert_eq!(pages_of(PAGE - 1, 2), Some(0..2 * PAGE));
        assert_eq!(pages_of(PAGE, PAGE), Some(PAGE..2 * PAGE));
        assert_eq!(pages_of(u64::MAX, 1), None);
        assert_eq!(pages_of(u64::MAX - 1, 1), None);
    }
}
