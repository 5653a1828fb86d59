//! Messages of kernels, which come in pieces of at most 56 bytes, each in a call of its own.

use super::buffer::SLOT_WORDS;

// Bits of a piece's first word: whether it begins or ends a message, how many words it has, and the number of its message.
const BEGIN: u64 = 1 << 0;
const END: u64 = 1 << 1;
const LEN_SHIFT: u32 = 5;
const LEN_MASK: u64 = 7;
const NUMBER_SHIFT: u32 = 8;

/// Maximum number of 64-bit words of a message: 1 MiB.
const WORDS_MAX: usize = 128 << 10;
/// Maximum number of words of all messages that are not whole: 16 MiB.
const TOTAL_WORDS_MAX: usize = 2 << 20;
/// Maximum number of messages that are not whole.
const MESSAGES_MAX: usize = 64 << 10;

/// The messages of a context that are not whole.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// By their numbers; `None` where there is none.
    open: Vec<Option<Message>>,
    free: Vec<usize>,
    words: usize,
}

#[derive(Debug, Default)]
struct Message {
    /// Whose it is.
    owner: u64,
    words: Vec<u64>,
    /// Whether a piece had no room, so that the message is lost.
    is_cut: bool,
}

/// What a piece comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// More is to come: the first word of the answer, by which the next piece names its message.
    Part(u64),
    /// The message is whole.
    Whole(Vec<u64>),
    /// There is no such message, or no room for it.
    Lost,
}

impl Messages {
    /// Takes a piece of `owner`, which is that of its message.
    pub(super) fn take(&mut self, owner: u64, slot: &[u64; SLOT_WORDS]) -> Piece {
        let [descriptor, words @ ..] = slot;
        let number = if descriptor & BEGIN != 0 {
            match self.begin(owner) {
                Some(number) => number,
                None => return Piece::Lost,
            }
        } else {
            usize::try_from(descriptor >> NUMBER_SHIFT).unwrap_or(usize::MAX)
        };
        let open = self.open.get_mut(number).and_then(Option::as_mut);
        let Some(message) = open.filter(|message| message.owner == owner) else { return Piece::Lost };
        let words = words.get(..(descriptor >> LEN_SHIFT & LEN_MASK) as usize).unwrap_or(words);
        let has_room = message.words.len() + words.len() <= WORDS_MAX
            && self.words + words.len() <= TOTAL_WORDS_MAX
            && !message.is_cut;
        if has_room {
            message.words.extend_from_slice(words);
            self.words += words.len();
        } else {
            message.is_cut = true;
        }
        if descriptor & END == 0 {
            let kept = descriptor & !BEGIN & ((1 << NUMBER_SHIFT) - 1);
            return Piece::Part(kept | (number as u64) << NUMBER_SHIFT);
        }
        let Some(whole) = self.open[number].take() else { return Piece::Lost };
        self.free.push(number);
        self.words -= whole.words.len();
        if whole.is_cut { Piece::Lost } else { Piece::Whole(whole.words) }
    }

    fn begin(&mut self, owner: u64) -> Option<usize> {
        let message = Message { owner, ..Message::default() };
        if let Some(number) = self.free.pop() {
            self.open[number] = Some(message);
            return Some(number);
        }
        if self.open.len() == MESSAGES_MAX {
            return None;
        }
        self.open.push(Some(message));
        Some(self.open.len() - 1)
    }

    /// Forgets the messages of an owner: those that its waves have begun and not ended.
    pub(super) fn forget(&mut self, owner: u64) {
        if self.free.len() == self.open.len() {
            return;
        }
        for (number, open) in self.open.iter_mut().enumerate() {
            if let Some(gone) = open.take_if(|message| message.owner == owner) {
                self.words -= gone.words.len();
                self.free.push(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(flags: u64, number: u64, words: &[u64]) -> [u64; SLOT_WORDS] {
        let mut slot = [0; SLOT_WORDS];
        slot[0] = flags | (words.len() as u64) << LEN_SHIFT | number << NUMBER_SHIFT;
        slot[1..=words.len()].copy_from_slice(words);
        slot
    }

    #[test]
    fn messages_of_many_lanes_are_put_together() {
        let mut messages = Messages::default();
        let started: Vec<u64> = (0..3)
            .map(|lane| match messages.take(1, &piece(BEGIN, 99, &[lane])) {
                Piece::Part(descriptor) => descriptor,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(started.iter().map(|d| d >> NUMBER_SHIFT).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(started.iter().all(|d| d & (BEGIN | END) == 0));
        for number in [2, 0, 1] {
            let whole = messages.take(1, &piece(END, number, &[7, 8, 9, 10, 11, 12, 13]));
            assert_eq!(whole, Piece::Whole(vec![number, 7, 8, 9, 10, 11, 12, 13]));
        }
        assert_eq!(messages.take(1, &piece(END, 1, &[1])), Piece::Lost, "it was whole");
        assert_eq!(messages.take(1, &piece(0, u64::MAX >> 8, &[1])), Piece::Lost, "there was none");
        assert_eq!(messages.take(1, &piece(BEGIN | END, 0, &[])), Piece::Whole(vec![]));
        assert_eq!(messages.words, 0);
    }

    #[test]
    fn messages_have_bounds() {
        let mut messages = Messages::default();
        let Piece::Part(long) = messages.take(1, &piece(BEGIN, 0, &[1; 7])) else { panic!("a part") };
        let long = long >> NUMBER_SHIFT;
        for _ in 0..WORDS_MAX {
            assert!(matches!(messages.take(1, &piece(0, long, &[1; 7])), Piece::Part(_)));
        }
        assert!(messages.words <= WORDS_MAX);
        assert_eq!(messages.take(1, &piece(END, long, &[1])), Piece::Lost, "it was too long");
        assert_eq!(messages.words, 0);
        for _ in 0..MESSAGES_MAX {
            assert!(matches!(messages.take(1, &piece(BEGIN, 0, &[1; 7])), Piece::Part(_)));
        }
        assert_eq!(messages.take(1, &piece(BEGIN, 0, &[1])), Piece::Lost, "too many");
        messages.forget(2);
        assert_eq!(messages.take(1, &piece(BEGIN, 0, &[1])), Piece::Lost, "they are another one's");
        assert_eq!(messages.take(2, &piece(END, 0, &[1])), Piece::Lost, "it is another one's");
        messages.forget(1);
        assert_eq!(messages.words, 0);
        assert_eq!(messages.take(1, &piece(BEGIN | END, 0, &[7])), Piece::Whole(vec![7]));
    }
}
