//! Kept errors: all rules about errors of requests that are not answered (HIPR 1.0, wire rule 2; `HIPR 1.0, Error
//! Handling`).
//!
//! A client that sets `NO_REPLY` does not learn at once that a request failed. The worker keeps the error:
//!
//! 1. **First wins.** While one error is kept, later ones are dropped: they are mostly consequences of the first. This
//!    holds for errors of unanswered requests and for errors that surface later, from work that was accepted
//!    ([`Responder::keep`](crate::Responder::keep)).
//! 2. **Reported once.** The next *answered* request of the connection carries the kept error in its `error_code`, and the
//!    error is forgotten. If that request failed too, its own error is dropped: first wins here as well.
//! 3. **Exempt.** `INIT`, `PING`, `OFFER`, `CACHE_HAVE` and `SHUTDOWN` say only how they went themselves; the kept error stays.
//! 4. **Creates.** A request that would create something is not executed when it is the one to report a kept error: the
//!    client would take it for failed and never use, nor free, what it made. Executed or not is decided *before*
//!    ([`Responder::admit`](crate::Responder::admit)), and nothing between that and the completion can take the error away,
//!    because completions are in order. Without an answer it reports nothing and is executed.
//! 5. **Synchronizes.** A request that waits (device, stream and event synchronize, copies to the host) completes what it
//!    waits for first. An error that surfaces there came later than a kept one, so it is the request's own error: reported
//!    if none is kept, dropped otherwise.
//! 6. A reply with an error has its fixed part zeroed and no inline bytes, whoever the error came from.

use crate::hip_error::HipError;
use crate::op::Class;

/// The kept error of one connection.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    kept: Option<HipError>,
}

/// The message that a completed request sends to the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No message.
    Silent,
    /// A reply with this error, or a successful one.
    Reply(Option<HipError>),
}

impl Deferred {
    /// Keeps `error` unless another error is kept already (rule 1).
    pub(crate) fn keep(&mut self, error: HipError) {
        self.kept.get_or_insert(error);
    }

    /// Returns the kept error.
    #[inline]
    pub(crate) fn kept(&self) -> Option<HipError> {
        self.kept
    }

    /// Returns the kept error if the request has to report it instead of being executed (rule 4).
    pub(crate) fn admit(&self, class: Class, wants_reply: bool) -> Option<HipError> {
        self.kept.filter(|_| wants_reply && class == Class::Creates)
    }

    /// Decides what a completed request sends, given its own error: keeps that error, replies with it, or replies with the
    /// kept one.
    #[inline]
    pub(crate) fn settle(&mut self, class: Class, wants_reply: bool, own: Option<HipError>) -> Verdict {
        if !wants_reply {
            if let Some(error) = own {
                self.keep(error);
            }
            return Verdict::Silent;
        }
        match class {
            Class::Exempt => Verdict::Reply(own),
            Class::Plain | Class::Creates | Class::Synchronizes => Verdict::Reply(self.kept.take().or(own)),
        }
    }
}
