use std::collections::VecDeque;

use hipr_proto::{Header, Tail, Ticket};

use crate::Config;

/// A range of a batch's bytes, for [`Batch::bytes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    start: u32,
    len: u32,
}

impl Span {
    /// Creates a span. Batches are far smaller than 4 GiB; a longer span would become empty.
    fn new(start: usize, len: usize) -> Self {
        let (start, len) = (u32::try_from(start), u32::try_from(len));
        start.and_then(|start| Ok(Self { start, len: len? })).unwrap_or_default()
    }

    /// Returns the length in bytes.
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Returns whether the span is empty.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// A request, or a piece of a request's data.
#[derive(Debug)]
pub enum Item {
    /// A request.
    Request {
        /// Has to be passed to `Responder::complete`.
        ticket: Ticket,
        /// The fixed part; shorter than the operation's if the message was too short.
        fixed: Span,
        /// The complete tail, if the operation has a [`Tail::Small`] and the batch contains all of it.
        tail: Span,
        /// Number of bytes that follow as [`Item::Data`].
        follows: u64,
    },
    /// Bytes of the last request's tail.
    Data {
        /// The bytes.
        span: Span,
        /// Whether these are the tail's last bytes.
        last: bool,
    },
}

/// The requests and data parsed from one read of one connection. The [`Pool`] reuses its buffers.
#[derive(Debug, Default)]
pub struct Batch {
    items: VecDeque<Item>,
    /// The read buffer itself, if the read was large.
    buffer: Option<Vec<u8>>,
    /// Number of bytes in the read buffer. Spans beyond it refer to the arena.
    buffer_len: usize,
    /// The bytes of a small read, and fixed parts that arrived in pieces.
    arena: Vec<u8>,
    cost_bytes: usize,
}

impl Batch {
    /// Removes and returns the next item.
    #[inline]
    pub fn pop(&mut self) -> Option<Item> {
        self.items.pop_front()
    }

    /// Iterates over the remaining items.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.items.iter()
    }

    /// Returns the number of remaining items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether all items were taken.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the bytes of a span of one of this batch's items; empty for a span of another batch.
    #[inline]
    pub fn bytes(&self, span: Span) -> &[u8] {
        let start = span.start as usize;
        let (bytes, start) = match (&self.buffer, start.checked_sub(self.buffer_len)) {
            (Some(buffer), None) => (buffer, start),
            (_, at) => (&self.arena, at.unwrap_or(start)),
        };
        bytes.get(start..).and_then(|rest| rest.get(..span.len())).unwrap_or_default()
    }

    /// Returns the bytes of memory that this batch was made of, which count against the limits while it is in flight: a whole read
    /// buffer if it refers to one, else the bytes that were read, and its items.
    pub fn cost_bytes(&self) -> usize {
        self.cost_bytes
    }

    /// Returns the most that a batch costs which is made of `read_bytes` bytes.
    pub fn most_cost_bytes(read_bytes: usize) -> usize {
        // A message has a header, and is at most two items.
        let items = 2 * (read_bytes / Header::SIZE + 1);
        Self::bytes_of(read_bytes, read_bytes > Config::SMALL_READ_BYTES, items)
    }

    fn bytes_of(read_bytes: usize, by_reference: bool, items: usize) -> usize {
        let bytes = if by_reference { Config::READ_BYTES } else { read_bytes };
        bytes + items * size_of::<Item>()
    }

    /// Starts a batch with the bytes of a read, which are referenced or copied.
    pub(crate) fn begin(&mut self, read: &[u8], by_reference: bool) {
        if by_reference {
            self.buffer_len = read.len();
        } else {
            self.arena.extend_from_slice(read);
        }
    }

    /// Adds a request. `at` is the offset of its fixed part in the read, or `None` if it arrived in pieces.
    #[inline]
    pub(crate) fn push_request(&mut self, ticket: Ticket, fixed: &[u8], at: Option<usize>, follows: u64) {
        let start = at.unwrap_or(self.buffer_len + self.arena.len());
        if at.is_none() {
            self.arena.extend_from_slice(fixed);
        }
        let (fixed, tail) = (Span::new(start, fixed.len()), Span::default());
        self.items.push_back(Item::Request { ticket, fixed, tail, follows });
    }

    /// Adds data at offset `at` of the read. A complete small tail becomes part of its request.
    #[inline]
    pub(crate) fn push_data(&mut self, at: usize, len: usize, last: bool) {
        let span = Span::new(at, len);
        match self.items.back_mut() {
            Some(Item::Request { ticket, tail, follows, .. })
                if *follows == len as u64
                    && ticket.op().info().is_some_and(|info| info.request.tail == Tail::Small) =>
            {
                *tail = span;
                *follows = 0;
            }
            _ => self.items.push_back(Item::Data { span, last }),
        }
    }

    pub(crate) fn seal(&mut self, buffer: Option<Vec<u8>>, read_bytes: usize) {
        self.buffer = buffer;
        self.cost_bytes = Self::bytes_of(read_bytes, self.buffer.is_some(), self.items.len());
    }
}

/// Free buffers and batches. The loop thread owns them, so that using them needs no lock.
#[derive(Debug, Default)]
pub struct Pool {
    batches: Vec<Batch>,
    buffers: Vec<Vec<u8>>,
    in_flight_bytes: usize,
}

impl Pool {
    /// Maximum number of free buffers, and of free batches, that are kept.
    const KEEP: usize = 16;
    /// Maximum capacity in bytes that a free batch keeps.
    const KEEP_ARENA_BYTES: usize = 64 * 1024;
    const KEEP_ITEMS: usize = 2048;

    /// Returns a buffer of [`Config::READ_BYTES`] to read into.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.buffers.pop().unwrap_or_else(|| vec![0; Config::READ_BYTES])
    }

    /// Returns a read buffer to the pool.
    pub fn keep_buffer(&mut self, buffer: Vec<u8>) {
        if buffer.len() == Config::READ_BYTES && self.buffers.len() < Self::KEEP {
            self.buffers.push(buffer);
        }
    }

    /// Returns the bytes in flight of all connections.
    pub fn in_flight_bytes(&self) -> usize {
        self.in_flight_bytes
    }

    pub(crate) fn batch(&mut self) -> Batch {
        self.batches.pop().unwrap_or_default()
    }

    pub(crate) fn lend(&mut self, batch: &Batch) {
        self.in_flight_bytes += batch.cost_bytes;
    }

    /// Returns a batch that the dispatch has finished with to the pool.
    pub(crate) fn restore(&mut self, mut batch: Batch) {
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(batch.cost_bytes);
        self.recycle(&mut batch);
        if self.batches.len() < Self::KEEP {
            self.batches.push(batch);
        }
    }

    /// Returns a batch that was never passed on to the pool.
    pub(crate) fn discard(&mut self, mut batch: Batch) {
        self.recycle(&mut batch);
        if self.batches.len() < Self::KEEP {
            self.batches.push(batch);
        }
    }

    /// Subtracts the bytes in flight of a connection that was closed with its batches.
    pub(crate) fn forget(&mut self, cost_bytes: usize) {
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(cost_bytes);
    }

    fn recycle(&mut self, batch: &mut Batch) {
        if let Some(buffer) = batch.buffer.take() {
            self.keep_buffer(buffer);
        }
        batch.items.clear();
        batch.arena.clear();
        batch.buffer_len = 0;
        batch.items.shrink_to(Self::KEEP_ITEMS);
        batch.arena.shrink_to(Self::KEEP_ARENA_BYTES);
        batch.cost_bytes = 0;
    }
}
