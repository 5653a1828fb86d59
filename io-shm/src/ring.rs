//! Copies bytes through a ring in shared memory.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use crate::PIECE_BYTES;
use crate::memory::Memory;
use crate::positions::{InvalidPosition, Reader, Words, Writer};

/// Size in bytes of a ring's words, before its data. Each word has a cache line of its own, and a second one that the
/// processor fetches with the first.
const HEAD_BYTES: usize = 4096;
const WORD_STRIDE: usize = 128;

/// Returns the size in bytes of a mapping with two rings.
pub(crate) fn mapping_bytes(capacity: u32) -> usize {
    2 * (HEAD_BYTES + capacity as usize)
}

/// The direction in which a ring carries bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    ToWorker,
    ToClient,
}

/// The location of a ring in the mapping.
#[derive(Clone, Debug)]
struct Place {
    memory: Arc<Memory>,
    start: usize,
    capacity: usize,
}

impl Place {
    fn new(memory: &Arc<Memory>, capacity: u32, direction: Direction) -> Self {
        let capacity = capacity as usize;
        let start = match direction {
            Direction::ToWorker => 0,
            Direction::ToClient => HEAD_BYTES + capacity,
        };
        Self { memory: memory.clone(), start, capacity }
    }

    fn words(&self) -> Words<&AtomicU32> {
        let word = |index| self.memory.word(self.start + index * WORD_STRIDE);
        Words { tail: word(0), head: word(1), reader_sleeps: word(2), writer_sleeps: word(3) }
    }

    /// Returns the offset of a position in the mapping, and how many bytes are contiguous from there.
    fn at(&self, position: u32) -> (usize, usize) {
        let offset = position as usize % self.capacity;
        (self.start + HEAD_BYTES + offset, self.capacity - offset)
    }
}

/// The writing end of a ring.
#[derive(Debug)]
pub(crate) struct Sending {
    place: Place,
    side: Writer,
}

impl Sending {
    pub(crate) fn new(memory: &Arc<Memory>, capacity: u32, direction: Direction) -> Self {
        Self { place: Place::new(memory, capacity, direction), side: Writer::new(capacity) }
    }

    /// Writes as many bytes as fit; calls `ring` each time the other side's bell has to be rung.
    pub(crate) fn write(
        &mut self,
        slices: &[IoSlice<'_>],
        mut ring: impl FnMut(),
    ) -> Result<usize, InvalidPosition> {
        let words = self.place.words();
        let (mut written, mut unsaid) = (0, 0);
        for slice in slices {
            let mut rest: &[u8] = slice;
            while !rest.is_empty() {
                let room = self.side.room(&words, as_u32(unsaid + rest.len().min(PIECE_BYTES)))? as usize;
                let room = room.saturating_sub(unsaid);
                if room == 0 {
                    break;
                }
                let (at, together) = self.place.at(self.side.position().wrapping_add(as_u32(unsaid)));
                let len = rest.len().min(room).min(together).min(PIECE_BYTES);
                let (now, later) = rest.split_at(len);
                self.place.memory.copy_in(at, now);
                rest = later;
                unsaid += len;
                written += len;
                if unsaid >= PIECE_BYTES {
                    Self::say(&mut self.side, &words, &mut unsaid, &mut ring);
                }
            }
            if !rest.is_empty() {
                break;
            }
        }
        Self::say(&mut self.side, &words, &mut unsaid, &mut ring);
        Ok(written)
    }

    fn say(side: &mut Writer, words: &Words<&AtomicU32>, unsaid: &mut usize, ring: &mut impl FnMut()) {
        if *unsaid > 0 && side.publish(words, as_u32(std::mem::take(unsaid))) {
            ring();
        }
    }

    /// Returns whether there is room.
    pub(crate) fn has_room(&mut self) -> Result<bool, InvalidPosition> {
        self.side.room(&self.place.words(), 1).map(|room| room > 0)
    }

    pub(crate) fn prepare_sleep(&mut self) -> Result<bool, InvalidPosition> {
        self.side.prepare_sleep(&self.place.words())
    }

    pub(crate) fn awake(&self) {
        self.side.awake(&self.place.words());
    }
}

/// The reading end of a ring.
#[derive(Debug)]
pub(crate) struct Receiving {
    place: Place,
    side: Reader,
}

impl Receiving {
    pub(crate) fn new(memory: &Arc<Memory>, capacity: u32, direction: Direction) -> Self {
        Self { place: Place::new(memory, capacity, direction), side: Reader::new(capacity) }
    }

    /// Reads as many bytes as there are and `into` holds; calls `ring` each time the other side's bell has to be rung.
    pub(crate) fn read(&mut self, into: &mut [u8], mut ring: impl FnMut()) -> Result<usize, InvalidPosition> {
        let words = self.place.words();
        let mut read = 0;
        while let Some(space) = into.get_mut(read..).filter(|space| !space.is_empty()) {
            let available = self.side.available(&words, as_u32(space.len().min(PIECE_BYTES)))? as usize;
            if available == 0 {
                break;
            }
            let (at, together) = self.place.at(self.side.position());
            let len = space.len().min(available).min(together).min(PIECE_BYTES);
            if let Some(space) = space.get_mut(..len) {
                self.place.memory.copy_out(at, space);
            }
            read += len;
            if self.side.release(&words, as_u32(len)) {
                ring();
            }
        }
        Ok(read)
    }

    /// Returns whether there is something to read.
    pub(crate) fn has_input(&mut self) -> Result<bool, InvalidPosition> {
        self.side.available(&self.place.words(), 1).map(|available| available > 0)
    }

    pub(crate) fn prepare_sleep(&mut self) -> Result<bool, InvalidPosition> {
        self.side.prepare_sleep(&self.place.words())
    }

    pub(crate) fn awake(&self) {
        self.side.awake(&self.place.words());
    }
}

/// Converts a length, which is at most the capacity.
fn as_u32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
