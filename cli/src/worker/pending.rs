//! Connections that have not sent a complete first message.
//!
//! A process is only started for a client that speaks the protocol: what it sent is looked at and left in the socket, for
//! the process to read.

use hipr_io::Peer;
use hipr_io_mio::Stream;
use hipr_io_shm::HELLO;
use hipr_proto::{Fatal, Limits, Receiver, Rx};
use hipr_tls::{REFUSAL_OF_PLAIN, is_hello, preamble};
use rustix::net::{RecvFlags, recv};
use std::io::{self, ErrorKind, Read, Write};

/// Bytes that are peeked at. A longer first message counts as complete when this much of it has arrived.
const PEEK_BYTES: usize = 4096;

/// A connection that has not sent a complete first message.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) stream: Stream,
    pub(super) peer: Peer,
    /// Time at which it was accepted.
    pub(super) since_ms: u64,
    /// Whether the client has closed its sending side.
    pub(super) ended: bool,
}

/// The result of peeking at a connection.
#[derive(Debug)]
pub(super) enum Peeked {
    /// The first message is incomplete.
    Incomplete,
    /// The first message is complete.
    Complete,
    /// The client disconnected before its first message was complete.
    Disconnected,
    /// The client does not speak the protocol.
    NotHipr(Fatal),
    /// The connection is for the process of a session that has begun, and says so in its first bytes, of which this is the number.
    Routed {
        /// The process's route.
        route: u64,
        /// Length in bytes of what says so.
        len: usize,
    },
    /// The client does not begin with TLS, as it has to.
    NotTls,
}

impl Pending {
    /// Peeks at the bytes that the client has sent so far.
    pub(super) fn peek(&self, limits: Limits, has_identity: bool) -> io::Result<Peeked> {
        let mut bytes = [0; PEEK_BYTES];
        let len = loop {
            match recv(&self.stream, &mut bytes, RecvFlags::PEEK).map_err(io::Error::from) {
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(Peeked::Incomplete),
                result => break result?.0,
            }
        };
        let said = bytes.get(..len).unwrap_or_default();
        if matches!(self.stream, Stream::Shm(_)) {
            // The messages come when there is memory for them.
            return if said == HELLO {
                Ok(Peeked::Complete)
            } else if HELLO.starts_with(said) {
                Ok(if self.ended || len == 0 { Peeked::Disconnected } else { Peeked::Incomplete })
            } else {
                Err(io::Error::new(
                    ErrorKind::InvalidData,
                    "the client did not begin with the shared-memory hello",
                ))
            };
        }
        if let Some((route, len)) = preamble::read_route(said) {
            return Ok(Peeked::Routed { route, len });
        }
        if has_identity && preamble::is_whole(said) != Some(false) {
            return Ok(match is_hello(said) {
                None => Peeked::NotTls,
                Some(true) => Peeked::Complete,
                Some(false) if len == PEEK_BYTES => Peeked::Complete,
                Some(false) if self.ended || len == 0 => Peeked::Disconnected,
                Some(false) => Peeked::Incomplete,
            });
        }
        if let Some(is_whole) = preamble::is_whole(said) {
            return Ok(match is_whole {
                true => Peeked::Complete,
                false if self.ended || len == 0 => Peeked::Disconnected,
                false => Peeked::Incomplete,
            });
        }
        Ok(match first_message(said, limits) {
            Err(why) => Peeked::NotHipr(why),
            Ok(true) => Peeked::Complete,
            Ok(false) if len == PEEK_BYTES => Peeked::Complete,
            Ok(false) if self.ended || len == 0 => Peeked::Disconnected,
            Ok(false) => Peeked::Incomplete,
        })
    }

    /// Takes the first `len` bytes, which were peeked at.
    ///
    /// # Errors
    /// The socket's.
    pub(super) fn skip(&mut self, len: usize) -> io::Result<()> {
        let mut bytes = [0; PEEK_BYTES];
        self.stream.read_exact(bytes.get_mut(..len).unwrap_or_default())
    }

    /// Tells a client that speaks without encryption that the worker wants some.
    pub(super) fn refuse_plain(&mut self) {
        // What is not read would reset the connection, and the client would not hear it.
        let mut unread = [0; PEEK_BYTES];
        while matches!(self.stream.read(&mut unread), Ok(len) if len > 0) {}
        // A client that does not take seven bytes is gone.
        let _ = self.stream.write(&REFUSAL_OF_PLAIN);
    }
}

/// Returns whether the bytes begin with a complete message.
fn first_message(mut said: &[u8], limits: Limits) -> Result<bool, Fatal> {
    let mut receiver = Receiver::new(limits);
    loop {
        match receiver.handle_input(&mut said)? {
            Rx::Request { tail: 0, .. } | Rx::Data { last: true, .. } | Rx::Paused => return Ok(true),
            Rx::Request { .. } | Rx::Data { .. } => {}
            Rx::NeedMore => return Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hipr_proto::{Header, Opcode};

    fn message(payload: &[u8]) -> Vec<u8> {
        let mut bytes =
            Header::new(Opcode::MODULE_GET_FUNCTION, 1, payload.len() as u64, 0).to_bytes().to_vec();
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn only_a_complete_message_opens() {
        let bytes = message(b"\x01\0\0\0\0\0\0\0\x06\0\0\0kernel");
        for len in 0..bytes.len() {
            assert_eq!(first_message(&bytes[..len], Limits::default()), Ok(false), "{len} bytes");
        }
        assert_eq!(first_message(&bytes, Limits::default()), Ok(true));
        let two = [bytes.as_slice(), b"RPI"].concat();
        assert_eq!(first_message(&two, Limits::default()), Ok(true), "and whatever follows it");
    }

    #[test]
    fn what_is_not_the_protocol_is_seen_at_once() {
        assert!(first_message(b"GET / HTTP/1.1\r\nHost: gpu\r\n\r\n", Limits::default()).is_err());
    }
}
