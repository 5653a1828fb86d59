//! Counts the processor instructions of the paths that have to be short, and compares them with committed figures. Unlike time,
//! an instruction count is the same on a busy machine, so that a tolerance of a few per cent is enough.
//!
//! Each path is a [`Benchmark`] that does the same operation again and again. It runs under valgrind twice, with 500 and with
//! 2,500 operations; the difference is what the operations cost, without start and end of the process.
//!
//! A function of the client library is called by a program that has loaded `libamdhip64.so`, with a worker in this process, which is
//! not counted. Only the instructions of that function count, with all that it calls: a thread that sends what nobody waits for does
//! so when it is time, and that is not the same in each run.

mod client;
mod interpreter;
mod protocol;
mod worker;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use hipr_sim::Gpu;
use hipr_worker::{Config, Handle, Worker};

/// Number of operations of the shorter run.
const FEWER: u64 = 500;
/// Number of operations of the longer run.
const MORE: u64 = 2_500;
/// Maximum relative difference of a count from its committed figure.
pub const TOLERANCE: f64 = 0.03;

/// A code path whose instructions are counted.
#[derive(Debug)]
pub struct Benchmark {
    /// Name in the table of figures.
    pub name: &'static str,
    /// Description of one operation.
    pub operation: &'static str,
    /// The exported function whose instructions count, with all that it calls; None if those of the whole process do.
    pub function: Option<&'static str>,
    /// Executes this many operations.
    pub run: fn(u64),
}

/// All benchmarks.
pub const BENCHMARKS: [Benchmark; 10] = [
    Benchmark {
        name: "encode",
        operation: "a launch with six arguments, into the client's buffer",
        function: None,
        run: protocol::encode,
    },
    Benchmark {
        name: "decode",
        operation: "a launch with six arguments, out of received bytes",
        function: None,
        run: protocol::decode,
    },
    Benchmark {
        name: "worker-launch",
        operation: "a launch through connection, dispatch and session to the null device",
        function: None,
        run: worker::launch,
    },
    Benchmark {
        name: "worker-read",
        operation: "64 bytes of device memory, through connection, dispatch and session",
        function: None,
        run: worker::read,
    },
    Benchmark {
        name: "worker-copy",
        operation: "20 KiB to device memory and back, through connection, dispatch and session",
        function: None,
        run: worker::copy,
    },
    Benchmark {
        name: "interpreter-step",
        operation: "an instruction of a loop with scalar and vector arithmetic, 64 lanes",
        function: None,
        run: interpreter::step,
    },
    Benchmark {
        name: "client-launch",
        operation: "hipModuleLaunchKernel with six arguments, in the client library",
        function: Some("hipModuleLaunchKernel"),
        run: client::launch,
    },
    Benchmark {
        name: "client-copy",
        operation: "hipMemcpyAsync of 64 bytes to the device, in the client library",
        function: Some("hipMemcpyAsync"),
        run: client::copy,
    },
    Benchmark {
        name: "client-query",
        operation: "hipStreamQuery, in the client library",
        function: Some("hipStreamQuery"),
        run: client::query,
    },
    Benchmark {
        name: "client-sync",
        operation: "hipStreamSynchronize, in the client library",
        function: Some("hipStreamSynchronize"),
        run: client::synchronize,
    },
];

/// Instructions per operation, by name.
pub type Figures = Vec<(String, f64)>;

/// Parses a table of figures: name, tab, instructions per operation; lines that begin with `#` are comments.
///
/// # Errors
/// Which line is none of that.
pub fn parse(table: &str) -> Result<Figures, String> {
    let lines = table.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let (name, figure) = line.split_once('\t').ok_or_else(|| format!("no tab in '{line}'"))?;
            let figure = figure.trim().parse().map_err(|_| format!("no number in '{line}'"))?;
            Ok((name.to_owned(), figure))
        })
        .collect()
}

/// Renders the table that [`parse`] reads.
#[must_use]
pub fn render(figures: &Figures) -> String {
    let mut table = "# Instructions for one operation. `cargo run --release -p hipr-tests -- counts --renew` writes this file.\n".to_owned();
    for (name, figure) in figures {
        if let Some(benchmark) = BENCHMARKS.iter().find(|benchmark| benchmark.name == name) {
            let _ = writeln!(table, "# {}", benchmark.operation);
        }
        let _ = writeln!(table, "{name}\t{figure:.1}");
    }
    table
}

/// Compares measured with committed figures; returns a line for each, and whether all are within [`TOLERANCE`].
///
/// Fewer instructions are not accepted either: with the old figure a later regression would go unnoticed.
#[must_use]
pub fn compare(committed: &Figures, measured: &Figures) -> (String, bool) {
    let (mut lines, mut is_right) = (String::new(), true);
    let find = |figures: &Figures, name: &str| {
        figures.iter().find(|(other, _)| other == name).map(|(_, figure)| *figure)
    };
    for (name, now) in measured {
        let verdict = match find(committed, name) {
            None => "no committed figure: renew the table".to_owned(),
            Some(before) => {
                let change = now / before - 1.0;
                let verdict = if !change.is_finite() {
                    "a committed figure that is no count: renew the table"
                } else if change > TOLERANCE {
                    "SLOWER: find out why; renew the table only if it has to be so"
                } else if change < -TOLERANCE {
                    "faster: renew the table, so that it stays so"
                } else {
                    "ok"
                };
                format!("committed {before:10.1}  {:+6.1} %  {verdict}", change * 100.0)
            }
        };
        is_right &= verdict.ends_with("ok");
        let _ = writeln!(lines, "{name:18} {now:10.1}  {verdict}");
    }
    for (name, _) in committed.iter().filter(|(name, _)| find(measured, name).is_none()) {
        is_right = false;
        let _ = writeln!(lines, "{name:18} is committed and was not measured: renew the table");
    }
    (lines, is_right)
}

/// Runs benchmarks in processes of their own, with a worker for those that need one.
#[derive(Debug)]
pub struct Runner {
    program: PathBuf,
    worker: Handle,
}

impl Runner {
    /// Starts the worker; `program` is hipr-tests.
    ///
    /// # Errors
    /// There can be no worker.
    pub fn new(program: &Path) -> Result<Self, String> {
        // A device that knows which parameters a kernel has: the library reads and sends as many arguments.
        let device = Gpu::new(hipr_sim::Config::default());
        let device = device.map_err(|why| format!("cannot emulate a GPU: {why}"))?;
        let config = Config { listen: "127.0.0.1:0".into(), ..Config::new(Arc::new(device)) };
        let worker = Worker::bind(config).and_then(Worker::spawn);
        let worker = worker.map_err(|why| format!("cannot start a worker: {why}"))?;
        Ok(Self { program: program.to_owned(), worker })
    }

    /// Executes operations of a benchmark.
    ///
    /// # Errors
    /// They fail.
    pub fn run(&self, benchmark: &Benchmark, operations: u64) -> Result<(), String> {
        self.output(Command::new(&self.program), benchmark, operations).map(drop)
    }

    /// Runs `program count NAME OPERATIONS` behind what `command` has already.
    fn output(&self, mut command: Command, benchmark: &Benchmark, operations: u64) -> Result<Output, String> {
        command
            .args(["count", benchmark.name, &operations.to_string()])
            // The same code on every machine: what was compiled for all processors.
            .env("HIPR_SIM_SIMD", "base")
            .env("HIPR_WORKER", self.worker.local_addr().to_string())
            .env_remove("HIPR_LOG");
        let output = command.output().map_err(|why| format!("cannot run {command:?}: {why}"))?;
        if output.status.success() {
            return Ok(output);
        }
        Err(format!("{} fails:\n{}", benchmark.name, String::from_utf8_lossy(&output.stderr)))
    }

    /// Counts the instructions of operations with valgrind.
    fn instructions(&self, benchmark: &Benchmark, operations: u64) -> Result<u64, String> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        if let Some(function) = benchmark.function {
            command.arg(format!("--toggle-collect={function}"));
        }
        command.arg(&self.program);
        let output = self.output(command, benchmark, operations)?;
        let said = String::from_utf8_lossy(&output.stderr);
        let collected = said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
        collected.ok_or_else(|| format!("valgrind does not say how many instructions it counted:\n{said}"))
    }
}

/// Counts all benchmarks by running `program count NAME OPERATIONS` under valgrind.
///
/// # Errors
/// There is no valgrind, or a run fails.
pub fn measure(program: &Path) -> Result<Figures, String> {
    let runner = Runner::new(program)?;
    let mut figures = Figures::new();
    for benchmark in &BENCHMARKS {
        let [fewer, more] = [FEWER, MORE].map(|operations| runner.instructions(benchmark, operations));
        let (fewer, more) = (fewer?, more?);
        let total = more.checked_sub(fewer).filter(|total| *total > 0);
        let total = total.ok_or_else(|| format!("{}: more operations cost no more", benchmark.name))?;
        figures.push((benchmark.name.to_owned(), total as f64 / (MORE - FEWER) as f64));
    }
    Ok(figures)
}
