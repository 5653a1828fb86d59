//! The sending half of a client: encodes and coalesces requests. It belongs where calls are made.

use alloc::vec::Vec;

use crate::error::Misuse;
use crate::header::{FLAG_HAS_INLINE_DATA, FLAG_NO_REPLY, Header};
use crate::op::{Op, Opcode, Tail, TailLen};
use crate::outbox::Outbox;
use crate::wire::Wire;

/// Bytes of unanswered requests that are collected before they are sent (`HIPR 1.0, Write Coalescing`).
pub const COALESCE_BYTES: usize = 64 * 1024;

/// Capacity that the buffers of an active connection keep: the last request may begin below the limit and end above it.
const KEEP_BYTES: usize = COALESCE_BYTES + 4 * 1024;

/// Inline data up to this many bytes is copied into the coalescing buffer if it fits; longer data is sent from the caller's
/// memory.
pub const COALESCE_INLINE_BYTES: usize = 4 * 1024;

/// Whether a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplyMode {
    /// As the operation's reply rule says.
    #[default]
    AsUsual,
    /// Always.
    Always,
    /// Never: sets `NO_REPLY`.
    Never,
}

impl ReplyMode {
    /// Returns whether `op` is answered.
    pub fn wants_reply(self, op: &impl Op) -> bool {
        match self {
            Self::AsUsual => op.wants_reply(),
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// A request that waits for its reply: what a [`ReplyReceiver`](crate::ReplyReceiver) needs to know about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the reply receiver has to expect the call"]
pub struct Call {
    pub(crate) id: u32,
    pub(crate) op: Opcode,
    pub(crate) reply_size: usize,
    pub(crate) reply_tail: TailLen,
}

impl Call {
    /// Returns the request id on the wire.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the operation.
    pub fn op(&self) -> Opcode {
        self.op
    }
}

/// Turns requests into bytes and coalesces those that are not answered.
///
/// Unanswered requests gather in a buffer of [`COALESCE_BYTES`]. They leave when [`wants_flush`](Self::wants_flush) says so
/// and [`poll_transmit`](Self::poll_transmit) is called:
///
/// * with a request that waits for its answer,
/// * when the buffer is full,
/// * when inline bytes were not copied: they leave from the caller's memory, together with all before them, in one
///   vectored write,
/// * on an explicit [`flush`](Self::flush).
#[derive(Debug)]
pub struct Sender<B> {
    out: Outbox<B>,
    next_id: u32,
    flush: bool,
}

impl<B> Default for Sender<B> {
    fn default() -> Self {
        Self { out: Outbox::new(), next_id: 1, flush: false }
    }
}

impl<B: AsRef<[u8]>> Sender<B> {
    /// Creates the sending half of a new connection. Request ids count from 1.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether the queued requests should be sent now.
    pub fn wants_flush(&self) -> bool {
        self.flush
    }

    /// Returns the id of the request that was queued last; 0 before the first.
    #[inline]
    pub fn last_id(&self) -> u32 {
        self.next_id.wrapping_sub(1)
    }

    /// Returns the number of bytes that are queued to be sent.
    pub fn queued_bytes(&self) -> usize {
        self.out.len_bytes()
    }

    /// Queues a request. `tail` are bytes to copy (names, arrays, arguments), `inline` are bulk bytes behind them. Returns
    /// the call if the operation's reply rule asks for a reply; it has to be passed to
    /// [`ReplyReceiver::expect`](crate::ReplyReceiver::expect).
    ///
    /// # Errors
    /// Bytes after the fixed part are not as many as the request says, or the buffer is full and was not transmitted.
    pub fn request(&mut self, op: &impl Op, tail: &[u8], inline: Option<B>) -> Result<Option<Call>, Misuse> {
        self.request_with(op, tail, inline, ReplyMode::AsUsual)
    }

    /// Queues a request like [`request`](Self::request); `reply_mode` decides whether it is answered.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn request_with<O: Op>(
        &mut self,
        op: &O,
        tail: &[u8],
        inline: Option<B>,
        reply_mode: ReplyMode,
    ) -> Result<Option<Call>, Misuse> {
        let given = tail.len() as u64 + inline_len(&inline) as u64;
        Misuse::check_tail(op, given)?;
        let wants_reply = reply_mode.wants_reply(op);
        let message = Message { op: O::OPCODE, fixed_size: O::SIZE, tail, inline, wants_reply };
        let reply = (O::Reply::SIZE, op.reply_tail_len());
        self.queue(message, reply, |out| op.put(out))
    }

    /// Queues a request whose fixed part is encoded already, without checking it. Everything after the fixed part of its
    /// reply is returned as data.
    ///
    /// # Errors
    /// The buffer is full and was not transmitted.
    pub fn request_raw(
        &mut self,
        op: Opcode,
        fixed: &[u8],
        inline: Option<B>,
        wants_reply: bool,
    ) -> Result<Option<Call>, Misuse> {
        let message = Message { op, fixed_size: fixed.len(), tail: &[], inline, wants_reply };
        let reply_size = op.info().map_or(0, |info| info.reply.size);
        self.queue(message, (reply_size, TailLen::AtLeast(0)), |out| out.extend_from_slice(fixed))
    }

    /// Requests that everything queued is sent now (`hip_remote_flush`).
    pub fn flush(&mut self) {
        self.flush = !self.out.is_empty();
    }

    /// Moves the queued bytes to the end of `outbox` (swaps if that is empty); returns whether `outbox` has bytes to send.
    pub fn poll_transmit(&mut self, outbox: &mut Outbox<B>) -> bool {
        self.flush = false;
        if !self.out.is_empty() {
            outbox.keep(KEEP_BYTES);
            outbox.append(&mut self.out);
        }
        !outbox.is_empty()
    }

    fn queue(
        &mut self,
        message: Message<'_, B>,
        (reply_size, reply_tail): (usize, TailLen),
        put_fixed: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Option<Call>, Misuse> {
        let Message { op, fixed_size, tail, inline, wants_reply } = message;
        let queued = self.out.len_bytes();
        if queued >= COALESCE_BYTES {
            return Err(Misuse::Unflushed { queued });
        }
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);

        let inline_len = inline_len(&inline);
        let body = fixed_size + tail.len() + inline_len;
        let is_bulk = op.info().is_some_and(|info| info.request.tail == Tail::Bulk);
        let mut flags = 0;
        if !wants_reply {
            flags |= FLAG_NO_REPLY;
        }
        if is_bulk && body > fixed_size {
            flags |= FLAG_HAS_INLINE_DATA;
        }
        let copied = inline_len <= COALESCE_INLINE_BYTES && queued + Header::SIZE + body <= COALESCE_BYTES;
        self.out.put(|out| {
            Header::new(op, id, body as u64, flags).put(out);
            put_fixed(out);
            out.extend_from_slice(tail);
            if copied && let Some(inline) = &inline {
                out.extend_from_slice(inline.as_ref());
            }
        });
        if !copied && let Some(inline) = inline {
            self.out.put_inline(inline);
            self.flush = true;
        }
        self.flush |= wants_reply || self.out.len_bytes() >= COALESCE_BYTES;
        Ok(wants_reply.then_some(Call { id, op, reply_size, reply_tail }))
    }
}

struct Message<'a, B> {
    op: Opcode,
    fixed_size: usize,
    tail: &'a [u8],
    inline: Option<B>,
    wants_reply: bool,
}

fn inline_len<B: AsRef<[u8]>>(inline: &Option<B>) -> usize {
    inline.as_ref().map_or(0, |bytes| bytes.as_ref().len())
}
