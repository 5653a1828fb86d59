//! The memory of all sessions (`--memory-total`) and of those of a tenant (`memory-total` in a line) where each has a process of its own: the
//! supervisor lends it to the processes.
//!
//! A process takes what is free, somewhat more of it than its session has, and gives back what it does not need. What it has counts within
//! each of its bounds: the worker's and its tenant's. One whose session lacks memory says so. Then all others that have the bound that
//! leaves it least are asked to give back what they do not need; when they have, those that lack memory have their turns: one at a time may
//! take all that is free within the bound, until it says that it has tried. What a process has is given back when it ends, however that
//! happens. Nobody is waited for without end: who does not answer in time keeps what it was lent.

use hipr_io::LenderWords;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a process asks and says about memory, by the number of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    /// Up to so many bytes.
    Take = 32,
    /// So many bytes are given back.
    GiveBack = 33,
    /// How many bytes are free.
    Left = 34,
    /// The process lacks memory within a bound, and has given back what it does not need. It would have to be lent so many bytes in all; 0 if
    /// it does not know that.
    Short = 35,
    /// It has taken what it needs in its turn, and given back the rest.
    Tried = 36,
    /// It has given back what it does not need, as it was asked to.
    Returned = 37,
    /// The process lacks memory of the device, which all have, and has given back what it does not need.
    ShortOfAll = 38,
}

impl Kind {
    const ALL: [Self; 7] =
        [Self::Take, Self::GiveBack, Self::Left, Self::Short, Self::Tried, Self::Returned, Self::ShortOfAll];

    fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// Time that processes have to give back what they do not need. Their clients have a quarter of it, and who asks waits longer (`worker/src/recalls.rs`).
const RETURN_MS: u64 = 6_000;
/// Time that a process has for its turn.
const TURN_MS: u64 = 1_000;
/// Time between two recalls, so that who lacks memory all the time does not keep all others busy.
const BETWEEN_MS: u64 = 5;

/// Bounds within which memory is lent: the worker's, if it has one, and those of tenants, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Bound {
    Worker,
    Tenant(u64),
}

/// What is lent to one process.
#[derive(Debug, Default)]
struct Lent {
    bytes: u64,
    /// Its tenant, and how many bytes that may have, if that has a bound.
    tenant: Option<(u64, u64)>,
    /// What is to be said to it.
    words: LenderWords,
}

/// The processes that were asked to give back what they do not need, on behalf of those that lack memory.
#[derive(Debug)]
struct Recall {
    asked: BTreeSet<u64>,
    until_ms: u64,
    waiting: VecDeque<u64>,
}

/// What is lent within a bound, and who lacks memory because of it: those that have the bound too are asked for it, and no others.
#[derive(Debug, Default)]
struct Book {
    lent_bytes: u64,
    /// Those that lack memory and are not in the current recall.
    short: VecDeque<u64>,
    recall: Option<Recall>,
    /// The process that has its turn, and the time at which that ends.
    turn: Option<(u64, u64)>,
    /// The time before which nobody is asked again.
    earliest_ms: u64,
}

impl Book {
    /// Returns whether those that lack memory only wait for their turns.
    fn is_ready(&self) -> bool {
        self.recall.as_ref().is_some_and(|recall| recall.asked.is_empty())
    }

    fn knows(&self, process: u64) -> bool {
        self.short.contains(&process)
            || self.recall.as_ref().is_some_and(|recall| recall.waiting.contains(&process))
    }

    fn has_returned(&mut self, process: u64) {
        if let Some(recall) = &mut self.recall {
            recall.asked.remove(&process);
        }
    }

    fn has_tried(&mut self, process: u64) {
        self.turn = self.turn.filter(|(whose, _)| *whose != process);
    }

    /// Forgets a process that has ended.
    fn end(&mut self, process: u64) {
        self.short.retain(|short| *short != process);
        self.recall.iter_mut().for_each(|recall| recall.waiting.retain(|short| *short != process));
        self.has_returned(process);
        self.has_tried(process);
    }

    /// Returns whether nothing depends on it any more.
    fn is_idle(&self) -> bool {
        self.lent_bytes == 0 && self.short.is_empty() && self.recall.is_none() && self.turn.is_none()
    }
}

/// Who was lent how much. Times are milliseconds of any clock that only goes forward.
#[derive(Debug, Default)]
pub(super) struct MemoryBooks {
    /// What all may have together, if that has a bound.
    max_bytes: Option<u64>,
    /// A book for each bound within which there is something to be noted.
    books: BTreeMap<Bound, Book>,
    processes: BTreeMap<u64, Lent>,
    /// Number of the last process.
    last: u64,
    has_words: bool,
}

impl MemoryBooks {
    /// Creates the books of a worker whose sessions may have so many bytes together, if that has a bound.
    pub(super) fn new(max_bytes: Option<u64>) -> Self {
        Self { max_bytes, ..Self::default() }
    }

    /// Returns the number of a process, which it gets with its first question; it is 0 before.
    fn number(&mut self, process: &mut u64) -> u64 {
        if *process == 0 {
            self.last += 1;
            *process = self.last;
            self.processes.insert(self.last, Lent::default());
        }
        *process
    }

    /// Notes how many bytes the tenant of a process may have. Each of its processes says that for itself, and once.
    pub(super) fn bound(&mut self, process: &mut u64, tenant: u64, max_bytes: u64) {
        let process = self.number(process);
        let Some(lent) = self.processes.get_mut(&process).filter(|lent| lent.tenant.is_none()) else {
            return;
        };
        lent.tenant = Some((tenant, max_bytes));
        if lent.bytes > 0 {
            self.books.entry(Bound::Tenant(tenant)).or_default().lent_bytes += lent.bytes;
        }
    }

    /// Answers a question; returns `None` if it is not about memory. `process` is the number of the process that asks, 0 before its first
    /// question.
    pub(super) fn answer(&mut self, process: &mut u64, kind: u32, amount: u64, now_ms: u64) -> Option<u64> {
        let kind = Kind::of(kind)?;
        let process = self.number(process);
        let answer = match kind {
            Kind::Take => self.take(process, amount),
            Kind::GiveBack => self.give_back(process, amount),
            Kind::Left => self.left_bytes(process),
            Kind::Short | Kind::ShortOfAll => {
                self.is_short(process, amount, kind == Kind::ShortOfAll);
                // It has given back what it does not need.
                self.books.values_mut().for_each(|book| book.has_returned(process));
                0
            }
            Kind::Tried => {
                self.books.values_mut().for_each(|book| book.has_tried(process));
                0
            }
            Kind::Returned => {
                self.books.values_mut().for_each(|book| book.has_returned(process));
                0
            }
        };
        self.advance(now_ms);
        Some(answer)
    }

    /// Returns the bounds that hold for a process, and how many bytes there may be within each.
    fn bounds(&self, process: u64) -> impl Iterator<Item = (Bound, u64)> + use<> {
        let tenant = self.processes.get(&process).and_then(|lent| lent.tenant);
        let worker = self.max_bytes.map(|max_bytes| (Bound::Worker, max_bytes));
        worker.into_iter().chain(tenant.map(|(tenant, max_bytes)| (Bound::Tenant(tenant), max_bytes)))
    }

    /// Returns how many bytes each bound of a process leaves, the widest bound first.
    fn left_within(&self, process: u64) -> impl Iterator<Item = (Bound, u64)> {
        let lent = |bound| self.books.get(&bound).map_or(0, |book| book.lent_bytes);
        self.bounds(process).map(move |(bound, max_bytes)| (bound, max_bytes.saturating_sub(lent(bound))))
    }

    /// Returns the bound because of which a process lacks memory that would have to be lent `needed_bytes` in all: the widest one that
    /// leaves too little, since those who have a narrower one have it as well. If it can never be lent as much, or it does not know how
    /// much it needs, others are not asked for what would be of no use: it is the narrowest bound.
    fn short_bound(&self, process: u64, needed_bytes: u64) -> Option<Bound> {
        let lent_bytes = self.processes.get(&process).map_or(0, |lent| lent.bytes);
        let is_possible = self.bounds(process).all(|(_, max_bytes)| needed_bytes <= max_bytes);
        let lacking_bytes = needed_bytes.saturating_sub(lent_bytes);
        let mut short = self.left_within(process).filter(|(_, left_bytes)| *left_bytes < lacking_bytes);
        let widest = short.next().filter(|_| is_possible);
        let least = || self.left_within(process).min_by_key(|(_, left_bytes)| *left_bytes);
        widest.or_else(least).map(|(bound, _)| bound)
    }

    /// Returns how many bytes a process could take; who has no bound has nothing to ask for.
    fn left_bytes(&self, process: u64) -> u64 {
        self.left_within(process).map(|(_, left_bytes)| left_bytes).min().unwrap_or(0)
    }

    fn take(&mut self, process: u64, bytes: u64) -> u64 {
        // In its turn a process may have all that there is within the bound.
        let has_turn = |book: &Book| book.turn.is_some_and(|(whose, _)| whose != process);
        if self.bounds(process).any(|(bound, _)| self.books.get(&bound).is_some_and(has_turn)) {
            return 0;
        }
        let taken = bytes.min(self.left_bytes(process));
        self.change(process, |lent_bytes| lent_bytes.saturating_add(taken));
        taken
    }

    fn give_back(&mut self, process: u64, bytes: u64) -> u64 {
        let given = self.processes.get(&process).map_or(0, |lent| bytes.min(lent.bytes));
        self.change(process, |lent_bytes| lent_bytes.saturating_sub(given));
        0
    }

    /// Changes what is lent to a process, there and within its bounds.
    fn change(&mut self, process: u64, change: impl Fn(u64) -> u64) {
        for (bound, _) in self.bounds(process) {
            let book = self.books.entry(bound).or_default();
            book.lent_bytes = change(book.lent_bytes);
        }
        self.processes.entry(process).and_modify(|lent| lent.bytes = change(lent.bytes));
    }

    /// Notes that a process lacks memory that would have to be lent `needed_bytes` in all, or that there is too little for all.
    fn is_short(&mut self, process: u64, needed_bytes: u64, of_all: bool) {
        let widest = self.bounds(process).map(|(bound, _)| bound).next().filter(|_| of_all);
        let Some(bound) = widest.or_else(|| self.short_bound(process, needed_bytes)) else { return };
        if !self.books.values().any(|book| book.knows(process)) {
            self.books.entry(bound).or_default().short.push_back(process);
        }
    }

    /// Takes back what a process has that has ended.
    pub(super) fn end(&mut self, process: u64, now_ms: u64) {
        self.give_back(process, u64::MAX);
        self.processes.remove(&process);
        self.books.values_mut().for_each(|book| book.end(process));
        self.advance(now_ms);
    }

    /// Handles that time has passed.
    pub(super) fn advance(&mut self, now_ms: u64) {
        // Turns that are over first: others may wait for them.
        for book in self.books.values_mut() {
            book.turn = book.turn.filter(|(_, until_ms)| now_ms < *until_ms);
        }
        let bounds: Vec<_> = self.books.keys().copied().collect();
        bounds.into_iter().for_each(|bound| self.advance_within(bound, now_ms));
        self.books.retain(|_, book| !book.is_idle());
    }

    /// Returns whether a turn within a bound has to wait for another: one within the same bound, a wider or a narrower one. The worker's
    /// goes before those of tenants, of which there may be one after another.
    fn has_to_wait(&self, bound: Bound) -> bool {
        self.books.iter().any(|(other, book)| match (*other, bound) {
            (Bound::Worker, Bound::Tenant(_)) => book.turn.is_some() || book.is_ready(),
            (Bound::Tenant(other), Bound::Tenant(own)) => other == own && book.turn.is_some(),
            (_, Bound::Worker) => book.turn.is_some(),
        })
    }

    fn advance_within(&mut self, bound: Bound, now_ms: u64) {
        loop {
            let has_to_wait = self.has_to_wait(bound);
            let Some(book) = self.books.get_mut(&bound) else { return };
            if let Some(recall) = &mut book.recall {
                if !recall.asked.is_empty() && now_ms < recall.until_ms {
                    return;
                }
                recall.asked.clear();
                if has_to_wait && !recall.waiting.is_empty() {
                    return;
                }
                match recall.waiting.pop_front() {
                    None => book.recall = None,
                    Some(process) => {
                        book.turn = Some((process, now_ms + TURN_MS));
                        self.say(process, |words| words.is_turn = true);
                    }
                }
                continue;
            }
            if book.turn.is_some() || book.short.is_empty() || now_ms < book.earliest_ms {
                return;
            }
            let waiting = std::mem::take(&mut book.short);
            book.earliest_ms = now_ms + BETWEEN_MS;
            let is_within = |lent: &Lent| {
                bound == Bound::Worker || lent.tenant.map(|(of, _)| Bound::Tenant(of)) == Some(bound)
            };
            let others = self.processes.iter().filter(|(process, _)| !waiting.contains(process));
            let asked =
                others.filter(|(_, lent)| lent.bytes > 0 && is_within(lent)).map(|(process, _)| *process);
            let asked: BTreeSet<u64> = asked.collect();
            asked.iter().for_each(|process| self.say(*process, |words| words.is_recalled = true));
            let recall = Recall { asked, until_ms: now_ms + RETURN_MS, waiting };
            self.books.entry(bound).or_default().recall = Some(recall);
        }
    }

    /// Returns the time at which [`advance`](Self::advance) has something to do; `None` if it has nothing before the next question.
    pub(super) fn next_ms(&self) -> Option<u64> {
        let next_ms = |book: &Book| match (book.turn, &book.recall) {
            (Some((_, until_ms)), _) => Some(until_ms),
            // What waits for another's turn goes on when that is over.
            (None, Some(recall)) => (!recall.asked.is_empty()).then_some(recall.until_ms),
            (None, None) => (!book.short.is_empty()).then_some(book.earliest_ms),
        };
        self.books.values().filter_map(next_ms).min()
    }

    fn say(&mut self, process: u64, say: impl FnOnce(&mut LenderWords)) {
        if let Some(lent) = self.processes.get_mut(&process) {
            say(&mut lent.words);
            self.has_words = true;
        }
    }

    /// Returns whether there is something to say to a process since the last call.
    pub(super) fn take_has_words(&mut self) -> bool {
        std::mem::take(&mut self.has_words)
    }

    /// Returns what is to be said to a process.
    pub(super) fn take_words(&mut self, process: u64) -> LenderWords {
        self.processes.get_mut(&process).map(|lent| std::mem::take(&mut lent.words)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: LenderWords = LenderWords { is_recalled: false, is_turn: false };
    const RECALLED: LenderWords = LenderWords { is_recalled: true, is_turn: false };
    const HAS_TURN: LenderWords = LenderWords { is_recalled: false, is_turn: true };

    /// The processes of some sessions, by their numbers.
    struct World {
        books: MemoryBooks,
        numbers: Vec<u64>,
        now_ms: u64,
    }

    impl World {
        fn new(max_bytes: u64, count: usize) -> Self {
            Self::bounded(Some(max_bytes), &vec![None; count])
        }

        /// Creates the processes of sessions whose tenants may have so much.
        fn bounded(max_bytes: Option<u64>, tenants: &[Option<(u64, u64)>]) -> Self {
            let mut world =
                Self { books: MemoryBooks::new(max_bytes), numbers: vec![0; tenants.len()], now_ms: 0 };
            for (number, tenant) in world.numbers.iter_mut().zip(tenants) {
                tenant.iter().for_each(|(tenant, bytes)| world.books.bound(number, *tenant, *bytes));
            }
            world
        }

        fn ask(&mut self, at: usize, kind: Kind, amount: u64) -> u64 {
            let answer = self.books.answer(&mut self.numbers[at], kind as u32, amount, self.now_ms);
            self.check();
            answer.expect("a question about memory")
        }

        /// Within each bound as much is lent as its processes have, and never more than there is.
        fn check(&self) {
            let mut lent = BTreeMap::<Bound, (u64, u64)>::new();
            for (process, of) in &self.books.processes {
                for (bound, max_bytes) in self.books.bounds(*process) {
                    let (bytes, most) = lent.entry(bound).or_default();
                    (*bytes, *most) = (*bytes + of.bytes, max_bytes.max(*most));
                }
            }
            for (bound, (bytes, most)) in lent {
                assert_eq!(
                    self.books.books.get(&bound).map_or(0, |book| book.lent_bytes),
                    bytes,
                    "{bound:?}"
                );
                assert!(bytes <= most, "{bound:?}: {bytes} of {most}");
            }
        }

        fn words(&mut self) -> Vec<LenderWords> {
            self.books.take_has_words();
            let World { books, numbers, .. } = self;
            numbers.iter().map(|number| books.take_words(*number)).collect()
        }

        fn pass(&mut self, ms: u64) {
            self.now_ms += ms;
            self.books.advance(self.now_ms);
        }

        fn end(&mut self, at: usize) {
            self.books.end(self.numbers[at], self.now_ms);
        }
    }

    #[test]
    fn no_more_is_lent_than_there_is_and_ends_give_it_back() {
        let mut world = World::new(100, 3);
        assert_eq!([world.ask(0, Kind::Take, 60), world.ask(1, Kind::Take, 60)], [60, 40]);
        assert_eq!([world.ask(2, Kind::Take, 1), world.ask(2, Kind::Left, 0)], [0, 0]);
        world.ask(0, Kind::GiveBack, 10);
        assert_eq!(world.ask(2, Kind::Left, 0), 10);
        // Nobody gives back what another has.
        world.ask(2, Kind::GiveBack, 50);
        world.ask(0, Kind::GiveBack, u64::MAX);
        world.ask(0, Kind::GiveBack, 1);
        assert_eq!(world.ask(2, Kind::Left, 0), 60);
        world.end(1);
        world.end(1);
        assert_eq!(world.ask(2, Kind::Take, u64::MAX), 100, "what an ended process had is free, once");
        assert_eq!(world.books.answer(&mut 1, 4, 1, 0), None, "another kind of question");
    }

    #[test]
    fn who_lacks_memory_has_all_that_others_do_not_need() {
        let mut world = World::new(100, 3);
        let [_, _] = [world.ask(0, Kind::Take, 30), world.ask(1, Kind::Take, 70)];
        world.ask(2, Kind::Short, 0);
        assert_eq!(world.words(), [RECALLED, RECALLED, NOBODY]);
        world.ask(0, Kind::GiveBack, 10);
        world.ask(0, Kind::Returned, 0);
        assert_eq!(world.words(), [NOBODY; 3], "not all have answered");
        world.ask(1, Kind::GiveBack, 20);
        world.ask(1, Kind::Returned, 0);
        assert_eq!(world.words(), [NOBODY, NOBODY, HAS_TURN]);
        assert_eq!(world.ask(0, Kind::Take, 5), 0, "nobody else is lent anything in a turn");
        assert_eq!(world.ask(2, Kind::Take, u64::MAX), 30);
        world.ask(2, Kind::GiveBack, 12);
        assert_eq!(world.ask(1, Kind::Take, 5), 0);
        world.ask(1, Kind::Tried, 0);
        assert_eq!(world.ask(1, Kind::Take, 5), 0, "nobody ends another's turn");
        world.ask(2, Kind::Tried, 0);
        assert_eq!([world.ask(1, Kind::Take, 5), world.ask(0, Kind::Take, 50)], [5, 7]);
        assert_eq!((world.words(), world.books.next_ms()), (vec![NOBODY; 3], None));
    }

    #[test]
    fn those_that_lack_memory_have_one_turn_after_another() {
        let mut world = World::new(100, 4);
        world.ask(0, Kind::Take, 100);
        world.ask(1, Kind::Short, 0);
        assert_eq!(world.words(), [RECALLED, NOBODY, NOBODY, NOBODY]);
        // These are too late for that recall. Twice is once.
        for at in [2, 3, 2, 3, 1] {
            world.ask(at, Kind::Short, 0);
        }
        world.ask(0, Kind::GiveBack, 50);
        world.ask(0, Kind::Returned, 0);
        assert_eq!(world.words(), [NOBODY, HAS_TURN, NOBODY, NOBODY]);
        assert_eq!(world.ask(1, Kind::Take, 20), 20);
        world.ask(1, Kind::Tried, 0);
        assert_eq!((world.words(), world.books.next_ms()), (vec![NOBODY; 4], Some(BETWEEN_MS)));
        world.pass(BETWEEN_MS);
        assert_eq!(world.words(), [RECALLED, RECALLED, NOBODY, NOBODY]);
        for at in [0, 1] {
            world.ask(at, Kind::Returned, 0);
        }
        for at in [2, 3] {
            let words = world.words();
            assert_eq!((words[at], words.iter().filter(|words| **words != NOBODY).count()), (HAS_TURN, 1));
            assert_eq!(world.ask(at, Kind::Take, u64::MAX), 30);
            world.ask(at, Kind::GiveBack, 30);
            world.ask(at, Kind::Tried, 0);
        }
        assert_eq!(world.words(), [NOBODY; 4]);
    }

    #[test]
    fn nobody_is_waited_for_without_end() {
        let mut world = World::new(100, 3);
        let [_, _] = [world.ask(0, Kind::Take, 60), world.ask(1, Kind::Take, 30)];
        world.ask(2, Kind::Short, 0);
        world.words();
        assert_eq!(world.books.next_ms(), Some(RETURN_MS));
        world.pass(RETURN_MS - 1);
        assert_eq!(world.words(), [NOBODY; 3]);
        world.pass(1);
        assert_eq!(world.words(), [NOBODY, NOBODY, HAS_TURN], "who does not answer keeps what it has");
        assert_eq!(world.books.next_ms(), Some(RETURN_MS + TURN_MS));
        world.pass(TURN_MS);
        assert_eq!(world.ask(0, Kind::Take, 50), 10, "a turn has an end");
        // Whoever ends is not waited for either.
        world.ask(2, Kind::Short, 0);
        world.end(0);
        world.end(1);
        assert_eq!(world.words()[2], HAS_TURN);
        world.ask(1, Kind::Short, 0);
        world.end(2);
        world.pass(BETWEEN_MS);
        assert_eq!(world.ask(2, Kind::Left, 0), 100);
    }

    /// What the tenants may have of processes 0 and 1, 2 and 3, 4; the last one has no bound of its own.
    const TENANTS: [Option<(u64, u64)>; 5] =
        [Some((7, 40)), Some((7, 40)), Some((8, 60)), Some((8, 30)), None];

    /// A process may have what its tenant's bound and the worker's leave, each process of a tenant with its own.
    #[test]
    fn a_tenants_processes_have_no_more_together_than_it_may_have() {
        // What the worker may have; then who takes how much one after another, and how much they get.
        type Takes = &'static [(usize, u64, u64)];
        let cases: [(Option<u64>, Takes); 4] = [
            (Some(100), &[(0, 30, 30), (1, 30, 10), (0, 1, 0), (2, 90, 60), (4, 90, 0)]),
            (Some(100), &[(4, 80, 80), (0, 30, 20), (2, 10, 0), (1, 10, 0)]),
            // The smaller bound of one key leaves the tenant's other sessions what theirs does.
            (Some(100), &[(2, 20, 20), (3, 20, 10), (3, 1, 0), (2, 40, 30), (4, 90, 40)]),
            // Without a bound there is nothing to be lent.
            (None, &[(0, 90, 40), (1, 1, 0), (2, 90, 60), (4, 90, 0)]),
        ];
        for (max_bytes, takes) in cases {
            let mut world = World::bounded(max_bytes, &TENANTS);
            for (at, bytes, granted) in takes {
                let left = world.ask(*at, Kind::Left, 0).min(*bytes);
                assert_eq!(
                    (left, world.ask(*at, Kind::Take, *bytes)),
                    (*granted, *granted),
                    "{takes:?}, {at}"
                );
            }
            (0..TENANTS.len()).for_each(|at| world.end(at));
            world.check();
            assert!(world.books.books.is_empty(), "{takes:?}: all is free again");
        }
    }

    /// Only those are asked who have the bound that is short, and only they are lent nothing during the turn.
    #[test]
    fn who_lacks_memory_within_a_tenants_bound_concerns_that_tenant_alone() {
        // Who lacks memory after these were lent so much, whether it is the device's, how much it needs, and who is asked.
        type Case = (usize, Kind, u64, [u64; 5], &'static [usize]);
        let cases: [Case; 12] = [
            (1, Kind::Short, 0, [40, 0, 20, 10, 20], &[0]),
            (3, Kind::Short, 0, [10, 0, 30, 0, 20], &[2]),
            // The worker's bound leaves less.
            (1, Kind::Short, 0, [30, 0, 60, 0, 10], &[0, 2, 4]),
            // Both leave nothing.
            (1, Kind::Short, 0, [40, 0, 60, 0, 0], &[0, 2]),
            (4, Kind::Short, 0, [40, 0, 60, 0, 0], &[0, 2]),
            (1, Kind::ShortOfAll, 0, [40, 0, 20, 0, 20], &[0, 2, 4]),
            // What is needed is left by the worker's bound, or by neither.
            (1, Kind::Short, 10, [40, 0, 20, 10, 20], &[0]),
            (1, Kind::Short, 11, [40, 0, 20, 10, 20], &[0, 2, 3, 4]),
            (1, Kind::Short, 15, [30, 5, 20, 10, 20], &[0]),
            (1, Kind::Short, 25, [30, 5, 20, 10, 20], &[0, 2, 3, 4]),
            // No more than the tenant may have is of any use to it.
            (1, Kind::Short, 40, [40, 0, 20, 10, 20], &[0, 2, 3, 4]),
            (1, Kind::Short, 41, [40, 0, 20, 10, 20], &[0]),
        ];
        for (short, kind, needed, lent, asked) in cases {
            let mut world = World::bounded(Some(100), &TENANTS);
            for (at, bytes) in lent.into_iter().enumerate() {
                assert_eq!(world.ask(at, Kind::Take, bytes), bytes);
            }
            world.ask(short, kind, needed);
            let what = format!("{lent:?}: {short} of {kind:?}, {needed}");
            let recalled = |at| if asked.contains(&at) { RECALLED } else { NOBODY };
            assert_eq!(world.words(), [0, 1, 2, 3, 4].map(recalled), "{what}");
            for at in asked {
                world.ask(*at, Kind::GiveBack, 5);
                world.ask(*at, Kind::Returned, 0);
            }
            let has_turn = |at| if at == short { HAS_TURN } else { NOBODY };
            assert_eq!(world.words(), [0, 1, 2, 3, 4].map(has_turn), "{what}");
            // Others of the worker are lent nothing only if they were asked.
            let all = asked.contains(&4) || short == 4 || asked.len() > 1;
            for at in [0, 2, 4].into_iter().filter(|at| *at != short) {
                let is_held = all || asked.contains(&at);
                let left = world.ask(at, Kind::Left, 0);
                assert_eq!(
                    world.ask(at, Kind::Take, 1),
                    if is_held { 0 } else { left.min(1) },
                    "{what}: {at}"
                );
            }
            assert!(world.ask(short, Kind::Take, u64::MAX) > 0, "{what}");
            world.ask(short, Kind::Tried, 0);
            assert_eq!((world.words(), world.books.next_ms()), (vec![NOBODY; 5], None), "{what}");
        }
    }

    /// Tenants have turns at the same time, but none while one has its turn who may take what all have, and the other way round. Who may
    /// waits for no more turns of tenants than have begun.
    #[test]
    fn turns_of_tenants_and_of_all_exclude_each_other() {
        let mut world = World::bounded(Some(100), &TENANTS);
        for (at, bytes) in [(0, 40), (2, 30), (4, 20)] {
            world.ask(at, Kind::Take, bytes);
        }
        let turns = |world: &mut World| {
            let words = world.words();
            [1, 3, 4].map(|at| words[at].is_turn)
        };
        let returns = |world: &mut World| [0, 2].map(|at| world.ask(at, Kind::Returned, 0));
        for at in [1, 3] {
            world.ask(at, Kind::Short, 0);
        }
        returns(&mut world);
        assert_eq!(turns(&mut world), [true, true, false]);
        world.ask(4, Kind::ShortOfAll, 0);
        returns(&mut world);
        world.ask(3, Kind::Tried, 0);
        assert_eq!(turns(&mut world), [false; 3]);
        // All have answered, but the tenants wait for the worker's turn, which waits for the one that has begun.
        world.pass(BETWEEN_MS);
        world.ask(3, Kind::Short, 0);
        returns(&mut world);
        assert_eq!(turns(&mut world), [false; 3]);
        assert_eq!(world.books.next_ms(), Some(TURN_MS), "nothing is to be done before the turn is over");
        world.pass(TURN_MS - BETWEEN_MS);
        assert_eq!(turns(&mut world), [false, false, true]);
        world.ask(1, Kind::Short, 0);
        returns(&mut world);
        assert_eq!((turns(&mut world), world.books.next_ms()), ([false; 3], Some(2 * TURN_MS)));
        world.ask(4, Kind::Tried, 0);
        assert_eq!(turns(&mut world), [true, true, false]);
    }
}
