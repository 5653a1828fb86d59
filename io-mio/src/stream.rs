//! Connections of any kind, in a poll.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use hipr_io::Peer;
use mio::event::{Event, Source};
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use socket2::{SockRef, TcpKeepalive};
use tracing::debug;

/// When a silent peer is asked whether it is still there, and how often.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(15);

/// A connection, edge-triggered.
#[derive(Debug)]
pub enum Stream {
    /// TCP.
    Tcp(TcpStream),
    /// A unix socket.
    Unix(UnixStream),
}

/// The same for each kind.
macro_rules! each {
    ($stream:expr, $inner:ident => $do:expr) => {
        match $stream {
            Stream::Tcp($inner) => $do,
            Stream::Unix($inner) => $do,
        }
    };
}

impl Stream {
    /// Makes a connection fit for a poll.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn new(stream: hipr_io::Stream) -> io::Result<Self> {
        Ok(match stream {
            hipr_io::Stream::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                Self::Tcp(TcpStream::from_std(stream))
            }
            hipr_io::Stream::Unix(stream) => {
                stream.set_nonblocking(true)?;
                Self::Unix(UnixStream::from_std(stream))
            }
        })
    }

    /// Replies leave at once, and a peer whose machine is gone is noticed.
    pub(crate) fn tune(&self, peer: Peer) {
        let Self::Tcp(stream) = self else { return };
        if let Err(why) = stream.set_nodelay(true) {
            debug!(%peer, %why, "TCP_NODELAY");
        }
        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_AFTER).with_interval(KEEPALIVE_EVERY);
        if let Err(why) = SockRef::from(stream).set_tcp_keepalive(&keepalive) {
            debug!(%peer, %why, "SO_KEEPALIVE");
        }
    }

    /// Whether the peer is gone in both directions, also if there is something to read.
    pub(crate) fn is_reset(&self, event: &Event) -> bool {
        match self {
            Self::Tcp(_) => event.is_error() || event.is_write_closed(),
            // A unix socket is closed for writing as soon as the peer closed it in order; what the peer said before counts.
            Self::Unix(_) => event.is_error(),
        }
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        each!(self, stream => stream.shutdown(how))
    }

    pub(crate) fn take_error(&self) -> io::Result<Option<io::Error>> {
        each!(self, stream => stream.take_error())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        each!(self, stream => stream.as_fd())
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        each!(self, stream => stream.read(buffer))
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        each!(self, stream => stream.write(bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        each!(self, stream => stream.write_vectored(slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source for Stream {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        each!(self, stream => stream.register(registry, token, interests))
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        each!(self, stream => stream.reregister(registry, token, interests))
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        each!(self, stream => stream.deregister(registry))
    }
}

impl From<Stream> for OwnedFd {
    fn from(stream: Stream) -> Self {
        each!(stream, stream => stream.into())
    }
}
