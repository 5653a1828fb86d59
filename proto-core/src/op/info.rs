//! The facts that the table holds about an operation: its names, layouts, reply rule, class and source.

use core::fmt;

use super::{Handles, Opcode};
use crate::wire::{Field, Wire, WireError};

/// A request type. Every row of the table defines one.
pub trait Op: Wire + Handles + fmt::Debug + Copy + PartialEq {
    /// The operation's code.
    const OPCODE: Opcode;

    /// What the reply depends on, if it never changes in a session.
    const STATICS: Option<StaticInfo>;

    /// The fixed part of the reply, after `error_code`.
    type Reply: Wire + Handles + fmt::Debug + PartialEq;

    /// Returns whether a client waits for the reply by default.
    fn wants_reply(&self) -> bool;

    /// Returns how many bytes follow the request's fixed part.
    fn tail_len(&self) -> TailLen;

    /// Returns how many bytes follow the fixed part of a successful reply.
    fn reply_tail_len(&self) -> TailLen;
}

/// What a static operation's reply depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaticInfo {
    /// Whether it depends on the current device, beside the request.
    pub of_current_device: bool,
    /// The values of each field of the request.
    pub fields: &'static [Domain],
}

/// The values that a field of a static operation's request can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// The numbers of the devices.
    Device,
    /// The numbers of device attributes (`hipDeviceAttribute_t`).
    Attribute,
    /// Any: such requests are too many for the list, so the client remembers what it has asked.
    Asked,
}

/// A function that is generic over the request type; [`with_op`](super::with_op) calls it for an operation code. Code that
/// treats all operations alike (traces, fuzzers, round-trip tests) implements it and covers new operations automatically.
pub trait ForOp {
    /// The function's return type.
    type Out;

    /// Calls the function for the request type `O`.
    fn call<O: Op>(self) -> Self::Out;
}

/// The length of a tail in bytes, as far as the fixed part determines it. A length that overflows is `u64::MAX`, which no
/// message can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TailLen {
    /// Exactly this many; further bytes are skipped.
    Exact(u64),
    /// All bytes of the message, but at least this many.
    AtLeast(u64),
    /// All bytes of the message up to this many; further bytes are skipped.
    AtMost(u64),
}

impl TailLen {
    /// Returns how many of the message's `have` remaining bytes belong to the tail.
    ///
    /// # Errors
    /// [`WireError::Short`] when bytes are missing.
    #[inline]
    pub fn of(self, have: u64) -> Result<u64, WireError> {
        match self {
            Self::Exact(need) | Self::AtLeast(need) if have < need => Err(WireError::Short { need, have }),
            Self::Exact(need) => Ok(need),
            Self::AtLeast(_) => Ok(have),
            Self::AtMost(max) => Ok(have.min(max)),
        }
    }
}

/// The kind of bytes that follow a fixed part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// No bytes; those that are sent nevertheless are skipped.
    None,
    /// Names, arrays or kernel arguments: collected before the request is executed, at most
    /// [`Limits::small_tail_max`](crate::Limits::small_tail_max) bytes.
    Small,
    /// Memory contents or code objects, of any size.
    Bulk,
}

/// How an operation treats kept errors; [`deferred`](crate::deferred) has the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It reports a kept error and is executed nevertheless.
    Plain,
    /// It creates something. If it has to report a kept error it is not executed, because the client would take it for
    /// failed and never free what it created.
    Creates,
    /// It waits for work, in some operations only when it copies from device to host.
    Synchronizes,
    /// It neither reports nor resets a kept error.
    Exempt,
}

/// Whether a client waits for the reply by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyRule {
    /// The client waits.
    Sync,
    /// The client sets `NO_REPLY` and does not wait.
    Forget,
    /// Whether the client waits depends on the request, as the text explains.
    When(&'static str),
    /// The worker sends it, to a client that has the feature `NOTIFICATIONS`. A request with its code fails as an unknown one.
    Notification,
}

impl fmt::Display for ReplyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sync => "sync",
            Self::Forget => "forget",
            Self::When(text) => text,
            Self::Notification => "notification",
        })
    }
}

/// The document that defines an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The specification HIPR 1.0 defines all of it.
    Hipr10,
    /// HIPR 1.0 defines the operation except for this part, which the extension defines.
    Hipr10Except(&'static str),
    /// Only the extension defines it: the table of operations that completes HIPR 1.0.
    Extension,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hipr10 => f.write_str("HIPR 1.0"),
            Self::Hipr10Except(part) => write!(f, "HIPR 1.0; {part}: extension"),
            Self::Extension => f.write_str("extension"),
        }
    }
}

/// The layout of a request or a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Size of the fixed part in bytes; in a reply, without the `error_code` before it.
    pub size: usize,
    /// Fields of the fixed part.
    pub fields: &'static [Field],
    /// Kind of bytes that follow the fixed part.
    pub tail: Tail,
    /// Layout of those bytes, in the notation of `docs/protocol.md`.
    pub tail_layout: &'static str,
}

impl fmt::Display for Part {
    /// Writes the layout in the notation of `docs/protocol.md`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fixed = crate::wire::Layout::Fields(self.fields);
        let space = if self.fields.is_empty() || self.tail_layout.is_empty() { "" } else { " " };
        write!(f, "{fixed}{space}{}", self.tail_layout)
    }
}

/// The row of an operation in the table.
#[derive(Debug)]
pub struct Info {
    /// Code of the operation.
    pub code: Opcode,
    /// Name of the operation, such as `MALLOC`.
    pub name: &'static str,
    /// Documentation of the operation, one or two sentences.
    pub doc: &'static str,
    /// The HIP function that a worker calls; empty if there is none.
    pub hip_function: &'static str,
    /// The document that defines the operation.
    pub source: Source,
    /// Whether a client waits for the reply by default.
    pub reply_rule: ReplyRule,
    /// How the operation treats kept errors.
    pub class: Class,
    /// What the reply depends on, if it never changes in a session.
    pub statics: Option<StaticInfo>,
    /// Layout of the request.
    pub request: Part,
    /// Layout of the reply.
    pub reply: Part,
    pub(super) tail_len: fn(&[u8]) -> Result<TailLen, WireError>,
}

impl Info {
    /// Returns how many bytes have to follow `fixed`, the request's fixed part.
    ///
    /// # Errors
    /// [`WireError::Short`] when `fixed` is not whole.
    pub fn tail_len(&self, fixed: &[u8]) -> Result<TailLen, WireError> {
        (self.tail_len)(fixed)
    }
}

/// The fixed parts that [`max_size`] compares.
#[derive(Clone, Copy)]
pub(crate) enum Sizes {
    Requests,
    Replies,
    Notifications,
}

/// Returns the size of the largest fixed part in bytes.
pub(crate) const fn max_size(table: &[Info], sizes: Sizes) -> usize {
    let mut max = 0;
    let mut i = 0;
    while i < table.len() {
        let size = match (sizes, table[i].reply_rule) {
            (Sizes::Requests, _) | (Sizes::Notifications, ReplyRule::Notification) => table[i].request.size,
            (Sizes::Replies, _) => table[i].reply.size,
            (Sizes::Notifications, _) => 0,
        };
        if size > max {
            max = size;
        }
        i += 1;
    }
    max
}

/// Strips `r#` from a raw identifier.
pub(super) const fn field_name(identifier: &'static str) -> &'static str {
    match identifier.as_bytes() {
        [b'r', b'#', ..] => identifier.split_at(2).1,
        _ => identifier,
    }
}
