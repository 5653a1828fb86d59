//! One connection of a session that outlives it: TCP, with or without encryption.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

use hipr_resume::{Claim, Terms};
use hipr_tls::preamble::{Answer, Collected, Hello};
use hipr_tls::{Fault, is_alert};
use socket2::{SockRef, TcpKeepalive};

use super::Secured;

/// TCP keepalive, and the time that sent bytes may be unacknowledged: a link that is dead is found within about half a minute. That costs a
/// session nothing that goes on over another.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(10))
    .with_interval(Duration::from_secs(5))
    .with_retries(3);
const UNACKNOWLEDGED: Duration = Duration::from_secs(25);

/// A connection that has claimed a session.
#[derive(Debug)]
pub(crate) enum Line {
    /// Without encryption.
    Tcp(TcpStream),
    /// With encryption, whose preamble has the claim.
    Secured(Box<Secured>),
}

impl Line {
    /// Sets up a connection without encryption; the [claim](claim_bytes) has to be the first that is sent.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn tcp(socket: TcpStream) -> io::Result<Self> {
        tune(&socket)?;
        Ok(Self::Tcp(socket))
    }

    /// Sets up a connection with encryption, which claims the session itself.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn secured(secured: Secured) -> io::Result<Self> {
        tune(secured.socket())?;
        Ok(Self::Secured(Box::new(secured)))
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            Self::Tcp(socket) => socket,
            Self::Secured(secured) => secured.socket(),
        }
    }

    /// Sets the longest time that a read and a write may take.
    pub(crate) fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket().set_read_timeout(timeout)?;
        self.socket().set_write_timeout(timeout)
    }

    /// Claims a session that has begun and waits for its terms.
    ///
    /// # Errors
    /// [`ErrorKind::PermissionDenied`] if the worker refuses; the connection's.
    pub(crate) fn enter(&self, claim: &Claim) -> io::Result<Terms> {
        let terms = match self {
            Self::Secured(secured) => {
                secured.enter()?;
                secured.terms()
            }
            Self::Tcp(socket) => {
                self.send(&claim_bytes(claim))?;
                let mut answer = Collected::default();
                loop {
                    let mut byte = [0; 64];
                    let wanted = answer.wanted().map_err(Fault::Preamble)?.min(byte.len());
                    let place = byte.get_mut(..wanted).unwrap_or_default();
                    if place.is_empty() {
                        break read_answer(&answer)?;
                    }
                    (&*socket).read_exact(place)?;
                    answer.push(place);
                }
            }
        };
        terms.ok_or_else(|| Fault::Preamble("the worker does not answer the claim").into())
    }

    /// Returns the terms of the session, where the encryption's preamble has them and they have come.
    pub(crate) fn terms(&self) -> Option<Terms> {
        match self {
            Self::Tcp(_) => None,
            Self::Secured(secured) => secured.terms(),
        }
    }

    /// Sends all bytes.
    ///
    /// # Errors
    /// The socket's; some of the bytes may have been sent.
    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let mut left = bytes;
        while !left.is_empty() {
            let sent = match self {
                Self::Tcp(socket) => SockRef::from(socket).send_with_flags(left, libc::MSG_NOSIGNAL),
                Self::Secured(secured) => secured.write(&[IoSlice::new(left)]),
            };
            match sent {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(len) => left = left.get(len..).unwrap_or_default(),
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// Reads what has arrived, waiting for the first byte; returns 0 at the end.
    ///
    /// # Errors
    /// The connection's.
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => (&*socket).read(into),
            Self::Secured(secured) => secured.read(into),
        }
    }

    /// Returns whether a read would not wait.
    pub(crate) fn has_input(&self) -> bool {
        match self {
            Self::Tcp(socket) => {
                let mut byte = [std::mem::MaybeUninit::uninit()];
                let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
                SockRef::from(socket).recv_with_flags(&mut byte, flags).is_ok()
            }
            Self::Secured(secured) => secured.has_input(),
        }
    }

    /// Waits until the socket has something to read, at most `timeout`.
    pub(crate) fn wait_for_input(&self, timeout: Duration) {
        let mut wanted = libc::pollfd { fd: self.socket().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: one entry, which is ours during the call. A failure is as good as a time-out.
        let _ = unsafe { libc::poll(&raw mut wanted, 1, timeout_ms) };
    }

    /// Sends the last bytes as far as that takes no time, and ends the connection.
    pub(crate) fn close(&self, last: &[u8]) {
        match self {
            Self::Tcp(socket) => {
                let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
                // A worker that is gone needs no good-bye.
                let _ = SockRef::from(socket).send_with_flags(last, flags);
            }
            Self::Secured(secured) => secured.say_goodbye_behind(last),
        }
        self.shutdown();
    }

    /// Ends the connection, which wakes threads that read or write.
    pub(crate) fn shutdown(&self) {
        let _ = self.socket().shutdown(Shutdown::Both);
    }
}

fn tune(socket: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(socket);
    socket.set_tcp_keepalive(&KEEPALIVE)?;
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))
}

/// Returns what a connection without encryption begins with.
pub(crate) fn claim_bytes(claim: &Claim) -> Vec<u8> {
    Hello { claim: Some(*claim), ..Hello::default() }.to_bytes()
}

/// Says to which process of the worker a connection is to be passed, before everything else; nothing for 0.
///
/// # Errors
/// The socket's.
pub(crate) fn send_route(mut socket: &TcpStream, route: u64) -> io::Result<()> {
    if route == 0 {
        return Ok(());
    }
    socket.write_all(&Hello { route: Some(route), ..Hello::default() }.to_bytes())
}

/// Reads a whole answer to a claim.
///
/// # Errors
/// [`ErrorKind::PermissionDenied`] if it is a refusal.
pub(crate) fn read_answer(answer: &Collected) -> io::Result<Option<Terms>> {
    let answer = Answer::from_fields(answer.fields()).map_err(Fault::Preamble)?;
    match answer.refusal {
        Some(why) => Err(Fault::Refused(format!("the worker says: {why}")).into()),
        None => Ok(answer.terms),
    }
}

/// Takes what belongs to the answer off the first bytes of a connection without encryption; returns the terms when they are whole.
///
/// # Errors
/// The bytes are no answer.
pub(crate) fn collect_answer(answer: &mut Collected, bytes: &mut &[u8]) -> io::Result<Option<Terms>> {
    if is_alert(bytes) {
        let why = "the worker wants encryption: write hipr:// before its address";
        return Err(io::Error::new(ErrorKind::InvalidData, why));
    }
    if answer.take(bytes).map_err(Fault::Preamble)? { read_answer(answer) } else { Ok(None) }
}
