//! Marks of the pages of a block that were written.
//!
//! **Order.** A store writes its bytes first and sets the mark then; whoever takes marks clears a mark first and reads the page then. So a
//! store that comes between has its bytes read, or leaves a mark for the next time, or both; it is never lost. For the same reason a store
//! sets its mark even where it is set already: it may be cleared before the bytes can be seen.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

/// Number of bytes that a mark stands for. Pages begin at multiples of it, counted from the block's first byte.
pub const MARKED_BYTES: usize = 4096;

/// A mark for each page of a block.
#[derive(Debug)]
pub(crate) struct Marks(Box<[AtomicU8]>);

impl Marks {
    /// Creates the marks, none of them set, of `len_bytes` bytes.
    pub(crate) fn new(len_bytes: usize) -> Self {
        Self((0..len_bytes.div_ceil(MARKED_BYTES)).map(|_| AtomicU8::new(0)).collect())
    }

    /// Sets the marks of `len_bytes` bytes at `offset`, which were stored before.
    #[inline(never)]
    pub(crate) fn set(&self, offset: usize, len_bytes: usize) {
        for mark in self.0.get(touched(offset, len_bytes)).unwrap_or_default() {
            mark.store(1, Ordering::Release);
        }
    }

    /// Takes the marks of the pages that the bytes touch, in a block of `end` bytes; see
    /// [`Block::take_marks`](crate::mem::Block::take_marks).
    pub(crate) fn take(&self, offset: usize, len_bytes: usize, end: usize) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for page in touched(offset, len_bytes) {
            let Some(mark) = self.0.get(page).filter(|mark| mark.load(Ordering::Acquire) != 0) else {
                continue;
            };
            let bytes = page * MARKED_BYTES..(page + 1) * MARKED_BYTES;
            // Bytes of other pages' owners may lie in the first and the last page: the mark has to stay for them.
            if bytes.start >= offset && bytes.end.min(end) <= offset + len_bytes {
                mark.swap(0, Ordering::AcqRel);
            }
            match runs.last_mut().filter(|run| run.end == bytes.start) {
                Some(run) => run.end = bytes.end,
                None => runs.push(bytes),
            }
        }
        runs
    }
}

/// Returns the numbers of the pages that bytes touch.
fn touched(offset: usize, len_bytes: usize) -> Range<usize> {
    match len_bytes {
        0 => 0..0,
        len_bytes => offset / MARKED_BYTES..(offset + len_bytes - 1) / MARKED_BYTES + 1,
    }
}
