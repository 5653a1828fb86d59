//! hipr's test tools as a program: `cargo run -p hipr-tests -- simulate --seed 0 --count 1000000`.

use std::fmt;
use std::ops::Range;
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::{Parser, Subcommand, ValueEnum};
use hipr_testkit::{core_world, simulate, worker_world};

/// Test tools of hipr.
#[derive(Debug, Parser)]
#[command(name = "hipr-tests", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs seeded worlds: client, pipe, server and device with everything that can befall them, held against a model.
    Simulate(Simulate),
}

#[derive(Debug, clap::Args)]
struct Simulate {
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many seeds.
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// How many worlds run at once; as many as there are cores if nothing is said.
    #[arg(long)]
    jobs: Option<usize>,
    /// Which kind of world.
    #[arg(long, value_enum, default_value_t = World::Core)]
    world: World,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum World {
    /// The protocol crate's client and server, a pipe, a scripted device.
    Core,
    /// The same client against the worker: links, dispatch, sessions, the device trait.
    Worker,
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Core => "core",
            Self::Worker => "worker",
        })
    }
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Simulate(simulate) => simulate.run(),
    }
}

/// Says on standard error how far a long run is, every few seconds.
struct Progress {
    start: Instant,
    told_s: AtomicU64,
    count: u64,
}

impl Progress {
    /// Seconds between two lines.
    const EVERY_S: u64 = 10;

    fn tell(&self, done: u64) {
        let now_s = self.start.elapsed().as_secs();
        let told_s = self.told_s.load(Ordering::Relaxed);
        let is_due = now_s >= told_s + Self::EVERY_S;
        if is_due && self.told_s.compare_exchange(told_s, now_s, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            eprintln!("{done} of {} seeds in {now_s} s", self.count);
        }
    }
}

impl Simulate {
    fn run(&self) -> ExitCode {
        let jobs =
            self.jobs.or_else(|| std::thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
        let seeds = self.seed..self.seed.saturating_add(self.count);
        let start = Instant::now();
        let progress = Progress { start, told_s: AtomicU64::new(0), count: self.count };
        let found = self.find(seeds, jobs, |done| progress.tell(done));
        let Some((seed, report)) = found else {
            let seconds = start.elapsed().as_secs_f64();
            println!("{} seeds of the {} world pass, in {seconds:.1} s", self.count, self.world);
            return ExitCode::SUCCESS;
        };
        println!("{}", report.trim_end());
        println!("\ncargo run -p hipr-tests -- simulate --world {} --seed {seed} --count 1", self.world);
        ExitCode::FAILURE
    }

    /// The first seed that fails, and everything there is to say of it.
    fn find(&self, seeds: Range<u64>, jobs: usize, progress: impl Fn(u64) + Sync) -> Option<(u64, String)> {
        match self.world {
            World::Core => {
                simulate::silence_panics();
                let found = simulate::simulate(seeds, jobs, core_world::check, progress)?;
                Some((found.seed, found.to_string()))
            }
            World::Worker => {
                let check = |seed| match catch_unwind(|| worker_world::check_seed(seed)) {
                    Ok(checked) => checked.map_err(|failure| failure.to_string()),
                    Err(_) => Err("it panics: the message is above".to_owned()),
                };
                let (seed, failure) = simulate::first_failure(seeds, jobs, check, progress)?;
                Some((seed, format!("seed {seed} fails:\n{failure}")))
            }
        }
    }
}
