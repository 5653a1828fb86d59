//! Which requests without a reply may have left an error that no reply has reported yet.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hipr_proto::op::Class;
use hipr_proto::{HipError, Opcode};

use crate::stats::Counters;

/// Counts requests that are not answered, whatever they are, apart from those whose caller keeps account of them
/// ([`Extra::is_noted`](crate::Extra::is_noted)). The error of such a request comes with the next reply of an operation that reports kept
/// errors. A failure that the worker tells of counts as such a request, whichever request it was.
#[derive(Debug, Default)]
pub(crate) struct Unanswered {
    /// Number of the last request.
    told: AtomicU64,
    /// Number of the last request that a reply has followed.
    answered: AtomicU64,
    /// Number of requests that made something with a name, or memory at an address that the client chose, noted or not.
    made: AtomicU64,
    /// Number of those of them that a reply has followed.
    made_answered: AtomicU64,
    /// Whether a name may stand for nothing, so that whatever uses it fails: a reply with an error followed the request that was to make
    /// it, and does not say whose error it is.
    is_in_doubt: AtomicBool,
    /// Number of requests and of bytes that had been sent when the last request was that was answered.
    answered_requests: AtomicU64,
    answered_bytes: AtomicU64,
}

/// The requests that a reply follows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Followed {
    /// Number of the last of them.
    told: u64,
    /// Number of those that made something with a name, and whether no reply has followed some of them.
    made: u64,
    may_lack: bool,
    /// Number of requests and of bytes that have been sent.
    requests: u64,
    bytes: u64,
}

impl Unanswered {
    /// Notes a request that is sent without a reply. Requests are noted in the order in which they are sent.
    #[inline]
    pub(crate) fn told(&self, op: Opcode, is_noted: bool) {
        if !is_noted {
            self.told.fetch_add(1, Ordering::AcqRel);
        }
        if op.makes().is_some() || op == Opcode::MALLOC_AT {
            self.made.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Notes that the worker has told of a failure, which a later reply reports.
    pub(crate) fn heard_failure(&self) {
        self.told.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the requests that the reply to a request follows which has just been sent.
    pub(crate) fn before(&self, counters: &Counters) -> Followed {
        let made = self.made.load(Ordering::Acquire);
        Followed {
            told: self.told.load(Ordering::Acquire),
            made,
            may_lack: made > self.made_answered.load(Ordering::Acquire),
            requests: counters.frames_sent.load(Ordering::Relaxed),
            bytes: counters.bytes_sent.load(Ordering::Relaxed),
        }
    }

    /// Notes the reply to a request that was sent behind others.
    pub(crate) fn answered(&self, op: Opcode, followed: Followed, error: Option<HipError>) {
        self.answered_requests.fetch_max(followed.requests, Ordering::Relaxed);
        self.answered_bytes.fetch_max(followed.bytes, Ordering::Relaxed);
        if op.info().is_none_or(|info| info.class == Class::Exempt) {
            return;
        }
        // Only a query is answered so: nothing that failed before it.
        let is_bad = error.is_some_and(|error| error != HipError::NOT_READY);
        if is_bad && followed.may_lack {
            self.is_in_doubt.store(true, Ordering::Release);
        }
        self.answered.fetch_max(followed.told, Ordering::AcqRel);
        self.made_answered.fetch_max(followed.made, Ordering::AcqRel);
    }

    /// Returns how many requests and bytes have been sent since the last request that was answered.
    pub(crate) fn ahead(&self, counters: &Counters) -> (u64, u64) {
        let since = |sent: &AtomicU64, answered: &AtomicU64| {
            sent.load(Ordering::Relaxed).saturating_sub(answered.load(Ordering::Relaxed))
        };
        (
            since(&counters.frames_sent, &self.answered_requests),
            since(&counters.bytes_sent, &self.answered_bytes),
        )
    }

    /// Returns whether a handle or an address that this client chose may be unused on the worker, because the request that was to make the
    /// object or the memory may have failed.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.is_in_doubt.load(Ordering::Acquire)
    }

    /// Returns whether an error may still be reported that is not that of noted work.
    pub(crate) fn may_owe_errors(&self) -> bool {
        self.answered.load(Ordering::Acquire) < self.told.load(Ordering::Acquire)
            || self.is_in_doubt.load(Ordering::Acquire)
    }
}
