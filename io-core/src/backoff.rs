use std::io::{self, ErrorKind};

use tracing::{debug, warn};

/// Decides when to accept connections again after the process or system has run out of file descriptors. Times are
/// milliseconds of any monotonic clock.
#[derive(Debug, Default)]
pub struct Backoff {
    /// Time of the next attempt after a failure.
    retry_ms: Option<u64>,
    /// Whether the last attempt failed; the failure is logged only once.
    refused: bool,
}

impl Backoff {
    /// Delay before the next attempt.
    const MS: u64 = 100;

    /// Handles a connection that was accepted.
    pub fn handle_accepted(&mut self) {
        *self = Self::default();
    }

    /// Handles a failed `accept`. An error that concerns only that connection changes nothing.
    pub fn handle_error(&mut self, why: &io::Error, now_ms: u64) {
        if is_per_connection(why) {
            debug!(%why, "a client disconnected before its connection was accepted");
            return;
        }
        if !std::mem::replace(&mut self.refused, true) {
            warn!(%why, "cannot accept connections; retrying every 100 ms");
        }
        self.retry_ms = Some(now_ms + Self::MS);
    }

    /// Handles a closed connection, whose file descriptor is free again.
    pub fn handle_descriptor_free(&mut self) {
        self.retry_ms = None;
    }

    /// Returns the time of the next attempt, if the last one failed.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// Returns whether accepting may be attempted now.
    pub fn is_over(&self, now_ms: u64) -> bool {
        self.retry_ms.is_none_or(|at| at <= now_ms)
    }
}

/// Returns whether an error of `accept` concerns only the connection, not the listener or the system.
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
