//! What all sessions have together, where that has a limit.

use std::sync::Arc;

use hipr_io::{Kept, Lender};

/// Counts the bytes of all sessions: what the dispatch knows of, and what the loop keeps for sessions that outlive their connections. Where
/// sessions have processes of their own, each process is lent what its session has, and takes somewhat more in advance.
#[derive(Debug)]
pub(crate) struct Weight {
    bytes: u64,
    /// The most bytes; [`u64::MAX`] for no limit, and then nothing is counted.
    max_bytes: u64,
    /// Bytes that are lent in advance.
    ahead_bytes: u64,
    kept: Arc<Kept>,
}

impl Weight {
    /// What part of all memory is lent in advance, and the least and the most of that.
    const AHEAD_PART: u64 = 64;
    const AHEAD_MIN_BYTES: u64 = 2 << 20;
    const AHEAD_MAX_BYTES: u64 = 8 << 20;

    /// Creates the count of sessions that may have `max_bytes` together.
    pub(crate) fn new(max_bytes: u64, kept: Arc<Kept>) -> Self {
        kept.set_max(max_bytes);
        let ahead_bytes = (max_bytes / Self::AHEAD_PART).clamp(Self::AHEAD_MIN_BYTES, Self::AHEAD_MAX_BYTES);
        Self { bytes: 0, max_bytes, ahead_bytes, kept }
    }

    /// Returns whether there is a limit.
    pub(crate) fn has_limit(&self) -> bool {
        self.max_bytes != u64::MAX
    }

    /// Returns who lends the memory, if it is lent.
    pub(crate) fn lender(&self) -> Option<&dyn Lender> {
        self.kept.lender().filter(|_| self.has_limit())
    }

    /// Returns how many bytes a session may have that has `own_bytes` now.
    pub(crate) fn room(&self, own_bytes: u64) -> u64 {
        let others = self.bytes.saturating_sub(own_bytes).saturating_add(self.kept.bytes());
        self.kept.max_bytes().saturating_sub(others)
    }

    /// Notes that a session that had `before_bytes` has `now_bytes`.
    pub(crate) fn change(&mut self, before_bytes: u64, now_bytes: u64) {
        if self.has_limit() {
            self.bytes = self.bytes.saturating_sub(before_bytes).saturating_add(now_bytes);
            self.kept.set_used(self.bytes);
        }
    }

    // ---- where memory is lent ----------------------------------------------------------------------------------------

    /// Returns for how many more bytes sessions have room in advance that need `ahead_bytes`: what the loop keeps may double.
    fn wanted(&self, ahead_bytes: u64) -> u64 {
        ahead_bytes.saturating_add(self.kept.bytes()).saturating_add(self.ahead_bytes)
    }

    /// Has room lent for sessions that need `ahead_bytes` in advance; returns whether there is as much.
    pub(crate) fn take_ahead(&self, ahead_bytes: u64) -> bool {
        let wanted = self.wanted(ahead_bytes);
        let least = wanted - self.ahead_bytes / 2;
        self.kept.take_ahead(least, wanted);
        self.kept.room() >= least
    }

    /// Returns whether sessions have more than was lent.
    pub(crate) fn is_overdrawn(&self) -> bool {
        self.lender().is_some() && self.kept.lacking_bytes(0) > 0
    }

    /// Has `bytes` lent for a session that lacks them; returns whether there were any, and so many if that is known.
    pub(crate) fn take(&self, bytes: Option<u64>) -> bool {
        let overdrawn = self.kept.lacking_bytes(0);
        let wanted = bytes.map_or(u64::MAX, |bytes| bytes.saturating_add(overdrawn + self.ahead_bytes));
        self.kept.take(wanted) >= bytes.map_or(1, |bytes| bytes.saturating_add(overdrawn))
    }

    /// Gives back what sessions do not need that need `ahead_bytes` in advance, if it is much or `is_exact`.
    pub(crate) fn give_back(&self, ahead_bytes: u64, is_exact: bool) {
        let wanted = self.wanted(ahead_bytes);
        if is_exact || self.kept.room() > wanted.saturating_add(self.ahead_bytes) {
            self.kept.give_back(wanted);
        }
    }

    /// Gives back all that sessions do not have.
    pub(crate) fn give_back_all(&self) {
        self.kept.give_back(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_may_have_what_the_others_leave() {
        let mut weight = Weight::new(100, Arc::default());
        assert_eq!((weight.has_limit(), weight.room(0)), (true, 100));
        weight.change(0, 30);
        weight.change(0, 50);
        assert_eq!((weight.room(30), weight.room(50), weight.room(0)), (50, 70, 20));
        weight.change(30, 60);
        assert_eq!((weight.room(60), weight.room(0)), (50, 0));
        weight.change(50, 0);
        assert_eq!(weight.room(60), 100);
        let mut free = Weight::new(u64::MAX, Arc::default());
        free.change(0, 30);
        assert_eq!((free.has_limit(), free.room(0)), (false, u64::MAX));
    }
}
