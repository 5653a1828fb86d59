//! The two kinds of failure besides [`HipError`](crate::HipError): [`Fatal`], the peer broke the protocol, and [`Misuse`],
//! the caller broke the rules of this crate.

use core::fmt;

use crate::op::{Op, Opcode, TailLen};

/// The peer broke the protocol, so that nothing it sends can be trusted. Every later call returns the same error; the
/// connection has to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fatal {
    /// A message does not start with `"HIPR"`.
    BadMagic {
        /// The first four bytes of the message.
        magic: u32,
    },
    /// The message has another major version than this crate.
    BadVersion {
        /// The version: major in the high byte, minor in the low.
        version: u16,
    },
    /// A payload is longer than the limit.
    TooLong {
        /// Operation of the message.
        op: Opcode,
        /// Payload length in the message's header, in bytes.
        length: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// The server received a response. It is not answered, so that two workers connected to each other do not answer for
    /// ever.
    NotARequest {
        /// Operation of the response.
        op: Opcode,
    },
    /// The client received a request that is no notification, or a notification that it has not offered to take.
    NotAReply {
        /// Operation of the request.
        op: Opcode,
    },
    /// A notification is shorter than its layout.
    ShortNotification {
        /// Operation of the notification.
        op: Opcode,
        /// Payload bytes that the layout needs.
        need: u64,
        /// Payload bytes that the notification has.
        have: u64,
    },
    /// The client received a response although no request waits for one.
    UnexpectedReply {
        /// Request id of the response.
        id: u32,
        /// Operation of the response.
        op: Opcode,
    },
    /// The client received a response to another request than the next one in order.
    WrongReply {
        /// Request id of the next request in order.
        expected_id: u32,
        /// Operation of the next request in order.
        expected: Opcode,
        /// Request id of the response.
        id: u32,
        /// Operation of the response.
        op: Opcode,
    },
    /// A response has no error code, or is successful but shorter than its layout.
    ShortReply {
        /// Operation of the response.
        op: Opcode,
        /// Payload bytes that the layout needs.
        need: u64,
        /// Payload bytes that the response has.
        have: u64,
    },
    /// The stream ended inside a message.
    EofInsideMessage,
    /// The stream ended although requests wait for their responses.
    EofBeforeReply {
        /// Number of requests that wait.
        waiting: usize,
    },
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadMagic { magic } => write!(f, "bad magic {magic:#010x}: the peer does not speak HIPR"),
            Self::BadVersion { version } => {
                write!(
                    f,
                    "the peer speaks protocol version {}.{} instead of 1.x",
                    version >> 8,
                    version & 0xff
                )
            }
            Self::TooLong { op, length, max } => {
                write!(f, "the payload of {op} has {length} bytes; the limit is {max}")
            }
            Self::NotARequest { op } => write!(f, "received a response ({op}) instead of a request"),
            Self::NotAReply { op } => write!(f, "received a request ({op}) instead of a response"),
            Self::ShortNotification { op, need, have } => {
                write!(f, "the payload of a notification ({op}) has {have} bytes instead of {need}")
            }
            Self::UnexpectedReply { id, op } => {
                write!(f, "received a response ({op}, id {id}) that no request waits for")
            }
            Self::WrongReply { expected_id, expected, id, op } => {
                write!(f, "received a response to {op} (id {id}) instead of {expected} (id {expected_id})")
            }
            Self::ShortReply { op, need, have } => {
                write!(f, "the payload of a response to {op} has {have} bytes instead of {need}")
            }
            Self::EofInsideMessage => f.write_str("the connection ended inside a message"),
            Self::EofBeforeReply { waiting } => {
                write!(f, "the connection ended while {waiting} requests waited for their responses")
            }
        }
    }
}

impl core::error::Error for Fatal {}

/// The caller broke the rules of this crate: a bug on this side. The peer may already have been sent something wrong, so
/// the connection has to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misuse {
    /// A ticket was completed before an older one.
    OutOfOrder {
        /// Sequence number of the ticket that has to be completed next.
        expected: u64,
        /// Sequence number of the ticket that was completed.
        got: u64,
    },
    /// The next ticket was completed before all inline bytes of a streamed reply were pushed.
    StreamUnfinished {
        /// Inline bytes that are missing.
        left: u64,
    },
    /// More inline bytes were pushed than the streamed reply announced.
    StreamTooLong {
        /// Number of inline bytes that were still missing.
        left: u64,
        /// Number of inline bytes that were pushed.
        given: u64,
    },
    /// The fixed part of a successful outcome does not have the operation's size.
    ReplySize {
        /// The operation.
        op: Opcode,
        /// Size of the reply's fixed part in bytes.
        need: usize,
        /// Size of the fixed part that was passed, in bytes.
        given: usize,
    },
    /// A request has more or fewer bytes after its fixed part than the fixed part says.
    TailSize {
        /// The operation.
        op: Opcode,
        /// Bytes that the fixed part says.
        need: u64,
        /// Bytes that were passed.
        given: u64,
    },
    /// A request was made while the coalescing buffer was full and had not been sent.
    Unflushed {
        /// Bytes in the buffer.
        queued: usize,
    },
    /// More requests wait for their responses than the limit allows.
    TooManyCalls {
        /// The limit.
        max: usize,
    },
}

impl Misuse {
    /// Checks that `given` bytes behind a request's or notification's fixed part are as many as that says.
    ///
    /// # Errors
    /// [`TailSize`](Self::TailSize).
    pub(crate) fn check_tail<O: Op>(op: &O, given: u64) -> Result<(), Self> {
        let len = op.tail_len();
        let (TailLen::Exact(need) | TailLen::AtLeast(need) | TailLen::AtMost(need)) = len;
        if len.of(given) == Ok(given) { Ok(()) } else { Err(Self::TailSize { op: O::OPCODE, need, given }) }
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfOrder { expected, got } => {
                write!(f, "ticket {got} was completed before ticket {expected}")
            }
            Self::StreamUnfinished { left } => {
                write!(f, "{left} inline bytes of the last reply are missing")
            }
            Self::StreamTooLong { left, given } => {
                write!(f, "{given} inline bytes were pushed to a reply that lacks {left}")
            }
            Self::ReplySize { op, need, given } => {
                write!(f, "the fixed part of a reply to {op} has {given} bytes instead of {need}")
            }
            Self::TailSize { op, need, given } => {
                write!(f, "{op} was given {given} bytes after its fixed part instead of {need}")
            }
            Self::Unflushed { queued } => {
                write!(f, "a request was made although {queued} queued bytes had to be sent first")
            }
            Self::TooManyCalls { max } => write!(f, "more than {max} requests wait for responses"),
        }
    }
}

impl core::error::Error for Misuse {}
