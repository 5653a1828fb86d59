//! `hipr run`: runs a program with the client library.

use crate::embedded;
use crate::launch::Program;
use crate::library;
use crate::sim::Sim;
use clap::Args;
use hipr_client::{WorkerAddress, accept_invitation};
use std::ffi::OsString;
use std::process::ExitCode;
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
    let folder = library::CLIENT.folder()?;
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
    let mut program = Program::new(&options.program, &folder)?;
    program.envs(options.lazy_sync.then_some(("HIPR_SYNC", "lazy"))).env("HIPR_WORKER", &address);
    program.run()
}

/// Returns the address for the program, after an invitation in it was turned into keys.
fn worker(given: String) -> Result<String, String> {
    let address = WorkerAddress::new(&given);
    let accepted = accept_invitation(&address, INVITATION_TIMEOUT).map_err(|why| why.to_string())?;
    Ok(if accepted == address { given } else { accepted.to_string() })
}
