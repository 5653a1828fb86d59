//! Questions what has changed whose answers are under way.
//!
//! A question leaves with the wait that makes it necessary, so that the two cost one flight. While it is under way other threads go on.
//!
//! * The worker tells each change once. So answers are applied in the order of their questions, whoever receives them, and a call that
//!   ends has all answers applied up to that to its own question.
//! * What the program has sent since the question left is newer than the answer, on both sides, and so is left out of it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;

use hipr_proto::HipResult;
use hipr_proto::op::MemChanges;

use super::uses::Clock;
use crate::worker::ChangesAnswer;

/// A range of a region that a question is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Host address of the region, and its number: another region may have the address meanwhile.
    pub(super) base: usize,
    pub(super) number: u64,
    /// Where the range begins in the region.
    pub(super) offset: usize,
    pub(super) request: MemChanges,
}

impl Asked {
    /// Returns the rest of the range behind its first `len` bytes.
    pub(super) fn after(&self, len: usize) -> Self {
        let MemChanges { address, length, stream } = self.request;
        let (address, length) = (address + len as u64, length.saturating_sub(len as u64));
        let (offset, request) = (self.offset + len, MemChanges { address, length, stream });
        Self { offset, request, ..*self }
    }
}

/// What the answers to a question have told.
#[derive(Debug)]
pub(super) struct Told {
    /// The ranges of which they have told nothing.
    pub(super) left: Vec<Asked>,
    /// Whether the worker can tell of all regions.
    pub(super) knows_all: bool,
}

/// A question under way.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) number: u64,
    pub(super) ranges: Vec<Asked>,
    /// What the program has sent since, by host addresses.
    pub(super) sent: Ranges,
    /// The answers, if they have come and those to an earlier question have not.
    answers: Option<Vec<ChangesAnswer>>,
    /// Whether a caller takes what is told.
    is_wanted: bool,
}

/// All questions under way, in the order in which they were sent.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// The number of the last question.
    count: u64,
    open: VecDeque<Question>,
    /// What was told to questions whose callers have not taken it.
    told: HashMap<u64, HipResult<Told>>,
}

/// The lowest bit of a side's number in the number of a question.
const SIDE_SHIFT: u32 = 48;

/// Returns the number of the side that has asked a question.
pub(super) fn side_of(question: u64) -> usize {
    usize::try_from(question >> SIDE_SHIFT).unwrap_or(usize::MAX)
}

impl Questions {
    /// Creates the list of the side with this number. Questions of different sides have different numbers.
    pub(super) fn of_side(number: usize) -> Self {
        Self { count: (number as u64) << SIDE_SHIFT, ..Self::default() }
    }

    /// Notes a question that is being sent; returns its number.
    pub(super) fn add(&mut self, ranges: Vec<Asked>) -> u64 {
        self.count += 1;
        let number = self.count;
        self.open.push_back(Question {
            number,
            ranges,
            sent: Ranges::default(),
            answers: None,
            is_wanted: true,
        });
        number
    }

    /// Removes a question that could not be sent.
    pub(super) fn retract(&mut self, number: u64) {
        self.open.retain(|question| question.number != number);
    }

    /// Returns the number of the last question under way.
    pub(super) fn last(&self) -> Option<u64> {
        self.open.back().map(|question| question.number)
    }

    /// Returns whether the question with this number, or an earlier one, is under way.
    pub(super) fn is_open(&self, number: u64) -> bool {
        self.open.front().is_some_and(|question| question.number <= number)
    }

    /// Notes bytes that the program has sent.
    pub(super) fn sent(&mut self, host: usize, len: usize) {
        self.open.iter_mut().for_each(|question| question.sent.add(host, len));
    }

    /// Takes the answers to a question.
    pub(super) fn answer(&mut self, number: u64, answers: Vec<ChangesAnswer>) {
        if let Some(question) = self.open.iter_mut().find(|question| question.number == number) {
            question.answers = Some(answers);
        }
    }

    /// Removes the first question if it has been answered, and returns it with the answers.
    pub(super) fn next_answered(&mut self) -> Option<(Question, Vec<ChangesAnswer>)> {
        let answers = self.open.front_mut()?.answers.take()?;
        Some((self.open.pop_front()?, answers))
    }

    /// Notes what was told to a question, for its caller.
    pub(super) fn tell(&mut self, question: &Question, told: HipResult<Told>) {
        if question.is_wanted {
            self.told.insert(question.number, told);
        }
    }

    /// Notes that nobody takes what is told to a question.
    pub(super) fn forget(&mut self, number: u64) {
        if self.told.remove(&number).is_none() {
            let question = self.open.iter_mut().find(|question| question.number == number);
            question.into_iter().for_each(|question| question.is_wanted = false);
        }
    }

    /// Returns what was told to a question; `None` while it is under way.
    pub(super) fn take_told(&mut self, number: u64) -> Option<HipResult<Told>> {
        self.told.remove(&number)
    }
}

/// What a call has to fetch when its wait is over; nothing where there was no memory on both sides when the wait began.
#[derive(Debug, Default)]
pub(in super::super) struct Waited(pub(super) Option<Box<Fetching>>);

impl Waited {
    /// Returns whether it was asked what has to be fetched.
    pub(in super::super) fn has_asked(&self) -> bool {
        self.0.as_ref().is_some_and(|fetching| fetching.question.is_some())
    }

    /// Notes that what has been sent may not have arrived when the wait is over.
    pub(in super::super) fn says_nothing_of_pushes(&mut self) {
        if let Some(fetching) = &mut self.0 {
            fetching.pushes = None;
        }
    }
}

/// The uses that a wait is for, and what it has asked for.
#[derive(Debug, Default)]
pub(super) struct Fetching {
    /// The uses that have finished after the wait.
    pub(super) clock: Clock,
    /// Number of pushes before the wait; only for waits after which all of them have arrived.
    pub(super) pushes: Option<u64>,
    /// The question that is under way.
    pub(super) question: Option<u64>,
    /// What earlier answers have left open.
    pub(super) left: Vec<Asked>,
    /// Uses that were over without being fetched when it was asked first.
    pub(super) unfetched: Option<Clock>,
    pub(super) need: Need,
}

/// Whether something has to be fetched after a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Need {
    /// Unless all uses have finished.
    #[default]
    OfUses,
    /// In any case.
    Any,
    /// Nothing.
    Nothing,
}

/// Ranges of addresses.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// Ends by begins; no two touch each other.
    ends: BTreeMap<usize, usize>,
}

impl Ranges {
    /// Adds a range.
    pub(super) fn add(&mut self, start: usize, len: usize) {
        let (mut start, mut end) = (start, start.saturating_add(len));
        while let Some((&other, &other_end)) = self.ends.range(..=end).next_back()
            && other_end >= start
        {
            self.ends.remove(&other);
            (start, end) = (start.min(other), end.max(other_end));
        }
        if start < end {
            self.ends.insert(start, end);
        }
    }

    /// Returns the ranges in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range<usize>> {
        self.ends.iter().map(|(start, end)| *start..*end)
    }

    /// Calls `outside` for each part of a range that is in none of these: its begin and its length.
    pub(super) fn outside(&self, start: usize, len: usize, mut outside: impl FnMut(usize, usize)) {
        let end = start.saturating_add(len);
        let mut at = start;
        let first = self.ends.range(..=start).next_back().map_or(start, |(begin, _)| *begin);
        for (&begin, &stop) in self.ends.range(first..end) {
            if begin > at {
                outside(at, begin - at);
            }
            at = at.max(stop);
        }
        if at < end {
            outside(at, end - at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of every pair of ranges in a short piece of memory, with a third one looked at from outside.
    #[test]
    fn ranges_are_sets_of_addresses() {
        const LEN: usize = 8;
        let ranges = || (0..LEN).flat_map(|start| (0..=LEN - start).map(move |len| (start, len)));
        for first in ranges() {
            for second in ranges() {
                let mut all = Ranges::default();
                let mut is_in = [false; LEN];
                for (start, len) in [first, second] {
                    all.add(start, len);
                    is_in[start..start + len].fill(true);
                }
                let mut ends = all.ends.iter().peekable();
                while let Some((start, end)) = ends.next() {
                    assert!(start < end && ends.peek().is_none_or(|(next, _)| *next > end), "{all:?}");
                }
                for (start, len) in ranges() {
                    let mut outside = [false; LEN];
                    all.outside(start, len, |at, len| {
                        assert!(len > 0);
                        outside[at..at + len].fill(true);
                    });
                    let expected: Vec<bool> =
                        (0..LEN).map(|at| !is_in[at] && (start..start + len).contains(&at)).collect();
                    assert_eq!(outside.to_vec(), expected, "{first:?} {second:?} {start} {len}");
                }
            }
        }
    }

    #[test]
    fn questions_are_answered_in_their_order() {
        let mut questions = Questions::default();
        let (first, second) = (questions.add(Vec::new()), questions.add(Vec::new()));
        questions.answer(second, Vec::new());
        assert!(questions.next_answered().is_none() && questions.is_open(second));
        questions.answer(first, Vec::new());
        let order: Vec<u64> =
            std::iter::from_fn(|| questions.next_answered().map(|(q, _)| q.number)).collect();
        assert_eq!(order, [first, second]);
        assert!(!questions.is_open(second) && questions.last().is_none());
    }
}
