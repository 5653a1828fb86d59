//! What all sessions have together, where that has a limit.

use std::sync::Arc;

use hipr_io::Kept;

/// Counts the bytes of all sessions: what the dispatch knows of, and what the loop keeps for sessions that outlive their connections.
#[derive(Debug)]
pub(crate) struct Weight {
    bytes: u64,
    /// The most bytes; [`u64::MAX`] for no limit, and then nothing is counted.
    max_bytes: u64,
    kept: Arc<Kept>,
}

impl Weight {
    /// Creates the count of sessions that may have `max_bytes` together.
    pub(crate) fn new(max_bytes: u64, kept: Arc<Kept>) -> Self {
        kept.set_max(max_bytes);
        Self { bytes: 0, max_bytes, kept }
    }

    /// Returns whether there is a limit.
    pub(crate) fn has_limit(&self) -> bool {
        self.max_bytes != u64::MAX
    }

    /// Returns how many bytes a session may have that has `own_bytes` now.
    pub(crate) fn room(&self, own_bytes: u64) -> u64 {
        let others = self.bytes.saturating_sub(own_bytes).saturating_add(self.kept.bytes());
        self.max_bytes.saturating_sub(others)
    }

    /// Notes that a session that had `before_bytes` has `now_bytes`.
    pub(crate) fn change(&mut self, before_bytes: u64, now_bytes: u64) {
        if self.has_limit() {
            self.bytes = self.bytes.saturating_sub(before_bytes).saturating_add(now_bytes);
            self.kept.set_max(self.max_bytes.saturating_sub(self.bytes));
        }
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
