//! Both halves of a client in one, for transports that write and read on one thread.

use crate::error::{Fatal, Misuse};
use crate::op::{Op, Opcode};
use crate::outbox::Outbox;
use crate::receiver::Limits;
use crate::reply_receiver::{Answer, ReplyReceiver};
use crate::sender::{Answered, Call, Sender};

/// A [`Sender`] and a [`ReplyReceiver`]; a request that is answered is expected.
#[derive(Debug)]
pub struct Client<B> {
    sender: Sender<B>,
    receiver: ReplyReceiver,
}

impl<B: AsRef<[u8]>> Client<B> {
    /// A new connection.
    pub fn new(limits: Limits) -> Self {
        Self { sender: Sender::new(), receiver: ReplyReceiver::new(limits) }
    }

    /// The halves, for two threads; whoever sends has to let the other [expect](ReplyReceiver::expect).
    pub fn into_halves(self) -> (Sender<B>, ReplyReceiver) {
        (self.sender, self.receiver)
    }

    /// Calls that wait for their replies.
    pub fn waiting(&self) -> usize {
        self.receiver.waiting()
    }

    /// See [`Sender::wants_flush`].
    pub fn wants_flush(&self) -> bool {
        self.sender.wants_flush()
    }

    /// See [`Sender::request`].
    ///
    /// # Errors
    /// As [`Sender::request`], or too many calls wait.
    pub fn request(&mut self, op: &impl Op, tail: &[u8], inline: Option<B>) -> Result<Option<Call>, Misuse> {
        self.request_with(op, tail, inline, Answered::AsUsual)
    }

    /// See [`Sender::request_with`].
    ///
    /// # Errors
    /// As [`Sender::request`], or too many calls wait.
    pub fn request_with(
        &mut self,
        op: &impl Op,
        tail: &[u8],
        inline: Option<B>,
        answered: Answered,
    ) -> Result<Option<Call>, Misuse> {
        if answered.wants_reply(op) {
            // Before anything is queued: a request that was sent has to be expected.
            self.receiver.has_room()?;
        }
        let call = self.sender.request_with(op, tail, inline, answered)?;
        if let Some(call) = call {
            self.receiver.expect(call)?;
        }
        Ok(call)
    }

    /// See [`Sender::request_raw`].
    ///
    /// # Errors
    /// As [`Sender::request_raw`], or too many calls wait.
    pub fn request_raw(
        &mut self,
        op: Opcode,
        fixed: &[u8],
        inline: Option<B>,
        wants_reply: bool,
    ) -> Result<Option<Call>, Misuse> {
        if wants_reply {
            self.receiver.has_room()?;
        }
        let call = self.sender.request_raw(op, fixed, inline, wants_reply)?;
        if let Some(call) = call {
            self.receiver.expect(call)?;
        }
        Ok(call)
    }

    /// See [`Sender::flush`].
    pub fn flush(&mut self) {
        self.sender.flush();
    }

    /// See [`Sender::poll_transmit`].
    pub fn poll_transmit(&mut self, outbox: &mut Outbox<B>) -> bool {
        self.sender.poll_transmit(outbox)
    }

    /// See [`ReplyReceiver::handle_input`].
    ///
    /// # Errors
    /// The peer broke the protocol.
    pub fn handle_input<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Answer<'s>, Fatal> {
        self.receiver.handle_input(input)
    }

    /// See [`ReplyReceiver::handle_eof`].
    ///
    /// # Errors
    /// The peer stopped too early, or had broken the protocol before.
    pub fn handle_eof(&mut self) -> Result<(), Fatal> {
        self.receiver.handle_eof()
    }
}
