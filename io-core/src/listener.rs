use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, SockRef, Socket, TcpKeepalive, Type};
use tracing::{debug, warn};

use crate::{Address, Peer};

/// Number of connections that may wait to be accepted; the system may allow fewer.
const BACKLOG: i32 = 4096;
/// How long a listening socket is retried that a finished process may still hold.
const LINGER: Duration = Duration::from_secs(1);
/// Idle time after which the system checks whether a peer is alive, and the interval of the checks.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(15);

/// A listening socket of any kind that the loops serve.
#[derive(Debug)]
pub enum Listener {
    /// A TCP socket.
    Tcp(TcpListener),
    /// A unix socket, and its file, which is removed with the last copy of the listener.
    Unix(UnixListener, Arc<SocketFile>),
    /// Shared memory: a unix socket over which clients set up the rings.
    Shm(UnixListener, Arc<SocketFile>),
}

/// An accepted connection of any kind that the loops serve.
#[derive(Debug)]
pub enum Stream {
    /// A TCP connection.
    Tcp(TcpStream),
    /// A unix socket.
    Unix(UnixStream),
    /// A unix socket over which shared memory will be set up.
    Shm(UnixStream),
}

impl Listener {
    /// Listens on `address`. Creates the file of a unix socket with access for this user only, replacing the file of a
    /// worker that no longer runs.
    ///
    /// # Errors
    /// The address cannot be read, is in use, or may not be used.
    pub fn bind(address: &Address) -> io::Result<Self> {
        let bound = match address {
            Address::Tcp(host_and_port) => TcpListener::bind(host_and_port).map(Self::Tcp),
            Address::Secured(_) => {
                let why = "give the address without hipr://, and --authorized FILE";
                Err(io::Error::new(ErrorKind::InvalidInput, why))
            }
            Address::Unix(path) => bind_file(path).map(|(listener, file)| Self::Unix(listener, file)),
            Address::Shm(path) => bind_file(path).map(|(listener, file)| Self::Shm(listener, file)),
        };
        bound.map_err(|why| io::Error::new(why.kind(), format!("cannot listen on {address}: {why}")))
    }

    /// Returns the address, with the port that the system chose.
    ///
    /// # Errors
    /// Those of the system.
    pub fn address(&self) -> io::Result<Address> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(Address::from),
            Self::Unix(_, file) => Ok(Address::Unix(file.path.clone())),
            Self::Shm(_, file) => Ok(Address::Shm(file.path.clone())),
        }
    }

    /// Returns whether only programs on this machine can connect.
    ///
    /// # Errors
    /// Those of the system.
    pub fn is_local(&self) -> io::Result<bool> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(|addr| addr.ip().to_canonical().is_loopback()),
            Self::Unix(..) | Self::Shm(..) => Ok(true),
        }
    }

    /// Checks that strangers who reach the listener may not use the worker, or that its owner wants them to.
    ///
    /// # Errors
    /// Other machines can connect, clients need no key, and `insecure_no_auth` is false.
    pub fn check_access(&self, has_identity: bool, insecure_no_auth: bool) -> io::Result<()> {
        if has_identity || self.is_local()? {
            return Ok(());
        }
        let address = self.address()?;
        if insecure_no_auth {
            warn!(
                %address,
                "anybody who reaches this address may run code on this machine, and what is sent can be read and changed: no keys are asked for (--insecure-no-auth)"
            );
            return Ok(());
        }
        let why = format!(
            "cannot serve {address}: other machines can reach it, and no keys are asked for. Give --authorized FILE (add --invite for a first client), or listen on 127.0.0.1 and use SSH; --insecure-no-auth serves anybody"
        );
        Err(io::Error::new(ErrorKind::PermissionDenied, why))
    }

    /// Sets the length of the queue of waiting connections, and whether calls block.
    ///
    /// # Errors
    /// Those of the system.
    pub fn prepare(&self, nonblocking: bool) -> io::Result<()> {
        let socket = SockRef::from(self);
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(nonblocking)
    }

    /// Duplicates the socket's descriptor.
    ///
    /// # Errors
    /// Those of the system.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(listener) => Self::Tcp(listener.try_clone()?),
            Self::Unix(listener, file) => Self::Unix(listener.try_clone()?, file.clone()),
            Self::Shm(listener, file) => Self::Shm(listener.try_clone()?, file.clone()),
        })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener, _) | Self::Shm(listener, _) => listener.as_fd(),
        }
    }
}

impl Stream {
    /// Returns the other end.
    ///
    /// # Errors
    /// [`ErrorKind::NotConnected`] for a peer that has gone already.
    pub fn peer(&self) -> io::Result<Peer> {
        match self {
            Self::Tcp(stream) => stream.peer_addr().map(Peer::Tcp),
            Self::Unix(stream) | Self::Shm(stream) => Ok(local_peer(stream)),
        }
    }

    /// Returns the address of the listener that accepted the connection.
    ///
    /// # Errors
    /// Those of the system.
    pub fn local_address(&self) -> io::Result<Address> {
        match self {
            Self::Tcp(stream) => stream.local_addr().map(Address::from),
            Self::Unix(stream) => path_of(stream).map(Address::Unix),
            Self::Shm(stream) => path_of(stream).map(Address::Shm),
        }
    }

    /// Sets whether calls return an error instead of blocking.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        SockRef::from(self).set_nonblocking(nonblocking)
    }

    /// Duplicates the socket's descriptor.
    ///
    /// # Errors
    /// Those of the system.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(stream) => Self::Tcp(stream.try_clone()?),
            Self::Unix(stream) => Self::Unix(stream.try_clone()?),
            Self::Shm(stream) => Self::Shm(stream.try_clone()?),
        })
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) | Self::Shm(stream) => stream.as_fd(),
        }
    }
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Self {
        Self::Tcp(stream)
    }
}

impl From<UnixStream> for Stream {
    fn from(stream: UnixStream) -> Self {
        Self::Unix(stream)
    }
}

/// Returns who is at the other end of a unix socket: the process that connected, as the kernel noted it then.
pub fn local_peer(socket: &impl AsFd) -> Peer {
    match rustix::net::sockopt::socket_peercred(socket) {
        Ok(who) => Peer::Process {
            pid: who.pid.as_raw_nonzero().get(),
            uid: who.uid.as_raw(),
            gid: who.gid.as_raw(),
        },
        Err(_) => Peer::Local,
    }
}

fn path_of(stream: &UnixStream) -> io::Result<PathBuf> {
    Ok(stream.local_addr()?.as_pathname().map(Path::to_owned).unwrap_or_default())
}

/// Sets TCP options: small replies are sent at once, and dead peers are detected.
pub fn tune(socket: &impl AsFd, peer: Peer) {
    let Peer::Tcp(peer) = peer else { return };
    let socket = SockRef::from(socket);
    if let Err(why) = socket.set_tcp_nodelay(true) {
        debug!(%peer, %why, "TCP_NODELAY");
    }
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_AFTER).with_interval(KEEPALIVE_EVERY);
    if let Err(why) = socket.set_tcp_keepalive(&keepalive) {
        debug!(%peer, %why, "SO_KEEPALIVE");
    }
}

/// The file of a unix socket. Dropping it removes the file, unless another socket has replaced it.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode number of the file.
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            // Who makes a socket here finds that nobody answers, and replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

fn bind_file(path: &Path) -> io::Result<(UnixListener, Arc<SocketFile>)> {
    if path.as_os_str().is_empty() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "the address has no path"));
    }
    remove_stale(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let file = SocketFile { path: std::path::absolute(path)?, identity: identity(path)? };
    // Before anybody can connect.
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    socket.listen(BACKLOG)?;
    Ok((OwnedFd::from(socket).into(), Arc::new(file)))
}

/// Removes the file of a unix socket that nobody listens on.
fn remove_stale(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(why),
        Ok(file) if !file.file_type().is_socket() => {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "the path exists and is not a socket"));
        }
        Ok(_) => {}
    }
    // What io_uring accepts for is closed only a while after the process has ended.
    let end = Instant::now() + LINGER;
    while is_listened_on(path)? {
        if Instant::now() >= end {
            return Err(io::Error::new(ErrorKind::AddrInUse, "another process listens on this path"));
        }
        std::thread::sleep(LINGER / 50);
    }
    match fs::remove_file(path) {
        Err(why) if why.kind() != ErrorKind::NotFound => Err(why),
        _ => Ok(()),
    }
}

fn is_listened_on(path: &Path) -> io::Result<bool> {
    // Not to wait for a worker that is slow to accept.
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    probe.set_nonblocking(true)?;
    match probe.connect(&SockAddr::unix(path)?) {
        Err(why) if matches!(why.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => Ok(false),
        Err(why) if why.kind() != ErrorKind::WouldBlock => Err(why),
        _ => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(folder: &tempfile::TempDir) -> (PathBuf, Address) {
        let path = folder.path().join("socket");
        (path.clone(), Address::Unix(path))
    }

    #[test]
    fn a_socket_file_is_this_users_and_goes_with_the_last_copy() {
        let folder = tempfile::tempdir().unwrap();
        let (path, address) = at(&folder);
        let listener = Listener::bind(&address).unwrap();
        assert_eq!(listener.address().unwrap(), address);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let copy = listener.try_clone().unwrap();
        drop(listener);
        UnixStream::connect(&path).unwrap();
        drop(copy);
        assert!(!path.exists());
    }

    #[test]
    fn a_live_worker_stays_and_a_dead_ones_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (path, address) = at(&folder);
        // The standard library leaves the file behind, as a worker does that was killed.
        let first = UnixListener::bind(&path).unwrap();
        let refused = Listener::bind(&address).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AddrInUse);
        assert!(refused.to_string().contains("another process listens on this path"), "{refused}");
        drop(first);
        assert!(path.exists());
        let second = Listener::bind(&address).unwrap();
        UnixStream::connect(&path).unwrap();
        // Not ours any more.
        fs::remove_file(&path).unwrap();
        let third = Listener::bind(&address).unwrap();
        drop(second);
        UnixStream::connect(&path).unwrap();
        drop(third);
    }

    #[test]
    fn another_kind_of_file_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let (path, address) = at(&folder);
        fs::write(&path, "data").unwrap();
        assert_eq!(Listener::bind(&address).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"data");
        assert_eq!(Listener::bind(&"unix:".into()).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
