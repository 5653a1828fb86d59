//! A simple model that reads messages from a complete stream, and streams to compare it with.

use hipr_proto::{Fatal, Opcode, TailLen};
use proptest::prelude::*;
use proptest::sample::Index;

/// A message that may be truncated.
pub(crate) struct Message<'a> {
    pub(crate) op: Opcode,
    pub(crate) id: u32,
    pub(crate) flags: u32,
    /// Length of the payload in bytes according to the header.
    pub(crate) length: u64,
    pub(crate) payload: &'a [u8],
}

/// Reads the message at the front of `bytes`; returns `None` if its header is incomplete.
pub(crate) fn message(bytes: &[u8], payload_max: u64) -> Option<Result<Message<'_>, Fatal>> {
    let number = |at: usize, len: usize| {
        bytes[at..at + len].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    if bytes.len() < 24 {
        return None;
    }
    let (magic, version, op) = (number(0, 4) as u32, number(4, 2) as u16, Opcode(number(6, 2) as u16));
    let (id, length, flags) = (number(8, 4) as u32, number(12, 8), number(20, 4) as u32);
    if magic != u32::from_be_bytes(*b"HIPR") {
        return Some(Err(Fatal::BadMagic { magic }));
    }
    if version / 256 != 1 {
        return Some(Err(Fatal::BadVersion { version }));
    }
    if length > payload_max {
        return Some(Err(Fatal::TooLong { op, length, max: payload_max }));
    }
    let have = (bytes.len() as u64 - 24).min(length) as usize;
    Some(Ok(Message { op, id, flags, length, payload: &bytes[24..24 + have] }))
}

impl Message<'_> {
    pub(crate) fn is_whole(&self) -> bool {
        self.payload.len() as u64 == self.length
    }

    /// Returns what is there of the `tail` bytes after the first `fixed` bytes, and whether that is all.
    pub(crate) fn tail(&self, fixed: usize, tail: u64) -> Option<(Vec<u8>, bool)> {
        let follows = &self.payload[fixed..];
        let data = &follows[..follows.len().min(tail as usize)];
        (!data.is_empty()).then(|| (data.to_vec(), data.len() as u64 == tail))
    }
}

/// Returns how many of `follows` bytes belong to a layout, or `None` if bytes are missing.
pub(crate) fn belonging(len: TailLen, follows: u64) -> Option<u64> {
    match len {
        TailLen::Exact(n) => (follows >= n).then_some(n),
        TailLen::AtLeast(n) => (follows >= n).then_some(follows),
        TailLen::AtMost(n) => Some(if follows > n { n } else { follows }),
    }
}

/// How a stream is damaged and cut into pieces.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    flipped: Option<(Index, u8)>,
    end: Option<Index>,
    garbage: Vec<u8>,
    pieces: Vec<usize>,
}

impl Way {
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let piece = prop_oneof![Just(1), 1..8usize, 1..100usize, Just(usize::MAX / 2)];
        (
            proptest::option::weighted(0.2, (any::<Index>(), 1..=255u8)),
            proptest::option::weighted(0.2, any::<Index>()),
            prop_oneof![4 => Just(vec![]), 1 => proptest::collection::vec(any::<u8>(), 1..40)],
            proptest::collection::vec(piece, 1..8),
        )
            .prop_map(|(flipped, end, garbage, pieces)| Self { flipped, end, garbage, pieces })
    }

    pub(crate) fn spoil(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.extend_from_slice(&self.garbage);
        if let (Some((at, bits)), false) = (&self.flipped, bytes.is_empty()) {
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
        }
        if let Some(end) = &self.end {
            bytes.truncate(end.index(bytes.len() + 1));
        }
        bytes
    }

    /// Returns the ends of the pieces of `len` bytes.
    pub(crate) fn ends(&self, len: usize) -> impl Iterator<Item = usize> {
        let mut end = 0;
        self.pieces.iter().cycle().map_while(move |piece| {
            let before = end;
            end = len.min(before + piece);
            (before < len).then_some(end)
        })
    }
}

/// Returns a limit at, below or above one of `sizes`, or `far`.
pub(crate) fn near(sizes: &[u64], (which, delta): (Index, Option<i64>), far: u64) -> u64 {
    match delta {
        Some(delta) if !sizes.is_empty() => which.get(sizes).saturating_add_signed(delta),
        _ => far,
    }
}

/// Generates the arguments of [`near`].
pub(crate) fn nearness() -> impl Strategy<Value = (Index, Option<i64>)> {
    (any::<Index>(), proptest::option::weighted(0.4, -1..=1i64))
}
