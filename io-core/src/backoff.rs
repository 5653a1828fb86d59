use std::io::{self, ErrorKind};

use tracing::{debug, warn};

/// When to accept again after the system refused a descriptor. Times are milliseconds of any clock that only goes forward.
#[derive(Debug, Default)]
pub struct Backoff {
    /// The next try after a refusal.
    retry_ms: Option<u64>,
    /// Whether the last try was refused: said once.
    refused: bool,
}

impl Backoff {
    /// How long to wait before the next try.
    const MS: u64 = 100;

    /// A connection was accepted.
    pub fn handle_accepted(&mut self) {
        *self = Self::default();
    }

    /// A connection could not be accepted. An error that is about that connection alone changes nothing.
    pub fn handle_error(&mut self, why: &io::Error, now_ms: u64) {
        if is_per_connection(why) {
            debug!(%why, "a connection was gone before it was accepted");
            return;
        }
        if !std::mem::replace(&mut self.refused, true) {
            warn!(%why, "cannot accept a connection; trying again until it works");
        }
        self.retry_ms = Some(now_ms + Self::MS);
    }

    /// A connection was closed: there is a descriptor again.
    pub fn handle_descriptor_free(&mut self) {
        self.retry_ms = None;
    }

    /// When to try again, if the system refused.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// Whether a try makes sense now.
    pub fn is_over(&self, now_ms: u64) -> bool {
        self.retry_ms.is_none_or(|at| at <= now_ms)
    }
}

/// Errors of `accept` that are about the connection and not about the listener or the system.
fn is_per_connection(why: &io::Error) -> bool {
    matches!(
        why.kind(),
        ErrorKind::Interrupted
            | ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionRefused
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_waited_out_unless_a_descriptor_is_free() {
        let refusal = io::Error::other("no descriptor");
        let mut backoff = Backoff::default();
        assert!(backoff.is_over(0));
        backoff.handle_error(&ErrorKind::ConnectionAborted.into(), 0);
        assert!(backoff.is_over(0), "that was about one connection");
        backoff.handle_error(&refusal, 10);
        assert_eq!(
            (backoff.is_over(109), backoff.retry_ms(), backoff.is_over(110)),
            (false, Some(110), true)
        );
        backoff.handle_descriptor_free();
        assert!(backoff.is_over(10) && backoff.retry_ms().is_none());
        backoff.handle_error(&refusal, 20);
        backoff.handle_accepted();
        assert!(backoff.is_over(20));
    }
}
