//! Busy polling of shared-memory connections, for a loop that otherwise waits for sockets.
//!
//! While such a connection is busy the loop looks at its memory instead of waiting for its bell. When nothing has come for
//! [`hipr_io::Config::spin_us`], it asks for bells and sleeps. A client that has closed its sending side rings no more: while
//! there is no room for what is left to be sent to it, it is looked at every millisecond.

use std::time::{Duration, Instant};

use hipr_io::{ConnId, Readiness, Table};

use crate::Served;

/// Polls of the connections before the sockets are polled.
const LOOKS: usize = 64;

/// Interval between polls of connections that cannot ring.
const MUTE_INTERVAL: Duration = Duration::from_millis(1);

/// The state that a loop keeps for a connection, of any kind.
pub trait SharedMemory {
    /// Returns the connection's shared memory; `None` if it uses a socket.
    fn shared(&mut self) -> Option<Shared<'_>>;
}

/// A shared-memory connection in a loop.
#[derive(Debug)]
pub struct Shared<'a> {
    /// The worker's end of the shared memory.
    pub served: &'a mut Served,
    /// The operations for which the connection is ready.
    pub readiness: &'a mut Readiness,
    /// Whether the connection is polled; if not, its client has been asked to ring. Only the poller changes it.
    pub is_polled: &'a mut bool,
}

/// The shared-memory connections of a loop that are polled; the clients of all others have been asked to ring their bells.
#[derive(Debug)]
pub struct BusyPoller {
    spin: Duration,
    polled: Vec<ConnId>,
    /// Time since which none of them had anything to do.
    idle_since: Option<Instant>,
    /// Whether none of them has anything to do and none can ring.
    are_mute: bool,
}

impl BusyPoller {
    /// Creates a poller without connections, which polls for `spin_us` microseconds of inactivity before the loop sleeps.
    pub fn new(spin_us: u64) -> Self {
        Self { spin: Duration::from_micros(spin_us), polled: Vec::new(), idle_since: None, are_mute: false }
    }

    /// Starts polling a connection that gets a turn, because it may now wait for another event than the one for which its
    /// bell rings.
    pub fn wake(&mut self, conn: ConnId, socket: &mut impl SharedMemory) {
        let Some(shared) = socket.shared() else { return };
        self.idle_since = None;
        if !std::mem::replace(shared.is_polled, true) {
            shared.served.awake();
            self.polled.push(conn);
        }
    }

    /// Polls the connections before the loop sleeps; returns how long it may sleep.
    pub fn poll<S: SharedMemory>(
        &mut self,
        timeout: Option<Duration>,
        table: &mut Table<S>,
    ) -> Option<Duration> {
        if timeout != Some(Duration::ZERO) && !self.polled.is_empty() {
            self.poll_for_a_while(table);
        }
        match timeout {
            _ if self.polled.is_empty() => timeout,
            _ if !self.are_mute => Some(Duration::ZERO),
            Some(timeout) => Some(timeout.min(MUTE_INTERVAL)),
            None => Some(MUTE_INTERVAL),
        }
    }

    /// Marks connections that have something to do as ready. After too long without any, asks their clients to ring.
    fn poll_for_a_while<S: SharedMemory>(&mut self, table: &mut Table<S>) {
        self.are_mute = false;
        for _ in 0..(LOOKS / self.polled.len().max(1)).max(1) {
            let mut found = false;
            self.polled.retain(|&conn| {
                let Some(mut shared) = table.socket(conn).and_then(SharedMemory::shared) else {
                    return false;
                };
                if shared.has_changed() {
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
            self.polled.retain(|&conn| {
                let Some(mut shared) = table.socket(conn).and_then(SharedMemory::shared) else {
                    return false;
                };
                let is_mute = shared.is_mute();
                *shared.is_polled = is_mute || !shared.prepare_sleep();
                self.are_mute &= is_mute || !*shared.is_polled;
                *shared.is_polled
            });
        }
    }
}

impl Shared<'_> {
    /// Returns whether the memory has changed in a way that the loop waits for.
    fn has_changed(&mut self) -> bool {
        let input = !self.readiness.readable && self.served.has_input();
        let room = !self.readiness.writable && self.served.has_room();
        self.readiness.readable |= input;
        self.readiness.writable |= room;
        input || room
    }

    /// Returns whether the loop waits for room in the memory and the client will not ring when there is some.
    fn is_mute(&self) -> bool {
        self.served.has_ended() && !self.readiness.writable
    }

    /// Asks the client to ring; returns false if there is something to do already.
    fn prepare_sleep(&mut self) -> bool {
        self.served.prepare_sleep(!self.readiness.readable, !self.readiness.writable)
    }
}
