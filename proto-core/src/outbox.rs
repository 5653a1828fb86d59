//! Queued outgoing bytes of a connection.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A queue of outgoing bytes. The transport owns it, writes [`slices`](Self::slices) and reports how many bytes it wrote
/// with [`advance`](Self::advance).
///
/// Headers, fixed parts and small tails lie one after another in a single buffer; inline bytes stay where they are (`B`)
/// and are never copied. `B` can be a `Vec<u8>`, a pooled buffer, or memory of the caller.
#[derive(Debug)]
pub struct Outbox<B> {
    /// All queued bytes that are not inline, in order.
    bytes: Vec<u8>,
    chunks: VecDeque<Chunk<B>>,
    /// Bytes of the first chunk that have been written.
    sent: usize,
    len: usize,
    /// Capacity in bytes that the buffer keeps while the outbox is empty.
    keep: usize,
}

#[derive(Debug)]
enum Chunk<B> {
    /// A range of `bytes`.
    Bytes {
        start: usize,
        end: usize,
    },
    Inline(B),
}

/// Default capacity in bytes that an empty outbox keeps; small, because there may be many idle connections.
const KEEP_BYTES: usize = 16 * 1024;
/// Capacity that an empty list of chunks keeps.
const KEEP_CHUNKS: usize = 256;

impl<B> Default for Outbox<B> {
    fn default() -> Self {
        Self { bytes: Vec::new(), chunks: VecDeque::new(), sent: 0, len: 0, keep: KEEP_BYTES }
    }
}

impl<B> Outbox<B> {
    /// Creates an empty outbox without allocating.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether all bytes have been written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of bytes that have not been written.
    pub fn len_bytes(&self) -> usize {
        self.len
    }

    /// Calls `write` with the buffer and queues what it appended.
    pub(crate) fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        let end = self.bytes.len();
        self.len += end - start;
        match self.chunks.back_mut() {
            _ if start == end => {}
            // Nothing but this appends to `bytes`, so the last range ends where the new one starts.
            Some(Chunk::Bytes { end: last, .. }) => *last = end,
            _ => self.chunks.push_back(Chunk::Bytes { start, end }),
        }
    }

    fn reset(&mut self) {
        self.sent = 0;
        self.bytes.clear();
        self.bytes.shrink_to(self.keep);
        self.chunks.shrink_to(KEEP_CHUNKS);
    }

    /// Sets the capacity that the buffer keeps while the outbox is empty, for a user that fills it repeatedly.
    pub(crate) fn keep(&mut self, len_bytes: usize) {
        self.keep = len_bytes;
    }
}

impl<B: AsRef<[u8]>> Outbox<B> {
    /// Queues inline bytes without copying them.
    pub fn put_inline(&mut self, inline: B) {
        let len = inline.as_ref().len();
        if len > 0 {
            self.len += len;
            self.chunks.push_back(Chunk::Inline(inline));
        }
    }

    /// Moves everything queued in `other` to the end of this outbox. If this one is empty the two are swapped; otherwise
    /// all but the inline bytes are copied.
    pub fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            core::mem::swap(self, other);
            return;
        }
        let bytes = core::mem::take(&mut other.bytes);
        let mut sent = core::mem::take(&mut other.sent);
        for chunk in other.chunks.drain(..) {
            match chunk {
                Chunk::Bytes { start, end } => {
                    let left = bytes.get(start + sent..end).unwrap_or(&[]);
                    self.put(|out| out.extend_from_slice(left));
                }
                // The cursor exists for the first chunk only; a copy of the rest of one inline chunk is not possible
                // without knowing `B`, so such bytes go through the buffer.
                Chunk::Inline(inline) if sent > 0 => {
                    let left = inline.as_ref().get(sent..).unwrap_or(&[]);
                    self.put(|out| out.extend_from_slice(left));
                }
                Chunk::Inline(inline) => self.put_inline(inline),
            }
            sent = 0;
        }
        other.len = 0;
        other.bytes = bytes;
        other.reset();
    }

    /// Iterates over the bytes that have not been written, in order, for one vectored write.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        self.chunks.iter().enumerate().map(|(i, chunk)| {
            let sent = if i == 0 { self.sent } else { 0 };
            self.bytes_of(chunk).get(sent..).unwrap_or(&[])
        })
    }

    /// Removes the first `n` bytes, which have been written, and drops chunks that are written completely.
    ///
    /// # Panics
    /// In debug builds, when `n` is more than [`len_bytes`](Self::len_bytes).
    pub fn advance(&mut self, n: usize) {
        debug_assert!(n <= self.len, "{n} bytes left of {}", self.len);
        let mut n = n.min(self.len);
        self.len -= n;
        while let Some(chunk) = self.chunks.front() {
            let left = self.bytes_of(chunk).len() - self.sent;
            if n < left {
                self.sent += n;
                return;
            }
            n -= left;
            self.sent = 0;
            self.chunks.pop_front();
        }
        self.reset();
    }

    fn bytes_of<'a>(&'a self, chunk: &'a Chunk<B>) -> &'a [u8] {
        match chunk {
            Chunk::Bytes { start, end } => self.bytes.get(*start..*end).unwrap_or(&[]),
            Chunk::Inline(inline) => inline.as_ref(),
        }
    }
}
