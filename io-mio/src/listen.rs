//! The listening socket, and what to do when the system has no descriptor left.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use socket2::{SockRef, TcpKeepalive};
use tracing::{debug, warn};

/// How long to wait before the next try after the system refused a descriptor.
const BACK_OFF_MS: u64 = 100;
/// When a silent peer is asked whether it is still there, and how often.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(15);
/// Connections that may wait to be accepted; the system may allow fewer.
const BACKLOG: i32 = 4096;
/// Connections accepted before the others get their turn.
const TURN: u32 = 256;

/// A listening socket in a poll, edge-triggered: accepts until there is nothing to accept, and waits when the system has no
/// descriptor. Times are milliseconds of any clock that only goes forward.
#[derive(Debug)]
pub struct Listen {
    listener: TcpListener,
    readable: bool,
    /// The next try after a refusal.
    retry_ms: Option<u64>,
    left: u32,
    /// Whether the last try was refused: said once.
    refused: bool,
}

impl Listen {
    /// Listens on `listener` and registers it as `token`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(mut listener: TcpListener, registry: &Registry, token: Token) -> io::Result<Self> {
        SockRef::from(&listener).listen(BACKLOG)?;
        registry.register(&mut listener, token, Interest::READABLE)?;
        Ok(Self { listener, readable: true, retry_ms: None, left: TURN, refused: false })
    }

    /// The poll says that it can be read.
    pub fn handle_readable(&mut self) {
        self.readable = true;
    }

    /// A connection was closed: there is a descriptor again.
    pub fn handle_descriptor_free(&mut self) {
        self.retry_ms = None;
    }

    /// When to try again, if the system refused.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms.filter(|_| self.readable)
    }

    /// Whether a try makes sense now.
    pub fn is_ready(&self, now_ms: u64) -> bool {
        self.readable && self.retry_ms.is_none_or(|at| at <= now_ms)
    }

    /// The next connection; `None` when there is none, or enough for this turn.
    pub fn accept(&mut self, now_ms: u64) -> Option<(TcpStream, SocketAddr)> {
        while self.is_ready(now_ms) {
            if self.left == 0 {
                self.left = TURN;
                return None;
            }
            self.left -= 1;
            self.retry_ms = None;
            match self.listener.accept() {
                Ok((stream, peer)) => {
                    self.refused = false;
                    tune(&stream, peer);
                    return Some((stream, peer));
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => self.readable = false,
                Err(why) if is_per_connection(&why) => {
                    debug!(%why, "a connection was gone before it was accepted")
                }
                Err(why) => {
                    if !std::mem::replace(&mut self.refused, true) {
                        warn!(%why, "cannot accept a connection; trying again until it works");
                    }
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
pub(crate) fn tune(stream: &TcpStream, peer: SocketAddr) {
    if let Err(why) = stream.set_nodelay(true) {
        debug!(%peer, %why, "TCP_NODELAY");
    }
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_AFTER).with_interval(KEEPALIVE_EVERY);
    if let Err(why) = SockRef::from(stream).set_tcp_keepalive(&keepalive) {
        debug!(%peer, %why, "SO_KEEPALIVE");
    }
}
