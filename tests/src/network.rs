//! The commands that put a network between a program and its worker: `proxy` and `distance`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;
use std::{env, fs, io};

use hipr_tests::distance::{self, Measured, PROGRAMS, Program};
use hipr_tests::{Cuts, Flight, Link, Proxy, Traffic, library_folder, start_worker};

/// How long connections may take to end after the program has.
const SETTLES: Duration = Duration::from_secs(10);

/// The network between program and worker.
#[derive(Debug, Clone, Copy, clap::Args)]
struct Network {
    /// Milliseconds that each byte takes in each direction: half of the round-trip time.
    #[arg(long, default_value_t = 0, value_name = "N")]
    delay_ms: u64,
    /// Bandwidth in each direction, in millions of bits per second. [default: unlimited]
    #[arg(long, value_name = "N")]
    mbit_per_s: Option<NonZeroU64>,
}

impl Network {
    fn link(self) -> Link {
        let bits_per_s = self.mbit_per_s.map(|mbit| mbit.saturating_mul(MEGA));
        Link { delay: Duration::from_millis(self.delay_ms), bits_per_s, cuts: None }
    }
}

/// How long a program waits for another connection; without it, not at all for a worker of this machine.
const RESUME_TIMEOUT: &str = "HIPR_RESUME_TIMEOUT_MS";

const MEGA: NonZeroU64 = NonZeroU64::new(1_000_000).expect("not zero");

/// Options of `hipr-tests proxy`.
#[derive(Debug, clap::Args)]
pub(crate) struct Behind {
    #[command(flatten)]
    network: Network,
    /// Address of the worker. [default: one with the emulated GPU is started]
    #[arg(long, value_name = "HOST:PORT")]
    worker: Option<String>,
    /// Where the proxy listens.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "HOST:PORT")]
    listen: SocketAddr,
    /// Cuts each connection when it is this old. Programs go on with their sessions if HIPR_RESUME_TIMEOUT_MS allows it, which `proxy` sets to
    /// 60000 for its program; what passes is not counted then, only the cuts.
    #[arg(long, value_name = "MS")]
    cut_after_ms: Option<u64>,
    /// Prints each round trip that the program waits for.
    #[arg(long)]
    trace: bool,
    /// Prints the sums as a line of JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// The program and its arguments; it gets the client library and the proxy's address. Without a program the proxy runs until its
    /// standard input ends.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM ARGS")]
    program: Vec<OsString>,
}

impl Behind {
    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        let own = self.worker.is_none().then(start_worker);
        let worker = match (&own, &self.worker) {
            (Some(worker), _) => worker.address(),
            (None, worker) => address(worker.as_deref().unwrap_or_default())?,
        };
        let told = |flight: &Flight| eprintln!("{flight}");
        let told = self.trace.then(|| Box::new(told) as Box<dyn Fn(&Flight) + Send + Sync>);
        let cuts = self.cut_after_ms.map(|age_ms| Cuts::After(Duration::from_millis(age_ms)));
        let link = Link { cuts, ..self.network.link() };
        let proxy = Proxy::listen(self.listen, worker, link, told);
        let proxy = proxy.map_err(|why| format!("cannot listen at {}: {why}", self.listen))?;
        let Some((program, arguments)) = self.program.split_first() else {
            println!("listening on {}", proxy.address());
            io::stdin().read_to_end(&mut Vec::new()).map_err(|why| format!("cannot read: {why}"))?;
            print!("{}", self.render(&proxy));
            return Ok(ExitCode::SUCCESS);
        };
        let folder = library_folder();
        let mut search = OsString::from(folder.path());
        if let Some(rest) = env::var_os("LD_LIBRARY_PATH").filter(|rest| !rest.is_empty()) {
            search.push(":");
            search.push(rest);
        }
        let mut command = Command::new(program);
        command.args(arguments).env("LD_LIBRARY_PATH", search);
        command.env("HIPR_WORKER", proxy.address().to_string());
        if self.cut_after_ms.is_some() && env::var_os(RESUME_TIMEOUT).is_none() {
            command.env(RESUME_TIMEOUT, "60000");
        }
        let status = command.status();
        let status = status.map_err(|why| format!("cannot run {}: {why}", program.to_string_lossy()))?;
        // Standard output is the program's.
        eprint!("{}", self.render(&proxy));
        Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
    }

    fn render(&self, proxy: &Proxy) -> String {
        let traffic = &ended(proxy);
        if self.cut_after_ms.is_some() {
            let cuts = proxy.cuts();
            return if self.json {
                format!("{}\n", serde_json::json!({ "cuts": cuts }))
            } else {
                format!("{cuts} connections were cut\n")
            };
        }
        if !self.json {
            return traffic.to_string();
        }
        let Traffic { bytes_to_worker, bytes_to_client, requests, replies, flights, .. } = traffic;
        let sums = serde_json::json!({
            "flights": flights, "requests": requests, "replies": replies,
            "bytes_to_worker": bytes_to_worker, "bytes_to_client": bytes_to_client,
            "waits": distance::waits(traffic).into_iter().collect::<BTreeMap<_, _>>(),
        });
        format!("{sums}\n")
    }
}

/// Returns all traffic, or what has passed so far if a connection does not end.
fn ended(proxy: &Proxy) -> Traffic {
    proxy.settled(SETTLES).unwrap_or_else(|| {
        eprintln!("proxy: a connection is still open; this is what has passed so far");
        proxy.traffic()
    })
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().map_err(|why| format!("{text}: {why}"))?.next();
    found.ok_or_else(|| format!("{text} has no address"))
}

/// Options of `hipr-tests distance`.
#[derive(Debug, clap::Args)]
pub(crate) struct Distance {
    #[command(flatten)]
    network: Network,
    /// Measures only programs whose name contains one of these.
    #[arg(long, num_args = 1.., value_name = "NAME")]
    program: Vec<String>,
    /// Takes the figures of the clients' programs from files that `tests/clients/run.py --proxy … --json` wrote.
    #[arg(long, value_name = "FILE")]
    results: Vec<PathBuf>,
    /// Number of measurements; the largest figures of each program count.
    #[arg(long, default_value_t = 1, value_name = "N")]
    runs: u32,
    /// Prints what each program waited for.
    #[arg(long)]
    waits: bool,
    /// Writes what was measured as the new bounds, and into docs/distance.md, instead of comparing.
    #[arg(long)]
    renew: bool,
    /// Root folder of the workspace.
    #[arg(long, default_value = ".")]
    workspace: PathBuf,
}

impl Distance {
    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        let chosen = |program: &&Program| {
            self.program.is_empty() || self.program.iter().any(|part| program.name.contains(part.as_str()))
        };
        let programs: Vec<Program> = PROGRAMS.iter().filter(chosen).copied().collect();
        if programs.is_empty() {
            return Err(format!("there is no such program; there are {}", names(&PROGRAMS)));
        }
        let mut measured = self.measure(&programs)?;
        for _ in 1..self.runs {
            distance::keep_largest(&mut measured, &self.measure(&programs)?);
        }
        let bounds = if self.renew { self.renew(&measured)? } else { distance::committed() };
        let (report, is_right) = distance::report(&bounds, &measured);
        print!("{report}");
        if self.waits {
            let line = |one: &Measured| println!("{} ({}) waits for {}", one.program, one.mode, one.waits());
            measured.iter().for_each(line);
        }
        if !is_right {
            println!("to renew the bounds: cargo run --release -p hipr-tests -- distance --renew");
        }
        Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn measure(&self, programs: &[Program]) -> Result<Vec<Measured>, String> {
        let this = env::current_exe().map_err(|why| format!("cannot find this program: {why}"))?;
        let folder = this.parent().unwrap_or(Path::new("."));
        let mut measured = Vec::new();
        for program in programs {
            measured.extend(distance::measure_here(program, folder, self.network.link())?);
        }
        let clients: Vec<Program> = programs.iter().filter(|program| program.is_client()).copied().collect();
        if !self.results.is_empty() {
            measured.extend(distance::client_results(&clients, &self.results)?);
        } else if !clients.is_empty() {
            match distance::measure_clients(&clients, folder, self.network.link())? {
                Some(results) => measured.extend(results),
                None => println!(
                    "not measured, as tests/clients/setup.sh has not installed them: {}",
                    names(&clients)
                ),
            }
        }
        Ok(measured)
    }

    /// Writes table and page; returns the new bounds.
    fn renew(&self, measured: &[Measured]) -> Result<Vec<distance::Bound>, String> {
        let file = |name: &str| self.workspace.join(name);
        let at = |path: &Path, why: io::Error| format!("{}: {why}", path.display());
        let (table, page) = (file("tests/distance.tsv"), file("docs/distance.md"));
        let before = fs::read_to_string(&table).map_err(|why| at(&table, why))?;
        let bounds = distance::renewed(&distance::parse(&before)?, measured);
        fs::write(&table, distance::render(&bounds)).map_err(|why| at(&table, why))?;
        let text = fs::read_to_string(&page).map_err(|why| at(&page, why))?;
        fs::write(&page, distance::renewed_page(&text, &bounds)).map_err(|why| at(&page, why))?;
        println!("{} and {} have new figures", table.display(), page.display());
        Ok(bounds)
    }
}

fn names(programs: &[Program]) -> String {
    let names = programs.iter().map(|program| format!("{} ({})", program.name, program.mode));
    names.collect::<Vec<_>>().join(", ")
}
