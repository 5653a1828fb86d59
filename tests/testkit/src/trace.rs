//! What happened at the public doors of a world, in order.

use hipr_proto::{Fatal, HipError, Misuse, Opcode};

use crate::model::Learned;

/// One world's events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// In the order in which they happened.
    pub events: Vec<Event>,
    /// Byte of the faulty direction at which the fault was, when it got that far.
    pub fault_at_byte: Option<u64>,
    /// The world panicked, with this message.
    pub panic: Option<String>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The client took a request.
    Asked {
        /// Index in the script.
        call: usize,
        /// Its request id, if it is answered.
        id: Option<u32>,
        /// Calls that wait for their replies now.
        waiting: usize,
        /// Bytes that waited to be transmitted before.
        queued_bytes: usize,
        /// Bytes of all requests so far.
        end_byte: u64,
    },
    /// The client did not take a request; the caller tries again later.
    Declined {
        /// Index in the script.
        call: usize,
        /// Its reason.
        why: Misuse,
        /// Calls that wait for their replies.
        waiting: usize,
        /// Bytes that wait to be transmitted.
        queued_bytes: usize,
    },
    /// The client saw a reply.
    Reply {
        /// The call's request id.
        id: u32,
        /// The call's operation.
        op: Opcode,
        /// Its error.
        error: Option<HipError>,
        /// Its fixed part.
        fixed: Pieces,
        /// Bytes that follow.
        inline: u64,
    },
    /// The client saw bytes of the last reply's tail.
    ReplyData {
        /// The bytes.
        bytes: Pieces,
        /// Whether it was told that they are the last.
        last: bool,
    },
    /// The client's incoming side ended, for good or with the peer's fault. Asked again after that, it said it again.
    ClientEnd(Result<(), Fatal>),
    /// The program learned what became of a call that is answered.
    Resolved {
        /// Index in the script.
        call: usize,
        /// `None`: the connection was lost.
        learned: Option<Learned>,
        /// Whether all bytes of the reply were those of the call.
        intact: bool,
    },
    /// The server delivered a request.
    Request {
        /// Its place, from 0.
        sequence: u64,
        /// Its request id.
        id: u32,
        /// Its operation.
        op: Opcode,
        /// Whether it is answered.
        wants_reply: bool,
        /// Why it cannot be carried out.
        refusal: Option<HipError>,
        /// Its fixed part.
        fixed: Pieces,
        /// Bytes that follow.
        tail: u64,
        /// Requests that are open now.
        open: usize,
    },
    /// The server delivered bytes of the last request's tail.
    RequestData {
        /// The bytes.
        bytes: Pieces,
        /// Whether it said that they are the last.
        last: bool,
    },
    /// The server's incoming side ended. Asked again after that, it said it again.
    ServerEnd(Result<(), Fatal>),
    /// Input was left although the peer's next bytes were asked for.
    InputLeft {
        /// Whose input.
        side: Side,
        /// How much.
        len: usize,
    },
    /// After a fault of the peer, more bytes were asked for.
    Revived {
        /// By whom.
        side: Side,
    },
    /// The device began to carry out a request.
    Executed {
        /// The request's place.
        sequence: u64,
    },
    /// An error of earlier work was kept.
    Surfaced {
        /// Which.
        error: HipError,
    },
    /// A request was completed.
    Completed {
        /// Its place.
        sequence: u64,
        /// Inline bytes that the reply owes.
        stream_left: u64,
    },
    /// A ticket came back to the receiver.
    Retired {
        /// Requests that are open now.
        open: usize,
    },
    /// The server sent a reply: its bytes, taken apart without the protocol's own code.
    Frame {
        /// Request id.
        id: u32,
        /// Operation.
        op: Opcode,
        /// Flags.
        flags: u32,
        /// Error code; `None` of a frame without one.
        error: Option<i32>,
        /// Bytes after the header.
        payload_len: u64,
        /// Bytes of all frames so far.
        end_byte: u64,
    },
    /// The server sent bytes that are no reply.
    NoFrame {
        /// The first of them.
        magic: u32,
    },
    /// All is quiet and the connection has ended.
    Rest {
        /// Tickets that were given out and not spent.
        unspent: usize,
        /// Requests that the receiver takes for open.
        open: usize,
    },
    /// The connection was lost, or given up, before it came to its end.
    Lost(Side),
    /// All is quiet, and something is still owed.
    Stuck,
    /// A command was refused although the rules were kept.
    Refused {
        /// By whom.
        side: Side,
        /// Its reason.
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

/// Bytes that were delivered, compared with those that should have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pieces {
    /// How many.
    pub len: u64,
    /// The first that is wrong, counted from the beginning of the fixed part or tail.
    pub wrong_at: Option<u64>,
}

impl Pieces {
    /// `bytes`, of which `offset` others came before, where the whole should be `expected(offset, len)`.
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
