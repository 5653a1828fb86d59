//! The listening socket of a loop.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use hipr_io::{Backoff, Listener, Peer, SocketFile, local_peer, tune};
use hipr_io_shm::Served;
use mio::net::{TcpListener, UnixListener};
use mio::{Interest, Registry, Token};

use crate::Stream;

/// Maximum number of connections accepted in one turn.
const TURN: u32 = 256;

/// The listening socket, in the poll's own types.
#[derive(Debug)]
enum ListenSocket {
    Tcp(TcpListener),
    Unix {
        listener: UnixListener,
        /// Removes the socket's file when the last listener is dropped.
        _file: Arc<SocketFile>,
        /// Whether its connections use shared memory.
        is_shared: bool,
    },
}

impl ListenSocket {
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
                let peer = local_peer(&stream);
                let stream =
                    if *is_shared { Stream::Shm(Served::new(stream).into()) } else { Stream::Unix(stream) };
                Ok((stream, peer))
            }
        }
    }
}

/// An edge-triggered listening socket: accepts until nothing waits, and pauses while no file descriptor is free. Times are
/// milliseconds of any monotonic clock.
#[derive(Debug)]
pub struct Listen {
    socket: ListenSocket,
    readable: bool,
    backoff: Backoff,
    left: u32,
}

impl Listen {
    /// Registers `listener` with the poll as `token`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(listener: Listener, registry: &Registry, token: Token) -> io::Result<Self> {
        listener.prepare(true)?;
        let socket = match listener {
            Listener::Tcp(listener) => {
                let mut listener = TcpListener::from_std(listener);
                registry.register(&mut listener, token, Interest::READABLE)?;
                ListenSocket::Tcp(listener)
            }
            Listener::Unix(listener, file) => ListenSocket::unix(listener, file, false, registry, token)?,
            Listener::Shm(listener, file) => ListenSocket::unix(listener, file, true, registry, token)?,
        };
        Ok(Self { socket, readable: true, backoff: Backoff::default(), left: TURN })
    }

    /// Handles that the poll reported the socket as readable.
    pub fn handle_readable(&mut self) {
        self.readable = true;
    }

    /// Handles a closed connection, whose file descriptor is free again.
    pub fn handle_descriptor_free(&mut self) {
        self.backoff.handle_descriptor_free();
    }

    /// Returns the time of the next attempt, if the last one failed.
    pub fn retry_ms(&self) -> Option<u64> {
        self.backoff.retry_ms().filter(|_| self.readable)
    }

    /// Returns whether accepting may be attempted now.
    pub fn is_ready(&self, now_ms: u64) -> bool {
        self.readable && self.backoff.is_over(now_ms)
    }

    /// Accepts the next connection; returns `None` if there is none, or the turn's limit is reached.
    pub fn accept(&mut self, now_ms: u64) -> Option<(Stream, Peer)> {
        while self.is_ready(now_ms) {
            if self.left == 0 {
                self.left = TURN;
                return None;
            }
            self.left -= 1;
            match self.socket.accept() {
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
