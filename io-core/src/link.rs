mod kernel;
mod session;

use std::collections::VecDeque;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use hipr_proto::{Fatal, Header, Outbox, Receiver, Rx};
use hipr_tls::{Admission, TurnedAway};

use crate::below::Below;
use crate::{Account, Batch, Body, Config, ConnId, End, Event, Notice, Payer, Peer, Pool, Rate, Stats};

/// A connection without its socket, the same for all event loops. It turns received bytes into events and notices into
/// bytes to send, and decides by the limits of [`Config`] when to read and when to give up.
///
/// Times are milliseconds of any clock that only goes forward.
#[derive(Debug)]
pub struct Link {
    conn: ConnId,
    peer: Peer,
    /// What the client may do, if it has proved who it is.
    grant: Option<Arc<Admission>>,
    receiver: Receiver,
    /// What lies between HIPR and the socket, if anything does.
    below: Option<Box<Below>>,
    /// Whether the first bytes say whether anything does.
    is_undecided: bool,
    /// Whether the connection has no seat, so that it may only go on with a session that has one.
    is_seatless: bool,
    /// Time at which the session lost its connection; `None` while it has one.
    parked_ms: Option<u64>,
    /// Bytes that were read but not parsed, because too many requests were open.
    stash: Vec<u8>,
    output: Output,
    /// A descriptor to pass with the next bytes that are sent.
    descriptor: Option<OwnedFd>,
    /// Number of bytes for the socket that were not sent.
    unsent_bytes: usize,
    /// Number of bytes of the dispatch that were sent.
    sent_bytes: u64,
    in_flight_bytes: usize,
    /// What was moved, on the wire, and why the connection ends.
    account: Account,
    /// Number of requests that were counted for the rate of requests.
    charged: u64,
    /// Whether nothing is read because of that rate.
    is_held: bool,
    opened_ms: u64,
    last_rx_ms: u64,
    /// Time at which the peer was last seen to have sent something or to be owed something.
    active_ms: u64,
    /// Whether the connection ends when it is idle for too long.
    has_idle_limit: bool,
    /// Time at which the reading side ended or a close was requested.
    ended_ms: Option<u64>,
    announced: bool,
    established: bool,
    /// Number of unsent bytes at which [`Event::Drained`] is due, if a notice asked for it.
    wants_drain: Option<usize>,
    close_when_sent: bool,
    /// Whether the peer has ended its sending side.
    peer_ended: bool,
    /// Time at which the peer closed its side, or of the last progress after that.
    peer_closed_ms: Option<u64>,
    /// Whether everything was sent, so that further input is discarded.
    discards: bool,
}

/// Queued outgoing bytes of one connection, in order.
#[derive(Debug, Default)]
pub struct Output {
    outboxes: VecDeque<Outbox<Body>>,
}

impl Output {
    /// Returns whether all bytes were sent.
    pub fn is_empty(&self) -> bool {
        self.outboxes.is_empty()
    }

    /// Iterates over the unsent bytes. They keep their place in memory until [`Output::advance`] passes them or the output
    /// is dropped, even if it is moved or bytes are appended.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        self.outboxes.iter().flat_map(Outbox::slices)
    }

    /// Removes the first `len` bytes, which have been sent.
    pub fn advance(&mut self, len: usize) {
        let mut left = len;
        while let Some(first) = self.outboxes.front_mut() {
            let n = left.min(first.len_bytes());
            first.advance(n);
            left -= n;
            if !first.is_empty() {
                break;
            }
            self.outboxes.pop_front();
        }
    }
}

/// The action with which the loop finishes a connection; see [`Link::finish`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Nothing yet.
    No,
    /// Close the sending side of the socket and continue to read. Closing both sides with unread input would reset the
    /// connection, and the peer would lose what it has not received.
    HalfClose,
    /// Continue to read. The kernel that encrypts has sent the good-bye; it may still encrypt, and would lose what it has if the sending side
    /// were closed. The peer closes the connection.
    Linger,
    /// Close the socket.
    Close,
}

/// The actions for the loop after applying a notice.
#[derive(Debug, Default)]
#[must_use]
pub struct Applied {
    /// A protocol error in bytes that were stashed earlier; handle it like one of a read.
    pub fatal: Option<Fatal>,
}

impl Link {
    /// Creates the link of a connection that was just opened.
    pub fn new(conn: ConnId, peer: Peer, config: &Config, now_ms: u64) -> Self {
        let below = Below::encrypted(peer, config).map(Box::new);
        Self {
            conn,
            peer,
            grant: None,
            receiver: Receiver::new(config.protocol),
            is_undecided: matches!(peer, Peer::Tcp(_)) && below.is_none(),
            below,
            is_seatless: false,
            parked_ms: None,
            stash: Vec::new(),
            output: Output::default(),
            descriptor: None,
            unsent_bytes: 0,
            sent_bytes: 0,
            in_flight_bytes: 0,
            account: Account::default(),
            charged: 0,
            is_held: false,
            opened_ms: now_ms,
            last_rx_ms: now_ms,
            active_ms: now_ms,
            has_idle_limit: config.idle_timeout_ms.is_some(),
            ended_ms: None,
            announced: false,
            established: false,
            wants_drain: None,
            close_when_sent: false,
            peer_ended: false,
            peer_closed_ms: None,
            discards: false,
        }
    }

    /// Returns the connection's id.
    pub fn conn(&self) -> ConnId {
        self.conn
    }

    /// Returns the other end.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    // ---- reading -----------------------------------------------------------------------------------------------------

    /// Returns how many bytes may be read now; if 0, they have to stay in the socket.
    pub fn wants_read(&self, config: &Config, pool: &Pool) -> usize {
        if self.discards {
            Config::READ_BYTES
        } else if self.ended_ms.is_some()
            || self.is_held
            || !self.stash.is_empty()
            || self.in_flight_bytes >= config.in_flight_max_bytes
            || self.backlog_bytes() >= config.unsent_max_bytes
        {
            0
        } else if pool.in_flight_bytes() < config.in_flight_total_max_bytes {
            Config::READ_BYTES
        } else if self.in_flight_bytes == 0 {
            Config::SMALL_READ_BYTES
        } else {
            0
        }
    }

    /// Handles the first `len` bytes of `buffer`, as the socket gave them; `buffer` may be replaced by another of the pool.
    ///
    /// # Errors
    /// Why the connection ends. What came before was passed on; call [`Link::end`].
    pub fn receive(
        &mut self,
        buffer: &mut Vec<u8>,
        len: usize,
        now_ms: u64,
        pool: &mut Pool,
        stats: &Stats,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), End> {
        if self.is_undecided {
            self.is_undecided = false;
            self.below = Below::in_the_clear(buffer.get(..len).unwrap_or_default()).map(Box::new);
            if self.below.is_none() && self.is_seatless {
                return Err(End::NoSeat);
            }
        }
        if self.below.is_none() {
            return self.handle_read(buffer, len, now_ms, pool, stats, sink).map_err(End::Protocol);
        }
        self.note_received(len, now_ms, stats);
        self.receive_below(buffer.get(..len).unwrap_or_default(), pool, stats, sink)
    }

    /// Parses the first `len` bytes of `buffer`, which may be replaced by another of the pool. For a connection without encryption.
    ///
    /// # Errors
    /// The peer broke the protocol. What came before was passed on; call [`Link::end`].
    pub fn handle_read(
        &mut self,
        buffer: &mut Vec<u8>,
        len: usize,
        now_ms: u64,
        pool: &mut Pool,
        stats: &Stats,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), Fatal> {
        self.note_received(len, now_ms, stats);
        if self.discards {
            return Ok(());
        }
        self.take_plain(buffer, len, pool, stats, sink)
    }

    /// Notes that the socket gave so many bytes.
    #[inline]
    fn note_received(&mut self, len: usize, now_ms: u64, stats: &Stats) {
        self.last_rx_ms = now_ms;
        self.put_off_end(now_ms);
        self.account.received_bytes += len as u64;
        Stats::add(&stats.received_bytes, len as u64);
    }

    #[inline]
    fn take_plain(
        &mut self,
        buffer: &mut Vec<u8>,
        len: usize,
        pool: &mut Pool,
        stats: &Stats,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), Fatal> {
        let by_reference = len > Config::SMALL_READ_BYTES;
        let mut batch = pool.batch();
        let result = self.parse(buffer.get(..len).unwrap_or_default(), by_reference, &mut batch, stats);
        let buffer = by_reference.then(|| mem::replace(buffer, pool.buffer()));
        batch.seal(buffer, len);
        self.emit(batch, pool, sink);
        result
    }

    /// Ends the reading side and tells the dispatch if it knows the connection. Returns false if the connection can be
    /// closed at once. Has no effect the second time.
    #[must_use]
    pub fn end(&mut self, now_ms: u64, sink: &mut impl FnMut(Event)) -> bool {
        if self.ended_ms.is_none() {
            self.ended_ms = Some(now_ms);
            self.stash = Vec::new();
            if self.announced {
                sink(Event::Ended { conn: self.conn });
            }
        }
        self.announced && !self.discards
    }

    /// Returns for whom the requests count, and at which rate, if there is one.
    pub(crate) fn rate(&self, config: &Config) -> Option<(Payer, Rate)> {
        let grant = self.grant();
        let own = grant.and_then(|grant| grant.requests_per_second);
        let rate =
            own.or(config.requests_per_second).filter(|_| !self.discards && self.ended_ms.is_none())?;
        Some((Payer::of(self.peer, grant), Rate::per_second(rate)))
    }

    /// Returns the number of requests since the last call.
    pub(crate) fn take_uncharged(&mut self) -> u64 {
        self.account.requests - std::mem::replace(&mut self.charged, self.account.requests)
    }

    /// Says whether nothing may be read because of the rate of requests.
    pub(crate) fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// Notes why the connection ends; the first reason stays.
    pub fn note_end(&mut self, end: &End) {
        if self.account.reason.is_empty() {
            self.account.reason = end.to_string().into();
            self.account.kind = end.word();
        }
    }

    /// Returns whom the worker has not let in, as far as that is known: its key and tenant.
    pub fn turned_away(&self) -> Option<&TurnedAway> {
        self.below.as_ref()?.turned_away()
    }

    /// Closes a connection that the dispatch does not know, after [`Link::end`], as soon as its peer was told why.
    pub fn refuse(&mut self) {
        self.close_when_sent = true;
    }

    /// Notes that the peer closed its sending side, possibly before unread bytes. If those are not read and nothing moves
    /// for [`Config::linger_ms`], the connection becomes [`overdue`](Self::overdue), so that a client that is gone does not
    /// wait for a device that hangs. Loops have to call this even while they do not read.
    pub fn handle_peer_closed(&mut self, now_ms: u64) {
        self.peer_closed_ms.get_or_insert(now_ms);
    }

    fn put_off_end(&mut self, now_ms: u64) {
        self.peer_closed_ms = self.peer_closed_ms.map(|_| now_ms);
    }

    /// Handles the end of the incoming stream; returns why the connection ends.
    pub fn handle_eof(&mut self) -> End {
        self.peer_ended = !self.can_park();
        if self.discards && self.peer_ended {
            return End::Eof;
        }
        if let Some(Err(why)) = self.below.as_ref().map(|below| below.handle_eof()) {
            return why;
        }
        self.handle_ended()
    }

    fn handle_ended(&mut self) -> End {
        self.peer_ended = true;
        match self.receiver.handle_eof() {
            Ok(()) => End::Eof,
            Err(why) => End::Protocol(why),
        }
    }

    fn parse(
        &mut self,
        input: &[u8],
        by_reference: bool,
        batch: &mut Batch,
        stats: &Stats,
    ) -> Result<(), Fatal> {
        batch.begin(input, by_reference);
        let mut rest = input;
        let mut requests = 0;
        let result = loop {
            let left = rest.len();
            match self.receiver.handle_input(&mut rest) {
                Ok(Rx::Request { ticket, op: _, fixed, tail }) => {
                    requests += 1;
                    self.established |= tail == 0;
                    // Had it come in pieces, less than all of it would have been taken now.
                    let whole = left - rest.len() >= Header::SIZE + fixed.len();
                    let at = whole.then(|| input.len() - rest.len() - fixed.len());
                    batch.push_request(ticket, fixed, at, tail);
                }
                Ok(Rx::Data { bytes, last }) => {
                    self.established |= last;
                    let at = input.len() - rest.len() - bytes.len();
                    batch.push_data(at, bytes.len(), last);
                }
                Ok(Rx::NeedMore) => break Ok(()),
                Ok(Rx::Paused) => {
                    self.stash = rest.to_vec();
                    break Ok(());
                }
                Err(why) => break Err(why),
            }
        };
        self.account.requests += requests;
        Stats::add(&stats.requests, requests);
        result
    }

    fn emit(&mut self, batch: Batch, pool: &mut Pool, sink: &mut impl FnMut(Event)) {
        if batch.is_empty() {
            return pool.discard(batch);
        }
        if !mem::replace(&mut self.announced, true) {
            sink(Event::Opened { conn: self.conn, peer: self.peer, grant: self.grant.clone() });
        }
        self.in_flight_bytes += batch.cost_bytes();
        pool.lend(&batch);
        sink(Event::Batch { conn: self.conn, batch });
    }

    // ---- notices -----------------------------------------------------------------------------------------------------

    /// Applies a notice of the dispatch.
    pub fn apply(
        &mut self,
        notice: Notice,
        now_ms: u64,
        pool: &mut Pool,
        stats: &Stats,
        sink: &mut impl FnMut(Event),
    ) -> Applied {
        if notice.completed > 0 || !notice.returned.is_empty() {
            self.put_off_end(now_ms);
        }
        for batch in notice.returned {
            self.in_flight_bytes = self.in_flight_bytes.saturating_sub(batch.cost_bytes());
            pool.restore(batch);
        }
        self.descriptor = notice.descriptor.or(self.descriptor.take());
        if let Some(outbox) = notice.outbox.filter(|outbox| !outbox.is_empty()) {
            match &mut self.below {
                None => {
                    self.unsent_bytes += outbox.len_bytes();
                    self.output.outboxes.push_back(outbox);
                }
                Some(below) => self.unsent_bytes += below.queue(outbox, &mut self.output.outboxes),
            }
        }
        self.wants_drain = notice.wants_drain.or(self.wants_drain);
        if notice.close && !mem::replace(&mut self.close_when_sent, true) {
            self.ended_ms = Some(now_ms);
            self.stash = Vec::new();
            if let Some(below) = &mut self.below {
                self.unsent_bytes += below.close(&mut self.output.outboxes);
            }
        }
        self.refill();
        self.receiver.retire(notice.completed);
        Stats::add(&stats.requests_done, notice.completed as u64);
        let mut fatal = None;
        if !self.stash.is_empty() && notice.completed > 0 {
            let stash = mem::take(&mut self.stash);
            let mut batch = pool.batch();
            fatal = self.parse(&stash, false, &mut batch, stats).err();
            batch.seal(None, stash.len() - self.stash.len());
            self.emit(batch, pool, sink);
        }
        Applied { fatal }
    }

    /// Returns the buffers of a notice for a closed connection to the pool.
    pub fn apply_gone(notice: Notice, pool: &mut Pool) {
        notice.returned.into_iter().for_each(|batch| pool.discard(batch));
    }

    // ---- writing -----------------------------------------------------------------------------------------------------

    /// Returns whether there are bytes to send.
    pub fn wants_write(&self) -> bool {
        self.unsent_bytes > 0
    }

    /// Returns the descriptor that has to be passed with the next bytes.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(AsFd::as_fd)
    }

    /// Takes the descriptor: it has been passed, or cannot be.
    pub fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptor.take()
    }

    /// Returns whether there are bytes to send of which no notice told: a handshake's, or what was taken.
    pub fn has_answer(&self) -> bool {
        self.below.is_some() && (!self.output.is_empty() || self.alert().is_some())
    }

    /// Returns the number of unsent bytes, including those that were taken by [`Link::take_output`].
    pub fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    /// Returns whether something has to happen as soon as all bytes are sent.
    pub fn awaits_sent(&self) -> bool {
        self.wants_drain.is_some() || self.close_when_sent
    }

    /// Iterates over the bytes to send, in order.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        self.output.slices()
    }

    /// Removes the first `len` bytes, which have been sent.
    pub fn handle_written(&mut self, len: usize, now_ms: u64, stats: &Stats) {
        self.output.advance(len);
        self.handle_sent(len, now_ms, stats);
    }

    /// Appends the bytes to send to `into`, for a loop whose kernel reads them asynchronously. They count as unsent until
    /// [`Link::handle_sent`].
    pub fn take_output(&mut self, into: &mut Output) {
        into.outboxes.append(&mut self.output.outboxes);
    }

    /// Notes that `len` of the bytes taken by [`Link::take_output`] have been sent.
    pub fn handle_sent(&mut self, len: usize, now_ms: u64, stats: &Stats) {
        self.account.sent_bytes += len as u64;
        Stats::add(&stats.sent_bytes, len as u64);
        self.sent_bytes += match &mut self.below {
            None => len as u64,
            Some(below) => below.handle_sent(len),
        };
        self.unsent_bytes = self.unsent_bytes.saturating_sub(len);
        self.refill();
        // A peer that takes what it is owed gets the time for the rest.
        if len > 0 {
            self.ended_ms = self.ended_ms.map(|_| now_ms);
            self.put_off_end(now_ms);
        }
    }

    /// Emits [`Event::Drained`] if a notice asked for it and few enough bytes are unsent. Has to be called when writing
    /// makes no more progress.
    pub fn report_drain(&mut self, sink: &mut impl FnMut(Event)) {
        let unsent_bytes = self.below.as_ref().map_or(self.unsent_bytes, |below| below.unsent_bytes());
        if self.wants_drain.is_some_and(|left| unsent_bytes <= left) {
            self.wants_drain = None;
            sink(Event::Drained { conn: self.conn, sent_bytes: self.sent_bytes });
        }
    }

    /// Returns what has to be done when writing makes no more progress: [`Finish::HalfClose`] or [`Finish::Linger`] once, after which the peer
    /// has [`Config::linger_ms`] to close its side.
    #[must_use]
    pub fn finish(&mut self, now_ms: u64) -> Finish {
        let is_in_kernel = self.is_in_kernel();
        if !self.close_when_sent || !self.is_all_sent() || self.alert().is_some() || self.discards {
            Finish::No
        } else if self.peer_ended && !is_in_kernel {
            Finish::Close
        } else {
            self.discards = true;
            self.ended_ms = Some(now_ms);
            if is_in_kernel { Finish::Linger } else { Finish::HalfClose }
        }
    }

    // ---- time and end ------------------------------------------------------------------------------------------------

    /// Returns whether [`Link::overdue`] can become due by the passage of time alone.
    pub fn has_deadline(&self) -> bool {
        let ends = self.ended_ms.or(self.peer_closed_ms).or(self.parked_ms).is_some();
        ends || self.has_idle_limit || !self.established || !self.receiver.is_between_messages()
    }

    /// Returns why the connection has to be given up, if a deadline has passed.
    pub fn overdue(&mut self, now_ms: u64, config: &Config, pool: &Pool) -> Option<End> {
        if let Some(parked_ms) = self.parked_ms {
            return (now_ms.saturating_sub(parked_ms) >= self.keeps_ms(config)).then_some(End::NotResumed);
        }
        if self.is_held {
            // It is we who do not listen.
            self.put_off_end(now_ms);
            (self.last_rx_ms, self.active_ms) = (now_ms, now_ms);
        }
        if let Some(ended_ms) = self.ended_ms.or(self.peer_closed_ms) {
            return (now_ms.saturating_sub(ended_ms) >= config.linger_ms).then_some(End::Eof);
        }
        if !self.established {
            let late = now_ms.saturating_sub(self.opened_ms) >= config.first_message_timeout_ms;
            return late.then_some(End::FirstMessageTimeout);
        }
        if self.wants_read(config, pool) == 0 {
            // It is we who do not listen.
            self.last_rx_ms = now_ms;
        }
        let late = now_ms.saturating_sub(self.last_rx_ms) >= config.mid_message_timeout_ms;
        if !self.receiver.is_between_messages() {
            return late.then_some(End::MidMessageTimeout);
        }
        let is_owed = self.receiver.open() > 0 || self.backlog_bytes() > 0;
        self.active_ms = if is_owed { now_ms } else { self.active_ms.max(self.last_rx_ms) };
        let idle_ms = now_ms.saturating_sub(self.active_ms);
        config.idle_timeout_ms.is_some_and(|most_ms| idle_ms >= most_ms).then_some(End::IdleTimeout)
    }

    /// Returns the number of requests that came and were not completed.
    pub(crate) fn open_requests(&self) -> usize {
        self.receiver.open()
    }

    /// Releases what the link holds after its socket was closed, and tells the dispatch if it knows the connection.
    pub fn close(self, pool: &mut Pool, sink: &mut impl FnMut(Event)) {
        pool.forget(self.in_flight_bytes);
        if self.announced {
            sink(Event::Closed { conn: self.conn, account: Box::new(self.account) });
        }
    }
}
