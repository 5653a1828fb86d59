use std::collections::BTreeMap;

use hipr_proto::op::MemReturn;

/// Whom the dispatch has asked for memory for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sought {
    /// Nobody.
    #[default]
    Nobody,
    /// The lender, for what is free.
    Lender,
    /// Those of its tenant who may have some that they do not need, as the tenant's bound is reached.
    Tenant,
    /// The same, and they have answered: there may be too little of something else.
    AnsweredTenant,
    /// All who may have some that they do not need.
    Everybody,
}

/// What a session has been asked to give back of its lease, and what it has asked of others.
#[derive(Debug, Default)]
pub(crate) struct Recall {
    /// Number of the recall that the client has not answered.
    pub(crate) open: Option<u64>,
    /// Whether the client has answered since the dispatch looked.
    pub(crate) has_answered: bool,
    /// Whether a request has fallen short since the dispatch looked.
    pub(crate) has_fallen_short: bool,
    /// How many bytes it lacks, if that is known.
    pub(crate) lacking_bytes: Option<u64>,
    /// Whether a limit that nobody else can lift has refused the request.
    pub(crate) is_own_limit: bool,
    /// Whether a bound that the session has with others has refused the request, and not the device.
    pub(crate) is_bound: bool,
    /// Whom the dispatch has asked for the request.
    pub(crate) sought: Sought,
    /// Bytes and allocations that were taken out of the lease before the request that returns them had its turn, by the number of the recall
    /// that it answers. There may be several: the next recall comes when an answer is known.
    pub(crate) early: BTreeMap<u64, (u64, u64)>,
    /// Whether the session counts among those that have a lease.
    pub(crate) counts: bool,
    /// Whether the client has no connection, so that it cannot answer.
    pub(crate) is_away: bool,
}

impl Recall {
    /// Handles that a request begins, for which nothing was asked.
    pub(crate) fn begin(&mut self) {
        (self.lacking_bytes, self.is_own_limit, self.is_bound, self.sought) = Default::default();
    }

    /// Handles that the client has answered.
    pub(crate) fn close(&mut self) {
        self.open = None;
        self.has_answered = true;
    }

    /// Handles a `MEM_RETURN` in its turn; returns how many bytes and allocations it still has to take out of the lease.
    pub(crate) fn answered(&mut self, returned: &MemReturn) -> (u64, u64) {
        if self.open == Some(returned.recall) {
            self.close();
        }
        if returned.recall == 0 {
            return (returned.bytes, returned.allocations);
        }
        let (bytes, allocations) = self.early.remove(&returned.recall).unwrap_or_default();
        (returned.bytes.saturating_sub(bytes), returned.allocations.saturating_sub(allocations))
    }
}
