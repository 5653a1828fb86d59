//! The receiving half of a client: turns bytes into replies. It belongs where the socket is read.

use alloc::collections::VecDeque;

use crate::error::{Fatal, Misuse};
use crate::header::{FLAG_RESPONSE, Header};
use crate::hip_error::{HipError, HipResult};
use crate::op::{Info, Op, Opcode, ReplyRule, Sizes, TABLE, Tail, max_size};
use crate::partial::{Partial, Piece, Remainder};
use crate::receiver::Limits;
use crate::sender::Call;
use crate::wire::{Wire, WireError};

/// A part of the input that a client has read.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// The reply to the oldest call that waits.
    Reply(Reply<'a>),
    /// A message that no request asked for; only where they are [accepted](ReplyReceiver::accept_notifications).
    Notification(Notification<'a>),
    /// Bytes that follow the fixed part of the last reply or notification.
    Data {
        /// The bytes, at least one.
        bytes: &'a [u8],
        /// Whether these are the last bytes; true exactly once if the `inline` of the reply or notification is not 0.
        last: bool,
    },
    /// All input was read.
    NeedMore,
}

/// A reply of the server.
#[derive(Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The call that is answered.
    pub call: Call,
    /// The error: that of the request itself, or the kept error of an unanswered request before it.
    pub error: Option<HipError>,
    /// The encoded fixed part after `error_code`; it may be incomplete if there is an error.
    pub fixed: &'a [u8],
    /// Number of bytes that follow as [`Answer::Data`].
    pub inline: u64,
}

impl Reply<'_> {
    /// Decodes the reply as that to a request `O`.
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

/// A message that the worker sends by itself: a row of the table with [`ReplyRule::Notification`].
#[derive(Debug, PartialEq, Eq)]
pub struct Notification<'a> {
    /// The code of its row.
    pub op: Opcode,
    /// The encoded fixed part.
    pub fixed: &'a [u8],
    /// Number of bytes that follow as [`Answer::Data`].
    pub inline: u64,
}

impl Notification<'_> {
    /// Decodes the fixed part as that of an `O`; returns `None` if it is none.
    pub fn read<O: Op>(&self) -> Option<O> {
        let mut fixed = self.fixed;
        if self.op == O::OPCODE { O::take(&mut fixed).ok() } else { None }
    }
}

/// Size in bytes of the largest fixed part that can arrive: that of a notification, or of a reply with the `error_code` before it.
const FIXED_MAX: usize = {
    let (reply, notification) =
        (i32::SIZE + max_size(TABLE, Sizes::Replies), max_size(TABLE, Sizes::Notifications));
    if reply > notification { reply } else { notification }
};

/// Turns the bytes that a server sent into replies, which arrive in the order of the calls.
///
/// It holds an incomplete header or fixed part at most, and what it has to know of the calls that wait.
#[derive(Debug)]
pub struct ReplyReceiver {
    limits: Limits,
    calls: VecDeque<Call>,
    state: State,
    partial: Partial<FIXED_MAX>,
    accepts_notifications: bool,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Header,
    /// Collects that many bytes of `error_code` and the fixed part.
    Fixed(Call, Header, usize),
    /// Collects the fixed part of a notification.
    Notification(&'static Info, Header),
    Remainder(Remainder),
    Dead(Fatal),
}

impl ReplyReceiver {
    /// Creates the receiving half of a new connection.
    pub fn new(limits: Limits) -> Self {
        let (calls, partial) = (VecDeque::new(), Partial::new());
        Self { limits, calls, state: State::Header, partial, accepts_notifications: false }
    }

    /// Accepts notifications from now on. A client calls it before it offers the feature `NOTIFICATIONS`; without it a notification
    /// breaks the protocol.
    pub fn accept_notifications(&mut self) {
        self.accepts_notifications = true;
    }

    /// Returns the number of calls that wait for their replies, without one whose reply has begun to arrive.
    pub fn waiting(&self) -> usize {
        self.calls.len()
    }

    /// Adds `call` to the calls that wait for their replies. Has to be called in the order of the requests and before the
    /// reply can arrive.
    ///
    /// # Errors
    /// As many calls wait as may.
    pub fn expect(&mut self, call: Call) -> Result<(), Misuse> {
        self.has_room()?;
        self.calls.push_back(call);
        Ok(())
    }

    /// Checks that one more call may wait.
    pub(crate) fn has_room(&self) -> Result<(), Misuse> {
        let max = self.limits.open_max;
        if self.calls.len() < max { Ok(()) } else { Err(Misuse::TooManyCalls { max }) }
    }

    /// Reads bytes from the front of `input` and returns at most one reply or piece of data. Call it until it returns
    /// [`Answer::NeedMore`].
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
                    let notifies = self.accepts_notifications;
                    self.state = match read_header(&self.limits, self.calls.front(), notifies, &mut bytes) {
                        Ok(state) => {
                            if let State::Fixed(..) = state {
                                self.calls.pop_front();
                            }
                            state
                        }
                        Err(why) => State::Dead(why),
                    };
                }
                State::Notification(info, header) => {
                    let (info, header) = (*info, *header);
                    let Some(fixed) = self.partial.take(info.request.size, input) else {
                        return Ok(Answer::NeedMore);
                    };
                    let rest = follows_notification(&self.limits, info, &header, fixed);
                    self.state = rest.map_or_else(State::Dead, State::Remainder);
                    let Remainder { data: inline, .. } = rest?;
                    return Ok(Answer::Notification(Notification { op: header.op, fixed, inline }));
                }
                State::Fixed(call, header, len) => {
                    let (call, header, len) = (*call, *header, *len);
                    let Some(mut fixed) = self.partial.take(len, input) else { return Ok(Answer::NeedMore) };
                    let result = read_error(&call, &header, &mut fixed);
                    self.state = match result {
                        Ok((_, rest)) => State::Remainder(rest),
                        Err(why) => State::Dead(why),
                    };
                    let (error, Remainder { data: inline, .. }) = result?;
                    return Ok(Answer::Reply(Reply { call, error, fixed, inline }));
                }
                State::Remainder(rest) => match rest.next(input) {
                    Piece::Data(bytes, last) => return Ok(Answer::Data { bytes, last }),
                    Piece::NeedMore => return Ok(Answer::NeedMore),
                    Piece::Done => self.state = State::Header,
                },
            }
        }
    }

    /// Handles the end of the incoming stream.
    ///
    /// # Errors
    /// It stopped inside a message or before all replies, or had broken the protocol before.
    pub fn handle_eof(&mut self) -> Result<(), Fatal> {
        if let State::Remainder(Remainder { data: 0, skip: 0 }) = self.state {
            self.state = State::Header;
        }
        let why = match self.state {
            State::Dead(why) => why,
            State::Header if !self.partial.is_empty() => Fatal::EofInsideMessage,
            State::Header if self.calls.is_empty() => return Ok(()),
            State::Header => Fatal::EofBeforeReply { waiting: self.calls.len() },
            State::Fixed(..) | State::Notification(..) | State::Remainder(_) => Fatal::EofInsideMessage,
        };
        self.state = State::Dead(why);
        Err(why)
    }
}

/// Decodes a header and checks it against the next call, or as that of a notification; returns how to go on with its message.
fn read_header(
    limits: &Limits,
    next: Option<&Call>,
    accepts_notifications: bool,
    bytes: &mut &[u8],
) -> Result<State, Fatal> {
    // `bytes` are a header's.
    let header = Header::take(bytes).map_err(|_| Fatal::EofInsideMessage)?;
    header.check(limits.payload_max)?;
    let (id, op) = (header.request_id, header.op);
    if !header.has(FLAG_RESPONSE) {
        let info =
            op.info().filter(|info| accepts_notifications && info.reply_rule == ReplyRule::Notification);
        let info = info.ok_or(Fatal::NotAReply { op })?;
        let (need, have) = (info.request.size as u64, header.payload_length);
        return if have < need {
            Err(Fatal::ShortNotification { op, need, have })
        } else {
            Ok(State::Notification(info, header))
        };
    }
    let call = *next.ok_or(Fatal::UnexpectedReply { id, op })?;
    if (call.id, call.op) != (id, op) {
        return Err(Fatal::WrongReply { expected_id: call.id, expected: call.op, id, op });
    }
    let need = i32::SIZE + call.reply_size;
    let len = usize::try_from(header.payload_length).map_or(need, |length| length.min(need));
    Ok(State::Fixed(call, header, len))
}

/// Returns what follows the fixed part of a notification.
fn follows_notification(
    limits: &Limits,
    info: &Info,
    header: &Header,
    fixed: &[u8],
) -> Result<Remainder, Fatal> {
    let (op, size, have) = (header.op, fixed.len() as u64, header.payload_length);
    let follows = have.saturating_sub(size);
    let short = |need| Fatal::ShortNotification { op, need: size.saturating_add(need), have };
    let tail = info.tail_len(fixed).map_err(|_| short(0))?;
    let data = tail.of(follows).map_err(|error| match error {
        WireError::Short { need, .. } => short(need),
        _ => short(0),
    })?;
    if info.request.tail == Tail::Small && data > limits.small_tail_max {
        return Err(Fatal::TooLong { op, length: have, max: size.saturating_add(limits.small_tail_max) });
    }
    Ok(Remainder { data, skip: follows - data })
}

/// Reads `error_code` from the front of `fixed`; returns the error and what follows the fixed part.
fn read_error(
    call: &Call,
    header: &Header,
    fixed: &mut &[u8],
) -> Result<(Option<HipError>, Remainder), Fatal> {
    let follows = header.payload_length - fixed.len() as u64;
    let code = i32::take(fixed).map_err(|_| short(call, header))?;
    if let Err(error) = HipError::check(code) {
        // Whatever a failed reply brings beyond its fixed part means nothing.
        return Ok((Some(error), Remainder { data: 0, skip: follows }));
    }
    if fixed.len() < call.reply_size {
        return Err(short(call, header));
    }
    let data = call.reply_tail.of(follows).map_err(|_| short(call, header))?;
    Ok((None, Remainder { data, skip: follows - data }))
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
