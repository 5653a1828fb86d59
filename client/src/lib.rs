//! The connection to a worker, as a Rust API: `libamdhip64.so` is built on it, and so are tools that speak to a worker without
//! pretending to be a HIP program.
//!
//! ```no_run
//! use std::time::Duration;
//! use hipr_client::{Connection, WorkerAddress};
//! use hipr_proto::op::{GetDeviceCount, Malloc, Memset};
//!
//! let connection = Connection::connect(&WorkerAddress::from_env(), Duration::from_secs(5))?;
//! println!("{} devices", connection.ask(&GetDeviceCount {})?.count);
//! let buffer = connection.ask(&Malloc { size: 4096, flags: 0 })?.device_ptr;
//! connection.tell(&Memset { dst: buffer, value: 0, size: 4096, stream: 0 })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Threads share a connection: requests leave in the order in which they were made, and of the threads that wait
//! for answers one reads the socket, delivers what belongs to the others, and hands over when it has its own.

mod callers;
mod connection;
mod flusher;
mod free_memory;
mod identity;
mod listener;
mod names;
mod notifications;
mod observer;
mod packing;
mod replies;
mod statics;
mod stats;
mod times;
mod transport;
mod unanswered;
mod uploads;
mod variables;

use std::env;
use std::fmt;

use hipr_io::Address;
use hipr_proto::{Features, HipError};

pub use connection::{
    AnswerWithTail, Capability, ChangesWithTail, ConnectOptions, Connection, CopyEnd, Download, Extra,
    Flight, Place, Started, Upload,
};
pub use identity::accept_invitation;
pub use notifications::{Failed, Failure};
pub use observer::{Observer, Requested};
pub use packing::CompressUse;
pub use replies::Rows;
pub use stats::Stats;
pub use uploads::{CacheUse, UPLOAD_MIN_BYTES, UploadCache};

pub use hipr_proto::DEFAULT_PORT;

/// The features of the extension that this client can use, besides the cache of uploads and packed bytes
/// ([`Connection::connect_with`]).
pub const FEATURES: Features = Features::STATIC
    .union(Features::NAMES)
    .union(Features::PAGES)
    .union(Features::KERNEL_RULES)
    .union(Features::NOTIFICATIONS)
    .union(Features::PLACES)
    .union(Features::MEM_INFO)
    .union(Features::WORK_ERRORS)
    .union(Features::WATCHES)
    .union(Features::VARIABLES)
    .union(Features::SHARED)
    .union(Features::MAPPINGS)
    .union(Features::PRINTF)
    .union(Features::TIMES);

/// Returns the features to offer a worker as the environment wants it: [`FEATURES`], or `None` with `HIPR_EXTENSION=off`, which
/// uses any worker as one of HIPR 1.0.
pub fn offer_from_env() -> Option<Features> {
    let off = env::var("HIPR_EXTENSION").is_ok_and(|value| value.trim().eq_ignore_ascii_case("off"));
    (!off).then_some(FEATURES)
}

/// Address of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerAddress(Address);

impl WorkerAddress {
    /// Parses an address: `host`, `host:port`, `hipr://[fingerprint@]host[:port]`, `unix:/path` or `shm:/path`; the port defaults to [`DEFAULT_PORT`].
    pub fn new(text: &str) -> Self {
        Self(Address::new(text))
    }

    /// Reads the address from the environment: `HIPR_WORKER`, else `TF_WORKER_HOST` and `TF_WORKER_PORT`, else `127.0.0.1`.
    pub fn from_env() -> Self {
        let variable = |name| env::var(name).ok().filter(|value: &String| !value.trim().is_empty());
        Self::choose(variable("HIPR_WORKER"), variable("TF_WORKER_HOST"), variable("TF_WORKER_PORT"))
    }

    /// Reads the addresses of all workers of a program from the environment: `HIPR_WORKER` may be a list with commas between them, or `@` and
    /// the path of a file with one in each line, in which empty lines and those that begin with `#` say nothing. Otherwise there is
    /// [one](Self::from_env).
    ///
    /// # Errors
    /// What is wrong: the file cannot be read, it has no address, or the list has an empty entry.
    pub fn all_from_env() -> Result<Vec<Self>, String> {
        match env::var("HIPR_WORKER").ok().filter(|value| !value.trim().is_empty()) {
            None => Ok(vec![Self::from_env()]),
            Some(text) => Self::all(&text),
        }
    }

    /// Does what [`all_from_env`](Self::all_from_env) does for a value of `HIPR_WORKER`.
    ///
    /// # Errors
    /// As there.
    pub fn all(text: &str) -> Result<Vec<Self>, String> {
        if let Some(path) = text.trim().strip_prefix('@') {
            let lines = std::fs::read_to_string(path)
                .map_err(|error| format!("cannot read the list of workers {path}: {error}"))?;
            let lines =
                lines.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            let all: Vec<_> = lines.map(Self::new).collect();
            return if all.is_empty() {
                Err(format!("the list of workers {path} has no address"))
            } else {
                Ok(all)
            };
        }
        let entries: Vec<_> = text.split(',').map(str::trim).collect();
        if entries.iter().any(|entry| entry.is_empty()) {
            return Err(format!("HIPR_WORKER={text} has an empty address; write host:port,host:port"));
        }
        Ok(entries.into_iter().map(Self::new).collect())
    }

    fn choose(worker: Option<String>, host: Option<String>, port: Option<String>) -> Self {
        if let Some(worker) = worker {
            return Self::new(&worker);
        }
        let host = host.as_deref().unwrap_or("127.0.0.1").trim();
        Self(Address::Tcp(match port {
            Some(port) if host.contains(':') => format!("[{host}]:{}", port.trim()),
            Some(port) => format!("{host}:{}", port.trim()),
            None => return Self::new(host),
        }))
    }

    fn address(&self) -> &Address {
        &self.0
    }
}

impl fmt::Display for WorkerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Address> for WorkerAddress {
    fn from(address: Address) -> Self {
        Self(address)
    }
}

/// Reason why no connection could be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectError {
    /// Address that was tried.
    pub address: WorkerAddress,
    /// Description of the failure.
    pub reason: String,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Address::Secured(_) = self.address.address() {
            return write!(f, "cannot use the worker at {}: {}", self.address, self.reason);
        }
        write!(
            f,
            "cannot reach the worker at {}: {}; set HIPR_WORKER or start `hipr worker`",
            self.address, self.reason
        )
    }
}

impl std::error::Error for ConnectError {}

/// Reason why a request has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallError {
    /// The worker answered with an error.
    Hip(HipError),
    /// The connection is lost, and with it everything the session owned.
    Lost,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hip(error) => error.fmt(f),
            Self::Lost => f.write_str("the connection to the worker is lost"),
        }
    }
}

impl std::error::Error for CallError {}

impl From<CallError> for HipError {
    /// Converts a lost connection to `hipErrorContextIsDestroyed`, because memory, streams and modules are gone and no call of
    /// this process can restore them.
    fn from(error: CallError) -> Self {
        match error {
            CallError::Hip(error) => error,
            CallError::Lost => Self::CONTEXT_IS_DESTROYED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn the_environment_has_an_order() {
        let choose = |a, b, c| WorkerAddress::choose(a, b, c).to_string();
        assert_eq!(choose(text("a:1"), text("b"), text("2")), "a:1");
        assert_eq!(choose(text("unix:/a"), text("b"), text("2")), "unix:/a");
        assert_eq!(choose(None, text("b"), text("2")), "b:2");
        assert_eq!(choose(None, text("b"), None), "b:18515");
        assert_eq!(choose(None, None, text("2")), "127.0.0.1:2");
        assert_eq!(choose(None, None, None), "127.0.0.1:18515");
    }

    #[test]
    fn a_program_may_have_several_workers() {
        let all = |text: &str| {
            let all = WorkerAddress::all(text)?;
            Ok::<_, String>(all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(all("a:1").as_deref(), Ok("a:1"));
        assert_eq!(all(" a:1, unix:/b ,hipr://c").as_deref(), Ok("a:1 unix:/b hipr://c:18515"));
        for wrong in ["a,", ",a", "a,,b"] {
            assert!(all(wrong).is_err_and(|why| why.contains("an empty address")), "{wrong}");
        }
        assert!(all("@/nowhere/workers").is_err_and(|why| why.contains("/nowhere/workers")));
        let file = std::env::temp_dir().join(format!("hipr-workers-{}", std::process::id()));
        let list = format!("@{}", file.display());
        for (lines, expected) in
            [("# two\nhipr://a:1/#token\n\n  b:2  \n", Some("hipr://a:1 b:2")), ("# none\n", None)]
        {
            std::fs::write(&file, lines).expect("a file");
            assert_eq!(all(&list).ok().as_deref(), expected);
        }
        std::fs::remove_file(&file).expect("the file");
    }
}
