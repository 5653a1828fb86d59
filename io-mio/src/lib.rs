//! The readiness event loop (epoll): sockets on one side, [`hipr_io`]'s events and notices on the other.
//!
//! One thread, edge-triggered. Everything that is not a socket is [`hipr_io::Driver`]'s, as in the other loop.

#![forbid(unsafe_code)]

mod listen;
mod sockets;
mod stream;

use std::io;
use std::sync::Arc;

use hipr_io::{Config, Driver, Listener, Stats};

pub use crate::listen::Listen;
pub use crate::sockets::Sockets;
pub use crate::stream::Stream;

/// The event loop.
pub type Loop = Driver<Sockets>;

/// Creates a loop that serves the connections of `listener`.
///
/// # Errors
/// Those of the system: no descriptors for the poll.
pub fn serve(listener: Listener, config: Config, stats: Arc<Stats>) -> io::Result<Loop> {
    let (sockets, mailbox) = Sockets::new(Some(listener), &config)?;
    Ok(Driver::new(sockets, mailbox, config, stats))
}

/// Creates a loop that serves one accepted connection, and returns when that has ended.
///
/// # Errors
/// Those of the system, for example [`io::ErrorKind::NotConnected`] for a peer that has gone already.
pub fn serve_connection(stream: hipr_io::Stream, config: Config, stats: Arc<Stats>) -> io::Result<Loop> {
    let (sockets, mailbox) = Sockets::new(None, &config)?;
    let mut driver = Driver::new(sockets, mailbox, config, stats);
    driver.admit(stream)?;
    Ok(driver)
}
