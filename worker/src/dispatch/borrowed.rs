//! Sessions that read memory of other sessions, by a capability: each has the other's context while it has its turn.

use hipr_io::ConnId;

use super::Dispatch;
use crate::session::Lending;

impl Dispatch {
    /// Gives a session the context of another one whose memory it reads, if it does; returns which that is. Fails if it has to have
    /// its turn later, when it is woken.
    pub(super) fn lend_context(&mut self, reader: ConnId) -> Result<Option<ConnId>, ()> {
        if self.peers.is_none() {
            return Ok(None);
        }
        let Some((owner, src, number)) = self.seats.get(&reader).and_then(|seat| seat.session.borrows_from())
        else {
            self.readers.remove(&reader);
            return Ok(None);
        };
        let lent = match self.seats.get_mut(&owner).map(|seat| seat.session.lend_context(&src, number)) {
            Some(Lending::Context(context)) => Some(context),
            Some(Lending::Later) => {
                self.readers.insert(reader, owner);
                return Err(());
            }
            Some(Lending::Nothing) | None => None,
        };
        let is_lent = lent.is_some();
        if let Some(seat) = self.seats.get_mut(&reader) {
            seat.session.borrow(lent);
        }
        if is_lent {
            self.readers.insert(reader, owner);
        }
        Ok(is_lent.then_some(owner))
    }

    /// Returns the context to the session that has lent it.
    pub(super) fn return_context(&mut self, reader: ConnId, owner: ConnId) {
        let context = self.seats.get_mut(&reader).and_then(|seat| seat.session.return_borrowed());
        if let (Some(context), Some(seat)) = (context, self.seats.get_mut(&owner)) {
            seat.session.take_back(context);
        }
    }

    /// Queues the sessions that read memory of this one for their turns: its device has woken it, or it is gone.
    pub(super) fn wake_readers(&mut self, owner: ConnId) {
        for (reader, _) in self.readers.iter().filter(|(_, of)| **of == owner) {
            if let Some(seat) = self.seats.get_mut(reader) {
                Self::enqueue(&mut self.line, *reader, seat);
            }
        }
    }
}
