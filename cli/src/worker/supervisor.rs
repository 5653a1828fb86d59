//! `--isolate process`: accepts clients and starts a process for each, so that a fault in the GPU runtime or in a session's
//! process reaches no other session.
//!
//! One thread. It never loads a GPU's runtime itself, reads no message, and owns nothing of a session but the process's
//! number and what the process writes to its standard error.

use super::device_time::DeviceTime;
use super::ledger::Books;
use super::metrics::Metrics;
use super::pending::{Peeked, Pending};
use super::records::Records;
use super::report::refuse;
use super::session::{Session, Shared};
use hipr_hip::clear_exchange;
use hipr_io::{Address, Listener, Payer, Peer, Rate, Rates, Seats};
use hipr_io_mio::Listen;
use hipr_proto::Limits;
use mio::net::UnixStream;
use mio::{Events, Interest, Poll, Token};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{debug, info, warn};

const LISTENER: Token = Token(0);
const CHILD: Token = Token(1);
const STOP: Token = Token(2);
/// The first poll token for connections and sessions.
const FIRST: usize = 3;

/// Maximum number of connections without a complete first message; a further one closes the oldest.
const PENDING_MAX: usize = 256;
/// Maximum number of processes whose clients have not proved their keys; a further one ends the oldest.
const AT_DOOR_MAX: usize = 16;
/// Time that a session may take to end after it was asked to.
const GRACE_MS: u64 = 5_000;

/// Configuration of a supervisor.
#[derive(Debug)]
pub(super) struct Plan {
    /// Address to listen on.
    pub(super) listen: Address,
    /// Whether clients have to prove a key; the sessions' processes see to that.
    pub(super) has_identity: bool,
    /// Whether other machines may use the worker without keys.
    pub(super) insecure_no_auth: bool,
    /// Maximum number of sessions, and of sessions of one address ([`Seats::new`]).
    pub(super) sessions_max: usize,
    pub(super) sessions_per_address_max: Option<usize>,
    /// Maximum number of connections of one address in a second.
    pub(super) connections_per_second: Option<u32>,
    /// Maximum bytes of memory of all sessions together.
    pub(super) memory_total_bytes: Option<u64>,
    /// Whether there may be such a limit, for all sessions or those of a tenant.
    pub(super) may_lend_memory: bool,
    /// Time that a client may take for its first message.
    pub(super) first_message_timeout_ms: u64,
    /// The protocol's limits.
    pub(super) limits: Limits,
    /// Arguments of a session's process in addition to this process's.
    pub(super) session_args: Vec<OsString>,
    /// Folder in which sessions exchange what they share.
    pub(super) exchange: PathBuf,
    /// Who hears of what happens to sessions.
    pub(super) records: Option<Arc<Records>>,
    /// What is counted, if somebody wants to know.
    pub(super) metrics: Option<Arc<Metrics>>,
    /// Who gives the sessions' processes their time of the emulated GPU.
    pub(super) device_time: Option<DeviceTime>,
}

/// Accepts clients and supervises the processes of their sessions.
#[derive(Debug)]
pub(super) struct Supervisor {
    plan: Plan,
    poll: Poll,
    local_addr: Address,
    /// The listening socket; `None` while the supervisor stops.
    listen: Option<Listen>,
    children: UnixStream,
    stops: UnixStream,
    pending: BTreeMap<usize, Pending>,
    pending_seats: Seats,
    rates: Rates,
    sessions: BTreeMap<usize, Session>,
    /// What sessions have together.
    books: Books,
    seats: Seats,
    next_token: usize,
    sessions_begun: u64,
    started: Instant,
    now_ms: u64,
    /// Time at which the remaining sessions are killed.
    kill_ms: Option<u64>,
}

/// Returns a socket that becomes readable after each of the signals.
fn signals(poll: &Poll, token: Token, signals: &[i32]) -> io::Result<UnixStream> {
    let (read, write) = std::os::unix::net::UnixStream::pair()?;
    for &signal in signals {
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    read.set_nonblocking(true)?;
    let mut read = UnixStream::from_std(read);
    poll.registry().register(&mut read, token, Interest::READABLE)?;
    Ok(read)
}

/// Reads the bytes that signal handlers wrote; returns whether there were any.
fn drain(mut signals: &UnixStream) -> bool {
    let mut bytes = [0; 64];
    let mut any = false;
    while matches!(signals.read(&mut bytes), Ok(len) if len > 0) {
        any = true;
    }
    any
}

impl Supervisor {
    /// Starts to listen, and to handle signals.
    ///
    /// # Errors
    /// The address cannot be read, is in use, or may not be used; the system has no descriptors.
    pub(super) fn bind(plan: Plan) -> io::Result<Self> {
        let listener = Listener::bind(&plan.listen)?;
        listener.check_access(plan.has_identity, plan.insecure_no_auth)?;
        let local_addr = listener.address()?;
        let poll = Poll::new()?;
        let listen = Some(Listen::new(listener, poll.registry(), LISTENER)?);
        let children = signals(&poll, CHILD, &[SIGCHLD])?;
        let stops = signals(&poll, STOP, &[SIGTERM, SIGINT, SIGHUP])?;
        let per_address_max = plan.sessions_per_address_max;
        let books = Books::new(plan.memory_total_bytes);
        Ok(Self {
            pending_seats: Seats::new(PENDING_MAX, per_address_max.map(|most| most.min(PENDING_MAX / 2))),
            rates: Rates::new(),
            seats: Seats::new(plan.sessions_max, per_address_max),
            plan,
            poll,
            local_addr,
            listen,
            children,
            stops,
            pending: BTreeMap::new(),
            sessions: BTreeMap::new(),
            books,
            next_token: FIRST,
            sessions_begun: 0,
            started: Instant::now(),
            now_ms: 0,
            kill_ms: None,
        })
    }

    /// Returns the address it listens on.
    pub(super) fn local_addr(&self) -> Address {
        self.local_addr.clone()
    }

    /// Serves until a signal arrives and all sessions have ended.
    ///
    /// # Errors
    /// Those of polling.
    pub(super) fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(256);
        while self.listen.is_some() || !self.sessions.is_empty() {
            match self.poll.poll(&mut events, self.timeout()) {
                Err(why) if why.kind() != ErrorKind::Interrupted => return Err(why),
                _ => {}
            }
            self.now_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
            for event in &events {
                match event.token() {
                    LISTENER => self.listen.iter_mut().for_each(Listen::handle_readable),
                    CHILD => self.reap(),
                    STOP => self.handle_stop(),
                    Token(token) => {
                        if let Some(session) = self.sessions.get_mut(&token) {
                            (session.readable, session.speaks) = (true, true);
                            session.asked.is_ready = true;
                        } else {
                            self.handle_pending(token, event.is_read_closed() || event.is_error());
                        }
                    }
                }
            }
            self.accept();
            let (books, now_ms) = (&mut self.books, self.now_ms);
            self.sessions.values_mut().for_each(|session| session.relay(books, now_ms));
            books.memory.advance(now_ms);
            if books.memory.take_has_words() {
                self.sessions.values_mut().for_each(|session| session.tell(books));
            }
            self.expire();
            self.plan.metrics.iter().for_each(|metrics| metrics.set_seats_taken(self.seats.taken()));
        }
        Ok(())
    }

    fn timeout(&self) -> Option<Duration> {
        let listen = self.listen.as_ref();
        let busy = listen.is_some_and(|listen| listen.is_ready(self.now_ms))
            || self.sessions.values().any(Session::is_ready);
        if busy {
            return Some(Duration::ZERO);
        }
        let pending =
            self.pending.values().map(|client| client.since_ms + self.plan.first_message_timeout_ms);
        let times = pending.chain(listen.and_then(Listen::retry_ms)).chain(self.kill_ms);
        let times = times.chain(self.books.memory.next_ms());
        times.min().map(|at_ms| Duration::from_millis(at_ms.saturating_sub(self.now_ms).max(1)))
    }

    // ---- pending ------------------------------------------------------------------------------------------------------

    fn accept(&mut self) {
        while let Some((mut stream, peer)) =
            self.listen.as_mut().and_then(|listen| listen.accept(self.now_ms))
        {
            if let Some(rate) = self.plan.connections_per_second.map(Rate::per_second)
                && !self.rates.of(Payer::of(peer, None), rate, self.now_ms).take(rate, self.now_ms)
            {
                let why = "too many connections of one address in a second";
                info!(%peer, %why, "connection refused");
                self.record(peer, "connection-rate", why);
                drop(stream);
                self.listen.iter_mut().for_each(Listen::handle_descriptor_free);
                continue;
            }
            let token = self.next_token;
            // 2^64 connections are not reached.
            self.next_token += 1;
            if let Err(why) = self.poll.registry().register(&mut stream, Token(token), Interest::READABLE) {
                debug!(%peer, %why, "cannot poll a connection");
                continue;
            }
            if self.pending.len() >= PENDING_MAX
                && let Some(oldest) =
                    self.pending.keys().next().copied().and_then(|oldest| self.dismiss(oldest))
            {
                let why = "too many connections without a first message";
                info!(peer = %oldest.peer, limit = PENDING_MAX, "connection closed: {why}");
                self.record(oldest.peer, "no-first-message", why);
            }
            if let Err(why) = self.pending_seats.take(peer) {
                info!(%peer, %why, "connection refused before its first message");
                self.record(peer, why.word(), why.to_string());
                self.listen.iter_mut().for_each(Listen::handle_descriptor_free);
                continue;
            }
            self.pending.insert(token, Pending { stream, peer, since_ms: self.now_ms, ended: false });
        }
    }

    /// Handles input, or the end of input, of a connection without a complete first message.
    fn handle_pending(&mut self, token: usize, ended: bool) {
        let Some(client) = self.pending.get_mut(&token) else { return };
        client.ended |= ended;
        let peer = client.peer;
        match client.peek(self.plan.limits, self.plan.has_identity) {
            Ok(Peeked::Incomplete) => return,
            Ok(Peeked::Complete) => return self.admit(token),
            Ok(Peeked::Routed { route, len }) => match client.skip(len) {
                Ok(()) => return self.pass(token, route),
                Err(why) => debug!(%peer, %why, "connection lost"),
            },
            Ok(Peeked::Disconnected) => {
                debug!(%peer, "connection closed before its first message was complete")
            }
            Ok(Peeked::NotTls) => {
                info!(%peer, "closing the connection: the other end does not speak TLS");
                client.refuse_plain();
                self.record(peer, "not-tls", "the other end does not speak TLS");
            }
            Ok(Peeked::NotHipr(why)) => info!(%peer, %why, "protocol error: closing the connection"),
            Err(why) => debug!(%peer, %why, "connection lost"),
        }
        self.dismiss(token);
    }

    /// Records a client for whom no process is started.
    fn record(&self, peer: Peer, word: &'static str, words: impl Into<String>) {
        if let Some(records) = &self.plan.records {
            refuse(records, peer, word, words);
        }
    }

    fn dismiss(&mut self, token: usize) -> Option<Pending> {
        let client = self.pending.remove(&token);
        client.iter().for_each(|client| self.pending_seats.give_back(client.peer));
        self.listen.iter_mut().for_each(Listen::handle_descriptor_free);
        client
    }

    /// Passes a connection to the process of the session that it goes on with. If there is none, a process is started for it, which tells
    /// the client so.
    fn pass(&mut self, token: usize, route: u64) {
        let Some(session) = self.sessions.values().find(|session| session.route() == route) else {
            return self.admit(token);
        };
        let Some(mut client) = self.pending.remove(&token) else { return };
        self.pending_seats.give_back(client.peer);
        let passed = self.poll.registry().deregister(&mut client.stream);
        if let Err(why) = passed.and_then(|()| session.hand(client.stream.into())) {
            info!(peer = %client.peer, %why, "connection refused: its session's process does not take it");
        }
        self.listen.iter_mut().for_each(Listen::handle_descriptor_free);
    }

    /// Starts a session for a connection whose first message is complete.
    fn admit(&mut self, token: usize) {
        let Some(mut client) = self.dismiss(token) else { return };
        let peer = client.peer;
        self.bound_door();
        if let Err(why) = self.seats.take(peer) {
            info!(%peer, %why, "connection refused");
            self.record(peer, why.word(), why.to_string());
            return;
        }
        self.sessions_begun += 1;
        let started = self.poll.registry().deregister(&mut client.stream).and_then(|()| {
            let args = self.plan.session_args.iter().cloned();
            let number = self.sessions_begun;
            let shared = Shared {
                exchange: &self.plan.exchange,
                records: self.plan.records.as_ref(),
                metrics: self.plan.metrics.as_ref(),
                may_be_lent: self.plan.may_lend_memory,
                device_time: self.plan.device_time.as_ref(),
            };
            Session::start(number, peer, client.stream.into(), shared, args)
        });
        let registered = started.and_then(|mut session| {
            session.register(self.poll.registry(), Token(token))?;
            Ok(session)
        });
        match registered {
            Ok(session) => drop(self.sessions.insert(token, session)),
            Err(why) => {
                self.seats.give_back(peer);
                self.plan.metrics.iter().for_each(|metrics| metrics.end_process(self.sessions_begun));
                warn!(%peer, %why, "cannot start a process for a session");
                self.record(peer, "no-process", why.to_string());
            }
        }
    }

    /// Ends the oldest process whose client has not proved its key, if there are as many as there may be: who has no key must not take
    /// the seats of those who have one.
    fn bound_door(&mut self) {
        if !self.plan.has_identity {
            return;
        }
        let max = (self.plan.sessions_max / 4).clamp(1, AT_DOOR_MAX);
        let mut at_door =
            self.sessions.values_mut().filter_map(|session| session.is_at_door().then_some(session));
        let oldest = at_door.next();
        if 1 + at_door.count() >= max
            && let Some(oldest) = oldest
        {
            oldest.turn_away();
        }
    }

    // ---- ends --------------------------------------------------------------------------------------------------------

    fn reap(&mut self) {
        drain(&self.children);
        let mut gone: Vec<_> = self.sessions.extract_if(.., |_, session| session.reap()).collect();
        for (_, session) in &mut gone {
            self.seats.give_back(session.peer());
            self.plan.metrics.iter().for_each(|metrics| metrics.end_process(session.number()));
            session.asked.end(&mut self.books, self.now_ms);
        }
        for pid in gone.iter().map(|(_, session)| session.pid()) {
            if let Err(why) = clear_exchange(&self.plan.exchange, pid) {
                debug!(%why, pid, "cannot remove an ended session's shared handles");
            }
        }
        self.listen.iter_mut().for_each(Listen::handle_descriptor_free);
    }

    /// Handles a signal: the first one ends all sessions gracefully, the second kills them.
    fn handle_stop(&mut self) {
        if !drain(&self.stops) {
            return;
        }
        if self.listen.take().is_none() {
            self.kill_ms = Some(self.now_ms);
            return;
        }
        info!(sessions = self.sessions.len(), "worker stopping");
        self.plan.metrics.iter().for_each(|metrics| metrics.drain());
        self.pending.clear();
        self.sessions.values_mut().for_each(Session::terminate);
        self.kill_ms = Some(self.now_ms + GRACE_MS);
    }

    fn expire(&mut self) {
        if self.kill_ms.is_some_and(|at_ms| at_ms <= self.now_ms) {
            self.kill_ms = None;
            self.sessions.values_mut().for_each(Session::kill);
        }
        let timeout_ms = self.plan.first_message_timeout_ms;
        let late = |client: &Pending| client.since_ms + timeout_ms <= self.now_ms;
        let tokens: Vec<_> =
            self.pending.iter().filter(|(_, client)| late(client)).map(|(&token, _)| token).collect();
        for client in tokens.into_iter().filter_map(|token| self.dismiss(token)) {
            info!(peer = %client.peer, timeout_ms, "connection closed: no first message");
        }
    }
}
