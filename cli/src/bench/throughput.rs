//! `hipr bench launch`, `h2d` and `d2h`: launches and bytes per second.

use super::peers::Peers;
use super::place::Place;
use super::program::{Api, LAUNCH_BYTES, Program, Task};
use super::raw::{self, bytes_per_second};
use super::report::{Figure, Goal, Report, Unit};
use super::rounds::Subject;
use super::setup::{Setup, first_loop, memory};
use super::transport::Transport;
use crate::worker::Size;
use clap::Args;
use std::time::Duration;

/// Options of `hipr bench launch`.
#[derive(Debug, Args)]
pub(crate) struct Launch {
    /// APIs: the Rust API, the C API in a process of its own, or both, separated by a comma.
    #[arg(long = "client", value_name = "APIS", default_value = "rust", value_delimiter = ',')]
    apis: Vec<Api>,
    #[command(flatten)]
    setup: Setup,
}

/// Options of `hipr bench h2d` and `hipr bench d2h`.
#[derive(Debug, Args)]
pub(crate) struct Copy {
    /// Size of a copy in bytes.
    #[arg(long, value_name = "SIZE", default_value_t = Size(64 << 20), value_parser = copy_size)]
    size: Size,
    #[command(flatten)]
    launch: Launch,
}

fn copy_size(text: &str) -> Result<Size, String> {
    match text.parse()? {
        Size(1..=SIZE_MAX) => text.parse(),
        _ => Err(format!("the size of a copy must be between 1 byte and {}", Size(SIZE_MAX))),
    }
}

/// Maximum size of a copy, which is held in memory more than once.
const SIZE_MAX: u64 = 1 << 30;

/// Goals: launches per second through the Rust API, and their ratio to those of the simple worker.
const LAUNCHES_MIN: f64 = 5e6;
const LAUNCHES_TIMES_MIN: f64 = 7.0;
/// Goal: launches per second through the C API.
const C_LAUNCHES_MIN: f64 = 3e6;
/// Goal: the rate of copies divided by that of a raw stream, or, for shared memory, by that of a copy in memory.
const STREAM_PART_MIN: f64 = 0.9;
const MEMORY_PART_MIN: f64 = 0.6;

/// Size of a write of the raw stream that launches are compared with: what the client coalesces.
const GATHERED_BYTES: usize = hipr_proto::COALESCE_BYTES;
/// Number of such writes between two waits for the other end.
const GATHERED_WRITES: u64 = 512;

/// Measures launches and prints the report.
pub(crate) fn launch(options: &Launch) -> Result<(), String> {
    let buffer = vec![0x5a; GATHERED_BYTES];
    let limit = |peers: &Peers| -> Result<_, String> {
        let mut raw = peers.raw()?;
        let work = move || raw.send(&buffer, GATHERED_WRITES);
        let len = GATHERED_BYTES * GATHERED_WRITES as usize;
        Ok(Subject::new(limited(len, LAUNCH_BYTES as f64, work)))
    };
    let bench = Bench { task: Task::Launch, size_bytes: size_of::<u64>(), unit: Unit::PerSecond };
    let note = format!(
        "A launch has six arguments of 8 bytes: {LAUNCH_BYTES} bytes on the wire. A turn ends with one synchronize."
    );
    bench.run(options, limit, |report| report.notes.push(note))
}

/// Measures copies and prints the report.
pub(crate) fn copy(task: Task, options: &Copy) -> Result<(), String> {
    let setup = &options.launch.setup;
    let size_bytes = usize::try_from(options.size.0).map_err(|why| why.to_string())?;
    let mut host = vec![0x5a; size_bytes];
    let limit = |peers: &Peers| -> Result<_, String> {
        if setup.transport == Transport::Shm {
            let from = vec![0xa5; size_bytes];
            let work = move || {
                raw::copy(&mut host, &from);
                Ok(())
            };
            return Ok(Subject::new(limited(size_bytes, 1.0, work)));
        }
        let mut raw = peers.raw()?;
        Ok(match task {
            Task::D2h => Subject::new(limited(size_bytes, 1.0, move || raw.receive(&mut host))),
            _ => Subject::new(limited(size_bytes, 1.0, move || raw.send(&host, 1))),
        })
    };
    let bench = Bench { task, size_bytes, unit: Unit::BytesPerSecond };
    bench.run(&options.launch, limit, |report| report.set("size", options.size))
}

/// Measures a limit in one turn: repeats `work`, which moves `len_bytes`; returns items of `item_bytes` per second.
fn limited(
    len_bytes: usize,
    item_bytes: f64,
    mut work: impl FnMut() -> Result<(), String>,
) -> impl FnMut(Duration) -> Result<f64, String> {
    move |time| Ok(bytes_per_second(time, len_bytes, &mut work)? / item_bytes)
}

struct Bench {
    task: Task,
    size_bytes: usize,
    unit: Unit,
}

impl Bench {
    fn run<'a>(
        &self,
        options: &Launch,
        limit: impl FnOnce(&Peers) -> Result<Subject<'a>, String>,
        describe: impl FnOnce(&mut Report),
    ) -> Result<(), String> {
        let Launch { apis, setup } = options;
        let scene = setup.scene(Place::Free)?;
        let (workers, peers) = (&scene.workers, &scene.peers);
        let program = |api, address: &str, computes| -> Result<Subject<'a>, String> {
            let (task, mut program) = (self.task, Program::start(api, address, self.size_bytes, computes)?);
            Ok(Subject::new(move |time| program.turn(task, time)))
        };
        let mut subjects = Vec::new();
        for api in apis {
            for (_, worker) in workers {
                subjects.push(program(*api, worker.address(), setup.device == "sim")?);
            }
        }
        subjects.push(program(Api::Rust, peers.contract.address(), false)?);
        subjects.push(limit(peers)?);
        setup.rounds.measure(&mut subjects)?;

        let [own @ .., contract, limit] = subjects.as_slice() else {
            return Err("nothing was measured".into());
        };
        let mut report = setup.report(self.name(), &scene);
        describe(&mut report);
        for (api, subjects) in apis.iter().zip(own.chunks(workers.len())) {
            let (value_goal, limit_goal, contract_goal) = self.goals(*api, setup);
            for (index, ((io, _), subject)) in workers.iter().zip(subjects).enumerate() {
                let own = &subject.samples;
                let name = format!("{}, {}, io {io}", self.what(), api.name());
                let mut figure = Figure::new(name, self.unit, own, value_goal)
                    .compare(self.limit_name(setup, peers), own, &limit.samples, limit_goal)
                    .compare(peers.contract_name(), own, &contract.samples, contract_goal);
                if let Some((name, first)) = first_loop(workers, subjects, index) {
                    figure = figure.compare(name, own, &first.samples, Goal::AtLeast(1.0));
                }
                report.figures.push(figure);
            }
        }
        report.figures.extend(memory(workers, Goal::None)?);
        report.set("client", apis.iter().map(|api| api.name()).collect::<Vec<_>>().join(", "));
        report.print(setup.json)
    }

    fn name(&self) -> &'static str {
        match self.task {
            Task::Launch => "launch",
            Task::H2d => "h2d",
            Task::D2h => "d2h",
        }
    }

    fn what(&self) -> &'static str {
        match self.task {
            Task::Launch => "launches",
            Task::H2d => "host to device",
            Task::D2h => "device to host",
        }
    }

    fn limit_name(&self, setup: &Setup, peers: &Peers) -> String {
        match self.task {
            Task::Launch => format!("{} with the same bytes", peers.raw_name()),
            _ if setup.transport == Transport::Shm => "a copy in memory".into(),
            _ => peers.raw_name(),
        }
    }

    /// Returns the goals of the rate, of its ratio to the limit, and of its ratio to the simple worker.
    fn goals(&self, api: Api, setup: &Setup) -> (Goal, Goal, Goal) {
        let none = (Goal::None, Goal::None, Goal::None);
        match (self.task, api) {
            (Task::Launch, _) if !setup.has_goals() => none,
            (Task::Launch, Api::Rust) => {
                (Goal::AtLeast(LAUNCHES_MIN), Goal::None, Goal::AtLeast(LAUNCHES_TIMES_MIN))
            }
            (Task::Launch, Api::C) => (Goal::AtLeast(C_LAUNCHES_MIN), Goal::None, Goal::None),
            _ if setup.device != "null" => none,
            _ if setup.transport == Transport::Shm => {
                (Goal::None, Goal::AtLeast(MEMORY_PART_MIN), Goal::None)
            }
            _ if setup.has_goals() => (Goal::None, Goal::AtLeast(STREAM_PART_MIN), Goal::None),
            _ => none,
        }
    }
}
