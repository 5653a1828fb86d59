//! The client of a connection: a sender of requests and a receiver of replies in one.

use crate::error::{Fatal, Misuse};
use crate::op::{Op, Opcode};
use crate::outbox::Outbox;
use crate::receiver::Limits;
use crate::reply_receiver::{Answer, ReplyReceiver};
use crate::sender::{Call, ReplyMode, Sender};

/// The client's end of a connection: turns requests into bytes to send, and received bytes into replies.
///
/// `Client` joins a [`Sender`] and a [`ReplyReceiver`] for transports that write and read on one thread;
/// [`into_halves`](Self::into_halves) separates them for two threads. It performs no input or output itself. `B` is the
/// type of request data that is not copied: a `Vec<u8>`, a pooled buffer, borrowed memory.
///
/// # Methods
/// There are four kinds:
///
/// * **Getters** change nothing and can be called at any time: [`waiting`](Self::waiting),
///   [`wants_flush`](Self::wants_flush).
/// * **Handlers** take what the transport received: [`handle_input`](Self::handle_input) bytes,
///   [`handle_eof`](Self::handle_eof) the end of the stream.
/// * **Commands** queue requests: [`request`](Self::request), [`request_with`](Self::request_with),
///   [`request_raw`](Self::request_raw); [`flush`](Self::flush) asks that they are sent.
/// * **Polling**: [`poll_transmit`](Self::poll_transmit) returns what has to be sent.
///
/// # Order of calls
/// 1. After each command, ask `wants_flush`. If it returns true, call `poll_transmit` before the next request: the queue is
///    full, or a request waits for its reply, or request data has not been copied. Otherwise requests are collected, up to
///    [`COALESCE_BYTES`](crate::COALESCE_BYTES). `poll_transmit` may also be called earlier.
/// 2. Write the outbox that `poll_transmit` filled, report the written bytes with [`Outbox::advance`], and keep the outbox
///    until it is empty; meanwhile all other methods may be called.
/// 3. After each read, call `handle_input` with the bytes until it returns [`Answer::NeedMore`].
/// 4. Replies arrive in the order of the requests that returned a [`Call`]. After an [`Answer::Reply`] with `inline` > 0,
///    `handle_input` returns the data as [`Answer::Data`] before the next reply.
/// 5. When the peer closes its sending side, call `handle_eof`. It fails if calls still wait.
///
/// # Errors
/// [`Fatal`]: the peer broke the protocol. Both handlers return the same error from then on; close the connection.
/// [`Misuse`]: a request that may not be made now, or whose data has the wrong length; nothing was queued.
///
/// The [crate's documentation](crate) has an example.
#[derive(Debug)]
pub struct Client<B> {
    sender: Sender<B>,
    receiver: ReplyReceiver,
}

impl<B: AsRef<[u8]>> Client<B> {
    /// Creates the client's end of a new connection.
    pub fn new(limits: Limits) -> Self {
        Self { sender: Sender::new(), receiver: ReplyReceiver::new(limits) }
    }

    /// Accepts notifications from now on; see [`ReplyReceiver::accept_notifications`].
    pub fn accept_notifications(&mut self) {
        self.receiver.accept_notifications();
    }

    /// Splits the client in two, for a thread that sends and a thread that receives. The sending thread has to pass each
    /// [`Call`] to [`ReplyReceiver::expect`].
    pub fn into_halves(self) -> (Sender<B>, ReplyReceiver) {
        (self.sender, self.receiver)
    }

    /// Returns the number of calls that wait for their replies.
    pub fn waiting(&self) -> usize {
        self.receiver.waiting()
    }

    /// Returns whether the queued requests should be sent now; see [`Sender::wants_flush`].
    pub fn wants_flush(&self) -> bool {
        self.sender.wants_flush()
    }

    /// Queues a request; returns the call if it will be answered. See [`Sender::request`].
    ///
    /// # Errors
    /// As [`Sender::request`], or too many calls wait.
    pub fn request(&mut self, op: &impl Op, tail: &[u8], inline: Option<B>) -> Result<Option<Call>, Misuse> {
        self.request_with(op, tail, inline, ReplyMode::AsUsual)
    }

    /// Queues a request and decides whether it is answered; see [`Sender::request_with`].
    ///
    /// # Errors
    /// As [`Sender::request`], or too many calls wait.
    pub fn request_with(
        &mut self,
        op: &impl Op,
        tail: &[u8],
        inline: Option<B>,
        reply_mode: ReplyMode,
    ) -> Result<Option<Call>, Misuse> {
        if reply_mode.wants_reply(op) {
            // Before anything is queued: a request that was sent has to be expected.
            self.receiver.has_room()?;
        }
        let call = self.sender.request_with(op, tail, inline, reply_mode)?;
        if let Some(call) = call {
            self.receiver.expect(call)?;
        }
        Ok(call)
    }

    /// Queues a request whose fixed part is encoded already; see [`Sender::request_raw`].
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

    /// Requests that everything queued is sent; see [`Sender::flush`].
    pub fn flush(&mut self) {
        self.sender.flush();
    }

    /// Moves the queued bytes to `outbox`; returns whether `outbox` has bytes to send. See [`Sender::poll_transmit`].
    pub fn poll_transmit(&mut self, outbox: &mut Outbox<B>) -> bool {
        self.sender.poll_transmit(outbox)
    }

    /// Reads received bytes; returns a reply, some of its data, or that more input is needed. See
    /// [`ReplyReceiver::handle_input`].
    ///
    /// # Errors
    /// The peer broke the protocol.
    pub fn handle_input<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Answer<'s>, Fatal> {
        self.receiver.handle_input(input)
    }

    /// Handles the end of the incoming stream; see [`ReplyReceiver::handle_eof`].
    ///
    /// # Errors
    /// The peer stopped too early, or had broken the protocol before.
    pub fn handle_eof(&mut self) -> Result<(), Fatal> {
        self.receiver.handle_eof()
    }
}
