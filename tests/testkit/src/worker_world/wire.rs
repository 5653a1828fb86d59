//! A connection in memory that behaves like TCP: bytes arrive in any pieces, buffers are limited, and a reset loses bytes
//! on their way.

use std::collections::VecDeque;

use crate::choices::Choices;

/// One direction of the connection.
#[derive(Debug, Default)]
pub(super) struct Direction {
    bytes: VecDeque<u8>,
    /// Whether the sending side is closed.
    ended: bool,
}

/// The result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    Bytes(usize),
    End,
    Reset,
    Nothing,
}

/// The connection.
#[derive(Debug, Default)]
pub(super) struct Wire {
    pub(super) up: Direction,
    pub(super) down: Direction,
    reset: bool,
    /// Capacity of each direction in bytes.
    room: usize,
}

impl Direction {
    /// Returns how many bytes can be read.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Closes the sending side.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    fn read(&mut self, into: &mut [u8], choices: &mut Choices<'_>) -> Read {
        let n = piece(choices, self.bytes.len().min(into.len()));
        if n == 0 {
            return if self.ended && self.bytes.is_empty() { Read::End } else { Read::Nothing };
        }
        for (place, byte) in into.iter_mut().zip(self.bytes.drain(..n)) {
            *place = byte;
        }
        Read::Bytes(n)
    }
}

/// Draws how many of `len` bytes are moved at once: at least one, all when the decisions are used up.
fn piece(choices: &mut Choices<'_>, len: usize) -> usize {
    match choices.below(4) {
        0 => len,
        1 => len.min(1 + choices.index(30)),
        2 => len.min(1 + choices.index(3000)),
        _ => len.min(1 + choices.index(len)),
    }
}

impl Wire {
    pub(super) fn new(room: usize) -> Self {
        Self { room, ..Self::default() }
    }

    /// Returns whether the connection was reset.
    pub(super) fn is_reset(&self) -> bool {
        self.reset
    }

    /// Returns whether a read by the worker returns anything.
    pub(super) fn is_up_readable(&self) -> bool {
        self.reset || self.up.ended || self.up.len() > 0
    }

    /// Returns whether the client closed its sending side, even if bytes before that are unread.
    pub(super) fn is_up_ended(&self) -> bool {
        self.up.ended
    }

    /// Returns whether the client can write.
    pub(super) fn is_up_writable(&self) -> bool {
        self.up.len() < self.room
    }

    /// Returns whether the worker can write.
    pub(super) fn is_down_writable(&self) -> bool {
        self.down.len() < self.room
    }

    /// Reads for the worker.
    pub(super) fn read_up(&mut self, into: &mut [u8], choices: &mut Choices<'_>) -> Read {
        if self.reset { Read::Reset } else { self.up.read(into, choices) }
    }

    /// Reads for the client, which after a reset can still read the bytes that arrived before it.
    pub(super) fn read_down(&mut self, into: &mut [u8], choices: &mut Choices<'_>) -> Read {
        match self.down.read(into, choices) {
            Read::Nothing if self.reset => Read::Reset,
            read => read,
        }
    }

    /// Writes for the client; returns the number of bytes.
    pub(super) fn write_up(&mut self, bytes: &[u8], choices: &mut Choices<'_>) -> usize {
        let n = piece(choices, bytes.len().min(self.room.saturating_sub(self.up.len())));
        self.up.bytes.extend(bytes.iter().take(n));
        n
    }

    /// Writes for the worker; returns the number of bytes.
    pub(super) fn write_down<'b>(
        &mut self,
        slices: impl Iterator<Item = &'b [u8]>,
        len: usize,
        choices: &mut Choices<'_>,
    ) -> usize {
        let n = piece(choices, len.min(self.room.saturating_sub(self.down.len())));
        let mut left = n;
        for bytes in slices {
            let now = left.min(bytes.len());
            self.down.bytes.extend(bytes.iter().take(now));
            left -= now;
        }
        n - left
    }

    /// Closes the worker's socket. If bytes of the client are unread, or it sends more, this is a reset, and bytes on their
    /// way to the client may be lost.
    pub(super) fn close_by_worker(&mut self, choices: &mut Choices<'_>) {
        self.down.ended = true;
        if self.up.len() > 0 {
            let arrived = choices.index(self.down.len() + 1);
            self.down.bytes.truncate(arrived);
            self.break_off();
        }
    }

    /// Closes the client's socket. If bytes of the worker are unread, or it sends more, this becomes a reset.
    pub(super) fn close_by_client(&mut self) {
        self.up.ended = true;
        self.down.bytes.clear();
    }

    /// Resets the connection.
    pub(super) fn break_off(&mut self) {
        self.reset = true;
        self.up.bytes.clear();
    }
}
