//! A link whose bytes the kernel encrypts.

use hipr_tls::LentKey;

use super::Link;
use crate::resumed::Resumed;
use crate::secured::Secured;

impl Link {
    /// Returns the key with which the kernel can encrypt everything that is sent from now on; then [`lend`](Self::lend) has to follow before
    /// anything else. `None` if there is none to give, or not now: only when all bytes so far were sent.
    pub fn key_to_lend(&mut self) -> Option<LentKey> {
        if self.unsent_bytes > 0 {
            return None;
        }
        self.below.as_mut()?.key_to_lend()
    }

    /// Returns whether [`key_to_lend`](Self::key_to_lend) may return a key some time.
    pub(crate) fn may_lend(&self) -> bool {
        self.crypt().is_some_and(Secured::may_lend)
    }

    /// Notes whether the kernel encrypts from now on.
    pub fn lend(&mut self, key: &LentKey, is_taken: bool) {
        if let Some(crypt) = self.below.as_mut().and_then(|below| below.crypt_mut()) {
            crypt.lend(key, is_taken);
        }
    }

    /// Returns whether the kernel encrypts what is sent.
    pub fn is_in_kernel(&self) -> bool {
        self.crypt().is_some_and(Secured::is_in_kernel)
    }

    /// Returns whether the kernel has encrypted as much as its key may, and the session can go on over another connection.
    pub(crate) fn is_key_over(&self) -> bool {
        self.crypt().is_some_and(Secured::is_key_over) && self.can_park()
    }

    /// Returns the alert that is to be sent to a client for whom the kernel encrypts, when all bytes before it were sent.
    pub fn alert(&self) -> Option<[u8; 2]> {
        self.crypt()?.alert().filter(|_| self.is_all_sent())
    }

    /// Notes that the alert was sent.
    pub fn handle_alert_sent(&mut self) {
        if let Some(crypt) = self.below.as_mut().and_then(|below| below.crypt_mut()) {
            crypt.handle_alert_sent();
        }
    }

    /// Returns whether every byte of the session was sent that there is up to now.
    pub(super) fn is_all_sent(&self) -> bool {
        let session = self.below.as_ref().and_then(|below| below.session());
        let has_more = self.close_when_sent && session.is_some_and(|session| !Resumed::is_end_sent(session));
        self.unsent_bytes == 0 && !has_more
    }

    fn crypt(&self) -> Option<&Secured> {
        self.below.as_ref().and_then(|below| below.crypt())
    }
}
