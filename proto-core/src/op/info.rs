//! What is known of an operation apart from its code: the facts of its row.

use core::fmt;

use super::Opcode;
use crate::wire::{Field, Wire, WireError};

/// A request, typed. Every row of the table gives one.
pub trait Op: Wire + fmt::Debug + PartialEq {
    /// Its operation.
    const OPCODE: Opcode;

    /// The fixed part of the reply, after `error_code`.
    type Reply: Wire + fmt::Debug + PartialEq;

    /// Whether a client waits for the answer unless it has a reason to do otherwise.
    fn wants_reply(&self) -> bool;

    /// Bytes that follow the request's fixed part.
    fn tail_len(&self) -> TailLen;

    /// Bytes that follow the fixed part of a successful reply.
    fn reply_tail_len(&self) -> TailLen;
}

/// What can be done with any operation's types; [`with_op`](super::with_op) picks the operation by its number. What is
/// written once for all rows (a trace, a fuzzer, a round trip) is one of these, and covers new rows by itself.
pub trait ForOp {
    /// What it gives.
    type Out;

    /// Does it for the operation whose request is `O`.
    fn call<O: Op>(self) -> Self::Out;
}

/// A length in bytes, as far as a fixed part says it. Counts that overflow say `u64::MAX`, which no message has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TailLen {
    /// So many; more mean nothing and are skipped.
    Exact(u64),
    /// All that is there, and not less than this.
    AtLeast(u64),
    /// All that is there, up to this.
    AtMost(u64),
}

impl TailLen {
    /// How many of the `have` bytes that are there belong to the layout.
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

/// What follows a fixed part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// Nothing. Bytes that are there all the same are skipped.
    None,
    /// Names, arrays, kernel arguments: collected before the request is carried out, at most
    /// [`Limits::small_tail_max`](crate::Limits::small_tail_max) bytes.
    Small,
    /// Memory contents and code objects, of any size.
    Bulk,
}

/// What a request has to do with errors that are waiting to be reported; the rules are in [`deferred`](crate::deferred).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Nothing special.
    Plain,
    /// It makes something that the client would not know of if the answer reported another request's error.
    Creates,
    /// It waits for work, at least in its device-to-host form.
    Synchronizes,
    /// It neither reports nor takes away the error of another request.
    Exempt,
}

/// What a client does by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyRule {
    /// It waits.
    Sync,
    /// It sets `NO_REPLY`.
    Forget,
    /// It depends on the request, in those words.
    When(&'static str),
}

impl fmt::Display for ReplyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sync => "sync",
            Self::Forget => "forget",
            Self::When(text) => text,
        })
    }
}

/// A request or a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Bytes of the fixed part; in a reply, without the `error_code` before it.
    pub size: usize,
    /// The fixed part.
    pub fields: &'static [Field],
    /// What follows it.
    pub tail: Tail,
    /// The layout of what follows it, in the words of the protocol's table.
    pub tail_layout: &'static str,
}

impl fmt::Display for Part {
    /// The layout in the words of the protocol's table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fixed = crate::wire::Layout::Fields(self.fields);
        let space = if self.fields.is_empty() || self.tail_layout.is_empty() { "" } else { " " };
        write!(f, "{fixed}{space}{}", self.tail_layout)
    }
}

/// An operation's row.
#[derive(Debug)]
pub struct Info {
    /// Its number.
    pub code: Opcode,
    /// Its name, `MALLOC`.
    pub name: &'static str,
    /// What it does, one or two sentences.
    pub doc: &'static str,
    /// The HIP function that a worker calls; empty where there is none.
    pub hip_function: &'static str,
    /// Who specified it: `seed` the protocol's contract, `supplement` the table that completes it.
    pub source: &'static str,
    /// What a client does by default.
    pub reply_rule: ReplyRule,
    /// What it has to do with deferred errors.
    pub class: Class,
    /// The request.
    pub request: Part,
    /// The reply.
    pub reply: Part,
    pub(super) tail_len: fn(&[u8]) -> Result<TailLen, WireError>,
}

impl Info {
    /// Bytes that have to follow `fixed`, the request's fixed part.
    ///
    /// # Errors
    /// [`WireError::Short`] when `fixed` is not whole.
    pub fn tail_len(&self, fixed: &[u8]) -> Result<TailLen, WireError> {
        (self.tail_len)(fixed)
    }
}

/// The largest fixed part in bytes.
pub(crate) const fn max_size(table: &[Info], of_replies: bool) -> usize {
    let mut max = 0;
    let mut i = 0;
    while i < table.len() {
        let size = if of_replies { table[i].reply.size } else { table[i].request.size };
        if size > max {
            max = size;
        }
        i += 1;
    }
    max
}

/// `r#type` is called `type`.
pub(super) const fn field_name(identifier: &'static str) -> &'static str {
    match identifier.as_bytes() {
        [b'r', b'#', ..] => identifier.split_at(2).1,
        _ => identifier,
    }
}
