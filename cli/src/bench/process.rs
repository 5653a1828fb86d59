//! Processes that a benchmark talks to: this program in other roles. They end with the benchmark.

use super::place::Core;
use super::transport::Transport;
use clap::Args;
use rustix::process::{Signal, set_parent_process_death_signal};
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::TempDir;

/// This program's executable, even if its file has been replaced since.
const PROGRAM: &str = "/proc/self/exe";
const LISTENING: &str = "listening on ";

/// A child process, which is killed when this is dropped.
pub(crate) struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
    address: String,
    /// The folder of its unix socket.
    _folder: Option<TempDir>,
}

/// Command line of a process that must not outlive the benchmark.
#[derive(Debug, Args)]
pub(crate) struct Role {
    /// The only core that it runs on.
    #[arg(long)]
    core: Option<Core>,
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// Replaces this process by the command of `role`; returns only if that fails.
pub(crate) fn become_role(role: &Role) -> Result<(), String> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|why| why.to_string())?;
    if let Some(core) = role.core {
        core.take()?;
    }
    Err(format!("cannot start a process: {}", Command::new(PROGRAM).args(&role.args).exec()))
}

impl Process {
    /// Starts `hipr` with `args` and `--listen`, on `core` or on any, and waits until it prints its address.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn server(args: &[&str], transport: Transport, core: Option<Core>) -> Result<Self, String> {
        let folder = match transport {
            Transport::Tcp => None,
            Transport::Unix | Transport::Shm => {
                Some(TempDir::with_prefix("hipr-").map_err(|why| format!("cannot create a folder: {why}"))?)
            }
        };
        let listen = match &folder {
            None => "127.0.0.1:0".to_owned(),
            Some(folder) => format!("{transport}:{}", folder.path().join("socket").display()),
        };
        let mut command = command(args, core);
        command.args(["--listen", &listen]).stdin(Stdio::null());
        let mut process = Self::start(command)?;
        let line = process.line()?;
        let said =
            line.strip_prefix(LISTENING).ok_or_else(|| format!("expected an address instead of '{line}'"))?;
        // What a port of 0 became is said; a path is the one that was given.
        process.address = if folder.is_some() { listen } else { said.to_owned() };
        process._folder = folder;
        Ok(process)
    }

    /// Starts a process.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn start(mut command: Command) -> Result<Self, String> {
        let mut child =
            command.stdout(Stdio::piped()).spawn().map_err(|why| format!("cannot start a process: {why}"))?;
        let output = child.stdout.take().ok_or("the process has no standard output")?;
        Ok(Self { child, output: BufReader::new(output), address: String::new(), _folder: None })
    }

    /// Returns the address that the process listens on.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Reads the next line that it prints.
    ///
    /// # Errors
    /// It has ended.
    pub(crate) fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(0) => Err("a process of the benchmark ended early; see its output above".into()),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(why) => Err(format!("cannot read a process's output: {why}")),
        }
    }

    /// Returns the process's standard input, if it was started with one.
    pub(crate) fn input(&mut self) -> Option<&mut ChildStdin> {
        self.child.stdin.as_mut()
    }

    /// Returns the maximum of its resident memory so far, in bytes.
    ///
    /// # Errors
    /// It has ended.
    pub(crate) fn resident_max_bytes(&self) -> Result<u64, String> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(&path).map_err(|why| format!("{path}: {why}"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: Option<u64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        kib.map(|kib| kib << 10).ok_or_else(|| format!("{path} has no line with the peak resident memory"))
    }
}

/// Returns the command that runs `hipr` with `args` on `core`, or where this process may run, until this process ends.
pub(crate) fn command(args: &[&str], core: Option<Core>) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["bench", "role"]);
    if let Some(core) = core {
        command.args(["--core", &core.to_string()]);
    }
    command.arg("--").args(args).env("HIPR_LOG", "warn");
    command
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
