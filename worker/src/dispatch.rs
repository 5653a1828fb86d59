//! The dispatch: the one place that calls devices, on one thread; [`dispatch_thread`](crate::dispatch_thread) decides which.
//!
//! Sessions that have something to do stand in one line and get a turn each, so none holds up another.

mod borrowed;
mod lent;
mod recall;
mod records;

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Relaxed, SeqCst},
};
use std::task::Poll;
use std::time::{Duration, Instant};

use hipr_io::{
    Admission, Audit, AuditEvent, BodyPool, Budget, ConnId, Event, Grant, Mailbox, Notice, Peer, Who,
};
use hipr_proto::Features;
use tracing::{debug, error, info, warn};

use crate::apart::{Apart, Outstanding};
use crate::cache::Cache;
use crate::env::{Env, More};
use crate::lending::Lending;
use crate::memory_watch::MemoryWatch;
use crate::peers::Peers;
use crate::recalls::{Recalls, Short};
use crate::session::{Session, Turn};
use crate::stats::{Failures, Requests, SessionStats, Sessions};
use crate::{SessionLimits, Stats};
use hipr_device::{Device, Share, Waker};
use lent::{Begins, Debts};

/// What a dispatch has besides device and limits.
#[derive(Default)]
pub(crate) struct Beside {
    /// The cache of uploads.
    pub(crate) cache: Option<Cache>,
    /// The record of sessions.
    pub(crate) audit: Option<Arc<dyn Audit>>,
    /// What sessions may have together, in which the loop counts what it keeps ([`hipr_io::Config::budget`]).
    pub(crate) budget: Arc<Budget>,
    /// What copies between workers need.
    pub(crate) peers: Option<Peers>,
}

/// What a session had, while it is being released.
struct Ending {
    release: Outstanding<()>,
    budget: Arc<Budget>,
    weight_bytes: u64,
}

struct Seat {
    session: Session,
    /// The session's own limits, where they are not those of all.
    limits: Option<Box<SessionLimits>>,
    /// What the session may have with others.
    budget: Arc<Budget>,
    /// The bytes of the session that were counted there.
    weight_bytes: u64,
    /// Whom records of the session concern, if there are any.
    who: Option<Box<Who>>,
    /// The seat among those of its tenant.
    _admission: Option<Arc<Admission>>,
    /// Whether a wake-up has been sent and not handled.
    woken: Arc<AtomicBool>,
    /// Whether the session is in the queue for its turn.
    in_line: bool,
    /// Whether the session is among those that are told of free memory.
    is_told: bool,
    /// Where memory is lent, whether the session has what it is to begin with.
    begins: Begins,
    /// The number of the session, from 1 on.
    number: u64,
    /// What others can read of the session.
    stats: Arc<SessionStats>,
}

impl Seat {
    /// Lets others read what the session has.
    fn count(&mut self) {
        let Self { session, stats, .. } = self;
        stats.memory_bytes.store(session.memory_bytes(), Relaxed);
        stats.requests.store(session.requests(), Relaxed);
        stats.sent_bytes.store(session.handed_bytes(), Relaxed);
        if stats.device.get().is_none()
            && let Some(device) = session.device()
        {
            // It is counted in the same places as long as the session lives.
            let _ = stats.device.set(device);
        }
    }

    /// Counts what the session has now. It may give something back before its turn, and who is told of it needs the room.
    fn weigh(&mut self) {
        if self.budget.has_bound() {
            let before_bytes = mem::replace(&mut self.weight_bytes, self.session.weight_bytes());
            self.budget.use_bytes(before_bytes, self.weight_bytes);
        }
    }
}

/// All sessions and their work on the device, without channel, and without threads but the timer of a recall of leases and two for work
/// that takes long: the handler behind an event loop.
///
/// [`Worker`](crate::Worker) runs it on the loop's thread or on one of its own. Whoever has a transport or a loop of their own calls it
/// directly: [`handle_event`](Self::handle_event) with what the loop says, [`handle_wake`](Self::handle_wake) with what the
/// device says, and [`step`](Self::step) until there is nothing to do. Answers leave through the [`Mailbox`]. Nothing in it
/// waits. It stays on the thread that made it; dropping it releases all sessions.
///
/// ```
/// use std::sync::{Arc, mpsc};
///
/// use hipr_io::{Event, Mailbox, Peer, Slots};
/// use hipr_worker::device::null::Null;
/// use hipr_worker::{Dispatch, SessionLimits, Stats};
///
/// let mailbox = Arc::new(Mailbox::new(|| println!("there is a notice for the loop")));
/// let (wake, wakes) = mpsc::channel();
/// let wake = move |conn| drop(wake.send(conn));
/// let mut dispatch = Dispatch::new(Arc::new(Null), SessionLimits::default(), mailbox.clone(), wake, &Stats::default());
///
/// // A loop names its connections; what it reads becomes batches in `hipr_io::Link`.
/// let conn = Slots::default().insert(|_| ()).expect("an empty table has room");
/// dispatch.handle_event(Event::Opened { conn, peer: Peer::Local, grant: None });
/// dispatch.handle_event(Event::Ended { conn });
/// loop {
///     while dispatch.step() {}
///     match wakes.try_recv() {
///         Ok(conn) => dispatch.handle_wake(conn),
///         Err(_) => break,
///     }
/// }
/// let mut notices = Vec::new();
/// mailbox.take(&mut notices);
/// assert!(notices[0].conn == conn && notices[0].close);
/// ```
pub struct Dispatch {
    device: Arc<dyn Device>,
    limits: SessionLimits,
    cache: Option<Cache>,
    mailbox: Arc<Mailbox>,
    wake: Arc<dyn Fn(ConnId) + Send + Sync>,
    requests: Arc<Requests>,
    failures: Arc<Failures>,
    sessions: Arc<Sessions>,
    seats: BTreeMap<ConnId, Seat>,
    line: VecDeque<ConnId>,
    /// The session that had the last turn, and its number of consecutive turns before.
    last: Option<ConnId>,
    last_repeated: u32,
    leases: Rc<Cell<usize>>,
    recalls: Recalls,
    memory: MemoryWatch,
    bodies: BodyPool,
    apart: Apart,
    /// Releases what sessions had, so that it does not wait for other long work.
    releases: Apart,
    /// Sessions that have ended, while what they had is being released.
    ending: BTreeMap<ConnId, Ending>,
    /// What sessions may have together.
    lending: Lending,
    /// What is to be said to who lends the memory.
    debts: Debts,
    audit: Option<Arc<dyn Audit>>,
    /// Number of sessions that have begun.
    sessions_begun: u64,
    /// Sessions that have ended before their connections: whom their records concern, and the device time that they have had.
    unrecorded: BTreeMap<ConnId, (Box<Who>, Option<u64>)>,
    /// What copies between workers need.
    peers: Option<Peers>,
    /// Sessions that read memory of another one, and which that is.
    readers: BTreeMap<ConnId, ConnId>,
}

impl fmt::Debug for Dispatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (device, sessions) = (self.device.name(), self.seats.len());
        f.debug_struct("Dispatch").field("device", &device).field("sessions", &sessions).finish()
    }
}

impl Dispatch {
    /// Consecutive turns after which a session counts as having no competitor; it then gets larger turns.
    const ALONE_TURNS: u32 = 16;
    /// Time after which [`turn`](Self::turn) leaves the rest for the next time.
    const TURN: Duration = Duration::from_millis(4);
    /// Number of sessions' turns between two looks at the clock.
    const STEPS: usize = 4;
    /// Divisor of a turn's bytes for a session that has competitors.
    const SHARES: usize = 4;

    /// Creates a dispatch without sessions. `limits.unsent_max_bytes` has to be the loop's
    /// ([`hipr_io::Config::unsent_max_bytes`]). `wake` is called on threads of the device with connections that then have
    /// to be passed to [`handle_wake`](Self::handle_wake). Requests are counted in `stats`.
    pub fn new(
        device: Arc<dyn Device>,
        limits: SessionLimits,
        mailbox: Arc<Mailbox>,
        wake: impl Fn(ConnId) + Send + Sync + 'static,
        stats: &Stats,
    ) -> Self {
        Self::with(device, limits, Beside::default(), mailbox, wake, stats)
    }

    /// Creates a dispatch without sessions that has more than device and limits.
    pub(crate) fn with(
        device: Arc<dyn Device>,
        mut limits: SessionLimits,
        beside: Beside,
        mailbox: Arc<Mailbox>,
        wake: impl Fn(ConnId) + Send + Sync + 'static,
        stats: &Stats,
    ) -> Self {
        let Beside { cache, audit, budget, peers } = beside;
        let lending = Lending::new(limits.memory_total_bytes, budget);
        let lacks = |has: bool, feature| if has { Features::NONE } else { feature };
        let lacking = lacks(device.has_kernel_rules(), Features::KERNEL_RULES)
            .union(lacks(device.can_place(), Features::PLACES.union(Features::MEM_INFO)))
            .union(lacks(device.can_share(), Features::SHARED))
            .union(lacks(device.can_map(), Features::MAPPINGS))
            .union(lacks(device.can_keep_apart(), Features::APART))
            .union(lacks(cache.is_some(), Features::CACHE))
            .union(lacks(peers.is_some(), Features::CAPABILITIES));
        limits.features = limits.features.map(|features| features.without(lacking));
        limits.bound_total(u64::MAX);
        let (seats, line, last, last_repeated) = Default::default();
        let (wake, requests) = (Arc::new(wake), stats.requests_counters());
        let (failures, sessions) = (stats.failures_counters(), stats.sessions_counters());
        let bodies = BodyPool::new(limits.chunk_bytes);
        Self {
            device,
            limits,
            cache,
            mailbox,
            wake,
            requests,
            failures,
            sessions,
            seats,
            line,
            last,
            last_repeated,
            leases: Rc::default(),
            recalls: Recalls::default(),
            memory: MemoryWatch::default(),
            bodies,
            apart: Apart::default(),
            releases: Apart::default(),
            ending: BTreeMap::new(),
            lending,
            debts: Debts::default(),
            audit,
            sessions_begun: 0,
            unrecorded: BTreeMap::new(),
            peers,
            readers: BTreeMap::new(),
        }
    }

    /// Handles an event of the loop. Requests are not executed before [`step`](Self::step).
    pub fn handle_event(&mut self, event: Event) {
        match event {
            Event::Opened { conn, peer, grant } => {
                let known = grant.as_deref().map(|admission| &**admission);
                let limits = self.open(conn, peer, grant.as_deref());
                let total_bytes = limits.as_deref().unwrap_or(&self.limits).memory_total_bytes;
                let budget = self.lending.begin(known, total_bytes);
                budget.use_bytes(0, self.limits.rings_bytes);
                let who = self.record_begin(peer, known);
                let (woken, in_line, is_told, begins) = Default::default();
                let mut session = Session::new(conn, peer, Arc::clone(&self.failures));
                match (&grant, &self.peers) {
                    (Some(admission), _) if admission.is_by_capability() => session.restrict_to_capability(),
                    (Some(admission), Some(peers)) => peers.capabilities.begin_session(conn, admission),
                    _ => {}
                }
                let weight_bytes = 0;
                let _admission = grant;
                let (number, stats) = (self.sessions_begun, self.sessions.begin(self.sessions_begun));
                let seat = Seat {
                    session,
                    limits,
                    budget,
                    weight_bytes,
                    who,
                    _admission,
                    woken,
                    in_line,
                    is_told,
                    begins,
                    number,
                    stats,
                };
                self.seats.insert(conn, seat);
                self.listen_to_lender(conn);
            }
            Event::Batch { conn, batch } => self.tell(conn, |session| session.handle_batch(batch)),
            Event::Drained { conn, sent_bytes } => {
                self.tell(conn, |session| session.handle_drained(sent_bytes))
            }
            Event::Ended { conn } => self.tell(conn, Session::handle_end),
            Event::Parked { conn, reason } => {
                self.tell(conn, |session| session.set_away(true));
                self.record(conn, || AuditEvent::Park { reason: Some(reason.into()) });
            }
            Event::Resumed { conn, peer } => {
                self.tell(conn, |session| session.set_away(false));
                self.record(conn, || AuditEvent::Resume { from: Some(peer.to_string().into()) });
            }
            Event::Closed { conn, account } => {
                self.remove(conn);
                self.record_end(conn, *account);
                self.settle();
            }
        }
    }

    /// Says who begins a session; returns the limits that it has for itself.
    fn open(&self, conn: ConnId, peer: Peer, grant: Option<&Admission>) -> Option<Box<SessionLimits>> {
        match (grant.map(|admission| &**admission), peer) {
            (Some(Grant { tenant, .. }), _) if grant.is_some_and(Admission::is_by_capability) => {
                debug!(%conn, %peer, tenant, "another worker has a capability");
            }
            (Some(Grant { key, tenant, .. }), _) => {
                info!(%conn, %peer, tenant, key = %key.fingerprint(), "session opened");
            }
            (None, Peer::Process { .. }) => info!(%conn, %peer, "session opened"),
            (None, _) => debug!(%conn, %peer, "session opened"),
        }
        let grant = grant?;
        let memory_max_bytes = self.limits.memory_max_bytes.min(grant.memory_max_bytes.unwrap_or(u64::MAX));
        let kernel_timeout = grant.kernel_timeout_s.map(|seconds| Duration::from_secs(seconds.into()));
        let share = Some(Share { tenant: grant.tenant_number(), weight: grant.weight, kernel_timeout });
        let mut limits = SessionLimits { memory_max_bytes, share, ..self.limits.clone() };
        limits.bound_total(grant.memory_total_bytes.unwrap_or(u64::MAX));
        Some(Box::new(limits))
    }

    /// Calls `say` with a session, unless it has ended, and queues it for a turn.
    fn tell(&mut self, conn: ConnId, say: impl FnOnce(&mut Session)) {
        if let Some(seat) = self.seats.get_mut(&conn) {
            say(&mut seat.session);
            Self::enqueue(&mut self.line, conn, seat);
            if seat.session.take_answer() {
                seat.weigh();
                self.pass_answer(conn);
            }
        }
    }

    /// Handles a wake-up by the device: a wait of this connection may be over.
    pub fn handle_wake(&mut self, conn: ConnId) {
        if let Some(seat) = self.seats.get_mut(&conn) {
            seat.woken.store(false, SeqCst);
            Self::enqueue(&mut self.line, conn, seat);
        }
        if !self.readers.is_empty() {
            self.wake_readers(conn);
        }
        self.heed_lender();
        if let Some(Poll::Ready(released)) = self.ending.get(&conn).map(|ending| ending.release.poll()) {
            if released.is_none() {
                error!(%conn, device = self.device.name(), "panic while releasing a session");
            }
            self.ending
                .remove(&conn)
                .into_iter()
                .for_each(|gone| gone.budget.use_bytes(gone.weight_bytes, 0));
            self.settle_lent();
            self.pass_answer(conn);
        }
        for short in [Short::Session(conn), Short::Others] {
            if let Some(silent) = self.recalls.take_late(short) {
                debug!(%conn, silent = silent.len(), "not all recalled memory was given back in time");
                self.withdraw(&silent);
                self.try_again(short, true);
            }
        }
        self.settle();
    }

    /// Runs the turn of the first session in the queue. Returns false if the queue is then empty, so that nothing has to be
    /// done until the next event or wake-up.
    pub fn step(&mut self) -> bool {
        if let Some(conn) = self.line.pop_front() {
            if !self.memory.is_idle() {
                self.memory.begin_turn();
            }
            self.run_session(conn);
            self.settle();
        }
        !self.line.is_empty()
    }

    /// Runs a turn of each session in the queue, but not for long: of those that are left the first comes first the next time. Returns
    /// false if the queue is then empty, so that nothing has to be done until the next event or wake-up.
    pub fn turn(&mut self) -> bool {
        let (mut has_turns, mut since) = (false, None);
        for turns in 1..=self.line.len() {
            has_turns = self.step();
            if turns.is_multiple_of(Self::STEPS) {
                let now = Instant::now();
                if now.duration_since(*since.get_or_insert(now)) >= Self::TURN {
                    break;
                }
            }
        }
        has_turns
    }

    fn enqueue(line: &mut VecDeque<ConnId>, conn: ConnId, seat: &mut Seat) {
        if !mem::replace(&mut seat.in_line, true) {
            line.push_back(conn);
        }
    }

    fn run_session(&mut self, conn: ConnId) {
        if let Some(seat) = self.seats.get_mut(&conn) {
            seat.in_line = false;
        }
        if self.lending.lender().is_some() && !self.take_ahead(conn) {
            return;
        }
        let Ok(owner) = self.lend_context(conn) else { return };
        let Some(mut seat) = self.seats.get_mut(&conn) else { return };
        let is_repeated = self.last.replace(conn) == Some(conn);
        self.last_repeated = if is_repeated { self.last_repeated.saturating_add(1) } else { 0 };
        let is_alone = self.last_repeated >= Self::ALONE_TURNS;
        let (wake, woken) = (&self.wake, &seat.woken);
        let mut limits = seat.limits.as_deref().unwrap_or(&self.limits);
        let within;
        let lender = self.lending.lender();
        let is_there = lender.is_some() && !seat.session.tries_last();
        let more = More { is_there, memory_max_bytes: limits.memory_max_bytes, lender };
        if seat.budget.has_bound() {
            let room_bytes = seat.budget.room_beside(seat.weight_bytes);
            let mut session_limits = seat.session.limits_within(room_bytes, limits, is_there);
            if self.lending.is_overdrawn() {
                session_limits.collect_total_max_bytes = 0;
            }
            within = session_limits;
            limits = &within;
        }
        let env = Env {
            device: &*self.device,
            limits,
            more,
            cache: self.cache.as_ref(),
            peers: self.peers.as_ref(),
            apart: &self.apart,
            requests: &self.requests,
            turn_max_bytes: self.limits.turn_max_bytes / if is_alone { 1 } else { Self::SHARES },
            budget: &seat.budget,
            leases: &self.leases,
            bodies: &self.bodies,
            waker: &|| {
                let (wake, woken) = (wake.clone(), woken.clone());
                Waker::new(move || {
                    if !woken.swap(true, SeqCst) {
                        wake(conn);
                    }
                })
            },
        };
        // A device that panics takes its session along, not the others.
        let Ok(turn) = catch_unwind(AssertUnwindSafe(|| seat.session.turn(&env))) else {
            error!(%conn, device = self.device.name(), "panic while executing a request; ending the session");
            // Nobody knows the state of a context that it had from another session.
            for conn in [Some(conn), owner].into_iter().flatten() {
                self.mailbox.post(Notice { close: true, ..Notice::new(conn) });
                self.remove(conn);
            }
            return;
        };
        if let Some(owner) = owner {
            self.return_context(conn, owner);
            let Some(again) = self.seats.get_mut(&conn) else { return };
            seat = again;
        }
        if !self.readers.is_empty() {
            // It may have freed what they read.
            self.wake_readers(conn);
            let Some(again) = self.seats.get_mut(&conn) else { return };
            seat = again;
        }
        seat.count();
        seat.weigh();
        let is_told = seat.session.is_told();
        if mem::replace(&mut seat.is_told, is_told) != is_told {
            self.memory.set_told(conn, is_told);
        }
        // The others are told before this session is answered.
        if !self.memory.is_idle() {
            self.tell_changes(Some(conn));
            let Some(again) = self.seats.get_mut(&conn) else { return };
            seat = again;
        }
        if let Some(notice) = seat.session.notice(turn == Turn::Over) {
            self.mailbox.post(notice);
        }
        match turn {
            Turn::More => Self::enqueue(&mut self.line, conn, seat),
            Turn::Blocked => {}
            Turn::Over => return self.remove(conn),
        }
        let (falls_short, has_answered) = (seat.session.take_shortage(), seat.session.take_answer());
        if has_answered {
            self.pass_answer(conn);
        }
        if falls_short {
            self.recall(conn);
        }
        self.settle_lent();
    }

    /// Tells all sessions that were told of free memory, apart from the one that had its turn and sees to that itself, if it has changed.
    fn tell_changes(&mut self, current: Option<ConnId>) {
        if !self.memory.has_changed(&*self.device) {
            return;
        }
        for conn in self.memory.take_told(current) {
            let Some(seat) = self.seats.get_mut(&conn) else { continue };
            seat.is_told = false;
            seat.session.tell_change();
            if let Some(notice) = seat.session.notice(false) {
                self.mailbox.post(notice);
            }
        }
    }

    /// Tells the sessions that asked for it that free memory has changed since the last turn. If no session has work, asks the device to
    /// wake the dispatch when its free memory changes.
    fn settle(&mut self) {
        if self.memory.is_idle() {
            return;
        }
        self.tell_changes(None);
        if self.line.is_empty() {
            self.memory.watch(&*self.device, &self.wake);
        }
    }

    fn retry(&mut self, conn: ConnId, is_last: bool) {
        if let Some(seat) = self.seats.get_mut(&conn) {
            seat.begins.retry();
            seat.session.retry(is_last);
            Self::enqueue(&mut self.line, conn, seat);
        }
    }

    /// Drops a session with everything it owns; what takes long to be released is released apart.
    fn remove(&mut self, conn: ConnId) {
        let Some(mut seat) = self.seats.remove(&conn) else { return };
        if let Some(peers) = &self.peers {
            peers.capabilities.end_session(conn);
            self.readers.remove(&conn);
            self.wake_readers(conn);
        }
        self.sessions.end(seat.number);
        seat.budget.use_bytes(self.limits.rings_bytes, 0);
        seat.session.forget_lease(&self.leases);
        if let Some(who) = seat.who.take() {
            self.unrecorded.insert(conn, (who, seat.session.device_ns()));
        }
        if let Some(owned) = seat.session.take_long() {
            let wake = Arc::clone(&self.wake);
            let release = self.releases.begin(Waker::new(move || wake(conn)), move || drop(owned));
            let (budget, weight_bytes) = (seat.budget.clone(), seat.weight_bytes);
            self.ending.insert(conn, Ending { release, budget, weight_bytes });
        } else {
            seat.budget.use_bytes(seat.weight_bytes, 0);
        }
        self.recalls.forget(Short::Session(conn));
        self.memory.set_told(conn, false);
        if let Some(error) = seat.session.untold() {
            warn!(%conn, %error, "the session ends before its client was told of an error");
        }
        if catch_unwind(AssertUnwindSafe(|| drop(seat))).is_err() {
            error!(%conn, device = self.device.name(), "panic while releasing a session");
        }
        self.settle_lent();
        // Who waits for its memory tries again when that has been released.
        if !self.ending.contains_key(&conn) {
            self.pass_answer(conn);
        }
        debug!(%conn, "session closed");
    }
}

impl Drop for Dispatch {
    fn drop(&mut self) {
        debug!(sessions = self.seats.len(), "dispatch stops");
        while let Some((&conn, _)) = self.seats.first_key_value() {
            self.remove(conn);
        }
    }
}
