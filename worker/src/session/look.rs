//! How far a session is that looks for changes in watched memory, or tells them.

use std::collections::VecDeque;
use std::ops::Range;

use hipr_io::Packer;
use hipr_proto::op::{PACKED_MIN_BYTES, PACKED_PAGES_MAX, PAGE_BYTES, PAGE_RUNS_MAX, PageRun};

use super::counted::Counted;
use crate::env::Env;
use crate::owned::Watches;
use hipr_device::Region;

/// A range that is being looked at.
#[derive(Debug)]
pub(super) struct Look {
    /// The address of the allocation.
    pub(super) base: u64,
    pub(super) src: Region,
    pub(super) stream: u64,
    /// Number of bytes whose notes have been taken.
    pub(super) taken: u64,
    /// Pages that may have changed and have not been compared, as offsets in the range.
    pub(super) open: VecDeque<Range<u64>>,
    /// The bytes of the first of them, as far as they have been read.
    pub(super) piece: Vec<u8>,
    pub(super) have: usize,
    pub(super) runs: Vec<PageRun>,
    /// Number of pages whose bytes are sent.
    pub(super) pages: u64,
    /// Whether the bytes of the pages are packed if that pays.
    pub(super) packs: bool,
}

impl Look {
    /// Begins to look at a range of the allocation at `base`.
    pub(super) fn new(base: u64, src: Region, stream: u64, packs: bool) -> Self {
        let (open, piece, runs) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { base, src, stream, taken: 0, open, piece, have: 0, runs, pages: 0, packs }
    }

    /// Returns of how many more pages the notes may be taken, so that the reply has room for what is found there.
    pub(super) fn room(&self) -> u64 {
        let room = u64::from(PAGE_RUNS_MAX).saturating_sub(self.runs.len() as u64);
        if self.packs { room.min(PACKED_PAGES_MAX.saturating_sub(self.pages)) } else { room }
    }

    /// Adds a changed page at an offset.
    pub(super) fn add(&mut self, offset: u64, kind: u32) {
        let page = u32::try_from(offset / PAGE_BYTES).unwrap_or(u32::MAX);
        self.pages += u64::from(kind == PageRun::BYTES);
        match self.runs.last_mut().filter(|run| run.kind == kind && run.end() == u64::from(page)) {
            Some(run) => run.count += 1,
            None => self.runs.push(PageRun { first: page, count: 1, kind }),
        }
    }

    /// Adds pages that may have changed: whole ones of the range, within what was taken.
    pub(super) fn open(&mut self, part: &Range<u64>, changed: Range<u64>) {
        let whole = changed.start / PAGE_BYTES * PAGE_BYTES..changed.end.next_multiple_of(PAGE_BYTES);
        let pages = whole.start.max(part.start)..whole.end.min(part.end);
        match self.open.back_mut().filter(|last| last.end >= pages.start) {
            Some(last) => last.end = last.end.max(pages.end),
            None if pages.is_empty() => {}
            None => self.open.push_back(pages),
        }
    }
}

/// The bytes of a reply that the client has not been sent.
#[derive(Debug)]
pub(super) struct Telling {
    pub(super) base: u64,
    pub(super) src: Region,
    pub(super) runs: Vec<PageRun>,
    pub(super) table: Vec<u8>,
    /// Number of bytes of the table that were sent, of runs that were sent, and of bytes of the run that comes next.
    pub(super) sent: (usize, usize, u64),
}

/// Changes whose pages are being packed.
#[derive(Debug)]
pub(super) struct PackingChanges {
    /// The changes; its table has been copied.
    pub(super) telling: Telling,
    /// Number of bytes that were looked at.
    pub(super) covered: u64,
    /// Number of bytes of the pages, and of those that have been packed.
    pub(super) len_bytes: u64,
    pub(super) at: u64,
    pub(super) packer: Packer,
    pub(super) packed: Vec<u8>,
    /// Counts the memory of all this.
    pub(super) counted: Counted,
}

/// Returns what packs `len_bytes` of pages, and what counts the memory for it; `None` if they are too few for that to pay, or there is no memory.
pub(super) fn packer_for(env: &Env<'_>, len_bytes: u64) -> Option<(Packer, Counted)> {
    let bytes = usize::try_from(len_bytes).unwrap_or(usize::MAX);
    if bytes < PACKED_MIN_BYTES {
        return None;
    }
    let counted = Counted::new(bytes.saturating_add(Packer::MAX_BYTES), env.budget, env.limits).ok()?;
    Some((Packer::new().ok()?, counted))
}

impl Telling {
    /// Copies the next bytes to `out`.
    pub(super) fn fill(&mut self, watches: &Watches, mut out: &mut [u8]) {
        let (table, run, at) = &mut self.sent;
        let rest = self.table.get(*table..).unwrap_or_default();
        let len = rest.len().min(out.len());
        out[..len].copy_from_slice(&rest[..len]);
        *table += len;
        out = &mut out[len..];
        while let Some(next) = self.runs.get(*run).filter(|_| !out.is_empty()) {
            let (start, len) = next.bytes(self.src.width);
            let left = if next.kind == PageRun::BYTES { len - *at } else { 0 };
            let (now, later) = out.split_at_mut(usize::try_from(left).unwrap_or(usize::MAX).min(out.len()));
            watches.known(self.base, self.src.ptr + start + *at, now);
            *at += now.len() as u64;
            if now.len() as u64 == left {
                (*run, *at) = (*run + 1, 0);
            }
            out = later;
        }
    }
}
