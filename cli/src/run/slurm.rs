//! A worker that Slurm places, for the lifetime of one program.
//!
//! `srun` waits for what the options ask for, runs a worker there and brings its invitation here, over Slurm's own connections. It ends when the
//! pipe to the shell that has started it is closed, and with it the job: also where this process is killed.

use crate::library::this_program;
use crate::worker::INVITATION;
use std::env;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// The shell script that runs `srun` on this machine; only what the worker prints comes out of its standard output.
const SRUN_SCRIPT: &str = include_str!("srun.sh");
/// The shell script that runs the worker on the node, with a key and a file of authorized keys that are removed when it ends.
const WORKER_SCRIPT: &str = include_str!("worker.sh");
/// Time between two questions to Slurm for the job's state.
const ASK_INTERVAL: Duration = Duration::from_secs(5);
/// Time after which a state that has not changed is printed again.
const REPEAT_INTERVAL: Duration = Duration::from_secs(60);

/// A worker in a job of Slurm's; dropping it ends the job.
pub(super) struct SlurmWorker {
    shell: Child,
    invitation: String,
}

impl SlurmWorker {
    /// Asks Slurm for what the options of `srun` say, and waits until there is a worker. Says on standard error what Slurm waits for.
    ///
    /// # Errors
    /// The options are no words of a shell; there is no `srun`, it refuses or it is cancelled; the worker does not start.
    pub(super) fn start(options: &str) -> Result<Self, String> {
        let words = shlex::split(options)
            .ok_or_else(|| format!("--slurm {options}: there is a quotation mark without its other one"))?;
        let program = match env::var_os("HIPR_SLURM_PROGRAM") {
            Some(program) => PathBuf::from(program),
            None => this_program()?,
        };
        let job = format!("hipr-{}", std::process::id());
        let mut shell = Command::new("sh")
            .args(["-c", SRUN_SCRIPT, "srun"])
            .args(["--nodes=1", "--ntasks=1", &format!("--job-name={job}")])
            .args(words)
            .args(["sh", "-c", WORKER_SCRIPT])
            .arg(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The terminal's signals are the program's.
            .process_group(0)
            .spawn()
            .map_err(|why| format!("cannot start a shell for srun: {why}"))?;
        let printed = lines(&mut shell);
        let mut worker = Self { shell, invitation: String::new() };
        worker.invitation = invitation(&printed, &job).ok_or_else(|| worker.why_none())?;
        Ok(worker)
    }

    /// Returns the address of the worker with an invitation to it.
    pub(super) fn invitation(&self) -> &str {
        &self.invitation
    }

    /// Returns why there is no worker, after `srun` has ended.
    fn why_none(&mut self) -> String {
        match self.end() {
            Some(127) => {
                "there is no srun on this machine: is it one from which jobs are submitted to Slurm?"
                    .to_owned()
            }
            Some(code) => format!(
                "Slurm gives no worker: srun ended with exit code {code}; it has said why on standard error"
            ),
            None => "Slurm gives no worker: srun was killed".to_owned(),
        }
    }

    /// Ends the job, and returns the exit code of `srun`; `None` if a signal has ended it.
    fn end(&mut self) -> Option<i32> {
        drop(self.shell.stdin.take());
        self.shell.wait().ok()?.code()
    }
}

impl Drop for SlurmWorker {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Returns the lines that the worker prints. They are read to their end, wanted or not, so that it never waits for a reader.
fn lines(shell: &mut Child) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    let output = shell.stdout.take();
    thread::spawn(move || {
        for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()).map_while(Result::ok)
        {
            let _ = sender.send(line);
        }
    });
    receiver
}

/// Waits for the invitation, and says what Slurm waits for; `None` if there will be none.
fn invitation(printed: &Receiver<String>, job: &str) -> Option<String> {
    let begin = Instant::now();
    let (mut last, mut last_said) = (String::new(), begin);
    loop {
        match printed.recv_timeout(ASK_INTERVAL) {
            Ok(line) => {
                if let Some(invitation) = line.strip_prefix(INVITATION) {
                    return Some(invitation.to_owned());
                }
            }
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                let state = state(job);
                if state != last || last_said.elapsed() >= REPEAT_INTERVAL {
                    let state_shown = if state.is_empty() { "no job yet" } else { &state };
                    eprintln!("hipr: waiting for Slurm for {} s: {state_shown}", begin.elapsed().as_secs());
                    (last, last_said) = (state, Instant::now());
                }
            }
        }
    }
}

/// Returns what Slurm says of a job: its number, its state, and what it waits for. Empty if it says nothing.
fn state(job: &str) -> String {
    let asked = Command::new("squeue")
        .args(["--noheader", "--name", job, "--format=job %i, %T (%r)"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    asked.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}
