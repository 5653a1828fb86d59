//! The options that the transport benchmarks share, and the worker that they describe.

use super::peers::Peers;
use super::place::{Core, Place};
use super::process::Process;
use super::report::{Figure, Goal, Report, Unit};
use super::rounds::Rounds;
use super::transport::Transport;
use clap::Args;
use clap::builder::PossibleValuesParser;
use hipr_worker::Io;

/// The worker, its transport, and how long it is measured.
#[derive(Debug, Args)]
pub(crate) struct Setup {
    /// The worker's device: null (computes nothing) or sim (the emulated MI300X).
    #[arg(long, value_name = "DEVICE", default_value = "null", value_parser = PossibleValuesParser::new(["null", "sim"]))]
    pub(crate) device: String,
    /// Event loops: mio, uring or auto. Several, separated by commas, are measured in turns, each with its own worker.
    #[arg(long, value_name = "LOOPS", default_value = "auto", value_delimiter = ',')]
    pub(crate) io: Vec<Io>,
    /// How client and worker are connected.
    #[arg(long, value_name = "TRANSPORT", default_value_t = Transport::Tcp)]
    pub(crate) transport: Transport,
    /// Where the worker executes requests: inline (on the loop's thread), thread (on its own) or auto.
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

/// Returns the first loop's `subjects`, with which another loop's are compared; `None` for the first loop itself.
pub(crate) fn first_loop<'s, T>(
    workers: &[(String, Process)],
    subjects: &'s [T],
    index: usize,
) -> Option<(String, &'s T)> {
    let (io, _) = workers.first().filter(|_| index > 0)?;
    Some((format!("the same with io {io}"), subjects.first()?))
}

/// Returns figures of the workers' peak resident memory.
///
/// # Errors
/// One has ended.
pub(crate) fn memory(workers: &[(String, Process)], goal: Goal) -> Result<Vec<Figure>, String> {
    let figure = |(io, worker): &(String, Process)| {
        let most = worker.resident_max_bytes()?;
        Ok(Figure::new(format!("peak memory of the worker, io {io}"), Unit::Bytes, &[most as f64], goal))
    };
    workers.iter().map(figure).collect()
}

/// The processes that a benchmark measures.
pub(crate) struct Scene {
    /// A worker for each event loop, with the loop's name.
    pub(crate) workers: Vec<(String, Process)>,
    /// The processes that the workers are compared with.
    pub(crate) peers: Peers,
    /// The core of all of them; `None` for any.
    pub(crate) core: Option<Core>,
    place: Place,
}

impl Setup {
    /// Starts all processes, and moves this process to its core.
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

    /// Creates a report with the options of the run.
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

    /// Returns whether goals apply: only with the null device over loopback TCP.
    pub(crate) fn has_goals(&self) -> bool {
        self.device == "null" && self.transport == Transport::Tcp
    }
}
