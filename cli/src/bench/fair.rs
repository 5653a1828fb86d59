//! `hipr bench fair`: how the emulated GPU's time is shared: a small kernel beside a client with 1,000 queued huge grids, and two tenants of
//! which one has three times the other's weight.

use super::latency::{self, Latencies, Percentiles};
use super::process::{Process, command};
use super::program::{connect, launch_adding, load_kernel};
use super::report::{Figure, Goal, Report, Spread, Unit};
use super::rounds::{Rounds, Subject};
use super::transport::Transport;
use crate::output::say;
use clap::{Args, ValueEnum};
use hipr_client::{Connection, Extra};
use hipr_proto::Wire;
use hipr_proto::op::{self, LaunchKernel, kind};
use hipr_tls::make_key;
use std::fs;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

/// Goal: a small kernel beside a hog in idle medians, at most.
const IDLE_MEDIANS_MAX: f64 = 3.0;
/// Goal: how near the shares of two tenants are to their weights, at least.
const NEARNESS_MIN: f64 = 0.9;
/// Weights of the two tenants.
const WEIGHTS: [u32; 2] = [1, 3];
/// Number of grids that the hog has queued, each on a stream of its own.
const GRIDS: u32 = 1000;
/// Workgroups of such a grid: as many as there may be.
const HUGE_GROUPS: u32 = u32::MAX / 64;
/// Streams of a busy client: more than the machine has threads that it may hold up in the middle of a grid, so that there is always work.
const COUNTED_STREAMS: u64 = 16;
/// Number of grids that a busy client has queued on each, and their workgroups: enough for a minute.
const COUNTED_GRIDS: u64 = 500;
const COUNTED_GROUPS: u32 = 4096;
/// Flag of a stream that waits for no other.
const NON_BLOCKING: u32 = 1;
/// Time that the hog's session may take to end before others are measured without it.
const ENDS_IN: Duration = Duration::from_millis(300);

/// Options of `hipr bench fair`.
#[derive(Debug, Args)]
pub(crate) struct Fair {
    /// Whether the worker's sessions have processes of their own. Several, separated by commas, are measured one after another.
    #[arg(long, value_name = "HOW", default_value = "none,process", value_delimiter = ',')]
    isolate: Vec<String>,
    #[command(flatten)]
    rounds: Rounds,
    /// Prints the report as JSON.
    #[arg(long)]
    json: bool,
    /// What this process does as a client of a benchmark.
    #[arg(long, hide = true, requires = "worker")]
    part: Option<Part>,
    /// The worker's address.
    #[arg(long, hide = true)]
    worker: Option<String>,
}

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Queues huge grids.
    Hog,
    /// Launches small kernels, and waits for each.
    Victim,
    /// Queues grids that are counted.
    Busy,
}

/// Runs the benchmark and prints its report.
pub(crate) fn run(options: &Fair) -> Result<(), String> {
    if let (Some(part), Some(worker)) = (options.part, &options.worker) {
        return be_client(part, worker);
    }
    let folder = tempfile::tempdir().map_err(|why| format!("cannot create a folder: {why}"))?;
    let keys = Keys::make(folder.path())?;
    let mut report = Report::new("fair", &options.rounds);
    report.set("isolate", options.isolate.join(","));
    report.set("device", "sim");
    for isolate in &options.isolate {
        let worker = keys.worker(isolate)?;
        report.figures.extend(keys.small_kernels(&worker, isolate, &options.rounds)?);
        report.figures.extend(keys.shares(&worker, isolate, &options.rounds)?);
    }
    report.print(options.json)
}

/// The names of the clients, with what their lines say.
const CLIENTS: [(&str, u32); 4] = [("hog", 1), ("victim", 1), ("light", WEIGHTS[0]), ("heavy", WEIGHTS[1])];

/// A folder with the keys of a worker and its clients.
struct Keys<'a> {
    folder: &'a Path,
    fingerprint: String,
}

impl<'a> Keys<'a> {
    fn make(folder: &'a Path) -> Result<Self, String> {
        let made = |path: &Path| make_key(path, false).map_err(|why| why.to_string());
        let mut lines = String::new();
        for (name, weight) in CLIENTS {
            let key = made(&folder.join(name).join("hipr").join("key"))?;
            lines += &format!("{} tenant={name} weight={weight}\n", key.public());
        }
        let written = fs::write(folder.join("authorized"), lines);
        written.map_err(|why| format!("cannot write the clients' keys: {why}"))?;
        let worker = made(&folder.join("worker-key"))?;
        Ok(Self { folder, fingerprint: worker.public().fingerprint().to_string() })
    }

    fn worker(&self, isolate: &str) -> Result<Process, String> {
        let file = |name| {
            Ok::<_, String>(
                self.folder.join(name).to_str().ok_or("the folder's name is not text")?.to_owned(),
            )
        };
        let (authorized, key) = (file("authorized")?, file("worker-key")?);
        let args =
            ["worker", "--device", "sim", "--isolate", isolate, "--authorized", &authorized, "--key", &key];
        // A client that is killed is not waited for.
        Process::server(&[&args[..], &["--resume-timeout", "0"]].concat(), Transport::Tcp, None)
    }

    fn client(&self, name: &str, part: Part, worker: &Process) -> Result<Client, String> {
        let part = part.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let address = format!("hipr://{}@{}", self.fingerprint, worker.address());
        let mut command = command(&["bench", "fair", "--part", &part, "--worker", &address], None);
        // The client library finds its key by the environment.
        command.env("XDG_CONFIG_HOME", self.folder.join(name)).stdin(Stdio::piped());
        let mut client = Client(Process::start(command)?);
        client.numbers().map(|_| client)
    }

    fn small_kernels(&self, worker: &Process, isolate: &str, rounds: &Rounds) -> Result<Vec<Figure>, String> {
        let mut victims =
            [self.client("victim", Part::Victim, worker)?, self.client("victim", Part::Victim, worker)?];
        let [alone, beside] = &mut victims;
        let mut subjects = [
            Subject::new(|time| alone.percentiles(time)),
            Subject::new(|time| {
                let hog = self.client("hog", Part::Hog, worker)?;
                let measured = beside.percentiles(time)?;
                drop(hog);
                thread::sleep(ENDS_IN);
                Ok(measured)
            }),
        ];
        rounds.measure(&mut subjects)?;
        let [idle, busy] = &subjects;
        let name = format!("small kernel alone, isolate {isolate}");
        let mut figures = latency::figures(&name, &idle.samples, Goal::None, &[]);
        let name = format!("small kernel beside {GRIDS} queued huge grids, isolate {isolate}");
        let alone = [("alone".to_owned(), idle.samples.as_slice(), Goal::AtMost(IDLE_MEDIANS_MAX))];
        figures.extend(latency::figures(&name, &busy.samples, Goal::None, &alone));
        Ok(figures)
    }

    fn shares(&self, worker: &Process, isolate: &str, rounds: &Rounds) -> Result<Vec<Figure>, String> {
        let mut subject = Subject::new(|time| {
            let mut both =
                [self.client("light", Part::Busy, worker)?, self.client("heavy", Part::Busy, worker)?];
            let begun = both.each_mut().map(Client::counted);
            thread::sleep(time);
            let ended = both.each_mut().map(Client::counted);
            let [light, heavy] = [0, 1].map(|at| match (&begun[at], &ended[at]) {
                // One grid at least, so that a short turn has a ratio, too.
                (Ok((before, since_s)), Ok((after, until_s))) => {
                    Ok((after - before).max(1.0) / (until_s - since_s))
                }
                (Err(why), _) | (_, Err(why)) => Err(why.clone()),
            });
            Ok(heavy? / light?)
        });
        rounds.measure([&mut subject])?;
        let [light, heavy] = WEIGHTS.map(f64::from);
        let due = heavy / light;
        // How far a single turn is off is also the machine's business.
        let middle = Spread::of(&subject.samples).median;
        let near = (middle / due).min(due / middle);
        let name = format!("groups of weight {heavy} for each of weight {light}, isolate {isolate}");
        let nearness =
            format!("the lesser of that median and {due}, divided by the greater, isolate {isolate}");
        Ok(vec![
            Figure::new(name, Unit::Ratio, &subject.samples, Goal::None),
            Figure::new(nearness, Unit::Ratio, &[near], Goal::AtLeast(NEARNESS_MIN)),
        ])
    }
}

/// A client in a process of its own. It says numbers when it is ready, and for each line that it is told.
struct Client(Process);

impl Client {
    fn numbers(&mut self) -> Result<Vec<f64>, String> {
        let line = self.0.line()?;
        let numbers: Result<_, _> = line.split_whitespace().map(str::parse).collect();
        numbers.map_err(|_| format!("a client printed '{line}' instead of numbers"))
    }

    fn ask(&mut self, seconds: f64) -> Result<Vec<f64>, String> {
        let input = self.0.input().ok_or("the client has no standard input")?;
        writeln!(input, "{seconds}").map_err(|why| format!("a client ended early: {why}"))?;
        self.numbers()
    }

    fn percentiles(&mut self, time: Duration) -> Result<Percentiles, String> {
        match self.ask(time.as_secs_f64())?[..] {
            [p50, p99, p999, max] => Ok(Percentiles { p50, p99, p999, max }),
            _ => Err("a client printed no percentiles".into()),
        }
    }

    /// Returns how many grids have begun, and when that was, in seconds.
    fn counted(&mut self) -> Result<(f64, f64), String> {
        match self.ask(0.0)?[..] {
            [grids, at_s] => Ok((grids, at_s)),
            _ => Err("a client printed no count".into()),
        }
    }
}

// ---- the client ------------------------------------------------------------------------------------------------------

/// What a client has on the device.
struct Session {
    connection: Connection,
    function: u64,
    /// Where kernels write what they are told, a number for each stream.
    out: u64,
}

type Failure = Box<dyn std::error::Error>;

fn be_client(part: Part, worker: &str) -> Result<(), String> {
    let session = Session::open(connect(worker)?).map_err(|why| why.to_string())?;
    session.act(part).map_err(|why| why.to_string())
}

impl Session {
    fn open(connection: Connection) -> Result<Self, Failure> {
        let function = load_kernel(&connection)?;
        let size = COUNTED_STREAMS * u64::SIZE as u64;
        let out = connection.ask(&op::Malloc { size, flags: 0 })?.device_ptr;
        Ok(Self { connection, function, out })
    }

    fn act(&self, part: Part) -> Result<(), Failure> {
        let origin = Instant::now();
        let reading = match part {
            Part::Victim => 0,
            Part::Hog => {
                for _ in 0..GRIDS {
                    self.launch(self.stream()?, HUGE_GROUPS, 0, 0)?;
                }
                0
            }
            Part::Busy => {
                let streams = (0..COUNTED_STREAMS).map(|_| self.stream()).collect::<Result<Vec<_>, _>>()?;
                for number in 1..=COUNTED_GRIDS {
                    for (index, stream) in (0..).zip(&streams) {
                        self.launch(*stream, COUNTED_GROUPS, index, number)?;
                    }
                }
                self.stream()?
            }
        };
        self.connection.ask(&op::Ping {})?;
        while part == Part::Busy && self.begun(reading)? == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        say!("0");
        for line in std::io::stdin().lock().lines() {
            let time = Duration::try_from_secs_f64(line?.trim().parse()?)?;
            if part == Part::Busy {
                let begun = self.begun(reading)?;
                say!("{begun} {}", origin.elapsed().as_secs_f64());
                continue;
            }
            let small = || {
                self.launch(0, 1, 0, 0)?;
                self.connection.ask(&op::DeviceSynchronize {}).map_err(Failure::from)
            };
            let measured = Latencies::of_calls(time, || small().map(drop).map_err(|why| why.to_string()))?;
            let Percentiles { p50, p99, p999, max } = measured.percentiles();
            say!("{p50} {p99} {p999} {max}");
        }
        Ok(())
    }

    fn stream(&self) -> Result<u64, Failure> {
        Ok(self.connection.ask(&op::StreamCreate { flags: NON_BLOCKING, priority: 0 })?.stream)
    }

    /// Launches a grid of so many groups, each of which writes the number to the place with this index.
    fn launch(&self, stream: u64, groups: u32, index: u64, number: u64) -> Result<(), Failure> {
        let place = self.out + index * u64::SIZE as u64;
        let (one, args) = launch_adding(self.function, place, [number, 0, 0, 0, 0]);
        let launch = LaunchKernel { grid_dim_x: groups, stream, ..one };
        Ok(self.connection.tell_with(&launch, Extra { tail: &args, ..Extra::default() })?)
    }

    /// Returns how many of the grids have begun.
    fn begun(&self, stream: u64) -> Result<u64, Failure> {
        let mut numbers = [0; COUNTED_STREAMS as usize * u64::SIZE];
        let size = numbers.len() as u64;
        let copy = op::Memcpy { dst: 0, src: self.out, size, kind: kind::DEVICE_TO_HOST, stream };
        self.connection.read(&copy, Extra::default(), &mut numbers)?;
        let (numbers, _) = numbers.as_chunks::<{ u64::SIZE }>();
        Ok(numbers.iter().map(|number| u64::from_le_bytes(*number)).sum())
    }
}
