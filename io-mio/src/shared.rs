//! Connections through shared memory, in a loop that polls sockets.
//!
//! While such a connection is busy the loop looks at its memory instead of waiting for its bell. When nothing has come for
//! [`hipr_io::Config::spin_us`], it asks for bells and sleeps.

use std::time::{Duration, Instant};

use hipr_io::{ConnId, Table};

use crate::sockets::Socket;

/// Looks at connections before the sockets get their turn.
const LOOKS: usize = 64;

/// The connections that the loop looks at; the others have been asked to ring.
#[derive(Debug)]
pub(crate) struct Shared {
    spin: Duration,
    looked_at: Vec<ConnId>,
    /// Since when none of them has had anything.
    idle_since: Option<Instant>,
}

impl Shared {
    /// No connections; the loop looks in vain for `spin` before it sleeps.
    pub(crate) fn new(spin: Duration) -> Self {
        Self { spin, looked_at: Vec::new(), idle_since: None }
    }

    /// A connection gets a turn: it is looked at from now on.
    pub(crate) fn wake(&mut self, conn: ConnId, socket: &mut Socket) {
        let Some(shared) = socket.stream.shared() else { return };
        self.idle_since = None;
        if !std::mem::replace(&mut socket.looked_at, true) {
            shared.awake();
            self.looked_at.push(conn);
        }
    }

    /// Before the loop sleeps: how long it may.
    pub(crate) fn look(&mut self, timeout: Option<Duration>, table: &mut Table<Socket>) -> Option<Duration> {
        if timeout != Some(Duration::ZERO) && !self.looked_at.is_empty() {
            self.look_for_a_moment(table);
        }
        if self.looked_at.is_empty() { timeout } else { Some(Duration::ZERO) }
    }

    /// Makes those ready that have something. When that was in vain for too long, they are asked to ring.
    fn look_for_a_moment(&mut self, table: &mut Table<Socket>) {
        for _ in 0..(LOOKS / self.looked_at.len().max(1)).max(1) {
            let mut found = false;
            self.looked_at.retain(|&conn| {
                let Some(socket) = table.socket(conn) else { return false };
                if socket.has_news() {
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
            self.looked_at.retain(|&conn| {
                let Some(socket) = table.socket(conn) else { return false };
                socket.looked_at = !socket.prepare_sleep();
                socket.looked_at
            });
        }
    }
}

impl Socket {
    /// Whether the memory has changed in a way that the loop waits for.
    fn has_news(&mut self) -> bool {
        let Some(shared) = self.stream.shared() else { return false };
        let input = !self.readiness.readable && shared.has_input();
        let room = !self.readiness.writable && shared.has_room();
        self.readiness.readable |= input;
        self.readiness.writable |= room;
        input || room
    }

    /// Asks for the bell; `false` if there is something already.
    fn prepare_sleep(&mut self) -> bool {
        let (wants_input, wants_room) = (!self.readiness.readable, !self.readiness.writable);
        self.stream.shared().is_none_or(|shared| shared.prepare_sleep(wants_input, wants_room))
    }
}
