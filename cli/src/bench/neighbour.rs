//! `hipr bench neighbour`: one client's round trips while another copies.

use super::latency::{self, Latencies, Percentiles};
use super::place::Place;
use super::process::Process;
use super::program::connect;
use super::report::Goal;
use super::rounds::Subject;
use super::setup::{Setup, memory};
use crate::worker::Size;
use clap::Args;
use hipr_client::{CallError, Connection, Extra};
use hipr_proto::op::{self, kind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Options of `hipr bench neighbour`.
#[derive(Debug, Args)]
pub(crate) struct Neighbour {
    /// Bytes that are copied in a turn, in each direction.
    #[arg(long, value_name = "SIZE", default_value_t = Size(8 << 30))]
    size: Size,
    #[command(flatten)]
    setup: Setup,
}

/// Size of one copy in bytes.
const COPY_BYTES: usize = 64 << 20;
/// Goal: a round trip during copies in idle medians, at most.
const IDLE_MEDIANS_MAX: f64 = 3.0;

/// Kinds of copies and their names.
const DIRECTIONS: [(i32, &str); 2] =
    [(kind::HOST_TO_DEVICE, "to the device"), (kind::DEVICE_TO_HOST, "to the host")];

/// Runs the benchmark and prints its report.
pub(crate) fn run(options: &Neighbour) -> Result<(), String> {
    let setup = &options.setup;
    let scene = setup.scene(Place::Free)?;
    let workers = &scene.workers;
    let mut subjects = Vec::new();
    for (_, worker) in workers {
        subjects.push(idle(worker)?);
        for (kind, _) in DIRECTIONS {
            // A turn that is shorter, because it does not count, copies as much less.
            let rate = options.size.0 as f64 / setup.rounds.seconds;
            subjects.push(beside_copies(worker, kind, move |time| (rate * time.as_secs_f64()) as u64)?);
        }
    }
    setup.rounds.measure(&mut subjects)?;

    let goal = if setup.device == "null" { Goal::AtMost(IDLE_MEDIANS_MAX) } else { Goal::None };
    let mut report = setup.report("neighbour", &scene);
    report.set("size", options.size);
    let others = DIRECTIONS.len();
    for ((io, _), subjects) in workers.iter().zip(subjects.chunks(1 + others)) {
        let [idle, beside @ ..] = subjects else { continue };
        report.figures.extend(latency::figures(
            &format!("synchronize, alone, io {io}"),
            &idle.samples,
            Goal::None,
            &[],
        ));
        for ((_, direction), subject) in DIRECTIONS.iter().zip(beside) {
            let name = format!("synchronize beside copies {direction}, io {io}");
            let alone = [("synchronize, alone".to_owned(), idle.samples.as_slice(), goal)];
            report.figures.extend(latency::figures(&name, &subject.samples, Goal::None, &alone));
        }
    }
    report.figures.extend(memory(workers, Goal::None)?);
    report.print(setup.json)
}

fn idle<'a>(worker: &Process) -> Result<Subject<'a, Percentiles>, String> {
    let connection = connect(worker.address())?;
    Ok(Subject::new(move |time| Ok(Latencies::of_calls(time, || synchronize(&connection))?.percentiles())))
}

fn synchronize(connection: &Connection) -> Result<(), String> {
    connection.ask(&op::DeviceSynchronize {}).map_err(|why| why.to_string())
}

fn beside_copies<'a>(
    worker: &Process,
    kind: i32,
    bytes_of_turn: impl Fn(Duration) -> u64 + 'a,
) -> Result<Subject<'a, Percentiles>, String> {
    let (connection, copier) = (connect(worker.address())?, connect(worker.address())?);
    let malloc = op::Malloc { size: COPY_BYTES as u64, flags: 0 };
    let device = copier.ask(&malloc).map_err(|why| why.to_string())?.device_ptr;
    let mut host = vec![0x5a; COPY_BYTES];
    Ok(Subject::new(move |time| {
        let is_over = AtomicBool::new(false);
        let copies = bytes_of_turn(time).div_ceil(COPY_BYTES as u64);
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let copied = (0..copies).try_for_each(|_| copy(&copier, kind, device, &mut host));
                let finished = copied.and_then(|()| copier.ask(&op::DeviceSynchronize {}));
                is_over.store(true, Ordering::Relaxed);
                finished
            });
            let latencies = Latencies::until(|| is_over.load(Ordering::Relaxed), || synchronize(&connection));
            let copied = thread.join().map_err(|_| "the copying thread panicked")?;
            copied.map_err(|why| why.to_string())?;
            Ok(latencies?.percentiles())
        })
    }))
}

fn copy(connection: &Connection, kind: i32, device: u64, host: &mut [u8]) -> Result<(), CallError> {
    let size = host.len() as u64;
    if kind == kind::HOST_TO_DEVICE {
        let copy = op::Memcpy { dst: device, src: 0, size, kind, stream: 0 };
        connection.tell_with(&copy, Extra { inline: host, ..Extra::default() })
    } else {
        connection.read(&op::Memcpy { dst: 0, src: device, size, kind, stream: 0 }, Extra::default(), host)
    }
}
