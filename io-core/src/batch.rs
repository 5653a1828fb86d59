use std::collections::VecDeque;

use hipr_proto::{Tail, Ticket};

use crate::Config;

/// A range of a batch's bytes, at [`Batch::bytes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    start: u32,
    len: u32,
}

impl Span {
    /// Reads and what is copied of them are far below 4 GiB; a longer span would name nothing.
    fn new(start: usize, len: usize) -> Self {
        let (start, len) = (u32::try_from(start), u32::try_from(len));
        start.and_then(|start| Ok(Self { start, len: len? })).unwrap_or_default()
    }

    /// The length in bytes.
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Whether it names no bytes.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// One thing that a connection said.
#[derive(Debug)]
pub enum Item {
    /// A request.
    Request {
        /// To be spent in `Responder::complete`.
        ticket: Ticket,
        /// The fixed part; shorter than the operation's if the message was.
        fixed: Span,
        /// All of its tail, where that is [`Tail::Small`] and was there.
        tail: Span,
        /// Length in bytes of the data that follows as [`Item::Data`].
        follows: u64,
    },
    /// Bytes of the last request's tail.
    Data {
        /// The bytes.
        span: Span,
        /// Whether they end the tail.
        last: bool,
    },
}

/// What one read of one connection gave, parsed. Buffers are reused through the [`Pool`].
#[derive(Debug, Default)]
pub struct Batch {
    items: VecDeque<Item>,
    /// The read buffer itself, where the bytes of a large read lie.
    buffer: Option<Vec<u8>>,
    /// Bytes of the buffer. Spans count on from there into the arena.
    buffer_len: usize,
    /// The bytes of a small read; fixed parts that came in pieces.
    arena: Vec<u8>,
    cost_bytes: usize,
}

impl Batch {
    /// Takes the next item.
    #[inline]
    pub fn pop(&mut self) -> Option<Item> {
        self.items.pop_front()
    }

    /// The items that are left.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether all items were taken.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The bytes that a span of one of its items names; a span of another batch names nothing.
    #[inline]
    pub fn bytes(&self, span: Span) -> &[u8] {
        let start = span.start as usize;
        let (bytes, start) = match (&self.buffer, start.checked_sub(self.buffer_len)) {
            (Some(buffer), None) => (buffer, start),
            (_, at) => (&self.arena, at.unwrap_or(start)),
        };
        bytes.get(start..).and_then(|rest| rest.get(..span.len())).unwrap_or_default()
    }

    /// Bytes that were read for it: what it counts against the limits while it is in flight.
    pub fn cost_bytes(&self) -> usize {
        self.cost_bytes
    }

    /// Begins with what was read, which goes along by reference or is copied.
    pub(crate) fn begin(&mut self, read: &[u8], by_reference: bool) {
        if by_reference {
            self.buffer_len = read.len();
        } else {
            self.arena.extend_from_slice(read);
        }
    }

    /// Adds a request. `at` says where in the read its fixed part lies; `None`: it came in pieces.
    #[inline]
    pub(crate) fn push_request(&mut self, ticket: Ticket, fixed: &[u8], at: Option<usize>, follows: u64) {
        let start = at.unwrap_or(self.buffer_len + self.arena.len());
        if at.is_none() {
            self.arena.extend_from_slice(fixed);
        }
        let (fixed, tail) = (Span::new(start, fixed.len()), Span::default());
        self.items.push_back(Item::Request { ticket, fixed, tail, follows });
    }

    /// Adds data that lies at `at` of the read. A whole tail that would only be collected goes with its request.
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

    pub(crate) fn seal(&mut self, buffer: Option<Vec<u8>>, cost_bytes: usize) {
        self.buffer = buffer;
        self.cost_bytes = cost_bytes;
    }
}

/// Buffers that are free. Owned by the loop thread, so that taking and giving back costs no lock.
#[derive(Debug, Default)]
pub struct Pool {
    batches: Vec<Batch>,
    buffers: Vec<Vec<u8>>,
    in_flight_bytes: usize,
}

impl Pool {
    /// Free buffers kept for reuse; the rest goes back to the allocator.
    const KEEP: usize = 16;
    /// A batch that grew beyond this gives its memory back instead of keeping it.
    const KEEP_ARENA_BYTES: usize = 64 * 1024;
    const KEEP_ITEMS: usize = 2048;

    /// A buffer of [`Config::READ_BYTES`] to read into.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.buffers.pop().unwrap_or_else(|| vec![0; Config::READ_BYTES])
    }

    /// Takes a read buffer back.
    pub fn keep_buffer(&mut self, buffer: Vec<u8>) {
        if buffer.len() == Config::READ_BYTES && self.buffers.len() < Self::KEEP {
            self.buffers.push(buffer);
        }
    }

    /// Bytes in flight of all connections.
    pub fn in_flight_bytes(&self) -> usize {
        self.in_flight_bytes
    }

    pub(crate) fn batch(&mut self) -> Batch {
        self.batches.pop().unwrap_or_default()
    }

    pub(crate) fn lend(&mut self, batch: &Batch) {
        self.in_flight_bytes += batch.cost_bytes;
    }

    /// Takes a batch back that the dispatch is done with.
    pub(crate) fn restore(&mut self, mut batch: Batch) {
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(batch.cost_bytes);
        self.recycle(&mut batch);
        if self.batches.len() < Self::KEEP {
            self.batches.push(batch);
        }
    }

    /// Takes back a batch that was never lent.
    pub(crate) fn discard(&mut self, mut batch: Batch) {
        self.recycle(&mut batch);
        if self.batches.len() < Self::KEEP {
            self.batches.push(batch);
        }
    }

    /// A connection is gone, and its batches with it.
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
