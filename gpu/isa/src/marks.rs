//! Marks of the pages of a block that were written.
//!
//! **Order.** A store writes its bytes first and sets the mark then; whoever takes marks clears a mark first and reads the page then. So a
//! store that comes between has its bytes read, or leaves a mark for the next time, or both; it is never lost. For the same reason a store
//! sets its mark even where it is set already: it may be cleared before the bytes can be seen.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

/// Number of bytes that a mark stands for. Pages begin at multiples of it, counted from the block's first byte.
pub const MARKED_BYTES: usize = 4096;

/// Number of pages that have a mark in common, besides their own.
const GROUP_PAGES: usize = 512;

/// A mark for each page of a block, and one for each group of them: where a group has none, its pages are not looked at.
#[derive(Debug)]
pub(crate) struct Marks {
    pages: Box<[AtomicU8]>,
    groups: Box<[Group]>,
}

/// The mark of a group, in a cache line of its own: who stores to one group does not hold up who stores to another.
#[derive(Debug)]
#[repr(align(64))]
struct Group(AtomicU8);

impl Marks {
    /// Creates the marks, none of them set, of `len_bytes` bytes.
    pub(crate) fn new(len_bytes: usize) -> Self {
        let pages = len_bytes.div_ceil(MARKED_BYTES);
        Self {
            pages: (0..pages).map(|_| AtomicU8::new(0)).collect(),
            groups: (0..pages.div_ceil(GROUP_PAGES)).map(|_| Group(AtomicU8::new(0))).collect(),
        }
    }

    /// Sets the marks of `len_bytes` bytes at `offset`, which were stored before.
    #[inline(never)]
    pub(crate) fn set(&self, offset: usize, len_bytes: usize) {
        let pages = touched(offset, len_bytes);
        for mark in self.pages.get(pages.clone()).unwrap_or_default() {
            mark.store(1, Ordering::Release);
        }
        // Behind those of the pages, as these are behind the bytes.
        for group in self.groups.get(groups(&pages)).unwrap_or_default() {
            group.0.store(1, Ordering::Release);
        }
    }

    /// Takes the marks of the pages that the bytes touch, in a block of `end` bytes; see
    /// [`Block::take_marks`](crate::mem::Block::take_marks).
    pub(crate) fn take(&self, offset: usize, len_bytes: usize, end: usize) -> Vec<Range<usize>> {
        // Bytes of other pages' owners may lie in the first and the last page or group: the mark has to stay for them.
        let is_inside =
            |bytes: &Range<usize>| bytes.start >= offset && bytes.end.min(end) <= offset + len_bytes;
        let mut runs: Vec<Range<usize>> = Vec::new();
        let all = touched(offset, len_bytes);
        for group in groups(&all) {
            let pages = group * GROUP_PAGES..(group + 1) * GROUP_PAGES;
            let is_set = |group: &&Group| group.0.load(Ordering::Acquire) != 0;
            let Some(Group(mark)) = self.groups.get(group).filter(is_set) else { continue };
            if is_inside(&(pages.start * MARKED_BYTES..pages.end * MARKED_BYTES)) {
                mark.swap(0, Ordering::AcqRel);
            }
            for page in pages.start.max(all.start)..pages.end.min(all.end) {
                let Some(mark) = self.pages.get(page).filter(|mark| mark.load(Ordering::Acquire) != 0) else {
                    continue;
                };
                let bytes = page * MARKED_BYTES..(page + 1) * MARKED_BYTES;
                if is_inside(&bytes) {
                    mark.swap(0, Ordering::AcqRel);
                }
                match runs.last_mut().filter(|run| run.end == bytes.start) {
                    Some(run) => run.end = bytes.end,
                    None => runs.push(bytes),
                }
            }
        }
        runs
    }
}

/// Returns the numbers of the groups that pages are in.
fn groups(pages: &Range<usize>) -> Range<usize> {
    pages.start / GROUP_PAGES..pages.end.div_ceil(GROUP_PAGES)
}

/// Returns the numbers of the pages that bytes touch.
fn touched(offset: usize, len_bytes: usize) -> Range<usize> {
    match len_bytes {
        0 => 0..0,
        len_bytes => offset / MARKED_BYTES..(offset + len_bytes - 1) / MARKED_BYTES + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks of pages that are looked at one by one.
    struct Plain(Vec<bool>);

    impl Plain {
        fn take(&mut self, offset: usize, len_bytes: usize, end: usize) -> Vec<usize> {
            let taken: Vec<usize> = touched(offset, len_bytes).filter(|page| self.0[*page]).collect();
            for page in &taken {
                let (start, stop) = (page * MARKED_BYTES, ((page + 1) * MARKED_BYTES).min(end));
                self.0[*page] = start < offset || stop > offset + len_bytes;
            }
            taken
        }
    }

    #[test]
    fn groups_hide_no_mark() {
        // Three groups, the last of them and its last page not whole.
        let end = (2 * GROUP_PAGES + 100) * MARKED_BYTES + 10;
        let (marks, mut plain) = (Marks::new(end), Plain(vec![false; end.div_ceil(MARKED_BYTES)]));
        let group = GROUP_PAGES * MARKED_BYTES;
        let ends = [
            0,
            1,
            MARKED_BYTES,
            group - 1,
            group,
            group + 1,
            2 * group - MARKED_BYTES,
            2 * group,
            end - 1,
            end,
        ];
        let ranges: Vec<(usize, usize)> = ends
            .iter()
            .flat_map(|start| {
                ends.iter().filter(move |stop| *stop >= start).map(move |stop| (*start, stop - start))
            })
            .collect();
        for (set_at, set_len) in &ranges {
            for (offset, len) in &ranges {
                marks.set(*set_at, *set_len);
                touched(*set_at, *set_len).for_each(|page| plain.0[page] = true);
                // Of some, and then of all that is left.
                for (offset, len) in [(*offset, *len), (0, end), (0, end)] {
                    let runs = marks.take(offset, len, end);
                    assert!(runs.windows(2).all(|pair| pair[0].end < pair[1].start), "{runs:?}");
                    let taken: Vec<usize> = runs
                        .into_iter()
                        .flat_map(|run| run.start / MARKED_BYTES..run.end / MARKED_BYTES)
                        .collect();
                    assert_eq!(taken, plain.take(offset, len, end), "{set_at} {set_len}, {offset} {len}");
                }
            }
        }
    }
}
