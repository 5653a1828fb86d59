//! `hipr profile`: runs a program on the emulated GPU and counts what its kernels do.

mod html;
mod json;
mod lines;
mod peaks;
mod source;
mod table;

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use hipr_lines::demangled;
use hipr_profile::{KernelProfile, Profiler};

use self::lines::Line;
use crate::embedded;
use crate::launch::Program;
use crate::library;
use crate::sim::Sim;

/// The form of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The sums of each kernel, and its lines that do most.
    #[default]
    Table,
    /// The source, with the counts of each line.
    Source,
    /// One JSON object with everything.
    Json,
    /// A page for a browser: roofline, sortable tables, hot lines. Needs --output.
    Html,
}

/// Options of `hipr profile`.
#[derive(Debug, Args)]
pub(crate) struct Profile {
    /// Form of the report.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Writes the report to a file. [default: standard error]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Shows only kernels whose name contains this.
    #[arg(long, value_name = "TEXT")]
    kernel: Option<String>,
    #[command(flatten)]
    sim: Sim,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM ARGS")]
    program: Vec<OsString>,
}

/// A kernel as reports show it.
struct Shown {
    /// The name as programmers write it.
    name: String,
    profile: KernelProfile,
    /// The lines of the source that it has executed, those with most instructions first.
    lines: Vec<Line>,
}

/// What a report is made from.
struct Report {
    /// The program and its arguments.
    program: Vec<String>,
    /// Those with most instructions first.
    kernels: Vec<Shown>,
}

/// Runs the program and reports what was counted; returns the program's exit code.
pub(crate) fn run(options: Profile) -> Result<ExitCode, String> {
    let cannot_write = |path: &PathBuf, why| format!("cannot write {}: {why}", path.display());
    match &options.output {
        // A file that cannot be written is no reason to lose the report of a long run.
        Some(path) => fs::write(path, "").map_err(|why| cannot_write(path, why))?,
        None if options.format == Format::Html => {
            return Err("--format html needs a file for the page: --output FILE".into());
        }
        None => {}
    }
    let folder = library::CLIENT.folder()?;
    let profiler = Profiler::new();
    let worker = embedded::start_watched(options.sim, &embedded::beside(folder.path()), profiler.clone())?;
    let mut program = Program::new(&options.program, &folder)?;
    program.env("HIPR_WORKER", worker.local_addr().to_string());
    let exit_code = program.run_to_code()?;
    // All that the program has started is over when its session is.
    drop(worker);
    let mut kernels: Vec<Shown> = profiler
        .kernels()
        .into_iter()
        .map(|profile| Shown { name: demangled(&profile.name), lines: lines::of(&profile), profile })
        .filter(|kernel| options.kernel.as_ref().is_none_or(|part| kernel.name.contains(part)))
        .collect();
    kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.profile.total.executed()));
    let program = options.program.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let report = Report { program, kernels };
    let written = match options.format {
        Format::Table => table::write(&report),
        Format::Source => source::write(&report),
        Format::Json => json::write(&report),
        Format::Html => html::write(&report),
    };
    match &options.output {
        Some(path) => fs::write(path, written).map_err(|why| cannot_write(path, why))?,
        None => eprint!("{written}"),
    }
    Ok(ExitCode::from(exit_code))
}
