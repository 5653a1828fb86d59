//! Reserves the addresses of device memory, so that this process's own memory is never mapped there.
//!
//! Host and device addresses are numbers from two processes. As long as no number means both, an address alone says what it
//! is, which `hipMemcpyDefault` and programs that are careless with copy kinds rely on. So where the worker gives device memory
//! at an address that this process could use as well, the address is reserved here: mapped without any access. Where
//! something is there already, the allocation is ambiguous, and copies go by their kind.

use std::collections::BTreeMap;

use crate::convert::Ptr;
use crate::worker::map;

const PAGE: usize = 4096;

/// Address above which programs, their libraries, heaps and stacks lie on the platforms that HIP supports, unless a program
/// asks for a lower one.
const HOST_START: usize = 0x5000_0000_0000;

/// The reserved address ranges, from begin to end; they do not touch.
#[derive(Debug, Default)]
pub(crate) struct Reserved {
    ranges: BTreeMap<usize, usize>,
    /// Whether addresses below [`HOST_START`] are reserved as well.
    with_low: bool,
}

impl Reserved {
    /// Creates a table that also reserves addresses below [`HOST_START`]. It is for several workers: each chooses low addresses for host memory, and
    /// another worker may have device memory there.
    pub(crate) fn with_low() -> Self {
        Self { ranges: BTreeMap::new(), with_low: true }
    }

    /// Reserves the addresses of an allocation; returns false if the process uses some of them.
    pub(crate) fn claim(&mut self, base: Ptr, len: usize) -> bool {
        let Some(end) = base.0.checked_add(len).and_then(|end| end.checked_next_multiple_of(PAGE)) else {
            return false;
        };
        if end <= HOST_START && !self.with_low {
            return true;
        }
        let mut at = base.0 - base.0 % PAGE;
        while at < end {
            if let Some((_, covered)) =
                self.ranges.range(..=at).next_back().filter(|(_, covered)| **covered > at)
            {
                at = *covered;
                continue;
            }
            let next = self.ranges.range(at..end).next().map_or(end, |(start, _)| *start);
            if !map::reserve(Ptr(at), next - at) {
                return false;
            }
            self.add(at, next);
            at = next;
        }
        true
    }

    fn add(&mut self, mut start: usize, mut end: usize) {
        if let Some((before, _)) =
            self.ranges.range(..start).next_back().filter(|(_, covered)| **covered == start)
        {
            start = *before;
        }
        if let Some(behind) = self.ranges.remove(&end) {
            end = behind;
        }
        self.ranges.insert(start, end);
    }

    /// Gives addresses back to the process.
    pub(crate) fn release(&mut self, base: Ptr, len: usize) {
        let (start, end) = (base.0 - base.0 % PAGE, base.0.saturating_add(len));
        let touched: Vec<_> = self
            .ranges
            .range(..end)
            .rev()
            .take_while(|(_, covered)| **covered > start)
            .map(|(from, to)| (*from, *to))
            .collect();
        for (from, to) in touched {
            self.ranges.remove(&from);
            if from < start {
                self.ranges.insert(from, start);
            }
            let free_end = to.min(end.next_multiple_of(PAGE));
            if to > free_end {
                self.ranges.insert(free_end, to);
            }
            let free_start = from.max(start);
            map::unmap(Ptr(free_start), free_end - free_start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::map::Source;

    /// Reserves addresses next to ones that were free a moment ago; None if another thread mapped memory there meanwhile.
    fn claims(pages: usize) -> Option<(Ptr, Reserved)> {
        let at = map::anywhere(pages * PAGE, &Source::New)?;
        map::unmap(at, pages * PAGE);
        assert!(at.0 >= HOST_START, "the process's memory is where it is expected");
        let mut reserved = Reserved::default();
        let claimed = reserved.claim(at.offset(8 * PAGE + 100), 3 * PAGE)
            && reserved.claim(at.offset(8 * PAGE), PAGE)
            && reserved.claim(at.offset(6 * PAGE), 10 * PAGE);
        claimed.then_some((at, reserved))
    }

    #[test]
    fn what_is_reserved_is_not_given_to_the_process() {
        let (at, mut reserved) = (0..1000).find_map(|_| claims(64)).expect("free addresses");
        assert_eq!(reserved.ranges, BTreeMap::from([(at.0 + 6 * PAGE, at.0 + 16 * PAGE)]));
        assert_eq!(map::at(at.offset(9 * PAGE), PAGE, &Source::New), None);
        reserved.release(at.offset(9 * PAGE), 2 * PAGE);
        assert_eq!(
            reserved.ranges,
            BTreeMap::from([(at.0 + 6 * PAGE, at.0 + 9 * PAGE), (at.0 + 11 * PAGE, at.0 + 16 * PAGE)])
        );
        reserved.release(at, 64 * PAGE);
        assert_eq!(reserved.ranges, BTreeMap::new());
    }

    #[test]
    fn low_addresses_are_reserved_for_several_workers() {
        let at = Ptr(0x2fed_cba9_8000);
        let mut reserved = Reserved::with_low();
        assert!(reserved.claim(at, PAGE) && reserved.claim(at, 2 * PAGE));
        assert_eq!(map::at(at.offset(PAGE), PAGE, &Source::New), None);
        reserved.release(at, 2 * PAGE);
        let there = map::at(at, PAGE, &Source::New).expect("it is free again");
        assert!(!reserved.claim(at, PAGE), "the process uses it");
        map::unmap(there, PAGE);
    }

    #[test]
    fn what_the_process_uses_cannot_be_reserved() {
        let used = map::anywhere(PAGE, &Source::New).expect("memory");
        assert!(!Reserved::default().claim(used, 10));
        map::unmap(used, PAGE);
    }

    #[test]
    fn low_addresses_need_no_reservation() {
        let mut reserved = Reserved::default();
        assert!(reserved.claim(Ptr(0x2000_0000_0000), 1 << 40));
        assert_eq!(reserved.ranges, BTreeMap::new());
    }
}
