//! `hipr demo`: runs a worker with the emulated GPU, and a HIP program in a second process, connected over TCP.

// The program calls the C API of HIP.
#[allow(unsafe_code)]
mod program;
mod report;

use crate::embedded;
use crate::library::{self, this_program};
use crate::output::say;
use crate::sim::Sim;
use clap::Args;
use report::{CaseReport, ProgramReport};
use serde::Deserialize;
use std::fs;
use std::process::{Command, ExitCode, Stdio};

/// The statistics that the client library writes to `HIPR_STATS_FILE` when the program ends.
#[derive(Debug, Deserialize)]
struct ClientStats {
    calls: u64,
    frames_sent: u64,
    frames_received: u64,
    bytes_sent: u64,
    bytes_received: u64,
    round_trips: u64,
}

/// Options of `hipr demo`.
#[derive(Debug, Default, Args)]
pub(crate) struct Demo {
    #[command(flatten)]
    sim: Sim,
}

/// Runs the demo; succeeds only if every result is right.
pub(crate) fn run(options: Demo) -> Result<ExitCode, String> {
    let folder = library::CLIENT.folder()?;
    let stats_file = folder.path().join("stats.json");
    say!("hipr demo: a HIP program in one process, an emulated GPU in another, TCP between them");
    let worker = embedded::start(options.sim, &embedded::loopback())?;
    say!("worker   listens at {}, emulating the GPU", worker.local_addr());
    let program = this_program()?;
    let output = Command::new(program)
        .arg("demo-program")
        .env("LD_LIBRARY_PATH", folder.search_path())
        .env("HIPR_WORKER", worker.local_addr().to_string())
        .env("HIPR_STATS_FILE", &stats_file)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|why| format!("cannot start the HIP program: {why}"))?;
    if !output.status.success() {
        return Err(format!("the HIP program failed: {}", output.status));
    }
    let report: ProgramReport = serde_json::from_slice(&output.stdout)
        .map_err(|why| format!("cannot read the program's report: {why}"))?;
    print_report(&report);
    let stats = fs::read(&stats_file).map_err(|why| format!("the library wrote no statistics: {why}"))?;
    let stats: ClientStats = serde_json::from_slice(&stats)
        .map_err(|why| format!("cannot read the library's statistics: {why}"))?;
    say!(
        "\nThe program made {} HIP calls. On the wire: {} frames and {} bytes to the worker, {} frames and {} bytes back;\nit waited for the worker {} times (round trips).",
        stats.calls,
        stats.frames_sent,
        stats.bytes_sent,
        stats.frames_received,
        stats.bytes_received,
        stats.round_trips,
    );
    let wrong = report.cases.iter().filter(|case| !case.passed()).count();
    if wrong > 0 || report.cases.is_empty() {
        say!("{wrong} of {} kernels computed a wrong result.", report.cases.len());
        return Ok(ExitCode::FAILURE);
    }
    say!("All {} kernels computed what the CPU computes.", report.cases.len());
    Ok(ExitCode::SUCCESS)
}

fn print_report(report: &ProgramReport) {
    say!("program  uses {}", report.library);
    say!("device   {}\n", report.device);
    say!("{:<12} {:<24} {:>10} {:>10} {:>9}  result", "kernel", "size", "max error", "allowed", "ms");
    for case in &report.cases {
        let CaseReport { kernel, size, max_error, tolerance, elapsed_ms } = case;
        let result = if case.passed() { "ok" } else { "WRONG" };
        say!("{kernel:<12} {size:<24} {max_error:>10.1e} {tolerance:>10.0e} {elapsed_ms:>9.1}  {result}");
    }
    say!(
        "\n(max error: largest difference from the CPU; 0 where results must be equal; mandelbrot: share of pixels)"
    );
}

/// Runs the demo's HIP program; prints its report as one line of JSON.
pub(crate) fn run_program() -> Result<ExitCode, String> {
    let report = program::run().map_err(|why| why.to_string())?;
    let text = serde_json::to_string(&report).map_err(|why| why.to_string())?;
    say!("{text}");
    Ok(ExitCode::SUCCESS)
}
