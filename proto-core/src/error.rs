//! The two kinds of failure that are not a [`HipError`](crate::HipError): the peer broke the protocol, or our caller
//! broke the rules of this crate.

use core::fmt;

use crate::op::Opcode;

/// The peer broke the protocol; nothing after it can be trusted. Sticky: the same answer again on every later call. The
/// connection has to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fatal {
    /// A message does not start with `"HIPR"`.
    BadMagic {
        /// What it starts with.
        magic: u32,
    },
    /// Another major version.
    BadVersion {
        /// Major in the high byte, minor in the low.
        version: u16,
    },
    /// A payload longer than the limit.
    TooLong {
        /// Whose payload.
        op: Opcode,
        /// What the header says, in bytes.
        length: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// A response where requests are expected. It is not answered: two workers that talk to each other must not go on
    /// answering for ever.
    NotARequest {
        /// What it answers.
        op: Opcode,
    },
    /// A request where responses are expected.
    NotAReply {
        /// What it asks for.
        op: Opcode,
    },
    /// A response although no request waits for one.
    UnexpectedReply {
        /// Its request id.
        id: u32,
        /// What it answers.
        op: Opcode,
    },
    /// A response to another request than the one that is next in line.
    WrongReply {
        /// Request id that is next in line.
        expected_id: u32,
        /// Operation that is next in line.
        expected: Opcode,
        /// Request id of the response.
        id: u32,
        /// Operation of the response.
        op: Opcode,
    },
    /// A response without its error code, or a successful one without all it should bring.
    ShortReply {
        /// What it answers.
        op: Opcode,
        /// Payload bytes that the layout needs.
        need: u64,
        /// Payload bytes that it has.
        have: u64,
    },
    /// The stream ended inside a message.
    EofInsideMessage,
    /// The stream ended although requests wait for their responses.
    EofBeforeReply {
        /// How many wait.
        waiting: usize,
    },
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadMagic { magic } => write!(f, "bad magic {magic:#010x}: the peer does not speak HIPR"),
            Self::BadVersion { version } => {
                write!(f, "protocol version {}.{} instead of 1.x", version >> 8, version & 0xff)
            }
            Self::TooLong { op, length, max } => {
                write!(f, "{op} with a payload of {length} bytes, the limit is {max}")
            }
            Self::NotARequest { op } => write!(f, "a response ({op}) where a request is expected"),
            Self::NotAReply { op } => write!(f, "a request ({op}) where a response is expected"),
            Self::UnexpectedReply { id, op } => {
                write!(f, "a response ({op}, id {id}) that nothing waits for")
            }
            Self::WrongReply { expected_id, expected, id, op } => {
                write!(f, "a response to {op} (id {id}) where {expected} (id {expected_id}) is next")
            }
            Self::ShortReply { op, need, have } => {
                write!(f, "a response to {op} with {have} bytes of payload instead of {need}")
            }
            Self::EofInsideMessage => f.write_str("the connection ended inside a message"),
            Self::EofBeforeReply { waiting } => {
                write!(f, "the connection ended while {waiting} requests waited for their responses")
            }
        }
    }
}

impl core::error::Error for Fatal {}

/// Our own caller broke the rules of this crate: a bug on this side. What the peer would see next may be wrong, so the
/// connection has to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misuse {
    /// A ticket was completed before an older one.
    OutOfOrder {
        /// Sequence number that is next.
        expected: u64,
        /// Sequence number of the ticket.
        got: u64,
    },
    /// The next ticket was completed before all inline bytes of a streamed reply were given.
    StreamUnfinished {
        /// Bytes that are owed.
        left: u64,
    },
    /// More inline bytes than the streamed reply announced.
    StreamTooLong {
        /// Bytes that were owed.
        left: u64,
        /// Bytes that were given.
        given: u64,
    },
    /// A successful outcome whose fixed part does not have the operation's size.
    ReplySize {
        /// The operation.
        op: Opcode,
        /// Bytes of its reply's fixed part.
        need: usize,
        /// Bytes that were given.
        given: usize,
    },
    /// A request whose bytes after the fixed part are not as many as its fixed part says.
    TailSize {
        /// The operation.
        op: Opcode,
        /// Bytes that it needs.
        need: u64,
        /// Bytes that were given.
        given: u64,
    },
    /// A request was made although the coalescing buffer is full and waits to be flushed.
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

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfOrder { expected, got } => {
                write!(f, "ticket {got} was completed where ticket {expected} is next")
            }
            Self::StreamUnfinished { left } => {
                write!(f, "{left} inline bytes of the last reply are missing")
            }
            Self::StreamTooLong { left, given } => {
                write!(f, "{given} inline bytes where {left} were owed")
            }
            Self::ReplySize { op, need, given } => {
                write!(f, "a reply to {op} with a fixed part of {given} bytes instead of {need}")
            }
            Self::TailSize { op, need, given } => {
                write!(f, "{op} with {given} bytes after its fixed part instead of {need}")
            }
            Self::Unflushed { queued } => {
                write!(f, "a request on top of {queued} bytes that wait to be flushed")
            }
            Self::TooManyCalls { max } => write!(f, "more than {max} requests wait for responses"),
        }
    }
}

impl core::error::Error for Misuse {}
