//! Requests in: the half of a server that turns bytes into requests. It belongs where the socket is read.

use crate::error::Fatal;
use crate::header::{FLAG_NO_REPLY, FLAG_RESPONSE, Header};
use crate::hip_error::HipError;
use crate::op::{Opcode, TABLE, Tail, max_size};
use crate::rx::{Partial, Rest, Step};

/// What a peer may make us hold or read. Every one has a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a message after its header. A longer message ends the connection. Bulk bytes are streamed, so this is no
    /// limit on memory.
    pub payload_max: u64,
    /// Bytes of a [`Tail::Small`]. A request with more gets `hipErrorInvalidValue`.
    pub small_tail_max: u64,
    /// On the server: requests that are delivered and not completed; at the limit, [`Rx::Paused`]. On the client: calls
    /// that wait for their replies.
    pub open_max: usize,
}

impl Default for Limits {
    /// 256 GiB (more than the memory of the largest device), 64 KiB, 16 384 requests.
    fn default() -> Self {
        Self { payload_max: 1 << 38, small_tail_max: 64 << 10, open_max: 16 << 10 }
    }
}

/// What came in.
#[derive(Debug)]
pub enum Rx<'a> {
    /// A request.
    Request {
        /// What has to be given back with the outcome.
        ticket: Ticket,
        /// The operation, known or not.
        op: Opcode,
        /// The fixed part. Shorter than the layout, or empty, when the ticket has a
        /// [`refusal`](Ticket::refusal).
        fixed: &'a [u8],
        /// How many bytes follow as [`Data`](Self::Data). Bytes that do not belong to the layout are skipped and not
        /// counted.
        tail: u64,
    },
    /// Bytes of the last request's tail.
    Data {
        /// At least one byte.
        bytes: &'a [u8],
        /// Whether the tail ends here; true exactly once when the request's `tail` is not 0.
        last: bool,
    },
    /// The input is used up.
    NeedMore,
    /// As many requests are open as may be: stop reading until some are [retired](Receiver::retire). The input may not be
    /// used up.
    Paused,
}

/// A request that is owed an outcome. Neither `Clone` nor `Copy`: it is spent in
/// [`Responder::complete`](crate::Responder::complete), the one place where replies come from.
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
    /// The client's number for the request.
    #[inline]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The operation.
    #[inline]
    pub fn op(&self) -> Opcode {
        self.op
    }

    /// Whether the client asked for an answer.
    #[inline]
    pub fn wants_reply(&self) -> bool {
        self.wants_reply
    }

    /// The place of the request among those of its connection, from 0.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Why the request cannot be carried out: `hipErrorNotSupported` for an unknown operation, `hipErrorInvalidValue` for a
    /// fixed part that is short or a tail that is shorter than the fixed part says or longer than the limit (HIPR 1.0,
    /// wire rules 3 and 4). The outcome is then this, whatever is given.
    pub fn refusal(&self) -> Option<HipError> {
        self.refusal
    }
}

/// The largest of a header and all requests' fixed parts.
const FIXED_MAX: usize = {
    let size = max_size(TABLE, false);
    if size > Header::SIZE { size } else { Header::SIZE }
};

/// Turns a client's bytes into requests.
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
    /// Waits for that many bytes of the fixed part.
    Fixed(Header, usize),
    Rest(Rest),
    Dead(Fatal),
}

impl Receiver {
    /// A connection that has received nothing.
    pub fn new(limits: Limits) -> Self {
        Self { limits, state: State::Header, partial: Partial::new(), open: 0, sequence: 0 }
    }

    /// Requests that were delivered and not retired.
    pub fn open(&self) -> usize {
        self.open
    }

    /// The limits it was made with.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether the next byte begins a message.
    pub fn is_between_messages(&self) -> bool {
        matches!(self.state, State::Header) && self.partial.is_empty()
    }

    /// That many requests were completed.
    pub fn retire(&mut self, completed: usize) {
        debug_assert!(completed <= self.open, "{completed} requests completed of {}", self.open);
        self.open = self.open.saturating_sub(completed);
    }

    /// Takes bytes from the front of `input` and returns what they say, at most one thing. Call it until it needs more or
    /// pauses; what is left in `input` has to be given again, before newer bytes.
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
                    match self.limits.admit(&mut bytes) {
                        Ok(admitted) => admitted,
                        Err(why) => {
                            self.state = State::Dead(why);
                            continue;
                        }
                    }
                }
                State::Fixed(header, fixed_len) => (*header, *fixed_len),
                State::Rest(rest) => match rest.step(input) {
                    Step::Data(bytes, last) => return Ok(Rx::Data { bytes, last }),
                    Step::NeedMore => return Ok(Rx::NeedMore),
                    Step::Done => {
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
            self.state = State::Rest(Rest { data: tail, skip: follows - tail });
            let wants_reply = !header.has(FLAG_NO_REPLY);
            let (id, op, sequence) = (header.request_id, header.op, self.sequence);
            self.open += 1;
            self.sequence += 1;
            let ticket = Ticket { id, op, wants_reply, refusal, sequence };
            return Ok(Rx::Request { ticket, op, fixed, tail });
        }
    }

    /// The peer will send no more.
    ///
    /// # Errors
    /// It stopped inside a message, or had broken the protocol before.
    pub fn handle_eof(&mut self) -> Result<(), Fatal> {
        // What is to be skipped is part of the message too, but its end may just not have been looked at yet.
        if let State::Rest(Rest { data: 0, skip: 0 }) = self.state {
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
    /// Judges a header; gives the bytes of the fixed part that will come.
    fn admit(&self, bytes: &mut &[u8]) -> Result<(Header, usize), Fatal> {
        // `bytes` are a header's.
        let header = Header::take(bytes).map_err(|_| Fatal::EofInsideMessage)?;
        header.check(self.payload_max)?;
        if header.has(FLAG_RESPONSE) {
            return Err(Fatal::NotARequest { op: header.op });
        }
        let size = header.op.info().map_or(0, |info| info.request.size);
        Ok((header, usize::try_from(header.payload_length).map_or(size, |length| length.min(size))))
    }

    /// How many of the `follows` bytes after `fixed` belong to the request, or why it cannot be carried out.
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
