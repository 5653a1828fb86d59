//! Connections that claim sessions, and sessions without a connection.

use hipr_resume::{Claim, Refusal};
use tracing::{debug, info};

use super::{Carrier, Driver, Table};
use crate::{ConnId, End, Event, Fault, NoSeat, Payer, Peer, Stats};

/// Maximum number of connections without a seat, which may only go on with a session; a further one closes the oldest.
const DOOR_MAX: usize = 16;

/// What becomes of a session that loses its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parking {
    /// It waits for its client.
    Parked,
    /// It ends, as there are as many that wait as there may be.
    Full,
    /// It ends with the connection.
    Ends,
}

impl<C: Carrier> Driver<C> {
    /// Adds a connection that found no seat, and why if it looked for one, if it may be one that goes on with a session that has one.
    /// Returns whether it was added.
    pub(super) fn admit_at_door(&mut self, arrival: C::Arrival, peer: Peer, no_seat: Option<NoSeat>) -> bool {
        if self.sessions.is_empty() || !matches!(peer, Peer::Tcp(_)) {
            return false;
        }
        let Ok(id) = self.open(arrival, peer) else { return false };
        if let Some(conn) = self.table.conns.get_mut(id) {
            conn.link.has_no_seat();
            conn.no_seat = no_seat;
        }
        self.door.push_back(id);
        true
    }

    /// Closes the oldest connections without a seat, if there are too many.
    pub(super) fn bound_door(&mut self, sink: &mut impl FnMut(Event)) {
        while self.door.len() > DOOR_MAX {
            if let Some(oldest) = self.door.pop_front() {
                self.close(oldest, &End::NoSeat, sink);
            }
        }
    }

    /// Answers what a connection claims, if it claims anything.
    pub(super) fn decide(&mut self, id: ConnId, sink: &mut impl FnMut(Event)) {
        let Some(conn) = self.table.conns.get_mut(id) else { return };
        let Some((claim, key)) = conn.link.claim() else { return };
        if claim.epoch > 0 {
            return match self.sessions.resume(&claim, &key) {
                Ok(session) => self.resume(id, session, &claim, sink),
                // Who was really cut off comes again, with a later one.
                Err(Refusal::Late) => {
                    self.close(id, &End::Channel(Fault::Preamble("its claim came late")), sink)
                }
                Err(why) => self.refuse(id, why, sink),
            };
        }
        if !conn.link.is_seated() {
            return self.close(id, &End::NoSeat, sink);
        }
        if let Err(why) = self.sessions.begin(claim.name, key, id) {
            return self.refuse(id, why, sink);
        }
        conn.link.begin_session(&claim, &self.config);
        Table::enlist(&mut self.table.ready, conn);
        self.send(id, sink);
    }

    fn refuse(&mut self, id: ConnId, why: Refusal, sink: &mut impl FnMut(Event)) {
        let Some(conn) = self.table.conns.get_mut(id) else { return };
        info!(conn = %id, peer = %conn.link.peer(), %why, "a session cannot go on");
        Stats::add(&self.stats.connections_refused, 1);
        conn.link.refuse_claim(why.to_string());
        let _ = conn.link.end(self.now_ms, sink);
        conn.link.refuse();
        self.watch();
        self.send(id, sink);
    }

    /// Gives the socket of a connection to the session that it claims; the session's own is closed, if it has one.
    fn resume(&mut self, id: ConnId, session: ConnId, claim: &Claim, sink: &mut impl FnMut(Event)) {
        let can_resume = self.table.conns.get_mut(session).is_some_and(|conn| conn.link.can_resume(claim));
        if id == session || !can_resume {
            return self.refuse(id, Refusal::Unknown, sink);
        }
        let Some(arrived) = self.table.conns.remove(id) else { return };
        let Some(conn) = self.table.conns.get_mut(session) else { return };
        self.door.retain(|other| *other != id);
        if arrived.link.is_seated() {
            self.seats.give_back(arrived.link.peer());
        }
        Stats::add(&self.stats.connections_closed, 1);
        if let Some(fenced) = conn.socket.take() {
            self.carrier.close(fenced);
        }
        let peer = arrived.link.peer();
        conn.link.resume(arrived.link, claim, self.now_ms);
        if let Some(mut socket) = arrived.socket {
            match self.carrier.rebind(&mut socket, session) {
                Ok(()) => {
                    conn.socket = Some(socket);
                    let place = conn.place.take();
                    self.give_place_back(place);
                }
                Err(why) => {
                    debug!(conn = %session, %why, "cannot take over a connection");
                    self.carrier.close(socket);
                    conn.link.park(self.now_ms);
                    if conn.place.is_none() && !self.take_place(session) {
                        return self.close(session, &End::ParkedMax, sink);
                    }
                }
            }
        }
        let Some(conn) = self.table.conns.get_mut(session) else { return };
        Stats::add(&self.stats.sessions_resumed, 1);
        if conn.link.is_announced() {
            sink(Event::Resumed { conn: session, peer });
        }
        info!(conn = %session, %peer, connections = claim.epoch, "the session goes on over another connection");
        Table::enlist(&mut self.table.ready, conn);
        self.carrier.handle_descriptor_free();
        self.watch();
        self.send(session, sink);
    }

    /// Takes the connection from a session that was cut off, and waits for its client. Says whether it does.
    pub(super) fn park(&mut self, id: ConnId, end: &End, sink: &mut impl FnMut(Event)) -> Parking {
        let Some(conn) = self.table.conns.get_mut(id) else { return Parking::Ends };
        let is_cut = !matches!(
            end,
            End::Protocol(_)
                | End::Frames(_)
                | End::IdleTimeout
                | End::NotResumed
                | End::ParkedMax
                | End::NoSeat
                | End::Stopped
        );
        let is_cut = is_cut && (!matches!(end, End::NoRoom) || conn.link.can_unstow());
        if !is_cut || !conn.link.can_park() {
            return Parking::Ends;
        }
        if conn.socket.is_some() && conn.place.is_none() && !self.take_place(id) {
            return Parking::Full;
        }
        let Some(conn) = self.table.conns.get_mut(id) else { return Parking::Ends };
        if let Some(socket) = conn.socket.take() {
            let peer = conn.link.peer();
            info!(conn = %id, %peer, why = %end, timeout_ms = self.config.resume_timeout_ms, "the link was cut: the session is kept for its client");
            Stats::add(&self.stats.sessions_parked, 1);
            if conn.link.is_announced() {
                sink(Event::Parked { conn: id, reason: end.to_string() });
            }
            self.carrier.close(socket);
            self.carrier.handle_descriptor_free();
        }
        conn.link.park(self.now_ms);
        self.watch();
        Parking::Parked
    }

    /// Takes a place for a session among those without a connection, where there is a limit; returns false if there is none, and logs it.
    fn take_place(&mut self, id: ConnId) -> bool {
        let Some(conn) = self.table.conns.get_mut(id) else { return false };
        let grant = conn.link.grant();
        let limit = grant.and_then(|grant| grant.parked_max).or(self.config.parked_max);
        let Some(limit) = limit else { return true };
        let (peer, payer) = (conn.link.peer(), Payer::of(conn.link.peer(), grant));
        let has_place = match &self.config.ledger {
            Some(ledger) => ledger.park(payer, limit),
            None => self.parked.take(payer, limit),
        };
        if has_place {
            conn.place = Some(payer);
        } else {
            let tenant = grant.map(|grant| grant.tenant.as_str());
            info!(conn = %id, %peer, tenant, limit, "the link was cut and the session ends: as many wait for their clients as may");
        }
        has_place
    }

    /// Gives back the place of a session that has ended or has a connection again.
    pub(super) fn give_place_back(&mut self, place: Option<Payer>) {
        match (&self.config.ledger, place) {
            (_, None) => {}
            (Some(ledger), Some(_)) => ledger.unpark(),
            (None, Some(payer)) => self.parked.give_back(payer),
        }
    }

    /// Lets a session without a connection take what has arrived for it.
    pub(super) fn receive_parked(&mut self, id: ConnId, sink: &mut impl FnMut(Event)) {
        let Some(conn) = self.table.conns.get_mut(id) else { return };
        if conn.link.has_held() && conn.link.begin_read(&self.config, &self.pool) > 0 {
            let received = conn.link.receive_held(&mut self.pool, &self.stats, sink);
            if let Err(end) = received {
                self.end(id, &end, sink);
            }
        }
    }
}
