use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use hipr_proto::DEFAULT_PORT;

/// The address of a worker, as given in `HIPR_WORKER` and `hipr worker --listen`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// `HOST:PORT` or `tcp:HOST:PORT`; the host is a name or an IP address.
    Tcp(String),
    /// `unix:/path`, a unix socket.
    Unix(PathBuf),
    /// `shm:/path`, shared memory that both ends set up over a unix socket.
    Shm(PathBuf),
}

impl Address {
    /// Parses `text`; a TCP address without a port gets [`DEFAULT_PORT`]. Never fails: an address that cannot be used fails
    /// when it is used.
    pub fn new(text: &str) -> Self {
        let text = text.trim();
        match text.split_once(':') {
            Some(("unix", path)) => Self::Unix(path.into()),
            Some(("shm", path)) => Self::Shm(path.into()),
            Some(("tcp", rest)) => Self::Tcp(with_port(rest)),
            _ => Self::Tcp(with_port(text)),
        }
    }

    /// Returns the socket address, if this is a numeric TCP address.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(host_and_port) => host_and_port.parse().ok(),
            Self::Unix(_) | Self::Shm(_) => None,
        }
    }
}

fn with_port(text: &str) -> String {
    // An IPv6 address with a port is written in brackets.
    if text.parse::<Ipv6Addr>().is_ok() {
        format!("[{text}]:{DEFAULT_PORT}")
    } else if text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
        text.to_owned()
    } else {
        format!("{text}:{DEFAULT_PORT}")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host_and_port) => f.write_str(host_and_port),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Shm(path) => write!(f, "shm:{}", path.display()),
        }
    }
}

impl From<&str> for Address {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<SocketAddr> for Address {
    fn from(addr: SocketAddr) -> Self {
        Self::Tcp(addr.to_string())
    }
}

/// The other end of a connection, for logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A client that connected over TCP.
    Tcp(SocketAddr),
    /// A client on this machine.
    Local,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(addr) => addr.fmt(f),
            Self::Local => f.write_str("a local process"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_printed() {
        for (given, meant) in [
            ("worker", "worker:18515"),
            ("worker:1", "worker:1"),
            (" 10.0.0.1\n", "10.0.0.1:18515"),
            ("tcp:10.0.0.1:7", "10.0.0.1:7"),
            ("tcp:unix", "unix:18515"),
            ("::1", "[::1]:18515"),
            ("[::1]:7", "[::1]:7"),
            ("unix:/run/hipr.sock", "unix:/run/hipr.sock"),
            ("unix:here:1", "unix:here:1"),
            ("shm:/run/hipr.sock", "shm:/run/hipr.sock"),
        ] {
            assert_eq!(Address::new(given).to_string(), meant);
        }
        assert_eq!(Address::new("unix:/a b"), Address::Unix("/a b".into()));
        assert_eq!(Address::new("127.0.0.1:9").tcp(), Some(([127, 0, 0, 1], 9).into()));
        assert_eq!((Address::new("host:9").tcp(), Address::new("unix:9").tcp()), (None, None));
    }
}
