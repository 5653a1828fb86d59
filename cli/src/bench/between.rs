//! `hipr bench between`: copies from worker to worker, beside a raw stream between two processes and beside copies through the program.

use super::peers::Peers;
use super::process::Process;
use super::program::rate;
use super::raw::{Raw, bytes_per_second};
use super::report::{Figure, Goal, Report, Unit};
use super::rounds::{Rounds, Subject};
use super::transport::Transport;
use crate::worker::Size;
use clap::Args;
use hipr_client::{ConnectOptions, Connection, CopyEnd, Extra, WorkerAddress};
use hipr_proto::op::{self, kind};
use std::time::Duration;

/// Goal: the rate of copies divided by that of a raw stream.
const STREAM_PART_MIN: f64 = 0.9;
/// Time within which a worker has to answer.
const CONNECT: Duration = Duration::from_secs(10);

/// Options of `hipr bench between`.
#[derive(Debug, Args)]
pub(crate) struct Between {
    /// Size of a copy.
    #[arg(long, value_name = "SIZE", default_value = "256M")]
    size: Size,
    /// The workers, the source's first, with a comma between them. [default: two workers with emulated GPUs on this machine]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    workers: Vec<String>,
    /// With --workers: where `hipr bench peer raw --listen ADDR:PORT` runs beside the worker of the source, for the raw stream.
    #[arg(long, value_name = "ADDR:PORT", requires = "workers")]
    raw: Option<String>,
    #[command(flatten)]
    rounds: Rounds,
    /// Prints the report as JSON.
    #[arg(long)]
    json: bool,
}

/// A session, and memory of its worker's first device.
struct Side {
    connection: Connection,
    memory: u64,
}

impl Side {
    fn open(address: &str, number: u32, size: usize) -> Result<Self, String> {
        let options = ConnectOptions { part: Some((number, 2)), ..ConnectOptions::default() };
        let connection = Connection::connect_with(&WorkerAddress::new(address), CONNECT, options)
            .map_err(|why| why.to_string())?;
        let size = size as u64;
        let made = || {
            let memory = connection.ask(&op::Malloc { size, flags: 0 })?.device_ptr;
            // Not zero: pages that were never written are cheaper to read than a program's.
            connection.ask(&op::Memset { dst: memory, value: 0x5a, size, stream: 0 })?;
            connection.ask(&op::DeviceSynchronize {}).map(|()| memory)
        };
        let memory = made().map_err(|why| why.to_string())?;
        Ok(Self { connection, memory })
    }

    fn end(&self, size: usize) -> CopyEnd {
        let size = size as u64;
        CopyEnd { address: self.memory, pitch: size, slice: size, stream: 0 }
    }

    /// Returns how many bytes the connection has carried.
    fn carried_bytes(&self) -> u64 {
        let stats = self.connection.stats();
        stats.bytes_sent + stats.bytes_received
    }
}

/// Measures copies and prints the report.
pub(crate) fn run(options: &Between) -> Result<(), String> {
    let size = usize::try_from(options.size.0).map_err(|why| why.to_string())?;
    let worker = || Process::server(&["worker", "--device", "sim"], Transport::Tcp, None);
    let (own, peers) = match options.workers.as_slice() {
        [] => (vec![worker()?, worker()?], Some(Peers::start(Transport::Tcp, None)?)),
        _ => (Vec::new(), None),
    };
    let here: Vec<_> = own.iter().map(|worker| worker.address().to_owned()).collect();
    let addresses = if own.is_empty() { &options.workers } else { &here };
    let [from, to] = addresses.as_slice() else { return Err("--workers wants two addresses".into()) };
    let (from, to) = (Side::open(from, 0, size)?, Side::open(to, 1, size)?);

    let direct = || {
        let (dst, src) = (to.end(size), from.end(size));
        let copied = to.connection.copy_from(&dst, &from.connection, &src, [size as u64, 1, 1]);
        match copied.map_err(|why| why.to_string())? {
            true => Ok(()),
            false => Err("these workers do not copy to each other; their logs say why".to_owned()),
        }
    };
    direct()?;
    let before = from.carried_bytes() + to.carried_bytes();
    direct()?;
    let through = from.carried_bytes() + to.carried_bytes() - before;

    let (mut bytes, mut host) = (vec![0; size], vec![0; size]);
    let mut subjects = vec![Subject::new(|time| rate(time, size as f64, direct, || Ok(())))];
    subjects.push(Subject::new(|time| {
        let (read, write) = (
            op::Memcpy { dst: 0, src: from.memory, size: size as u64, kind: kind::DEVICE_TO_HOST, stream: 0 },
            op::Memcpy { dst: to.memory, src: 0, size: size as u64, kind: kind::HOST_TO_DEVICE, stream: 0 },
        );
        let mut copy = || {
            from.connection.read(&read, Extra::default(), &mut bytes)?;
            to.connection.ask_with(&write, Extra { inline: &bytes, ..Extra::default() }).map(drop)
        };
        rate(time, size as f64, &mut copy, || Ok(())).map_err(|why: hipr_client::CallError| why.to_string())
    }));
    let raw = match (&peers, &options.raw) {
        (Some(peers), _) => Some(peers.raw()?),
        (None, Some(address)) => Some(Raw::connect(address)?),
        (None, None) => None,
    };
    if let Some(mut raw) = raw {
        let host = &mut host;
        subjects.push(Subject::new(move |time| bytes_per_second(time, size, || raw.receive(host))));
    }
    options.rounds.measure(&mut subjects)?;

    let mut report = Report::new("between", &options.rounds);
    report.set("size", options.size);
    report.notes.push(format!("A copy takes {through} bytes of the program's connections."));
    let [direct, by_program, limit @ ..] = subjects.as_slice() else {
        return Err("nothing was measured".into());
    };
    let own = &direct.samples;
    let mut figure = Figure::new("worker to worker", Unit::BytesPerSecond, own, Goal::None);
    if let [limit] = limit {
        figure = figure.compare("raw tcp stream", own, &limit.samples, Goal::AtLeast(STREAM_PART_MIN));
    }
    report.figures.push(figure.compare("through the program", own, &by_program.samples, Goal::None));
    report.print(options.json)
}
