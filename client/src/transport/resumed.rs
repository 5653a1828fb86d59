//! A session that goes on over another connection when the one it has is cut, while the program's calls wait.
//!
//! Whoever sends makes frames and sends them, whoever reads takes frames apart; both leave to a thread of its own what is to be done when the
//! connection is cut. That thread lives only as long as it takes.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};

use hipr_resume::{Claim, Endpoint, FIRST_BYTES, Name, Terms};
use hipr_tls::preamble::Collected;
use hipr_tls::random_bytes;

use super::line::{Line, claim_bytes, collect_answer};
use crate::flusher;

/// Bytes of the session that are made frames of at once; little enough for a cache.
const PIECE_BYTES: usize = 128 << 10;
/// Size of the buffer that the socket is read into.
const READ_BYTES: usize = 256 << 10;
/// Time between looks of a thread that waits for room.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Longest time of an attempt to connect again.
const ATTEMPT: Duration = Duration::from_secs(5);
/// Shortest time of an attempt, also if the time for all attempts is over sooner: with less none succeeds over a network.
const LAST_ATTEMPT: Duration = Duration::from_secs(1);
/// Time between the first attempts, which doubles, and the longest.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Makes a connection that claims a session.
type Connect = Box<dyn Fn(&Claim, Route, Duration) -> io::Result<Line> + Send + Sync>;
/// [`Terms::route`].
pub(crate) type Route = u64;
/// Is told the descriptors of each connection that takes the place of another.
type OnReconnect = Box<dyn Fn([RawFd; 2]) + Send + Sync>;

/// A session with its connection.
pub(crate) struct Resumed {
    this: Weak<Self>,
    connect: Connect,
    on_reconnect: OnceLock<OnReconnect>,
    name: Name,
    /// How long the program's calls wait for another connection.
    timeout: Duration,
    state: Mutex<State>,
    changed: Condvar,
    /// Number of threads that wait until the ring has room.
    waiting: AtomicUsize,
    /// Frames that are being sent: who has the lock sends.
    outgoing: Mutex<Vec<u8>>,
    incoming: Mutex<Incoming>,
}

impl fmt::Debug for Resumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resumed").finish_non_exhaustive()
    }
}

struct State {
    endpoint: Endpoint,
    line: Arc<Line>,
    /// The number of the connection.
    epoch: u32,
    link: Link,
    /// What has to be sent before the first frame.
    beginning: Vec<u8>,
    /// What has come of the worker's answer to it.
    answer: Collected,
    /// The terms of the session; `None` before the worker has answered.
    terms: Option<Terms>,
    io_timeout: Option<Duration>,
}

enum Link {
    Up,
    /// It was cut, and the thread makes another.
    Down,
    /// There will be no other: why.
    Lost(String),
    /// This side has said good-bye.
    Closed,
}

impl Link {
    /// Returns whether there is a connection; `false` while another is made.
    ///
    /// # Errors
    /// There will be no other.
    fn is_up(&self) -> io::Result<bool> {
        match self {
            Self::Up => Ok(true),
            Self::Down => Ok(false),
            Self::Lost(why) => Err(io::Error::other(why.clone())),
            Self::Closed => Err(ErrorKind::BrokenPipe.into()),
        }
    }
}

/// What was read and not taken: a range of the buffer, of the connection with this number.
struct Incoming {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    epoch: u32,
}

impl Incoming {
    fn has_bytes_of(&self, epoch: u32) -> bool {
        self.epoch == epoch && self.start < self.end
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl Resumed {
    /// Begins a session over the first connection that `connect` makes. The session may be without a connection for `timeout`.
    ///
    /// # Errors
    /// Those of `connect`.
    pub(crate) fn begin(
        connect: impl Fn(&Claim, Route, Duration) -> io::Result<Line> + Send + Sync + 'static,
        first: Duration,
        timeout: Duration,
    ) -> io::Result<Arc<Self>> {
        let name = Name::new(random_bytes()?);
        let claim = Claim { name, epoch: 0, taken: 0 };
        let line = connect(&claim, 0, first)?;
        let beginning = if matches!(line, Line::Tcp(_)) { claim_bytes(&claim) } else { Vec::new() };
        let state = State {
            endpoint: Endpoint::new(FIRST_BYTES, FIRST_BYTES),
            line: Arc::new(line),
            epoch: 0,
            link: Link::Up,
            beginning,
            answer: Collected::default(),
            terms: None,
            io_timeout: None,
        };
        let incoming = Incoming { buffer: vec![0; READ_BYTES].into(), start: 0, end: 0, epoch: 0 };
        Ok(Arc::new_cyclic(|this| Self {
            this: this.clone(),
            connect: Box::new(connect),
            on_reconnect: OnceLock::new(),
            name,
            timeout,
            state: Mutex::new(state),
            changed: Condvar::new(),
            waiting: AtomicUsize::new(0),
            outgoing: Mutex::default(),
            incoming: Mutex::new(incoming),
        }))
    }

    /// Calls `told` with the descriptors of each later connection. Has no effect the second time.
    pub(crate) fn on_reconnect(&self, told: impl Fn([RawFd; 2]) + Send + Sync + 'static) {
        let _ = self.on_reconnect.set(Box::new(told));
    }

    /// Returns whether the worker has not answered, so that it may be one that knows no sessions that outlive their connections.
    pub(crate) fn is_unanswered(&self) -> bool {
        lock(&self.state).terms.is_none()
    }

    /// Returns the connection that the session has.
    pub(crate) fn line(&self) -> Arc<Line> {
        Arc::clone(&lock(&self.state).line)
    }

    /// Sets the longest time that a read or a write may take.
    pub(crate) fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.io_timeout = timeout;
        match state.link {
            Link::Up => state.line.set_timeout(timeout),
            _ => Ok(()),
        }
    }

    /// Returns the state if the session has a connection, `None` if it waits for one.
    ///
    /// # Errors
    /// The session is lost, or this side has said good-bye.
    fn if_up(&self) -> io::Result<Option<MutexGuard<'_, State>>> {
        let state = lock(&self.state);
        Ok(state.link.is_up()?.then_some(state))
    }

    /// Waits until the session has a connection.
    fn up(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = lock(&self.state);
        let end = state.io_timeout.map(|timeout| Instant::now() + timeout);
        loop {
            if state.link.is_up()? {
                return Ok(state);
            }
            state = match end.map(|end| end.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return Err(ErrorKind::TimedOut.into()),
                Some(left) => {
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    // ---- writing -----------------------------------------------------------------------------------------------------

    /// Takes some of the bytes and sends what can be sent; returns how many. They arrive also if the connection is cut.
    ///
    /// # Errors
    /// The session is lost.
    pub(crate) fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            let mut state = self.up()?;
            let mut len = 0;
            for slice in slices {
                let wanted = slice.len().min(PIECE_BYTES - len);
                let pushed = state.endpoint.push(slice.get(..wanted).unwrap_or_default());
                len += pushed;
                if pushed < slice.len() {
                    break;
                }
            }
            if len == 0 {
                self.await_room(state)?;
                continue;
            }
            drop(state);
            self.flush()?;
            return Ok(len);
        }
    }

    /// Sends everything that the session has for its connection. What is not sent because that is cut is sent over the next.
    ///
    /// # Errors
    /// The session is lost, or this side has said good-bye.
    fn flush(&self) -> io::Result<()> {
        let sent = self.send_all(&mut lock(&self.outgoing));
        // Another thread may have had something to send while this one was about to give the lock back.
        self.flush_if_idle();
        sent
    }

    /// Sends what the session has, unless another thread sends: that one looks again when it has given the lock back.
    fn flush_if_idle(&self) {
        let has_output =
            || self.if_up().is_ok_and(|state| state.is_some_and(|state| state.endpoint.has_output()));
        while has_output()
            && let Some(mut outgoing) = try_lock(&self.outgoing)
        {
            // Whoever reads next hears of a failure.
            let _ = self.send_all(&mut outgoing);
        }
    }

    /// Does what [`flush`](Self::flush) does, with the lock of those who send.
    fn send_all(&self, outgoing: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let (line, epoch) = {
                let Some(mut state) = self.if_up()? else { return Ok(()) };
                outgoing.clear();
                outgoing.append(&mut state.beginning);
                state.endpoint.take_output(outgoing, PIECE_BYTES);
                if outgoing.is_empty() {
                    return Ok(());
                }
                (Arc::clone(&state.line), state.epoch)
            };
            if let Err(why) = line.send(outgoing) {
                self.cut(epoch, &why);
            }
        }
    }

    /// Waits a little for the other end to take something; hears that itself if no other thread reads. It never waits with the lock that
    /// readers need: what it has stowed may be what they wait for.
    fn await_room(&self, state: MutexGuard<'_, State>) -> io::Result<()> {
        self.waiting.fetch_add(1, SeqCst);
        let result = if let Some(mut incoming) = try_lock(&self.incoming) {
            let line = Arc::clone(&state.line);
            drop(state);
            let stowed = self.stow_some(&mut incoming);
            drop(incoming);
            if let Ok(false) = stowed {
                line.wait_for_input(LOOK_EVERY);
            }
            stowed.map(drop)
        } else {
            drop(self.changed.wait_timeout(state, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner));
            Ok(())
        };
        self.waiting.fetch_sub(1, SeqCst);
        result
    }

    /// Wakes threads that wait for room, after somebody has read.
    fn wake_waiting(&self) {
        if self.waiting.load(SeqCst) > 0 {
            drop(lock(&self.state));
            self.changed.notify_all();
        }
    }

    // ---- reading -----------------------------------------------------------------------------------------------------

    /// Reads bytes that have arrived, waiting for the first; returns 0 at the end of the stream.
    ///
    /// # Errors
    /// The session is lost; a time-out.
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        let result = self.read_some(&mut lock(&self.incoming), into);
        self.wake_waiting();
        result
    }

    /// Fills `into`; returns less at the end of the stream, or after a time-out or a signal.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn read_all(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut len = 0;
        while let Some(rest) = into.get_mut(len..).filter(|rest| !rest.is_empty()) {
            match self.read(rest) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(why) if len == 0 => return Err(why),
                // The next read says it, too.
                Err(_) => break,
            }
        }
        Ok(len)
    }

    fn read_some(&self, incoming: &mut Incoming, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut len = 0;
            let is_ended = self.with_frames(self.up()?, incoming, |endpoint, frames| {
                len = endpoint.receive(frames, into)?;
                Ok(endpoint.is_ended())
            })?;
            if len > 0 || is_ended {
                return Ok(len);
            }
            self.fill(incoming)?;
        }
    }

    /// Stows what has arrived, without waiting for it or for a connection; returns false if there is nothing.
    ///
    /// # Errors
    /// The session is lost, or this side has said good-bye.
    fn stow_some(&self, incoming: &mut Incoming) -> io::Result<bool> {
        let Some((line, epoch)) = self.if_up()?.map(|state| (Arc::clone(&state.line), state.epoch)) else {
            return Ok(false);
        };
        if !incoming.has_bytes_of(epoch) {
            if !line.has_input() {
                return Ok(false);
            }
            // Not over the session's connection: that may be another by now, over which nothing has arrived.
            self.fill_from(&line, epoch, incoming)?;
        }
        if let Some(state) = self.if_up()? {
            self.with_frames(state, incoming, Endpoint::stow)?;
        }
        Ok(true)
    }

    /// Has the session take what was read, and says what it has taken if that is due.
    fn with_frames<R>(
        &self,
        mut state: MutexGuard<'_, State>,
        incoming: &mut Incoming,
        take: impl FnOnce(&mut Endpoint, &mut &[u8]) -> Result<R, hipr_resume::Fault>,
    ) -> io::Result<R> {
        if incoming.epoch != state.epoch {
            (incoming.start, incoming.end, incoming.epoch) = (0, 0, state.epoch);
        }
        let mut bytes = incoming.buffer.get(incoming.start..incoming.end).unwrap_or_default();
        let taken = self.agree(&mut state, &mut bytes).and_then(|()| {
            take(&mut state.endpoint, &mut bytes).map_err(|why| {
                io::Error::new(ErrorKind::InvalidData, format!("the worker breaks the rules: {why}"))
            })
        });
        incoming.start = incoming.end - bytes.len();
        if let Err(why) = &taken {
            self.lose(&mut state, why.to_string());
        }
        let has_output = state.endpoint.has_output();
        drop(state);
        if has_output {
            self.flush_if_idle();
        }
        taken
    }

    /// Reads the worker's answer to the first claim, until that has come.
    fn agree(&self, state: &mut State, bytes: &mut &[u8]) -> io::Result<()> {
        if state.terms.is_some() || bytes.is_empty() {
            return Ok(());
        }
        state.terms = match &*state.line {
            Line::Tcp(_) => collect_answer(&mut state.answer, bytes)?,
            line => line.terms(),
        };
        if let Some(terms) = state.terms {
            let len = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
            state.endpoint.set_limits(len(terms.to_worker_max_bytes), len(terms.to_client_max_bytes));
        } else if state.answer.wanted().is_ok_and(|wanted| wanted == 0)
            || matches!(&*state.line, Line::Secured(_))
        {
            return Err(io::Error::new(ErrorKind::InvalidData, "the worker does not answer the claim"));
        }
        Ok(())
    }

    /// Waits for bytes of the connection, when all that were there are taken.
    fn fill(&self, incoming: &mut Incoming) -> io::Result<()> {
        let (line, epoch) = {
            let state = self.up()?;
            (Arc::clone(&state.line), state.epoch)
        };
        if incoming.has_bytes_of(epoch) { Ok(()) } else { self.fill_from(&line, epoch, incoming) }
    }

    /// Waits for bytes of the connection with this number.
    fn fill_from(&self, line: &Line, epoch: u32, incoming: &mut Incoming) -> io::Result<()> {
        (incoming.start, incoming.end, incoming.epoch) = (0, 0, epoch);
        match line.read(&mut incoming.buffer) {
            Ok(0) => self.cut(epoch, &ErrorKind::UnexpectedEof.into()),
            Ok(len) => incoming.end = len,
            Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                // A time-out of this side's making; the kernel's is another.
                if lock(&self.state).io_timeout.is_some() {
                    return Err(why);
                }
                self.cut(epoch, &why);
            }
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            Err(why) => self.cut(epoch, &why),
        }
        Ok(())
    }

    /// Returns whether a read would not wait: bytes of the stream have arrived, or its end, or the session is lost.
    pub(crate) fn has_input(&self) -> bool {
        let mut incoming = lock(&self.incoming);
        loop {
            let is_there = self.if_up().map(|state| {
                state.map(|state| state.endpoint.stowed_bytes() > 0 || state.endpoint.is_ended())
            });
            match is_there {
                Ok(None) => return false,
                Ok(Some(true)) | Err(_) => return true,
                Ok(Some(false)) => {}
            }
            match self.stow_some(&mut incoming) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(_) => return true,
            }
        }
    }

    // ---- connections -------------------------------------------------------------------------------------------------

    /// Handles that the connection with this number was cut, if it is still the session's.
    fn cut(&self, epoch: u32, why: &io::Error) {
        let mut state = lock(&self.state);
        if state.epoch != epoch || !matches!(state.link, Link::Up) {
            return;
        }
        let text = match why.kind() {
            ErrorKind::UnexpectedEof => "the worker closed the connection".to_owned(),
            _ => why.to_string(),
        };
        state.line.shutdown();
        let keeps_ms = state.terms.map_or(0, |terms| terms.timeout_ms);
        if keeps_ms == 0 || self.timeout.is_zero() {
            return self.lose(&mut state, text);
        }
        tracing::warn!("the link to the worker was cut ({text}); connecting again");
        state.endpoint.cut();
        state.link = Link::Down;
        let this = self.this.clone();
        let started = flusher::spawn("hipr-resume", move || {
            if let Some(this) = this.upgrade() {
                this.reconnect();
            }
        });
        if let Err(why) = started {
            self.lose(&mut state, format!("{text}; cannot start a thread to connect again: {why}"));
        }
    }

    fn lose(&self, state: &mut State, why: String) {
        if matches!(state.link, Link::Up | Link::Down) {
            state.line.shutdown();
            state.link = Link::Lost(why);
        }
        self.changed.notify_all();
    }

    /// Connects again until that succeeds, the time is over, or the worker knows no such session.
    fn reconnect(&self) {
        let begin = Instant::now();
        let end = begin + self.timeout;
        let mut wait = FIRST_WAIT;
        loop {
            let (claim, route) = {
                let mut state = lock(&self.state);
                if !matches!(state.link, Link::Down) {
                    return;
                }
                state.epoch = state.epoch.saturating_add(1);
                let claim = Claim { name: self.name, epoch: state.epoch, taken: state.endpoint.taken() };
                (claim, state.terms.map_or(0, |terms| terms.route))
            };
            let left = end.saturating_duration_since(Instant::now()).clamp(LAST_ATTEMPT, ATTEMPT);
            let attempt = (self.connect)(&claim, route, left).and_then(|line| {
                line.set_timeout(Some(left))?;
                let terms = line.enter(&claim)?;
                Ok((line, terms))
            });
            let mut state = lock(&self.state);
            if !matches!(state.link, Link::Down) {
                return;
            }
            let why = match attempt {
                Ok((line, terms)) => match self.go_on(&mut state, line, &terms) {
                    Ok(()) => {
                        drop(state);
                        let took_ms = begin.elapsed().as_millis();
                        tracing::warn!("connected to the worker again after {took_ms} ms; nothing was lost");
                        // What fails is found by who reads or writes.
                        let _ = self.flush();
                        return;
                    }
                    Err(why) => return self.lose(&mut state, why.to_string()),
                },
                Err(why) if why.kind() == ErrorKind::PermissionDenied => {
                    return self.lose(&mut state, why.to_string());
                }
                Err(why) => why,
            };
            tracing::debug!("cannot connect to the worker again: {why}");
            let now = Instant::now();
            if now >= end {
                let why = format!(
                    "the link to the worker was cut, and for {} ms there was no other: {why}",
                    self.timeout.as_millis()
                );
                return self.lose(&mut state, why);
            }
            // Clients that were cut off together do not come back together.
            let [jitter] = random_bytes().unwrap_or([128]);
            let pause = (wait / 2 + wait * u32::from(jitter) / 256).min(end - now);
            wait = (2 * wait).min(LONGEST_WAIT);
            drop(self.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn go_on(&self, state: &mut State, line: Line, terms: &Terms) -> io::Result<()> {
        let resumed = state.endpoint.resume(terms.taken);
        resumed.map_err(|why| {
            io::Error::new(ErrorKind::InvalidData, format!("the worker breaks the rules: {why}"))
        })?;
        line.set_timeout(state.io_timeout)?;
        if let Some(told) = self.on_reconnect.get() {
            told([line.socket().as_raw_fd(), -1]);
        }
        state.line = Arc::new(line);
        state.link = Link::Up;
        self.changed.notify_all();
        Ok(())
    }

    /// Says that nothing more comes, if that can be done without waiting, and ends the connection. Nothing is read or written afterwards.
    pub(crate) fn shutdown(&self) {
        let mut last = Vec::new();
        let outgoing = try_lock(&self.outgoing);
        let mut state = lock(&self.state);
        if outgoing.is_some() && matches!(state.link, Link::Up) {
            state.endpoint.finish();
            last.append(&mut state.beginning);
            state.endpoint.take_output(&mut last, usize::MAX);
        }
        if !matches!(state.link, Link::Lost(_)) {
            state.link = Link::Closed;
        }
        state.line.close(&last);
        self.changed.notify_all();
    }
}
