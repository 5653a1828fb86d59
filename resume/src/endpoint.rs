//! One end of a session: both directions, over one connection after another.

use std::fmt;

use crate::frame::{FRAME_MAX_BYTES, HEADER_BYTES, Header};
use crate::ring::Ring;
use crate::{RING_MAX_BYTES, RING_MIN_BYTES};

/// Number of bytes that are taken at most before it is said without an occasion: an end that keeps as many goes on.
pub const SAY_EVERY_BYTES: usize = 256 << 10;

/// One end of a session.
///
/// Sending: [`push`](Self::push) takes bytes as far as there is [room](Self::room), [`take_output`](Self::take_output) gives the frames
/// for the connection. Receiving: [`receive`](Self::receive) turns frames into bytes; who cannot take any more and still has to hear what
/// the other end has taken calls [`stow`](Self::stow).
///
/// When the connection is cut, call [`cut`](Self::cut); tell the other end [`taken`](Self::taken), and go on with
/// [`resume`](Self::resume) when it has told the same.
#[derive(Debug)]
pub struct Endpoint {
    // What leaves.
    /// The bytes that the other end has not acknowledged, from `acked` on.
    ring: Ring,
    ring_max_bytes: usize,
    acked: u64,
    /// Offset of the next byte for the connection.
    sent: u64,
    /// Offset behind the last byte that was ever sent.
    sent_ever: u64,
    is_finished: bool,
    is_end_sent: bool,
    /// Whether there is no connection.
    is_cut: bool,
    // What arrives.
    taken: u64,
    /// The offset that the other end was told last.
    told: u64,
    /// The most bytes that the other end may send without having been told that they were taken.
    peer_max_bytes: usize,
    /// Bytes that have arrived and were not taken.
    stowed: Ring,
    head: [u8; HEADER_BYTES],
    head_len: usize,
    /// Number of bytes of the current frame that have not arrived.
    frame_left: usize,
    /// Whether the last frame of the stream has begun over this connection.
    is_last_here: bool,
    /// Whether everything that the other end has to say has arrived.
    has_end: bool,
}

/// How the other end has broken the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A frame is longer than one may be.
    TooLong,
    /// A frame says nothing.
    Empty,
    /// It has taken what was not sent, or less than it had.
    Taken,
    /// It sends more than this end can take.
    TooMuch,
    /// Bytes follow the last frame.
    BehindLast,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "a frame is too long",
            Self::Empty => "a frame says nothing",
            Self::Taken => "the other end says that it has bytes that it cannot have",
            Self::TooMuch => "the other end sends more than was agreed",
            Self::BehindLast => "bytes follow the last frame",
        })
    }
}

impl std::error::Error for Fault {}

impl Endpoint {
    /// Creates an end of a session that begins, with the most bytes that it may have sent without an acknowledgement, and those that the
    /// other end may.
    pub fn new(ring_max_bytes: usize, peer_max_bytes: usize) -> Self {
        Self {
            ring: Ring::default(),
            ring_max_bytes,
            acked: 0,
            sent: 0,
            sent_ever: 0,
            is_finished: false,
            is_end_sent: false,
            is_cut: false,
            taken: 0,
            told: 0,
            peer_max_bytes,
            stowed: Ring::default(),
            head: [0; HEADER_BYTES],
            head_len: 0,
            frame_left: 0,
            is_last_here: false,
            has_end: false,
        }
    }

    /// Sets the limits that [`new`](Self::new) takes, when the other end has said them. Those that cannot be are made possible.
    pub fn set_limits(&mut self, ring_max_bytes: usize, peer_max_bytes: usize) {
        self.ring_max_bytes = ring_max_bytes.clamp(RING_MIN_BYTES, RING_MAX_BYTES);
        self.peer_max_bytes = peer_max_bytes.clamp(RING_MIN_BYTES, RING_MAX_BYTES);
    }

    // ---- what leaves -------------------------------------------------------------------------------------------------

    /// Returns how many bytes [`push`](Self::push) takes now.
    pub fn room(&self) -> usize {
        if self.is_finished { 0 } else { self.ring_max_bytes.saturating_sub(self.ring.len()) }
    }

    /// Takes the first bytes, as many as there is room for; returns how many.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let len = bytes.len().min(self.room());
        self.ring.push(bytes.get(..len).unwrap_or_default());
        len
    }

    /// Ends the stream behind what was pushed.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Returns whether the end of the stream was sent over this connection.
    pub fn is_end_sent(&self) -> bool {
        self.is_end_sent
    }

    /// Returns the number of bytes that the other end has not acknowledged.
    pub fn kept_bytes(&self) -> usize {
        self.ring.len()
    }

    /// Returns the bytes of memory that the end has for what it keeps in both directions.
    pub fn memory_bytes(&self) -> usize {
        self.ring.capacity() + self.stowed.capacity()
    }

    /// Returns the number of bytes that were not given to this connection.
    pub fn unsent_bytes(&self) -> usize {
        usize::try_from(self.end().saturating_sub(self.sent)).unwrap_or(usize::MAX)
    }

    /// Returns whether [`take_output`](Self::take_output) gives anything.
    pub fn has_output(&self) -> bool {
        let has_any = self.unsent_bytes() > 0 || (self.is_finished && !self.is_end_sent) || self.has_to_say();
        has_any && !self.is_cut
    }

    /// Appends frames to `into`, with at most `most_bytes` bytes of the stream; returns how many bytes of it these are.
    pub fn take_output(&mut self, into: &mut Vec<u8>, most_bytes: usize) -> usize {
        let mut left = most_bytes;
        if self.is_cut {
            return 0;
        }
        loop {
            let len = self.unsent_bytes().min(left).min(FRAME_MAX_BYTES);
            let is_last = self.is_finished && !self.is_end_sent && self.sent + len as u64 == self.end();
            if len == 0 && !is_last && !self.has_to_say() {
                return most_bytes - left;
            }
            // A frame's length fits.
            let header =
                Header { len: u32::try_from(len).unwrap_or_default(), is_last, taken: self.has() as u32 };
            into.extend_from_slice(&header.to_bytes());
            let start = usize::try_from(self.sent - self.acked).unwrap_or(usize::MAX);
            let (first, second) = self.ring.range(start, len);
            into.extend_from_slice(first);
            into.extend_from_slice(second);
            self.sent += len as u64;
            self.sent_ever = self.sent_ever.max(self.sent);
            self.told = self.has();
            self.is_end_sent |= is_last;
            left -= len;
        }
    }

    /// Returns the offset behind everything that was pushed.
    fn end(&self) -> u64 {
        self.acked + self.ring.len() as u64
    }

    /// Returns whether so much was taken that the other end has to be told without an occasion.
    fn has_to_say(&self) -> bool {
        let every = SAY_EVERY_BYTES.min(self.peer_max_bytes / 4).max(1);
        self.has() - self.told >= every as u64
    }

    // ---- what arrives ------------------------------------------------------------------------------------------------

    /// Returns the offset up to which this end has the other's bytes, which the other end is to be told when a connection begins.
    pub fn taken(&mut self) -> u64 {
        self.told = self.has();
        self.told
    }

    /// Returns the offset up to which the other end need not keep its bytes. What is stowed is its until nothing more can come.
    fn has(&self) -> u64 {
        self.taken + if self.has_end { self.stowed.len() as u64 } else { 0 }
    }

    /// Returns whether everything that the other end had to say was taken, and it said so.
    pub fn is_ended(&self) -> bool {
        self.has_end && self.stowed.len() == 0
    }

    /// Returns whether the other end has said everything, of which some may be stowed.
    pub fn has_end(&self) -> bool {
        self.has_end
    }

    /// Returns the number of bytes that have arrived and were not taken.
    pub fn stowed_bytes(&self) -> usize {
        self.stowed.len()
    }

    /// Turns frames into bytes: takes from `input` until that is empty or `into` is full; returns how many bytes there are. What was
    /// stowed comes first.
    ///
    /// # Errors
    /// The other end breaks the rules; nothing that it says afterwards means anything.
    pub fn receive(&mut self, input: &mut &[u8], into: &mut [u8]) -> Result<usize, Fault> {
        let mut len = self.stowed.take(into);
        self.taken += len as u64;
        if self.stowed.len() > 0 {
            return Ok(len);
        }
        loop {
            let room = into.get_mut(len..).unwrap_or_default();
            if self.frame_left > 0 {
                let count = self.frame_left.min(room.len()).min(input.len());
                let (piece, rest) = input.split_at_checked(count).unwrap_or_default();
                room.iter_mut().zip(piece).for_each(|(place, byte)| *place = *byte);
                *input = rest;
                self.frame_left -= count;
                self.taken += count as u64;
                len += count;
                if self.frame_left > 0 {
                    return Ok(len);
                }
            }
            self.has_end |= self.is_last_here;
            if !self.begin_frame(input)? {
                return Ok(len);
            }
        }
    }

    /// Keeps all bytes of the frames in `input` for later. They count as not taken, so that the other end stops.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn stow(&mut self, input: &mut &[u8]) -> Result<(), Fault> {
        loop {
            let count = self.frame_left.min(input.len());
            let (piece, rest) = input.split_at_checked(count).unwrap_or_default();
            self.stowed.push(piece);
            *input = rest;
            self.frame_left -= count;
            if self.frame_left > 0 {
                return Ok(());
            }
            self.has_end |= self.is_last_here;
            if !self.begin_frame(input)? {
                return Ok(());
            }
        }
    }

    /// Reads a frame's head; returns false if it is not complete.
    fn begin_frame(&mut self, input: &mut &[u8]) -> Result<bool, Fault> {
        while self.head_len < HEADER_BYTES {
            let Some((&byte, rest)) = input.split_first() else { return Ok(false) };
            *input = rest;
            if let Some(place) = self.head.get_mut(self.head_len) {
                *place = byte;
            }
            self.head_len += 1;
        }
        self.head_len = 0;
        let header = Header::from_bytes(self.head).ok_or(Fault::TooLong)?;
        let more = header.taken.wrapping_sub(self.acked as u32);
        let is_last = header.is_last && !self.is_last_here;
        if header.len == 0 && !is_last && more == 0 {
            return Err(Fault::Empty);
        }
        if header.len > 0 && (self.has_end || self.is_last_here) {
            return Err(Fault::BehindLast);
        }
        self.acknowledge(self.acked + u64::from(more), self.sent)?;
        let arrives = self.taken + (self.stowed.len() as u64) + u64::from(header.len);
        if arrives - self.told > self.peer_max_bytes as u64 {
            return Err(Fault::TooMuch);
        }
        self.frame_left = header.len as usize;
        self.is_last_here |= is_last;
        Ok(true)
    }

    /// Forgets the bytes before `offset`, which the other end has; it can have those before `most`.
    fn acknowledge(&mut self, offset: u64, most: u64) -> Result<(), Fault> {
        if offset < self.acked || offset > most {
            return Err(Fault::Taken);
        }
        if offset > self.acked {
            self.ring.drop_front(usize::try_from(offset - self.acked).unwrap_or(usize::MAX));
            self.acked = offset;
        }
        Ok(())
    }

    // ---- connections -------------------------------------------------------------------------------------------------

    /// Handles that the connection is over, expected or not.
    pub fn cut(&mut self) {
        if !self.has_end {
            // The other end sends it again: else what is stowed could become more with every connection.
            self.stowed.clear();
        }
        (self.head_len, self.frame_left, self.is_last_here) = (0, 0, false);
        self.is_end_sent = false;
        self.is_cut = true;
    }

    /// Returns whether the other end can have everything before this offset, and no less than it had.
    pub fn can_resume(&self, has: u64) -> bool {
        (self.acked..=self.sent_ever).contains(&has)
    }

    /// Goes on over a new connection to an end that has everything before the offset `has`.
    ///
    /// # Errors
    /// It cannot have that; or it has forgotten what it had.
    pub fn resume(&mut self, has: u64) -> Result<(), Fault> {
        self.acknowledge(has, self.sent_ever)?;
        self.sent = self.acked;
        self.is_cut = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
