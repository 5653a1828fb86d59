//! The completion event loop over io_uring: sockets on one side, [`hipr_io`]'s events and notices on the other.
//!
//! The kernel accepts and receives on its own (multishot), into buffers that all connections share, or, while much comes, into
//! one of the connection's own that is passed on without a copy. One turn is one system call: it submits what the last turn
//! queued and waits for completions. Everything that is not a socket is [`hipr_io::Driver`]'s, as in the other loop.

mod buffers;
mod port;
mod refusal;
mod ring;
mod sockets;
mod token;

use std::fmt;
use std::io;
use std::sync::Arc;

use hipr_io::{Config, Driver, Handler, Listener, Mailbox, Stats, Stream, tune};

use crate::sockets::Sockets;

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
    /// io_uring cannot be had: [`io::ErrorKind::Unsupported`] where the kernel lacks it,
    /// [`io::ErrorKind::PermissionDenied`] where it may not be used. The error says what to do about it.
    pub fn new(listener: Listener, config: Config, stats: Arc<Stats>) -> io::Result<Self> {
        if matches!(listener, Listener::Shm(..)) {
            return Err(refusal::not_for_shared_memory());
        }
        listener.prepare(false)?;
        Ok(Self::over(Sockets::new(Some(listener))?, config, stats))
    }

    /// A loop that serves one connection that somebody else accepted, and returns when that has ended.
    ///
    /// # Errors
    /// As [`Loop::new`]; [`io::ErrorKind::NotConnected`] for a peer that has gone already.
    pub fn for_connection(stream: Stream, config: Config, stats: Arc<Stats>) -> io::Result<Self> {
        if matches!(stream, Stream::Shm(_)) {
            return Err(refusal::not_for_shared_memory());
        }
        let mut event_loop = Self::over(Sockets::new(None)?, config, stats);
        stream.set_nonblocking(false)?;
        let peer = stream.peer()?;
        tune(&stream, peer);
        event_loop.0.admit(stream, peer)?;
        Ok(event_loop)
    }

    fn over(sockets: Sockets, config: Config, stats: Arc<Stats>) -> Self {
        let wake = sockets.wake();
        let mailbox = Mailbox::new(move || {
            // The only failure is a counter that is full, and that wakes as well.
            let _ = rustix::io::write(&wake, &1u64.to_ne_bytes());
        });
        Self(Driver::new(sockets, mailbox, config, stats))
    }

    /// The way to talk to the loop from other threads.
    pub fn mailbox(&self) -> Arc<Mailbox> {
        self.0.mailbox()
    }

    /// Serves until the mailbox says stop, or until the end of a connection from [`Loop::for_connection`]. `handler` gets the
    /// events, in order, on this thread.
    ///
    /// # Errors
    /// Those of waiting. A failing connection only ends itself.
    pub fn run(self, handler: impl Handler) -> io::Result<()> {
        self.0.run(handler)
    }
}
