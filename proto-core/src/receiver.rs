//! The receiving half of a server: turns bytes into requests. It belongs where the socket is read.

use crate::error::Fatal;
use crate::header::{FLAG_NO_REPLY, FLAG_RESPONSE, Header};
use crate::hip_error::HipError;
use crate::op::{Opcode, Sizes, TABLE, Tail, max_size};
use crate::partial::{Partial, Piece, Remainder};

/// Limits on the memory and the input that a peer can make this end of a connection use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum payload length of a message in bytes; a longer message ends the connection. Bulk bytes are streamed, so this
    /// does not limit memory.
    pub payload_max: u64,
    /// Maximum length of a [`Tail::Small`] in bytes; a request with more fails with `hipErrorInvalidValue`.
    pub small_tail_max: u64,
    /// On a server, the maximum number of requests that are delivered and not completed; when it is reached, [`Rx::Paused`]
    /// is returned. On a client, the maximum number of calls that wait for their replies.
    pub open_max: usize,
}

impl Default for Limits {
    /// Returns the default limits: 256 GiB of payload (more than the memory of the largest device), 64 KiB of small tail,
    /// 16,384 unfinished requests.
    fn default() -> Self {
        Self { payload_max: 1 << 38, small_tail_max: 64 << 10, open_max: 16 << 10 }
    }
}

/// A part of the input that a server has read.
#[derive(Debug)]
pub enum Rx<'a> {
    /// A request, complete except for its tail.
    Request {
        /// The ticket, which the caller passes to `complete` with the outcome.
        ticket: Ticket,
        /// The operation, which may be unknown.
        op: Opcode,
        /// The encoded fixed part. It is incomplete or empty if the ticket has a [`refusal`](Ticket::refusal).
        fixed: &'a [u8],
        /// Number of bytes that follow as [`Data`](Self::Data). Bytes that do not belong to the layout are skipped and not
        /// counted.
        tail: u64,
    },
    /// Bytes of the tail of the request that was returned last.
    Data {
        /// The bytes, at least one.
        bytes: &'a [u8],
        /// Whether these are the last bytes of the tail; true exactly once if the request's `tail` is not 0.
        last: bool,
    },
    /// All input was read.
    NeedMore,
    /// The limit of open requests is reached: stop reading until some are [retired](Receiver::retire). Input may be left.
    Paused,
}

/// The obligation to complete a request. It is neither `Clone` nor `Copy`:
/// [`Responder::complete`](crate::Responder::complete) consumes it, and only that sends replies.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "every ticket has to be completed"]
pub struct Ticket {
    pub(crate) id: u32,
    pub(crate) op: Opcode,
    pub(crate) wants_reply: bool,
    pub(crate) refusal: Option<HipError>,
    pub(crate) sequence: u64,
}

impl Ticket {
    /// Returns the client's number for the request.
    #[inline]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the operation.
    #[inline]
    pub fn op(&self) -> Opcode {
        self.op
    }

    /// Returns whether the client asked for a reply.
    #[inline]
    pub fn wants_reply(&self) -> bool {
        self.wants_reply
    }

    /// Returns the request's number among those of its connection, from 0.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns why the request cannot be executed: `hipErrorNotSupported` for an unknown operation; `hipErrorInvalidValue`
    /// for an incomplete fixed part, a tail shorter than the fixed part says, or a tail longer than the limit (HIPR 1.0,
    /// wire rules 3 and 4). The request fails with this error, whatever outcome it is completed with.
    pub fn refusal(&self) -> Option<HipError> {
        self.refusal
    }
}

/// Size in bytes of the largest header or fixed part of a request.
const FIXED_MAX: usize = {
    let size = max_size(TABLE, Sizes::Requests);
    if size > Header::SIZE { size } else { Header::SIZE }
};

/// Turns the bytes that a client sent into requests.
///
/// * Getters: [`open`](Self::open), [`limits`](Self::limits).
/// * Handlers: [`handle_input`](Self::handle_input), [`handle_eof`](Self::handle_eof).
/// * Commands: [`retire`](Self::retire).
///
/// It holds an incomplete header or fixed part at most, and never a tail.
#[derive(Debug)]
pub struct Receiver {
    limits: Limits,
    state: State,
    partial: Partial<FIXED_MAX>,
    open: usize,
    sequence: u64,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Header,
    /// Collects that many bytes of the fixed part.
    Fixed(Header, usize),
    Remainder(Remainder),
    Dead(Fatal),
}

impl Receiver {
    /// Creates the receiving half of a new connection.
    pub fn new(limits: Limits) -> Self {
        Self { limits, state: State::Header, partial: Partial::new(), open: 0, sequence: 0 }
    }

    /// Returns the number of requests that were delivered and not retired.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Returns the limits that were passed to `new`.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns whether the next byte begins a message.
    pub fn is_between_messages(&self) -> bool {
        matches!(self.state, State::Header) && self.partial.is_empty()
    }

    /// Reports that `completed` requests were completed, so that as many more can be delivered.
    pub fn retire(&mut self, completed: usize) {
        debug_assert!(completed <= self.open, "{completed} requests completed of {}", self.open);
        self.open = self.open.saturating_sub(completed);
    }

    /// Reads bytes from the front of `input` and returns at most one request or piece of data. Call it until it returns
    /// [`Rx::NeedMore`] or [`Rx::Paused`]; what is then left in `input` has to be passed again, before newer bytes.
    ///
    /// Slices in the answer borrow from `input` where the bytes were all there, else from `self`.
    ///
    /// # Errors
    /// The peer broke the protocol: the same answer for ever. A response is no request and ends the connection too.
    pub fn handle_input<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Rx<'s>, Fatal> {
        loop {
            // A message that is whole goes through without the states between its parts being kept.
            let (header, fixed_len) = match &mut self.state {
                State::Dead(why) => return Err(*why),
                State::Header => {
                    if self.open >= self.limits.open_max {
                        return Ok(Rx::Paused);
                    }
                    let Some(mut bytes) = self.partial.take(Header::SIZE, input) else {
                        return Ok(Rx::NeedMore);
                    };
                    match self.limits.read_header(&mut bytes) {
                        Ok(header_and_len) => header_and_len,
                        Err(why) => {
                            self.state = State::Dead(why);
                            continue;
                        }
                    }
                }
                State::Fixed(header, fixed_len) => (*header, *fixed_len),
                State::Remainder(rest) => match rest.next(input) {
                    Piece::Data(bytes, last) => return Ok(Rx::Data { bytes, last }),
                    Piece::NeedMore => return Ok(Rx::NeedMore),
                    Piece::Done => {
                        self.state = State::Header;
                        continue;
                    }
                },
            };
            let Some(fixed) = self.partial.take(fixed_len, input) else {
                self.state = State::Fixed(header, fixed_len);
                return Ok(Rx::NeedMore);
            };
            let follows = header.payload_length - fixed_len as u64;
            let (tail, refusal) = match self.limits.tail(header.op, fixed, follows) {
                Ok(tail) => (tail, None),
                Err(error) => (0, Some(error)),
            };
            self.state = State::Remainder(Remainder { data: tail, skip: follows - tail });
            let wants_reply = !header.has(FLAG_NO_REPLY);
            let (id, op, sequence) = (header.request_id, header.op, self.sequence);
            self.open += 1;
            self.sequence += 1;
            let ticket = Ticket { id, op, wants_reply, refusal, sequence };
            return Ok(Rx::Request { ticket, op, fixed, tail });
        }
    }

    /// Handles the end of the incoming stream.
    ///
    /// # Errors
    /// It stopped inside a message, or had broken the protocol before.
    pub fn handle_eof(&mut self) -> Result<(), Fatal> {
        // What is to be skipped is part of the message too, but its end may just not have been looked at yet.
        if let State::Remainder(Remainder { data: 0, skip: 0 }) = self.state {
            self.state = State::Header;
        }
        match self.state {
            State::Dead(why) => Err(why),
            _ if self.is_between_messages() => Ok(()),
            _ => {
                self.state = State::Dead(Fatal::EofInsideMessage);
                Err(Fatal::EofInsideMessage)
            }
        }
    }
}

impl Limits {
    /// Decodes and checks a header; returns it with the number of bytes of its fixed part.
    fn read_header(&self, bytes: &mut &[u8]) -> Result<(Header, usize), Fatal> {
        // `bytes` are a header's.
        let header = Header::take(bytes).map_err(|_| Fatal::EofInsideMessage)?;
        header.check(self.payload_max)?;
        if header.has(FLAG_RESPONSE) {
            return Err(Fatal::NotARequest { op: header.op });
        }
        let size = header.op.info().map_or(0, |info| info.request.size);
        Ok((header, usize::try_from(header.payload_length).map_or(size, |length| length.min(size))))
    }

    /// Returns how many of the `follows` bytes after `fixed` belong to the request, or the error that refuses it.
    fn tail(&self, op: Opcode, fixed: &[u8], follows: u64) -> Result<u64, HipError> {
        let info = op.info().ok_or(HipError::NOT_SUPPORTED)?;
        if fixed.len() < info.request.size {
            return Err(HipError::INVALID_VALUE);
        }
        let tail = info.tail_len(fixed)?.of(follows)?;
        if info.request.tail == Tail::Small && tail > self.small_tail_max {
            return Err(HipError::INVALID_VALUE);
        }
        Ok(tail)
    }
}
