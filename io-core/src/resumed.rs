//! What a session keeps to outlive its connection, and what it has for the connection that it is on.

use std::collections::VecDeque;

use hipr_proto::Outbox;
use hipr_resume::{Claim, Endpoint, Fault, Name, SAY_EVERY_BYTES, Terms};

use crate::budget::KeptBySession;
use crate::{Body, Config, Grant, gather};

/// Bytes of the session in one buffer of frames.
const PIECE_BYTES: usize = 128 << 10;

/// The session's end of both streams, and the replies that the ring has no room for.
#[derive(Debug)]
pub(crate) struct Resumed {
    name: Name,
    endpoint: Endpoint,
    waiting: VecDeque<Outbox<Body>>,
    waiting_bytes: usize,
    timeout_ms: u64,
    ring_bytes: usize,
    route: u64,
    kept: KeptBySession,
}

impl Resumed {
    /// Creates the end of a session that begins with this claim, for who has this grant.
    pub(crate) fn new(claim: &Claim, config: &Config, grant: Option<&Grant>) -> Self {
        Self {
            name: claim.name,
            endpoint: Endpoint::new(config.resume_ring_bytes, config.resume_ring_bytes),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            timeout_ms: config.resume_timeout_ms,
            ring_bytes: config.resume_ring_bytes,
            route: config.resume_route,
            kept: KeptBySession::new(config.budget.of(grant)),
        }
    }

    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    pub(crate) fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// Returns what the client is answered: the limits, and how far its stream has arrived.
    pub(crate) fn terms(&mut self) -> Terms {
        let ring_bytes = u32::try_from(self.ring_bytes).unwrap_or(u32::MAX);
        Terms {
            timeout_ms: u32::try_from(self.timeout_ms).unwrap_or(u32::MAX),
            to_worker_max_bytes: ring_bytes,
            to_client_max_bytes: ring_bytes,
            taken: self.endpoint.taken(),
            route: self.route,
        }
    }

    /// Goes on over a new connection to a client that has everything before the offset `has`.
    ///
    /// # Errors
    /// It cannot have that; then the session stays on the connection that it has.
    pub(crate) fn resume(&mut self, has: u64) -> Result<(), Fault> {
        if !self.endpoint.can_resume(has) {
            return Err(Fault::Taken);
        }
        self.endpoint.cut();
        self.endpoint.resume(has)
    }

    /// Returns how long the session is kept without a connection; `None` if it is not, or its client has said that it is over.
    pub(crate) fn keeps_ms(&self) -> Option<u64> {
        (self.timeout_ms > 0 && !self.endpoint.is_ended()).then_some(self.timeout_ms)
    }

    /// Returns whether the client has ended its stream, and all of it was taken.
    pub(crate) fn is_ended(&self) -> bool {
        self.endpoint.is_ended()
    }

    /// Returns the number of bytes that have arrived and were not taken.
    pub(crate) fn stowed_bytes(&self) -> usize {
        self.endpoint.stowed_bytes()
    }

    /// Returns whether the client may not have everything that it was sent.
    pub(crate) fn owes(&self) -> bool {
        self.endpoint.kept_bytes() > 0
    }

    /// Returns the number of bytes that the ring has no room for.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Returns whether everything was sent over the connection, the end of the stream as well.
    pub(crate) fn is_end_sent(&self) -> bool {
        self.endpoint.is_end_sent()
    }

    /// Notes what the session keeps now.
    pub(crate) fn count(&mut self) {
        self.kept.set(self.endpoint.memory_bytes() as u64);
    }

    /// Returns how many bytes the ring may take now: what is left for the session to keep, but always as many as the client has to have before it says
    /// so.
    fn ring_room(&self) -> usize {
        let least = SAY_EVERY_BYTES.saturating_sub(self.endpoint.kept_bytes());
        least.max(self.kept.room())
    }

    /// Returns whether more has arrived that cannot be taken than there is room for.
    pub(crate) fn is_stowing_too_much(&self) -> bool {
        self.endpoint.stowed_bytes() > SAY_EVERY_BYTES && self.kept.room() == 0
    }

    /// Returns whether the client sends again what was stowed, if the connection is cut.
    pub(crate) fn can_unstow(&self) -> bool {
        !self.endpoint.has_end()
    }

    /// Queues replies.
    pub(crate) fn queue(&mut self, outbox: Outbox<Body>) {
        self.waiting_bytes += outbox.len_bytes();
        self.waiting.push_back(outbox);
    }

    /// Moves replies to the ring, as far as there is room, and ends the stream behind the last one if `is_last`; returns how many bytes
    /// were moved.
    pub(crate) fn fill(&mut self, is_last: bool) -> usize {
        let before = self.waiting_bytes;
        self.count();
        let mut room = self.ring_room();
        while let Some(first) = self.waiting.front_mut() {
            let pushed = gather(first.slices(), |slices| {
                let mut pushed = 0;
                for slice in slices {
                    let len = self.endpoint.push(slice.get(..slice.len().min(room)).unwrap_or_default());
                    (pushed, room) = (pushed + len, room - len);
                    if len < slice.len() {
                        break;
                    }
                }
                pushed
            });
            first.advance(pushed);
            self.waiting_bytes -= pushed;
            if first.is_empty() {
                self.waiting.pop_front();
            } else if pushed == 0 {
                break;
            }
        }
        if is_last && self.waiting.is_empty() {
            self.endpoint.finish();
        }
        self.count();
        before - self.waiting_bytes
    }

    /// Returns frames for the connection, if there are any.
    pub(crate) fn transmit(&mut self) -> Option<Outbox<Body>> {
        if !self.endpoint.has_output() {
            return None;
        }
        let mut frames = Vec::with_capacity(self.endpoint.unsent_bytes().min(PIECE_BYTES) + 64);
        self.endpoint.take_output(&mut frames, PIECE_BYTES);
        let mut outbox = Outbox::new();
        outbox.put_inline(Body::from(frames));
        Some(outbox)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queued(max_bytes: u64) -> (Config, Resumed) {
        let config = Config::default();
        config.budget.set_max(max_bytes);
        let mut session =
            Resumed::new(&Claim { name: Name::new([1; 32]), epoch: 0, taken: 0 }, &config, None);
        let mut outbox = Outbox::new();
        outbox.put_inline(Body::from(vec![7; 4 << 20]));
        session.queue(outbox);
        (config, session)
    }

    /// What a ring keeps is counted while it is there, and bounded by what there is for all; with nothing left there is so much that the
    /// client goes on.
    #[test]
    fn a_ring_keeps_what_there_is_room_for_and_counts_it() {
        // The most of all sessions, and the most that one of them keeps then.
        for (max_bytes, most) in
            [(u64::MAX, 4 << 20), (1 << 20, 1 << 20), (300 << 10, 300 << 10), (0, SAY_EVERY_BYTES)]
        {
            let (config, mut session) = queued(max_bytes);
            session.fill(false);
            assert_eq!(session.endpoint.kept_bytes(), most);
            assert_eq!(config.budget.kept_bytes(), session.endpoint.memory_bytes() as u64);
            assert!((most as u64..=2 * most as u64).contains(&config.budget.kept_bytes()));
            assert_eq!(session.waiting_bytes(), (4 << 20) - most);
            // Another one has nothing but the least; and gets more when the first one ends.
            if max_bytes < 4 << 20 {
                let (name, mut frames) = (Name::new([2; 32]), Vec::new());
                let mut other = Resumed::new(&Claim { name, epoch: 0, taken: 0 }, &config, None);
                let mut outbox = Outbox::new();
                outbox.put_inline(Body::from(vec![7; 4 << 20]));
                other.queue(outbox);
                other.fill(false);
                assert_eq!(other.endpoint.kept_bytes(), SAY_EVERY_BYTES);
                // The client of the other end says what it has before the ring is full again.
                let mut client = Endpoint::new(1 << 20, config.resume_ring_bytes);
                let mut room = vec![0; 1 << 20];
                let mut taken = 0;
                while taken < 4 << 20 {
                    other.endpoint.take_output(&mut frames, usize::MAX);
                    taken += client.receive(&mut frames.as_slice(), &mut room).expect("frames");
                    frames.clear();
                    client.take_output(&mut frames, usize::MAX);
                    assert!(!frames.is_empty(), "nothing goes on after {taken} bytes");
                    other.endpoint.receive(&mut frames.as_slice(), &mut []).expect("an acknowledgement");
                    frames.clear();
                    other.fill(false);
                }
                drop(other);
            }
            drop(session);
            assert_eq!(config.budget.kept_bytes(), 0);
        }
    }
}
