//! Which parts of a region the program may have written since they were compared with the twin.

use std::ops::Range;

use super::diff::PAGE;
use super::questions::Ranges;
use crate::convert::Ptr;
use crate::worker::WrittenPages;

/// The parts of a region whose bytes may differ from the twin's.
///
/// What the program writes is noted by somebody else, page by page, who forgets it when it is taken. So what was taken stays here until it
/// has been compared, and it is compared after it was taken: a write that comes later is noted anew.
#[derive(Debug, Default)]
pub(super) struct Unseen {
    /// The addresses where writes are noted. Everything else is compared each time.
    tracked: Option<Range<usize>>,
    /// Offsets of what has not been compared.
    open: Ranges,
}

impl Unseen {
    /// Begins to note what is written to `len` bytes, which count as written now unless they are zeros.
    pub(super) fn track(&mut self, pages: &dyn WrittenPages, host: Ptr, len: usize, is_own: bool) {
        self.tracked = pages.track(host, len, is_own);
    }

    /// Ends that.
    pub(super) fn untrack(&mut self, pages: &dyn WrittenPages) {
        if let Some(tracked) = self.tracked.take() {
            pages.untrack(tracked);
        }
    }

    /// Takes what was written to the `len` bytes at `host`; `is_new` says whether something can have been written to tracked pages since
    /// the last time.
    pub(super) fn look(&mut self, pages: &dyn WrittenPages, host: Ptr, len: usize, is_new: bool) {
        let Some(tracked) = self.tracked.clone() else { return self.open.add(0, len) };
        let whole = host.0..host.0 + len;
        self.add(&whole, whole.start..tracked.start);
        self.add(&whole, tracked.end..whole.end);
        if !is_new {
            return;
        }
        match pages.take(tracked) {
            Some(written) => written.into_iter().for_each(|written| self.add(&whole, written)),
            None => {
                self.tracked = None;
                self.open.add(0, len);
            }
        }
    }

    /// Adds a part of the region, by its addresses: what is compared at once begins at a multiple of a page from the region's begin.
    fn add(&mut self, whole: &Range<usize>, part: Range<usize>) {
        let (start, end) = (part.start.max(whole.start), part.end.min(whole.end));
        if start < end {
            let start = (start - whole.start) / PAGE * PAGE;
            let end = (end - whole.start).next_multiple_of(PAGE).min(whole.len());
            self.open.add(start, end - start);
        }
    }

    /// Returns what has to be compared, as offsets in their order.
    pub(super) fn open(&self) -> impl Iterator<Item = Range<usize>> {
        self.open.iter()
    }

    /// Notes that everything has been compared.
    pub(super) fn compared(&mut self) {
        self.open = Ranges::default();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const HOST: Ptr = Ptr(0x1_0ff0);
    const LEN: usize = 10 * PAGE;
    const WHOLE: Range<usize> = 0..LEN;

    /// Returns the addresses of a page of the kernel's.
    fn page(number: usize) -> Range<usize> {
        let start = 0x1_0000 + number * PAGE;
        start..start + PAGE
    }

    /// Notes that cover whole pages, and return these ranges of addresses.
    struct Notes(RefCell<Option<Vec<Range<usize>>>>);

    impl WrittenPages for Notes {
        fn track(&self, at: Ptr, len: usize, _is_own: bool) -> Option<Range<usize>> {
            Some(at.0.next_multiple_of(PAGE)..(at.0 + len) / PAGE * PAGE)
        }

        fn take(&self, range: Range<usize>) -> Option<Vec<Range<usize>>> {
            assert_eq!(range, 0x1_1000..0x1_a000);
            self.0.take()
        }
    }

    fn looked(unseen: &mut Unseen, written: Option<Vec<Range<usize>>>, is_new: bool) -> Vec<Range<usize>> {
        unseen.look(&Notes(RefCell::new(written)), HOST, LEN, is_new);
        unseen.open().collect()
    }

    #[test]
    fn what_is_written_is_open_until_it_was_compared() {
        let mut unseen = Unseen::default();
        unseen.track(&Notes(RefCell::new(None)), HOST, LEN, true);
        // The ends lie in pages of others: 16 bytes of the first, and all but these of the last.
        let (first, last) = (0..PAGE, 9 * PAGE..LEN);
        assert_eq!(looked(&mut unseen, Some(Vec::new()), true), [first.clone(), last.clone()]);
        // A page of the kernel's touches two of the region's.
        let written = vec![page(3)];
        let all = [first.clone(), 2 * PAGE..4 * PAGE, last.clone()];
        assert_eq!(looked(&mut unseen, Some(written), true), all, "what is to be compared is not forgotten");
        assert_eq!(looked(&mut unseen, Some(vec![page(5)]), false), all, "nothing new is asked for");
        unseen.compared();
        assert_eq!(looked(&mut unseen, Some(Vec::new()), true), [first, last]);
        assert_eq!(looked(&mut unseen, None, true), [WHOLE], "what is not known may be anything");
        unseen.compared();
        assert_eq!(looked(&mut unseen, Some(Vec::new()), true), [WHOLE], "and stays so");
    }

    #[test]
    fn what_nobody_notes_is_compared_each_time() {
        let mut unseen = Unseen::default();
        for _ in 0..2 {
            assert_eq!(looked(&mut unseen, Some(Vec::new()), false), [WHOLE]);
            unseen.compared();
        }
    }
}
