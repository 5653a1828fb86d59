//! `hipr bench scale`: what several workers of one machine do together, and what very many workers and connections cost that do nothing.

use super::process::{Process, command};
use super::program::{Api, Program, Task, connect};
use super::report::{Figure, Goal, Report, Unit};
use super::rounds::{Rounds, Subject};
use super::transport::Transport;
use crate::output::say;
use clap::Args;
use hipr_worker::device::null::Null;
use hipr_worker::{Config, Io, Worker, raise_open_files};
use std::io::Read;
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Size of a copy.
const COPY_BYTES: usize = 1 << 20;

/// Options of `hipr bench scale`.
#[derive(Debug, Args)]
pub(crate) struct Scale {
    /// The most workers; there is one at first, then twice as many each time.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    workers: u32,
    /// Measures instead what so many workers and so many connections to them cost that do nothing: 1000,10000 for example.
    #[arg(long, value_name = "WORKERS,CONNECTIONS", value_delimiter = ',')]
    idle: Vec<u32>,
    /// Serves as so many workers in one process until standard input ends.
    #[arg(long, hide = true)]
    serve: Option<u32>,
    #[command(flatten)]
    rounds: Rounds,
    /// Prints the report as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the benchmark and prints its report.
pub(crate) fn run(options: &Scale) -> Result<(), String> {
    match (options.serve, options.idle.as_slice()) {
        (Some(workers), _) => serve(workers),
        (None, [workers, connections]) => idle(options, *workers, *connections),
        (None, []) => together(options),
        (None, _) => Err("--idle wants two numbers, such as 1000,10000".into()),
    }
}

/// What is measured: its name, the workers' device, and the task of each of their programs.
const TASKS: [(&str, &str, Task, Unit); 3] = [
    ("launches", "null", Task::Launch, Unit::PerSecond),
    ("copies to the host", "null", Task::D2h, Unit::BytesPerSecond),
    ("kernels on emulated GPUs", "sim", Task::Launch, Unit::PerSecond),
];

fn together(options: &Scale) -> Result<(), String> {
    let counts: Vec<usize> =
        (0..).map(|power| 1 << power).take_while(|count| *count <= options.workers as usize).collect();
    let mut report = Report::new("scale", &options.rounds);
    report.notes.push("Each worker has one program, which is a thread of this process, and an emulated GPU where there is one.".into());
    for (what, device, task, unit) in TASKS {
        let most = counts.last().copied().unwrap_or(1);
        let start = |_| Process::server(&["worker", "--device", device], Transport::Tcp, None);
        let workers = (0..most).map(start).collect::<Result<Vec<_>, _>>()?;
        let mut subjects = Vec::new();
        for count in &counts {
            let start =
                |worker: &Process| Program::start(Api::Rust, worker.address(), COPY_BYTES, device == "sim");
            let programs = workers.iter().take(*count).map(start).collect::<Result<Vec<_>, _>>()?;
            subjects.push(all_of(programs, task));
        }
        options.rounds.measure(&mut subjects)?;
        for (count, subject) in counts.iter().zip(&subjects) {
            let name = format!("{what}, {count} {}", if *count == 1 { "worker" } else { "workers" });
            let mut figure = Figure::new(name, unit, &subject.samples, Goal::None);
            if let Some(one) = subjects.first().filter(|_| *count > 1) {
                figure = figure.compare("one worker", &subject.samples, &one.samples, Goal::None);
            }
            report.figures.push(figure);
        }
    }
    report.print(options.json)
}

/// Returns the sum of what programs do at the same time.
fn all_of<'a>(mut programs: Vec<Program>, task: Task) -> Subject<'a> {
    Subject::new(move |time| {
        thread::scope(|scope| {
            let turns: Vec<_> =
                programs.iter_mut().map(|program| scope.spawn(move || program.turn(task, time))).collect();
            let ended = |turn: thread::ScopedJoinHandle<'_, Result<f64, String>>| {
                turn.join().unwrap_or_else(|_| Err("a program has panicked".into()))
            };
            turns.into_iter().map(ended).sum()
        })
    })
}

// ---- workers and connections that do nothing -------------------------------------------------------------------------

/// Serves as many workers in one process: each has a port, an event loop and a thread of its own.
fn serve(workers: u32) -> Result<(), String> {
    let make = |_| {
        let config = Config { listen: "127.0.0.1:0".into(), io: Io::Mio, ..Config::new(Arc::new(Null)) };
        Worker::bind(config).and_then(Worker::spawn).map_err(|why| why.to_string())
    };
    let workers = (0..workers).map(make).collect::<Result<Vec<_>, _>>()?;
    let addresses: Vec<_> = workers.iter().map(|worker| worker.local_addr().to_string()).collect();
    say!("listening on {}", addresses.join(","));
    std::io::stdin().read_to_end(&mut Vec::new()).map_err(|why| why.to_string())?;
    Ok(())
}

fn idle(options: &Scale, workers: u32, connections: u32) -> Result<(), String> {
    raise_open_files().map_err(|why| format!("cannot raise the limit of open files: {why}"))?;
    let count = workers.to_string();
    let mut many = command(&["bench", "scale", "--serve", &count], None);
    many.stdin(Stdio::piped());
    let begin = Instant::now();
    let mut many = Process::start(many)?;
    let line = many.line()?;
    let started = begin.elapsed();
    let addresses: Vec<_> = line.strip_prefix("listening on ").unwrap_or(&line).split(',').collect();
    let before = many.resident_max_bytes()?;
    let mut open = Vec::with_capacity(connections as usize);
    let mut times = Vec::with_capacity(connections as usize);
    let begin = Instant::now();
    for address in addresses.iter().cycle().take(connections as usize) {
        let begin = Instant::now();
        open.push(connect(address)?);
        times.push(begin.elapsed());
    }
    let all = begin.elapsed();
    times.sort_unstable();
    let at = |part: f64| times.get((times.len() as f64 * part) as usize).copied().unwrap_or_default();
    let after = many.resident_max_bytes()?;
    let carried: u64 = open
        .iter()
        .map(|connection| connection.stats())
        .map(|stats| stats.bytes_sent + stats.bytes_received)
        .sum();

    let mut report = Report::new("scale", &options.rounds);
    report.set("workers", workers);
    report.set("connections", connections);
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let per = |bytes: u64, count: u32| bytes as f64 / f64::from(count.max(1));
    for (name, unit, value) in [
        ("starting a worker", Unit::Microseconds, us(started) / f64::from(workers.max(1))),
        ("memory of a worker", Unit::Bytes, per(before, workers)),
        ("opening a session, p50", Unit::Microseconds, us(at(0.5))),
        ("opening a session, p99", Unit::Microseconds, us(at(0.99))),
        ("sessions opened one after another", Unit::PerSecond, f64::from(connections) / all.as_secs_f64()),
        ("memory of a session in its worker", Unit::Bytes, per(after.saturating_sub(before), connections)),
        ("bytes to open a session, both ways", Unit::Bytes, per(carried, connections)),
    ] {
        report.figures.push(Figure::new(name, unit, &[value], Goal::None));
    }
    report.notes.push("All workers are in one process, each with a thread; sessions have the null device and nothing of their own.".into());
    report.print(options.json)
}
