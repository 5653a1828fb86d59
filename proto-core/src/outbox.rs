//! Outgoing bytes and how far they are written.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Bytes on their way out. The writer owns it, writes [`slices`](Self::slices) and reports how much left with
/// [`advance`](Self::advance).
///
/// Headers, fixed parts and small tails lie one after another in a single buffer; inline bytes stay where they are (`B`)
/// and are never copied. `B` can be a `Vec<u8>`, a pooled buffer, or memory of the caller.
#[derive(Debug)]
pub struct Outbox<B> {
    /// What is not inline, in order.
    bytes: Vec<u8>,
    chunks: VecDeque<Chunk<B>>,
    /// Bytes of the first chunk that have left.
    sent: usize,
    len: usize,
    /// Empty, it keeps its buffer up to this many bytes.
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

/// An empty outbox keeps its buffer up to this size unless it was told otherwise: an idle connection should cost little.
const KEEP_BYTES: usize = 16 * 1024;
/// What the list of chunks may keep.
const KEEP_CHUNKS: usize = 256;

impl<B> Default for Outbox<B> {
    fn default() -> Self {
        Self { bytes: Vec::new(), chunks: VecDeque::new(), sent: 0, len: 0, keep: KEEP_BYTES }
    }
}

impl<B> Outbox<B> {
    /// An empty outbox; allocates nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether all bytes have left.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that have not left.
    pub fn len_bytes(&self) -> usize {
        self.len
    }

    /// Appends what `write` appends to the buffer it is given.
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

    /// From now on it keeps a buffer of so many bytes when it is empty, for whoever fills it again and again.
    pub(crate) fn keep(&mut self, len_bytes: usize) {
        self.keep = len_bytes;
    }
}

impl<B: AsRef<[u8]>> Outbox<B> {
    /// Appends inline bytes.
    pub(crate) fn put_inline(&mut self, inline: B) {
        let len = inline.as_ref().len();
        if len > 0 {
            self.len += len;
            self.chunks.push_back(Chunk::Inline(inline));
        }
    }

    /// Moves everything of `other` behind what is here. Swaps when this one is empty; otherwise only what is not inline
    /// is copied.
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

    /// The bytes that have not left, in order, for one vectored write.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        self.chunks.iter().enumerate().map(|(i, chunk)| {
            let sent = if i == 0 { self.sent } else { 0 };
            self.bytes_of(chunk).get(sent..).unwrap_or(&[])
        })
    }

    /// The first `n` bytes have left. Chunks that left whole are dropped.
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
