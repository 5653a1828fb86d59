//! `hipr run`: runs a program with the client library.

use crate::embedded;
use crate::library::{self, Folder};
use crate::sim::Sim;
use clap::Args;
use hipr_client::{WorkerAddress, accept_invitation};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};
use std::thread;
use std::time::Duration;

/// How long an invitation may take to be turned into keys.
const INVITATION_TIMEOUT: Duration = Duration::from_secs(10);

/// Options of `hipr run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Address of the worker; hipr://HOST:PORT for one that asks for keys. [default: a worker with the emulated GPU is started for the program]
    #[arg(long, value_name = "HOST:PORT")]
    worker: Option<String>,
    /// Lets synchronizations return at once where the program could see nothing of the work; its errors come with a later call.
    #[arg(long)]
    lazy_sync: bool,
    #[command(flatten)]
    sim: Sim,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM ARGS")]
    program: Vec<OsString>,
}

/// Runs the program; exits with its exit code, or like a shell with 128 + n if signal n ended it.
pub(crate) fn run(options: Run) -> Result<ExitCode, String> {
    let library = library::find()?;
    let folder =
        Folder::new(&library).map_err(|why| format!("cannot create a folder for the library: {why}"))?;
    // Lives until the program has ended.
    let embedded = if options.worker.is_none() {
        Some(embedded::start(options.sim, &embedded::beside(folder.path()))?)
    } else {
        None
    };
    let address = match &embedded {
        Some(worker) => worker.local_addr().to_string(),
        None => worker(options.worker.unwrap_or_default())?,
    };
    let (name, args) = options.program.split_first().ok_or("no program given")?;
    // Set up before the child exists: a signal that comes between must not leave it behind.
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|why| format!("cannot handle signals: {why}"))?;
    let mut child = Command::new(name)
        .args(args)
        .envs(options.lazy_sync.then_some(("HIPR_SYNC", "lazy")))
        .env("LD_LIBRARY_PATH", folder.search_path())
        .env("HIPR_WORKER", &address)
        .spawn()
        .map_err(|why| format!("cannot start {}: {why}", name.to_string_lossy()))?;
    let pid = child.id();
    let forwarder = signals.handle();
    let thread = thread::spawn(move || signals.forever().for_each(|signal| forward(pid, signal)));
    let status = child.wait();
    forwarder.close();
    let _ = thread.join();
    Ok(code(status.map_err(|why| format!("cannot wait for {}: {why}", name.to_string_lossy()))?))
}

/// Returns the address for the program, after an invitation in it was turned into keys.
fn worker(given: String) -> Result<String, String> {
    let address = WorkerAddress::new(&given);
    let accepted = accept_invitation(&address, INVITATION_TIMEOUT).map_err(|why| why.to_string())?;
    Ok(if accepted == address { given } else { accepted.to_string() })
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

fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
