//! Both halves of a server in one, for transports that read, carry out and write on one thread.

use crate::error::{Fatal, Misuse};
use crate::hip_error::HipError;
use crate::outbox::Outbox;
use crate::receiver::{Limits, Receiver, Rx, Ticket};
use crate::responder::{Outcome, Responder};

/// A [`Receiver`] and a [`Responder`]; completing a request retires it.
#[derive(Debug)]
pub struct Server<B> {
    receiver: Receiver,
    responder: Responder<B>,
}

impl<B: AsRef<[u8]>> Server<B> {
    /// A new connection.
    pub fn new(limits: Limits) -> Self {
        Self { receiver: Receiver::new(limits), responder: Responder::new() }
    }

    /// The halves, for two threads; whoever completes has to [retire](Receiver::retire).
    pub fn into_halves(self) -> (Receiver, Responder<B>) {
        (self.receiver, self.responder)
    }

    /// Requests that were delivered and not completed.
    pub fn open(&self) -> usize {
        self.receiver.open()
    }

    /// See [`Responder::stream_left`].
    pub fn stream_left(&self) -> u64 {
        self.responder.stream_left()
    }

    /// See [`Responder::admit`].
    pub fn admit(&self, ticket: &Ticket) -> Option<HipError> {
        self.responder.admit(ticket)
    }

    /// See [`Receiver::handle_input`].
    ///
    /// # Errors
    /// The peer broke the protocol.
    pub fn handle_input<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Rx<'s>, Fatal> {
        self.receiver.handle_input(input)
    }

    /// See [`Receiver::handle_eof`].
    ///
    /// # Errors
    /// The peer stopped inside a message, or had broken the protocol before.
    pub fn handle_eof(&mut self) -> Result<(), Fatal> {
        self.receiver.handle_eof()
    }

    /// See [`Responder::complete`].
    ///
    /// # Errors
    /// A ticket out of order, or a reply of the wrong size.
    pub fn complete(&mut self, ticket: Ticket, outcome: Outcome<B>) -> Result<(), Misuse> {
        self.responder.complete(ticket, outcome)?;
        self.receiver.retire(1);
        Ok(())
    }

    /// See [`Responder::push_data`].
    ///
    /// # Errors
    /// More bytes than the reply owes.
    pub fn push_data(&mut self, bytes: B) -> Result<(), Misuse> {
        self.responder.push_data(bytes)
    }

    /// See [`Responder::keep`].
    pub fn keep(&mut self, error: HipError) {
        self.responder.keep(error);
    }

    /// See [`Responder::poll_transmit`].
    pub fn poll_transmit(&mut self, outbox: &mut Outbox<B>) -> bool {
        self.responder.poll_transmit(outbox)
    }
}
