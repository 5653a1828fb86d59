//! The cursor over incoming bytes that both ends share: it holds what is incomplete of a header or a fixed part, and counts
//! down what follows. It never collects a tail.

/// A header or a fixed part of at most `N` bytes that may arrive in pieces.
#[derive(Debug)]
pub(crate) struct Partial<const N: usize> {
    bytes: [u8; N],
    have: usize,
}

impl<const N: usize> Partial<N> {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; N], have: 0 }
    }

    /// Whether no incomplete bytes are held.
    pub(crate) fn is_empty(&self) -> bool {
        self.have == 0
    }

    /// Takes `need` bytes: straight from `input` when they are all there, else by collecting them over several calls.
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

/// What follows the fixed part of a message: bytes to hand on, then bytes to skip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rest {
    pub(crate) data: u64,
    pub(crate) skip: u64,
}

/// One step through a [`Rest`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step<'i> {
    /// Bytes to hand on; `true` with the last ones.
    Data(&'i [u8], bool),
    /// `input` is used up.
    NeedMore,
    /// The message is over.
    Done,
}

impl Rest {
    pub(crate) fn step<'i>(&mut self, input: &mut &'i [u8]) -> Step<'i> {
        if self.data > 0 {
            if input.is_empty() {
                return Step::NeedMore;
            }
            let bytes = split_at_most(input, self.data);
            self.data -= bytes.len() as u64;
            return Step::Data(bytes, self.data == 0);
        }
        self.skip -= split_at_most(input, self.skip).len() as u64;
        if self.skip > 0 { Step::NeedMore } else { Step::Done }
    }
}

fn split_at_most<'i>(input: &mut &'i [u8], n: u64) -> &'i [u8] {
    let n = usize::try_from(n).map_or(input.len(), |n| n.min(input.len()));
    let (head, rest) = input.split_at(n);
    *input = rest;
    head
}
