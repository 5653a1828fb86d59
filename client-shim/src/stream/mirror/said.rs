//! What the program said of memory that host and device share, and may ask for again: advice about managed memory, where it was
//! prefetched to, and whether operations on it wait. Nothing of it changes how the memory is brought together.

use std::collections::BTreeMap;
use std::ops::Range;

use hipr_abi::hipInvalidDeviceId;

use super::diff::PAGE;
use super::{Mirrors, Origin};
use crate::convert::Ptr;

/// What the program said of pages of managed memory (HIP API: hipMemRangeAttribute). Locations are devices, or `hipCpuDeviceId`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// Whether the pages are mostly read.
    pub is_read_mostly: bool,
    /// Whether the pages are coarse-grained.
    pub is_coarse_grained: bool,
    /// The preferred location, or `hipInvalidDeviceId`.
    pub preferred: i32,
    /// The location to which the pages were prefetched last, or `hipInvalidDeviceId`.
    pub prefetched: i32,
    /// The locations from which the pages are accessed, the host last.
    accessed_by: Vec<i32>,
}

impl Default for Advice {
    fn default() -> Self {
        Self {
            is_read_mostly: false,
            is_coarse_grained: false,
            preferred: hipInvalidDeviceId,
            prefetched: hipInvalidDeviceId,
            accessed_by: Vec::new(),
        }
    }
}

impl Advice {
    /// Notes whether the pages are accessed from a location.
    pub fn set_accessed_by(&mut self, location: i32, is_accessed: bool) {
        self.accessed_by.retain(|known| *known != location);
        if is_accessed {
            self.accessed_by.push(location);
            // The host, -1, is the largest without a sign.
            self.accessed_by.sort_unstable_by_key(|location| location.cast_unsigned());
        }
    }

    /// Returns the locations from which the pages are accessed, the host last.
    pub fn accessed_by(&self) -> &[i32] {
        &self.accessed_by
    }
}

/// What the program said of a region.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Advice by the number of the page from which on it holds, up to the next one. It is the default before the first.
    advice: BTreeMap<usize, Advice>,
    /// Whether operations on the memory wait (HIP API: HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS).
    is_synchronous: bool,
}

impl Said {
    fn at(&self, page: usize) -> Advice {
        self.advice.range(..=page).next_back().map(|(_, advice)| advice.clone()).unwrap_or_default()
    }

    fn change(&mut self, pages: Range<usize>, change: impl Fn(&mut Advice)) {
        for cut in [pages.start, pages.end] {
            let advice = self.at(cut);
            self.advice.insert(cut, advice);
        }
        self.advice.range_mut(pages.clone()).for_each(|(_, advice)| change(advice));
        let mut before = pages.start.checked_sub(1).map(|page| self.at(page)).unwrap_or_default();
        let cuts: Vec<usize> = self.advice.range(pages.start..=pages.end).map(|(page, _)| *page).collect();
        for cut in cuts {
            let advice = self.at(cut);
            if advice == before {
                self.advice.remove(&cut);
            }
            before = advice;
        }
    }

    fn parts(&self, pages: Range<usize>) -> Vec<Advice> {
        let rest = self.advice.range(pages.start + 1..pages.end.max(pages.start + 1));
        std::iter::once(self.at(pages.start)).chain(rest.map(|(_, advice)| advice.clone())).collect()
    }
}

/// Returns the pages in which the bytes are, by their numbers.
fn pages_of(ptr: Ptr, len: usize) -> Range<usize> {
    ptr.0 / PAGE..ptr.0.saturating_add(len).div_ceil(PAGE)
}

impl Mirrors {
    /// Changes what was said of the pages of `len` bytes at `ptr`. Returns false if these are not all one piece of managed memory.
    pub fn advise(&self, ptr: Ptr, len: usize, change: impl Fn(&mut Advice)) -> bool {
        self.with_said(ptr, |origin, left, said| {
            let is_managed = origin == Origin::Managed && left >= len;
            if is_managed {
                said.change(pages_of(ptr, len), change);
            }
            is_managed
        })
        .unwrap_or(false)
    }

    /// Returns what was said of the pages of `len` bytes at `ptr`, of each part of which the same was said; `None` if these are not all
    /// one piece of managed memory.
    pub fn advice(&self, ptr: Ptr, len: usize) -> Option<Vec<Advice>> {
        self.with_said(ptr, |origin, left, said| {
            (origin == Origin::Managed && left >= len).then(|| said.parts(pages_of(ptr, len)))
        })?
    }

    /// Notes whether operations on the memory at `ptr` wait. Returns false if it is not mirrored.
    pub fn set_synchronous(&self, ptr: Ptr, is_synchronous: bool) -> bool {
        self.with_said(ptr, |_, _, said| said.is_synchronous = is_synchronous).is_some()
    }

    /// Returns whether operations on the memory at `ptr` wait.
    pub fn is_synchronous(&self, ptr: Ptr) -> bool {
        self.with_said(ptr, |_, _, said| said.is_synchronous).unwrap_or(false)
    }

    /// Calls `body` with the origin of the memory at `ptr`, the number of bytes from there to its end, and what was said of it.
    fn with_said<R>(&self, ptr: Ptr, body: impl FnOnce(Origin, usize, &mut Said) -> R) -> Option<R> {
        let mut regions = self.first().regions();
        let (region, offset) = regions.find(ptr)?;
        let base = region.info.host.0;
        let region = regions.by_host.get_mut(&base)?;
        Some(body(region.info.origin, region.info.len - offset, &mut region.said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_mostly(said: &Said, pages: Range<usize>) -> Vec<bool> {
        said.parts(pages).iter().map(|advice| advice.is_read_mostly).collect()
    }

    #[test]
    fn advice_holds_for_its_pages_only() {
        let mut said = Said::default();
        assert_eq!(read_mostly(&said, 0..100), [false]);
        said.change(10..20, |advice| advice.is_read_mostly = true);
        assert_eq!(read_mostly(&said, 0..100), [false, true, false]);
        assert_eq!(read_mostly(&said, 10..20), [true]);
        assert_eq!(read_mostly(&said, 19..21), [true, false]);
        assert_eq!(read_mostly(&said, 20..21), [false]);
    }

    #[test]
    fn parts_of_which_the_same_is_said_become_one() {
        let mut said = Said::default();
        for pages in [10..20, 30..40, 20..30] {
            said.change(pages, |advice| advice.preferred = 1);
        }
        assert_eq!(said.advice.len(), 2, "{said:?}");
        said.change(0..100, |advice| advice.preferred = hipInvalidDeviceId);
        assert!(said.advice.is_empty(), "{said:?}");
    }

    #[test]
    fn the_host_is_the_last_of_those_that_access() {
        let mut advice = Advice::default();
        for location in [3, -1, 0, 3] {
            advice.set_accessed_by(location, true);
        }
        assert_eq!(advice.accessed_by(), [0, 3, -1]);
        advice.set_accessed_by(3, false);
        assert_eq!(advice.accessed_by(), [0, -1]);
    }
}
