//! The listening socket, and what to do when the system has no descriptor left.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use tracing::{debug, warn};

/// How long to wait before the next try after the system refused a descriptor.
const BACK_OFF_MS: u64 = 100;
/// Connections that may wait to be accepted; the system may allow fewer.
const BACKLOG: i32 = 4096;
/// Connections accepted before the others get their turn.
const TURN: u32 = 256;

#[derive(Debug)]
pub(crate) struct Listen {
    listener: TcpListener,
    readable: bool,
    /// The next try after a refusal.
    retry_ms: Option<u64>,
    left: u32,
}

impl Listen {
    pub(crate) fn new(mut listener: TcpListener, registry: &Registry, token: Token) -> io::Result<Self> {
        socket2::SockRef::from(&listener).listen(BACKLOG)?;
        registry.register(&mut listener, token, Interest::READABLE)?;
        Ok(Self { listener, readable: true, retry_ms: None, left: TURN })
    }

    pub(crate) fn handle_readable(&mut self) {
        self.readable = true;
    }

    /// A connection was closed: there is a descriptor again.
    pub(crate) fn handle_descriptor_free(&mut self) {
        self.retry_ms = None;
    }

    /// When to try again, if the system refused.
    pub(crate) fn retry_ms(&self) -> Option<u64> {
        self.retry_ms.filter(|_| self.readable)
    }

    /// Whether a try makes sense now.
    pub(crate) fn is_ready(&self, now_ms: u64) -> bool {
        self.readable && self.retry_ms.is_none_or(|at| at <= now_ms)
    }

    /// The next connection; `None` when there is none, or enough for this turn.
    pub(crate) fn accept(&mut self, now_ms: u64) -> Option<(TcpStream, SocketAddr)> {
        while self.is_ready(now_ms) {
            if self.left == 0 {
                self.left = TURN;
                return None;
            }
            self.left -= 1;
            self.retry_ms = None;
            match self.listener.accept() {
                Ok((stream, peer)) => {
                    tune(&stream, peer);
                    return Some((stream, peer));
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => self.readable = false,
                Err(why) if is_per_connection(&why) => {
                    debug!(%why, "a connection was gone before it was accepted")
                }
                Err(why) => {
                    warn!(%why, "cannot accept a connection; trying again later");
                    self.retry_ms = Some(now_ms + BACK_OFF_MS);
                }
            }
        }
        self.left = TURN;
        None
    }
}

/// Errors of `accept` that are about the connection and not about the listener or the system.
fn is_per_connection(why: &io::Error) -> bool {
    matches!(
        why.kind(),
        ErrorKind::Interrupted
            | ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionRefused
    )
}

/// Replies leave at once, and a peer whose machine is gone is noticed.
fn tune(stream: &TcpStream, peer: SocketAddr) {
    if let Err(why) = stream.set_nodelay(true) {
        debug!(%peer, %why, "TCP_NODELAY");
    }
    if let Err(why) = socket2::SockRef::from(stream).set_keepalive(true) {
        debug!(%peer, %why, "SO_KEEPALIVE");
    }
}
