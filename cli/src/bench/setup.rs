//! What is measured: the options that the benchmarks of the transport share, and the worker that they describe.

use super::peers::Peers;
use super::place::{Core, Place};
use super::process::Process;
use super::report::{Figure, Goal, Report, Unit};
use super::rounds::Rounds;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use hipr_worker::Io;
use std::fmt;

/// The worker, how it is reached, and how long it is measured.
#[derive(Debug, Args)]
pub(crate) struct Setup {
    /// The worker's device: null (computes nothing) or sim (the emulated MI300X).
    #[arg(long, value_name = "DEVICE", default_value = "null", value_parser = PossibleValuesParser::new(["null", "sim"]))]
    pub(crate) device: String,
    /// Event loops: mio, uring, auto; of several, separated by commas, each has a worker and its turns.
    #[arg(long, value_name = "LOOPS", default_value = "auto", value_delimiter = ',')]
    pub(crate) io: Vec<Io>,
    /// How client and worker are connected.
    #[arg(long, value_name = "TRANSPORT", default_value_t = Transport::Tcp)]
    pub(crate) transport: Transport,
    /// Where the worker carries requests out: inline (in the loop's thread), thread (in one of its own), auto.
    #[arg(long, value_name = "WHERE", value_parser = PossibleValuesParser::new(["inline", "thread", "auto"]))]
    pub(crate) dispatch: Option<String>,
    /// How client and worker share the cores: free, apart (one each), together (the same). [default: apart for rtt, else
    /// free]
    #[arg(long, value_name = "HOW")]
    place: Option<Place>,
    #[command(flatten)]
    pub(crate) rounds: Rounds,
    /// Prints one JSON document instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How client and worker are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// TCP over loopback.
    Tcp,
    /// A Unix socket.
    Unix,
    /// Rings in shared memory.
    Shm,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
            Self::Shm => "shm",
        })
    }
}

impl Transport {
    /// Where plain sockets do what this does: rings have none.
    pub(crate) fn socket(self) -> Self {
        if self == Self::Shm { Self::Unix } else { self }
    }
}

/// What another event loop's figures are compared with in the same run: the first loop's `subjects`. None for the first.
pub(crate) fn first_loop<'s, T>(
    workers: &[(String, Process)],
    subjects: &'s [T],
    index: usize,
) -> Option<(String, &'s T)> {
    let (io, _) = workers.first().filter(|_| index > 0)?;
    Some((format!("the same, io {io}"), subjects.first()?))
}

/// Bytes of memory that the workers had resident at most.
///
/// # Errors
/// One has ended.
pub(crate) fn memory(workers: &[(String, Process)], goal: Goal) -> Result<Vec<Figure>, String> {
    let figure = |(io, worker): &(String, Process)| {
        let most = worker.resident_max_bytes()?;
        Ok(Figure::new(format!("memory of the worker at most, io {io}"), Unit::Bytes, &[most as f64], goal))
    };
    workers.iter().map(figure).collect()
}

/// The processes that a benchmark measures.
pub(crate) struct Scene {
    /// A worker for each event loop, with the loop's name.
    pub(crate) workers: Vec<(String, Process)>,
    /// What they are compared with.
    pub(crate) peers: Peers,
    /// The core of all of them; `None` where it is any.
    pub(crate) core: Option<Core>,
    place: Place,
}

impl Setup {
    /// Starts everything, and takes this process to its place.
    ///
    /// # Errors
    /// Something does not start.
    pub(crate) fn scene(&self, default_place: Place) -> Result<Scene, String> {
        let place = self.place.unwrap_or(default_place);
        let (own, others) = place.cores()?;
        let workers = self.io.iter().map(|io| Ok((io.to_string(), self.worker(*io, others)?)));
        let workers = workers.collect::<Result<_, String>>()?;
        let peers = Peers::start(self.transport, others)?;
        if let Some(core) = own {
            core.take()?;
        }
        Ok(Scene { workers, peers, core: others, place })
    }

    fn worker(&self, io: Io, core: Option<Core>) -> Result<Process, String> {
        let io = io.to_string();
        let mut args = vec!["worker", "--device", &self.device, "--io", &io];
        if let Some(dispatch) = &self.dispatch {
            args.extend(["--dispatch", dispatch]);
        }
        Process::server(&args, self.transport, core)
    }

    /// An empty report that says what was set.
    pub(crate) fn report(&self, bench: &str, scene: &Scene) -> Report {
        let mut report = Report::new(bench, &self.rounds);
        report.set("device", &self.device);
        report.set("io", self.io.iter().map(Io::to_string).collect::<Vec<_>>().join(","));
        report.set("transport", self.transport);
        report.set("dispatch", self.dispatch.as_deref().unwrap_or("auto"));
        report.set("place", scene.place);
        report.notes.push(format!("Client and worker are processes of their own; {}.", scene.place.note()));
        report
    }

    /// Whether this is what goals are given for: the null device, over loopback TCP.
    pub(crate) fn has_goals(&self) -> bool {
        self.device == "null" && self.transport == Transport::Tcp
    }
}
