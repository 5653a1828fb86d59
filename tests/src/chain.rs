//! A worker whose GPU is another worker: the device `hip` with hipr's own client library.

use crate::{TestWorker, library, start_worker};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Two workers, which end when it is dropped.
pub struct Chain {
    front: Child,
    address: SocketAddr,
    back: TestWorker,
}

impl Chain {
    /// Starts a worker with the emulated GPU, and in front of it the program `chain_worker`.
    pub fn start(chain_worker: &Path) -> Self {
        let mut front = Command::new(chain_worker);
        front.arg(library());
        Self::start_command(front)
    }

    /// Starts a worker with the emulated GPU, and in front of it the worker of the command `front`.
    pub fn start_command(mut front: Command) -> Self {
        let back = start_worker();
        front.env("HIPR_WORKER", back.address().to_string()).stdout(Stdio::piped());
        let mut front = front.spawn().expect("the worker in front starts");
        let mut line = String::new();
        BufReader::new(front.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let address = line.trim_start_matches("listening on ").trim().parse();
        let address = address.unwrap_or_else(|_| panic!("an address, not {line:?}"));
        Self { front, address, back }
    }

    /// Returns the address of the worker in front.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of the worker with the emulated GPU.
    pub fn back(&self) -> SocketAddr {
        self.back.address()
    }

    /// Returns whether the worker in front still runs.
    pub fn lives(&mut self) -> bool {
        matches!(self.front.try_wait(), Ok(None))
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        // It is gone already if it crashed, which the test has seen.
        let _ = self.front.kill();
        let _ = self.front.wait();
    }
}
