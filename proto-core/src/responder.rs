//! The sending half of a server: turns outcomes into replies. It belongs where requests are executed.

use alloc::vec::Vec;

use smallvec::SmallVec;

use crate::deferred::{Deferred, Verdict};
use crate::error::Misuse;
use crate::header::{FLAG_ERROR, FLAG_HAS_INLINE_DATA, FLAG_NO_REPLY, FLAG_RESPONSE, Header};
use crate::hip_error::{HipError, HipResult};
use crate::op::{Class, Op};
use crate::outbox::Outbox;
use crate::receiver::Ticket;
use crate::wire::Wire;

/// The outcome of a request: an error, or a reply.
#[derive(Debug)]
pub struct Outcome<B> {
    error: Option<HipError>,
    fixed: SmallVec<[u8; 32]>,
    inline: Inline<B>,
}

/// Bytes that follow a reply's fixed part.
#[derive(Debug)]
pub enum Inline<B> {
    /// No bytes.
    None,
    /// These bytes.
    Whole(B),
    /// This many bytes, which are passed to [`Responder::push_data`] later.
    Stream(u64),
}

impl<B> Outcome<B> {
    /// Creates a successful outcome with a reply; `&()` for an operation that returns nothing.
    pub fn ok(reply: &impl Wire) -> Self {
        let mut fixed = SmallVec::new();
        reply.put(&mut fixed);
        Self { error: None, fixed, inline: Inline::None }
    }

    /// Creates a successful outcome with the encoded fixed part of a reply.
    pub fn ok_raw(fixed: &[u8]) -> Self {
        Self { error: None, fixed: SmallVec::from_slice(fixed), inline: Inline::None }
    }

    /// Creates a failed outcome.
    pub fn error(error: HipError) -> Self {
        Self { error: Some(error), fixed: SmallVec::new(), inline: Inline::None }
    }

    /// Returns the error of a request that has failed.
    pub fn failure(&self) -> Option<HipError> {
        self.error
    }

    /// Returns whether the request has failed.
    pub fn is_error(&self) -> bool {
        self.error.is_some()
    }

    /// Adds bytes after the fixed part.
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

/// Turns the outcomes of requests into replies, and keeps the errors of requests that are not answered.
///
/// * Getters: [`stream_left`](Self::stream_left), [`kept`](Self::kept), [`queued_bytes`](Self::queued_bytes),
///   [`admit`](Self::admit).
/// * Commands: [`complete`](Self::complete), [`push_data`](Self::push_data), [`keep`](Self::keep), [`notify`](Self::notify).
/// * Polling: [`poll_transmit`](Self::poll_transmit).
#[derive(Debug)]
pub struct Responder<B> {
    deferred: Deferred,
    /// Sequence number of the ticket that has to be completed next.
    next: u64,
    stream_left: u64,
    out: Outbox<B>,
    /// Notifications that leave behind the inline bytes of the last reply.
    notifications: Vec<u8>,
}

impl<B> Default for Responder<B> {
    fn default() -> Self {
        let (deferred, notifications) = Default::default();
        Self { deferred, next: 0, stream_left: 0, out: Outbox::new(), notifications }
    }
}

impl<B: AsRef<[u8]>> Responder<B> {
    /// Creates the sending half of a new connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns how many inline bytes the last reply still lacks. If it is 0 after [`complete`](Self::complete) with an
    /// [`Inline::Stream`], none may be pushed: the reply carries an error, or none is sent.
    pub fn stream_left(&self) -> u64 {
        self.stream_left
    }

    /// Returns the kept error, which the next answered request will report.
    pub fn kept(&self) -> Option<HipError> {
        self.deferred.kept()
    }

    /// Returns the number of bytes that are queued to be sent.
    pub fn queued_bytes(&self) -> usize {
        self.out.len_bytes()
    }

    /// Decides whether the next request in order may be executed; returns the error that it fails with if not. It may not
    /// if it is malformed ([`Ticket::refusal`]), or if it would create something but has to report a kept error. It then
    /// has to be completed with any outcome.
    pub fn admit(&self, ticket: &Ticket) -> Option<HipError> {
        // Without a kept error there is nothing to ask of the operation's class.
        let kept =
            self.deferred.kept().and_then(|_| self.deferred.admit(class_of(ticket), ticket.wants_reply));
        kept.or(ticket.refusal)
    }

    /// Completes a request: sends its reply, if it wants one, or keeps its error.
    ///
    /// # Errors
    /// Tickets are completed in the order in which they were given out, after all inline bytes of the one before; a
    /// successful reply has its operation's size.
    pub fn complete(&mut self, ticket: Ticket, outcome: Outcome<B>) -> Result<(), Misuse> {
        self.complete_with(ticket, outcome.error, || outcome)
    }

    /// Completes a request that failed with `error` or succeeded; `outcome` is called only if a successful reply is sent.
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

    /// Appends inline bytes to a reply that was completed with [`Inline::Stream`].
    ///
    /// # Errors
    /// More bytes than the reply owes.
    pub fn push_data(&mut self, bytes: B) -> Result<(), Misuse> {
        let given = bytes.as_ref().len() as u64;
        let left = self.stream_left;
        self.stream_left = left.checked_sub(given).ok_or(Misuse::StreamTooLong { left, given })?;
        self.out.put_inline(bytes);
        if self.stream_left == 0 && !self.notifications.is_empty() {
            self.put_notifications();
        }
        Ok(())
    }

    /// Queues a notification with `tail` behind its fixed part. It leaves between two replies. Only for a client that has the feature
    /// `NOTIFICATIONS`; how many are queued is up to the caller.
    ///
    /// # Errors
    /// `tail` has another length than the fixed part says.
    pub fn notify<O: Op>(&mut self, notification: &O, tail: &[u8]) -> Result<(), Misuse> {
        Misuse::check_tail(notification, tail.len() as u64)?;
        let length = (O::SIZE + tail.len()) as u64;
        Header::new(O::OPCODE, 0, length, FLAG_NO_REPLY).put(&mut self.notifications);
        notification.put(&mut self.notifications);
        self.notifications.extend_from_slice(tail);
        if self.stream_left == 0 {
            self.put_notifications();
        }
        Ok(())
    }

    fn put_notifications(&mut self) {
        let notifications = &mut self.notifications;
        self.out.put(|out| out.append(notifications));
    }

    /// Keeps an error of work that was accepted earlier, as if an unanswered request had failed with it.
    pub fn keep(&mut self, error: HipError) {
        self.deferred.keep(error);
    }

    /// Moves the queued bytes to the end of `outbox` (swaps if that is empty); returns whether `outbox` has bytes to send.
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
