//! The positions of a ring and the sleep flags of its two sides, shared without a lock.
//!
//! A ring has four words that both sides reach. `tail` counts the bytes written and `head` the bytes read, both modulo 2^32; only
//! one side writes each. `reader_sleeps` and `writer_sleeps` are set by a side that is about to sleep and cleared by the one that
//! rings its bell. The two sides of each flag are Dekker's: *set the flag, fence, look at the position* against *set
//! the position, fence, look at the flag*, so that at least one of them sees what the other did, and no wake-up is lost. Flags are
//! only changed by swaps, so that each change comes after the one that it undoes.

use std::fmt;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, fence};

/// An atomic word in memory that both sides share, with its fence.
pub trait Word {
    /// Loads the value.
    fn load(&self, order: Ordering) -> u32;
    /// Stores a value.
    fn store(&self, value: u32, order: Ordering);
    /// Stores a value and returns the previous one.
    fn swap(&self, value: u32, order: Ordering) -> u32;
    /// Executes a fence for this kind of memory.
    fn fence(order: Ordering);
}

impl Word for &AtomicU32 {
    fn load(&self, order: Ordering) -> u32 {
        AtomicU32::load(self, order)
    }

    fn store(&self, value: u32, order: Ordering) {
        AtomicU32::store(self, value, order);
    }

    fn swap(&self, value: u32, order: Ordering) -> u32 {
        AtomicU32::swap(self, value, order)
    }

    fn fence(order: Ordering) {
        fence(order);
    }
}

/// The shared words of one ring.
#[derive(Clone, Debug)]
pub struct Words<W> {
    /// Number of bytes written.
    pub tail: W,
    /// Number of bytes read.
    pub head: W,
    /// Not 0 while the reader sleeps and wants a bell when there is something to read.
    pub reader_sleeps: W,
    /// Not 0 while the writer sleeps and wants a bell when half of the ring is free.
    pub writer_sleeps: W,
}

/// The other side wrote an invalid position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidPosition;

impl fmt::Display for InvalidPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the other side of the shared memory wrote an invalid ring position")
    }
}

impl std::error::Error for InvalidPosition {}

impl From<InvalidPosition> for std::io::Error {
    fn from(why: InvalidPosition) -> Self {
        Self::new(std::io::ErrorKind::InvalidData, why)
    }
}

/// Whether the other side sleeps, so that its bell has to be rung.
pub type Bell = bool;

/// The writing side of a ring.
#[derive(Debug)]
pub struct Writer {
    capacity: u32,
    tail: u32,
    /// The reader's position when it was last loaded.
    head: u32,
}

/// The reading side of a ring.
#[derive(Debug)]
pub struct Reader {
    capacity: u32,
    head: u32,
    /// The writer's position when it was last loaded.
    tail: u32,
}

impl Writer {
    /// Creates the writer of an empty ring of `capacity` bytes, a power of two of at most 2^31.
    pub fn new(capacity: u32) -> Self {
        Self { capacity, tail: 0, head: 0 }
    }

    /// Returns the position of the next byte, not reduced modulo the capacity.
    pub fn position(&self) -> u32 {
        self.tail
    }

    /// Returns how many bytes can be written now. Loads the reader's position only if fewer than `need` bytes were free
    /// when it was last loaded.
    ///
    /// # Errors
    /// The reader's position is impossible.
    pub fn room(&mut self, words: &Words<impl Word>, need: u32) -> Result<u32, InvalidPosition> {
        // A position that went back since then leaves no room by this count.
        if let Some(room) =
            self.capacity.checked_sub(self.tail.wrapping_sub(self.head)).filter(|room| *room >= need)
        {
            return Ok(room);
        }
        let head = words.head.load(Acquire);
        let used = self.tail.wrapping_sub(head);
        let room = self.capacity.checked_sub(used).ok_or(InvalidPosition)?;
        self.head = head;
        Ok(room)
    }

    /// Publishes `len` bytes that were copied into the ring.
    pub fn publish<W: Word>(&mut self, words: &Words<W>, len: u32) -> Bell {
        self.tail = self.tail.wrapping_add(len);
        words.tail.store(self.tail, Release);
        W::fence(SeqCst);
        words.reader_sleeps.load(Relaxed) != 0 && words.reader_sleeps.swap(0, AcqRel) != 0
    }

    /// Announces that the writer sleeps until half of the ring is free. Returns false if it must not, because there is
    /// room.
    ///
    /// # Errors
    /// The reader's position is impossible.
    pub fn prepare_sleep<W: Word>(&mut self, words: &Words<W>) -> Result<bool, InvalidPosition> {
        words.writer_sleeps.swap(1, AcqRel);
        W::fence(SeqCst);
        let room = self.room(words, self.capacity)?;
        if room > 0 {
            self.awake(words);
        }
        Ok(room == 0)
    }

    /// Announces that the writer is awake.
    pub fn awake(&self, words: &Words<impl Word>) {
        words.writer_sleeps.swap(0, AcqRel);
    }
}

impl Reader {
    /// Creates the reader of an empty ring of `capacity` bytes, a power of two of at most 2^31.
    pub fn new(capacity: u32) -> Self {
        Self { capacity, head: 0, tail: 0 }
    }

    /// Returns the position of the next byte, not reduced modulo the capacity.
    pub fn position(&self) -> u32 {
        self.head
    }

    /// Returns how many bytes can be read now. Loads the writer's position only if fewer than `need` bytes were there when
    /// it was last loaded.
    ///
    /// # Errors
    /// The writer's position is impossible.
    pub fn available(&mut self, words: &Words<impl Word>, need: u32) -> Result<u32, InvalidPosition> {
        let known = self.tail.wrapping_sub(self.head);
        if known >= need && known > 0 {
            return Ok(known);
        }
        let tail = words.tail.load(Acquire);
        let used = tail.wrapping_sub(self.head);
        if used > self.capacity {
            return Err(InvalidPosition);
        }
        self.tail = tail;
        Ok(used)
    }

    /// Frees the first `len` bytes, which have been copied out of the ring.
    pub fn release<W: Word>(&mut self, words: &Words<W>, len: u32) -> Bell {
        self.head = self.head.wrapping_add(len);
        words.head.store(self.head, Release);
        W::fence(SeqCst);
        // The writer may have added something since then: the bell is rung a little early.
        let used = self.tail.wrapping_sub(self.head);
        used <= self.capacity / 2
            && words.writer_sleeps.load(Relaxed) != 0
            && words.writer_sleeps.swap(0, AcqRel) != 0
    }

    /// Announces that the reader sleeps until there is something to read. Returns false if it must not, because there is.
    ///
    /// # Errors
    /// The writer's position is impossible.
    pub fn prepare_sleep<W: Word>(&mut self, words: &Words<W>) -> Result<bool, InvalidPosition> {
        words.reader_sleeps.swap(1, AcqRel);
        W::fence(SeqCst);
        let available = self.available(words, self.capacity)?;
        if available > 0 {
            self.awake(words);
        }
        Ok(available == 0)
    }

    /// Announces that the reader is awake.
    pub fn awake(&self, words: &Words<impl Word>) {
        words.reader_sleeps.swap(0, AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_wrap_and_impossible_ones_are_refused() {
        let shared: [AtomicU32; 4] = Default::default();
        let [tail, head, reader_sleeps, writer_sleeps] = &shared;
        let words = Words { tail, head, reader_sleeps, writer_sleeps };
        let start = u32::MAX - 5;
        let mut writer = Writer { tail: start, head: start, ..Writer::new(16) };
        let mut reader = Reader { tail: start, head: start, ..Reader::new(16) };
        tail.store(start, Relaxed);
        head.store(start, Relaxed);
        for _ in 0..10 {
            assert_eq!(writer.room(&words, 16), Ok(16));
            assert!(!writer.publish(&words, 7));
            assert_eq!(reader.available(&words, 1), Ok(7));
            assert!(!reader.release(&words, 7));
        }
        // Nobody can have read what was not written, or written what there was no room for.
        for wrong in [reader.head.wrapping_add(1), reader.head.wrapping_sub(17), reader.head ^ (1 << 31)] {
            head.store(wrong, Relaxed);
            assert_eq!(writer.room(&words, 17), Err(InvalidPosition), "{wrong}");
            assert_eq!(writer.prepare_sleep(&words), Err(InvalidPosition), "{wrong}");
        }
        for wrong in [writer.tail.wrapping_add(17), writer.tail.wrapping_sub(1), writer.tail ^ (1 << 31)] {
            tail.store(wrong, Relaxed);
            assert_eq!(reader.available(&words, 1), Err(InvalidPosition), "{wrong}");
            assert_eq!(reader.prepare_sleep(&words), Err(InvalidPosition), "{wrong}");
        }
    }

    #[test]
    fn a_bell_is_rung_once_and_only_for_who_sleeps() {
        let shared: [AtomicU32; 4] = Default::default();
        let [tail, head, reader_sleeps, writer_sleeps] = &shared;
        let words = Words { tail, head, reader_sleeps, writer_sleeps };
        let (mut writer, mut reader) = (Writer::new(8), Reader::new(8));
        assert_eq!(reader.prepare_sleep(&words), Ok(true));
        assert!(writer.publish(&words, 1));
        assert!(!writer.publish(&words, 7), "it was rung");
        assert_eq!(reader.prepare_sleep(&words), Ok(false), "there is something to read");
        assert_eq!(writer.prepare_sleep(&words), Ok(true));
        assert_eq!(reader.available(&words, 8), Ok(8));
        assert!(!reader.release(&words, 3), "more than half is full");
        assert!(reader.release(&words, 1));
        assert!(!reader.release(&words, 4));
        assert_eq!(writer.prepare_sleep(&words), Ok(false));
    }
}
