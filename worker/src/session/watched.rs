//! Tells a client when a query would no longer find that a stream or an event is not done (`WATCH_OVER`), and the times between events
//! (`TIMES_TOLD`).
//!
//! A client that has asked for this answers such queries by itself. So it is told before each reply of the session: no reply is later
//! than the end of work that the client takes for unfinished. It is also told at the end of each turn; the device wakes the session.

use super::Session;

impl Session {
    /// Tells the client what kernels have printed, which of what it watches is done, and the times that it has asked for, if the request that is
    /// about to be completed is answered.
    #[inline]
    pub(super) fn tell_before(&mut self, wants_reply: bool) {
        if wants_reply {
            self.send_printed();
            self.check_watched();
            if let Some(asked) = self.owned.asked_times.take() {
                let (told, list) = self.owned.times_of(asked);
                self.broken = self.broken.or(self.responder.notify(&told, &list).err());
            }
        }
    }

    /// Tells the client of what it watches and is done.
    #[inline]
    pub(super) fn check_watched(&mut self) {
        if !self.owned.queried.is_idle() {
            let over = self.owned.take_over();
            if !over.is_empty() {
                // What is over has printed before that.
                self.send_printed();
            }
            for over in over {
                self.broken = self.broken.or(self.responder.notify(&over, &[]).err());
            }
        }
    }
}
