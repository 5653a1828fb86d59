//! Incremental reading of messages, for both ends: collects an incomplete header or fixed part, and counts the bytes that
//! follow. It never collects a tail.

/// Collects a header or a fixed part of at most `N` bytes that arrives in pieces.
#[derive(Debug)]
pub(crate) struct Partial<const N: usize> {
    bytes: [u8; N],
    have: usize,
}

impl<const N: usize> Partial<N> {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; N], have: 0 }
    }

    /// Returns whether no bytes are collected.
    pub(crate) fn is_empty(&self) -> bool {
        self.have == 0
    }

    /// Returns the next `need` bytes once they are there: from `input` without copying if it has all of them, else
    /// collected over several calls.
    pub(crate) fn take<'s, 'i: 's>(&'s mut self, need: usize, input: &mut &'i [u8]) -> Option<&'s [u8]> {
        debug_assert!(need <= N);
        if self.have == 0
            && let Some((head, rest)) = input.split_at_checked(need)
        {
            *input = rest;
            return Some(head);
        }
        let n = need.saturating_sub(self.have).min(input.len());
        let (head, rest) = input.split_at(n);
        self.bytes.get_mut(self.have..self.have + n)?.copy_from_slice(head);
        *input = rest;
        self.have += n;
        if self.have < need {
            return None;
        }
        self.have = 0;
        self.bytes.get(..need)
    }
}

/// The bytes of a message after its fixed part: `data` to return, then `skip` to ignore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Remainder {
    pub(crate) data: u64,
    pub(crate) skip: u64,
}

/// The part of the input that one call of [`Remainder::next`] has read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'i> {
    /// Bytes to return; `true` if they are the last.
    Data(&'i [u8], bool),
    /// All input was read, and the message goes on.
    NeedMore,
    /// The message is complete.
    Done,
}

impl Remainder {
    pub(crate) fn next<'i>(&mut self, input: &mut &'i [u8]) -> Piece<'i> {
        if self.data > 0 {
            if input.is_empty() {
                return Piece::NeedMore;
            }
            let bytes = split_at_most(input, self.data);
            self.data -= bytes.len() as u64;
            return Piece::Data(bytes, self.data == 0);
        }
        self.skip -= split_at_most(input, self.skip).len() as u64;
        if self.skip > 0 { Piece::NeedMore } else { Piece::Done }
    }
}

fn split_at_most<'i>(input: &mut &'i [u8], n: u64) -> &'i [u8] {
    let n = usize::try_from(n).map_or(input.len(), |n| n.min(input.len()));
    let (head, rest) = input.split_at(n);
    *input = rest;
    head
}
