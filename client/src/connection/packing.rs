//! Copies and code objects whose bytes are packed; [`packing`](crate::packing) says when.

use std::collections::VecDeque;
use std::mem;
use std::sync::MutexGuard;
use std::time::Instant;

use hipr_io::{unpack_all, unpack_into};
use hipr_proto::op::{self, PACKED_PAGES_MAX, PAGE_BYTES, PAGE_RUNS_MAX, PageRun, purpose};
use hipr_proto::{Features, HipError, Op, Wire};

use super::transfers::{Download, Upload, UploadPart};
use super::{AnswerWithTail, Connection, Extra, Inner, Writer, decode};
use crate::CallError;
use crate::packing::{PART_BYTES, PARTS_AHEAD, PROBE_BYTES};
use crate::replies::{Bulk, Rows};
use crate::unanswered::Followed;

impl Connection {
    /// Returns whether it may pay to pack so many bytes for the worker.
    pub fn packs(&self, len: usize) -> bool {
        self.features().contains(Features::PACKED)
            && self.inner.writer().is_ok_and(|writer| self.inner.packs(&writer, len))
    }

    /// Returns whether it may pay to have so many bytes packed by the worker, and [`download_packed`](Self::download_packed) does.
    pub fn packs_reads(&self, len: usize) -> bool {
        self.features().contains(Features::PACKED) && self.inner.packs_reads(len).is_ok_and(|packs| packs)
    }

    /// Returns the bytes of a code object as [`ModuleLoadPacked`](op::ModuleLoadPacked) has them; `None` if it is better sent as it is.
    pub fn pack(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        if !self.packs(bytes.len()) {
            return None;
        }
        let mut press = mem::take(&mut self.inner.writer().ok()?.press);
        let packed = press.pack_all(bytes);
        if let Ok(mut writer) = self.inner.writer() {
            writer.press = press;
        }
        let saved = bytes.len() - packed.as_ref()?.len();
        self.inner.counters.add(|c| &c.packed_bytes_saved, saved as u64);
        packed
    }

    /// Copies bytes to the device, packed, if that is likely to be faster; returns false, and has done nothing, if not. `is_known` is for
    /// memory that is watched, as `MEM_PUSH` is, and `is_noted` as in [`Extra`]. The worker reports an error of the copy as it does
    /// for `MEMCPY_ASYNC`.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn upload_packed(
        &self,
        upload: &Upload,
        bytes: &[u8],
        is_known: bool,
        is_noted: bool,
    ) -> Result<bool, CallError> {
        let inner = &*self.inner;
        if !self.features().contains(Features::PACKED) {
            return Ok(false);
        }
        let mut writer = inner.writer()?;
        if !inner.packs(&writer, bytes.len()) || bytes.len() <= PART_BYTES && !writer.press.is_worth(bytes) {
            return Ok(false);
        }
        let purpose = if is_known { purpose::KNOWN } else { purpose::WRITTEN };
        let size = bytes.len() as u64;
        let mut offset = 0;
        for bytes in bytes.chunks(PART_BYTES) {
            let end = offset + bytes.len() as u64;
            let waits = upload.waits && end == size;
            let part = UploadPart { size, offset, bytes, waits, purpose, is_noted };
            inner.send_part(&mut writer, upload, part)?;
            offset = end;
        }
        Ok(true)
    }

    /// Copies bytes to the program, packed, if that is likely to be faster; returns false, and has done nothing, if not.
    ///
    /// # Errors
    /// As [`ask`](Self::ask); `into` may then have been written in part.
    pub fn download_packed(&self, download: &Download, into: &mut [u8]) -> Result<bool, CallError> {
        let inner = &*self.inner;
        if !self.features().contains(Features::PACKED) || !inner.packs_reads(into.len())? {
            return Ok(false);
        }
        let size = into.len() as u64;
        let mut done = 0;
        if inner.packing.wants_probe(into.len()) {
            done = PROBE_BYTES.iter().sum();
            inner.probe(download, into.get_mut(..done).unwrap_or_default())?;
        }
        let rest = into.get_mut(done..).unwrap_or_default();
        if done > 0 && !inner.packs_reads(rest.len())? {
            let copy = download.plain(done, rest.len());
            let extra = Extra { device: download.device, ..Extra::default() };
            self.read(&copy, extra, rest)?;
            return Ok(true);
        }
        inner.get_parts(download, size, done, rest).map(|()| true)
    }
}

/// The answer to a question for changed pages, and the bytes behind its fixed part: runs, and pages as they are.
pub type ChangesWithTail = AnswerWithTail<op::MemChanges>;

impl Connection {
    /// Returns whether it may pay to have changed pages packed by the worker, and it does so for
    /// [`MemChangesPacked`](op::MemChangesPacked).
    pub fn packs_changes(&self) -> bool {
        self.features().contains(Features::PACKED_CHANGES)
            && self.inner.packs_reads(PAGE_BYTES as usize).is_ok_and(|packs| packs)
    }

    /// Returns what an answer to [`MemChangesPacked`](op::MemChangesPacked) says as one to [`MemChanges`](op::MemChanges).
    ///
    /// # Errors
    /// That of the answer; `UNKNOWN` if its bytes are not what it says.
    pub fn unpack_changes(&self, answer: AnswerWithTail<op::MemChangesPacked>) -> ChangesWithTail {
        let (reply, mut tail) = answer?;
        let op::MemChangesPackedReply { covered, num_runs, is_known, pages_length, is_packed, .. } = reply;
        if is_packed != 0 {
            let pages_at = (num_runs.min(PAGE_RUNS_MAX) as usize * PageRun::SIZE).min(tail.len());
            let is_short = pages_length <= PACKED_PAGES_MAX * PAGE_BYTES;
            let pages = Some(pages_length).filter(|_| is_short).map(|len| unpack_all(&tail[pages_at..], len));
            let Some(Ok(pages)) = pages else {
                tracing::error!(
                    "the worker at {} has sent bytes that are not packed pages",
                    self.inner.address
                );
                return Err(HipError::UNKNOWN);
            };
            let saved = pages.len().saturating_sub(tail.len() - pages_at);
            self.inner.counters.add(|c| &c.packed_bytes_saved, saved as u64);
            tail.truncate(pages_at);
            tail.extend_from_slice(&pages);
        }
        Ok((op::MemChangesReply { covered, num_runs, is_known }, tail))
    }
}

/// A part of a copy to the program that has been asked for.
struct Asked<'a> {
    id: u32,
    before: Followed,
    place: &'a mut [u8],
}

impl Inner {
    fn packs(&self, writer: &MutexGuard<'_, Writer>, len: usize) -> bool {
        self.packing.pays(len, self.transport.is_local(), writer.speed.bytes_per_s())
    }

    fn packs_reads(&self, len: usize) -> Result<bool, CallError> {
        let speed = self.packing.reads_per_s(self.writer()?.speed.bytes_per_s());
        Ok(self.packing.pays(len, self.transport.is_local(), speed))
    }

    /// Sends a part of a copy, packed if that pays.
    pub(super) fn send_part(
        &self,
        writer: &mut MutexGuard<'_, Writer>,
        upload: &Upload,
        part: UploadPart<'_>,
    ) -> Result<(), CallError> {
        let UploadPart { size, offset, bytes, waits, purpose, is_noted } = part;
        let &Upload { dst, stream, device, .. } = upload;
        let mut press = mem::take(&mut writer.press);
        let start = Instant::now();
        let inline = press.pack(bytes).unwrap_or(bytes);
        writer.speed.skip(start, Instant::now());
        let (length, packed) = (bytes.len() as u64, inline.len() as u64);
        let waits = u32::from(waits);
        let put = op::PutPacked { dst, size, offset, length, packed, stream, waits, purpose };
        let extra = Extra { device, inline, is_noted, ..Extra::default() };
        let sent = self.queue(writer, &put, extra, None).and_then(|_| self.send_if_wanted(writer));
        self.counters.add(|c| &c.packed_bytes_saved, length - packed);
        writer.press = press;
        sent
    }

    /// Copies bytes to the program as they are, and notes how fast they come.
    fn probe(&self, download: &Download, into: &mut [u8]) -> Result<(), CallError> {
        let [first, measured] = PROBE_BYTES;
        let mut writer = self.writer()?;
        let extra = Extra { device: download.device, ..Extra::default() };
        let start = into.as_mut_ptr();
        let mut ids = Vec::new();
        let mut queued = Ok(());
        for (offset, len) in [(0, first), (first, measured)] {
            let rows = Rows::one(start.wrapping_add(offset), len);
            match self.queue(&mut writer, &download.plain(offset, len), extra, Some(Bulk::Into(rows))) {
                Ok(id) => ids.push(id),
                Err(error) => queued = Err(error),
            }
        }
        let sent = queued.and_then(|()| self.send(&mut writer));
        let before = self.unanswered().before(&self.counters);
        drop(writer);
        self.counters.add(|c| &c.round_trips, 1);
        // Memory was lent: both waits have to be over before this returns.
        let mut since = Instant::now();
        let mut wholes = Vec::new();
        for id in ids {
            since = Instant::now();
            wholes.push(self.wait(id));
        }
        let took = since.elapsed();
        sent?;
        let mut result = Ok(());
        for whole in wholes {
            let whole = whole?;
            self.unanswered().answered(op::MemcpyAsync::OPCODE, before, whole.error);
            result = result.and(decode::<op::MemcpyAsync>(&whole));
        }
        result?;
        self.packing.note_read(measured, took);
        Ok(())
    }

    /// Asks for the parts of a copy to the program from `done` on, some of them ahead, and unpacks them.
    fn get_parts(
        &self,
        download: &Download,
        size: u64,
        done: usize,
        into: &mut [u8],
    ) -> Result<(), CallError> {
        let &Download { src, stream, device } = download;
        self.counters.add(|c| &c.round_trips, 1);
        let mut parts = into.chunks_mut(PART_BYTES);
        let (mut asked, mut offset, mut result) = (VecDeque::<Asked<'_>>::new(), done as u64, Ok(()));
        loop {
            let mut writer = self.writer()?;
            while asked.len() < PARTS_AHEAD
                && result.is_ok()
                && let Some(place) = parts.next()
            {
                let length = place.len() as u64;
                let get = op::GetPacked { src, size, offset, length, stream };
                let extra = Extra { device, ..Extra::default() };
                let id = self.queue(&mut writer, &get, extra, Some(Bulk::Collect(Vec::new())))?;
                let before = self.unanswered().before(&self.counters);
                asked.push_back(Asked { id, before, place });
                offset += length;
            }
            self.send(&mut writer)?;
            drop(writer);
            let Some(Asked { id, before, place }) = asked.pop_front() else { return result };
            let whole = self.wait(id)?;
            self.unanswered().answered(op::GetPacked::OPCODE, before, whole.error);
            let got = decode::<op::GetPacked>(&whole)
                .and_then(|reply| self.take_part(reply.is_packed != 0, &whole.tail, place));
            result = result.and(got);
        }
    }

    /// Puts the bytes of a reply into their place.
    fn take_part(&self, is_packed: bool, bytes: &[u8], place: &mut [u8]) -> Result<(), CallError> {
        let is_whole = if is_packed {
            unpack_into(bytes, place).is_ok()
        } else {
            let is_whole = bytes.len() == place.len();
            if is_whole {
                place.copy_from_slice(bytes);
            }
            is_whole
        };
        if !is_whole {
            tracing::error!("the worker at {} has sent bytes that are not those of a copy", self.address);
            return Err(CallError::Hip(HipError::UNKNOWN));
        }
        let saved = (place.len() as u64).saturating_sub(bytes.len() as u64);
        self.counters.add(|c| &c.packed_bytes_saved, saved);
        Ok(())
    }
}
