//! The memory that is lent to this process for its session, where each session has a process of its own.

use std::sync::Arc;

use hipr_io::{Budget, Grant, Lender};

/// Says what sessions may have, and has lent what they need: what they have, and somewhat more in advance.
#[derive(Debug)]
pub(crate) struct Lending {
    /// What all sessions may have.
    all: Arc<Budget>,
    /// What is lent, where memory is.
    lent: Option<Arc<Budget>>,
    /// Bytes that are lent in advance.
    ahead_bytes: u64,
}

impl Lending {
    /// What part of all memory is lent in advance, and the least and the most of that.
    const AHEAD_PART: u64 = 64;
    const AHEAD_MIN_BYTES: u64 = 2 << 20;
    const AHEAD_MAX_BYTES: u64 = 8 << 20;

    /// Takes the budget of sessions that may have `max_bytes` together.
    pub(crate) fn new(max_bytes: u64, budget: Arc<Budget>) -> Self {
        budget.set_max(max_bytes);
        Self { all: budget, lent: None, ahead_bytes: 0 }
    }

    /// Returns the budget of a session that begins, which may have `total_bytes` with others.
    pub(crate) fn begin(&mut self, grant: Option<&Grant>, total_bytes: u64) -> Arc<Budget> {
        let budget = self.all.of(grant);
        if budget.lender().is_some() {
            self.lent = Some(budget.clone());
            self.ahead_bytes =
                (total_bytes / Self::AHEAD_PART).clamp(Self::AHEAD_MIN_BYTES, Self::AHEAD_MAX_BYTES);
        }
        budget
    }

    /// Returns who lends the memory, if it is lent.
    pub(crate) fn lender(&self) -> Option<&dyn Lender> {
        self.lent.as_deref().and_then(Budget::lender)
    }

    /// Returns for how many more bytes sessions have room in advance that need `ahead_bytes`: what the loop keeps may double.
    fn wanted(&self, lent: &Budget, ahead_bytes: u64) -> u64 {
        ahead_bytes.saturating_add(lent.kept_bytes()).saturating_add(self.ahead_bytes)
    }

    /// Has room lent for sessions that need `ahead_bytes` in advance; returns whether there is as much.
    pub(crate) fn take_ahead(&self, ahead_bytes: u64) -> bool {
        let Some(lent) = &self.lent else { return true };
        let wanted = self.wanted(lent, ahead_bytes);
        let least = wanted - self.ahead_bytes / 2;
        lent.take_ahead(least, wanted);
        lent.room() >= least
    }

    /// Returns whether sessions have more than was lent.
    pub(crate) fn is_overdrawn(&self) -> bool {
        self.lent.as_ref().is_some_and(|lent| lent.lacking_bytes(0) > 0)
    }

    /// Returns how many bytes are to be lent in all, so that a session has `bytes` that it lacks.
    pub(crate) fn needed_bytes(&self, bytes: u64) -> u64 {
        let lent = |lent: &Arc<Budget>| lent.max_bytes().saturating_add(lent.lacking_bytes(0));
        self.lent.as_ref().map_or(0, lent).saturating_add(bytes)
    }

    /// Has `bytes` lent for a session that lacks them; returns whether there were any, and so many if that is known.
    pub(crate) fn take(&self, bytes: Option<u64>) -> bool {
        let Some(lent) = &self.lent else { return false };
        let overdrawn = lent.lacking_bytes(0);
        let wanted = bytes.map_or(u64::MAX, |bytes| bytes.saturating_add(overdrawn + self.ahead_bytes));
        lent.take(wanted) >= bytes.map_or(1, |bytes| bytes.saturating_add(overdrawn))
    }

    /// Gives back what sessions do not need that need `ahead_bytes` in advance, if it is much or `is_exact`.
    pub(crate) fn give_back(&self, ahead_bytes: u64, is_exact: bool) {
        let Some(lent) = &self.lent else { return };
        let wanted = self.wanted(lent, ahead_bytes);
        if is_exact || lent.room() > wanted.saturating_add(self.ahead_bytes) {
            lent.give_back(wanted);
        }
    }

    /// Gives back all that sessions do not have.
    pub(crate) fn give_back_all(&self) {
        self.lent.iter().for_each(|lent| lent.give_back(0));
    }
}
