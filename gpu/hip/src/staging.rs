//! Copies between the network and device memory through pinned buffers.
//!
//! A session has up to [`BUFFERS`] of them. To the device: bytes are put into a buffer as they come in, and the device copies
//! them in the order of the stream while the next ones arrive; when all buffers are the device's, the session waits. Small
//! copies of one stream share a buffer. From the device: while one chunk is on the network the device copies those behind it.

use std::collections::VecDeque;
use std::task::Poll;

use crate::owner::Owner;
use hipr_proto::{HipError, HipResult};

use super::times::{Timed, Times};
use super::wait::Sleeper;
use hipr_device::Region;

/// Number of pinned buffers of a session.
const BUFFERS: usize = 8;
/// Size of a buffer in bytes. A device copies it in about 20 µs, far longer than enqueueing the copy takes.
const BUFFER_BYTES: usize = 512 << 10;

/// A session's buffers, and the region that is being fetched.
#[derive(Default)]
pub(super) struct Staging {
    /// Free buffers, the least recently used first.
    free: VecDeque<usize>,
    /// Number of buffers.
    count: usize,
    /// The buffer to which bytes for the device were added last.
    open: Option<usize>,
    fetch: Option<Fetch>,
}

/// A region that is being copied from the device.
struct Fetch {
    src: Region,
    stream: u64,
    /// Number of bytes whose copies were enqueued.
    asked: u64,
    /// Enqueued chunks that have not been read, in order.
    chunks: VecDeque<Chunk>,
}

struct Chunk {
    offset: u64,
    len: usize,
    buffer: usize,
}

impl Staging {
    /// Handles that the buffers were released.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns a buffer that the device does not use; `None` while it uses all.
    fn idle(&mut self, owner: &mut Owner) -> HipResult<Option<usize>> {
        if let Some(&oldest) = self.free.front()
            && owner.pinned_is_idle(oldest)?
        {
            return Ok(self.free.pop_front());
        }
        if self.count == BUFFERS {
            return Ok(None);
        }
        match owner.pinned_new(BUFFER_BYTES) {
            Ok(buffer) => {
                self.count += 1;
                Ok(Some(buffer))
            }
            // Fewer will do.
            Err(_) if self.count > 0 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes bytes for `dst` from packed offset `offset` on; returns how many.
    pub(super) fn poll_write(
        &mut self,
        Timed { owner, times }: Timed<'_>,
        sleeper: &mut Sleeper,
        dst: &Region,
        offset: u64,
        bytes: &[u8],
        stream: u64,
    ) -> Poll<HipResult<usize>> {
        let bytes = bytes.get(..BUFFER_BYTES).unwrap_or(bytes);
        let open = self.open.filter(|&open| owner.pinned_room(open, stream) >= bytes.len());
        let buffer = match open {
            Some(open) => {
                self.free.retain(|&free| free != open);
                open
            }
            None => match self.idle(owner) {
                Ok(Some(buffer)) => buffer,
                Ok(None) => return sleeper.pending(),
                Err(error) => return Poll::Ready(Err(error)),
            },
        };
        sleeper.refresh();
        let rows = pieces(dst, offset, bytes.len() as u64);
        let sent = times.around(owner, stream, 0, |owner| owner.pinned_send(buffer, bytes, rows, stream));
        self.open = Some(buffer);
        self.free.push_back(buffer);
        Poll::Ready(sent.map(|()| bytes.len()))
    }

    /// Returns how many of the `len` bytes at `offset` of `src` can be read now; at least one.
    pub(super) fn poll_fetched(
        &mut self,
        Timed { owner, times }: Timed<'_>,
        sleeper: &mut Sleeper,
        src: &Region,
        offset: u64,
        len: usize,
        stream: u64,
    ) -> Poll<HipResult<usize>> {
        let goes_on = |fetch: &Fetch| {
            fetch.src == *src
                && fetch.stream == stream
                && fetch.chunks.front().map_or(fetch.asked, |first| first.offset) <= offset
                && fetch.asked >= offset
        };
        if !self.fetch.as_ref().is_some_and(goes_on) {
            self.end_fetch();
            self.fetch = Some(Fetch { src: *src, stream, asked: offset, chunks: VecDeque::new() });
        }
        if let Err(error) = self.ask(owner, times) {
            self.end_fetch();
            return Poll::Ready(Err(error));
        }
        let first = self.fetch.as_ref().and_then(|fetch| fetch.chunks.front());
        let Some(&Chunk { offset: start, len: chunk_len, buffer }) = first else { return sleeper.pending() };
        match owner.pinned_is_idle(buffer) {
            Ok(true) => {
                sleeper.refresh();
                let left = (start + chunk_len as u64).saturating_sub(offset);
                Poll::Ready(Ok(usize::try_from(left).unwrap_or(usize::MAX).min(len)))
            }
            Ok(false) => sleeper.pending(),
            Err(error) => {
                self.end_fetch();
                Poll::Ready(Err(error))
            }
        }
    }

    /// Enqueues copies of the rest into as many buffers as there are.
    fn ask(&mut self, owner: &mut Owner, times: &mut Times) -> HipResult<()> {
        while let Some(Fetch { src, stream, asked, .. }) = self.fetch {
            let left = src.len_bytes().unwrap_or(0).saturating_sub(asked);
            let len = usize::try_from(left).unwrap_or(usize::MAX).min(BUFFER_BYTES);
            if len == 0 {
                break;
            }
            let Some(buffer) = self.idle(owner)? else { break };
            let rows = pieces(&src, asked, len as u64);
            let result =
                times.around(owner, stream, 0, |owner| owner.pinned_fetch(buffer, len, rows, stream));
            match &mut self.fetch {
                Some(fetch) if result.is_ok() => {
                    fetch.asked += len as u64;
                    fetch.chunks.push_back(Chunk { offset: asked, len, buffer });
                }
                _ => self.free.push_back(buffer),
            }
            result?;
        }
        Ok(())
    }

    /// Reads bytes that [`poll_fetched`](Self::poll_fetched) allowed.
    pub(super) fn read(
        &mut self,
        owner: &mut Owner,
        times: &mut Times,
        src: &Region,
        offset: u64,
        out: &mut [u8],
    ) -> HipResult<()> {
        let Some(fetch) = self.fetch.as_mut().filter(|fetch| fetch.src == *src) else {
            return Err(HipError::NOT_READY);
        };
        let Some(first) = fetch.chunks.front() else { return Err(HipError::NOT_READY) };
        let bytes = owner.pinned_bytes(first.buffer)?;
        let start = offset.checked_sub(first.offset).and_then(|start| usize::try_from(start).ok());
        let end = start.and_then(|start| start.checked_add(out.len())).filter(|&end| end <= first.len);
        let (Some(start), Some(end)) = (start, end) else { return Err(HipError::NOT_READY) };
        out.copy_from_slice(bytes.get(start..end).ok_or(HipError::NOT_READY)?);
        if end == first.len {
            self.free.push_back(first.buffer);
            fetch.chunks.pop_front();
        }
        if fetch.chunks.is_empty() && Some(fetch.asked) == src.len_bytes() {
            self.fetch = None;
            return Ok(());
        }
        // An error of the bytes behind is for who reads them.
        let _ = self.ask(owner, times);
        Ok(())
    }

    /// Ends a fetch; buffers that the device still writes to are used last.
    fn end_fetch(&mut self) {
        let chunks = self.fetch.take().map(|fetch| fetch.chunks).unwrap_or_default();
        self.free.extend(chunks.into_iter().map(|chunk| chunk.buffer));
    }
}

/// Splits packed bytes `offset .. offset + len` of a region into rectangular regions: parts of rows, groups of whole rows,
/// or one row for a region without gaps.
fn pieces(region: &Region, mut offset: u64, len: u64) -> impl Iterator<Item = Region> + use<> {
    let region = *region;
    let mut left = len;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let (ptr, run) = region.run_at(offset)?;
        let is_whole = run == region.width && left >= run && !region.is_contiguous();
        let rows_left = region.height.saturating_sub((offset / region.width) % region.height);
        let height = if is_whole { (left / run).min(rows_left).max(1) } else { 1 };
        let width = run.min(left);
        offset += width * height;
        left -= width * height;
        Some(Region { ptr, width, height, depth: 1, ..region })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(region: &Region, offset: u64, len: u64) -> Vec<(u64, u64, u64)> {
        pieces(region, offset, len).map(|rows| (rows.ptr, rows.width, rows.height)).collect()
    }

    #[test]
    fn rows_are_taken_together_and_parts_of_rows_alone() {
        let flat = Region::flat(1000, 100);
        assert_eq!(listed(&flat, 0, 100), [(1000, 100, 1)]);
        assert_eq!(listed(&flat, 30, 50), [(1030, 50, 1)]);
        let region = Region { ptr: 0, pitch: 16, slice: 100, width: 10, height: 4, depth: 3 };
        assert_eq!(listed(&region, 0, 120), [(0, 10, 4), (100, 10, 4), (200, 10, 4)]);
        assert_eq!(listed(&region, 5, 30), [(5, 5, 1), (16, 10, 2), (48, 5, 1)]);
        assert_eq!(listed(&region, 35, 20), [(53, 5, 1), (100, 10, 1), (116, 5, 1)]);
        assert_eq!(listed(&region, 3, 4), [(3, 4, 1)]);
    }

    #[test]
    fn pieces_are_the_runs() {
        let region = Region { ptr: 7, pitch: 9, slice: 50, width: 4, height: 5, depth: 3 };
        for offset in 0..60 {
            for len in 0..=60 - offset {
                let bytes = |rows: Region| {
                    (0..rows.height)
                        .flat_map(move |y| (0..rows.width).map(move |x| rows.ptr + y * rows.pitch + x))
                };
                let ours: Vec<u64> = pieces(&region, offset, len).flat_map(bytes).collect();
                let runs: Vec<u64> =
                    region.runs(offset, len).flat_map(|(ptr, _, run)| ptr..ptr + run).collect();
                assert_eq!(ours, runs, "{offset} {len}");
            }
        }
    }
}
