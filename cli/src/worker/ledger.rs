//! What sessions have together although each has a process of its own: the supervisor counts, the processes ask, through a socket each.
//!
//! A process says for which tenant it asks, since it has checked the client's key: the first that it names is its tenant for good. What it
//! has is known here and given back when it ends, however that happens. So whoever takes over a process can use up what is left of a limit,
//! and takes nothing that another has been given.

use super::memory_books::MemoryBooks;
use hipr_io::{Ledger, Payer, Peer, Places, Rate, Rates};
use hipr_tls::TenantCounter;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use tracing::{info, warn};

/// Lengths of a question and of its answer in bytes.
const ASK_BYTES: usize = 24;
const ANSWER_BYTES: usize = 16;
/// Maximum number of a process's questions that are answered before others have their turn.
const TURN_ASKS: usize = 16;

/// What a process asks: a kind, then numbers, all little-endian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ask {
    kind: u32,
    /// The limit as the process knows it.
    limit: u32,
    /// The number of the tenant; 0 for a client without a key, which counts for its address.
    tenant: u64,
    amount: u64,
}

impl Ask {
    /// A place among the sessions without a connection, if the amount is 1; 0 gives it back.
    const PARKED: u32 = 1;
    /// Up to so many requests of the tenant's rate, which is the limit. If there are none, `more` is the time until there are.
    const REQUESTS: u32 = 2;
    /// A session that the tenant begins, of which the limit is how many there may be in a second.
    const BEGIN: u32 = 3;
    /// A place among the sessions of the tenant, of which the limit is how many there may be; 0 if there is no limit.
    const SESSION: u32 = 4;
    /// The most bytes of memory that all sessions of the tenant may have together are the amount.
    const MEMORY_TOTAL: u32 = 5;

    fn to_bytes(self) -> [u8; ASK_BYTES] {
        let words = u64::from(self.kind) | u64::from(self.limit) << 32;
        bytes_of([words, self.tenant, self.amount])
    }

    fn from_bytes(bytes: [u8; ASK_BYTES]) -> Self {
        let [words, tenant, amount] = numbers(bytes);
        Self { kind: words as u32, limit: (words >> 32) as u32, tenant, amount }
    }
}

/// What is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Answer {
    /// How much there is of what was asked for.
    granted: u64,
    /// What else is to be known, by kind.
    more: u64,
}

impl Answer {
    fn to_bytes(self) -> [u8; ANSWER_BYTES] {
        bytes_of([self.granted, self.more])
    }

    fn from_bytes(bytes: [u8; ANSWER_BYTES]) -> Self {
        let [granted, more] = numbers(bytes);
        Self { granted, more }
    }
}

/// Writes little-endian numbers.
fn bytes_of<const COUNT: usize, const BYTES: usize>(numbers: [u64; COUNT]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let (places, _) = bytes.as_chunks_mut::<8>();
    places.iter_mut().zip(numbers).for_each(|(place, number)| *place = number.to_le_bytes());
    bytes
}

/// Reads little-endian numbers.
fn numbers<const BYTES: usize, const COUNT: usize>(bytes: [u8; BYTES]) -> [u64; COUNT] {
    let (whole, _) = bytes.as_chunks::<8>();
    let mut numbers = [0; COUNT];
    numbers.iter_mut().zip(whole).for_each(|(place, bytes)| *place = u64::from_le_bytes(*bytes));
    numbers
}

// ---- the process's side ----------------------------------------------------------------------------------------------

/// Asks the supervisor.
#[derive(Debug)]
pub(super) struct Asking(Mutex<UnixStream>);

impl Asking {
    /// Takes the socket to the supervisor.
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self(Mutex::new(socket.into()))
    }

    /// Asks for nobody in particular; returns how much is granted.
    pub(super) fn ask_plainly(&self, kind: u32, amount: u64) -> u64 {
        self.ask(kind, None, 0, amount).granted
    }

    /// Says how many bytes of memory all sessions of the tenant may have together.
    pub(super) fn bound_memory(&self, tenant: u64, max_bytes: u64) {
        self.ask(Ask::MEMORY_TOTAL, Some(Payer::Tenant(tenant)), 0, max_bytes);
    }

    /// Returns the answer; nothing is granted if there is none, because the supervisor has ended and this process is about to.
    fn ask(&self, kind: u32, payer: Option<Payer>, limit: u32, amount: u64) -> Answer {
        let tenant = if let Some(Payer::Tenant(number)) = payer { number } else { 0 };
        let mut socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = [0; ANSWER_BYTES];
        let asked = socket.write_all(&Ask { kind, limit, tenant, amount }.to_bytes());
        match asked.and_then(|()| socket.read_exact(&mut bytes)) {
            Ok(()) => Answer::from_bytes(bytes),
            Err(why) => {
                warn!(%why, "the supervisor does not say what this session may have");
                Answer::default()
            }
        }
    }
}

impl Ledger for Asking {
    fn park(&self, payer: Payer, max: u32) -> bool {
        self.ask(Ask::PARKED, Some(payer), max, 1).granted == 1
    }

    fn unpark(&self) {
        self.ask(Ask::PARKED, None, 0, 0);
    }

    fn take_requests(&self, payer: Payer, per_second: u32, count: u64) -> Result<u64, u64> {
        match self.ask(Ask::REQUESTS, Some(payer), per_second, count) {
            // Nobody answers any more.
            Answer { granted: 0, more: 0 } => Err(1000),
            Answer { granted: 0, more } => Err(more),
            Answer { granted, .. } => Ok(granted),
        }
    }
}

impl TenantCounter for Asking {
    fn may_begin(&self, tenant: u64, per_second: u32) -> bool {
        self.ask(Ask::BEGIN, Some(Payer::Tenant(tenant)), per_second, 1).granted == 1
    }

    fn take_place(&self, tenant: u64, max: Option<u32>) -> bool {
        self.ask(Ask::SESSION, Some(Payer::Tenant(tenant)), max.unwrap_or(0), 1).granted == 1
    }
}

// ---- the supervisor's side -------------------------------------------------------------------------------------------

/// What all sessions have together.
#[derive(Debug, Default)]
pub(super) struct Books {
    parked: Places,
    requests: Rates,
    sessions: Places,
    /// The sessions that each tenant begins.
    begun: Rates,
    /// The memory that is lent to the processes.
    pub(super) memory: MemoryBooks,
}

/// What a session has of it, and the socket over which its process asks.
#[derive(Debug)]
pub(super) struct Account {
    peer: Peer,
    /// The tenant for which the process asks, once it has named one.
    tenant: Option<u64>,
    /// For whom the session counts among those without a connection.
    parked: Option<Payer>,
    /// For whom it counts among a tenant's sessions, if these have a limit.
    session: Option<Payer>,
    /// The number of the process among those that are lent memory.
    borrower: u64,
}

impl Account {
    /// Creates the account of a client's session, which has nothing.
    pub(super) fn new(peer: Peer) -> Self {
        Self { peer, tenant: None, parked: None, session: None, borrower: 0 }
    }

    /// Returns for whom a question counts.
    fn payer(&mut self, ask: &Ask) -> Payer {
        if ask.tenant != 0 {
            self.tenant.get_or_insert(ask.tenant);
        }
        self.tenant.map_or_else(|| Payer::of(self.peer, None), Payer::Tenant)
    }
}

impl Books {
    /// Creates the books of a worker whose sessions may have so much memory together, if that has a limit.
    pub(super) fn new(memory_total_bytes: Option<u64>) -> Self {
        Self { memory: MemoryBooks::new(memory_total_bytes), ..Self::default() }
    }

    /// Answers a question; what nobody can ask is granted nothing. Times are milliseconds of any clock that only goes forward.
    fn answer(&mut self, account: &mut Account, ask: Ask, now_ms: u64) -> Answer {
        if let Some(granted) = self.memory.answer(&mut account.borrower, ask.kind, ask.amount, now_ms) {
            return Answer { granted, more: 0 };
        }
        let payer = account.payer(&ask);
        match ask.kind {
            Ask::PARKED if ask.amount == 0 => {
                self.unpark(account);
                Answer::default()
            }
            Ask::PARKED => {
                if account.parked.is_none() && self.parked.take(payer, ask.limit) {
                    account.parked = Some(payer);
                }
                Answer { granted: account.parked.is_some().into(), more: 0 }
            }
            Ask::REQUESTS => {
                let rate = Rate::per_second(ask.limit);
                let taken = self.requests.take_some(payer, rate, ask.amount, now_ms);
                taken.map_or_else(|more| Answer { granted: 0, more }, |granted| Answer { granted, more: 0 })
            }
            Ask::BEGIN => {
                let rate = Rate::per_second(ask.limit);
                let has_one = self.begun.of(payer, rate, now_ms).take(rate, now_ms);
                Answer { granted: has_one.into(), more: 0 }
            }
            // The process has named its tenant with that.
            Ask::SESSION if ask.limit == 0 => Answer { granted: 1, more: 0 },
            Ask::SESSION => {
                if account.session.is_none() && self.sessions.take(payer, ask.limit) {
                    account.session = Some(payer);
                }
                Answer { granted: account.session.is_some().into(), more: 0 }
            }
            Ask::MEMORY_TOTAL => {
                if let Payer::Tenant(tenant) = payer {
                    self.memory.bound(&mut account.borrower, tenant, ask.amount);
                }
                Answer::default()
            }
            _ => Answer::default(),
        }
    }

    fn unpark(&mut self, account: &mut Account) {
        account.parked.take().into_iter().for_each(|payer| self.parked.give_back(payer));
    }

    /// Takes back what a session has that has ended.
    pub(super) fn close(&mut self, account: &mut Account, now_ms: u64) {
        self.memory.end(std::mem::take(&mut account.borrower), now_ms);
        self.unpark(account);
        account.session.take().into_iter().for_each(|payer| self.sessions.give_back(payer));
    }
}

/// The questions of one process.
#[derive(Debug)]
pub(super) struct Asked {
    /// The socket; `None` once the process has closed it, or does not take its answers.
    pub(super) socket: Option<mio::net::UnixStream>,
    /// Whether there may be something to read.
    pub(super) is_ready: bool,
    partial: [u8; ASK_BYTES],
    len: usize,
    account: Account,
}

impl Asked {
    /// Creates the end of a socket to the process of a client's session; returns it with the process's end.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn pair(peer: Peer) -> io::Result<(Self, OwnedFd)> {
        let (socket, given) = UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        let socket = Some(mio::net::UnixStream::from_std(socket));
        let (partial, len) = ([0; ASK_BYTES], 0);
        Ok((Self { socket, is_ready: true, partial, len, account: Account::new(peer) }, given.into()))
    }

    /// Answers what was asked, for a turn.
    pub(super) fn turn(&mut self, books: &mut Books, now_ms: u64) {
        for _ in 0..TURN_ASKS {
            let Some(socket) = self.socket.as_mut().filter(|_| self.is_ready) else { return };
            match socket.read(self.partial.get_mut(self.len..).unwrap_or_default()) {
                Ok(0) => self.socket = None,
                Ok(len) => {
                    self.len += len;
                    if self.len < ASK_BYTES {
                        continue;
                    }
                    self.len = 0;
                    let ask = Ask::from_bytes(self.partial);
                    let answer = books.answer(&mut self.account, ask, now_ms).to_bytes();
                    // A process waits for each answer before it asks again, so there is room.
                    if !matches!(socket.write(&answer), Ok(ANSWER_BYTES)) {
                        info!(peer = %self.account.peer, "a session's process does not take its answers: it gets no more");
                        self.socket = None;
                    }
                }
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) if why.kind() == ErrorKind::WouldBlock => self.is_ready = false,
                Err(_) => self.socket = None,
            }
        }
    }

    /// Returns the number of the process among those that are lent memory.
    pub(super) fn borrower(&self) -> u64 {
        self.account.borrower
    }

    /// Takes back what the session has; its process has ended.
    pub(super) fn end(&mut self, books: &mut Books, now_ms: u64) {
        self.socket = None;
        books.close(&mut self.account, now_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory_books::Kind;
    use super::*;
    use std::net::SocketAddr;

    fn ask(kind: u32, tenant: u64, limit: u32, amount: u64) -> Ask {
        Ask { kind, limit, tenant, amount }
    }

    fn account(last: u8) -> Account {
        Account::new(Peer::Tcp(SocketAddr::from(([10, 0, 0, last], 1))))
    }

    #[test]
    fn questions_and_answers_come_back() {
        let asked = ask(7, u64::MAX - 1, u32::MAX - 2, 3);
        assert_eq!(Ask::from_bytes(asked.to_bytes()), asked);
        let answer = Answer { granted: u64::MAX - 1, more: 2 };
        assert_eq!(Answer::from_bytes(answer.to_bytes()), answer);
    }

    #[test]
    fn a_process_has_one_place_and_one_tenant() {
        let mut books = Books::default();
        let (mut a, mut b, mut c) = (account(1), account(2), account(1));
        let mut park = |account: &mut Account, tenant, limit, amount| {
            books.answer(account, ask(Ask::PARKED, tenant, limit, amount), 0).granted
        };
        // Twice is once.
        assert_eq!([park(&mut a, 5, 1, 1), park(&mut a, 5, 1, 1), park(&mut b, 5, 1, 1)], [1, 1, 0]);
        // Who has named a tenant asks for that one, whatever it says later.
        assert_eq!([park(&mut b, 6, 1, 1), park(&mut c, 6, 1, 1)], [0, 1]);
        park(&mut a, 6, 1, 0);
        assert_eq!([park(&mut b, 0, 1, 1), park(&mut a, 5, 1, 1)], [1, 0]);
        books.close(&mut b, 0);
        books.close(&mut b, 0);
        let answer = books.answer(&mut a, ask(Ask::PARKED, 5, 1, 1), 0);
        assert_eq!(answer.granted, 1, "what an ended process had is free, once");
        assert_eq!(books.answer(&mut account(1), ask(99, 5, 1, 1), 0), Answer::default());
    }

    #[test]
    fn a_tenants_processes_share_its_rate() {
        let mut books = Books::default();
        let (mut a, mut b, mut c) = (account(1), account(2), account(3));
        let mut take = |account: &mut Account, tenant, amount, now_ms| {
            let answer = books.answer(account, ask(Ask::REQUESTS, tenant, 100, amount), now_ms);
            (answer.granted, answer.more)
        };
        assert_eq!(take(&mut a, 5, 60, 0), (60, 0));
        assert_eq!(take(&mut b, 5, 60, 0), (40, 0));
        // Two at a time, as there are a hundred in a second.
        assert_eq!([take(&mut a, 5, 60, 0), take(&mut b, 5, 1, 5)], [(0, 20), (0, 15)]);
        assert_eq!(take(&mut b, 5, 60, 20), (2, 0));
        assert_eq!(take(&mut c, 0, u64::MAX, 20), (100, 0), "another has its own");
        assert_eq!(take(&mut c, 6, 1, 20), (1, 0));
    }

    /// A process has one of its tenant's sessions, whatever it asks for, and takes none of another's.
    #[test]
    fn a_process_is_one_session_of_one_tenant() {
        let mut books = Books::default();
        let mut accounts: Vec<_> = (0..5).map(account).collect();
        let mut take = |books: &mut Books, at: usize, tenant, max| {
            books.answer(&mut accounts[at], ask(Ask::SESSION, tenant, max, 1), 0).granted
        };
        // Which process asks for which tenant with which limit, and whether it has a place then.
        for (at, tenant, max, granted) in [
            (0, 5, 2, 1),
            (0, 5, 2, 1),
            (0, 6, 1, 1),
            (1, 5, 2, 1),
            (2, 5, 2, 0),
            // Another key of the tenant's may have another limit, or none.
            (3, 5, 0, 1),
            (3, 6, 3, 1),
            (2, 5, 3, 0),
            (4, 6, 1, 1),
        ] {
            assert_eq!(take(&mut books, at, tenant, max), granted, "{at} for {tenant} of {max}");
        }
        books.close(&mut accounts[0], 0);
        books.close(&mut accounts[0], 0);
        let mut take =
            |at: usize, max| books.answer(&mut accounts[at], ask(Ask::SESSION, 5, max, 1), 0).granted;
        assert_eq!([take(2, 2), take(2, 3), take(0, 3)], [0, 1, 0], "what has ended is free, once");
    }

    #[test]
    fn a_tenants_processes_begin_so_many_in_a_second() {
        let mut books = Books::default();
        let mut begin = |last, tenant, per_second, now_ms| {
            books.answer(&mut account(last), ask(Ask::BEGIN, tenant, per_second, 1), now_ms).granted
        };
        for (at, (tenant, now_ms, granted)) in
            [(5, 0, 1), (5, 0, 1), (5, 0, 0), (6, 0, 1), (5, 499, 0), (5, 500, 1), (5, 500, 0)]
                .into_iter()
                .enumerate()
        {
            assert_eq!(begin(at as u8, tenant, 2, now_ms), granted, "{tenant} at {now_ms} ms");
        }
    }

    /// A process says once what its tenant may have, and counts for no other; without a tenant it has no such bound.
    #[test]
    fn a_process_has_the_memory_of_its_tenant() {
        let mut books = Books::new(Some(100));
        let mut accounts: Vec<_> = (0..4).map(account).collect();
        let mut said = |at: usize, tenant, bytes| {
            books.answer(&mut accounts[at], ask(Ask::MEMORY_TOTAL, tenant, 0, bytes), 0);
            books.answer(&mut accounts[at], ask(Kind::Left as u32, 0, 0, 0), 0).granted
        };
        assert_eq!([said(0, 5, 40), said(0, 5, 50), said(0, 6, 50)], [40, 40, 40]);
        assert_eq!([said(1, 5, 30), said(2, 6, 200), said(3, 0, 30)], [30, 100, 100]);
        let take = ask(Kind::Take as u32, 0, 0, 25);
        assert_eq!(books.answer(&mut accounts[0], take, 0).granted, 25);
        assert_eq!([1, 2, 3].map(|at| books.answer(&mut accounts[at], take, 0).granted), [5, 25, 25]);
        books.close(&mut accounts[0], 0);
        assert_eq!([1, 2, 3].map(|at| books.answer(&mut accounts[at], take, 0).granted), [25, 20, 0]);
    }

    #[test]
    fn without_a_tenant_an_address_counts() {
        let mut books = Books::default();
        let mut parked = |last| books.answer(&mut account(last), ask(Ask::PARKED, 0, 2, 1), 0).granted;
        assert_eq!([parked(1), parked(1), parked(1), parked(2)], [1, 1, 0, 1]);
    }

    #[test]
    fn answers_come_in_order_however_questions_are_cut() {
        let (mut asked, given) = Asked::pair(Peer::Local).expect("a socket");
        let mut socket = UnixStream::from(given);
        let mut books = Books::default();
        let (mut answers, mut bytes) = (Vec::new(), [0; ANSWER_BYTES]);
        let questions: Vec<u8> =
            [1, 0, 1, 1].iter().flat_map(|amount| ask(Ask::PARKED, 1, 1, *amount).to_bytes()).collect();
        for piece in questions.chunks(7) {
            socket.write_all(piece).expect("sent");
            asked.is_ready = true;
            asked.turn(&mut books, 0);
        }
        for _ in 0..4 {
            socket.read_exact(&mut bytes).expect("an answer");
            answers.push(Answer::from_bytes(bytes).granted);
        }
        assert_eq!(answers, [1, 0, 1, 1]);
        asked.end(&mut books, 0);
        assert!(books.answer(&mut account(1), ask(Ask::PARKED, 1, 1, 1), 0).granted == 1);
    }

    #[test]
    fn who_only_asks_is_not_listened_to_for_ever() {
        let (mut asked, given) = Asked::pair(Peer::Local).expect("a socket");
        let mut socket = UnixStream::from(given);
        socket.set_nonblocking(true).expect("a socket");
        let (mut books, mut rounds) = (Books::default(), 0);
        while asked.socket.is_some() {
            while socket.write(&ask(Ask::PARKED, 1, 1, 1).to_bytes()).is_ok() {}
            asked.is_ready = true;
            asked.turn(&mut books, 0);
            rounds += 1;
            assert!(rounds < 1_000_000, "answers nobody takes have no end");
        }
    }
}
