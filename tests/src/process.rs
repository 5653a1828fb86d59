//! A worker in a process of its own, whose memory can be watched.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// `hipr worker`; killed when dropped.
pub struct WorkerProcess {
    child: Child,
    address: SocketAddr,
}

impl WorkerProcess {
    /// Starts `hipr`, the program at that path, as a worker on a free loopback port.
    pub fn start(hipr: &Path, device: &str) -> Self {
        let mut child = Command::new(hipr)
            .args(["worker", "--listen", "127.0.0.1:0", "--device", device])
            .stdout(Stdio::piped())
            .spawn()
            .expect("hipr starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let address = line.trim_start_matches("listening on ").trim().parse();
        Self { child, address: address.unwrap_or_else(|_| panic!("an address, not {line:?}")) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Bytes of memory that are resident now.
    pub fn resident_bytes(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// Bytes that were resident at most since the last [`reset_peak`](Self::reset_peak).
    pub fn peak_resident_bytes(&self) -> u64 {
        self.status("VmHWM:")
    }

    /// Starts a new measurement of the peak.
    pub fn reset_peak(&self) -> io::Result<()> {
        fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")
    }

    /// Files, sockets among them, that it has open.
    pub fn open_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("the worker lives").count()
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Whether it still runs.
    pub fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn status(&self, field: &str) -> u64 {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the worker lives");
        let line = status.lines().find(|line| line.starts_with(field)).expect("the field is there");
        let kib: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
        kib * 1024
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
