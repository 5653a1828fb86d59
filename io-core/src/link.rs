use std::collections::VecDeque;
use std::mem;

use hipr_proto::{Fatal, Header, Outbox, Receiver, Rx};

use crate::{Batch, Body, Config, ConnId, End, Event, Notice, Peer, Pool, Stats};

/// One connection without its socket: everything that a loop of any kind does the same way. Bytes in become events, notices
/// become bytes out, and the limits of [`Config`] say when to read and when to give up.
///
/// Times are milliseconds of any clock that only goes forward.
#[derive(Debug)]
pub struct Link {
    conn: ConnId,
    peer: Peer,
    receiver: Receiver,
    /// Bytes that were read but not parsed, because too many requests were open.
    stash: Vec<u8>,
    output: Output,
    unsent_bytes: usize,
    sent_bytes: u64,
    in_flight_bytes: usize,
    opened_ms: u64,
    last_rx_ms: u64,
    /// When the reading side ended, or closing was asked for.
    ended_ms: Option<u64>,
    announced: bool,
    established: bool,
    /// Asked for: a word when so many unsent bytes, or fewer, are left.
    wants_drain: Option<usize>,
    close_when_sent: bool,
    /// The peer says nothing more.
    peer_ended: bool,
    /// When the peer closed its side, or when something moved after that.
    peer_closed_ms: Option<u64>,
    /// Everything was said, and what the peer still says is thrown away.
    discards: bool,
}

/// Bytes on their way out, in order.
#[derive(Debug, Default)]
pub struct Output {
    outboxes: VecDeque<Outbox<Body>>,
}

impl Output {
    /// Whether all have left.
    pub fn is_empty(&self) -> bool {
        self.outboxes.is_empty()
    }

    /// The bytes that have not left. They stay where they are in memory until [`Output::advance`] passes them or the output is
    /// dropped, also when it is moved or when more comes behind them.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        self.outboxes.iter().flat_map(Outbox::slices)
    }

    /// The first `len` bytes have left.
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

/// What the loop has to do about the end of a connection; see [`Link::finish`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Nothing yet.
    No,
    /// Close the sending side of the socket and read on. Closing all of it would be a reset if the peer had said something
    /// that was not read, and a reset takes along what the peer has not received.
    HalfClose,
    /// Close the socket.
    Close,
}

/// What a notice asks the loop to do.
#[derive(Debug, Default)]
#[must_use]
pub struct Applied {
    /// Bytes that were stashed turned out to break the protocol: handle it as the same from a read.
    pub fatal: Option<Fatal>,
}

impl Link {
    /// A connection that was just opened.
    pub fn new(conn: ConnId, peer: Peer, config: &Config, now_ms: u64) -> Self {
        Self {
            conn,
            peer,
            receiver: Receiver::new(config.protocol),
            stash: Vec::new(),
            output: Output::default(),
            unsent_bytes: 0,
            sent_bytes: 0,
            in_flight_bytes: 0,
            opened_ms: now_ms,
            last_rx_ms: now_ms,
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

    /// Its name.
    pub fn conn(&self) -> ConnId {
        self.conn
    }

    /// The other end.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    // ---- reading -----------------------------------------------------------------------------------------------------

    /// How many bytes may be read now; 0: none, leave them in the socket.
    pub fn wants_read(&self, config: &Config, pool: &Pool) -> usize {
        if self.discards {
            Config::READ_BYTES
        } else if self.ended_ms.is_some()
            || !self.stash.is_empty()
            || self.in_flight_bytes >= config.in_flight_max_bytes
            || self.unsent_bytes >= config.unsent_max_bytes
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

    /// Takes the first `len` bytes of `buffer`, which may be replaced by another of the pool.
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
        self.last_rx_ms = now_ms;
        self.put_off_end(now_ms);
        Stats::add(&stats.received_bytes, len as u64);
        if self.discards {
            return Ok(());
        }
        let by_reference = len > Config::SMALL_READ_BYTES;
        let mut batch = pool.batch();
        let result = self.parse(buffer.get(..len).unwrap_or_default(), by_reference, &mut batch, stats);
        let buffer = by_reference.then(|| mem::replace(buffer, pool.buffer()));
        batch.seal(buffer, len);
        self.emit(batch, pool, sink);
        result
    }

    /// Nothing more will be read. Says so to the dispatch if it knows the connection; `false` if it does not, or if
    /// everything was said, and then the connection can be closed at once. Repeats nothing.
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

    /// The peer closed its sending side, which was seen without reading up to there. If bytes before that are not wanted and
    /// nothing moves for [`Config::linger_ms`], the connection is [`overdue`](Self::overdue): a client that is gone must not
    /// wait for a device that hangs. A loop has to notice this also while it reads nothing.
    pub fn handle_peer_closed(&mut self, now_ms: u64) {
        self.peer_closed_ms.get_or_insert(now_ms);
    }

    fn put_off_end(&mut self, now_ms: u64) {
        self.peer_closed_ms = self.peer_closed_ms.map(|_| now_ms);
    }

    /// The peer closed its sending side: why the connection ends.
    pub fn handle_eof(&mut self) -> End {
        self.peer_ended = true;
        if self.discards {
            return End::Eof;
        }
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
        Stats::add(&stats.requests, requests);
        result
    }

    fn emit(&mut self, batch: Batch, pool: &mut Pool, sink: &mut impl FnMut(Event)) {
        if batch.is_empty() {
            return pool.discard(batch);
        }
        if !mem::replace(&mut self.announced, true) {
            sink(Event::Opened { conn: self.conn, peer: self.peer });
        }
        self.in_flight_bytes += batch.cost_bytes();
        pool.lend(&batch);
        sink(Event::Batch { conn: self.conn, batch });
    }

    // ---- notices -----------------------------------------------------------------------------------------------------

    /// Does what the dispatch says.
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
        if let Some(outbox) = notice.outbox.filter(|outbox| !outbox.is_empty()) {
            self.unsent_bytes += outbox.len_bytes();
            self.output.outboxes.push_back(outbox);
        }
        self.wants_drain = notice.wants_drain.or(self.wants_drain);
        if notice.close && !mem::replace(&mut self.close_when_sent, true) {
            self.ended_ms = Some(now_ms);
            self.stash = Vec::new();
        }
        self.receiver.retire(notice.completed);
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

    /// A notice for a connection that is gone: its buffers are free again.
    pub fn apply_gone(notice: Notice, pool: &mut Pool) {
        notice.returned.into_iter().for_each(|batch| pool.discard(batch));
    }

    // ---- writing -----------------------------------------------------------------------------------------------------

    /// Whether there are bytes to send.
    pub fn wants_write(&self) -> bool {
        self.unsent_bytes > 0
    }

    /// How many bytes there are to send, those included that were taken and have not left.
    pub fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    /// Whether something is to be done as soon as they have left.
    pub fn awaits_sent(&self) -> bool {
        self.wants_drain.is_some() || self.close_when_sent
    }

    /// The bytes to send, in order.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        self.output.slices()
    }

    /// `len` of them were sent.
    pub fn handle_written(&mut self, len: usize, now_ms: u64, stats: &Stats) {
        self.output.advance(len);
        self.handle_sent(len, now_ms, stats);
    }

    /// Moves the bytes to send behind those that `into` holds already, for a loop whose kernel reads them after the call that
    /// sends. They count as unsent until [`Link::handle_sent`].
    pub fn take_output(&mut self, into: &mut Output) {
        into.outboxes.append(&mut self.output.outboxes);
    }

    /// `len` bytes of those that were taken with [`Link::take_output`] were sent.
    pub fn handle_sent(&mut self, len: usize, now_ms: u64, stats: &Stats) {
        Stats::add(&stats.sent_bytes, len as u64);
        self.sent_bytes += len as u64;
        self.unsent_bytes = self.unsent_bytes.saturating_sub(len);
        // A peer that takes what it is owed gets the time for the rest.
        if len > 0 {
            self.ended_ms = self.ended_ms.map(|_| now_ms);
            self.put_off_end(now_ms);
        }
    }

    /// Says how far sending got if that was asked for and enough is gone. To be called when writing made no more progress.
    pub fn report_drain(&mut self, sink: &mut impl FnMut(Event)) {
        if self.wants_drain.is_some_and(|left| self.unsent_bytes <= left) {
            self.wants_drain = None;
            sink(Event::Drained { conn: self.conn, sent_bytes: self.sent_bytes });
        }
    }

    /// What there is to do now that writing made no more progress. [`Finish::HalfClose`] once, and then [`Config::linger_ms`]
    /// for the peer to close its side too.
    #[must_use]
    pub fn finish(&mut self, now_ms: u64) -> Finish {
        if !self.close_when_sent || self.unsent_bytes > 0 || self.discards {
            Finish::No
        } else if self.peer_ended {
            Finish::Close
        } else {
            self.discards = true;
            self.ended_ms = Some(now_ms);
            Finish::HalfClose
        }
    }

    // ---- time and end ------------------------------------------------------------------------------------------------

    /// Whether [`Link::overdue`] can become true without anything else happening.
    pub fn has_deadline(&self) -> bool {
        let ends = self.ended_ms.or(self.peer_closed_ms).is_some();
        ends || !self.established || !self.receiver.is_between_messages()
    }

    /// Whether it is time to give up.
    pub fn overdue(&mut self, now_ms: u64, config: &Config, pool: &Pool) -> Option<End> {
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
        (late && !self.receiver.is_between_messages()).then_some(End::MidMessageTimeout)
    }

    /// The socket is closed: frees what it holds and tells the dispatch if that knows the connection.
    pub fn close(self, pool: &mut Pool, sink: &mut impl FnMut(Event)) {
        pool.forget(self.in_flight_bytes);
        if self.announced {
            sink(Event::Closed { conn: self.conn });
        }
    }
}
