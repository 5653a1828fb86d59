//! Commands that concern another worker than that of their stream: waits for its events, copies, fills and frees of its memory.
//!
//! Workers know nothing of each other, so that it is this process that orders their work. Such a command becomes a step of its stream: what
//! the stream has later is held until the step has ended. The step first waits until the worker tells that an event has happened: for a wait
//! the record that the program means, for all else one behind the work that the stream has. Then it has the bytes moved: from worker to worker
//! where they reach each other, else through this process.
//! All that is sent afterwards to the worker whose memory was written comes behind that.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use hipr_proto::op::kind;
use hipr_proto::{HipError, HipResult};

use super::Streams;
use super::at_once::{send_copy, send_fill};
use super::mirror::Place;
use crate::command::{Command, MemoryBox, MemoryCopy, Size, Transfer};
use crate::convert::{Event, Ptr};
use crate::worker::{Port, Wait, lock};

/// Maximum number of bytes of a copy between workers that are in this process at a time.
const PIECE_MAX_BYTES: usize = 16 << 20;
/// Maximum number of bytes that go from worker to worker before other commands of this process have their turn there.
const DIRECT_MAX_BYTES: usize = 256 << 20;

/// The lowest number of a watch that a step begins; queries of the program have lower ones.
const FIRST_AWAITED: u64 = 1 << 63;

/// The watches (`EVENT_WATCH`) for which steps wait.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    open: Mutex<BTreeSet<u64>>,
    count: AtomicU64,
}

impl Awaited {
    /// Handles that a worker tells of the end of a watch, whosever it is.
    pub(super) fn is_over(&self, number: u64) {
        if number >= FIRST_AWAITED {
            lock(&self.open).remove(&number);
        }
    }
}

impl Streams {
    /// Begins to wait for what a worker will tell; returns the number of the watch.
    pub(crate) fn begin_await(&self) -> u64 {
        let number = FIRST_AWAITED + self.awaited.count.fetch_add(1, Ordering::Relaxed);
        lock(&self.awaited.open).insert(number);
        number
    }

    /// Returns whether a worker has yet to tell of a watch.
    pub(crate) fn is_awaited(&self, number: u64) -> bool {
        lock(&self.awaited.open).contains(&number)
    }

    /// Ends the wait for what a worker will tell.
    pub(crate) fn end_await(&self, number: u64) {
        self.awaited.is_over(number);
    }

    /// Returns whether a command for a stream concerns another worker than the stream's.
    #[inline]
    pub(super) fn crosses(&self, port: &dyn Port, command: &Command, stream: u64) -> bool {
        self.mirrors.are_several()
            && match command {
                Command::Wait(event, _) => {
                    self.events.info(*event).is_ok_and(|info| self.is_elsewhere(info.device, stream))
                }
                Command::PeerCopy(copy) => {
                    self.is_elsewhere(copy.dst_device, stream) || self.is_elsewhere(copy.src_device, stream)
                }
                Command::Copy(copy) => self.reaches_another(port, &[copy.dst.at, copy.src.at], stream),
                Command::Fill(fill) => self.reaches_another(port, &[fill.dst], stream),
                Command::Free(ptr) => self.reaches_another(port, &[*ptr], stream),
                _ => false,
            }
    }

    /// Returns whether memory is of a device of another worker than a stream's.
    #[inline]
    pub(super) fn reaches_another(&self, port: &dyn Port, memory: &[Ptr], stream: u64) -> bool {
        let is_elsewhere = |ptr: &Ptr| {
            port.allocation(*ptr).is_some_and(|allocation| self.is_elsewhere(allocation.device, stream))
        };
        self.mirrors.are_several() && memory.iter().any(is_elsewhere)
    }

    /// Returns the stream on which to allocate memory of `device` for a call that names `stream`. If the two are of different workers, it is a
    /// stream of this library on the device, for which the caller has to wait.
    ///
    /// # Errors
    /// A lost connection.
    pub(crate) fn allocating_stream(&self, port: &dyn Port, device: i32, stream: u64) -> HipResult<u64> {
        if self.mirrors.are_several() && self.is_elsewhere(device, stream) {
            return self.looking_stream(port, device);
        }
        Ok(stream)
    }

    /// Returns whether a device is of another worker than a stream.
    fn is_elsewhere(&self, device: i32, stream: u64) -> bool {
        self.mirrors.worker_of(device) != self.mirrors.worker_of(self.order.device_of(stream))
    }

    /// Checks that a command which is carried out later could be carried out now.
    ///
    /// # Errors
    /// Those of carrying it out that are known before a byte is moved.
    pub(super) fn check_ahead(&self, port: &dyn Port, command: &Command, stream: u64) -> HipResult<()> {
        match command {
            Command::Copy(copy) => self.check_copy(port, copy, stream),
            Command::Fill(fill) => self.place_of_fill(port, fill, stream).map(drop),
            _ => Ok(()),
        }
    }

    /// Returns an event that has happened when a command may be carried out that concerns another worker. The caller has to
    /// [forget](Self::forget_mark) it.
    ///
    /// # Errors
    /// A lost connection.
    pub(super) fn mark_before(
        &self,
        port: &dyn Port,
        command: &Command,
        stream: u64,
        step: Option<u64>,
    ) -> HipResult<Event> {
        if let Command::Wait(event, _) = command {
            return self.copy_for_step(port, step, *event);
        }
        let mark = self.create_own_event(port, self.order.device_of(stream))?;
        self.begin_record(mark, stream)?;
        port.record(mark, stream, false)?;
        self.end_record(mark, stream);
        Ok(mark)
    }

    /// Destroys an event that [`mark_before`](Self::mark_before) has returned.
    ///
    /// # Errors
    /// A lost connection.
    pub(super) fn forget_mark(&self, port: &dyn Port, mark: Event) -> HipResult<()> {
        self.events.remove(mark);
        self.pending.forget_event(mark);
        self.mirrors.forget_event(mark);
        port.destroy_event(mark)
    }

    /// Carries out a command that concerns another worker, behind what it has to wait for; returns when the bytes are there, or sent ahead
    /// of all that may read them.
    ///
    /// # Errors
    /// What a worker answers.
    pub(super) fn carry_across(&self, port: &dyn Port, command: &Command, stream: u64) -> HipResult<()> {
        match command {
            Command::Copy(copy) if copy.check_shape()? > 0 => {
                self.places(port, copy, stream)?;
                self.copy_across(port, copy)
            }
            Command::PeerCopy(copy) => {
                let ends = [copy.dst, copy.src].map(Ptr::from_wire);
                let len = usize::try_from(copy.size).map_err(|_| HipError::INVALID_VALUE)?;
                self.copy_across(port, &MemoryCopy::linear(ends[0], ends[1], len, kind::DEVICE_TO_DEVICE)?)
            }
            Command::Fill(fill) => match self.place_of_fill(port, fill, stream)? {
                Some(Place::Device(address)) => {
                    let own = self.stream_at(port, fill.dst)?;
                    send_fill(port, fill, address, own)?;
                    port.wait_in_order(Wait::Stream(own))
                }
                _ => Ok(()),
            },
            Command::Free(ptr) => {
                let own = self.stream_at(port, *ptr)?;
                port.forget_allocation(*ptr);
                port.free_async(*ptr, own)
            }
            _ => Ok(()),
        }
    }

    /// Returns a stream of this library on the device that has `ptr`. It waits for no other stream; but work that is put on it now comes
    /// behind the synchronous copies to that device that have returned.
    fn stream_at(&self, port: &dyn Port, ptr: Ptr) -> HipResult<u64> {
        let device = port.allocation(ptr).map_or(0, |allocation| allocation.device);
        let stream = self.looking_stream(port, device)?;
        self.mirror(stream).before_other(port, stream)?;
        Ok(stream)
    }

    fn copy_across(&self, port: &dyn Port, copy: &MemoryCopy) -> HipResult<()> {
        let worker =
            |end: &MemoryBox| port.allocation(end.at).map(|found| self.mirrors.worker_of(found.device));
        let (to, from) = (copy.dst.at.wire(), copy.src.at.wire());
        match (worker(&copy.dst), worker(&copy.src)) {
            (Some(one), Some(other)) if one == other => {
                let stream = self.stream_at(port, copy.dst.at)?;
                let kind = kind::DEVICE_TO_DEVICE;
                port.copy(&Transfer { kind, to, from, copy: *copy, stream, is_blocking: false }, &[])?;
                port.wait_in_order(Wait::Stream(stream))
            }
            (Some(_), Some(_)) => {
                let streams = (self.stream_at(port, copy.dst.at)?, self.stream_at(port, copy.src.at)?);
                pieces(copy, DIRECT_MAX_BYTES).try_for_each(|piece| {
                    match port.copy_between(&piece, streams.0, streams.1)? {
                        true => Ok(()),
                        false => self.copy_through(port, &piece),
                    }
                })
            }
            (Some(_), None) => self.send_there(port, &MemoryCopy { src: self.host_end(copy.src), ..*copy }),
            (None, _) => self.bring(port, &MemoryCopy { dst: self.host_end(copy.dst), ..*copy }),
        }
    }

    /// Copies between devices of two workers through this process.
    fn copy_through(&self, port: &dyn Port, copy: &MemoryCopy) -> HipResult<()> {
        let mut bytes = Vec::new();
        pieces(copy, PIECE_MAX_BYTES).try_for_each(|piece| {
            bytes.resize(piece.size.bytes().unwrap_or(0), 0);
            let through = here(&bytes, piece.size);
            self.bring(port, &MemoryCopy { dst: through, ..piece })?;
            self.send_there(port, &MemoryCopy { src: through, ..piece })
        })
    }

    /// Returns an end of a copy in the program's memory by its address there.
    fn host_end(&self, end: MemoryBox) -> MemoryBox {
        let at = self.mirrors.info(end.at).map_or(end.at, |(info, offset, _)| info.host.offset(offset));
        MemoryBox { at, ..end }
    }

    /// Copies from a device to the program's memory.
    fn bring(&self, port: &dyn Port, copy: &MemoryCopy) -> HipResult<()> {
        let (stream, kind) = (self.stream_at(port, copy.src.at)?, kind::DEVICE_TO_HOST);
        let (to, from) = (copy.dst.at.wire(), copy.src.at.wire());
        port.receive(&Transfer { kind, to, from, copy: *copy, stream, is_blocking: true })
    }

    /// Copies from the program's memory to a device, ahead of all that its worker is sent later.
    fn send_there(&self, port: &dyn Port, copy: &MemoryCopy) -> HipResult<()> {
        let (stream, kind) = (self.stream_at(port, copy.dst.at)?, kind::HOST_TO_DEVICE);
        let (to, from) = (copy.dst.at.wire(), copy.src.at.wire());
        send_copy(self, port, &Transfer { kind, to, from, copy: *copy, stream, is_blocking: true })
    }
}

/// Returns the box of a size that bytes of this process make without gaps.
fn here(bytes: &[u8], size: Size) -> MemoryBox {
    let at = Ptr(bytes.as_ptr().addr());
    MemoryBox { at, pitch: size.width, rows: size.height, is_device: Some(false) }
}

/// Cuts a copy into copies of at most `max` bytes: parts of rows, rows of a slice, or slices.
fn pieces(copy: &MemoryCopy, max: usize) -> impl Iterator<Item = MemoryCopy> {
    let copy = *copy;
    let Size { width, height, depth } = copy.size;
    let columns = width.clamp(1, max.max(1));
    let rows = (max / width.max(1)).clamp(1, height.max(1));
    let slice = width.saturating_mul(height).max(1);
    let slices = if max < slice { 1 } else { (max / slice).clamp(1, depth.max(1)) };
    let inside = move |end: MemoryBox, x: usize, y: usize, z: usize| MemoryBox {
        at: end.at.offset((z * end.rows + y) * end.pitch + x),
        ..end
    };
    (0..depth).step_by(slices).flat_map(move |z| {
        (0..height).step_by(rows).flat_map(move |y| {
            (0..width).step_by(columns).map(move |x| {
                let (width, height) = (columns.min(width - x), rows.min(height - y));
                let size = Size { width, height, depth: slices.min(depth - z) };
                MemoryCopy { dst: inside(copy.dst, x, y, z), src: inside(copy.src, x, y, z), size }
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte of the box is in one piece, at the same place of both ends, and no piece is too large.
    #[test]
    fn pieces_are_all_of_a_copy() {
        let end = |at, pitch, rows| MemoryBox { at: Ptr(at), pitch, rows, is_device: None };
        for (width, height, depth) in [(1, 1, 1), (10, 1, 1), (7, 5, 1), (4, 3, 2), (1, 9, 3)] {
            let size = Size { width, height, depth };
            let (dst, src) = (end(1000, 16, 12), end(50_000, 11, 10));
            for max in [1, 3, 4, 9, 14, 1000] {
                let mut seen = Vec::new();
                for piece in pieces(&MemoryCopy { dst, src, size }, max) {
                    assert!(piece.size.bytes().is_some_and(|bytes| bytes <= max), "{piece:?}");
                    for z in 0..piece.size.depth {
                        for y in 0..piece.size.height {
                            let at = |end: MemoryBox| end.at.0 + (z * end.rows + y) * end.pitch;
                            seen.extend(
                                (0..piece.size.width).map(|x| (at(piece.dst) + x, at(piece.src) + x)),
                            );
                        }
                    }
                }
                seen.sort_unstable();
                let byte = |x, y, z| (1000 + (z * 12 + y) * 16 + x, 50_000 + (z * 10 + y) * 11 + x);
                let rows = (0..depth).flat_map(|z| (0..height).map(move |y| (y, z)));
                let all: Vec<_> = rows.flat_map(|(y, z)| (0..width).map(move |x| byte(x, y, z))).collect();
                assert_eq!(seen, all, "{size:?} {max}");
            }
        }
    }
}
