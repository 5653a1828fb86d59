//! The events at the public interfaces of a world, in order.

use hipr_proto::{Fatal, HipError, Misuse, Opcode};

use crate::model::Learned;

/// The events of one world.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// The events in the order in which they happened.
    pub events: Vec<Event>,
    /// Position of the fault in its direction, if it happened.
    pub fault_at_byte: Option<u64>,
    /// The message of a panic of the world.
    pub panic: Option<String>,
}

/// An event at a public interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The client accepted a request.
    Asked {
        /// Index in the script.
        call: usize,
        /// The request id, if it is answered.
        id: Option<u32>,
        /// Number of calls that wait for their replies.
        waiting: usize,
        /// Number of bytes queued before the request.
        queued_bytes: usize,
        /// Total number of bytes of all requests.
        end_byte: u64,
    },
    /// The client did not accept a request; the program tries again later.
    Declined {
        /// Index in the script.
        call: usize,
        /// The reason.
        why: Misuse,
        /// Number of calls that wait for their replies.
        waiting: usize,
        /// Number of queued bytes.
        queued_bytes: usize,
    },
    /// The client read a reply.
    Reply {
        /// The call's request id.
        id: u32,
        /// The call's operation.
        op: Opcode,
        /// The error.
        error: Option<HipError>,
        /// The fixed part.
        fixed: Pieces,
        /// Number of bytes that follow.
        inline: u64,
    },
    /// The client read bytes of the last reply's tail.
    ReplyData {
        /// The bytes.
        bytes: Pieces,
        /// Whether they were marked as the last.
        last: bool,
    },
    /// The client read a notification, with all that follows its fixed part.
    Heard {
        /// Index of the call after which it is sent.
        call: usize,
        /// Number of bytes that follow the fixed part.
        len: u64,
        /// Whether all of it is what the server sent.
        intact: bool,
    },
    /// The client's input ended, orderly or with an error. The second call returned the same.
    ClientEnd(Result<(), Fatal>),
    /// The program learned the result of a call that is answered.
    Resolved {
        /// Index in the script.
        call: usize,
        /// The reply; `None` if the connection was lost.
        learned: Option<Learned>,
        /// Whether all bytes of the reply were those of the call.
        intact: bool,
    },
    /// The server delivered a request.
    Request {
        /// Sequence number from 0.
        sequence: u64,
        /// Its request id.
        id: u32,
        /// Its operation.
        op: Opcode,
        /// Whether it is answered.
        wants_reply: bool,
        /// The error that refuses the request.
        refusal: Option<HipError>,
        /// Its fixed part.
        fixed: Pieces,
        /// Number of bytes that follow.
        tail: u64,
        /// Number of open requests.
        open: usize,
    },
    /// The server delivered bytes of the last request's tail.
    RequestData {
        /// The bytes.
        bytes: Pieces,
        /// Whether they were marked as the last.
        last: bool,
    },
    /// The server's input ended, orderly or with an error. The second call returned the same.
    ServerEnd(Result<(), Fatal>),
    /// Input was left although more was asked for.
    InputLeft {
        /// The end that left it.
        side: Side,
        /// Number of bytes left.
        len: usize,
    },
    /// An end asked for more input after its peer broke the protocol.
    Revived {
        /// The end that did.
        side: Side,
    },
    /// The device began to execute a request.
    Executed {
        /// Sequence number of the request.
        sequence: u64,
    },
    /// An error of earlier work was kept.
    Surfaced {
        /// The error.
        error: HipError,
    },
    /// A request was completed.
    Completed {
        /// Sequence number of the request.
        sequence: u64,
        /// Number of inline bytes that the reply lacks.
        stream_left: u64,
    },
    /// A completed request was reported to the receiver.
    Retired {
        /// Number of open requests.
        open: usize,
    },
    /// The server sent a reply, parsed without the protocol crate.
    Frame {
        /// Request id.
        id: u32,
        /// Operation.
        op: Opcode,
        /// Flags.
        flags: u32,
        /// Error code; `None` if the message has none.
        error: Option<i32>,
        /// Length of the payload in bytes.
        payload_len: u64,
        /// Total number of bytes of all replies and notifications.
        end_byte: u64,
    },
    /// The server sent a notification, parsed without the protocol crate.
    Notified {
        /// Operation.
        op: Opcode,
        /// Length of the payload in bytes.
        payload_len: u64,
        /// Total number of bytes of all replies and notifications.
        end_byte: u64,
    },
    /// The server sent bytes that are not a message.
    NoFrame {
        /// The first four of them.
        magic: u32,
    },
    /// The world came to rest and the connection has ended.
    Rest {
        /// Number of tickets that were not completed.
        unspent: usize,
        /// Number of open requests according to the receiver.
        open: usize,
    },
    /// The connection was lost or given up before its orderly end.
    Lost(Side),
    /// The world came to rest although something is still owed.
    Stuck,
    /// A command was refused although the caller kept the rules.
    Refused {
        /// The end that refused it.
        side: Side,
        /// The reason.
        why: Misuse,
    },
}

/// An end of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// Delivered bytes, compared with the expected ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pieces {
    /// Number of bytes.
    pub len: u64,
    /// Position of the first wrong byte in the fixed part or tail.
    pub wrong_at: Option<u64>,
}

impl Pieces {
    /// Compares `bytes`, which are preceded by `offset` others, with `expected(offset, len)`.
    pub fn compare(bytes: &[u8], offset: u64, expected: impl FnOnce(u64, u64) -> &'static [u8]) -> Self {
        let len = bytes.len() as u64;
        let expected = expected(offset, len);
        if bytes == expected {
            return Self { len, wrong_at: None };
        }
        let same = bytes.iter().zip(expected).take_while(|(a, b)| a == b).count();
        Self { len, wrong_at: Some(offset + same as u64) }
    }
}
