//! The completion event loop (io_uring): sockets on one side, [`hipr_io`]'s events and notices on the other.
//!
//! The kernel accepts and receives on its own (multishot), into buffers that all connections share. One turn with small requests
//! is one system call: it submits the replies that the last turn queued and waits for completions. Bulk is read and written as
//! the socket has it and takes it, so that it waits in the socket and not in memory; the kernel only says when. Everything
//! that is not a socket is [`hipr_io::Driver`]'s, as in the other loop.

mod buffers;
mod port;
mod refusal;
mod ring;
mod shared;
mod sockets;
mod token;

use std::io;
use std::sync::Arc;

use hipr_io::{Config, Driver, Listener, Mailbox, Stats, Stream};

pub use crate::shared::Socket;
pub use crate::sockets::Sockets;

/// The event loop.
pub type Loop = Driver<Sockets>;

/// Creates a loop that serves the connections of `listener`.
///
/// # Errors
/// io_uring cannot be used: [`io::ErrorKind::Unsupported`] where the kernel lacks it,
/// [`io::ErrorKind::PermissionDenied`] where it may not be used. The error says what to do about it.
pub fn serve(listener: Listener, config: Config, stats: Arc<Stats>) -> io::Result<Loop> {
    listener.prepare(false)?;
    Ok(over(Sockets::new(Some(listener), &config)?, config, stats))
}

/// Creates a loop that serves one accepted connection, and returns when that has ended.
///
/// # Errors
/// As [`serve`]; [`io::ErrorKind::NotConnected`] for a peer that has gone already.
pub fn serve_connection(stream: Stream, config: Config, stats: Arc<Stats>) -> io::Result<Loop> {
    let mut driver = over(Sockets::new(None, &config)?, config, stats);
    driver.admit(stream)?;
    Ok(driver)
}

fn over(sockets: Sockets, config: Config, stats: Arc<Stats>) -> Loop {
    let wake = sockets.wake();
    let mailbox = Mailbox::new(move || {
        // The only failure is a counter that is full, and that wakes as well.
        let _ = rustix::io::write(&wake, &1u64.to_ne_bytes());
    });
    Driver::new(sockets, mailbox, config, stats)
}
