//! `hipr run`: runs a program with the client library.

mod slurm;

use crate::embedded;
use crate::launch::Program;
use crate::library;
use crate::sim::Sim;
use clap::Args;
use hipr_client::{WorkerAddress, accept_invitation};
use hipr_worker::Handle;
use slurm::SlurmWorker;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// How long an invitation may take to be turned into keys.
const INVITATION_TIMEOUT: Duration = Duration::from_secs(10);

/// How a program is run.
#[derive(Debug, Args)]
pub(crate) struct Way {
    /// Address of the worker, hipr://HOST:PORT for one that asks for keys; several with commas between them, or @FILE with one in each line. [default: a worker with the emulated GPU is started for the program]
    #[arg(long, value_name = "HOST:PORT")]
    worker: Option<String>,
    /// Asks Slurm for a worker: runs one by srun with these options, for example "--gres=gpu:1", and gives it back when the program has
    /// ended.
    #[arg(long, value_name = "OPTIONS", conflicts_with = "worker", allow_hyphen_values = true)]
    slurm: Option<String>,
    /// Lets synchronizations return at once where the program could see nothing of the work; its errors come with a later call.
    #[arg(long)]
    lazy_sync: bool,
    #[command(flatten)]
    sim: Sim,
}

/// Options of `hipr run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    way: Way,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM ARGS")]
    program: Vec<OsString>,
}

/// Runs the program; exits with its exit code, or like a shell with 128 + n if signal n ended it.
pub(crate) fn run(options: Run) -> Result<ExitCode, String> {
    options.way.run(&options.program, Program::run)
}

impl Way {
    /// Runs a program: `run` is given it with all that it needs, and is done with it when it returns.
    pub(crate) fn run<R>(
        self,
        program: &[OsString],
        run: impl FnOnce(Program) -> Result<R, String>,
    ) -> Result<R, String> {
        let folder = library::CLIENT.folder()?;
        // Lives until the program has ended.
        let served = match (self.worker, self.slurm) {
            (Some(address), _) => Served::Elsewhere(address),
            (None, Some(options)) => Served::BySlurm(SlurmWorker::start(&options)?),
            (None, None) => Served::Here(embedded::start(self.sim, &embedded::beside(folder.path()))?),
        };
        let address = match &served {
            Served::Here(worker) => worker.local_addr().to_string(),
            Served::Elsewhere(address) => accepted(address)?,
            Served::BySlurm(worker) => accepted(worker.invitation())?,
        };
        let mut program = Program::new(program, &folder)?;
        program.envs(self.lazy_sync.then_some(("HIPR_SYNC", "lazy"))).env("HIPR_WORKER", &address);
        run(program)
    }
}

/// Who serves the program.
enum Served {
    /// A worker in this process, with an emulated GPU.
    Here(Handle),
    /// A worker at this address.
    Elsewhere(String),
    /// A worker that Slurm has placed.
    BySlurm(SlurmWorker),
}

/// Returns the addresses for the program, after invitations among them were turned into keys.
fn accepted(given: &str) -> Result<String, String> {
    let mut all = Vec::new();
    for address in WorkerAddress::all(given)? {
        let accepted = accept_invitation(&address, INVITATION_TIMEOUT).map_err(|why| why.to_string())?;
        all.push(accepted.to_string());
    }
    Ok(all.join(","))
}
