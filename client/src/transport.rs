//! The transport of a connection: TCP with or without encryption, a Unix socket or shared memory, written by one thread and read by
//! another.

mod line;
mod resumed;
mod secured;

use std::io::{self, IoSlice, Read};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hipr_io::Address;
use hipr_io_shm::{Waits, receive};
use hipr_tls::Fingerprint;
pub(crate) use line::{Line, send_route};
pub(crate) use resumed::{Resumed, Route};
pub(crate) use secured::Secured;
use socket2::{Domain, SockAddr, SockRef, Socket, TcpKeepalive, Type};

/// TCP keepalive settings: they detect a lost worker within about a minute of silence. (TCP_USER_TIMEOUT would also end
/// connections to a worker that is merely busy and does not read.)
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(20))
    .with_interval(Duration::from_secs(10))
    .with_retries(4);

#[derive(Debug)]
pub(crate) enum Transport {
    Tcp(TcpStream),
    Secured(Box<Secured>),
    /// TCP, with or without encryption; the session goes on when the connection is cut.
    Resumed(Arc<Resumed>),
    Unix(UnixStream, Passed),
    Shm(hipr_io_shm::Client),
}

/// A descriptor that the worker has passed over a unix socket. Nobody looks for one before it is expected.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    is_expected: AtomicBool,
    descriptor: Mutex<Option<OwnedFd>>,
}

impl Passed {
    /// Receives bytes, and keeps a descriptor that was passed with them.
    fn receive(&self, socket: &UnixStream, into: &mut [u8], waits: Waits) -> io::Result<usize> {
        let mut descriptor = None;
        let received = receive(socket, into, &mut descriptor, waits);
        if descriptor.is_some() {
            *self.lock() = descriptor;
        }
        received
    }

    fn lock(&self) -> MutexGuard<'_, Option<OwnedFd>> {
        self.descriptor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport {
    /// Connects within `timeout`. [`Secured`] has its own way to connect.
    pub(crate) fn connect(address: &Address, timeout: Duration) -> io::Result<Self> {
        match address {
            Address::Tcp(host_and_port) => connect_tcp(host_and_port, timeout).map(Self::Tcp),
            Address::Secured(_) => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "encryption begins with keys"))
            }
            Address::Unix(path) => {
                connect_unix(path, timeout).map(|socket| Self::Unix(socket, Passed::default()))
            }
            Address::Shm(path) => {
                let end = Instant::now() + timeout;
                let control = connect_unix(path, timeout)?;
                let left = end.saturating_duration_since(Instant::now());
                hipr_io_shm::Client::open(control, left).map(Self::Shm)
            }
        }
    }

    /// Returns what `ask` finds out about the TCP socket; `None` if the worker is not reached over TCP.
    fn of_tcp<R>(&self, ask: impl FnOnce(&TcpStream) -> R) -> Option<R> {
        match self {
            Self::Tcp(socket) => Some(ask(socket)),
            Self::Secured(secured) => Some(ask(secured.socket())),
            Self::Resumed(resumed) => Some(ask(resumed.line().socket())),
            Self::Unix(..) | Self::Shm(_) => None,
        }
    }

    /// Returns whether the worker is on this machine, as far as the address tells: a tunnel looks as if it was.
    pub(crate) fn is_local(&self) -> bool {
        let is_local = self.of_tcp(|socket| match (socket.peer_addr(), socket.local_addr()) {
            (Ok(peer), Ok(local)) => peer.ip().is_loopback() || peer.ip() == local.ip(),
            // It is lost.
            _ => true,
        });
        is_local.unwrap_or(true)
    }

    /// Returns whether the worker's address is a loopback address, which on another machine is that machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let is_loopback =
            |socket: &TcpStream| socket.peer_addr().is_ok_and(|peer| peer.ip().to_canonical().is_loopback());
        self.of_tcp(is_loopback).unwrap_or(true)
    }

    /// Returns the fingerprint of the worker's key, if it has shown one.
    pub(crate) fn worker(&self) -> Option<Fingerprint> {
        match self {
            Self::Secured(secured) => secured.worker(),
            Self::Resumed(resumed) => match &*resumed.line() {
                Line::Secured(secured) => secured.worker(),
                Line::Tcp(_) => None,
            },
            Self::Tcp(_) | Self::Unix(..) | Self::Shm(_) => None,
        }
    }

    fn by_kind(&self) -> Kind<'_> {
        match self {
            Self::Tcp(socket) => Kind::Socket(socket.into()),
            Self::Secured(secured) => Kind::Socket(secured.socket().into()),
            Self::Resumed(resumed) => Kind::Session(resumed),
            Self::Unix(socket, _) => Kind::Socket(socket.into()),
            Self::Shm(client) => Kind::Memory(client),
        }
    }

    /// Sets the longest time that a read and a write may take; None is without limit.
    pub(crate) fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self.by_kind() {
            Kind::Socket(socket) => {
                socket.set_read_timeout(timeout)?;
                socket.set_write_timeout(timeout)
            }
            Kind::Session(resumed) => resumed.set_timeout(timeout),
            Kind::Memory(client) => {
                client.set_timeout(timeout);
                Ok(())
            }
        }
    }

    /// Writes some of the bytes and returns how many; never raises SIGPIPE, which the program may not ignore.
    pub(crate) fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if let Self::Secured(secured) = self {
            return secured.write(slices);
        }
        match self.by_kind() {
            Kind::Socket(socket) => socket.send_vectored_with_flags(slices, libc::MSG_NOSIGNAL),
            Kind::Session(resumed) => resumed.write(slices),
            Kind::Memory(client) => client.write(slices),
        }
    }

    /// Reads the bytes that have arrived, waiting for the first; returns 0 at the end of the stream.
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => (&*socket).read(into),
            Self::Secured(secured) => secured.read(into),
            Self::Resumed(resumed) => resumed.read(into),
            Self::Unix(socket, passed) if passed.is_expected.load(Relaxed) => {
                passed.receive(socket, into, Waits::ForSome)
            }
            Self::Unix(socket, _) => (&*socket).read(into),
            Self::Shm(client) => client.read(into),
        }
    }

    /// Returns whether a read would not wait: bytes have arrived, or the end of the stream. Only for the thread that may read.
    pub(crate) fn has_input(&self) -> bool {
        if let Self::Secured(secured) = self {
            return secured.has_input();
        }
        match self.by_kind() {
            Kind::Socket(socket) => {
                let mut byte = [0_u8];
                let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
                // SAFETY: an open socket, and memory that is ours during the call.
                let peeked = unsafe { libc::recv(socket.as_raw_fd(), byte.as_mut_ptr().cast(), 1, flags) };
                peeked >= 0
            }
            Kind::Session(resumed) => resumed.has_input(),
            Kind::Memory(client) => client.has_input(),
        }
    }

    /// Fills `into`; returns less at the end of the stream, or after a time-out or a signal.
    pub(crate) fn read_all(&self, into: &mut [u8]) -> io::Result<usize> {
        if let Self::Secured(secured) = self {
            return secured.read_all(into);
        }
        if let Self::Resumed(resumed) = self {
            return resumed.read_all(into);
        }
        if let Self::Unix(socket, passed) = self
            && passed.is_expected.load(Relaxed)
        {
            return passed.receive(socket, into, Waits::ForAll);
        }
        let Kind::Socket(socket) = self.by_kind() else { return self.read(into) };
        // SAFETY: an open socket, and memory that is ours during the call.
        let read = unsafe {
            libc::recv(socket.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), libc::MSG_WAITALL)
        };
        usize::try_from(read).map_err(|_| io::Error::last_os_error())
    }

    /// Begins to take descriptors that the worker passes, before anything is read.
    pub(crate) fn expect_descriptor(&self) {
        if let Self::Unix(_, passed) = self {
            passed.is_expected.store(true, Relaxed);
        }
    }

    /// Returns the descriptor that the worker has passed ahead of a reply that has been read.
    pub(crate) fn take_descriptor(&self) -> Option<OwnedFd> {
        match self {
            Self::Tcp(_) | Self::Secured(_) | Self::Resumed(_) => None,
            Self::Unix(_, passed) => passed.lock().take(),
            Self::Shm(client) => client.take_descriptor(),
        }
    }

    /// Makes a TCP read wake up only when `bytes` bytes have arrived or the connection ends. The bytes must be certain to
    /// come. Other transports wake up sooner.
    pub(crate) fn set_wake_bytes(&self, bytes: usize) {
        let Self::Tcp(socket) = self else { return };
        let bytes = libc::c_int::try_from(bytes).unwrap_or(1);
        let size = size_of::<libc::c_int>() as libc::socklen_t;
        // Without it, threads are woken up sooner.
        // SAFETY: an open socket, and an option that is an int.
        let _ = unsafe {
            let value = (&raw const bytes).cast();
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, value, size)
        };
    }

    /// Shuts the connection down in both directions, which wakes threads that read or write.
    pub(crate) fn shutdown(&self) {
        if let Self::Secured(secured) = self {
            secured.say_goodbye();
        }
        // The other end may be gone already.
        match self.by_kind() {
            Kind::Socket(socket) => drop(socket.shutdown(Shutdown::Both)),
            Kind::Session(resumed) => resumed.shutdown(),
            Kind::Memory(client) => client.shutdown(),
        }
    }

    /// Returns whether the other end may be a worker that knows no sessions which outlive their connections, as it was asked for one and
    /// has not answered.
    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(self, Self::Resumed(resumed) if resumed.is_unanswered())
    }

    /// Calls `told` with the file descriptors of each connection that takes the place of the first.
    pub(crate) fn on_reconnect(&self, told: impl Fn([RawFd; 2]) + Send + Sync + 'static) {
        if let Self::Resumed(resumed) = self {
            resumed.on_reconnect(told);
        }
    }

    /// Returns the file descriptors that a forked child has to close; -1 stands for none.
    pub(crate) fn raw_fds(&self) -> [RawFd; 2] {
        match self.by_kind() {
            Kind::Socket(socket) => [socket.as_raw_fd(), -1],
            Kind::Session(resumed) => [resumed.line().socket().as_raw_fd(), -1],
            Kind::Memory(client) => client.descriptors().map(|descriptor| descriptor.as_raw_fd()),
        }
    }
}

/// A transport by how it is used: all sockets alike, a session that goes on over several, or shared memory.
enum Kind<'a> {
    Socket(SockRef<'a>),
    Session(&'a Resumed),
    Memory(&'a hipr_io_shm::Client),
}

/// Connects over TCP, trying each address that the name has.
pub(crate) fn connect_tcp(host_and_port: &str, timeout: Duration) -> io::Result<TcpStream> {
    let end = Instant::now() + timeout;
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in host_and_port.to_socket_addrs()? {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(socket) => {
                // Small requests leave at once.
                socket.set_nodelay(true)?;
                SockRef::from(&socket).set_tcp_keepalive(&KEEPALIVE)?;
                return Ok(socket);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn connect_unix(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // Also the time that connecting waits for room in the worker's queue.
    socket.set_write_timeout(Some(timeout))?;
    socket.connect(&SockAddr::unix(path)?)?;
    Ok(OwnedFd::from(socket).into())
}
