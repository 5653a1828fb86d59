//! Tells a client when free memory is no longer what it was told (`MEM_INFO`).
//!
//! The client reckons with what it places and frees by itself. Whatever else changes free memory is found out in three places: before
//! each reply of the session, so that no reply is later than a change of which the client does not know; at the end of each turn; and,
//! for what other sessions and the device's own threads do, by the dispatch.

use hipr_proto::Opcode;
use hipr_proto::op::MemInfoChanged;

use super::Session;

impl Session {
    /// Returns whether the client is to be told when free memory changes.
    pub(crate) fn is_told(&self) -> bool {
        self.owned.told.is_some()
    }

    /// Tells the client if what it reckons no longer holds.
    #[cold]
    pub(crate) fn check_told(&mut self) {
        if !self.owned.told_holds() {
            self.tell_change();
        }
    }

    /// Tells the client that free memory has changed, unless it knows.
    pub(crate) fn tell_change(&mut self) {
        if let Some(told) = self.owned.told.take() {
            let changed = MemInfoChanged { number: told.number };
            self.broken = self.broken.or(self.responder.notify(&changed, &[]).err());
        }
    }

    /// Handles that a request is about to be completed: a client that was told of free memory reckons that its own requests succeed.
    #[cold]
    pub(super) fn check_told_before(&mut self, op: Opcode, is_error: bool, wants_reply: bool) {
        if is_error
            && matches!(op, Opcode::MALLOC_AT | Opcode::MALLOC_SHARED | Opcode::FREE | Opcode::FREE_HOST)
        {
            self.tell_change();
        } else if wants_reply {
            self.check_told();
        }
    }
}
