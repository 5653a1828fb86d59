//! The server of a connection: a receiver of requests and a sender of replies in one.

use crate::error::{Fatal, Misuse};
use crate::hip_error::HipError;
use crate::op::Op;
use crate::outbox::Outbox;
use crate::receiver::{Limits, Receiver, Rx, Ticket};
use crate::responder::{Outcome, Responder};

/// The server's end of a connection: turns received bytes into requests, and outcomes of requests into bytes to send.
///
/// `Server` joins a [`Receiver`] and a [`Responder`] for transports that read, execute and write on one thread;
/// [`into_halves`](Self::into_halves) separates them for two threads. It performs no input or output itself. `B` is the
/// type of reply data that is not copied: a `Vec<u8>`, a pooled buffer, borrowed memory.
///
/// # Methods
/// There are four kinds:
///
/// * **Getters** change nothing and can be called at any time: [`open`](Self::open), [`stream_left`](Self::stream_left),
///   [`admit`](Self::admit).
/// * **Handlers** take what the transport received: [`handle_input`](Self::handle_input) bytes,
///   [`handle_eof`](Self::handle_eof) the end of the stream.
/// * **Commands** say what happened on this side: [`complete`](Self::complete) a request was executed,
///   [`push_data`](Self::push_data) data of its reply is ready, [`keep`](Self::keep) earlier work failed,
///   [`notify`](Self::notify) the client has to know something that it has not asked for.
/// * **Polling**: [`poll_transmit`](Self::poll_transmit) returns what has to be sent.
///
/// # Order of calls
/// 1. After each read, call `handle_input` with the bytes until it returns [`Rx::NeedMore`] or [`Rx::Paused`]. Pass what is
///    then left of the bytes again, before newer ones. After `NeedMore`, read on. After `Paused`, as many requests are open
///    as [`Limits::open_max`] allows: stop reading, and call `handle_input` again once a request was completed.
/// 2. After an [`Rx::Request`] with `tail` > 0, `handle_input` returns the tail as [`Rx::Data`] before the next request.
/// 3. Complete the requests in the order in which they were received, each exactly once. Call `admit` with the ticket of the
///    oldest open request directly before executing it. If it returns an error, do not execute the request, but complete it.
/// 4. After `complete` with [`Inline::Stream`](crate::Inline::Stream), call `push_data` until `stream_left` is 0, before the
///    next `complete`. If `stream_left` is 0 at once, the client gets no data: push none.
/// 5. After handlers and commands, call `poll_transmit`. Write the outbox, report the written bytes with
///    [`Outbox::advance`], and keep the outbox until it is empty; meanwhile all other methods may be called.
/// 6. When the peer closes its sending side, call `handle_eof`. Requests that are open can still be completed and their
///    replies sent.
///
/// `keep` can be called at any time; the next answered request reports the error ([`deferred`](crate::deferred)).
///
/// # Errors
/// [`Fatal`]: the peer broke the protocol. Both handlers return the same error from then on; close the connection. Replies
/// that were completed before can still be sent. [`Misuse`]: this side called a command out of order or with the wrong
/// number of bytes; nothing was queued, and the connection has to be closed, because a reply is missing.
///
/// The [crate's documentation](crate) has an example.
#[derive(Debug)]
pub struct Server<B> {
    receiver: Receiver,
    responder: Responder<B>,
}

impl<B: AsRef<[u8]>> Server<B> {
    /// Creates the server's end of a new connection.
    pub fn new(limits: Limits) -> Self {
        Self { receiver: Receiver::new(limits), responder: Responder::new() }
    }

    /// Splits the server in two, for a thread that receives and a thread that executes. Completed requests have to be
    /// reported to [`Receiver::retire`].
    pub fn into_halves(self) -> (Receiver, Responder<B>) {
        (self.receiver, self.responder)
    }

    /// Returns the number of requests that were delivered and not completed.
    pub fn open(&self) -> usize {
        self.receiver.open()
    }

    /// Returns how many inline bytes the last reply still lacks; see [`Responder::stream_left`].
    pub fn stream_left(&self) -> u64 {
        self.responder.stream_left()
    }

    /// Returns the error that a request has to fail with instead of being executed, if there is one; see
    /// [`Responder::admit`].
    pub fn admit(&self, ticket: &Ticket) -> Option<HipError> {
        self.responder.admit(ticket)
    }

    /// Reads received bytes; returns a request, some of its data, or why there is none. See [`Receiver::handle_input`].
    ///
    /// # Errors
    /// The peer broke the protocol.
    pub fn handle_input<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Rx<'s>, Fatal> {
        self.receiver.handle_input(input)
    }

    /// Handles the end of the incoming stream; see [`Receiver::handle_eof`].
    ///
    /// # Errors
    /// The peer stopped inside a message, or had broken the protocol before.
    pub fn handle_eof(&mut self) -> Result<(), Fatal> {
        self.receiver.handle_eof()
    }

    /// Completes the oldest open request: replies, or keeps its error. See [`Responder::complete`].
    ///
    /// # Errors
    /// A ticket out of order, or a reply of the wrong size.
    pub fn complete(&mut self, ticket: Ticket, outcome: Outcome<B>) -> Result<(), Misuse> {
        self.responder.complete(ticket, outcome)?;
        self.receiver.retire(1);
        Ok(())
    }

    /// Appends inline bytes to the last reply; see [`Responder::push_data`].
    ///
    /// # Errors
    /// More bytes than the reply owes.
    pub fn push_data(&mut self, bytes: B) -> Result<(), Misuse> {
        self.responder.push_data(bytes)
    }

    /// Keeps an error of work that was accepted earlier; see [`Responder::keep`].
    pub fn keep(&mut self, error: HipError) {
        self.responder.keep(error);
    }

    /// Queues a message that no request asked for; see [`Responder::notify`].
    ///
    /// # Errors
    /// A tail of the wrong length.
    pub fn notify<O: Op>(&mut self, notification: &O, tail: &[u8]) -> Result<(), Misuse> {
        self.responder.notify(notification, tail)
    }

    /// Moves the queued bytes to `outbox`; returns whether `outbox` has bytes to send. See [`Responder::poll_transmit`].
    pub fn poll_transmit(&mut self, outbox: &mut Outbox<B>) -> bool {
        self.responder.poll_transmit(outbox)
    }
}
