//! The process that workers are compared with: plain sockets, blocking, a thread for each connection.

use super::{contract, raw};
use crate::output::say;
use clap::{Args, ValueEnum};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

/// Options of the hidden `hipr bench peer`.
#[derive(Debug, Args)]
pub(crate) struct Peer {
    /// What is served.
    service: Service,
    /// Address and port, or unix:PATH.
    #[arg(long)]
    listen: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Service {
    /// Bytes as such.
    Raw,
    /// The protocol, as its contract describes a worker.
    Contract,
}

/// A connection of either kind.
pub(crate) type Connection = Box<dyn Duplex>;

/// Bytes in both directions.
pub(crate) trait Duplex: Read + Write + Send {}

impl<T: Read + Write + Send> Duplex for T {}

/// Connects to a peer, or to a worker.
///
/// # Errors
/// Those of the system.
pub(crate) fn connect(address: &str) -> io::Result<Connection> {
    match unix_path(address) {
        Some(path) => Ok(Box::new(UnixStream::connect(path)?)),
        None => {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
    }
}

/// The path of an address that has one.
pub(crate) fn unix_path(address: &str) -> Option<&str> {
    address.strip_prefix("unix:")
}

/// Serves until the process is killed.
pub(crate) fn run(options: &Peer) -> Result<(), String> {
    let failed = |why: io::Error| format!("cannot listen on {}: {why}", options.listen);
    let service = options.service;
    match unix_path(&options.listen) {
        Some(path) => {
            let listener = UnixListener::bind(path).map_err(failed)?;
            say!("listening on {}", options.listen);
            listener.incoming().for_each(|stream| spawn(service, stream));
        }
        None => {
            let listener = TcpListener::bind(&options.listen).map_err(failed)?;
            say!("listening on {}", listener.local_addr().map_err(failed)?);
            let streams = listener.incoming();
            streams.for_each(|stream| spawn(service, stream.and_then(|s| s.set_nodelay(true).map(|()| s))));
        }
    }
    Ok(())
}

fn spawn<S: Duplex + 'static>(service: Service, stream: io::Result<S>) {
    let served = match stream {
        Ok(stream) => {
            let serve = match service {
                Service::Raw => raw::serve,
                Service::Contract => contract::serve,
            };
            // An error is the client's end.
            thread::Builder::new().spawn(move || drop(serve(Box::new(stream)))).map(drop)
        }
        Err(why) => Err(why),
    };
    if let Err(why) = served {
        tracing::warn!("a connection cannot be served: {why}");
    }
}
