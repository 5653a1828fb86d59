//! The listening socket, and what to do when the system has no descriptor left.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use hipr_io::{Backoff, Listener, Peer, SocketFile, tune};
use hipr_io_shm::Served;
use mio::net::{TcpListener, UnixListener};
use mio::{Interest, Registry, Token};

use crate::Stream;

/// Connections accepted before the others get their turn.
const TURN: u32 = 256;

/// The socket.
#[derive(Debug)]
enum Door {
    Tcp(TcpListener),
    Unix {
        listener: UnixListener,
        /// Goes when nobody listens any more.
        _file: Arc<SocketFile>,
        /// Whether its connections are to go through shared memory.
        is_shared: bool,
    },
}

impl Door {
    fn unix(
        listener: std::os::unix::net::UnixListener,
        file: Arc<SocketFile>,
        is_shared: bool,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let mut listener = UnixListener::from_std(listener);
        registry.register(&mut listener, token, Interest::READABLE)?;
        Ok(Self::Unix { listener, _file: file, is_shared })
    }

    fn accept(&self) -> io::Result<(Stream, Peer)> {
        match self {
            Self::Tcp(listener) => {
                listener.accept().map(|(stream, peer)| (Stream::Tcp(stream), Peer::Tcp(peer)))
            }
            Self::Unix { listener, is_shared, .. } => {
                let (stream, _) = listener.accept()?;
                let stream =
                    if *is_shared { Stream::Shm(Served::new(stream).into()) } else { Stream::Unix(stream) };
                Ok((stream, Peer::Local))
            }
        }
    }
}

/// A listening socket in a poll, edge-triggered: accepts until there is nothing to accept, and waits when the system has no
/// descriptor. Times are milliseconds of any clock that only goes forward.
#[derive(Debug)]
pub struct Listen {
    door: Door,
    readable: bool,
    backoff: Backoff,
    left: u32,
}

impl Listen {
    /// Listens on `listener` and registers it as `token`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(listener: Listener, registry: &Registry, token: Token) -> io::Result<Self> {
        listener.prepare(true)?;
        let door = match listener {
            Listener::Tcp(listener) => {
                let mut listener = TcpListener::from_std(listener);
                registry.register(&mut listener, token, Interest::READABLE)?;
                Door::Tcp(listener)
            }
            Listener::Unix(listener, file) => Door::unix(listener, file, false, registry, token)?,
            Listener::Shm(listener, file) => Door::unix(listener, file, true, registry, token)?,
        };
        Ok(Self { door, readable: true, backoff: Backoff::default(), left: TURN })
    }

    /// The poll says that it can be read.
    pub fn handle_readable(&mut self) {
        self.readable = true;
    }

    /// A connection was closed: there is a descriptor again.
    pub fn handle_descriptor_free(&mut self) {
        self.backoff.handle_descriptor_free();
    }

    /// When to try again, if the system refused.
    pub fn retry_ms(&self) -> Option<u64> {
        self.backoff.retry_ms().filter(|_| self.readable)
    }

    /// Whether a try makes sense now.
    pub fn is_ready(&self, now_ms: u64) -> bool {
        self.readable && self.backoff.is_over(now_ms)
    }

    /// The next connection; `None` when there is none, or enough for this turn.
    pub fn accept(&mut self, now_ms: u64) -> Option<(Stream, Peer)> {
        while self.is_ready(now_ms) {
            if self.left == 0 {
                self.left = TURN;
                return None;
            }
            self.left -= 1;
            match self.door.accept() {
                Ok((stream, peer)) => {
                    self.backoff.handle_accepted();
                    tune(&stream, peer);
                    return Some((stream, peer));
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => self.readable = false,
                Err(why) => self.backoff.handle_error(&why, now_ms),
            }
        }
        self.left = TURN;
        None
    }
}
