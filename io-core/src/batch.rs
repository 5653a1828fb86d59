use std::collections::VecDeque;

use hipr_proto::{Opcode, Ticket};

use crate::Config;

/// A range of a batch's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    start: usize,
    len: usize,
}

impl Span {
    /// The length in bytes.
    pub fn len(self) -> usize {
        self.len
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
        /// What is asked.
        op: Opcode,
        /// The fixed part, at [`Batch::fixed`]; shorter than the operation's if the message was.
        fixed: Span,
        /// Length in bytes of the data that follows as [`Item::Data`].
        tail: u64,
    },
    /// Bytes of the last request's tail.
    Data {
        /// The bytes, at [`Batch::data`].
        span: Span,
        /// Whether they end the tail.
        last: bool,
    },
}

/// What one read of one connection gave, parsed. Buffers are reused through the [`Pool`].
#[derive(Debug, Default)]
pub struct Batch {
    items: VecDeque<Item>,
    /// Fixed parts, and the data of a small read.
    arena: Vec<u8>,
    /// The read buffer itself, where the data of a large read lies.
    buffer: Option<Vec<u8>>,
    cost_bytes: usize,
}

impl Batch {
    /// Takes the next item.
    pub fn pop(&mut self) -> Option<Item> {
        self.items.pop_front()
    }

    /// The items that are left.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether all items were taken.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The bytes of a request's fixed part.
    pub fn fixed(&self, span: Span) -> &[u8] {
        Self::slice(&self.arena, span)
    }

    /// The bytes of a piece of data.
    pub fn data(&self, span: Span) -> &[u8] {
        Self::slice(self.buffer.as_ref().unwrap_or(&self.arena), span)
    }

    /// Bytes that were read for it: what it counts against the limits while it is in flight.
    pub fn cost_bytes(&self) -> usize {
        self.cost_bytes
    }

    /// Spans only come from `push_*` of the same batch; a foreign one names nothing.
    fn slice(bytes: &[u8], span: Span) -> &[u8] {
        bytes.get(span.start..).and_then(|rest| rest.get(..span.len)).unwrap_or_default()
    }

    pub(crate) fn push_request(&mut self, ticket: Ticket, op: Opcode, fixed: &[u8], tail: u64) {
        let span = Span { start: self.arena.len(), len: fixed.len() };
        self.arena.extend_from_slice(fixed);
        self.items.push_back(Item::Request { ticket, op, fixed: span, tail });
    }

    /// Adds data that lies at `at` of the read buffer: by reference if the buffer goes with the batch, else copied.
    pub(crate) fn push_data(&mut self, bytes: &[u8], at: usize, by_reference: bool, last: bool) {
        let start = if by_reference { at } else { self.arena.len() };
        if !by_reference {
            self.arena.extend_from_slice(bytes);
        }
        self.items.push_back(Item::Data { span: Span { start, len: bytes.len() }, last });
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
        batch.items.shrink_to(Self::KEEP_ITEMS);
        batch.arena.shrink_to(Self::KEEP_ARENA_BYTES);
        batch.cost_bytes = 0;
    }
}
