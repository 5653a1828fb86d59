//! The readiness event loop: sockets on one side, [`hipr_io`]'s events and notices on the other.
//!
//! One thread, edge-triggered. Everything that is not a socket is [`hipr_io::Driver`]'s, as in the other loop.

#![forbid(unsafe_code)]

mod listen;
mod shared;
mod sockets;
mod stream;

use std::fmt;
use std::io;
use std::sync::Arc;

use hipr_io::{Config, Driver, Handler, Listener, Mailbox, Stats, tune};

pub use crate::listen::Listen;
use crate::sockets::Sockets;
pub use crate::stream::Stream;

/// The loop. Made on one thread, run on any; returns from [`Loop::run`] with [`Mailbox::stop`], or when it has no listener
/// and its connection has ended.
pub struct Loop(Driver<Sockets>);

impl fmt::Debug for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loop").field("connections", &self.0.connections()).finish_non_exhaustive()
    }
}

impl Loop {
    /// A loop that serves `listener`.
    ///
    /// # Errors
    /// Those of the system: no descriptors for the poll.
    pub fn new(listener: Listener, config: Config, stats: Arc<Stats>) -> io::Result<Self> {
        let (sockets, mailbox) = Sockets::new(Some(listener), &config)?;
        Ok(Self(Driver::new(sockets, mailbox, config, stats)))
    }

    /// A loop that serves one connection that somebody else accepted, and returns when that has ended.
    ///
    /// # Errors
    /// Those of the system, for example [`io::ErrorKind::NotConnected`] for a peer that has gone already.
    pub fn for_connection(stream: hipr_io::Stream, config: Config, stats: Arc<Stats>) -> io::Result<Self> {
        let (sockets, mailbox) = Sockets::new(None, &config)?;
        let mut driver = Driver::new(sockets, mailbox, config, stats);
        let peer = stream.peer()?;
        tune(&stream, peer);
        driver.admit(Stream::new(stream)?, peer)?;
        Ok(Self(driver))
    }

    /// The way to talk to the loop from other threads.
    pub fn mailbox(&self) -> Arc<Mailbox> {
        self.0.mailbox()
    }

    /// Serves until the mailbox says stop, or until the end of a connection from [`Loop::for_connection`]. `handler` gets the
    /// events, in order, on this thread.
    ///
    /// # Errors
    /// Those of polling. A failing connection only ends itself.
    pub fn run(self, handler: impl Handler) -> io::Result<()> {
        self.0.run(handler)
    }
}
