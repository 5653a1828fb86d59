mod claims;

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hipr_resume::Registry;
use hipr_tls::PublicKey;
use tracing::{debug, info};

use claims::Parking;
use hipr_proto::Header;

use crate::ktls;
use crate::rates::RequestRates;
use crate::{
    AuditEvent, Config, ConnId, End, Event, Fault, Finish, Handler, LentKey, Link, Mailbox, NoSeat, Notice,
    Payer, Peer, Places, Pool, Rate, Rates, Seats, Slots, Stats, Stream, Turns, Who,
};

/// The sockets of an event loop: everything that differs between epoll and io_uring. The [`Driver`] does the rest.
///
/// Only [`Carrier::wait`] blocks. The carrier reports events by making their connections ready in the table;
/// the driver then calls [`failure`](Carrier::failure), [`write`](Carrier::write) and [`read`](Carrier::read).
pub trait Carrier {
    /// An accepted connection that has no [`ConnId`] yet.
    type Arrival;
    /// The state that the carrier keeps for a connection.
    type Socket;

    /// Waits until something happens, at most `timeout`; without a timeout as long as it takes.
    ///
    /// # Errors
    /// Those of the system; they end the loop.
    fn wait(&mut self, timeout: Option<Duration>, table: &mut Table<Self::Socket>) -> io::Result<()>;

    /// Returns whether this loop accepts connections.
    fn is_listening(&self) -> bool;

    /// Returns the time at which accepting should be attempted without another event; a time that has passed means at once.
    fn accept_at_ms(&self, now_ms: u64) -> Option<u64>;

    /// Accepts the next connection; returns `None` if there is none, or the turn's limit is reached.
    fn accept(&mut self, now_ms: u64) -> Option<(Self::Arrival, Peer)>;

    /// Handles a closed connection, whose file descriptor is free again.
    fn handle_descriptor_free(&mut self);

    /// Sets up the socket of an accepted connection.
    ///
    /// # Errors
    /// Those of the system; they end the connection.
    fn open(&mut self, conn: ConnId, arrival: Self::Arrival) -> io::Result<Self::Socket>;

    /// Sets up a connection that was accepted elsewhere.
    ///
    /// # Errors
    /// Those of the system, for example [`io::ErrorKind::NotConnected`] for a peer that has gone already.
    fn adopt(&mut self, stream: Stream) -> io::Result<(Self::Arrival, Peer)>;

    /// Makes an open socket that of another connection, whose events it reports from now on.
    ///
    /// # Errors
    /// Those of the system.
    fn rebind(&mut self, socket: &mut Self::Socket, conn: ConnId) -> io::Result<()>;

    /// Returns the error of a connection that failed in both directions, even if it has unread bytes.
    fn failure(&mut self, socket: &mut Self::Socket) -> Option<io::Error>;

    /// Sends what the socket accepts now, and reports the sent bytes to `link`.
    ///
    /// # Errors
    /// The socket's.
    fn write(
        &mut self,
        socket: &mut Self::Socket,
        link: &mut Link,
        context: WriteContext<'_>,
    ) -> io::Result<()>;

    /// Returns the socket of a TCP connection, so that the kernel can be had to encrypt what is sent over it.
    fn tcp<'a>(&'a mut self, _socket: &'a Self::Socket) -> Option<BorrowedFd<'a>> {
        None
    }

    /// Passes received bytes to `take`, about `want_bytes` of them, in a buffer that `take` may replace by another of the
    /// pool.
    ///
    /// # Errors
    /// The socket's.
    fn read<R>(
        &mut self,
        socket: &mut Self::Socket,
        want_bytes: usize,
        pool: &mut Pool,
        take: impl FnOnce(&mut Vec<u8>, usize, &mut Pool) -> R,
    ) -> io::Result<Read<R>>;

    /// Stops receiving until the next [`read`](Carrier::read). The peer closing its side is still noticed.
    fn pause(&mut self, socket: &mut Self::Socket);

    /// Closes the sending side of the socket, and reads again until the peer has closed its own.
    fn half_close(&mut self, socket: &mut Self::Socket);

    /// Reads again until the peer has closed its side.
    fn linger(&mut self, _socket: &mut Self::Socket) {}

    /// Closes the socket.
    fn close(&mut self, socket: Self::Socket);
}

/// The result of [`Carrier::read`].
#[derive(Debug)]
pub enum Read<R> {
    /// Bytes were received: their number, and what `take` returned.
    Bytes(usize, R),
    /// Nothing has arrived; the connection becomes ready when something does.
    Nothing,
    /// The peer closed its sending side.
    End,
}

/// The parts of the loop that a carrier needs for writing.
#[derive(Clone, Copy, Debug)]
pub struct WriteContext<'a> {
    /// Milliseconds since the loop began.
    pub now_ms: u64,
    /// The loop's counters.
    pub stats: &'a Stats,
}

#[derive(Debug)]
struct Conn<S> {
    link: Link,
    /// None while the session waits for its client.
    socket: Option<S>,
    /// Whether the connection is in the list of ready connections.
    ready: bool,
    /// Whether reading stopped because a limit was reached.
    paused: bool,
    /// Whether the peer closed its side and the link has not been notified.
    peer_closed: bool,
    /// Time until which nothing is read because of the rate of requests.
    held_until_ms: Option<u64>,
    /// For whom the session counts among those without a connection.
    place: Option<Payer>,
    /// Why the connection got no seat, if it did not.
    no_seat: Option<NoSeat>,
}

/// The connections of a loop, as its carrier sees them.
#[derive(Debug)]
pub struct Table<S> {
    conns: Slots<Conn<S>>,
    ready: Vec<ConnId>,
}

impl<S> Default for Table<S> {
    fn default() -> Self {
        Self { conns: Slots::default(), ready: Vec::new() }
    }
}

impl<S> Table<S> {
    /// Returns the socket of a connection.
    pub fn socket(&mut self, conn: ConnId) -> Option<&mut S> {
        self.conns.get_mut(conn).and_then(|conn| conn.socket.as_mut())
    }

    /// Returns the connection in a slot, with its socket.
    pub fn socket_at(&mut self, slot: u32) -> Option<(ConnId, &mut S)> {
        let id = self.conns.id_at(slot)?;
        self.conns.get_mut(id).and_then(|conn| conn.socket.as_mut()).map(|socket| (id, socket))
    }

    /// Marks a connection as ready, after an event of its socket.
    pub fn make_ready(&mut self, conn: ConnId) {
        if let Some(conn) = self.conns.get_mut(conn) {
            Self::enlist(&mut self.ready, conn);
        }
    }

    /// Marks a connection whose peer closed its sending side; there may be unread bytes.
    pub fn handle_peer_closed(&mut self, conn: ConnId) {
        if let Some(conn) = self.conns.get_mut(conn) {
            conn.peer_closed = true;
            Self::enlist(&mut self.ready, conn);
        }
    }

    fn enlist(ready: &mut Vec<ConnId>, conn: &mut Conn<S>) {
        if !std::mem::replace(&mut conn.ready, true) {
            ready.push(conn.link.conn());
        }
    }
}

/// Bytes that are read at least where requests have a rate.
const LEAST_READ_BYTES: usize = 4096;

/// An event loop without its sockets: decides which connection is served when, how connections end, and what happens on
/// timeouts. It can be created on one thread and run on another.
///
/// In one turn, the loop waits unless there is something to do, reads the ready connections and passes their events to the
/// handler, runs the handler's turn, and applies the notices in the mailbox, which writes replies. If the handler runs on
/// the loop's thread, a request is thus read, executed and answered in one turn.
pub struct Driver<C: Carrier> {
    carrier: C,
    table: Table<C::Socket>,
    config: Config,
    seats: Seats,
    /// The sessions that outlive their connections.
    sessions: Registry<ConnId, Option<PublicKey>>,
    /// Connections without a seat, the oldest first.
    door: VecDeque<ConnId>,
    /// The sessions without a connection, where they are counted here.
    parked: Places,
    /// The connections of each address, and the requests of each tenant or address.
    connection_rates: Rates,
    request_rates: RequestRates,
    /// The connections that are not read because of the rate of requests, by the time until then.
    held: BTreeSet<(u64, ConnId)>,
    mailbox: Arc<Mailbox>,
    stats: Arc<Stats>,
    pool: Pool,
    /// Bytes read in this turn.
    turn_bytes: usize,
    /// Bytes in flight after the last reading.
    held_bytes: usize,
    started: Instant,
    now_ms: u64,
    next_sweep_ms: u64,
    /// Whether a connection was not read because of the limit of bytes in flight of all connections.
    starved: bool,
}

impl<C: Carrier> fmt::Debug for Driver<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("connections", &self.connections()).finish_non_exhaustive()
    }
}

impl<C: Carrier> Driver<C> {
    /// Creates a loop without connections. `mailbox` has to wake `carrier`.
    pub fn new(carrier: C, mailbox: Mailbox, config: Config, stats: Arc<Stats>) -> Self {
        Self {
            carrier,
            table: Table::default(),
            seats: Seats::new(config.connections_max, config.connections_per_address_max),
            connection_rates: Rates::new(),
            request_rates: RequestRates::new(config.ledger.clone()),
            held: BTreeSet::new(),
            config,
            sessions: Registry::default(),
            door: VecDeque::new(),
            parked: Places::default(),
            mailbox: Arc::new(mailbox),
            stats,
            pool: Pool::default(),
            turn_bytes: 0,
            held_bytes: 0,
            started: Instant::now(),
            now_ms: 0,
            next_sweep_ms: 0,
            starved: false,
        }
    }

    /// Returns the mailbox through which other threads talk to the loop.
    pub fn mailbox(&self) -> Arc<Mailbox> {
        self.mailbox.clone()
    }

    /// Returns the number of connections.
    pub fn connections(&self) -> usize {
        self.table.conns.len()
    }

    /// Serves connections until the mailbox says stop, or until the last connection is closed if none are accepted. Calls
    /// `handler` for every event, in order, on this thread.
    ///
    /// # Errors
    /// Those of waiting. A failing connection only ends itself.
    pub fn run(mut self, handler: impl Handler) -> io::Result<()> {
        let mut turns = Turns::new(handler);
        let (mut ready, mut notices) = (Vec::new(), Vec::new());
        while !self.mailbox.is_stopped() && (self.carrier.is_listening() || !self.table.conns.is_empty()) {
            let timeout = if turns.is_idle() { self.timeout() } else { Some(Duration::ZERO) };
            let sleeps = timeout != Some(Duration::ZERO) && self.mailbox.prepare_sleep();
            self.carrier.wait(if sleeps { timeout } else { Some(Duration::ZERO) }, &mut self.table)?;
            self.mailbox.awake();
            self.now_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.accept(&mut |event| turns.handle_event(event));
            self.release();
            std::mem::swap(&mut self.table.ready, &mut ready);
            self.turn_bytes = 0;
            let held_max_bytes = self.held_max_bytes(turns.is_behind());
            let mut pumped = 0;
            for id in &ready {
                if self.turn_bytes >= self.config.turn_total_max_bytes
                    || self.pool.in_flight_bytes() >= held_max_bytes
                {
                    break;
                }
                self.pump(*id, &mut |event| turns.handle_event(event));
                pumped += 1;
            }
            self.held_bytes = self.pool.in_flight_bytes();
            // Those that were left out come first in the next turn.
            ready.drain(..pumped);
            ready.append(&mut self.table.ready);
            std::mem::swap(&mut self.table.ready, &mut ready);
            turns.turn();
            self.mailbox.take(&mut notices);
            for notice in notices.drain(..) {
                self.apply(notice, &mut |event| turns.handle_event(event));
            }
            self.feed();
            self.sweep(&mut |event| turns.handle_event(event));
        }
        debug!(connections = self.connections(), "event loop stops");
        let open: Vec<_> = self.table.conns.iter_mut().map(|(id, _)| id).collect();
        for id in open {
            self.close(id, &End::Stopped, &mut |event| turns.handle_event(event));
        }
        turns.turn();
        Ok(())
    }

    /// Returns the bytes in flight at which no more is read in this turn. While the handler is behind, it is given as much as it has
    /// given back, or as one connection may say in a turn: what all say at once waits in their sockets, not here.
    fn held_max_bytes(&self, is_behind: bool) -> usize {
        if !is_behind {
            return usize::MAX;
        }
        let held_bytes = self.pool.in_flight_bytes();
        self.held_bytes.max(held_bytes.saturating_add(self.config.turn_max_bytes))
    }

    fn timeout(&self) -> Option<Duration> {
        let accept_at_ms = self.carrier.accept_at_ms(self.now_ms).unwrap_or(u64::MAX);
        if !self.table.ready.is_empty() || accept_at_ms <= self.now_ms {
            return Some(Duration::ZERO);
        }
        let held_ms = self.held.first().map_or(u64::MAX, |(until_ms, _)| *until_ms);
        let wake_ms = self.next_sweep_ms.min(accept_at_ms).min(held_ms);
        (wake_ms != u64::MAX).then(|| Duration::from_millis(wake_ms.saturating_sub(self.now_ms).max(1)))
    }

    // ---- connections -------------------------------------------------------------------------------------------------

    fn accept(&mut self, sink: &mut impl FnMut(Event)) {
        for stream in self.mailbox.take_handed() {
            match self.carrier.adopt(stream) {
                Ok((arrival, peer)) => {
                    if self.admit_at_door(arrival, peer, None) {
                        self.bound_door(sink);
                    } else {
                        info!(%peer, "connection refused: it has no session to go on with");
                    }
                }
                Err(why) => debug!(%why, "cannot take over a connection"),
            }
        }
        while let Some((arrival, peer)) = self.carrier.accept(self.now_ms) {
            if !self.may_connect(peer) {
                Stats::add(&self.stats.connections_refused, 1);
                let why = "too many connections of one address in a second";
                info!(%peer, %why, "connection refused");
                self.record_refusal(|| Who::at(peer), "connection-rate", &why);
            } else if let Err(why) = self.seats.take(peer) {
                if self.admit_at_door(arrival, peer, Some(why)) {
                    self.bound_door(sink);
                    continue;
                }
                self.refuse_seat(&Who::at(peer), why);
            } else if let Err(why) = self.admit_seated(arrival, peer) {
                debug!(%peer, %why, "cannot set up an accepted connection");
            }
        }
    }

    /// Counts a connection; returns whether its address may have one more now.
    fn may_connect(&mut self, peer: Peer) -> bool {
        let Some(rate) = self.config.connections_per_second.map(Rate::per_second) else { return true };
        let now_ms = self.now_ms;
        self.connection_rates.of(Payer::of(peer, None), rate, now_ms).take(rate, now_ms)
    }

    /// Keeps a record of a client that was not let in.
    /// Handles that a client was sent away because there is no seat for it.
    fn refuse_seat(&self, who: &Who, why: NoSeat) {
        Stats::add(&self.stats.connections_refused, 1);
        info!(peer = %who.peer, tenant = who.tenant, %why, "connection refused");
        self.record_refusal(|| who.clone(), why.word(), &why);
    }

    fn record_refusal(&self, who: impl FnOnce() -> Who, word: &'static str, why: &dyn fmt::Display) {
        if let Some(audit) = &self.config.audit {
            let (reason, words) = (Some(word.into()), Some(why.to_string().into()));
            audit.record(&who(), AuditEvent::Refused { reason, words });
        }
    }

    /// Adds a connection that was accepted elsewhere.
    ///
    /// # Errors
    /// Those of [`Carrier::adopt`] and [`Carrier::open`]; [`io::ErrorKind::QuotaExceeded`] if there is no seat.
    pub fn admit(&mut self, stream: Stream) -> io::Result<()> {
        let (arrival, peer) = self.carrier.adopt(stream)?;
        self.seats.take(peer).map_err(|why| io::Error::new(io::ErrorKind::QuotaExceeded, why.to_string()))?;
        self.admit_seated(arrival, peer)
    }

    /// Adds a connection that has a seat, which it loses if this fails.
    fn admit_seated(&mut self, arrival: C::Arrival, peer: Peer) -> io::Result<()> {
        let opened = self.open(arrival, peer);
        if opened.is_err() {
            self.seats.give_back(peer);
        }
        opened.map(drop)
    }

    fn open(&mut self, arrival: C::Arrival, peer: Peer) -> io::Result<ConnId> {
        let Self { carrier, config, now_ms, .. } = self;
        let id = self.table.conns.try_insert(|id| {
            let socket = carrier.open(id, arrival)?;
            let link = Link::new(id, peer, config, *now_ms);
            let (ready, paused, peer_closed, held_until_ms, place, no_seat) = Default::default();
            Ok(Conn { link, socket: Some(socket), ready, paused, peer_closed, held_until_ms, place, no_seat })
        })?;
        Stats::add(&self.stats.connections_opened, 1);
        debug!(conn = %id, %peer, "connection opened");
        self.table.make_ready(id);
        self.watch();
        Ok(id)
    }

    /// Writes to and reads from one connection, within its budget for the turn.
    fn pump(&mut self, id: ConnId, sink: &mut impl FnMut(Event)) {
        let Some(conn) = self.table.conns.get_mut(id) else { return };
        conn.ready = false;
        if std::mem::take(&mut conn.peer_closed) {
            conn.link.handle_peer_closed(self.now_ms);
        }
        let Some(socket) = &mut conn.socket else { return self.receive_parked(id, sink) };
        if let Some(why) = self.carrier.failure(socket) {
            if conn.link.session_name().is_some() {
                // What was not read may say that the session is over.
                self.receive(id, sink);
            }
            let has_more = |conn: &Conn<_>| conn.ready || conn.socket.is_none();
            if !self.table.conns.get_mut(id).is_some_and(|conn| has_more(conn)) {
                self.end(id, &End::Socket(why), sink);
            }
            return;
        }
        if self.send(id, sink) {
            self.receive(id, sink);
        }
    }

    fn receive(&mut self, id: ConnId, sink: &mut impl FnMut(Event)) {
        let Some(conn) = self.table.conns.get_mut(id) else { return };
        let Some(socket) = &mut conn.socket else { return };
        conn.paused = false;
        let mut budget = self.config.turn_max_bytes;
        let end = loop {
            let mut want = conn.link.begin_read(&self.config, &self.pool);
            if let Some((payer, rate)) = conn.link.rate(&self.config) {
                let made = conn.link.take_uncharged();
                let room = self.request_rates.charge(payer, rate, made, self.now_ms);
                if let Err(wait_ms) = room {
                    conn.link.hold(true);
                    let until_ms = self.now_ms.saturating_add(wait_ms);
                    if let Some(earlier_ms) = conn.held_until_ms.replace(until_ms) {
                        self.held.remove(&(earlier_ms, id));
                    }
                    self.held.insert((until_ms, id));
                    // Whose replies wait for it still says what it has.
                    want = conn.link.begin_read(&self.config, &self.pool);
                    if want == 0 {
                        conn.paused = true;
                        self.carrier.pause(socket);
                        break None;
                    }
                } else {
                    conn.link.hold(false);
                    want = conn.link.begin_read(&self.config, &self.pool);
                    // Not many more than there may be.
                    let most = usize::try_from(room.unwrap_or_default()).unwrap_or(usize::MAX);
                    want = want.min(most.saturating_mul(Header::SIZE).max(LEAST_READ_BYTES));
                }
            }
            if want == 0 {
                conn.paused = true;
                self.starved |= self.pool.in_flight_bytes() >= self.config.in_flight_total_max_bytes;
                self.carrier.pause(socket);
                break None;
            }
            if conn.link.has_held()
                && let Err(end) = conn.link.receive_held(&mut self.pool, &self.stats, sink)
            {
                break Some(end);
            }
            if budget == 0 {
                Table::enlist(&mut self.table.ready, conn);
                break None;
            }
            let (link, now_ms, stats) = (&mut conn.link, self.now_ms, &*self.stats);
            let take = |buffer: &mut Vec<u8>, len: usize, pool: &mut Pool| {
                link.receive(buffer, len, now_ms, pool, stats, sink)
            };
            let want = want.min(budget.max(Config::SMALL_READ_BYTES));
            match self.carrier.read(socket, want, &mut self.pool, take) {
                Ok(Read::Bytes(len, taken)) => {
                    budget = budget.saturating_sub(len);
                    self.turn_bytes += len;
                    if let Err(end) = taken {
                        break Some(end);
                    }
                    if conn.link.claim().is_some() {
                        return self.decide(id, sink);
                    }
                }
                Ok(Read::Nothing) => break None,
                Ok(Read::End) => break Some(conn.link.handle_eof()),
                Err(why) => break Some(End::Socket(why)),
            }
        };
        if let Some(end) = end {
            self.end(id, &end, sink);
            return;
        }
        // A handshake answers, though no notice came.
        let has_answer = conn.link.has_answer();
        if conn.link.has_deadline() {
            self.watch();
        }
        if has_answer {
            self.send(id, sink);
        }
    }

    /// Writes what the peer accepts now, and closes a connection that is finished. Returns false if the connection is
    /// closed or ended.
    fn send(&mut self, id: ConnId, sink: &mut impl FnMut(Event)) -> bool {
        let Some(conn) = self.table.conns.get_mut(id) else { return false };
        let Some(socket) = &mut conn.socket else {
            // What the ring takes counts as sent.
            conn.link.report_drain(sink);
            return false;
        };
        let context = WriteContext { now_ms: self.now_ms, stats: &self.stats };
        if let Err(why) = self.carrier.write(socket, &mut conn.link, context) {
            self.end(id, &End::Socket(why), sink);
            return false;
        }
        conn.link.report_drain(sink);
        if let Some(key) = conn.link.key_to_lend() {
            let given = self.carrier.tcp(socket).map(|tcp| ktls::give(tcp, &key));
            conn.link.lend(&key, matches!(given, Some(Ok(()))));
            self.report_lent(id, &key, given);
        }
        let Some(conn) = self.table.conns.get_mut(id) else { return false };
        let Some(socket) = &mut conn.socket else { return false };
        if conn.link.is_key_over() {
            self.end(id, &End::Channel(Fault::KeyIsOver), sink);
            return false;
        }
        match conn.link.finish(self.now_ms) {
            Finish::No => {}
            Finish::HalfClose => {
                self.carrier.half_close(socket);
                Table::enlist(&mut self.table.ready, conn);
            }
            Finish::Linger => {
                self.carrier.linger(socket);
                Table::enlist(&mut self.table.ready, conn);
            }
            Finish::Close => {
                self.close(id, &End::Eof, sink);
                return false;
            }
        }
        if conn.link.has_deadline() {
            self.watch();
        }
        true
    }

    /// Logs who encrypts what is sent over a connection. A kernel that cannot is not asked again.
    fn report_lent(&mut self, id: ConnId, key: &LentKey, given: Option<io::Result<()>>) {
        let cipher = &key.cipher;
        match given {
            Some(Ok(())) => debug!(conn = %id, ?cipher, "the kernel encrypts what is sent (kTLS)"),
            Some(Err(why)) if why.kind() == io::ErrorKind::NotFound => {
                self.config.ktls = false;
                info!(
                    "this process encrypts: the kernel has no kTLS, or its module is not loaded (modprobe tls)"
                );
            }
            Some(Err(why)) => debug!(conn = %id, ?cipher, %why, "this process encrypts: the kernel does not"),
            None => {}
        }
    }

    /// Makes the connections ready whose requests may be read again.
    fn release(&mut self) {
        while let Some(&(until_ms, id)) = self.held.first().filter(|(until_ms, _)| *until_ms <= self.now_ms) {
            self.held.remove(&(until_ms, id));
            if let Some(conn) = self.table.conns.get_mut(id) {
                conn.held_until_ms = None;
                conn.link.hold(false);
                Table::enlist(&mut self.table.ready, conn);
            }
        }
    }

    fn apply(&mut self, notice: Notice, sink: &mut impl FnMut(Event)) {
        let id = notice.conn;
        if self.table.conns.get_mut(id).is_some_and(|conn| conn.link.may_lend()) {
            // Before there is more to send, the kernel can be had to encrypt it.
            self.send(id, sink);
        }
        let Some(conn) = self.table.conns.get_mut(id) else {
            return Link::apply_gone(notice, &mut self.pool);
        };
        let applied = conn.link.apply(notice, self.now_ms, &mut self.pool, &self.stats, sink);
        if conn.paused || conn.link.has_held() {
            Table::enlist(&mut self.table.ready, conn);
        }
        if let Some(why) = applied.fatal {
            self.end(id, &End::Protocol(why), sink);
        }
        self.send(id, sink);
    }

    /// Makes the connections ready again that were not read because of the limit of all connections, once it allows.
    fn feed(&mut self) {
        if self.starved && self.pool.in_flight_bytes() < self.config.in_flight_total_max_bytes {
            self.starved = false;
            for (_, conn) in self.table.conns.iter_mut().filter(|(_, conn)| conn.paused) {
                Table::enlist(&mut self.table.ready, conn);
            }
        }
    }

    /// Ends a connection that will send no more: closes it now, or when it has been answered.
    fn end(&mut self, id: ConnId, end: &End, sink: &mut impl FnMut(Event)) {
        match self.park(id, end, sink) {
            Parking::Parked => return,
            Parking::Full => return self.close(id, &End::ParkedMax, sink),
            Parking::Ends => {}
        }
        let Some(conn) = self.table.conns.get_mut(id) else { return };
        conn.link.note_end(end);
        if let End::Protocol(_) | End::Frames(_) = end {
            Stats::add(&self.stats.protocol_errors, 1);
            info!(conn = %id, peer = %conn.link.peer(), why = %end, "closing the connection");
        }
        if let End::Channel(why) = end {
            info!(conn = %id, peer = %conn.link.peer(), %why, "closing the connection");
            if !conn.link.end(self.now_ms, sink) {
                Stats::add(&self.stats.connections_refused, 1);
                conn.link.refuse();
                let (peer, away) = (conn.link.peer(), conn.link.turned_away().cloned());
                let word = away.as_ref().map_or(why.word(), |away| away.word);
                let (key, tenant) = away.map(|away| (away.key, away.tenant)).unwrap_or_default();
                self.record_refusal(|| Who { key, tenant, ..Who::at(peer) }, word, why);
            }
            let Some(conn) = self.table.conns.get_mut(id) else { return };
            conn.socket.iter_mut().for_each(|socket| self.carrier.pause(socket));
            self.watch();
            self.send(id, sink);
            return;
        }
        if !(end.is_writable() && conn.link.end(self.now_ms, sink)) {
            return self.close(id, end, sink);
        }
        conn.socket.iter_mut().for_each(|socket| self.carrier.pause(socket));
        self.watch();
    }

    fn close(&mut self, id: ConnId, end: &End, sink: &mut impl FnMut(Event)) {
        let Some(mut conn) = self.table.conns.remove(id) else { return };
        conn.link.note_end(end);
        if let Some(until_ms) = conn.held_until_ms {
            self.held.remove(&(until_ms, id));
        }
        Stats::add(&self.stats.connections_closed, 1);
        Stats::add(&self.stats.requests_done, conn.link.open_requests() as u64);
        let peer = conn.link.peer();
        match end {
            End::FirstMessageTimeout | End::MidMessageTimeout | End::IdleTimeout | End::NotResumed => {
                Stats::add(&self.stats.timeouts, 1);
                info!(conn = %id, %peer, why = %end, "connection closed");
            }
            _ => debug!(conn = %id, %peer, why = %end, "connection closed"),
        }
        if conn.link.is_seated() {
            self.seats.give_back(peer);
        } else {
            self.door.retain(|other| *other != id);
        }
        if let (End::NoSeat, Some(why)) = (end, conn.no_seat) {
            self.refuse_seat(&Who::client(peer, conn.link.grant()), why);
        }
        if let Some(name) = conn.link.session_name() {
            self.sessions.remove(&name);
        }
        self.give_place_back(conn.place);
        conn.socket.into_iter().for_each(|socket| self.carrier.close(socket));
        conn.link.close(&mut self.pool, sink);
        self.carrier.handle_descriptor_free();
    }

    // ---- time --------------------------------------------------------------------------------------------------------

    /// Returns the interval between checks of deadlines: a quarter of the shortest timeout.
    fn sweep_ms(&self) -> u64 {
        let config = &self.config;
        let shortest =
            config.first_message_timeout_ms.min(config.mid_message_timeout_ms).min(config.linger_ms);
        let shortest = shortest.min(config.idle_timeout_ms.unwrap_or(u64::MAX));
        (shortest / 4).clamp(5, 1000)
    }

    fn watch(&mut self) {
        self.next_sweep_ms = self.next_sweep_ms.min(self.now_ms + self.sweep_ms());
    }

    fn sweep(&mut self, sink: &mut impl FnMut(Event)) {
        if self.now_ms < self.next_sweep_ms {
            return;
        }
        self.next_sweep_ms = u64::MAX;
        let mut late = Vec::new();
        let mut watched = false;
        for (id, conn) in self.table.conns.iter_mut() {
            watched |= conn.link.has_deadline();
            late.extend(conn.link.overdue(self.now_ms, &self.config, &self.pool).map(|end| (id, end)));
        }
        if watched {
            self.watch();
        }
        for (id, end) in late {
            match self.park(id, &end, sink) {
                Parking::Parked => {}
                Parking::Full => self.close(id, &End::ParkedMax, sink),
                Parking::Ends => self.close(id, &end, sink),
            }
        }
    }
}
