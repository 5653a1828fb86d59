//! Replies in: the half of a client that turns bytes into answers. It belongs where the socket is read.

use alloc::collections::VecDeque;

use crate::error::{Fatal, Misuse};
use crate::header::{FLAG_RESPONSE, Header};
use crate::hip_error::{HipError, HipResult};
use crate::op::{Op, TABLE, max_size};
use crate::receiver::Limits;
use crate::rx::{Partial, Rest, Step};
use crate::sender::Call;
use crate::wire::{Wire, WireError};

/// What came in.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// The reply to the call that waited longest.
    Reply(Reply<'a>),
    /// Bytes after the last reply's fixed part.
    Data {
        /// At least one byte.
        bytes: &'a [u8],
        /// Whether they end here; true exactly once when the reply's `inline` is not 0.
        last: bool,
    },
    /// The input is used up.
    NeedMore,
}

/// A reply.
#[derive(Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The call that it answers.
    pub call: Call,
    /// Its error: the request's own, or that of an unanswered request before it.
    pub error: Option<HipError>,
    /// The fixed part after `error_code`; of the layout's size, or shorter when there is an error.
    pub fixed: &'a [u8],
    /// How many bytes follow as [`Answer::Data`].
    pub inline: u64,
}

impl Reply<'_> {
    /// The outcome, decoded as the reply to an `O`.
    ///
    /// # Errors
    /// The inner result is what the worker said. [`WireError::Short`] when this is no reply to an `O`.
    pub fn read<O: Op>(&self) -> Result<HipResult<O::Reply>, WireError> {
        let mut fixed = self.fixed;
        match self.error {
            Some(error) => Ok(Err(error)),
            None => Ok(Ok(O::Reply::take(&mut fixed)?)),
        }
    }
}

/// `error_code` and the largest fixed part of a reply.
const FIXED_MAX: usize = i32::SIZE + max_size(TABLE, true);

/// Turns a server's bytes into replies, which come in the order of the calls.
///
/// It holds an incomplete header or fixed part at most, and what it has to know of the calls that wait.
#[derive(Debug)]
pub struct ReplyReceiver {
    limits: Limits,
    calls: VecDeque<Call>,
    state: State,
    partial: Partial<FIXED_MAX>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Header,
    /// Waits for that many bytes of `error_code` and the fixed part.
    Fixed(Call, Header, usize),
    Rest(Rest),
    Dead(Fatal),
}

impl ReplyReceiver {
    /// A connection that has received nothing.
    pub fn new(limits: Limits) -> Self {
        Self { limits, calls: VecDeque::new(), state: State::Header, partial: Partial::new() }
    }

    /// Calls that wait for their replies, without one that is arriving.
    pub fn waiting(&self) -> usize {
        self.calls.len()
    }

    /// Waits for the reply to `call`, after all that were expected before. Has to be called in the order of the requests,
    /// and before the reply can arrive.
    ///
    /// # Errors
    /// As many calls wait as may.
    pub fn expect(&mut self, call: Call) -> Result<(), Misuse> {
        self.has_room()?;
        self.calls.push_back(call);
        Ok(())
    }

    /// Whether one more call can be expected.
    pub(crate) fn has_room(&self) -> Result<(), Misuse> {
        let max = self.limits.open_max;
        if self.calls.len() < max { Ok(()) } else { Err(Misuse::TooManyCalls { max }) }
    }

    /// Takes bytes from the front of `input` and returns what they say, at most one thing. Call it until it needs more.
    ///
    /// # Errors
    /// The peer broke the protocol: the same answer for ever.
    pub fn handle_input<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Answer<'s>, Fatal> {
        loop {
            match &mut self.state {
                State::Dead(why) => return Err(*why),
                State::Header => {
                    let Some(mut bytes) = self.partial.take(Header::SIZE, input) else {
                        return Ok(Answer::NeedMore);
                    };
                    self.state = match admit(&self.limits, self.calls.front(), &mut bytes) {
                        Ok((call, header, len)) => {
                            self.calls.pop_front();
                            State::Fixed(call, header, len)
                        }
                        Err(why) => State::Dead(why),
                    };
                }
                State::Fixed(call, header, len) => {
                    let (call, header, len) = (*call, *header, *len);
                    let Some(mut fixed) = self.partial.take(len, input) else { return Ok(Answer::NeedMore) };
                    let judged = judge(&call, &header, &mut fixed);
                    self.state = match judged {
                        Ok((_, rest)) => State::Rest(rest),
                        Err(why) => State::Dead(why),
                    };
                    let (error, Rest { data: inline, .. }) = judged?;
                    return Ok(Answer::Reply(Reply { call, error, fixed, inline }));
                }
                State::Rest(rest) => match rest.step(input) {
                    Step::Data(bytes, last) => return Ok(Answer::Data { bytes, last }),
                    Step::NeedMore => return Ok(Answer::NeedMore),
                    Step::Done => self.state = State::Header,
                },
            }
        }
    }

    /// The peer will send no more.
    ///
    /// # Errors
    /// It stopped inside a message or before all replies, or had broken the protocol before.
    pub fn handle_eof(&mut self) -> Result<(), Fatal> {
        if let State::Rest(Rest { data: 0, skip: 0 }) = self.state {
            self.state = State::Header;
        }
        let why = match self.state {
            State::Dead(why) => why,
            State::Header if !self.partial.is_empty() => Fatal::EofInsideMessage,
            State::Header if self.calls.is_empty() => return Ok(()),
            State::Header => Fatal::EofBeforeReply { waiting: self.calls.len() },
            State::Fixed(..) | State::Rest(_) => Fatal::EofInsideMessage,
        };
        self.state = State::Dead(why);
        Err(why)
    }
}

/// Judges a header against the call that is next; gives the bytes of `error_code` and the fixed part that will come.
fn admit(limits: &Limits, next: Option<&Call>, bytes: &mut &[u8]) -> Result<(Call, Header, usize), Fatal> {
    // `bytes` are a header's.
    let header = Header::take(bytes).map_err(|_| Fatal::EofInsideMessage)?;
    header.check(limits.payload_max)?;
    let (id, op) = (header.request_id, header.op);
    if !header.has(FLAG_RESPONSE) {
        return Err(Fatal::NotAReply { op });
    }
    let call = *next.ok_or(Fatal::UnexpectedReply { id, op })?;
    if (call.id, call.op) != (id, op) {
        return Err(Fatal::WrongReply { expected_id: call.id, expected: call.op, id, op });
    }
    let need = i32::SIZE + call.reply_size;
    let len = usize::try_from(header.payload_length).map_or(need, |length| length.min(need));
    Ok((call, header, len))
}

/// Takes `error_code` from `fixed` and tells what follows.
fn judge(call: &Call, header: &Header, fixed: &mut &[u8]) -> Result<(Option<HipError>, Rest), Fatal> {
    let follows = header.payload_length - fixed.len() as u64;
    let code = i32::take(fixed).map_err(|_| short(call, header))?;
    if let Err(error) = HipError::check(code) {
        // Whatever a failed reply brings beyond its fixed part means nothing.
        return Ok((Some(error), Rest { data: 0, skip: follows }));
    }
    if fixed.len() < call.reply_size {
        return Err(short(call, header));
    }
    let data = call.reply_tail.of(follows).map_err(|_| short(call, header))?;
    Ok((None, Rest { data, skip: follows - data }))
}

fn short(call: &Call, header: &Header) -> Fatal {
    use crate::op::TailLen::{AtLeast, AtMost, Exact};
    let tail = match call.reply_tail {
        Exact(need) | AtLeast(need) => need,
        AtMost(_) => 0,
    };
    let need = ((i32::SIZE + call.reply_size) as u64).saturating_add(tail);
    Fatal::ShortReply { op: call.op, need, have: header.payload_length }
}
