//! Replies out: the half of a server that takes outcomes. It belongs where requests are carried out.

use smallvec::SmallVec;

use crate::deferred::{Deferred, Verdict};
use crate::error::Misuse;
use crate::header::{FLAG_ERROR, FLAG_HAS_INLINE_DATA, FLAG_RESPONSE, Header};
use crate::hip_error::{HipError, HipResult};
use crate::op::Class;
use crate::outbox::Outbox;
use crate::receiver::Ticket;
use crate::wire::Wire;

/// How a request went.
#[derive(Debug)]
pub struct Outcome<B> {
    error: Option<HipError>,
    fixed: SmallVec<[u8; 32]>,
    inline: Inline<B>,
}

/// Bytes after a reply's fixed part.
#[derive(Debug)]
pub enum Inline<B> {
    /// None.
    None,
    /// These.
    Whole(B),
    /// So many; they follow with [`Responder::push_data`].
    Stream(u64),
}

impl<B> Outcome<B> {
    /// It worked, and this is the reply; `&()` where there is nothing to say.
    pub fn ok(reply: &impl Wire) -> Self {
        let mut fixed = SmallVec::new();
        reply.put(&mut fixed);
        Self { error: None, fixed, inline: Inline::None }
    }

    /// It worked, and this is the reply's fixed part, encoded.
    pub fn ok_raw(fixed: &[u8]) -> Self {
        Self { error: None, fixed: SmallVec::from_slice(fixed), inline: Inline::None }
    }

    /// It failed.
    pub fn error(error: HipError) -> Self {
        Self { error: Some(error), fixed: SmallVec::new(), inline: Inline::None }
    }

    /// With bytes after the fixed part.
    #[must_use]
    pub fn with_inline(self, inline: Inline<B>) -> Self {
        Self { inline, ..self }
    }
}

impl<B, R: Wire> From<HipResult<R>> for Outcome<B> {
    fn from(result: HipResult<R>) -> Self {
        match result {
            Ok(reply) => Self::ok(&reply),
            Err(error) => Self::error(error),
        }
    }
}

/// Turns outcomes into a client's replies.
///
/// * Getters: [`stream_left`](Self::stream_left), [`kept`](Self::kept), [`queued_bytes`](Self::queued_bytes),
///   [`admit`](Self::admit).
/// * Commands: [`complete`](Self::complete), [`push_data`](Self::push_data), [`keep`](Self::keep).
/// * Polling: [`poll_transmit`](Self::poll_transmit).
#[derive(Debug)]
pub struct Responder<B> {
    deferred: Deferred,
    /// Sequence number of the ticket that is next.
    next: u64,
    stream_left: u64,
    out: Outbox<B>,
}

impl<B> Default for Responder<B> {
    fn default() -> Self {
        Self { deferred: Deferred::default(), next: 0, stream_left: 0, out: Outbox::new() }
    }
}

impl<B: AsRef<[u8]>> Responder<B> {
    /// A connection on which nothing was completed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Inline bytes that the last reply still owes. 0 after [`complete`](Self::complete) of an [`Inline::Stream`] means that
    /// none are wanted: the reply carries an error, or there is none.
    pub fn stream_left(&self) -> u64 {
        self.stream_left
    }

    /// The error that waits to be reported.
    pub fn kept(&self) -> Option<HipError> {
        self.deferred.kept()
    }

    /// Bytes that wait to be transmitted.
    pub fn queued_bytes(&self) -> usize {
        self.out.len_bytes()
    }

    /// Asked before a request is carried out, when it is the next in line: the error that it has to end with instead.
    /// Either it cannot be carried out ([`Ticket::refusal`]), or it would create something while another request's error
    /// waits to be reported. Complete it then with any outcome.
    pub fn admit(&self, ticket: &Ticket) -> Option<HipError> {
        // Without a kept error there is nothing to ask of the operation's class.
        let kept =
            self.deferred.kept().and_then(|_| self.deferred.admit(class_of(ticket), ticket.wants_reply));
        kept.or(ticket.refusal)
    }

    /// The outcome of a request. The one place that decides whether a reply leaves and which error it carries.
    ///
    /// # Errors
    /// Tickets are completed in the order in which they were given out, after all inline bytes of the one before; a
    /// successful reply has its operation's size.
    pub fn complete(&mut self, ticket: Ticket, outcome: Outcome<B>) -> Result<(), Misuse> {
        self.complete_with(ticket, outcome.error, || outcome)
    }

    /// [`complete`](Self::complete) of a request that failed with `error` or worked; `outcome` is only made if it leaves.
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    pub fn complete_with(
        &mut self,
        ticket: Ticket,
        error: Option<HipError>,
        outcome: impl FnOnce() -> Outcome<B>,
    ) -> Result<(), Misuse> {
        if ticket.sequence != self.next {
            return Err(Misuse::OutOfOrder { expected: self.next, got: ticket.sequence });
        }
        if self.stream_left > 0 {
            return Err(Misuse::StreamUnfinished { left: self.stream_left });
        }
        self.next += 1;
        let own = ticket.refusal.or(error);
        match self.deferred.settle(class_of(&ticket), ticket.wants_reply, own) {
            Verdict::Silent => Ok(()),
            Verdict::Reply(Some(error)) => {
                self.put_error(&ticket, error);
                Ok(())
            }
            Verdict::Reply(None) => self.put_success(&ticket, outcome()),
        }
    }

    /// The next inline bytes of a streamed reply.
    ///
    /// # Errors
    /// More bytes than the reply owes.
    pub fn push_data(&mut self, bytes: B) -> Result<(), Misuse> {
        let given = bytes.as_ref().len() as u64;
        let left = self.stream_left;
        self.stream_left = left.checked_sub(given).ok_or(Misuse::StreamTooLong { left, given })?;
        self.out.put_inline(bytes);
        Ok(())
    }

    /// An error that surfaced by itself, from work that was accepted before: kept like that of an unanswered request.
    pub fn keep(&mut self, error: HipError) {
        self.deferred.keep(error);
    }

    /// Moves what is to be sent behind what is in `outbox` (swaps when that is empty); whether it has something to send.
    pub fn poll_transmit(&mut self, outbox: &mut Outbox<B>) -> bool {
        if !self.out.is_empty() {
            outbox.append(&mut self.out);
        }
        !outbox.is_empty()
    }

    fn put_error(&mut self, ticket: &Ticket, error: HipError) {
        let size = reply_size(ticket);
        let header =
            Header::new(ticket.op, ticket.id, error_code_size() + size as u64, FLAG_RESPONSE | FLAG_ERROR);
        self.out.put(|out| {
            header.put(out);
            error.0.put(out);
            out.resize(out.len() + size, 0);
        });
    }

    fn put_success(&mut self, ticket: &Ticket, outcome: Outcome<B>) -> Result<(), Misuse> {
        let (need, given) = (reply_size(ticket), outcome.fixed.len());
        if need != given {
            return Err(Misuse::ReplySize { op: ticket.op, need, given });
        }
        let inline = match &outcome.inline {
            Inline::None => 0,
            Inline::Whole(bytes) => bytes.as_ref().len() as u64,
            Inline::Stream(len) => *len,
        };
        let flags = if inline > 0 { FLAG_RESPONSE | FLAG_HAS_INLINE_DATA } else { FLAG_RESPONSE };
        let payload = (error_code_size() + given as u64).saturating_add(inline);
        self.out.put(|out| {
            Header::new(ticket.op, ticket.id, payload, flags).put(out);
            0i32.put(out);
            out.extend_from_slice(&outcome.fixed);
        });
        match outcome.inline {
            Inline::None => {}
            Inline::Whole(bytes) => self.out.put_inline(bytes),
            Inline::Stream(len) => self.stream_left = len,
        }
        Ok(())
    }
}

fn error_code_size() -> u64 {
    i32::SIZE as u64
}

#[inline]
fn class_of(ticket: &Ticket) -> Class {
    ticket.op.info().map_or(Class::Plain, |info| info.class)
}

fn reply_size(ticket: &Ticket) -> usize {
    ticket.op.info().map_or(0, |info| info.reply.size)
}
