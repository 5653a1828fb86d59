//! Changed pages, as a reply to `MEM_CHANGES` brings them.

use super::define::layout;
use super::{MemChanges, MemChangesReply};
use crate::wire::{Array, Wire, WireError};

/// Size of a page in bytes.
pub const PAGE_BYTES: u64 = 4096;
/// Maximum number of runs in a reply; what comes behind them is asked for again.
pub const PAGE_RUNS_MAX: u32 = 1 << 14;
/// Maximum number of pages whose bytes a packed reply has; what comes behind them is asked for again.
pub const PACKED_PAGES_MAX: u64 = 1 << 13;

layout! {
    /// A run of changed pages: the first one, counted from the address of the request; their number; and whether their bytes follow
    /// ([`BYTES`](Self::BYTES)) or are all zeros ([`ZEROS`](Self::ZEROS)).
    PageRun { first: u32, count: u32, kind: u32 }
}

impl PageRun {
    /// The kind of pages whose bytes follow.
    pub const BYTES: u32 = 0;
    /// The kind of pages of zeros, whose bytes are not sent.
    pub const ZEROS: u32 = 1;

    /// Returns the number of the page behind the last one.
    pub fn end(&self) -> u64 {
        u64::from(self.first) + u64::from(self.count)
    }

    /// Returns offset and length in bytes in a range of `length` bytes, whose last page may be shorter.
    pub fn bytes(&self, length: u64) -> (u64, u64) {
        let start = (u64::from(self.first) * PAGE_BYTES).min(length);
        (start, (self.end() * PAGE_BYTES).min(length) - start)
    }
}

/// Returns the greatest length of the bytes behind the reply about a range of `length` bytes.
pub(super) fn changes_max(length: u64) -> u64 {
    length.saturating_add(u64::from(PAGE_RUNS_MAX) * PageRun::SIZE as u64)
}

/// The contents of a run of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// So many zeros.
    Zeros(u64),
}

/// The changed pages of a reply. They have been checked: they lie in the range, one behind the other, and have their bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Changes<'a> {
    runs: Array<'a, PageRun>,
    bytes: &'a [u8],
    length: u64,
}

impl<'a> Changes<'a> {
    /// Reads the bytes behind the reply to a request; `None` if the worker does not know what has changed.
    ///
    /// # Errors
    /// More runs than allowed, a run of no pages or of an undefined kind, runs that overlap, are out of order or go beyond what was looked
    /// at, bytes that are missing or left over, and an answer that covers nothing, more than was asked for, or a part of a page.
    pub fn parse(
        request: &MemChanges,
        reply: &MemChangesReply,
        mut tail: &'a [u8],
    ) -> Result<Option<Self>, WireError> {
        match reply.is_known {
            0 if reply.num_runs == 0 => return Ok(None),
            1 => {}
            _ => return Err(WireError::Value),
        }
        let (covered, length) = (reply.covered, request.length);
        let is_whole =
            covered == length || covered.is_multiple_of(PAGE_BYTES) && (1..length).contains(&covered);
        if !is_whole || reply.num_runs > PAGE_RUNS_MAX {
            return Err(WireError::Value);
        }
        let runs = Array::<PageRun>::take(&mut tail, u64::from(reply.num_runs))?;
        let (mut end, mut need) = (0, 0);
        for run in runs.iter() {
            let is_next = u64::from(run.first) >= end && run.count > 0;
            let is_inside = run.end() <= covered.div_ceil(PAGE_BYTES);
            if !is_next || !is_inside || run.kind > PageRun::ZEROS {
                return Err(WireError::Value);
            }
            end = run.end();
            need += if run.kind == PageRun::BYTES { run.bytes(length).1 } else { 0 };
        }
        match (tail.len() as u64).checked_sub(need) {
            Some(0) => Ok(Some(Self { runs, bytes: tail, length })),
            Some(_) => Err(WireError::Long { have: tail.len() as u64, max: need }),
            None => Err(WireError::Short { need, have: tail.len() as u64 }),
        }
    }

    /// Iterates over the runs: the offset of the first byte in the range that was asked about, and the contents.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Pages<'a>)> + use<'a> {
        let Self { runs, mut bytes, length } = *self;
        (0..runs.len()).filter_map(move |index| {
            let run = runs.at(index)?;
            let (start, len) = run.bytes(length);
            if run.kind == PageRun::ZEROS {
                return Some((start, Pages::Zeros(len)));
            }
            let (now, later) = bytes.split_at_checked(usize::try_from(len).ok()?)?;
            bytes = later;
            Some((start, Pages::Bytes(now)))
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const LENGTH: u64 = 3 * PAGE_BYTES + 100;

    /// First page, number of pages and kind of a run.
    type Run = (u32, u32, u32);

    fn parse(covered: u64, runs: &[Run], len: usize) -> Result<Vec<(u64, u64, bool)>, WireError> {
        let request = MemChanges { address: 0x1000, length: LENGTH, stream: 0 };
        let reply = MemChangesReply { covered, num_runs: runs.len() as u32, is_known: 1 };
        let mut tail = Vec::new();
        runs.iter().for_each(|&(first, count, kind)| PageRun { first, count, kind }.put(&mut tail));
        tail.extend((0..len).map(|at| at as u8));
        let changes = Changes::parse(&request, &reply, &tail)?.ok_or(WireError::Value)?;
        let list = changes.iter().map(|(start, pages)| match pages {
            Pages::Bytes(bytes) => (start, bytes.len() as u64, false),
            Pages::Zeros(len) => (start, len, true),
        });
        Ok(list.collect())
    }

    #[test]
    fn runs_have_their_bytes_and_the_last_page_is_cut_off() {
        assert_eq!(parse(LENGTH, &[], 0), Ok(Vec::new()));
        let runs = [(0, 1, 0), (1, 1, 1), (2, 2, 0)];
        let expected = [(0, 4096, false), (4096, 4096, true), (8192, 4196, false)];
        assert_eq!(parse(LENGTH, &runs, 4096 + 4196), Ok(expected.to_vec()));
        assert_eq!(parse(8192, &[(1, 1, 0)], 4096), Ok(alloc::vec![(4096, 4096, false)]));
        assert_eq!(parse(LENGTH, &[(3, 1, 1)], 0), Ok(alloc::vec![(12_288, 100, true)]));
    }

    #[test]
    fn what_no_worker_may_say_is_refused() {
        let cases: &[(u64, &[Run], usize)] = &[
            (0, &[], 0),
            (4095, &[], 0),
            (LENGTH + 1, &[], 0),
            (u64::MAX, &[], 0),
            (4096, &[(1, 1, 0)], 4096),
            (LENGTH, &[(4, 1, 0)], 0),
            (LENGTH, &[(3, 2, 0)], 100),
            (LENGTH, &[(0, u32::MAX, 1)], 0),
            (LENGTH, &[(u32::MAX, u32::MAX, 0)], 0),
            (LENGTH, &[(0, 0, 0)], 0),
            (LENGTH, &[(0, 1, 2)], 4096),
            (LENGTH, &[(1, 1, 0), (0, 1, 0)], 8192),
            (LENGTH, &[(0, 2, 0), (1, 1, 0)], 12_288),
            (LENGTH, &[(0, 1, 0)], 4095),
            (LENGTH, &[(0, 1, 0)], 4097),
            (LENGTH, &[], 1),
            (LENGTH, &[(3, 1, 0)], 4096),
        ];
        for &(covered, runs, len) in cases {
            assert!(parse(covered, runs, len).is_err(), "{covered} {runs:?} {len}");
        }
        let request = MemChanges { address: 0, length: LENGTH, stream: 0 };
        for (num_runs, is_known, ok) in [(0, 0, true), (1, 0, false), (0, 2, false), (1, 1, false)] {
            let reply = MemChangesReply { covered: LENGTH, num_runs, is_known };
            assert_eq!(Changes::parse(&request, &reply, &[]).is_ok(), ok, "{num_runs} {is_known}");
        }
        let reply = MemChangesReply { covered: LENGTH, num_runs: PAGE_RUNS_MAX + 1, is_known: 1 };
        assert_eq!(Changes::parse(&request, &reply, &[]), Err(WireError::Value));
    }
}
