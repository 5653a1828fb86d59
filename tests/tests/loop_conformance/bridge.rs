//! A socket whose bytes are forwarded through shared memory, for clients that only use sockets.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use hipr_io_shm::Client;
use socket2::{Domain, Socket, Type};

use super::PATIENCE;

/// Connects to a worker; closing the socket, or one direction of it, does the same to the connection.
pub(super) fn connect(path: &Path) -> io::Result<Socket> {
    let control = UnixStream::connect(path)?;
    let (ours, theirs) = Socket::pair(Domain::UNIX, Type::STREAM, None)?;
    thread::spawn(move || {
        // A worker that stops meanwhile answers nobody; the socket is closed then.
        let Ok(client) = Client::open(control, PATIENCE) else { return };
        let (client, theirs) = (Arc::new(client), Arc::new(theirs));
        thread::spawn({
            let (client, theirs) = (client.clone(), theirs.clone());
            move || carry_up(&theirs, &client)
        });
        carry_down(&client, &theirs);
    });
    Ok(ours)
}

fn carry_up(mut from: &Socket, to: &Client) {
    let mut buffer = [0; 64 << 10];
    loop {
        let len = match from.read(&mut buffer) {
            Ok(0) => return to.shutdown_write(),
            Ok(len) => len,
            Err(_) => return to.shutdown(),
        };
        let mut rest = &buffer[..len];
        while !rest.is_empty() {
            match to.write(&[IoSlice::new(rest)]) {
                Ok(len) => rest = &rest[len..],
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                // The worker reads no more; what it has still to say comes the other way.
                Err(_) => return,
            }
        }
    }
}

fn carry_down(from: &Client, mut to: &Socket) {
    let mut buffer = [0; 64 << 10];
    loop {
        let written = match from.read(&mut buffer) {
            Err(why) if why.kind() == ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => {
                // It may be closed already.
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            Ok(len) => to.write_all(&buffer[..len]),
        };
        if written.is_err() {
            return from.shutdown();
        }
    }
}
