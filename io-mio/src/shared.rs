//! Connections through shared memory, in a loop that polls sockets.
//!
//! While such a connection is busy the loop looks at its memory instead of waiting for its bell. When nothing has come for
//! [`hipr_io::Config::spin_us`], it asks for bells and sleeps.

use std::time::{Duration, Instant};

use hipr_io::{ConnId, Slots};

use crate::Conn;

/// Looks at connections before the sockets get their turn.
const LOOKS: usize = 64;

/// The connections that the loop looks at; the others have been asked to ring.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    looked_at: Vec<ConnId>,
    /// Since when none of them has had anything.
    idle_since: Option<Instant>,
}

impl Shared {
    /// Whether the loop has to go on looking.
    pub(crate) fn is_awake(&self) -> bool {
        !self.looked_at.is_empty()
    }

    /// A connection gets a turn: it is looked at from now on.
    pub(crate) fn wake(&mut self, conn: &mut Conn) {
        let Some(shared) = conn.stream.shared() else { return };
        self.idle_since = None;
        if !std::mem::replace(&mut conn.looked_at, true) {
            shared.awake();
            self.looked_at.push(conn.link.conn());
        }
    }

    /// Looks at them for a moment; those that have something become `ready`. When that was in vain for `spin`, they are asked to
    /// ring.
    pub(crate) fn look(&mut self, conns: &mut Slots<Conn>, spin: Duration, mut ready: impl FnMut(&mut Conn)) {
        for _ in 0..(LOOKS / self.looked_at.len().max(1)).max(1) {
            let mut found = false;
            self.looked_at.retain(|&id| {
                let Some(conn) = conns.get_mut(id) else { return false };
                if conn.has_news() {
                    found = true;
                    ready(conn);
                }
                true
            });
            if found {
                self.idle_since = None;
                return;
            }
            std::hint::spin_loop();
        }
        if self.idle_since.get_or_insert_with(Instant::now).elapsed() >= spin {
            self.looked_at.retain(|&id| {
                let Some(conn) = conns.get_mut(id) else { return false };
                conn.looked_at = !conn.prepare_sleep();
                conn.looked_at
            });
        }
    }
}

impl Conn {
    /// Whether the memory has changed in a way that the loop waits for.
    fn has_news(&mut self) -> bool {
        let wants_room = !self.writable && self.link.wants_write();
        let Some(shared) = self.stream.shared() else { return false };
        let input = !self.readable && shared.has_input();
        let room = wants_room && shared.has_room();
        self.readable |= input;
        self.writable |= room;
        input || room
    }

    /// Asks for the bell; `false` if there is something already.
    fn prepare_sleep(&mut self) -> bool {
        let wants_room = !self.writable && self.link.wants_write();
        let wants_input = !self.readable;
        self.stream.shared().is_none_or(|shared| shared.prepare_sleep(wants_input, wants_room))
    }
}
