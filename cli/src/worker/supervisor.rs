//! `--isolate process`: accepts clients and gives each a process of its own, so that what one session does to the GPU
//! runtime, or to its process, reaches no other.
//!
//! One thread. It never loads a GPU's runtime itself, reads no message, and owns nothing of a session but the process's
//! number and what the process writes to its standard error.

use super::door::{Guest, Look};
use super::session::Session;
use hipr_io::{Address, Listener};
use hipr_io_mio::Listen;
use hipr_proto::Limits;
use hipr_worker::device::hip::clear_exchange;
use mio::net::UnixStream;
use mio::{Events, Interest, Poll, Token};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tracing::{debug, info, warn};

const LISTENER: Token = Token(0);
const CHILD: Token = Token(1);
const STOP: Token = Token(2);
/// The first of the tokens for guests and sessions.
const FIRST: usize = 3;

/// Guests at a time. One more sends away the one that has said nothing for the longest: who means it speaks at once.
const GUESTS_MAX: usize = 256;
/// How long a session may take to end after it was asked to.
const GRACE_MS: u64 = 5_000;

/// What a supervisor is told.
#[derive(Debug)]
pub(super) struct Plan {
    /// Where to listen.
    pub(super) listen: Address,
    /// Sessions at a time.
    pub(super) sessions_max: usize,
    /// How long a client may take for its first message.
    pub(super) first_message_timeout_ms: u64,
    /// The protocol's limits.
    pub(super) limits: Limits,
    /// Arguments for a session's process, behind those of this one.
    pub(super) session_args: Vec<OsString>,
    /// The folder in which they tell each other what they share.
    pub(super) exchange: PathBuf,
}

/// The supervisor.
#[derive(Debug)]
pub(super) struct Supervisor {
    plan: Plan,
    poll: Poll,
    local_addr: Address,
    /// `None` when it stops.
    listen: Option<Listen>,
    children: UnixStream,
    stops: UnixStream,
    guests: BTreeMap<usize, Guest>,
    sessions: BTreeMap<usize, Session>,
    next_token: usize,
    sessions_begun: u64,
    started: Instant,
    now_ms: u64,
    /// When sessions that still live are killed.
    kill_ms: Option<u64>,
}

/// A socket from which something can be read after each of the signals.
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

/// Reads what signals wrote; whether there were any.
fn drain(mut signals: &UnixStream) -> bool {
    let mut bytes = [0; 64];
    let mut any = false;
    while matches!(signals.read(&mut bytes), Ok(len) if len > 0) {
        any = true;
    }
    any
}

impl Supervisor {
    /// Opens the port or the socket. From here on signals end it in order.
    ///
    /// # Errors
    /// The address is not one, is in use, or may not be used; the system has no descriptors.
    pub(super) fn bind(plan: Plan) -> io::Result<Self> {
        let listener = Listener::bind(&plan.listen)?;
        let local_addr = listener.address()?;
        let poll = Poll::new()?;
        let listen = Some(Listen::new(listener, poll.registry(), LISTENER)?);
        let children = signals(&poll, CHILD, &[SIGCHLD])?;
        let stops = signals(&poll, STOP, &[SIGTERM, SIGINT, SIGHUP])?;
        Ok(Self {
            plan,
            poll,
            local_addr,
            listen,
            children,
            stops,
            guests: BTreeMap::new(),
            sessions: BTreeMap::new(),
            next_token: FIRST,
            sessions_begun: 0,
            started: Instant::now(),
            now_ms: 0,
            kill_ms: None,
        })
    }

    /// The address it listens on.
    pub(super) fn local_addr(&self) -> Address {
        self.local_addr.clone()
    }

    /// Serves until a signal asks it to end and all sessions have.
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
                            session.readable = true;
                        } else {
                            self.handle_guest(token, event.is_read_closed() || event.is_error());
                        }
                    }
                }
            }
            self.accept();
            self.sessions.values_mut().for_each(Session::relay);
            self.expire();
        }
        Ok(())
    }

    fn timeout(&self) -> Option<Duration> {
        let listen = self.listen.as_ref();
        let busy = listen.is_some_and(|listen| listen.is_ready(self.now_ms))
            || self.sessions.values().any(|session| session.readable);
        if busy {
            return Some(Duration::ZERO);
        }
        let guests = self.guests.values().map(|guest| guest.since_ms + self.plan.first_message_timeout_ms);
        let times = guests.chain(listen.and_then(Listen::retry_ms)).chain(self.kill_ms);
        times.min().map(|at_ms| Duration::from_millis(at_ms.saturating_sub(self.now_ms).max(1)))
    }

    // ---- guests ------------------------------------------------------------------------------------------------------

    fn accept(&mut self) {
        while let Some((mut stream, peer)) =
            self.listen.as_mut().and_then(|listen| listen.accept(self.now_ms))
        {
            let token = self.next_token;
            // 2^64 connections are not reached.
            self.next_token += 1;
            if let Err(why) = self.poll.registry().register(&mut stream, Token(token), Interest::READABLE) {
                debug!(%peer, %why, "a connection cannot be polled");
                continue;
            }
            if self.guests.len() >= GUESTS_MAX
                && let Some((_, oldest)) = self.guests.pop_first()
            {
                info!(peer = %oldest.peer, limit = GUESTS_MAX, "connection closed: too many that say nothing");
            }
            self.guests.insert(token, Guest { stream, peer, since_ms: self.now_ms, ended: false });
        }
    }

    /// A guest said something, or ended.
    fn handle_guest(&mut self, token: usize, ended: bool) {
        let Some(guest) = self.guests.get_mut(&token) else { return };
        guest.ended |= ended;
        let peer = guest.peer;
        match guest.look(self.plan.limits) {
            Ok(Look::Wait) => return,
            Ok(Look::Ready) => return self.admit(token),
            Ok(Look::Gone) => debug!(%peer, "connection closed before its first message was complete"),
            Ok(Look::Stranger(why)) => info!(%peer, %why, "protocol error: the connection ends"),
            Err(why) => debug!(%peer, %why, "connection lost"),
        }
        self.dismiss(token);
    }

    fn dismiss(&mut self, token: usize) -> Option<Guest> {
        let guest = self.guests.remove(&token);
        self.listen.iter_mut().for_each(Listen::handle_descriptor_free);
        guest
    }

    /// A guest becomes a session.
    fn admit(&mut self, token: usize) {
        let Some(mut guest) = self.dismiss(token) else { return };
        let peer = guest.peer;
        let limit = self.plan.sessions_max;
        if self.sessions.len() >= limit {
            info!(%peer, limit, "connection refused: too many sessions");
            return;
        }
        self.sessions_begun += 1;
        let started = self.poll.registry().deregister(&mut guest.stream).and_then(|()| {
            let args = self.plan.session_args.iter().cloned();
            Session::start(self.sessions_begun, peer, guest.stream.into(), args)
        });
        let registered = started.and_then(|mut session| {
            self.poll.registry().register(&mut session.words, Token(token), Interest::READABLE)?;
            Ok(session)
        });
        match registered {
            Ok(session) => drop(self.sessions.insert(token, session)),
            Err(why) => warn!(%peer, %why, "no process can be had for a session"),
        }
    }

    // ---- ends --------------------------------------------------------------------------------------------------------

    fn reap(&mut self) {
        drain(&self.children);
        let gone: Vec<_> = self.sessions.extract_if(.., |_, session| session.reap()).collect();
        for pid in gone.iter().map(|(_, session)| session.pid()) {
            if let Err(why) = clear_exchange(&self.plan.exchange, pid) {
                debug!(%why, pid, "what a session shared stays named");
            }
        }
        self.listen.iter_mut().for_each(Listen::handle_descriptor_free);
    }

    /// The first signal ends everything in order, the second at once.
    fn handle_stop(&mut self) {
        if !drain(&self.stops) {
            return;
        }
        if self.listen.take().is_none() {
            self.kill_ms = Some(self.now_ms);
            return;
        }
        info!(sessions = self.sessions.len(), "the worker stops");
        self.guests.clear();
        self.sessions.values_mut().for_each(Session::terminate);
        self.kill_ms = Some(self.now_ms + GRACE_MS);
    }

    fn expire(&mut self) {
        if self.kill_ms.is_some_and(|at_ms| at_ms <= self.now_ms) {
            self.kill_ms = None;
            self.sessions.values_mut().for_each(Session::kill);
        }
        let timeout_ms = self.plan.first_message_timeout_ms;
        let late = |guest: &Guest| guest.since_ms + timeout_ms <= self.now_ms;
        let tokens: Vec<_> =
            self.guests.iter().filter(|(_, guest)| late(guest)).map(|(&token, _)| token).collect();
        for guest in tokens.into_iter().filter_map(|token| self.dismiss(token)) {
            info!(peer = %guest.peer, timeout_ms, "connection closed: no first message");
        }
    }
}
