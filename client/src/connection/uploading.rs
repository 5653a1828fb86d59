//! Copies to the device by name; [`uploads`](crate::uploads) says when and why.

use std::sync::MutexGuard;
use std::time::Instant;

use hipr_proto::op::{self, CACHE_NAMES_MAX, purpose};
use hipr_proto::{Features, HipError};

use super::transfers::{Upload, UploadPart};
use super::{Connection, Extra, Inner, Writer, decode};
use crate::CallError;
use crate::replies::Bulk;
use crate::uploads::{Chunk, chunks, lock};

impl Connection {
    /// Copies bytes to the device by name, if the worker has a cache and that is likely to be faster; returns false, and has done nothing,
    /// if not. The worker reports an error of the copy as it does for `MEMCPY_ASYNC`.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn upload(&self, upload: &Upload, bytes: &[u8]) -> Result<bool, CallError> {
        let inner = &*self.inner;
        if !self.features.contains(Features::CACHE) || !inner.wants_names(bytes.len())? {
            return Ok(false);
        }
        let Some(key) = inner.uploads.key() else { return Ok(false) };
        let chunks = chunks(&key, bytes);
        let has = match inner.ask_names(&key, &chunks) {
            Ok(has) => has,
            Err(CallError::Lost) => return Err(CallError::Lost),
            Err(CallError::Hip(error)) => {
                inner.uploads.give_up(error);
                return Ok(false);
            }
        };
        inner.send_chunks(upload, bytes.len() as u64, &chunks, &has, self.packs(bytes.len()))?;
        Ok(true)
    }
}

impl Inner {
    /// Returns whether a copy of `len` bytes is to be sent by name.
    fn wants_names(&self, len: usize) -> Result<bool, CallError> {
        let speed = self.writer()?.speed.bytes_per_s();
        Ok(self.uploads.pays(len, self.transport.is_local(), speed))
    }

    /// Asks which chunks the worker's cache has, in one flight.
    fn ask_names(&self, key: &[u8; 32], chunks: &[Chunk<'_>]) -> Result<Vec<bool>, CallError> {
        let mut writer = self.writer()?;
        let mut is_open = lock(&self.uploads.is_open);
        if !*is_open {
            self.queue(&mut writer, &op::CacheOpen { key: *key }, Extra::default(), None)?;
            *is_open = true;
        }
        drop(is_open);
        let since = Instant::now();
        let mut ids = Vec::new();
        let queued = self.queue_questions(&mut writer, chunks, &mut ids);
        let sent = queued.and_then(|()| self.send(&mut writer));
        drop(writer);
        self.counters.add(|c| &c.round_trips, 1);
        // Each is waited for, also after an error.
        let wholes: Vec<_> = ids.into_iter().map(|id| self.wait(id)).collect();
        sent?;
        self.uploads.note_round_trip(since);
        let mut has = Vec::with_capacity(chunks.len());
        for whole in wholes {
            let reply = decode::<op::CacheHave>(&whole?)?;
            let bits = reply.has.iter().flat_map(|word| (0..64).map(move |bit| word >> bit & 1 == 1));
            has.extend(bits.take(CACHE_NAMES_MAX));
        }
        if has.len() < chunks.len() { Err(CallError::Hip(HipError::UNKNOWN)) } else { Ok(has) }
    }

    fn queue_questions(
        &self,
        writer: &mut MutexGuard<'_, Writer>,
        chunks: &[Chunk<'_>],
        ids: &mut Vec<u32>,
    ) -> Result<(), CallError> {
        for group in chunks.chunks(CACHE_NAMES_MAX) {
            let tail: Vec<u8> = group.iter().flat_map(|chunk| chunk.name).collect();
            let have = op::CacheHave { count: group.len() as u32, reserved: 0 };
            let extra = Extra { tail: &tail, ..Extra::default() };
            ids.push(self.queue(writer, &have, extra, Some(Bulk::Collect(Vec::new())))?);
            if writer.sender.wants_flush() {
                self.send(writer)?;
            }
        }
        Ok(())
    }

    /// Sends a copy: names of what the worker has, bytes of what it has not. Other threads' requests come before or behind all of it.
    fn send_chunks(
        &self,
        upload: &Upload,
        size: u64,
        chunks: &[Chunk<'_>],
        has: &[bool],
        packs: bool,
    ) -> Result<(), CallError> {
        let &Upload { dst, stream, waits, device } = upload;
        let mut writer = self.writer()?;
        let last = chunks.len().saturating_sub(1);
        for (index, (chunk, has)) in chunks.iter().zip(has).enumerate() {
            let (offset, length) = (chunk.offset as u64, chunk.bytes.len() as u64);
            // The last is behind all others on its stream.
            let waits = u32::from(waits && index == last);
            if *has {
                let chunk = chunk.name;
                let copy = op::CacheCopy { chunk, dst, size, offset, length, stream, waits, reserved: 0 };
                self.queue(&mut writer, &copy, Extra { device, ..Extra::default() }, None)?;
                self.counters.add(|c| &c.cache_bytes_saved, length);
            } else if packs {
                let (bytes, purpose) = (chunk.bytes, purpose::KEPT);
                let waits = waits == 1;
                let part = UploadPart { size, offset, bytes, waits, purpose, is_noted: false };
                self.send_part(&mut writer, upload, part)?;
            } else {
                let put = op::CachePut { dst, size, offset, length, stream, waits, reserved: 0 };
                let extra = Extra { device, inline: chunk.bytes, ..Extra::default() };
                self.queue(&mut writer, &put, extra, None)?;
            }
            self.send_if_wanted(&mut writer)?;
        }
        Ok(())
    }
}
