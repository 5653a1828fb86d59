//! A link whose session outlives its connection: the claim, the parking, and the next connection.

use hipr_resume::{Claim, Name};
use hipr_tls::PublicKey;

use super::{Link, Output};
use crate::below::Below;
use crate::resumed::Resumed;
use crate::{Config, End, Event, Grant, Pool, Stats};

/// Bytes for the socket up to which more frames are made: the ring has what follows.
const OUTPUT_BYTES: usize = 256 << 10;

impl Link {
    /// Returns how many bytes may be read now, as [`wants_read`](Link::wants_read) does. While only acknowledgements are of use, because
    /// replies wait for them, what else is read is kept aside: it is no more than the client may send unacknowledged.
    pub fn begin_read(&mut self, config: &Config, pool: &Pool) -> usize {
        let want_bytes = self.wants_read(config, pool);
        let Some(below) = &mut self.below else { return want_bytes };
        let stows = want_bytes == 0 && below.session().is_some_and(|session| session.waiting_bytes() > 0);
        below.set_stows(stows);
        if stows { Config::SMALL_READ_BYTES } else { want_bytes }
    }

    /// Returns whether bytes have arrived that were not taken, although the socket has none.
    pub fn has_held(&self) -> bool {
        self.below.as_ref().is_some_and(|below| below.has_held())
    }

    /// Takes the bytes that have arrived and were not taken. Only while [`begin_read`](Self::begin_read) allows to read.
    ///
    /// # Errors
    /// As [`receive`](Link::receive).
    pub fn receive_held(
        &mut self,
        pool: &mut Pool,
        stats: &Stats,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), End> {
        let held = self.below.as_mut().map(|below| below.take_held()).unwrap_or_default();
        self.receive_below(&held, pool, stats, sink)
    }

    /// Returns whether the handler knows of the connection.
    pub fn is_announced(&self) -> bool {
        self.announced
    }

    /// Marks a connection that has no seat: it may only go on with a session.
    pub fn has_no_seat(&mut self) {
        self.is_seatless = true;
    }

    /// Returns whether the connection has a seat.
    pub fn is_seated(&self) -> bool {
        !self.is_seatless
    }

    /// Returns the bytes that the peer has not received, those included that the ring has no room for.
    pub(super) fn backlog_bytes(&self) -> usize {
        let waiting = self.below.as_ref().and_then(|below| below.session());
        self.unsent_bytes + waiting.map_or(0, Resumed::waiting_bytes)
    }

    /// Moves waiting replies to the ring, as far as it has room, and makes frames of the ring's bytes until [`OUTPUT_BYTES`] wait for the
    /// socket.
    pub(super) fn refill(&mut self) {
        let is_last = self.close_when_sent;
        let Some(below) = &mut self.below else { return };
        let Some(session) = below.resumed() else { return };
        self.sent_bytes += session.fill(is_last) as u64;
        while self.unsent_bytes < OUTPUT_BYTES {
            let len = below.transmit(&mut self.output.outboxes);
            if len == 0 {
                break;
            }
            self.unsent_bytes += len;
        }
    }

    // ---- receiving ---------------------------------------------------------------------------------------------------

    /// Passes bytes of the socket through what lies below HIPR.
    pub(super) fn receive_below(
        &mut self,
        mut raw: &[u8],
        pool: &mut Pool,
        stats: &Stats,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), End> {
        let Some(mut below) = self.below.take() else { return Ok(()) };
        let result = self.receive_through(&mut below, &mut raw, pool, stats, sink);
        if below.claim().is_some() {
            below.hold(raw);
        }
        self.unsent_bytes += below.take_output(&mut self.output.outboxes);
        let is_too_much = below.session().is_some_and(Resumed::is_stowing_too_much);
        self.below = Some(below);
        self.refill();
        if is_too_much && result.is_ok() { Err(End::NoRoom) } else { result }
    }

    fn receive_through(
        &mut self,
        below: &mut Below,
        raw: &mut &[u8],
        pool: &mut Pool,
        stats: &Stats,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), End> {
        let is_dropped = self.discards || self.ended_ms.is_some();
        if is_dropped && below.session().is_none() {
            return Ok(());
        }
        loop {
            let mut plain = pool.buffer();
            let received = below.receive(raw, &mut plain, pool);
            let len = *received.as_ref().unwrap_or(&0);
            let is_full = len == plain.len();
            let parsed = if len == 0 || is_dropped {
                Ok(())
            } else if self.stash.is_empty() {
                self.grant = self.grant.take().or_else(|| below.grant());
                self.take_plain(&mut plain, len, pool, stats, sink)
            } else {
                // One read may be more than one buffer.
                self.stash.extend_from_slice(plain.get(..len).unwrap_or_default());
                Ok(())
            };
            pool.keep_buffer(plain);
            received?;
            parsed.map_err(End::Protocol)?;
            if below.claim().is_some() {
                return Ok(());
            }
            if self.is_seatless && below.session().is_none() && below.grant().is_some() {
                return Err(End::NoSeat);
            }
            if below.is_ended() && !is_full {
                return Err(self.handle_ended());
            }
            if !is_full {
                return Ok(());
            }
        }
    }

    // ---- claims ------------------------------------------------------------------------------------------------------

    /// Returns the session that the client claims, with the key that it has shown, until that is answered.
    pub fn claim(&self) -> Option<(Claim, Option<PublicKey>)> {
        self.below.as_ref().and_then(|below| below.claim())
    }

    /// Returns the name of the link's session.
    pub fn session_name(&self) -> Option<Name> {
        self.below.as_ref().and_then(|below| below.session()).map(|session| *session.name())
    }

    /// Begins the session that is claimed.
    pub fn begin_session(&mut self, claim: &Claim, config: &Config) {
        let Some(below) = &mut self.below else { return };
        // It is known for whom the session counts, also when the link is cut before the first request.
        self.grant = self.grant.take().or_else(|| below.grant());
        let grant = self.grant.as_deref().map(|admission| &**admission);
        let mut session = Resumed::new(claim, config, grant);
        self.unsent_bytes += below.answer(Ok(session.terms()), &mut self.output.outboxes);
        below.set_session(session);
    }

    /// Returns what the client may do, if it has proved who it is.
    pub fn grant(&self) -> Option<&Grant> {
        self.grant.as_deref().map(|admission| &**admission)
    }

    /// Refuses the session that is claimed; [`Link::refuse`] has to follow.
    pub fn refuse_claim(&mut self, why: String) {
        if let Some(below) = &mut self.below {
            self.unsent_bytes += below.answer(Err(why), &mut self.output.outboxes);
        }
    }

    /// Returns whether the session can go on over a connection with this claim.
    pub fn can_resume(&mut self, claim: &Claim) -> bool {
        let session = self.below.as_mut().and_then(|below| below.resumed());
        session.is_some_and(|session| session.endpoint().can_resume(claim.taken))
    }

    /// Goes on over the connection of `other`, whose socket becomes this one's. The connection until now means nothing any more.
    pub fn resume(&mut self, other: Self, claim: &Claim, now_ms: u64) {
        let session = self.below.as_mut().and_then(|below| below.take_session());
        let (Some(mut session), Some(mut below)) = (session, other.below) else { return };
        // It can, as was asked before.
        if let Err(why) = session.resume(claim.taken) {
            tracing::error!(conn = %self.conn, %why, "a session cannot go on");
        }
        (self.output, self.unsent_bytes) = (other.output, other.unsent_bytes);
        self.unsent_bytes += below.answer(Ok(session.terms()), &mut self.output.outboxes);
        below.set_session(session);
        self.below = Some(below);
        (self.parked_ms, self.peer_closed_ms, self.last_rx_ms) = (None, None, now_ms);
        self.discards = false;
        self.ended_ms = self.ended_ms.map(|_| now_ms);
        self.refill();
    }

    // ---- parking -----------------------------------------------------------------------------------------------------

    /// Returns whether the session goes on when the connection is cut: its client has not said that it is over, and does not have
    /// everything.
    pub fn can_park(&self) -> bool {
        let session = self.below.as_ref().and_then(|below| below.session());
        session.is_some_and(|session| session.keeps_ms().is_some() && (!self.discards || session.owes()))
    }

    /// Returns whether the client sends again what cannot be taken now, over another connection.
    pub fn can_unstow(&self) -> bool {
        let session = self.below.as_ref().and_then(|below| below.session());
        session.is_some_and(Resumed::can_unstow)
    }

    /// Handles that the connection was cut: the session waits for its client.
    pub fn park(&mut self, now_ms: u64) {
        if let Some(below) = &mut self.below {
            below.cut();
        }
        (self.output, self.unsent_bytes) = (Output::default(), 0);
        self.parked_ms.get_or_insert(now_ms);
        self.peer_closed_ms = None;
        self.descriptor = None;
    }

    /// Returns whether the session has no connection.
    pub fn is_parked(&self) -> bool {
        self.parked_ms.is_some()
    }

    /// Returns for how long the session waits for its client. One that is over has only its last replies to give.
    pub(super) fn keeps_ms(&self, config: &Config) -> u64 {
        let session = self.below.as_ref().and_then(|below| below.session());
        let keeps_ms = session.and_then(Resumed::keeps_ms).unwrap_or(0);
        if self.close_when_sent { keeps_ms.min(config.linger_ms) } else { keeps_ms }
    }
}
