use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use hipr_proto::DEFAULT_PORT;

/// The address of a worker, as given in `HIPR_WORKER` and `hipr worker --listen`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// `HOST:PORT` or `tcp:HOST:PORT`; the host is a name or an IP address.
    Tcp(String),
    /// `hipr://[FINGERPRINT@]HOST:PORT[/#TOKEN]`, TCP with encryption.
    Secured(SecuredAddress),
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
        if let Some(rest) = text.strip_prefix("hipr://") {
            return Self::Secured(SecuredAddress::new(rest));
        }
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
            Self::Secured(_) | Self::Unix(_) | Self::Shm(_) => None,
        }
    }
}

/// The address of a worker that is spoken to with encryption: where it is, which key it has, and an invitation to it. What is written
/// where fingerprint and token belong is read when it is used.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SecuredAddress {
    /// `HOST:PORT`.
    pub host_and_port: String,
    /// The text before `@`, if there is one.
    pub fingerprint: Option<String>,
    /// The text behind `#`, if there is one. It is a secret, which nothing prints.
    pub token: Option<String>,
}

impl SecuredAddress {
    fn new(rest: &str) -> Self {
        let (place, token) =
            rest.split_once('#').map_or((rest, None), |(place, token)| (place, Some(token.to_owned())));
        let (fingerprint, host) = match place.trim_end_matches('/').rsplit_once('@') {
            Some((fingerprint, host)) => (Some(fingerprint.to_owned()), host),
            None => (None, place.trim_end_matches('/')),
        };
        Self { host_and_port: with_port(host), fingerprint, token }
    }
}

impl fmt::Display for SecuredAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hipr://")?;
        if let Some(fingerprint) = &self.fingerprint {
            write!(f, "{fingerprint}@")?;
        }
        f.write_str(&self.host_and_port)
    }
}

impl fmt::Debug for SecuredAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
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
            Self::Secured(address) => address.fmt(f),
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
    /// A client on this machine, as the kernel names it.
    Process {
        /// Number of the process that connected.
        pid: i32,
        /// Number of the user that the process runs as.
        uid: u32,
        /// Number of that user's group.
        gid: u32,
    },
}

impl Peer {
    /// Returns whether the client is a process on this machine that connected without TCP.
    pub fn is_local(self) -> bool {
        matches!(self, Self::Local | Self::Process { .. })
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(addr) => addr.fmt(f),
            Self::Local => f.write_str("a local process"),
            Self::Process { pid, uid, gid } => write!(f, "process {pid} of user {uid}, group {gid}"),
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
            ("hipr://gpu", "hipr://gpu:18515"),
            (" hipr://gpu:7/\n", "hipr://gpu:7"),
            ("hipr://SHA256:ab-_@[::1]:7", "hipr://SHA256:ab-_@[::1]:7"),
            ("hipr://SHA256:ab@::1/#secret", "hipr://SHA256:ab@[::1]:18515"),
        ] {
            assert_eq!(Address::new(given).to_string(), meant);
        }
        let invited = Address::new("hipr://SHA256:ab@gpu:7/#secret");
        assert!(!format!("{invited:?} {invited}").contains("secret"), "a token is printed nowhere");
        let Address::Secured(parts) = invited else { panic!("it is encrypted") };
        assert_eq!((&*parts.host_and_port, parts.fingerprint.as_deref()), ("gpu:7", Some("SHA256:ab")));
        assert_eq!(parts.token.as_deref(), Some("secret"));
        assert_eq!(Address::new("unix:/a b"), Address::Unix("/a b".into()));
        assert_eq!(Address::new("127.0.0.1:9").tcp(), Some(([127, 0, 0, 1], 9).into()));
        assert_eq!((Address::new("host:9").tcp(), Address::new("unix:9").tcp()), (None, None));
    }
}
