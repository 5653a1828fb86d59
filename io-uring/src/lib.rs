//! The completion event loop over io_uring: **not built yet**.
//!
//! What exists is the contract, the same as that of the mio loop: [`Loop::new`], [`Loop::for_connection`], [`Loop::mailbox`],
//! [`Loop::run`], with the events, notices and limits of [`hipr_io`]. A worker can be written against it; asked for a loop, it answers with an error
//! that says so.

#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use hipr_io::{Config, Handler, Listener, Mailbox, Stats, Stream};

/// The loop. There is no value of this type yet.
#[derive(Debug)]
pub struct Loop(Infallible);

impl Loop {
    /// A loop that serves `listener`.
    ///
    /// # Errors
    /// Always [`io::ErrorKind::Unsupported`]: the loop is not built yet.
    pub fn new(_listener: Listener, _config: Config, _stats: Arc<Stats>) -> io::Result<Self> {
        Err(not_built())
    }

    /// A loop that serves one connection that somebody else accepted, and returns when that has ended.
    ///
    /// # Errors
    /// As [`Loop::new`].
    pub fn for_connection(_stream: Stream, _config: Config, _stats: Arc<Stats>) -> io::Result<Self> {
        Err(not_built())
    }

    /// The way to talk to the loop from other threads.
    pub fn mailbox(&self) -> Arc<Mailbox> {
        match self.0 {}
    }

    /// Serves until the mailbox says stop.
    ///
    /// # Errors
    /// None: it cannot be called.
    pub fn run(self, _handler: impl Handler) -> io::Result<()> {
        match self.0 {}
    }
}

fn not_built() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "the io_uring loop is not built yet; use mio")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_that_it_is_not_built() {
        let listener = Listener::bind(&"127.0.0.1:0".into()).unwrap();
        let error = Loop::new(listener, Config::default(), Arc::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        assert!(error.to_string().contains("not built yet"));
    }
}
