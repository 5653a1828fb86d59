//! Blocking TCP and unix connections, for the process that workers are compared with.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

/// A connection of either kind.
pub(crate) type Connection = Box<dyn Duplex>;

/// A stream of bytes in both directions.
pub(crate) trait Duplex: Read + Write + Send {}

impl<T: Read + Write + Send> Duplex for T {}

/// Connects to a peer or to a worker.
///
/// # Errors
/// Those of the system.
pub(crate) fn connect(address: &str) -> io::Result<Connection> {
    match unix_path(address) {
        Some(path) => Ok(Box::new(UnixStream::connect(path)?)),
        None => {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
    }
}

/// Returns the path of a `unix:` address.
pub(crate) fn unix_path(address: &str) -> Option<&str> {
    address.strip_prefix("unix:")
}
