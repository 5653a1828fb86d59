//! What the dispatch does where memory is lent by whoever counts it for the sessions of all processes.
//!
//! A session has room for somewhat more than it has, so that most requests ask for nothing. A request that lacks memory asks for what is
//! free; if that is not enough, all others are asked to give back what they do not need, and it is tried for the last time with all that
//! there is then.

use std::collections::BTreeSet;

use hipr_io::{ConnId, Lack, LenderWords};

use super::Dispatch;
use crate::recalls::{Asked, Short};

/// Whether a session has the memory that it is to begin with: what is set aside for its kernels above all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Begins {
    /// Nobody was asked.
    #[default]
    New,
    /// It waits for what others give back.
    Waits,
    /// It has what there is.
    Begun,
}

impl Begins {
    /// Handles that a session does not wait any more.
    pub(super) fn retry(&mut self) {
        if *self == Self::Waits {
            *self = Self::Begun;
        }
    }
}

/// What is to be said to the lender, when no request needs room.
#[derive(Debug, Default)]
pub(super) struct Debts {
    /// That what is not needed was given back.
    returns: bool,
    /// That what was needed was taken.
    tried: bool,
}

impl Dispatch {
    /// Has the lender wake the dispatch through this session.
    pub(super) fn listen_to_lender(&self, conn: ConnId) {
        if let Some(lender) = self.lending.lender() {
            let wake = self.wake.clone();
            lender.listen(Box::new(move || wake(conn)));
        }
    }

    /// Has memory lent for a session in advance of its turn. Returns false if it waits for what others give back.
    pub(super) fn take_ahead(&mut self, conn: ConnId) -> bool {
        let Some(seat) = self.seats.get_mut(&conn) else { return true };
        if seat.begins == Begins::Waits {
            return false;
        }
        let limits = seat.limits.as_deref().unwrap_or(&self.limits);
        let ahead_bytes = seat.session.ahead_bytes(limits);
        if self.lending.take_ahead(ahead_bytes) || seat.begins == Begins::Begun {
            seat.begins = Begins::Begun;
            return true;
        }
        seat.begins = Begins::Waits;
        self.ask_others(Lack::Bound { needed_bytes: 0 });
        if self.begin_recall(Short::Session(conn), BTreeSet::from([Asked::Lender]), conn) {
            self.retry(conn, true);
        }
        false
    }

    /// Has lent what a session lacks, if nobody was asked for its request so far.
    ///
    /// # Errors
    /// How many bytes this process would have to be lent in all; 0 if that is not known.
    pub(super) fn take_lacking(&mut self, short: ConnId) -> Result<(), u64> {
        let Some(seat) = self.seats.get_mut(&short) else { return Err(0) };
        let (is_first, lacking_bytes) = seat.session.begin_asking();
        let needed_bytes = lacking_bytes.map_or(0, |bytes| self.lending.needed_bytes(bytes));
        if is_first && self.lending.take(lacking_bytes) {
            return Ok(());
        }
        seat.session.asks(false);
        Err(needed_bytes)
    }

    /// Asks other processes for what they do not need.
    pub(super) fn ask_others(&mut self, lack: Lack) {
        // Whoever has its turn before has all that is free.
        self.lending.give_back_all();
        if let Some(lender) = self.lending.lender() {
            if std::mem::take(&mut self.debts.returns) {
                lender.has_returned();
            }
            if std::mem::take(&mut self.debts.tried) {
                lender.has_tried();
            }
            lender.ask_others(lack);
        }
    }

    /// Handles what the lender has said.
    pub(super) fn heed_lender(&mut self) {
        let Some(lender) = self.lending.lender() else { return };
        let LenderWords { is_recalled, is_turn } = lender.words();
        if is_turn {
            self.lending.take(None);
            self.debts.tried = true;
            self.pass_answer_of(Asked::Lender);
        }
        if is_recalled {
            self.recall_for_others();
        }
        if is_turn || is_recalled {
            self.settle_lent();
        }
    }

    /// Asks all sessions of this process to give back what they do not use of their leases, for other processes.
    fn recall_for_others(&mut self) {
        let asked = self.ask_sessions(|_| true);
        let woken = self.seats.keys().next().copied().filter(|_| !asked.is_empty());
        let is_last = woken.is_none_or(|conn| self.begin_recall(Short::Others, asked, conn));
        if is_last {
            self.return_to_others();
        }
        self.pass_early_answers();
    }

    /// Gives back what no session needs, for other processes, as soon as no request needs room.
    pub(super) fn return_to_others(&mut self) {
        self.debts.returns = true;
        self.settle_lent();
    }

    /// Gives back what no session needs, and says to the lender what is to be said, unless a request needs room.
    pub(super) fn settle_lent(&mut self) {
        let Some(lender) = self.lending.lender() else { return };
        let needs_room = |begins| begins == Begins::Waits;
        if self.seats.values().any(|seat| seat.session.needs_room() || needs_room(seat.begins)) {
            return;
        }
        let ahead = self.seats.values().map(|seat| {
            let limits = seat.limits.as_deref().unwrap_or(&self.limits);
            seat.session.ahead_bytes(limits)
        });
        let ahead_bytes = ahead.fold(0, u64::saturating_add);
        let Debts { returns, tried } = std::mem::take(&mut self.debts);
        if returns {
            self.lending.give_back_all();
            lender.has_returned();
        } else if self.seats.is_empty() {
            self.lending.give_back_all();
        } else {
            self.lending.give_back(ahead_bytes, tried);
        }
        if tried {
            lender.has_tried();
        }
    }
}
