//! `hipr worker`: serves a GPU to clients until a signal arrives.

mod access;
mod audit;
mod borrowing;
mod cache;
mod device_time;
mod ledger;
mod limits;
mod memory_books;
pub(crate) mod metrics;
mod peers;
mod pending;
mod records;
mod report;
mod sandbox;
mod session;
mod supervisor;

use crate::device::{self, DeviceChoice, DeviceKind, HsaKind};
use crate::library;
use crate::output::say;
use crate::sim::Sim;
use access::Access;
pub(crate) use access::{INVITATION, invitation_url, invite, key_file};
use audit::AuditFile;
use cache::Cache;
use clap::{Args, ValueEnum};
use device_time::DeviceTime;
use hipr_device::Device;
use hipr_io::{Audit, WorkerIdentity};
use hipr_io_shm::RING_BYTES;
pub(crate) use hipr_tls::Size;
use hipr_worker::device::null::Null;
use hipr_worker::{Address, Capabilities, Config, DispatchOn, Io};
use limits::Limits;
use metrics::Metrics;
use peers::PeerOptions;
use records::Records;
use sandbox::{Reach, Sandbox};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::convert::Infallible;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::thread;
use supervisor::{Plan, Supervisor};
use tracing::info;

/// Options of `hipr worker`. Of an option that is given more than once, the last counts.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct Worker {
    /// Address to listen on: ADDR:PORT (port 0 takes a free one), unix:PATH, or shm:PATH (shared memory for clients on this
    /// machine).
    #[arg(long, value_name = "ADDRESS", default_value_t = Address::new("127.0.0.1"), value_parser = address)]
    listen: Address,
    /// Event loop: mio, uring, or auto (io_uring if it is available).
    #[arg(long, value_name = "LOOP", default_value_t = Io::Auto)]
    io: Io,
    /// Thread that executes requests: inline (the event loop's), thread (one of its own), or auto (its own for a real GPU,
    /// whose driver may block).
    #[arg(long, value_name = "WHERE", default_value_t = DispatchOn::Auto)]
    dispatch: DispatchOn,
    /// Device: hip (the GPUs of AMD's HIP runtime), sim (the emulated GPU), null (accepts everything, computes
    /// nothing), or auto (a real GPU if there is one, else the emulated one).
    #[arg(long, value_name = "DEVICE", default_value_t = DeviceKind::Auto)]
    device: DeviceKind,
    /// Path of the HIP runtime's library. [default: libamdhip64.so under its usual names, where the system finds it]
    #[arg(long, value_name = "PATH")]
    hip_library: Option<PathBuf>,
    /// What is below the HIP runtime, for --device hip: system (the machine's HSA library and its GPUs) or emulated (hipr's own HSA
    /// library, which emulates GPUs; HIPR_SIM_DEVICES says which).
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = HsaKind::System)]
    hsa: HsaKind,
    /// Microseconds for which an idle worker polls shared memory before it sleeps.
    #[arg(long, value_name = "N", default_value_t = hipr_worker::IoConfig::default().spin_us)]
    spin_us: u64,
    /// Whether each session runs in a process of its own. [default: process for a real GPU, else none]
    #[arg(long, value_name = "HOW")]
    isolate: Option<Isolation>,
    #[command(flatten)]
    sim: Sim,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    access: Access,
    /// Appends a record of each session's begin and end, and of clients that are refused, to this file: one JSON object a line.
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// Address at which Prometheus reads metrics over HTTP (/metrics), and others whether the worker lives (/healthz) and takes
    /// sessions (/readyz): ADDR:PORT, or PORT on loopback. Who reaches it needs no key.
    #[arg(long, value_name = "ADDR:PORT", value_parser = metrics::address)]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    cache: Cache,
    #[command(flatten)]
    peers: PeerOptions,
    #[command(flatten)]
    sandbox: Sandbox,
    /// Milliseconds that a session's process may take to release its resources before it is killed.
    #[arg(long, value_name = "MS", default_value_t = 30_000)]
    release_timeout_ms: u64,
    /// Prints which device would be served.
    #[arg(long, hide = true)]
    probe: bool,
    /// Serves the client on standard input, for the supervisor with this process id.
    #[arg(long, hide = true, value_name = "PID")]
    session_of: Option<i32>,
    /// Folder in which the sessions' processes exchange what they share.
    #[arg(long, hide = true, value_name = "FOLDER")]
    exchange: Option<PathBuf>,
}

/// Whether each session runs in a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Isolation {
    /// Each session has a process of its own: a GPU fault, a crash or lack of memory ends one session only.
    Process,
    /// All sessions share one process.
    None,
}

fn address(text: &str) -> Result<Address, Infallible> {
    Ok(Address::new(text))
}

impl Worker {
    /// Returns the chosen device's options.
    fn device_choice(&self) -> DeviceChoice {
        let (hip_library, exchange) = (self.hip_library.clone(), self.exchange.clone());
        let is_one_session = false;
        DeviceChoice {
            kind: self.device,
            hip_library,
            hsa: self.hsa,
            exchange,
            is_one_session,
            sim: self.sim,
        }
    }

    /// Returns what the process of a session needs of the machine.
    fn reach(&self) -> Reach {
        // A runtime is found beside its name, and its own libraries beside the file.
        let file = self.hip_library.as_deref().and_then(|path| path.canonicalize().ok());
        let hsa = (self.hsa == HsaKind::Emulated).then(|| library::HSA.find().ok()).flatten();
        let library = [self.hip_library.as_deref(), file.as_deref(), hsa.as_deref()];
        let folders = library.into_iter().flatten().filter_map(Path::parent).map(Path::to_owned);
        let (keys, changed) = self.access.files();
        let program = std::env::current_exe().ok();
        Reach {
            read: folders.chain(program).chain(keys).collect(),
            change: changed,
            exchange: self.exchange.clone(),
            own: [Some(std::env::temp_dir()), self.cache.folder()].into_iter().flatten().collect(),
            has_gpu: self.device == DeviceKind::Hip,
            has_uring: self.io == Io::Uring,
        }
    }

    /// Returns whether several sessions may have a bound for their memory: all of them, or those of a tenant.
    fn may_lend_memory(&self) -> bool {
        self.limits.memory_total_bytes().is_some() || self.access.has_identity()
    }

    /// Opens the record of sessions, if one is wanted.
    ///
    /// # Errors
    /// Its file cannot be opened.
    fn audit_file(&self) -> Result<Option<Arc<AuditFile>>, String> {
        let has_identity = self.access.has_identity();
        self.audit.as_deref().map(|path| AuditFile::open(path, &self.listen, has_identity)).transpose()
    }

    /// Serves metrics of a worker with so many seats, if they are wanted.
    ///
    /// # Errors
    /// The address cannot be used.
    fn serve_metrics(&self, seats: usize) -> Result<Option<Arc<Metrics>>, String> {
        self.metrics.map(|at| Metrics::serve(at, seats)).transpose()
    }

    /// Returns whether somebody wants to know what happens to sessions.
    fn has_records(&self) -> bool {
        self.audit.is_some() || self.metrics.is_some()
    }

    /// Returns the configuration of a worker with this device, and this identity if it asks for keys.
    fn config(&self, device: Arc<dyn Device>, identity: Option<Arc<WorkerIdentity>>) -> Config {
        let (listen, io, dispatch) = (self.listen.clone(), self.io, self.dispatch);
        let (cache, insecure_no_auth) = (self.cache.config(), self.access.insecure_no_auth());
        let mut config = Config { listen, insecure_no_auth, io, dispatch, cache, ..Config::new(device) };
        config.limits.identity = identity;
        self.limits.apply(&mut config);
        self.access.apply(&mut config.limits);
        config.limits.spin_us = self.spin_us;
        if matches!(self.listen, Address::Shm(_)) {
            config.session.rings_bytes = 2 * u64::from(RING_BYTES);
        }
        config
    }
}

/// Runs the worker on this thread.
pub(crate) fn run(options: Worker) -> Result<ExitCode, String> {
    if let Some(supervisor) = options.session_of {
        return session::serve(&options, supervisor);
    }
    let choice = options.device_choice();
    if choice.hsa == HsaKind::Emulated && choice.kind != DeviceKind::Hip {
        return Err(format!("--hsa emulated goes with --device hip, not with --device {}", choice.kind));
    }
    if options.probe {
        say!("{}", device::open(&choice).map_err(|why| why.to_string())?.name());
        return Ok(ExitCode::SUCCESS);
    }
    options.access.prepare(&options.listen)?;
    // With processes of their own, the runtime is loaded by those that use it and not here.
    let real = matches!(choice.kind, DeviceKind::Auto | DeviceKind::Hip);
    let kind = if real && options.isolate != Some(Isolation::None) {
        match probe()? {
            Some(kind) => kind,
            None => return Ok(ExitCode::FAILURE),
        }
    } else {
        choice.kind
    };
    let default = if kind == DeviceKind::Hip { Isolation::Process } else { Isolation::None };
    match options.isolate.unwrap_or(default) {
        Isolation::Process => supervise(&options, kind),
        Isolation::None => {
            let device = device::open(&DeviceChoice { kind, ..choice }).map_err(|why| why.to_string())?;
            let capabilities = Arc::new(Capabilities::default());
            let identity = options.access.identity(None, None, Some(&capabilities))?;
            let mut config = options.config(device, identity);
            config.peers = options.peers.peers(capabilities)?;
            let audit = options.audit_file()?;
            let metrics = options.serve_metrics(config.limits.connections_max)?;
            let records = Records::new(audit.clone(), metrics.clone());
            config.limits.audit = records.map(|records| records as Arc<dyn Audit>);
            let worker = hipr_worker::Worker::bind(config).map_err(|why| why.to_string())?;
            metrics.iter().for_each(|metrics| metrics.read_worker(worker.stats()));
            announce(&worker.local_addr());
            options.access.announce(&worker.local_addr())?;
            let served = serve(worker, metrics);
            audit.iter().for_each(|audit| audit.close());
            served.map(|()| end(kind))
        }
    }
}

/// Prints the address on standard output, for a caller that chose port 0.
fn announce(local_addr: &Address) {
    say!("listening on {local_addr}");
}

/// Returns the device that `auto` chooses, found by a process that ends at once; `None` if there is none, which that
/// process has reported.
fn probe() -> Result<Option<DeviceKind>, String> {
    let command = &mut session::again(["--probe".into()]);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|why| format!("cannot look for a GPU: {why}"))?;
    if output.status.success() {
        let name = String::from_utf8_lossy(&output.stdout);
        return name.trim().parse().map(Some).map_err(|why| format!("cannot look for a GPU: {why}"));
    }
    match output.status.code() {
        Some(_) => Ok(None),
        None => {
            Err(format!("looking for a GPU crashed the HIP runtime: {}", session::describe(output.status)))
        }
    }
}

/// Serves until a signal arrives: the first one closes connections and releases sessions, the second ends the process at
/// once.
fn serve(worker: hipr_worker::Worker, metrics: Option<Arc<Metrics>>) -> Result<(), String> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|why| format!("cannot handle signals: {why}"))?;
    let stopper = worker.stopper();
    thread::spawn(move || {
        let mut stopped = false;
        for signal in signals.forever() {
            if std::mem::replace(&mut stopped, true) {
                signal_hook::low_level::exit(128 + signal);
            }
            metrics.iter().for_each(|metrics| metrics.drain());
            stopper.stop();
        }
    });
    worker.run().map_err(|why| why.to_string())
}

/// Returns the exit code of a process that has served `kind`. A process with a HIP runtime ends here instead, without exit
/// handlers: the runtime's waits for the kernels on the GPU, and one of them may never end.
fn end(kind: DeviceKind) -> ExitCode {
    match kind {
        DeviceKind::Hip => signal_hook::low_level::exit(0),
        _ => ExitCode::SUCCESS,
    }
}

/// Returns the number of threads that the emulated GPU has in each process.
fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

fn supervise(options: &Worker, kind: DeviceKind) -> Result<ExitCode, String> {
    options.sandbox.check()?;
    options.cache.check_for_processes()?;
    if options.io == Io::Uring {
        // Said here, once, instead of in each session.
        let config =
            Config { listen: "127.0.0.1:0".into(), cache: None, ..options.config(Arc::new(Null), None) };
        hipr_worker::Worker::bind(config).map_err(|why| why.to_string())?;
    }
    let exchange = tempfile::Builder::new()
        .prefix("hipr-worker-")
        .tempdir()
        .map_err(|why| format!("cannot create the folder for what sessions share: {why}"))?;
    let exchange_args = ["--exchange".into(), exchange.path().into()];
    let limits = hipr_worker::IoConfig::default();
    let has_identity = options.access.has_identity();
    let device_time = session::shares_time(kind).then(|| DeviceTime::start(threads(), has_identity));
    let device_time = device_time
        .transpose()
        .map_err(|why| format!("cannot share the emulated GPU's time among sessions: {why}"))?;
    let (audit, metrics) = (options.audit_file()?, options.serve_metrics(options.limits.processes_max())?);
    let plan = Plan {
        listen: options.listen.clone(),
        has_identity,
        insecure_no_auth: options.access.insecure_no_auth(),
        sessions_max: options.limits.processes_max(),
        sessions_per_address_max: options.limits.per_address_max(),
        connections_per_second: options.limits.connections_per_second(),
        memory_total_bytes: options.limits.memory_total_bytes(),
        may_lend_memory: options.may_lend_memory(),
        first_message_timeout_ms: limits.first_message_timeout_ms,
        limits: limits.protocol,
        session_args: ["--device", kind.name()]
            .map(OsString::from)
            .into_iter()
            .chain(exchange_args)
            .collect(),
        exchange: exchange.path().to_path_buf(),
        records: Records::new(audit.clone(), metrics.clone()),
        metrics,
        device_time,
    };
    let sessions_max = plan.sessions_max;
    let metrics = plan.metrics.clone();
    let supervisor = Supervisor::bind(plan).map_err(|why| why.to_string())?;
    metrics.iter().for_each(|metrics| metrics.read_processes());
    let local_addr = supervisor.local_addr();
    announce(&local_addr);
    options.access.announce(&local_addr)?;
    info!(%local_addr, device = kind.name(), sessions_max, "serving with a process for each session");
    let served = supervisor.run().map(|()| ExitCode::SUCCESS).map_err(|why| why.to_string());
    audit.iter().for_each(|audit| audit.close());
    served
}
