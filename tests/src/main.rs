//! hipr's test tools: the simulator, checks of the sources, instruction counts, and what programs cost on a network.

mod attacking;
mod network;

use std::ops::Range;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use std::{env, fmt, fs, io};

use clap::{Parser, Subcommand, ValueEnum};
use hipr_testkit::{core_world, resume_world, shim_world, simulate, worker_world};
use hipr_tests::{circles, counts, items};

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
    /// Prints which files of a crate use each other in a circle, and fails if ARCHITECTURE.md does not name one of them.
    Circles(Circles),
    /// Prints documented items, log lines and error texts drawn from all crates, each with its first sentence.
    Items(Items),
    /// Counts the instructions of the paths that have to be short, with valgrind, and compares them with committed figures.
    Counts(Counts),
    /// Runs a HIP program behind a network with a delay and a bandwidth, and prints what it waited for and what moved.
    Proxy(network::Behind),
    /// Counts the round trips and bytes of known programs behind such a network, and compares them with committed bounds.
    Distance(network::Distance),
    /// Attacks a worker as hostile clients would, and prints what each attack cost: memory, and the longest wait of another client.
    Attack(attacking::Attack),
    /// Does operations of one such path; `counts` runs this under valgrind.
    #[command(hide = true)]
    Count(Count),
}

#[derive(Debug, clap::Args)]
struct Items {
    /// The seed that decides which items are drawn.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of items.
    #[arg(long, default_value_t = 40)]
    count: usize,
    /// Draws only from files below this folder of the workspace.
    #[arg(long, default_value = "")]
    under: PathBuf,
    /// Prints all items in the order of the files instead of drawing some.
    #[arg(long)]
    all: bool,
    /// Root folder of the workspace.
    #[arg(long, default_value = ".")]
    workspace: PathBuf,
}

impl Items {
    fn run(&self) -> io::Result<ExitCode> {
        let mut found = items::collect(&self.workspace)?;
        found.retain(|prose| prose.path.starts_with(&self.under));
        let all = found.len();
        let shown = if self.all { found } else { items::draw(found, self.seed, self.count) };
        shown.iter().for_each(|prose| println!("{prose}"));
        eprintln!("{} of {all} items", shown.len());
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Debug, clap::Args)]
struct Counts {
    /// Writes the committed figures anew instead of comparing with them.
    #[arg(long)]
    renew: bool,
    /// The committed figures.
    #[arg(long, default_value = "tests/counts.tsv")]
    figures: PathBuf,
}

impl Counts {
    fn run(&self) -> Result<ExitCode, String> {
        let at = |why: io::Error| format!("{}: {why}", self.figures.display());
        if cfg!(debug_assertions) {
            return Err(
                "the figures are of a release build: cargo run --release -p hipr-tests -- counts".to_owned()
            );
        }
        let program = env::current_exe().map_err(|why| format!("cannot find this program: {why}"))?;
        let measured = counts::measure(&program)?;
        if self.renew {
            fs::write(&self.figures, counts::render(&measured)).map_err(at)?;
            println!("{} has new figures", self.figures.display());
            return Ok(ExitCode::SUCCESS);
        }
        let committed = counts::parse(&fs::read_to_string(&self.figures).map_err(at)?)?;
        let (report, is_right) = counts::compare(&committed, &measured);
        print!("{report}");
        if is_right {
            return Ok(ExitCode::SUCCESS);
        }
        println!("to renew the figures: cargo run --release -p hipr-tests -- counts --renew");
        Ok(ExitCode::FAILURE)
    }
}

#[derive(Debug, clap::Args)]
struct Count {
    /// The path, as the table of figures names it.
    name: String,
    /// Number of operations.
    operations: u64,
}

impl Count {
    fn run(&self) -> Result<ExitCode, String> {
        let benchmark = counts::BENCHMARKS.iter().find(|benchmark| benchmark.name == self.name);
        let benchmark = benchmark.ok_or_else(|| format!("there is no path '{}'", self.name))?;
        (benchmark.run)(self.operations);
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Debug, clap::Args)]
struct Circles {
    /// The folder of the workspace.
    #[arg(default_value = ".")]
    workspace: PathBuf,
}

impl Circles {
    fn run(&self) -> io::Result<ExitCode> {
        let named = circles::named(&fs::read_to_string(self.workspace.join("ARCHITECTURE.md"))?);
        let found = circles::find(&self.workspace)?;
        for circle in &found {
            print!("{circle}");
        }
        let unnamed = found.iter().filter(|circle| !circle.is_named(&named)).count();
        println!("{} circles, {unnamed} of them not named in ARCHITECTURE.md", found.len());
        Ok(if unnamed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

#[derive(Debug, clap::Args)]
struct Simulate {
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of seeds.
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// Number of worlds that run at once; by default the number of cores.
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
    /// The client against the worker: links, dispatch, sessions, the device trait.
    Worker,
    /// The client library's stream layer: threads, streams, mirrored memory, host functions, a worker.
    Shim,
    /// Sessions that outlive their connections: frames, claims, cuts, late sockets.
    Resume,
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Core => "core",
            Self::Worker => "worker",
            Self::Shim => "shim",
            Self::Resume => "resume",
        })
    }
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Simulate(simulate) => simulate.run(),
        Command::Circles(circles) => exit("circles", circles.run()),
        Command::Items(items) => exit("items", items.run()),
        Command::Counts(counts) => exit("counts", counts.run()),
        Command::Count(count) => exit("count", count.run()),
        Command::Proxy(proxy) => exit("proxy", proxy.run()),
        Command::Distance(distance) => exit("distance", distance.run()),
        Command::Attack(attack) => exit("attack", attack.run()),
    }
}

fn exit<E: fmt::Display>(command: &str, result: Result<ExitCode, E>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("{command}: {error}");
        ExitCode::FAILURE
    })
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

    /// Returns the first seed that fails, with a description of the failure.
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
            World::Shim => {
                simulate::silence_panics();
                let (seed, failure) = simulate::first_failure(seeds, jobs, shim_world::check_seed, progress)?;
                let found = shim_world::shrink(shim_world::Case::from_seed(seed), failure);
                Some((seed, format!("seed {seed} fails:\n{found}")))
            }
            World::Resume => {
                simulate::silence_panics();
                let (seed, failure) =
                    simulate::first_failure(seeds, jobs, resume_world::check_seed, progress)?;
                Some((seed, format!("seed {seed} fails:\n{failure}")))
            }
        }
    }
}
