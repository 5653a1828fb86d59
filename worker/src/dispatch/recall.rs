//! What the dispatch does when a session is short of memory: it asks others for what they do not use of their leases, and lets the session try
//! again with each answer, or when the time for answers is over.

use std::collections::BTreeSet;
use std::sync::Arc;

use hipr_io::{Budget, ConnId, Lack};
use tracing::debug;

use super::Dispatch;
use crate::recalls::{Asked, Short};

impl Dispatch {
    /// Asks the sessions with which a session that needs memory shares what there is too little of, to give back what they do not use of
    /// their leases: those of its tenant if that one's bound is reached, else all.
    pub(super) fn recall(&mut self, short: ConnId) {
        let is_lent = self.lending.lender().is_some();
        let needed_bytes = match is_lent.then(|| self.take_lacking(short)) {
            Some(Ok(())) => return self.retry(short, false),
            Some(Err(needed_bytes)) => needed_bytes,
            None => 0,
        };
        let Some(seat) = self.seats.get(&short) else { return };
        let (budget, lack) = (seat.budget.clone(), seat.session.lack(needed_bytes));
        let level = match lack {
            Lack::Bound { .. } => budget.narrowest(),
            Lack::Device => budget.widest(),
        };
        let is_tenants = !budget.widest().counts_at(level);
        let is_asked = |of: &Budget| of.counts_at(level);
        let mut asked = match is_tenants && seat.session.has_asked_tenant() {
            true => BTreeSet::new(),
            false => self.ask_sessions(is_asked),
        };
        if is_lent {
            self.ask_others(lack);
            asked.insert(Asked::Lender);
        }
        if let Some(seat) = self.seats.get_mut(&short) {
            seat.session.asks(is_tenants && !asked.is_empty());
        }
        debug!(conn = %short, asked = asked.len(), "memory is short; what others do not use is recalled");
        let mut is_last = asked.is_empty();
        if !is_last {
            is_last = self.begin_recall(Short::Session(short), asked, short);
        }
        self.retry(short, is_last);
        self.pass_early_answers();
    }

    /// Asks sessions with such budgets to give back what they do not use of their leases; returns those that will answer.
    pub(super) fn ask_sessions(&mut self, is_asked: impl Fn(&Budget) -> bool) -> BTreeSet<Asked> {
        let number = self.recalls.next_number();
        let mut asked = BTreeSet::new();
        for (&conn, seat) in &mut self.seats {
            if is_asked(&seat.budget) && seat.session.recall(number) {
                seat.weigh();
                asked.insert(Asked::Session(conn));
                Self::enqueue(&mut self.line, conn, seat);
            }
        }
        asked
    }

    /// Passes on the answers of sessions that had one ready when they were asked.
    pub(super) fn pass_early_answers(&mut self) {
        let answered: Vec<_> = self
            .seats
            .iter_mut()
            .filter_map(|(conn, seat)| seat.session.take_answer().then_some(*conn))
            .collect();
        answered.into_iter().for_each(|conn| self.pass_answer(conn));
    }

    /// Begins to wait for the answers of `asked`; returns whether nobody is waited for, because there is no timer.
    pub(super) fn begin_recall(&mut self, short: Short, asked: BTreeSet<Asked>, woken: ConnId) -> bool {
        let wake = Arc::clone(&self.wake);
        self.recalls.begin(short, asked, woken, move |conn| wake(conn));
        self.recalls.take_late(short).is_some()
    }

    /// Takes back the unused leases of those sessions in `silent` whose clients have no connection.
    pub(super) fn withdraw(&mut self, silent: &BTreeSet<Asked>) {
        for asked in silent {
            let Asked::Session(conn) = asked else { continue };
            if let Some(seat) = self.seats.get_mut(conn) {
                seat.session.withdraw();
                seat.weigh();
            }
        }
    }

    /// Handles that a session has given back what it does not use, or has ended: who waits for memory tries again.
    pub(super) fn pass_answer(&mut self, conn: ConnId) {
        self.pass_answer_of(Asked::Session(conn));
    }

    pub(super) fn pass_answer_of(&mut self, asked: Asked) {
        for (short, is_last) in self.recalls.answered(asked) {
            self.try_again(short, is_last);
        }
    }

    pub(super) fn try_again(&mut self, short: Short, is_last: bool) {
        match short {
            Short::Session(conn) => self.retry(conn, is_last),
            Short::Others if is_last => self.return_to_others(),
            Short::Others => {}
        }
    }
}
