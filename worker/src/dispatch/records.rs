//! The record of sessions: who begins one, what happens to it, and how it ends.

use hipr_io::{Account, AuditEvent, ConnId, Grant, Peer, Who};

use super::Dispatch;

impl Dispatch {
    /// Records that a session begins; returns whom later records of it concern.
    pub(super) fn record_begin(&mut self, peer: Peer, grant: Option<&Grant>) -> Option<Box<Who>> {
        self.sessions_begun += 1;
        let audit = self.audit.as_ref()?;
        let who = Who::of_session(self.sessions_begun, peer, grant);
        audit.record(&who, AuditEvent::Begin {});
        Some(Box::new(who))
    }

    /// Records what happens to a session that has not ended.
    pub(super) fn record(&self, conn: ConnId, event: impl FnOnce() -> AuditEvent) {
        let who = self.seats.get(&conn).and_then(|seat| seat.who.as_ref());
        if let (Some(audit), Some(who)) = (&self.audit, who) {
            audit.record(who, event());
        }
    }

    /// Records that a session and its connection have ended.
    pub(super) fn record_end(&mut self, conn: ConnId, account: Account) {
        let Some((who, device_ns)) = self.unrecorded.remove(&conn) else { return };
        let Account { received_bytes, sent_bytes, requests, reason, kind } = account;
        if let Some(audit) = &self.audit {
            let (received_bytes, sent_bytes) = (Some(received_bytes), Some(sent_bytes));
            let (kind, reason, requests) = (Some(kind.into()), Some(reason), Some(requests));
            let end = AuditEvent::End { kind, reason, received_bytes, sent_bytes, requests, device_ns };
            audit.record(&who, end);
        }
    }
}
