//! A worker in a process of its own, whose memory can be watched.

use crate::library;
use hipr_worker::Address;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;

/// `hipr worker`; killed when dropped.
pub struct WorkerProcess {
    child: Child,
    address: Address,
    log: Option<NamedTempFile>,
}

impl WorkerProcess {
    /// Starts `hipr`, the program at that path, as a worker on a free loopback port.
    pub fn start(hipr: &Path, device: &str) -> Self {
        Self::spawn(Command::new(hipr), &["--device", device], None)
    }

    /// Starts the program as a worker that listens at an address, with these options.
    pub fn start_at(hipr: &Path, listen: &str, options: &[&str]) -> Self {
        Self::spawn_at(Command::new(hipr), listen, options, None)
    }

    /// Starts the program with these options, and keeps its log for [`log`](Self::log).
    pub fn start_logged(hipr: &Path, options: &[&str]) -> Self {
        Self::start_command(Command::new(hipr), options)
    }

    /// Starts a command that runs `hipr`, and keeps its log.
    pub fn start_command(hipr: Command, options: &[&str]) -> Self {
        Self::spawn(hipr, options, Some(NamedTempFile::new().expect("a file")))
    }

    /// Starts `hipr` in front of another worker: on the device `hip`, whose runtime is hipr's own client library. Its sessions are
    /// kept apart as `--isolate` says. The processes of its sessions have to reach the other worker, so nothing confines them.
    pub fn start_in_front(hipr: &Path, back: &Self, isolation: &str) -> Self {
        let mut command = Command::new(hipr);
        command.env("HIPR_WORKER", back.listens_at().to_string());
        let library = library();
        let library = library.to_str().expect("a path that is text");
        let options =
            ["--device", "hip", "--hip-library", library, "--isolate", isolation, "--sandbox", "off"];
        Self::start_command(command, &options)
    }

    fn spawn(command: Command, options: &[&str], log: Option<NamedTempFile>) -> Self {
        Self::spawn_at(command, "127.0.0.1:0", options, log)
    }

    fn spawn_at(mut command: Command, listen: &str, options: &[&str], log: Option<NamedTempFile>) -> Self {
        command.args(["worker", "--listen", listen]).args(options).stdout(Stdio::piped());
        if let Some(log) = &log {
            command.stderr(log.reopen().expect("the file is there"));
        }
        let mut child = command.spawn().expect("hipr starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let address =
            line.strip_prefix("listening on ").unwrap_or_else(|| panic!("an address, not {line:?}"));
        let address = Address::new(address);
        Self { child, address, log }
    }

    /// Returns the log so far.
    pub fn log(&self) -> String {
        let log = self.log.as_ref().expect("a worker whose log is kept");
        fs::read_to_string(log.path()).expect("the log is text")
    }

    /// Waits until the log has these words. What the process of a session logs may come behind what its client is answered.
    pub fn says(&self, words: &str) {
        eventually_or(|| format!("the log says {words:?}:\n{}", self.log()), || self.log().contains(words));
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the process ids of its children, including those that have ended but not been waited for.
    pub fn children(&self) -> Vec<u32> {
        let processes = fs::read_dir("/proc").expect("Linux").flatten();
        let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut children: Vec<u32> =
            numbers.filter(|&pid| stat(pid).is_some_and(|(_, parent)| parent == self.pid())).collect();
        children.sort_unstable();
        children
    }

    /// Asks the process to end (SIGTERM).
    pub fn terminate(&self) {
        let sent = Command::new("kill").arg(self.pid().to_string()).status().expect("kill runs");
        assert!(sent.success(), "the worker lives");
    }

    /// Waits for the end of the process.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("it ends")
    }

    /// Returns the TCP address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address.tcp().expect("a worker that listens on a TCP port")
    }

    /// Returns the address on which it listens.
    pub fn listens_at(&self) -> &Address {
        &self.address
    }

    /// Returns the resident memory in bytes.
    pub fn resident_bytes(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// Returns the resident memory of the process and of its children in bytes.
    pub fn resident_bytes_of_all(&self) -> u64 {
        let of_children = self.children().into_iter().filter_map(|pid| process_status_bytes(pid, "VmRSS:"));
        self.resident_bytes() + of_children.sum::<u64>()
    }

    /// Returns the peak resident memory in bytes since the last [`reset_peak`](Self::reset_peak).
    pub fn peak_resident_bytes(&self) -> u64 {
        self.status("VmHWM:")
    }

    /// Starts a new measurement of the peak.
    pub fn reset_peak(&self) -> io::Result<()> {
        fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")
    }

    /// Returns the number of open files, including sockets.
    pub fn open_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("the worker lives").count()
    }

    /// Kills the process, as a crash would end it.
    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Returns whether it is still running.
    pub fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn status(&self, field: &str) -> u64 {
        process_status_bytes(self.child.id(), field).expect("the worker lives, and the field is there")
    }
}

/// Returns a field of a process's status that is a size, in bytes; `None` if there is no such process, or it has ended.
pub fn process_status_bytes(pid: u32, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the state letter and the parent of a process; `None` if there is no such process.
fn stat(pid: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Returns whether a process exists and has not ended.
pub fn process_lives(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}

/// Waits until `condition` holds; panics if it does not in time.
pub fn eventually(what: &str, condition: impl FnMut() -> bool) {
    eventually_or(|| what.to_owned(), condition);
}

/// Waits until `condition` holds; panics with what `what` returns then if it does not in time.
fn eventually_or(what: impl Fn() -> String, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "never: {}", what());
        std::thread::sleep(Duration::from_millis(20));
    }
}
