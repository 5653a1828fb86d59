//! The process that workers are compared with: blocking sockets, a thread for each connection.

use super::socket::{Duplex, unix_path};
use super::{contract, raw};
use crate::output::say;
use clap::{Args, ValueEnum};
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::thread;

/// Options of the hidden `hipr bench peer`.
#[derive(Debug, Args)]
pub(crate) struct Peer {
    /// The service that the process provides.
    service: Service,
    /// Address and port, or unix:PATH.
    #[arg(long)]
    listen: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Service {
    /// Raw bytes without a protocol.
    Raw,
    /// HIPR 1.0, by a simple worker as the specification describes one.
    Contract,
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
        tracing::warn!("cannot serve a connection: {why}");
    }
}
