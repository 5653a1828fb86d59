//! Runs a program with a library below it, as its terminal and its caller would have it run.

use crate::library::Folder;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};
use std::thread;

/// A program that is to be run.
pub(crate) struct Program(Command);

impl Program {
    /// Returns the program with its arguments, which looks for libraries in `folder` first.
    ///
    /// # Errors
    /// No program is named.
    pub(crate) fn new(program: &[OsString], folder: &Folder) -> Result<Self, String> {
        let (name, args) = program.split_first().ok_or("no program given")?;
        let mut command = Command::new(name);
        command.args(args).env("LD_LIBRARY_PATH", folder.search_path());
        Ok(Self(command))
    }

    /// Sets an environment variable.
    pub(crate) fn env(&mut self, name: &str, value: impl AsRef<OsStr>) -> &mut Self {
        self.0.env(name, value);
        self
    }

    /// Sets environment variables.
    pub(crate) fn envs<V: AsRef<OsStr>>(
        &mut self,
        variables: impl IntoIterator<Item = (&'static str, V)>,
    ) -> &mut Self {
        self.0.envs(variables);
        self
    }

    /// Runs it and passes signals on to it; returns its exit code, or like a shell 128 + n if signal n ended it.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        self.run_to_code().map(ExitCode::from)
    }

    /// Does what [`run`](Self::run) does; returns the exit code as a number.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn run_to_code(self) -> Result<u8, String> {
        self.run_told(|_| {})
    }

    /// Does what [`run_to_code`](Self::run_to_code) does; calls `started` with the number of the process once it is there.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn run_told(mut self, started: impl FnOnce(u32)) -> Result<u8, String> {
        // Set up before the child exists: a signal that comes between must not leave it behind.
        let mut signals =
            Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|why| format!("cannot handle signals: {why}"))?;
        let name = self.0.get_program().to_string_lossy().into_owned();
        let mut child = self.0.spawn().map_err(|why| format!("cannot start {name}: {why}"))?;
        let pid = child.id();
        started(pid);
        let forwarder = signals.handle();
        let thread = thread::spawn(move || signals.forever().for_each(|signal| forward(pid, signal)));
        let status = child.wait();
        forwarder.close();
        let _ = thread.join();
        Ok(code(status.map_err(|why| format!("cannot wait for {name}: {why}"))?))
    }
}

/// Passes a signal on to the program, except for SIGINT, which the terminal sends to the whole process group.
fn forward(pid: u32, signal: i32) {
    if signal != SIGINT
        && let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw)
        && let Some(signal) = rustix::process::Signal::from_named_raw(signal)
    {
        // The program may be gone already; then there is nobody to tell.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}
