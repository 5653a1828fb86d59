//! The readiness event loop: sockets on one side, [`hipr_io`]'s events and notices on the other.
//!
//! One thread, edge-triggered. A connection that can be read or written is in the `ready` list until it has used its budget or
//! the kernel says "would block"; the loop sleeps only when that list is empty. Everything that is not a socket (parsing,
//! limits, time-outs, accounting) is [`hipr_io::Link`].

#![forbid(unsafe_code)]

mod listen;
mod shared;
mod stream;

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hipr_io::{
    Config, ConnId, End, Event, Finish, Handler, Link, Listener, Mailbox, Notice, Peer, Pool, Slots, Stats,
    Turns,
};
use mio::{Events, Interest, Poll, Token, Waker};
use tracing::{debug, info};

pub use crate::listen::Listen;
use crate::shared::Shared;
pub use crate::stream::Stream;

const LISTENER: Token = Token(usize::MAX);
const WAKE: Token = Token(usize::MAX - 1);
/// Slices in one vectored write.
const SLICES: usize = 64;

struct Conn {
    link: Link,
    stream: Stream,
    readable: bool,
    writable: bool,
    /// The peer writes no more; its end is read after what it wrote.
    read_closed: bool,
    /// The peer is gone in both directions, also if there is something to read.
    reset: bool,
    /// Whether it is in the ready list.
    ready: bool,
    /// Whether its shared memory is looked at; else it rings.
    looked_at: bool,
}

/// The loop. Made on one thread, run on any; returns from [`Loop::run`] with [`Mailbox::stop`], or when it has no listener
/// and its connection has ended.
pub struct Loop {
    poll: Poll,
    listen: Option<Listen>,
    config: Config,
    mailbox: Arc<Mailbox>,
    stats: Arc<Stats>,
    conns: Slots<Conn>,
    shared: Shared,
    ready: Vec<ConnId>,
    pool: Pool,
    /// The buffer that sockets are read into.
    buffer: Vec<u8>,
    /// Bytes that this turn read.
    turn_bytes: usize,
    started: Instant,
    now_ms: u64,
    next_sweep_ms: u64,
    /// Reading stopped because all connections together have too much in flight.
    starved: bool,
}

impl std::fmt::Debug for Loop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loop").field("connections", &self.conns.len()).finish_non_exhaustive()
    }
}

impl Loop {
    /// A loop that serves `listener`.
    ///
    /// # Errors
    /// Those of the system: no descriptors for the poll.
    pub fn new(listener: Listener, config: Config, stats: Arc<Stats>) -> io::Result<Self> {
        let mut event_loop = Self::empty(config, stats)?;
        event_loop.listen = Some(Listen::new(listener, event_loop.poll.registry(), LISTENER)?);
        Ok(event_loop)
    }

    /// A loop that serves one connection that somebody else accepted, and returns when that has ended.
    ///
    /// # Errors
    /// Those of the system, for example [`ErrorKind::NotConnected`] for a peer that has gone already.
    pub fn for_connection(stream: hipr_io::Stream, config: Config, stats: Arc<Stats>) -> io::Result<Self> {
        let mut event_loop = Self::empty(config, stats)?;
        let peer = stream.peer()?;
        let stream = Stream::new(stream)?;
        stream.tune(peer);
        event_loop.admit(stream, peer)?;
        Ok(event_loop)
    }

    fn empty(config: Config, stats: Arc<Stats>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKE)?;
        let mailbox = Mailbox::new(move || {
            // The only failure is a full eventfd, and that wakes as well.
            let _ = waker.wake();
        });
        let mut pool = Pool::default();
        let buffer = pool.buffer();
        Ok(Self {
            poll,
            listen: None,
            config,
            mailbox: Arc::new(mailbox),
            stats,
            conns: Slots::default(),
            shared: Shared::default(),
            ready: Vec::new(),
            pool,
            buffer,
            turn_bytes: 0,
            started: Instant::now(),
            now_ms: 0,
            next_sweep_ms: 0,
            starved: false,
        })
    }

    /// The way to talk to the loop from other threads.
    pub fn mailbox(&self) -> Arc<Mailbox> {
        self.mailbox.clone()
    }

    /// Serves until the mailbox says stop, or until the end of a connection from [`Loop::for_connection`]. `handler` gets the
    /// events, in order, on this thread.
    ///
    /// # Errors
    /// Those of polling. A failing connection only ends itself.
    pub fn run(mut self, handler: impl Handler) -> io::Result<()> {
        let mut turns = Turns::new(handler);
        let mut events = Events::with_capacity(1024);
        let mut notices = Vec::new();
        let mut ready = Vec::new();
        while !self.mailbox.is_stopped() && (self.listen.is_some() || !self.conns.is_empty()) {
            if turns.is_idle() && self.ready.is_empty() && self.shared.is_awake() {
                let spin = Duration::from_micros(self.config.spin_us);
                self.shared.look(&mut self.conns, spin, |conn| Self::make_ready(&mut self.ready, conn));
            }
            let timeout = if turns.is_idle() { self.timeout() } else { Some(Duration::ZERO) };
            let sleeps = timeout != Some(Duration::ZERO) && self.mailbox.prepare_sleep();
            match self.poll.poll(&mut events, if sleeps { timeout } else { Some(Duration::ZERO) }) {
                Ok(()) => {}
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
            self.mailbox.awake();
            self.now_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);

            for event in &events {
                match event.token() {
                    LISTENER => self.listen.iter_mut().for_each(Listen::handle_readable),
                    WAKE => {}
                    Token(slot) => {
                        let id = u32::try_from(slot).ok().and_then(|slot| self.conns.id_at(slot));
                        if let Some(conn) = id.and_then(|id| self.conns.get_mut(id)) {
                            conn.readable |= event.is_readable() || event.is_read_closed();
                            conn.writable |= event.is_writable();
                            conn.reset |= conn.stream.is_reset(event);
                            if let Err(why) = conn.stream.handle_readable() {
                                info!(conn = %conn.link.conn(), %why, "the connection fails");
                                conn.reset = true;
                            }
                            if event.is_read_closed() {
                                conn.read_closed = true;
                                conn.link.handle_peer_closed(self.now_ms);
                            }
                            Self::make_ready(&mut self.ready, conn);
                        }
                    }
                }
            }
            self.accept();
            std::mem::swap(&mut self.ready, &mut ready);
            self.turn_bytes = 0;
            let mut pumped = 0;
            for id in &ready {
                if self.turn_bytes >= self.config.turn_total_max_bytes {
                    break;
                }
                self.pump(*id, &mut |event| turns.handle_event(event));
                pumped += 1;
            }
            // Those that were left out come first in the next turn.
            ready.drain(..pumped);
            ready.append(&mut self.ready);
            std::mem::swap(&mut self.ready, &mut ready);
            turns.turn();
            self.mailbox.take(&mut notices);
            for notice in notices.drain(..) {
                self.apply(notice, &mut |event| turns.handle_event(event));
            }
            self.feed();
            self.sweep(&mut |event| turns.handle_event(event));
        }
        debug!(connections = self.conns.len(), "the loop stops");
        let open: Vec<_> = self.conns.iter_mut().map(|(id, _)| id).collect();
        for id in open {
            self.close(id, &End::Stopped, &mut |event| turns.handle_event(event));
        }
        turns.turn();
        Ok(())
    }

    fn make_ready(ready: &mut Vec<ConnId>, conn: &mut Conn) {
        if !std::mem::replace(&mut conn.ready, true) {
            ready.push(conn.link.conn());
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let listen = self.listen.as_ref();
        let is_awake = !self.ready.is_empty() || self.shared.is_awake();
        if is_awake || listen.is_some_and(|listen| listen.is_ready(self.now_ms)) {
            return Some(Duration::ZERO);
        }
        let wake_ms = self.next_sweep_ms.min(listen.and_then(Listen::retry_ms).unwrap_or(u64::MAX));
        (wake_ms != u64::MAX).then(|| Duration::from_millis(wake_ms.saturating_sub(self.now_ms).max(1)))
    }

    // ---- connections -------------------------------------------------------------------------------------------------

    fn accept(&mut self) {
        while let Some((stream, peer)) = self.listen.as_mut().and_then(|listen| listen.accept(self.now_ms)) {
            if self.conns.len() >= self.config.connections_max {
                Stats::add(&self.stats.connections_refused, 1);
                info!(%peer, limit = self.config.connections_max, "connection refused: too many");
            } else if let Err(why) = self.admit(stream, peer) {
                debug!(%peer, %why, "connection cannot be polled");
            }
        }
    }

    /// A connection more.
    fn admit(&mut self, mut stream: Stream, peer: Peer) -> io::Result<()> {
        let (poll, config, now_ms) = (&self.poll, &self.config, self.now_ms);
        let mut registered = Ok(());
        let id = self.conns.insert(|id| {
            let token = Token(id.slot() as usize);
            let interest = Interest::READABLE | Interest::WRITABLE;
            registered = poll.registry().register(&mut stream, token, interest);
            let link = Link::new(id, peer, config, now_ms);
            Conn {
                link,
                stream,
                readable: false,
                writable: true,
                read_closed: false,
                reset: false,
                ready: false,
                looked_at: false,
            }
        });
        Stats::add(&self.stats.connections_opened, 1);
        match (id, registered) {
            (Some(id), Ok(())) => {
                debug!(conn = %id, %peer, "connection opened");
                self.watch();
                return Ok(());
            }
            (Some(id), Err(why)) => {
                self.conns.remove(id);
                registered = Err(why);
            }
            (None, _) => registered = Err(io::Error::other("there are no numbers for connections left")),
        }
        Stats::add(&self.stats.connections_closed, 1);
        registered
    }

    /// Writes and reads what one connection can take now, within its budget.
    fn pump(&mut self, id: ConnId, sink: &mut impl FnMut(Event)) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        conn.ready = false;
        if conn.reset {
            let why =
                conn.stream.take_error().ok().flatten().unwrap_or_else(|| ErrorKind::ConnectionReset.into());
            return self.end(id, &End::Socket(why), sink);
        }
        if !self.send(id, sink) {
            return;
        }
        let Some(conn) = self.conns.get_mut(id) else { return };
        let mut end = None;
        let mut budget = self.config.turn_max_bytes;
        while end.is_none() && conn.readable {
            let most = budget.max(Config::SMALL_READ_BYTES).min(self.buffer.len());
            let want = conn.link.wants_read(&self.config, &self.pool).min(most);
            if want == 0 {
                self.starved |= self.pool.in_flight_bytes() >= self.config.in_flight_total_max_bytes;
                break;
            }
            if budget == 0 {
                Self::make_ready(&mut self.ready, conn);
                break;
            }
            let Some(space) = self.buffer.get_mut(..want) else { break };
            match conn.stream.read(space) {
                Ok(0) => {
                    conn.readable = false;
                    end = Some(conn.link.handle_eof());
                }
                Ok(n) => {
                    budget = budget.saturating_sub(n);
                    self.turn_bytes += n;
                    // Fewer bytes than wanted are all there are, and more will be an event (epoll(7), edge-triggered).
                    conn.readable = n == want || conn.read_closed;
                    let (now_ms, pool, stats) = (self.now_ms, &mut self.pool, &*self.stats);
                    let read = conn.link.handle_read(&mut self.buffer, n, now_ms, pool, stats, sink);
                    end = read.err().map(End::Protocol);
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => conn.readable = false,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => end = Some(End::Socket(why)),
            }
        }
        if let Some(end) = end {
            self.end(id, &end, sink);
        } else if conn.link.has_deadline() {
            self.watch();
        }
    }

    /// Writes what the peer takes now, and closes what has said everything. `false`: the connection is gone.
    fn send(&mut self, id: ConnId, sink: &mut impl FnMut(Event)) -> bool {
        let Some(conn) = self.conns.get_mut(id) else { return false };
        // What it then waits for may be something else than what it asked to be rung for.
        self.shared.wake(conn);
        if let Err(why) = Self::write(conn, self.now_ms, &self.stats) {
            self.end(id, &End::Socket(why), sink);
            return false;
        }
        conn.link.report_drain(sink);
        match conn.link.finish(self.now_ms) {
            Finish::No => {}
            Finish::HalfClose => {
                // If that fails the peer is gone, which reading tells.
                let _ = conn.stream.shutdown(Shutdown::Write);
                conn.readable = true;
                Self::make_ready(&mut self.ready, conn);
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

    fn write(conn: &mut Conn, now_ms: u64, stats: &Stats) -> io::Result<()> {
        while conn.writable && conn.link.wants_write() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let mut count = 0;
            for (place, bytes) in slices.iter_mut().zip(conn.link.slices()) {
                *place = IoSlice::new(bytes);
                count += 1;
            }
            match conn.stream.write_vectored(slices.get(..count).unwrap_or_default()) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => conn.link.handle_written(n, now_ms, stats),
                Err(why) if why.kind() == ErrorKind::WouldBlock => conn.writable = false,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    fn apply(&mut self, notice: Notice, sink: &mut impl FnMut(Event)) {
        let id = notice.conn;
        let Some(conn) = self.conns.get_mut(id) else {
            return Link::apply_gone(notice, &mut self.pool);
        };
        let applied = conn.link.apply(notice, self.now_ms, &mut self.pool, &self.stats, sink);
        if conn.readable {
            Self::make_ready(&mut self.ready, conn);
        }
        if let Some(why) = applied.fatal {
            self.end(id, &End::Protocol(why), sink);
        }
        self.send(id, sink);
    }

    /// When buffers are free again, connections that were left unread get their turn.
    fn feed(&mut self) {
        if self.starved && self.pool.in_flight_bytes() < self.config.in_flight_total_max_bytes {
            self.starved = false;
            for (_, conn) in self.conns.iter_mut().filter(|(_, conn)| conn.readable) {
                Self::make_ready(&mut self.ready, conn);
            }
        }
    }

    /// A connection will say nothing more: closes it, now or when it was answered.
    fn end(&mut self, id: ConnId, end: &End, sink: &mut impl FnMut(Event)) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        conn.readable = false;
        if let End::Protocol(why) = end {
            Stats::add(&self.stats.protocol_errors, 1);
            info!(conn = %id, peer = %conn.link.peer(), %why, "protocol error: the connection ends");
        }
        if !(end.is_writable() && conn.link.end(self.now_ms, sink)) {
            return self.close(id, end, sink);
        }
        self.watch();
    }

    fn close(&mut self, id: ConnId, end: &End, sink: &mut impl FnMut(Event)) {
        let Some(conn) = self.conns.remove(id) else { return };
        Stats::add(&self.stats.connections_closed, 1);
        let peer = conn.link.peer();
        match end {
            End::FirstMessageTimeout | End::MidMessageTimeout => {
                Stats::add(&self.stats.timeouts, 1);
                info!(conn = %id, %peer, why = %end, "connection closed");
            }
            _ => debug!(conn = %id, %peer, why = %end, "connection closed"),
        }
        conn.link.close(&mut self.pool, sink);
        self.listen.iter_mut().for_each(Listen::handle_descriptor_free);
    }

    // ---- time --------------------------------------------------------------------------------------------------------

    /// How often deadlines are looked at: they are late by no more than a quarter.
    fn sweep_ms(&self) -> u64 {
        let config = &self.config;
        let shortest =
            config.first_message_timeout_ms.min(config.mid_message_timeout_ms).min(config.linger_ms);
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
        for (id, conn) in self.conns.iter_mut() {
            watched |= conn.link.has_deadline();
            late.extend(conn.link.overdue(self.now_ms, &self.config, &self.pool).map(|end| (id, end)));
        }
        if watched {
            self.watch();
        }
        late.into_iter().for_each(|(id, end)| self.close(id, &end, sink));
    }
}
