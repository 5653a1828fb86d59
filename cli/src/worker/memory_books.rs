//! The memory of all sessions (`--memory-total`) where each has a process of its own: the supervisor lends it to the processes.
//!
//! A process takes what is free, somewhat more of it than its session has, and gives back what it does not need. One whose session lacks
//! memory says so. Then all others are asked to give back what they do not need; when they have, those that lack memory have their turns:
//! one at a time may take all that is free, until it says that it has tried. What a process has is given back when it ends, however that
//! happens. Nobody is waited for without end: who does not answer in time keeps what it was lent.

use hipr_io::{Lender, LenderWords};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, thread};
use tracing::debug;

/// What a process asks and says about memory, by the number of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Kind {
    /// Up to so many bytes.
    Take = 32,
    /// So many bytes are given back.
    GiveBack = 33,
    /// How many bytes are free.
    Left = 34,
    /// The process lacks memory, and has given back what it does not need.
    Short = 35,
    /// It has taken what it needs in its turn, and given back the rest.
    Tried = 36,
    /// It has given back what it does not need, as it was asked to.
    Returned = 37,
}

impl Kind {
    const ALL: [Self; 6] = [Self::Take, Self::GiveBack, Self::Left, Self::Short, Self::Tried, Self::Returned];

    fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// What the supervisor says without being asked, a byte each.
const RECALL: u8 = b'R';
const TURN: u8 = b'T';

/// Time that processes have to give back what they do not need.
const RETURN_MS: u64 = 2_000;
/// Time that a process has for its turn.
const TURN_MS: u64 = 1_000;
/// Time between two recalls, so that who lacks memory all the time does not keep all others busy.
const BETWEEN_MS: u64 = 5;

// ---- the supervisor's side -------------------------------------------------------------------------------------------

/// What is lent to one process.
#[derive(Debug, Default)]
struct Lent {
    bytes: u64,
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

/// Who was lent how much. Times are milliseconds of any clock that only goes forward.
#[derive(Debug, Default)]
pub(super) struct MemoryBooks {
    max_bytes: u64,
    lent_bytes: u64,
    processes: BTreeMap<u64, Lent>,
    /// Number of the last process.
    last: u64,
    /// Those that lack memory and are not in the current recall.
    short: VecDeque<u64>,
    recall: Option<Recall>,
    /// The process that has its turn, and the time at which that ends.
    turn: Option<(u64, u64)>,
    /// The time before which nobody is asked again.
    earliest_ms: u64,
    has_words: bool,
}

impl MemoryBooks {
    /// Creates the books of a worker whose sessions may have so many bytes together.
    pub(super) fn new(max_bytes: u64) -> Self {
        Self { max_bytes, ..Self::default() }
    }

    /// Answers a question; returns `None` if it is not about memory. `process` is the number of the process that asks, 0 before its first
    /// question.
    pub(super) fn answer(&mut self, process: &mut u64, kind: u32, amount: u64, now_ms: u64) -> Option<u64> {
        let kind = Kind::of(kind)?;
        if *process == 0 {
            self.last += 1;
            *process = self.last;
            self.processes.insert(self.last, Lent::default());
        }
        let process = *process;
        let answer = match kind {
            Kind::Take => self.take(process, amount),
            Kind::GiveBack => self.give_back(process, amount),
            Kind::Left => self.left_bytes(),
            Kind::Short => {
                let is_known = |recall: &Recall| recall.waiting.contains(&process);
                if !self.short.contains(&process) && !self.recall.as_ref().is_some_and(is_known) {
                    self.short.push_back(process);
                }
                // It has given back what it does not need.
                self.has_returned(process);
                0
            }
            Kind::Tried => {
                self.turn = self.turn.filter(|(whose, _)| *whose != process);
                0
            }
            Kind::Returned => {
                self.has_returned(process);
                0
            }
        };
        self.advance(now_ms);
        Some(answer)
    }

    fn left_bytes(&self) -> u64 {
        self.max_bytes.saturating_sub(self.lent_bytes)
    }

    fn take(&mut self, process: u64, bytes: u64) -> u64 {
        // In its turn a process may have all.
        if self.turn.is_some_and(|(whose, _)| whose != process) {
            return 0;
        }
        let taken = bytes.min(self.left_bytes());
        if let Some(lent) = self.processes.get_mut(&process) {
            lent.bytes += taken;
            self.lent_bytes += taken;
            return taken;
        }
        0
    }

    fn give_back(&mut self, process: u64, bytes: u64) -> u64 {
        if let Some(lent) = self.processes.get_mut(&process) {
            let given = bytes.min(lent.bytes);
            lent.bytes -= given;
            self.lent_bytes -= given;
        }
        0
    }

    fn has_returned(&mut self, process: u64) {
        if let Some(recall) = &mut self.recall {
            recall.asked.remove(&process);
        }
    }

    /// Takes back what a process has that has ended.
    pub(super) fn end(&mut self, process: u64, now_ms: u64) {
        self.give_back(process, u64::MAX);
        self.processes.remove(&process);
        self.short.retain(|short| *short != process);
        self.has_returned(process);
        self.recall.iter_mut().for_each(|recall| recall.waiting.retain(|short| *short != process));
        self.turn = self.turn.filter(|(whose, _)| *whose != process);
        self.advance(now_ms);
    }

    /// Handles that time has passed.
    pub(super) fn advance(&mut self, now_ms: u64) {
        loop {
            if self.turn.is_some_and(|(_, until_ms)| now_ms < until_ms) {
                return;
            }
            self.turn = None;
            if let Some(recall) = &mut self.recall {
                if !recall.asked.is_empty() && now_ms < recall.until_ms {
                    return;
                }
                recall.asked.clear();
                match recall.waiting.pop_front() {
                    None => self.recall = None,
                    Some(process) => {
                        self.turn = Some((process, now_ms + TURN_MS));
                        self.say(process, |words| words.is_turn = true);
                    }
                }
                continue;
            }
            if self.short.is_empty() || now_ms < self.earliest_ms {
                return;
            }
            let waiting = std::mem::take(&mut self.short);
            let asked: BTreeSet<u64> = self
                .processes
                .iter()
                .filter(|(process, lent)| lent.bytes > 0 && !waiting.contains(process))
                .map(|(process, _)| *process)
                .collect();
            asked.iter().for_each(|process| self.say(*process, |words| words.is_recalled = true));
            self.recall = Some(Recall { asked, until_ms: now_ms + RETURN_MS, waiting });
            self.earliest_ms = now_ms + BETWEEN_MS;
        }
    }

    /// Returns the time at which [`advance`](Self::advance) has something to do; `None` if it has nothing before the next question.
    pub(super) fn next_ms(&self) -> Option<u64> {
        let turn = self.turn.map(|(_, until_ms)| until_ms);
        let recall = self.recall.as_ref().map(|recall| recall.until_ms);
        let short = (!self.short.is_empty()).then_some(self.earliest_ms);
        turn.or(recall).or(short)
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
    fn take_words(&mut self, process: u64) -> LenderWords {
        self.processes.get_mut(&process).map(|lent| std::mem::take(&mut lent.words)).unwrap_or_default()
    }
}

/// The supervisor's end of the socket through which a process is told what others need.
#[derive(Debug)]
pub(super) struct Telling(UnixStream);

impl Telling {
    /// Creates the socket; returns it with the process's end.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (socket, given) = UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        Ok((Self(socket), given.into()))
    }

    /// Says what is to be said to the process with this number. One that does not listen is not waited for, and is said nothing more.
    pub(super) fn tell(&mut self, books: &mut MemoryBooks, process: u64) {
        let LenderWords { is_recalled, is_turn } = books.take_words(process);
        for word in [is_recalled.then_some(RECALL), is_turn.then_some(TURN)].into_iter().flatten() {
            if let Err(why) = self.0.write_all(&[word]) {
                debug!(%why, "a session's process cannot be told that others need memory");
            }
        }
    }
}

// ---- the process's side ----------------------------------------------------------------------------------------------

/// Asks the supervisor, by the number of a kind and an amount; returns how much is granted.
type Ask = Box<dyn Fn(u32, u64) -> u64 + Send + Sync>;

type Wake = Box<dyn Fn() + Send + Sync>;

/// Has memory lent by the supervisor.
pub(super) struct Borrowing {
    ask: Ask,
    is_recalled: AtomicBool,
    is_turn: AtomicBool,
    wake: Mutex<Option<Wake>>,
}

impl fmt::Debug for Borrowing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Borrowing").finish_non_exhaustive()
    }
}

impl Borrowing {
    /// Takes what asks the supervisor, and the socket on which it says what others need; listens to that on a thread of its own.
    pub(super) fn start(ask: Ask, told: OwnedFd) -> Arc<Self> {
        let (is_recalled, is_turn, wake) = Default::default();
        let borrowing = Arc::new(Self { ask, is_recalled, is_turn, wake });
        let (listening, mut told) = (Arc::clone(&borrowing), UnixStream::from(told));
        thread::spawn(move || {
            let mut word = [0];
            loop {
                match told.read(&mut word) {
                    Ok(1) => listening.hear(word[0]),
                    Err(why) if why.kind() == ErrorKind::Interrupted => {}
                    // The supervisor has ended, and this process is about to.
                    _ => return,
                }
            }
        });
        borrowing
    }

    fn hear(&self, word: u8) {
        match word {
            RECALL => self.is_recalled.store(true, SeqCst),
            TURN => self.is_turn.store(true, SeqCst),
            _ => return,
        }
        if let Some(wake) = &*self.wake.lock().unwrap_or_else(PoisonError::into_inner) {
            wake();
        }
    }

    fn ask(&self, kind: Kind, amount: u64) -> u64 {
        (self.ask)(kind as u32, amount)
    }
}

impl Lender for Borrowing {
    fn take(&self, bytes: u64) -> u64 {
        self.ask(Kind::Take, bytes)
    }

    fn give_back(&self, bytes: u64) {
        self.ask(Kind::GiveBack, bytes);
    }

    fn left_bytes(&self) -> u64 {
        self.ask(Kind::Left, 0)
    }

    fn ask_others(&self) {
        self.ask(Kind::Short, 0);
    }

    fn has_tried(&self) {
        self.ask(Kind::Tried, 0);
    }

    fn has_returned(&self) {
        self.ask(Kind::Returned, 0);
    }

    fn words(&self) -> LenderWords {
        let (is_recalled, is_turn) = (self.is_recalled.swap(false, SeqCst), self.is_turn.swap(false, SeqCst));
        LenderWords { is_recalled, is_turn }
    }

    fn listen(&self, wake: Box<dyn Fn() + Send + Sync>) {
        *self.wake.lock().unwrap_or_else(PoisonError::into_inner) = Some(wake);
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
            Self { books: MemoryBooks::new(max_bytes), numbers: vec![0; count], now_ms: 0 }
        }

        fn ask(&mut self, at: usize, kind: Kind, amount: u64) -> u64 {
            let answer = self.books.answer(&mut self.numbers[at], kind as u32, amount, self.now_ms);
            let lent: u64 = self.books.processes.values().map(|lent| lent.bytes).sum();
            assert_eq!(lent, self.books.lent_bytes);
            assert!(lent <= self.books.max_bytes, "never more than there is");
            answer.expect("a question about memory")
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
        assert_eq!(world.books.left_bytes(), 100);
    }

    #[test]
    fn a_process_that_is_not_told_anything_holds_up_nobody() {
        let (mut telling, given) = Telling::pair().expect("a socket");
        let mut world = World::new(100, 2);
        world.ask(0, Kind::Take, 10);
        for _ in 0..100_000 {
            world.books.say(1, |words| *words = LenderWords { is_recalled: true, is_turn: true });
            telling.tell(&mut world.books, 1);
        }
        drop(given);
        world.books.say(1, |words| words.is_turn = true);
        telling.tell(&mut world.books, 1);
    }
}
