//! What of sockets the standard library does not offer.

use std::io::{self, IoSlice};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Connects within `timeout`, whatever number of addresses the name has.
pub(super) fn connect(address: &str, timeout: Duration) -> io::Result<TcpStream> {
    let end = Instant::now() + timeout;
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(socket) => {
                prepare(&socket)?;
                return Ok(socket);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Small requests leave at once, and a peer that is gone without a word while we wait for it is noticed within about a
/// minute. (TCP_USER_TIMEOUT would also end connections to a worker that is merely busy and does not read.)
fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 20)?;
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 10)?;
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 4)
}

fn set_option(socket: &TcpStream, level: i32, name: i32, value: libc::c_int) -> io::Result<()> {
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: an open socket, and a value of the size that is given.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// One vectored write that never raises SIGPIPE: the program around us may not have ignored it.
pub(super) fn write(socket: &TcpStream, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    // SAFETY: all zeros is a `msghdr` without address, data and control bytes.
    let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
    // `IoSlice` has the layout of `iovec` on Unix; sendmsg does not write to what it points to.
    message.msg_iov = slices.as_ptr().cast_mut().cast();
    message.msg_iovlen = slices.len() as _;
    // SAFETY: an open socket, and a message whose slices live during the call.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}
