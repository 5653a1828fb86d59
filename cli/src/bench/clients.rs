//! `hipr bench clients`: many connections at once, each with small calls of all kinds.

mod connection;
mod mix;

use super::latency::{self, Latencies, Percentiles};
use super::peers::Peers;
use super::process::Process;
use super::report::{Figure, Goal, Unit};
use super::rounds::Subject;
use super::setup::{Setup, Transport, first_loop, memory};
use clap::Args;
use connection::{Client, Done};
use mio::{Events, Interest, Poll, Token};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

/// Options of `hipr bench clients`.
#[derive(Debug, Args)]
pub(crate) struct Clients {
    /// Connections at once.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(2..))]
    connections: u32,
    #[command(flatten)]
    setup: Setup,
}

/// Calls under way on the one connection that many are compared with: the best of these counts.
const DEPTHS: [usize; 3] = [1, 16, 128];
/// With many connections the throughput is at least that part of the best single one's.
const SINGLE_PART_MIN: f64 = 0.5;
/// The 99th percentile is at most so many medians.
const MEDIANS_MAX: f64 = 20.0;
/// Bytes of a worker's memory: with nothing to do, and for each connection.
const MEMORY_BYTES: f64 = (32 << 20) as f64;
const MEMORY_OF_CONNECTION_BYTES: f64 = (64 << 10) as f64;
/// Bytes that are read at a time.
const READ_BYTES: usize = 64 << 10;
/// An answer that takes longer never comes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// What a turn gave.
struct Sample {
    /// Requests a second.
    rate: f64,
    latency: Percentiles,
    /// Answers on the connection that got the fewest, as a part of what each would have got.
    least_served: f64,
}

/// Measures and prints.
pub(crate) fn run(options: &Clients) -> Result<(), String> {
    let setup = &options.setup;
    if setup.transport == Transport::Shm {
        return Err("many connections are measured over sockets: --transport tcp or unix".into());
    }
    raise_open_files()?;
    let count = usize::try_from(options.connections).map_err(|why| why.to_string())?;
    let workers = setup.workers()?;
    let peers = Peers::start(setup.transport)?;
    let crowd = |process: &Process, count, depth| -> Result<Subject<'_, Sample>, String> {
        let mut crowd = Crowd::connect(process.address(), count, depth)?;
        Ok(Subject::new(move |time| crowd.turn(time)))
    };
    let (mut many, mut single) = (Vec::new(), Vec::new());
    for (_, worker) in &workers {
        many.push(crowd(worker, count, 1)?);
        single.push(DEPTHS.map(|depth| crowd(worker, 1, depth)).into_iter().collect::<Result<Vec<_>, _>>()?);
    }
    let mut contract = crowd(&peers.contract, count, 1)?;
    let subjects = many.iter_mut().chain(single.iter_mut().flatten()).chain([&mut contract]);
    setup.rounds.measure(subjects)?;

    let goal = |goal| if setup.has_goals() { goal } else { Goal::None };
    let mut report = setup.report("clients");
    report.set("connections", count);
    report.notes.push(format!("The calls: {}.", mix::DESCRIPTION));
    report.notes.push(
        "One client thread has all connections. A latency lasts from the call until the thread has its answer.".into(),
    );
    for (index, ((io, _), (subject, single))) in workers.iter().zip(many.iter().zip(&single)).enumerate() {
        let own = column(subject, |sample| sample.rate);
        let figure = Figure::new(
            format!("requests of {count} connections, io {io}"),
            Unit::PerSecond,
            &own,
            Goal::None,
        );
        let mut figure = match best(single) {
            Some((depth, rates)) => {
                let name = format!("one connection, {depth} calls under way");
                figure.compare(name, &own, &rates, goal(Goal::AtLeast(SINGLE_PART_MIN)))
            }
            None => figure,
        };
        figure =
            figure.compare(peers.contract_name(), &own, &column(&contract, |sample| sample.rate), Goal::None);
        if let Some((name, first)) = first_loop(&workers, &many, index) {
            figure = figure.compare(name, &own, &column(first, |sample| sample.rate), Goal::AtLeast(1.0));
        }
        report.figures.push(figure);
        let latencies = |subject| column(subject, |sample: &Sample| sample.latency);
        let own = latencies(subject);
        let contract_latencies = latencies(&contract);
        let others = [(peers.contract_name(), contract_latencies.as_slice(), Goal::None)];
        let name = format!("call among {count} connections, io {io}");
        report.figures.extend(latency::figures(&name, &own, Goal::None, &others));
        let medians = column(subject, |sample| sample.latency.p99 / sample.latency.p50);
        let name = format!("p99 in medians, io {io}");
        report.figures.push(Figure::new(name, Unit::Ratio, &medians, goal(Goal::AtMost(MEDIANS_MAX))));
        let name = format!("least served connection, part of the mean, io {io}");
        report.figures.push(Figure::new(
            name,
            Unit::Ratio,
            &column(subject, |sample| sample.least_served),
            Goal::None,
        ));
    }
    let most = MEMORY_BYTES + MEMORY_OF_CONNECTION_BYTES * f64::from(options.connections);
    report.figures.extend(memory(&workers, goal(Goal::AtMost(most)))?);
    report.print(setup.json)
}

fn column<T>(subject: &Subject<'_, Sample>, of: impl Fn(&Sample) -> T) -> Vec<T> {
    subject.samples.iter().map(of).collect()
}

/// The depth with the greatest median rate, and its rates.
fn best(single: &[Subject<'_, Sample>]) -> Option<(usize, Vec<f64>)> {
    let median = |rates: &[f64]| super::report::Spread::of(rates).median;
    let rates = DEPTHS.into_iter().zip(single.iter().map(|subject| column(subject, |sample| sample.rate)));
    rates.max_by(|(_, a), (_, b)| median(a).total_cmp(&median(b)))
}

/// As many connections as the system allows.
fn raise_open_files() -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
        .map_err(|why| format!("cannot raise the limit of open files: {why}"))
}

/// Connections on one thread.
struct Crowd {
    poll: Poll,
    events: Events,
    clients: Vec<Client>,
    /// Calls under way on each.
    depth: usize,
    buffer: Vec<u8>,
}

impl Crowd {
    fn connect(address: &str, count: usize, depth: usize) -> Result<Self, String> {
        let failed = |why: io::Error| format!("cannot watch sockets: {why}");
        let poll = Poll::new().map_err(failed)?;
        let mut clients = Vec::with_capacity(count);
        for index in 0..count {
            let mut client =
                Client::connect(address, index as u64).map_err(|why| format!("connection {index}: {why}"))?;
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(&mut client.socket, Token(index), interest).map_err(failed)?;
            clients.push(client);
        }
        Ok(Self { poll, events: Events::with_capacity(1024), clients, depth, buffer: vec![0; READ_BYTES] })
    }

    fn turn(&mut self, time: Duration) -> Result<Sample, String> {
        self.serve(time).map_err(|why| format!("a connection is lost: {why}"))
    }

    /// Keeps `depth` calls under way on each connection for that long, then takes the answers that are missing.
    fn serve(&mut self, time: Duration) -> io::Result<Sample> {
        let start = Instant::now();
        let mut tally = Tally::new(self.clients.len())?;
        for client in &mut self.clients {
            for _ in 0..self.depth {
                client.call(Instant::now())?;
            }
            client.transmit()?;
        }
        let mut under_way = self.clients.len() * self.depth;
        while under_way > 0 {
            match self.poll.poll(&mut self.events, Some(ANSWER_TIMEOUT)) {
                Err(why) if why.kind() == ErrorKind::Interrupted => continue,
                result => result?,
            }
            if self.events.is_empty() {
                return Err(io::Error::new(ErrorKind::TimedOut, "answers do not come"));
            }
            for event in &self.events {
                let Some(client) = self.clients.get_mut(event.token().0) else { continue };
                let answered = client.receive(&mut self.buffer, |done| tally.note(event.token().0, done))?;
                let is_over = start.elapsed() >= time;
                under_way -= answered;
                for _ in 0..answered {
                    if !is_over {
                        client.call(Instant::now())?;
                        under_way += 1;
                    }
                }
                client.transmit()?;
            }
        }
        Ok(tally.sample(start.elapsed()))
    }
}

/// What has been answered in a turn.
struct Tally {
    latencies: Latencies,
    requests: u64,
    answers: Vec<u64>,
}

impl Tally {
    fn new(connections: usize) -> io::Result<Self> {
        let latencies = Latencies::new().map_err(io::Error::other)?;
        Ok(Self { latencies, requests: 0, answers: vec![0; connections] })
    }

    fn note(&mut self, connection: usize, done: Done) {
        self.latencies.record(done.latency);
        self.requests += done.requests;
        if let Some(answers) = self.answers.get_mut(connection) {
            *answers += 1;
        }
    }

    fn sample(&self, time: Duration) -> Sample {
        let mean = self.answers.iter().sum::<u64>() as f64 / self.answers.len() as f64;
        let least = self.answers.iter().min().copied().unwrap_or(0);
        Sample {
            rate: self.requests as f64 / time.as_secs_f64(),
            latency: self.latencies.percentiles(),
            least_served: least as f64 / mean,
        }
    }
}
