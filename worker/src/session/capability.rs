//! Reads of another session's memory by a capability that it has given, and copies from other workers.

use std::task::Poll;

use hipr_device::{Context, Region};
use hipr_io::ConnId;
use hipr_proto::{HipError, HipResult, Inline, Opcode, Outcome, Ticket};

use super::Session;
use super::counted::Counted;
use super::from_peer::FromPeer;
use super::state::{State, Wait, Write};
use crate::capabilities::Readable;
use crate::env::Env;
use crate::peers::{COPY_BYTES, PeerCapability};

/// The session whose memory the current request reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Lender {
    /// This one.
    #[default]
    Own,
    /// Another one, whose context this session has while it has its turn, and the number of its capability.
    Session(ConnId, u64),
    /// Another one that is gone, or has no such memory any more.
    Gone,
}

/// What a session that is asked for its context answers.
pub(crate) enum Lending {
    /// The context; [`Session::take_back`] has to follow.
    Context(Box<dyn Context>),
    /// Another thread has it; the session is woken when it is back.
    Later,
    /// It has no such memory.
    Nothing,
}

impl Session {
    /// Returns whether the client may ask for an operation: who was let in by a capability only for what reads it.
    pub(super) fn may_ask(&self, op: Opcode) -> bool {
        let reads = matches!(
            op,
            Opcode::INIT | Opcode::OFFER | Opcode::CAPABILITY_READ | Opcode::PING | Opcode::SHUTDOWN
        );
        !self.is_by_capability || reads
    }

    // ---- the session that gives a capability -----------------------------------------------------------------------------

    /// Lends the context to a session that reads memory of this one; there has to be such memory.
    pub(crate) fn lend_context(&mut self, src: &Region, number: u64) -> Lending {
        if matches!(self.state, State::Loading(_)) {
            return Lending::Later;
        }
        if !self.owned.given.has(number) || self.owned.check_region(src).is_err() {
            return Lending::Nothing;
        }
        self.owned.lend_context().map_or(Lending::Nothing, Lending::Context)
    }

    /// Takes the context back.
    pub(crate) fn take_back(&mut self, context: Box<dyn Context>) {
        self.owned.take_back(context);
    }

    // ---- the session that reads --------------------------------------------------------------------------------------

    /// Returns the session whose context the current request needs, which memory of it, and the number of its capability, if it is not this
    /// session.
    pub(crate) fn borrows_from(&self) -> Option<(ConnId, Region, u64)> {
        let Lender::Session(owner, number) = self.lender else { return None };
        match &self.state {
            State::Wait { wait: Wait::Readable { src, .. }, .. } | State::Read { src, .. } => {
                Some((owner, *src, number))
            }
            _ => None,
        }
    }

    /// Returns whether the session needs a context of another one and has it not.
    pub(super) fn lacks_context(&self) -> bool {
        self.borrowed.is_none() && self.borrows_from().is_some()
    }

    /// Takes the context for which [`borrows_from`](Self::borrows_from) has asked; `None` if there is no such memory any more.
    pub(crate) fn borrow(&mut self, lent: Option<Box<dyn Context>>) {
        if lent.is_none() {
            self.lender = Lender::Gone;
        }
        self.borrowed = lent;
    }

    /// Returns the context that [`borrow`](Self::borrow) has taken.
    pub(crate) fn return_borrowed(&mut self) -> Option<Box<dyn Context>> {
        self.borrowed.take()
    }

    /// Returns the context whose memory the current request reads.
    pub(super) fn source(&mut self) -> HipResult<&mut dyn Context> {
        match (self.lender, &mut self.borrowed) {
            (Lender::Own, _) => self.owned.context(),
            (Lender::Session(..), Some(context)) => Ok(&mut **context),
            (Lender::Session(..), None) | (Lender::Gone, _) => Err(HipError::CONTEXT_IS_DESTROYED),
        }
    }

    /// Begins to read memory of another session.
    pub(super) fn begin_capability(&mut self, ticket: Ticket, what: Readable, offset: u64, len_bytes: u64) {
        let Readable { owner, src, stream, number } = what;
        self.lender = Lender::Session(owner, number);
        self.state = State::Wait { ticket, wait: Wait::Readable { src, stream, offset, len_bytes } };
    }

    /// Becomes ready when the first bytes can be read.
    pub(super) fn poll_capability(
        &mut self,
        src: &Region,
        stream: u64,
        offset: u64,
        len: usize,
    ) -> Poll<HipResult<()>> {
        let context = self.source()?;
        match context.poll_readable(stream) {
            Poll::Ready(Ok(())) => context.poll_fetched(src, offset, len, stream).map_ok(|_| ()),
            waits => waits,
        }
    }

    /// Begins the reply with bytes of another session's memory.
    pub(super) fn send_capability(
        &mut self,
        ticket: Ticket,
        src: Region,
        stream: u64,
        offset: u64,
        len_bytes: u64,
    ) {
        self.complete(ticket, Outcome::ok(&()).with_inline(Inline::Stream(len_bytes)));
        if self.responder.stream_left() > 0 {
            self.state = State::Read { src, stream, offset };
        }
    }

    // ---- the session that copies -------------------------------------------------------------------------------------

    /// Begins to copy from another worker.
    pub(super) fn begin_copy(&mut self, env: &Env<'_>, write: Write, from: PeerCapability) {
        let counted = Counted::new(COPY_BYTES, env.budget, env.limits);
        let begun = match (env.peers, counted) {
            (Some(peers), Ok(counted)) => {
                peers.begin(from, (env.waker)()).map(|arriving| (arriving, counted))
            }
            _ => Err(HipError::PEER_ACCESS_UNSUPPORTED),
        };
        match begun {
            Ok((arriving, counted)) => {
                let from = Box::new(FromPeer::new(arriving, counted));
                self.state = State::CapabilityCopy { write, from };
            }
            Err(error) => self.complete(write.ticket, Outcome::error(error)),
        }
    }

    /// Writes the next bytes that have arrived from another worker.
    pub(super) fn copy_capability(
        &mut self,
        env: &Env<'_>,
        mut write: Write,
        mut from: Box<FromPeer>,
    ) -> Poll<()> {
        if self.poll_begin(&write).is_pending() {
            self.state = State::CapabilityCopy { write, from };
            return Poll::Pending;
        }
        let left = write.dst.len_bytes().unwrap_or(0).saturating_sub(write.offset);
        let max_bytes = usize::try_from(left).unwrap_or(usize::MAX).min(env.limits.chunk_bytes);
        let written = match from.poll() {
            // What is more than there is room for is not written.
            Poll::Ready(Ok(true)) if max_bytes == 0 => Poll::Ready(Err(HipError::PEER_ACCESS_UNSUPPORTED)),
            Poll::Ready(Ok(true)) => self.write_piece(&mut write, from.bytes(max_bytes)),
            Poll::Ready(Ok(false)) => {
                self.end_copy(write);
                return Poll::Ready(());
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        };
        match written {
            Poll::Ready(Ok(len_bytes)) => {
                from.take(len_bytes);
                env.requests.count_peer_bytes(len_bytes);
            }
            Poll::Ready(Err(error)) => {
                self.complete(write.ticket, Outcome::error(error));
                return Poll::Ready(());
            }
            Poll::Pending => {}
        }
        self.state = State::CapabilityCopy { write, from };
        written.map(drop)
    }

    /// Ends a copy of which no more bytes come.
    fn end_copy(&mut self, write: Write) {
        if Some(write.offset) == write.dst.len_bytes() {
            self.written(write);
        } else {
            self.complete(write.ticket, Outcome::error(HipError::PEER_ACCESS_UNSUPPORTED));
        }
    }
}
