//! What programs cost on a network, whatever its delay: flights and bytes, counted by a [`Proxy`] in front of a worker with the
//! emulated GPU, and held to the committed bounds of `tests/distance.tsv`.

mod programs;

use std::fmt::Write as _;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub use programs::{PROGRAMS, Program, Runs, client_results, measure_clients, measure_here};

use crate::{Link, Proxy, Traffic, library_folder, start_worker};

/// The committed bounds.
static BOUNDS: &str = include_str!("../distance.tsv");
/// What bounds of bytes are multiples of, so that a few bytes more in a reply need no new bound.
const ROUND_BYTES: u64 = 16_384;
/// What bounds below a quarter of [`ROUND_BYTES`] are multiples of: those of one token.
const ROUND_FEW_BYTES: u64 = 256;
/// How long a connection may take to end after its program has.
const SETTLES: Duration = Duration::from_secs(60);

/// What a program may cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// Name of the program.
    pub program: String,
    /// How it was told to work; `-` if there is only one way.
    pub mode: String,
    /// Maximum number of flights.
    pub flights: u64,
    /// Maximum number of bytes from the worker.
    pub bytes_to_client: u64,
}

/// What a program cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Name of the program.
    pub program: String,
    /// How it was told to work; `-` if there is only one way.
    pub mode: String,
    /// Number of flights.
    pub flights: u64,
    /// Bytes to the worker.
    pub bytes_to_worker: u64,
    /// Bytes from the worker.
    pub bytes_to_client: u64,
    /// Duration of the program.
    pub seconds: f64,
    /// What it waited for: operations and their flights, the most first.
    pub waits: Vec<(String, u64)>,
}

impl Measured {
    /// Returns what the program waited for, as text.
    #[must_use]
    pub fn waits(&self) -> String {
        let waits = self.waits.iter().map(|(op, flights)| format!("{op} {flights}"));
        waits.collect::<Vec<_>>().join(", ")
    }
}

impl Bound {
    /// Returns what is wrong with a program that costs this much: more than it may, or so much less that the bound no longer
    /// holds it to what it does: less than a third of the flights, or none, or less than an eighth of the bytes.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub fn check(&self, flights: u64, bytes_to_client: u64) -> Result<(), String> {
        let compare = |what: &str, measured: u64, bound: u64, slack: u64| {
            if measured > bound {
                Err(format!("TOO MANY {what}: {measured}, not {bound} at most"))
            } else if measured + slack < bound {
                Err(format!(
                    "FEWER {what} than the bound: {measured}, not {bound}; lower it, so that it stays so"
                ))
            } else {
                Ok(())
            }
        };
        compare("flights", flights, self.flights, self.flights - (self.flights / 3).max(1))?;
        let slack = self.bytes_to_client - self.bytes_to_client / 8;
        compare("bytes to the client", bytes_to_client, self.bytes_to_client, slack)
    }
}

/// Parses a table of bounds: program, mode, flights and bytes, separated by tabs; lines that begin with `#` are comments.
///
/// # Errors
/// Which line is none of that.
pub fn parse(table: &str) -> Result<Vec<Bound>, String> {
    let lines = table.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let bound = |line: &str| {
        let mut fields = line.split('\t');
        let mut text = || fields.next().filter(|field| !field.is_empty()).map(str::to_owned);
        let (program, mode, flights, bytes_to_client) = (text()?, text()?, text()?, text()?);
        let (flights, bytes_to_client) = (flights.parse().ok()?, bytes_to_client.parse().ok()?);
        fields.next().is_none().then_some(Bound { program, mode, flights, bytes_to_client })
    };
    lines.map(|line| bound(line).ok_or_else(|| format!("no bound in '{line}'"))).collect()
}

/// Renders the table that [`parse`] reads.
#[must_use]
pub fn render(bounds: &[Bound]) -> String {
    let mut table = "# Highest number of flights, and of bytes from the worker, that a program may cost: program, mode, flights, bytes.\n\
         # `hipr-tests distance --renew` writes this file.\n"
        .to_owned();
    for Bound { program, mode, flights, bytes_to_client } in bounds {
        let _ = writeln!(table, "{program}\t{mode}\t{flights}\t{bytes_to_client}");
    }
    table
}

/// Returns the committed bounds.
///
/// # Panics
/// If the table cannot be read.
#[must_use]
pub fn committed() -> Vec<Bound> {
    parse(BOUNDS).unwrap_or_else(|why| panic!("tests/distance.tsv: {why}"))
}

/// Returns the bound of a program, if there is one.
#[must_use]
pub fn bound_of<'a>(bounds: &'a [Bound], program: &str, mode: &str) -> Option<&'a Bound> {
    bounds.iter().find(|bound| bound.program == program && bound.mode == mode)
}

/// Holds what a program cost against its committed bound.
///
/// # Panics
/// If it is out of its bound, or has none.
pub fn assert_bound(program: &str, mode: &str, traffic: &Traffic) {
    let bounds = committed();
    let bound = bound_of(&bounds, program, mode).unwrap_or_else(|| panic!("no bound for {program} ({mode})"));
    if let Err(why) = bound.check(traffic.flights, traffic.bytes_to_client) {
        panic!("{program}: {why} (tests/distance.tsv)\n{traffic}");
    }
}

/// Runs a HIP program over a link, with a worker of its own; returns its traffic, and how long it took.
///
/// # Errors
/// The program cannot be started or fails.
pub fn run(command: &mut Command, link: Link) -> Result<(Traffic, Duration), String> {
    let worker = start_worker();
    let proxy = Proxy::start(worker.address(), link).map_err(|why| format!("cannot start a proxy: {why}"))?;
    let folder = library_folder();
    let started = Instant::now();
    command
        .env("LD_LIBRARY_PATH", folder.path())
        .env("HIPR_WORKER", proxy.address().to_string())
        .env_remove("HIPR_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|why| format!("cannot run {command:?}: {why}"))?;
    let mut said = String::new();
    let read = child.stderr.take().map_or(Ok(0), |mut stderr| stderr.read_to_string(&mut said));
    let status = child.wait().map_err(|why| format!("cannot wait for {command:?}: {why}"))?;
    let took = started.elapsed();
    if !status.success() || read.is_err() {
        return Err(format!("{command:?} fails: {status}\n{said}"));
    }
    let traffic = proxy.settled(SETTLES).ok_or("a connection of the program is still open")?;
    if traffic.requests == 0 {
        return Err(format!("{command:?} never called the library\n{said}"));
    }
    Ok((traffic, took))
}

/// Renders what was measured beside the bounds; returns the table, and whether all is within its bound.
#[must_use]
pub fn report(bounds: &[Bound], measured: &[Measured]) -> (String, bool) {
    let (mut table, mut is_right) = (String::new(), true);
    let _ = writeln!(
        table,
        "{:<19} {:<20} {:>7} {:>6} {:>13} {:>13} {:>13} {:>8}",
        "program", "mode", "flights", "bound", "bytes sent", "received", "bound", "seconds"
    );
    for one in measured {
        let Measured { program, mode, flights, bytes_to_worker, bytes_to_client, seconds, .. } = one;
        let bound = bound_of(bounds, program, mode);
        let verdict = match bound {
            None => Err("has no bound: renew the table".to_owned()),
            Some(bound) => bound.check(*flights, *bytes_to_client),
        };
        let text = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        let _ = writeln!(
            table,
            "{program:<19} {mode:<20} {flights:>7} {:>6} {bytes_to_worker:>13} {bytes_to_client:>13} {:>13} {seconds:>8.2}  {}",
            text(bound.map(|bound| bound.flights)),
            text(bound.map(|bound| bound.bytes_to_client)),
            verdict.as_ref().map_or_else(String::as_str, |()| "ok"),
        );
        if verdict.is_err() {
            is_right = false;
            let _ = writeln!(table, "    waits for {}", one.waits());
        }
    }
    (table, is_right)
}

/// Replaces what was measured by the larger of it and another measurement of the same programs.
pub fn keep_largest(measured: &mut [Measured], again: &[Measured]) {
    for one in measured {
        let other = again.iter().find(|other| other.program == one.program && other.mode == one.mode);
        let Some(other) = other else { continue };
        if other.flights > one.flights {
            one.waits.clone_from(&other.waits);
        }
        one.flights = one.flights.max(other.flights);
        one.bytes_to_worker = one.bytes_to_worker.max(other.bytes_to_worker);
        one.bytes_to_client = one.bytes_to_client.max(other.bytes_to_client);
        one.seconds = one.seconds.max(other.seconds);
    }
}

/// Returns how often each operation was waited for, the most first.
#[must_use]
pub fn waits(traffic: &Traffic) -> Vec<(String, u64)> {
    let waits = traffic.operations.iter().filter(|(_, share)| share.flights > 0);
    sorted(waits.map(|(op, share)| (op.to_string(), share.flights)).collect())
}

fn sorted(mut waits: Vec<(String, u64)>) -> Vec<(String, u64)> {
    waits.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    waits
}

/// Returns the bounds with those of the measured programs replaced by what they cost, in the order of [`PROGRAMS`]: a twentieth more
/// for programs that ask again and again, and bytes rounded up, to 16 KiB, or to 256 bytes if they are fewer than 4 KiB.
#[must_use]
pub fn renewed(bounds: &[Bound], measured: &[Measured]) -> Vec<Bound> {
    let renew = |program: &Program| {
        let now = measured.iter().find(|measured| program.is(&measured.program, &measured.mode));
        let polls = program.runs == Runs::Client { polls: true };
        let more = |figure: u64| if polls { figure + figure.div_ceil(20) } else { figure };
        let rounded = |bytes: u64| {
            let unit = if bytes < ROUND_BYTES / 4 { ROUND_FEW_BYTES } else { ROUND_BYTES };
            bytes.next_multiple_of(unit)
        };
        let now = now.map(|measured| Bound {
            program: measured.program.clone(),
            mode: measured.mode.clone(),
            flights: more(measured.flights),
            bytes_to_client: rounded(more(measured.bytes_to_client)),
        });
        now.or_else(|| bound_of(bounds, program.name, program.mode).cloned())
    };
    PROGRAMS.iter().filter_map(renew).collect()
}

/// Returns the page `docs/distance.md` with the figures of these bounds: the rows of its table that begin with a program and a mode.
#[must_use]
pub fn renewed_page(page: &str, bounds: &[Bound]) -> String {
    let renew = |line: &str| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (program, mode) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        match bound_of(bounds, program, mode) {
            None => format!("{line}\n"),
            Some(Bound { flights, bytes_to_client, .. }) => {
                format!("| {program} | {mode} | {flights} | {bytes_to_client} |\n")
            }
        }
    };
    page.lines().map(renew).collect()
}
