//! A connection, and an end with what it has said and taken.

use std::collections::VecDeque;

use hipr_resume::{Claim, Endpoint};

use super::{Broken, Met, broken, byte_at};

/// A connection. What one side has sent arrives, unless the other side has closed it.
#[derive(Debug)]
pub(super) struct Link {
    /// Bytes on their way to the worker and to the program.
    pub(super) up: VecDeque<u8>,
    pub(super) down: VecDeque<u8>,
    /// The key that the client at this link has shown.
    pub(super) key: u32,
    /// Whether nothing that is sent to the worker arrives any more.
    pub(super) is_dead: bool,
}

impl Link {
    pub(super) fn new(claim: &Claim, key: u32) -> Self {
        let up = claim.to_bytes().into();
        Self { up, down: VecDeque::new(), key, is_dead: false }
    }
}

/// Takes bytes off a queue.
pub(super) fn take(queue: &mut VecDeque<u8>, len: usize) -> Vec<u8> {
    queue.drain(..len.min(queue.len())).collect()
}

/// An end, with what it has said and taken.
pub(super) struct End {
    /// 0 for the program, 1 for the worker.
    pub(super) number: usize,
    pub(super) endpoint: Endpoint,
    ring_bytes: usize,
    peer_ring_bytes: usize,
    /// Number of bytes that the end has to send in all, and of those that it has handed to its endpoint.
    pub(super) goal: u64,
    pub(super) said: u64,
    pub(super) taken: u64,
    pub(super) heard_end: bool,
    /// Whether the stream ends when everything was said.
    pub(super) ends_when_said: bool,
    finished: bool,
    /// Frames without bytes that it has sent, over all connections.
    bare_frames: u64,
    sent_ever: u64,
    sent_all: u64,
    connections: u64,
}

impl std::fmt::Debug for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { number, goal, said, taken, heard_end, finished, .. } = self;
        write!(
            f,
            "end {number} (said {said} of {goal}, taken {taken}, heard end: {heard_end}, finished: {finished})"
        )
    }
}

impl End {
    pub(super) fn new(number: usize, ring_bytes: [usize; 2], goal: u64) -> Self {
        let mine = *ring_bytes.get(number).unwrap_or(&1);
        let others = *ring_bytes.get(1 - number).unwrap_or(&1);
        Self {
            number,
            endpoint: Endpoint::new(mine, others),
            ring_bytes: mine,
            peer_ring_bytes: others,
            goal,
            said: 0,
            taken: 0,
            heard_end: false,
            ends_when_said: false,
            finished: false,
            bare_frames: 0,
            sent_ever: 0,
            sent_all: 0,
            connections: 1,
        }
    }

    /// Says at most `len` bytes more.
    pub(super) fn say(&mut self, len: usize, met: &mut Met) {
        // One more than there is room for, so that a full ring is met.
        let room = self.endpoint.room() + 1;
        let left = usize::try_from(self.goal - self.said).unwrap_or(usize::MAX).min(len).min(room);
        let bytes: Vec<u8> = (0..left as u64).map(|at| byte_at(self.number, self.said + at)).collect();
        let pushed = self.endpoint.push(&bytes);
        met.full += u32::from(pushed < left && !self.finished);
        self.said += pushed as u64;
        if self.ends_when_said && self.said == self.goal {
            self.finish();
        }
    }

    /// Ends the stream behind what was said.
    pub(super) fn finish(&mut self) {
        if !self.finished {
            (self.finished, self.goal) = (true, self.said);
            self.endpoint.finish();
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Returns frames with at most `len` bytes of the stream.
    pub(super) fn transmit(&mut self, len: usize, met: &mut Met) -> Vec<u8> {
        let mut frames = Vec::new();
        let has_end = self.endpoint.is_end_sent();
        let sent = self.endpoint.take_output(&mut frames, len) as u64;
        self.sent_all += sent;
        let fresh = (self.said - self.endpoint.unsent_bytes() as u64).saturating_sub(self.sent_ever);
        met.again_bytes += sent.saturating_sub(fresh);
        self.sent_ever += fresh;
        if sent == 0 && !frames.is_empty() && has_end == self.endpoint.is_end_sent() {
            self.bare_frames += 1;
        }
        frames
    }

    /// Takes what is in the frames; one that is slow stows it.
    pub(super) fn hear(&mut self, mut frames: &[u8], is_slow: bool, met: &mut Met) -> Result<(), Broken> {
        if is_slow {
            let before = self.endpoint.stowed_bytes();
            let stowed = self.endpoint.stow(&mut frames);
            met.stowed_bytes += (self.endpoint.stowed_bytes() - before) as u64;
            return stowed.or_else(|fault| broken("an_honest_end_is_believed", format!("{self:?}: {fault}")));
        }
        loop {
            let mut piece = [0; 100];
            match self.endpoint.receive(&mut frames, &mut piece) {
                Ok(len) => {
                    self.compare(piece.get(..len).unwrap_or_default())?;
                    if len < piece.len() {
                        break;
                    }
                }
                Err(fault) => return broken("an_honest_end_is_believed", format!("{self:?}: {fault}")),
            }
        }
        self.heard_end |= self.endpoint.is_ended();
        Ok(())
    }

    fn compare(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        for byte in bytes {
            if *byte != byte_at(1 - self.number, self.taken) || self.heard_end {
                return broken("bytes_arrive_once_and_in_order", format!("{self:?} takes a wrong byte"));
            }
            self.taken += 1;
        }
        Ok(())
    }

    /// Goes on over another connection.
    pub(super) fn resume(&mut self, has: u64) -> Result<(), Broken> {
        self.connections += 1;
        let resumed = self.endpoint.resume(has);
        resumed.or_else(|fault| broken("an_honest_end_is_believed", format!("{self:?}, {has}: {fault}")))
    }

    pub(super) fn check(&self) -> Result<(), Broken> {
        let (kept, stowed) = (self.endpoint.kept_bytes(), self.endpoint.stowed_bytes());
        if kept > self.ring_bytes || stowed > self.peer_ring_bytes {
            return broken(
                "memory_is_bounded",
                format!("{self:?} keeps {kept} bytes and has stowed {stowed}"),
            );
        }
        // One for each quarter of what the other end may have under way, and one that each connection may have cut short.
        let every = (self.peer_ring_bytes as u64 / 4).max(1);
        if self.bare_frames > self.taken / every + self.connections {
            return broken("acknowledgements_are_few", format!("{self:?} has sent {}", self.bare_frames));
        }
        Ok(())
    }

    /// Returns numbers that change when anything moves.
    pub(super) fn moved(&self) -> [u64; 6] {
        let kept = self.endpoint.kept_bytes() as u64;
        [self.said, self.taken, self.sent_all, self.connections, kept, self.heard_end.into()]
    }
}

/// Checks that an end which has heard the other's end has all of it.
pub(super) fn check_end(end: &End, other: &End) -> Result<(), Broken> {
    if end.heard_end && !(other.is_finished() && end.taken == other.said) {
        return broken("an_end_is_learned_as_an_end", format!("{end:?} has heard an end of {other:?}"));
    }
    if end.taken > other.said {
        return broken("bytes_arrive_once_and_in_order", format!("{end:?} has more than {other:?} has said"));
    }
    Ok(())
}
