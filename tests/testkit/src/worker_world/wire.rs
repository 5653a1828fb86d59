//! A connection in memory, with what TCP does to bytes: any pieces, room for so many, and a reset that takes along what
//! was on its way.

use std::collections::VecDeque;

use crate::choices::Choices;

/// One direction.
#[derive(Debug, Default)]
pub(super) struct Direction {
    bytes: VecDeque<u8>,
    /// Nothing more will be written.
    ended: bool,
}

/// What a read gives.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    Bytes(usize),
    End,
    Reset,
    Nothing,
}

/// Both directions.
#[derive(Debug, Default)]
pub(super) struct Wire {
    pub(super) up: Direction,
    pub(super) down: Direction,
    reset: bool,
    /// Bytes that each direction has room for.
    room: usize,
}

impl Direction {
    /// Bytes that can be read.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Writes no more.
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

/// How many of `len` bytes are moved at once: at least one, all when the decisions are used up.
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

    /// Whether it is broken.
    pub(super) fn is_reset(&self) -> bool {
        self.reset
    }

    /// Whether the worker's read gives anything.
    pub(super) fn is_up_readable(&self) -> bool {
        self.reset || self.up.ended || self.up.len() > 0
    }

    /// Whether the client writes no more, however much of what it wrote was not read.
    pub(super) fn is_up_ended(&self) -> bool {
        self.up.ended
    }

    /// Whether there is room to write to the worker.
    pub(super) fn is_up_writable(&self) -> bool {
        self.up.len() < self.room
    }

    /// Whether there is room to write to the client.
    pub(super) fn is_down_writable(&self) -> bool {
        self.down.len() < self.room
    }

    /// The worker reads.
    pub(super) fn read_up(&mut self, into: &mut [u8], choices: &mut Choices<'_>) -> Read {
        if self.reset { Read::Reset } else { self.up.read(into, choices) }
    }

    /// The client reads. What had arrived before a reset can be read.
    pub(super) fn read_down(&mut self, into: &mut [u8], choices: &mut Choices<'_>) -> Read {
        match self.down.read(into, choices) {
            Read::Nothing if self.reset => Read::Reset,
            read => read,
        }
    }

    /// The client writes; how much.
    pub(super) fn write_up(&mut self, bytes: &[u8], choices: &mut Choices<'_>) -> usize {
        let n = piece(choices, bytes.len().min(self.room.saturating_sub(self.up.len())));
        self.up.bytes.extend(bytes.iter().take(n));
        n
    }

    /// The worker writes; how much.
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

    /// The worker closes its socket. If the client said something that nobody read, or says more, that is a reset: what is
    /// on its way to the client may be lost.
    pub(super) fn close_by_worker(&mut self, choices: &mut Choices<'_>) {
        self.down.ended = true;
        if self.up.len() > 0 {
            let arrived = choices.index(self.down.len() + 1);
            self.down.bytes.truncate(arrived);
            self.break_off();
        }
    }

    /// The client closes its socket. What it has not read makes that a reset, once the worker says more or has said it.
    pub(super) fn close_by_client(&mut self) {
        self.up.ended = true;
        self.down.bytes.clear();
    }

    /// The connection breaks.
    pub(super) fn break_off(&mut self) {
        self.reset = true;
        self.up.bytes.clear();
    }
}
