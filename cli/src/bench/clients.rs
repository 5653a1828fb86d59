//! `hipr bench clients`: many connections at once, each making small calls of all kinds.

mod connection;
mod mix;

use super::latency::{self, Latencies, Percentiles};
use super::place::Place;
use super::process::Process;
use super::report::{Figure, Goal, Spread, Unit};
use super::rounds::Subject;
use super::setup::{Setup, first_loop, memory};
use super::transport::Transport;
use clap::Args;
use connection::{Client, Done};
use mio::{Events, Interest, Poll, Token};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

/// Options of `hipr bench clients`.
#[derive(Debug, Args)]
pub(crate) struct Clients {
    /// Number of connections.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(2..))]
    connections: u32,
    #[command(flatten)]
    setup: Setup,
}

/// Numbers of unanswered calls on each of many connections: a client that waits for every answer, and one that does not.
const DEPTHS: [usize; 2] = [1, 16];
/// Numbers of unanswered calls on the single connection that many are compared with; the best result counts.
const SINGLE_DEPTHS: [usize; 3] = [1, 16, 128];
/// Goal: the throughput of many connections as a part of the best single one's, at least.
const SINGLE_PART_MIN: f64 = 0.5;
/// Goal: the 99th percentile of the latency in medians, at most.
const MEDIANS_MAX: f64 = 20.0;
/// Goal: memory of an idle worker, and of each connection, in bytes.
const MEMORY_BYTES: f64 = (32 << 20) as f64;
const MEMORY_OF_CONNECTION_BYTES: f64 = (64 << 10) as f64;
/// Bytes that are read at a time.
const READ_BYTES: usize = 64 << 10;
/// Time after which a missing answer fails the benchmark.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The result of a turn.
struct Sample {
    /// Requests per second.
    rate: f64,
    latency: Percentiles,
    /// Answers on the connection that got the fewest, divided by the mean.
    least_served: f64,
}

/// Runs the benchmark and prints its report.
pub(crate) fn run(options: &Clients) -> Result<(), String> {
    let setup = &options.setup;
    if setup.transport == Transport::Shm {
        return Err("this benchmark needs sockets: use --transport tcp or unix".into());
    }
    raise_open_files()?;
    let count = usize::try_from(options.connections).map_err(|why| why.to_string())?;
    let scene = setup.scene(Place::Free)?;
    let mut crowds = Vec::new();
    for (_, worker) in &scene.workers {
        crowds.push(Crowds::start(worker, count)?);
    }
    let mut contract = Crowd::subject(&scene.peers.contract, count, 1)?;
    let subjects = crowds.iter_mut().flat_map(|crowds| crowds.many.iter_mut().chain(&mut crowds.single));
    setup.rounds.measure(subjects.chain([&mut contract]))?;

    let goal = |goal| if setup.has_goals() { goal } else { Goal::None };
    let mut report = setup.report("clients", &scene);
    report.set("connections", count);
    report.notes.push(format!("The calls: {}.", mix::DESCRIPTION));
    report.notes.push(
        "One client thread serves all connections. A latency lasts from the call until the thread has read its answer.".into(),
    );
    for (index, ((io, _), own)) in scene.workers.iter().zip(&crowds).enumerate() {
        for (at, (depth, subject)) in DEPTHS.into_iter().zip(&own.many).enumerate() {
            let name = format!("{count} connections, unanswered calls on each: {depth}, io {io}");
            let rates = column(subject, |sample| sample.rate);
            let mut figure = Figure::new(format!("requests, {name}"), Unit::PerSecond, &rates, Goal::None);
            // Many connections that are as far ahead as they like are held against one that is.
            let (best, part_goal) = match own.single.first() {
                Some(single) if depth == 1 => ((1, column(single, |sample| sample.rate)), Goal::None),
                _ => (own.best_single()?, goal(Goal::AtLeast(SINGLE_PART_MIN))),
            };
            figure = figure.compare(
                format!("one connection, unanswered calls: {}", best.0),
                &rates,
                &best.1,
                part_goal,
            );
            if depth == 1 {
                let others = column(&contract, |sample| sample.rate);
                figure = figure.compare(scene.peers.contract_name(), &rates, &others, Goal::None);
            }
            let firsts: Vec<_> = crowds.iter().filter_map(|crowds| crowds.many.get(at)).collect();
            if let Some((name, first)) = first_loop(&scene.workers, &firsts, index) {
                let others = column(first, |sample| sample.rate);
                figure = figure.compare(name, &rates, &others, Goal::AtLeast(1.0));
            }
            report.figures.push(figure);
            let latencies = column(subject, |sample| sample.latency);
            report.figures.extend(latency::figures(&format!("call, {name}"), &latencies, Goal::None, &[]));
            let medians = column(subject, |sample| sample.latency.p99 / sample.latency.p50);
            let medians_goal = goal(Goal::AtMost(MEDIANS_MAX));
            report.figures.push(Figure::new(
                format!("p99 divided by the median, {name}"),
                Unit::Ratio,
                &medians,
                medians_goal,
            ));
            let least = column(subject, |sample| sample.least_served);
            let name = format!("least served connection divided by the mean, {name}");
            report.figures.push(Figure::new(name, Unit::Ratio, &least, Goal::None));
        }
    }
    let most = MEMORY_BYTES + MEMORY_OF_CONNECTION_BYTES * f64::from(options.connections);
    report.figures.extend(memory(&scene.workers, goal(Goal::AtMost(most)))?);
    report.print(setup.json)
}

/// The measured connections of one worker.
struct Crowds<'a> {
    /// Many connections, for each of [`DEPTHS`].
    many: Vec<Subject<'a, Sample>>,
    /// One connection, for each of [`SINGLE_DEPTHS`].
    single: Vec<Subject<'a, Sample>>,
}

impl Crowds<'_> {
    fn start(worker: &Process, count: usize) -> Result<Self, String> {
        let crowds = |count, depths: &[usize]| -> Result<Vec<_>, String> {
            depths.iter().map(|depth| Crowd::subject(worker, count, *depth)).collect()
        };
        Ok(Self { many: crowds(count, &DEPTHS)?, single: crowds(1, &SINGLE_DEPTHS)? })
    }

    /// Returns the number of unanswered calls with the greatest median rate on one connection, and its rates.
    fn best_single(&self) -> Result<(usize, Vec<f64>), String> {
        let rates = self.single.iter().map(|subject| column(subject, |sample| sample.rate));
        let median = |rates: &[f64]| Spread::of(rates).median;
        let best =
            SINGLE_DEPTHS.into_iter().zip(rates).max_by(|(_, a), (_, b)| median(a).total_cmp(&median(b)));
        best.ok_or_else(|| "nothing was measured".into())
    }
}

fn column<T>(subject: &Subject<'_, Sample>, of: impl Fn(&Sample) -> T) -> Vec<T> {
    subject.samples.iter().map(of).collect()
}

/// Raises the limit of open files to what the system allows.
fn raise_open_files() -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
        .map_err(|why| format!("cannot raise the limit of open files: {why}"))
}

/// A number of connections served by one thread.
struct Crowd {
    poll: Poll,
    events: Events,
    clients: Vec<Client>,
    /// Unanswered calls on each connection.
    depth: usize,
    buffer: Vec<u8>,
}

impl Crowd {
    fn subject<'a>(process: &Process, count: usize, depth: usize) -> Result<Subject<'a, Sample>, String> {
        let mut crowd = Self::connect(process.address(), count, depth)?;
        Ok(Subject::new(move |time| crowd.turn(time)))
    }

    fn connect(address: &str, count: usize, depth: usize) -> Result<Self, String> {
        let failed = |why: io::Error| format!("cannot poll sockets: {why}");
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
        self.serve(time).map_err(|why| format!("lost a connection: {why}"))
    }

    /// Keeps `depth` calls unanswered on each connection for `time`, then reads the remaining answers.
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
                return Err(io::Error::new(ErrorKind::TimedOut, "timeout while waiting for answers"));
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

/// Counts of the replies received in a turn.
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
