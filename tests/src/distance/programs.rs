//! The programs whose distance is measured, and how they are run.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::Measured;
use crate::Link;
use crate::toolchain::folder;

/// Exit code of `tests/clients/setup.sh --check` if the clients are not installed.
const NOT_INSTALLED: i32 = 77;

/// A program whose distance is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// Name in the table of bounds.
    pub name: &'static str,
    /// How it is told to work; `-` if there is only one way.
    pub mode: &'static str,
    /// How it is run.
    pub runs: Runs,
}

/// How a program is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// A program beside this one in cargo's folder, and its arguments.
    Beside(&'static str, &'static [&'static str]),
    /// A program of `tests/clients`, which `run.py` compiles and runs.
    Client {
        /// Whether it asks again and again whether something is done, so that what it costs depends on time.
        polls: bool,
    },
}

/// The end of a mode in which the program synchronizes lazily.
const LAZY: &str = "lazy";

const fn client(name: &'static str, mode: &'static str) -> Program {
    Program { name, mode, runs: Runs::Client { polls: true } }
}

const fn steady_client(name: &'static str, mode: &'static str) -> Program {
    Program { name, mode, runs: Runs::Client { polls: false } }
}

/// All programs, in the order of the table of bounds.
pub const PROGRAMS: [Program; 14] = [
    Program { name: "twelve-calls", mode: "-", runs: Runs::Beside("twelve-calls", &[]) },
    Program { name: "twelve-calls", mode: LAZY, runs: Runs::Beside("twelve-calls", &[]) },
    Program { name: "hipr demo", mode: "-", runs: Runs::Beside("hipr", &["demo-program"]) },
    client("IREE matmul_f32", "streams, async"),
    client("IREE transformer", "streams, async"),
    client("IREE transformer", "graphs, async"),
    client("tinygrad gpt.py", "process"),
    steady_client("llama.cpp gpt2.gguf", "2 layers, 1 token"),
    steady_client("llama.cpp gpt2.gguf", "2 layers, each token"),
    steady_client("tinygrad gpt2.py", "2 layers, each token"),
    client("tinygrad gpt.py", "process, lazy"),
    steady_client("llama.cpp gpt2.gguf", "2 layers, 1 token, lazy"),
    steady_client("llama.cpp gpt2.gguf", "2 layers, each token, lazy"),
    steady_client("tinygrad gpt2.py", "2 layers, each token, lazy"),
];

impl Program {
    /// Returns whether the program has this name and mode.
    #[must_use]
    pub fn is(&self, name: &str, mode: &str) -> bool {
        self.name == name && self.mode == mode
    }

    /// Returns whether it is a program of `tests/clients`.
    #[must_use]
    pub fn is_client(&self) -> bool {
        matches!(self.runs, Runs::Client { .. })
    }

    /// Returns whether it synchronizes lazily.
    #[must_use]
    pub fn is_lazy(&self) -> bool {
        self.mode.ends_with(LAZY)
    }
}

/// Runs a program that lies beside the others in `folder`; returns None if it is one of the clients'.
///
/// # Errors
/// It is not there or fails.
pub fn measure_here(program: &Program, folder: &Path, link: Link) -> Result<Option<Measured>, String> {
    let Runs::Beside(file, arguments) = program.runs else { return Ok(None) };
    let path = folder.join(file);
    if !path.exists() {
        return Err(format!("{} is not there: cargo build --release --workspace", path.display()));
    }
    let mut command = Command::new(path);
    command.args(arguments).env("HIPR_SYNC", if program.is_lazy() { LAZY } else { "strict" });
    let (traffic, took) = super::run(&mut command, link)?;
    Ok(Some(Measured {
        program: program.name.to_owned(),
        mode: program.mode.to_owned(),
        flights: traffic.flights,
        bytes_to_worker: traffic.bytes_to_worker,
        bytes_to_client: traffic.bytes_to_client,
        seconds: took.as_secs_f64(),
        waits: super::waits(&traffic),
    }))
}

/// Runs programs of the clients with `tests/clients/run.py`, which takes `hipr` and this program from `build`. Returns None if the
/// clients are not installed.
///
/// # Errors
/// `run.py` fails, or a result is wrong.
pub fn measure_clients(
    programs: &[Program],
    build: &Path,
    link: Link,
) -> Result<Option<Vec<Measured>>, String> {
    let clients = folder().join("clients");
    let mut setup = Command::new(clients.join("setup.sh"));
    let check = setup.arg("--check").output().map_err(|why| format!("cannot run {setup:?}: {why}"))?;
    if check.status.code() == Some(NOT_INSTALLED) {
        return Ok(None);
    }
    let mut measured = Vec::new();
    for is_lazy in [false, true] {
        let group: Vec<Program> =
            programs.iter().filter(|program| program.is_lazy() == is_lazy).copied().collect();
        if !group.is_empty() {
            measured.extend(measure_group(&group, is_lazy, build, link)?);
        }
    }
    Ok(Some(measured))
}

/// Runs programs of the clients that all synchronize in the same way.
fn measure_group(
    programs: &[Program],
    is_lazy: bool,
    build: &Path,
    link: Link,
) -> Result<Vec<Measured>, String> {
    let clients = folder().join("clients");
    let this = env::current_exe().map_err(|why| format!("cannot find this program: {why}"))?;
    let results = tempfile::NamedTempFile::new().map_err(|why| format!("cannot create a file: {why}"))?;
    let mut run = Command::new(clients.join("run.py"));
    run.arg("--hipr").arg(build.join("hipr")).arg("--json").arg(results.path());
    run.arg("--proxy").arg(this).arg("--delay-ms").arg(link.delay.as_millis().to_string());
    if let Some(bits_per_s) = link.bits_per_s {
        run.arg("--mbit-per-s").arg((bits_per_s.get() / 1_000_000).to_string());
    }
    run.args(is_lazy.then_some("--lazy"));
    let mode = |program: &Program| program.mode.trim_end_matches(LAZY).trim_end_matches(", ").to_owned();
    run.arg("--counted").args(programs.iter().map(|program| format!("{} ({})", program.name, mode(program))));
    let output = run.output().map_err(|why| format!("cannot run {run:?}: {why}"))?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        return Err(format!("{run:?} fails:\n{}", said.concat()));
    }
    client_results(programs, &[results.path()])
}

/// Reads what runs of `run.py --proxy … --json FILE` wrote of these programs; skips those that are not the clients'.
///
/// # Errors
/// A file cannot be read, or the files lack one of the programs.
pub fn client_results(programs: &[Program], files: &[impl AsRef<Path>]) -> Result<Vec<Measured>, String> {
    let mut results: Vec<Value> = Vec::new();
    for file in files.iter().map(AsRef::as_ref) {
        let at = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
        let text = fs::read_to_string(file).map_err(|why| at(&why))?;
        results.extend(serde_json::from_str::<Vec<Value>>(&text).map_err(|why| at(&why))?);
    }
    let programs = programs.iter().filter(|program| program.is_client());
    let measured = programs.map(|program| {
        let found = results.iter().find_map(|result| measured(program, result));
        found.ok_or_else(|| format!("{} ({}) was not counted", program.name, program.mode))
    });
    measured.collect()
}

/// Reads a result; returns None if it is one of another program, or was not counted.
fn measured(program: &Program, result: &Value) -> Option<Measured> {
    let text = |field: &str| result.get(field)?.as_str();
    let number = |field: &str| result.get(field)?.as_u64();
    let name = format!("{} {}", text("client")?, text("program")?);
    if !program.is(&name, text("mode")?) || !result.get("failure")?.is_null() {
        return None;
    }
    let waits = result.get("waits")?.as_object()?.iter();
    let waits = waits.map(|(op, flights)| Some((op.clone(), flights.as_u64()?)));
    Some(Measured {
        program: name,
        mode: program.mode.to_owned(),
        flights: number("flights")?,
        bytes_to_worker: number("bytes_to_worker")?,
        bytes_to_client: number("bytes_to_client")?,
        seconds: result.get("seconds")?.as_f64()?,
        waits: super::sorted(waits.collect::<Option<_>>()?),
    })
}
