//! Connections through shared memory, in a loop that waits for sockets.
//!
//! While such a connection is busy the loop looks at its memory instead of waiting for its bell. When nothing has come for
//! [`hipr_io::Config::spin_us`], it asks for bells and sleeps. A client that has closed its sending side rings no more: while
//! there is no room for what is left to be sent to it, it is looked at every millisecond.

use std::time::{Duration, Instant};

use hipr_io::{ConnId, Readiness, Table};

use crate::Served;

/// Looks at connections before the sockets get their turn.
const LOOKS: usize = 64;

/// Time between two looks at connections that cannot ring.
const MUTE_INTERVAL: Duration = Duration::from_millis(1);

/// What a loop keeps of a connection.
pub trait Shares {
    /// What of it concerns shared memory; `None` for a connection through a socket.
    fn shared(&mut self) -> Option<Shared<'_>>;
}

/// A connection through shared memory, as a loop keeps it.
#[derive(Debug)]
pub struct Shared<'a> {
    /// Its end of the memory.
    pub served: &'a mut Served,
    /// What can be done with it.
    pub readiness: &'a mut Readiness,
    /// Whether it is looked at; else it rings. Nobody but the [`Lookout`] changes that.
    pub looked_at: &'a mut bool,
}

/// The connections that a loop looks at; the others have been asked to ring.
#[derive(Debug)]
pub struct Lookout {
    spin: Duration,
    looked_at: Vec<ConnId>,
    /// Since when none of them has had anything.
    idle_since: Option<Instant>,
    /// None of them has anything, nor can ring.
    are_mute: bool,
}

impl Lookout {
    /// No connections; the loop looks in vain for `spin_us` microseconds before it sleeps.
    pub fn new(spin_us: u64) -> Self {
        Self {
            spin: Duration::from_micros(spin_us),
            looked_at: Vec::new(),
            idle_since: None,
            are_mute: false,
        }
    }

    /// A connection gets a turn: it is looked at from now on. What it then waits for may be something else than what it asked
    /// to be rung for.
    pub fn wake(&mut self, conn: ConnId, socket: &mut impl Shares) {
        let Some(shared) = socket.shared() else { return };
        self.idle_since = None;
        if !std::mem::replace(shared.looked_at, true) {
            shared.served.awake();
            self.looked_at.push(conn);
        }
    }

    /// Before the loop sleeps: how long it may.
    pub fn look<S: Shares>(&mut self, timeout: Option<Duration>, table: &mut Table<S>) -> Option<Duration> {
        if timeout != Some(Duration::ZERO) && !self.looked_at.is_empty() {
            self.look_for_a_moment(table);
        }
        match timeout {
            _ if self.looked_at.is_empty() => timeout,
            _ if !self.are_mute => Some(Duration::ZERO),
            Some(timeout) => Some(timeout.min(MUTE_INTERVAL)),
            None => Some(MUTE_INTERVAL),
        }
    }

    /// Makes those ready that have something. When that was in vain for too long, they are asked to ring.
    fn look_for_a_moment<S: Shares>(&mut self, table: &mut Table<S>) {
        self.are_mute = false;
        for _ in 0..(LOOKS / self.looked_at.len().max(1)).max(1) {
            let mut found = false;
            self.looked_at.retain(|&conn| {
                let Some(mut shared) = table.socket(conn).and_then(Shares::shared) else { return false };
                if shared.has_news() {
                    found = true;
                    table.make_ready(conn);
                }
                true
            });
            if found {
                self.idle_since = None;
                return;
            }
            std::hint::spin_loop();
        }
        if self.idle_since.get_or_insert_with(Instant::now).elapsed() >= self.spin {
            self.are_mute = true;
            self.looked_at.retain(|&conn| {
                let Some(mut shared) = table.socket(conn).and_then(Shares::shared) else { return false };
                let is_mute = shared.is_mute();
                *shared.looked_at = is_mute || !shared.prepare_sleep();
                self.are_mute &= is_mute || !*shared.looked_at;
                *shared.looked_at
            });
        }
    }
}

impl Shared<'_> {
    /// Whether the memory has changed in a way that the loop waits for.
    fn has_news(&mut self) -> bool {
        let input = !self.readiness.readable && self.served.has_input();
        let room = !self.readiness.writable && self.served.has_room();
        self.readiness.readable |= input;
        self.readiness.writable |= room;
        input || room
    }

    /// Whether the loop waits for room in the memory, and the client will not ring when there is some.
    fn is_mute(&self) -> bool {
        self.served.has_ended() && !self.readiness.writable
    }

    /// Asks for the bell; `false` if there is something already.
    fn prepare_sleep(&mut self) -> bool {
        self.served.prepare_sleep(!self.readiness.readable, !self.readiness.writable)
    }
}
