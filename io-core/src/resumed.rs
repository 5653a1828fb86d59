//! What a session keeps to outlive its connection, and what it has for the connection that it is on.

use std::collections::VecDeque;

use hipr_proto::Outbox;
use hipr_resume::{Claim, Endpoint, Fault, Name, Terms};

use crate::{Body, Config, gather};

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
}

impl Resumed {
    /// Creates the end of a session that begins with this claim.
    pub(crate) fn new(claim: &Claim, config: &Config) -> Self {
        Self {
            name: claim.name,
            endpoint: Endpoint::new(config.resume_ring_bytes, config.resume_ring_bytes),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            timeout_ms: config.resume_timeout_ms,
            ring_bytes: config.resume_ring_bytes,
            route: config.resume_route,
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

    /// Queues replies.
    pub(crate) fn queue(&mut self, outbox: Outbox<Body>) {
        self.waiting_bytes += outbox.len_bytes();
        self.waiting.push_back(outbox);
    }

    /// Moves replies to the ring, as far as there is room, and ends the stream behind the last one if `is_last`; returns how many bytes
    /// were moved.
    pub(crate) fn fill(&mut self, is_last: bool) -> usize {
        let before = self.waiting_bytes;
        while let Some(first) = self.waiting.front_mut() {
            let pushed = gather(first.slices(), |slices| {
                let mut pushed = 0;
                for slice in slices {
                    let len = self.endpoint.push(slice);
                    pushed += len;
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
