//! The command `attack`: runs the table of attacks against a worker, and prints what each cost.

use clap::Args;
use hipr_tests::attack::{Scale, Target};
use hipr_tests::{WorkerProcess, attack, process_status_bytes as status};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

const MIB: u64 = 1 << 20;
/// What a session may cost beside its limit.
const BESIDE_BYTES: u64 = 64 * MIB;
/// Sessions at a time where each has a process; by itself a worker then has at most 64.
const PROCESSES: usize = 50;
/// How often the processes of sessions are looked at.
const EVERY: Duration = Duration::from_millis(2);

/// Attacks a worker that is given, or one that it starts.
#[derive(Debug, Args)]
pub(crate) struct Attack {
    /// The worker's address; without it one is started, on the emulated device and with a limit of 4 GiB for its addresses.
    #[arg(long, requires = "pid")]
    worker: Option<SocketAddr>,
    /// The worker's process, whose memory is watched together with that of its children.
    #[arg(long)]
    pid: Option<u32>,
    /// The program that is started as a worker.
    #[arg(long, default_value = "target/release/hipr")]
    hipr: PathBuf,
    /// What a session may allocate on the worker that is started, or on the one that is given, in MiB.
    #[arg(long, default_value_t = 64)]
    memory_max: u64,
    /// The longest time that a bystander may wait for the answer to a ping, in milliseconds.
    #[arg(long, default_value_t = 50)]
    bystander_max_ms: u64,
    /// Runs only cases whose names contain this.
    #[arg(long, default_value = "")]
    only: String,
    /// How the worker that is started keeps sessions apart: none, or process. With processes fewer sessions are opened.
    #[arg(long, default_value = "none")]
    isolate: String,
    /// Seed of what is random.
    #[arg(long, default_value_t = Scale::FULL.seed)]
    seed: u64,
    /// Number of random requests.
    #[arg(long, default_value_t = Scale::FULL.requests)]
    requests: usize,
}

impl Attack {
    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        let started;
        let worker = match (self.worker, self.pid) {
            (Some(address), Some(pid)) => Target { address, pid },
            _ => {
                started = start(&self.hipr, self.memory_max, &self.isolate);
                Target { address: started.address(), pid: started.pid() }
            }
        };
        let mut scale = Scale { seed: self.seed, requests: self.requests, ..Scale::FULL };
        if self.isolate == "process" {
            scale = Scale { sessions: PROCESSES, reconnects: 10 * PROCESSES, ..scale };
        }
        let most = self.memory_max * MIB + BESIDE_BYTES;
        let mut is_right = true;
        let mut slowest = Duration::ZERO;
        let heads = ("attack", "sent, KiB", "cost, MiB", "bystander", "its kernel");
        println!("{:<50} {:>10} {:>10} {:>12} {:>12}  answers", heads.0, heads.1, heads.2, heads.3, heads.4);
        for case in attack::cases(&scale).into_iter().filter(|case| case.name.contains(&self.only)) {
            let (attacked, cost) = watched(worker.pid, || attack::run(worker, &case))?;
            println!(
                "{:<50} {:>10} {:>10} {:>9.1} ms {:>10.1} x  {}",
                case.name,
                attacked.sent.bytes >> 10,
                cost / MIB,
                attacked.slowest.as_secs_f64() * 1e3,
                attacked.kernel[0].as_secs_f64() / attacked.kernel[1].as_secs_f64(),
                attacked.sent
            );
            slowest = slowest.max(attacked.slowest);
            is_right &= attacked.sent.is_right && cost <= most;
        }
        println!("the most that a session may cost: {} MiB", most / MIB);
        println!(
            "the longest that a bystander waited: {:.1} ms of at most {} ms; its kernel: median, by that before the attack",
            slowest.as_secs_f64() * 1e3,
            self.bystander_max_ms
        );
        is_right &= slowest <= Duration::from_millis(self.bystander_max_ms);
        Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn start(hipr: &Path, memory_max: u64, isolation: &str) -> WorkerProcess {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 4194304 && exec \"$0\" \"$@\""]).arg(hipr);
    let memory_max = format!("{memory_max}M");
    WorkerProcess::start_command(
        command,
        &["--device", "sim", "--memory-max", &memory_max, "--isolate", isolation],
    )
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Does something; returns how much more memory the process had meanwhile than before, together with the children that it got.
fn watched<T>(pid: u32, work: impl FnOnce() -> T) -> Result<(T, u64), String> {
    let gone = || format!("there is no process {pid} whose memory can be watched");
    fs::write(format!("/proc/{pid}/clear_refs"), "5").map_err(|_| gone())?;
    let before = status(pid, "VmRSS:").ok_or_else(gone)?;
    let is_over = AtomicBool::new(false);
    let (done, of_children) = thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut peaks = BTreeMap::new();
            while !is_over.load(Ordering::Relaxed) {
                for child in children(pid) {
                    let peak = status(child, "VmHWM:").unwrap_or(0);
                    peaks
                        .entry(child)
                        .and_modify(|known: &mut u64| *known = peak.max(*known))
                        .or_insert(peak);
                }
                thread::sleep(EVERY);
            }
            peaks.into_values().max().unwrap_or(0)
        });
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        (done, watch.join().unwrap_or(0))
    });
    let peak = status(pid, "VmHWM:").ok_or_else(|| format!("the worker, process {pid}, has ended"))?;
    Ok((done, peak.saturating_sub(before) + of_children))
}
