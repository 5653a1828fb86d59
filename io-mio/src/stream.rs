//! Connections of any kind in a poll.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use hipr_io_shm::Served;
use mio::event::{Event, Source};
use mio::net::{TcpStream, UnixStream};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};

/// An edge-triggered connection.
#[derive(Debug)]
pub enum Stream {
    /// A TCP connection.
    Tcp(TcpStream),
    /// A unix socket.
    Unix(UnixStream),
    /// A connection through shared memory, whose control socket is polled.
    Shm(Box<Served>),
}

/// Evaluates the same expression for each kind of connection, or another one for shared memory.
macro_rules! each {
    ($stream:expr, $inner:ident => $do:expr) => {
        each!($stream, $inner => $do, $inner => $do)
    };
    ($stream:expr, $inner:ident => $do:expr, $served:ident => $shared:expr) => {
        match $stream {
            Stream::Tcp($inner) => $do,
            Stream::Unix($inner) => $do,
            Stream::Shm($served) => $shared,
        }
    };
}

impl Stream {
    /// Makes a connection non-blocking and prepares it for the poll.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn new(stream: hipr_io::Stream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(match stream {
            hipr_io::Stream::Tcp(stream) => Self::Tcp(TcpStream::from_std(stream)),
            hipr_io::Stream::Unix(stream) => Self::Unix(UnixStream::from_std(stream)),
            hipr_io::Stream::Shm(stream) => Self::Shm(Served::new(stream).into()),
        })
    }

    /// Returns whether the connection failed in both directions, even if there are bytes to read.
    pub(crate) fn is_reset(&self, event: &Event) -> bool {
        match self {
            Self::Tcp(_) => event.is_error() || event.is_write_closed(),
            // A unix socket is closed for writing as soon as the peer closed it in order; what the peer said before counts.
            Self::Unix(_) | Self::Shm(_) => event.is_error(),
        }
    }

    /// Handles that the poll reported the connection as readable: for shared memory, reads its bell.
    ///
    /// # Errors
    /// The peer breaks the rules of such connections; those of the system.
    pub(crate) fn handle_readable(&mut self) -> io::Result<()> {
        if let Self::Shm(served) = self { served.handle_bell() } else { Ok(()) }
    }

    /// Returns the shared memory of the connection, if it uses it; it has to be polled, because nothing reports its
    /// changes.
    pub(crate) fn shared(&mut self) -> Option<&mut Served> {
        if let Self::Shm(served) = self { Some(served) } else { None }
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        each!(self, stream => stream.shutdown(how), served => served.shutdown(how))
    }

    pub(crate) fn take_error(&self) -> io::Result<Option<io::Error>> {
        each!(self, stream => stream.take_error(), _served => Ok(None))
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
        self.write_vectored(&[IoSlice::new(bytes)])
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
        each!(self, stream => stream.register(registry, token, interests), served => {
            SourceFd(&served.as_fd().as_raw_fd()).register(registry, token, interests)
        })
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        each!(self, stream => stream.reregister(registry, token, interests), served => {
            SourceFd(&served.as_fd().as_raw_fd()).reregister(registry, token, interests)
        })
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        each!(self, stream => stream.deregister(registry), served => {
            SourceFd(&served.as_fd().as_raw_fd()).deregister(registry)
        })
    }
}

impl From<Stream> for OwnedFd {
    fn from(stream: Stream) -> Self {
        each!(stream, stream => stream.into(), served => (*served).into())
    }
}
