//! `hipr check`: runs a program on the emulated GPU and finds mistakes in its kernels.

mod finding;
mod json;
mod sarif;
mod suppress;
mod text;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use hipr_check::{Checker, Options, Tool};

use self::finding::Described;
use self::suppress::Suppressions;
use crate::embedded;
use crate::launch::Program;
use crate::library;
use crate::sim::Sim;

/// How long a kernel may take, if nothing else is asked for: one that waits for ever is a mistake to be found.
const KERNEL_TIMEOUT: Duration = Duration::from_secs(60);
/// The number of findings that are kept, of which `--limit` shows some.
const FINDINGS_MAX: usize = 10_000;

/// The form of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
    /// SARIF 2.1.0, for code hosts and editors.
    Sarif,
}

/// Options of `hipr check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// What is looked for.
    #[arg(long, value_name = "TOOL,...", value_delimiter = ',', value_parser = tool, default_value = "memory,init,race,sync")]
    tools: Vec<Tool>,
    /// Reports memory that is not freed when the program ends, too.
    #[arg(long)]
    leaks: bool,
    /// Form of the report.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Writes the report to a file. [default: standard error]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// File with findings that are not reported: lines of a kind, a kernel and a file, with * for any text.
    #[arg(long, value_name = "FILE")]
    suppress: Option<PathBuf>,
    /// Number of findings that are shown.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// Exit code if something is found. If nothing is, it is the program's.
    #[arg(long, value_name = "CODE", default_value_t = 86)]
    exit_code: u8,
    #[command(flatten)]
    sim: Sim,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM ARGS")]
    program: Vec<OsString>,
}

/// Returns the checks of this name, for an option.
pub(crate) fn tool(name: &str) -> Result<Tool, String> {
    let known = Tool::ALL.into_iter().find(|tool| tool.name() == name);
    known.ok_or_else(|| "choose from memory, init, race, sync".to_owned())
}

/// What a report is made from.
struct Report<'a> {
    program: Vec<String>,
    tools: BTreeSet<Tool>,
    /// What is shown.
    findings: &'a [Described],
    /// The number of findings that are not shown, as the limit was reached.
    left_out: usize,
    /// The number of findings that are suppressed.
    suppressed: usize,
    /// The program's exit code, and that of `hipr check`.
    program_exit_code: u8,
    exit_code: u8,
}

/// Runs the program and reports what is found.
pub(crate) fn run(options: Check) -> Result<ExitCode, String> {
    let suppressions =
        options.suppress.as_deref().map_or_else(|| Ok(Suppressions::default()), Suppressions::read)?;
    // A file that cannot be written is no reason to lose the report of a long run.
    if let Some(path) = &options.output {
        fs::write(path, "").map_err(|why| format!("cannot write {}: {why}", path.display()))?;
    }
    let folder = library::CLIENT.folder()?;
    let tools: BTreeSet<Tool> = options.tools.iter().copied().collect();
    let checker = Checker::new(Options { tools: tools.clone(), findings_max: FINDINGS_MAX });
    let sim = options.sim.or_kernel_timeout(KERNEL_TIMEOUT);
    let worker = embedded::start_watched(sim, &embedded::beside(folder.path()), checker.clone())?;
    let log = folder.path().join("host-calls");
    let mut program = Program::new(&options.program, &folder)?;
    program.env("HIPR_WORKER", worker.local_addr().to_string()).env("HIPR_CHECK", &log);
    let program_exit_code = program.run_to_code()?;
    // All that the program has started is over when its session is.
    drop(worker);
    let host = hipr_check::host::read(&log).map_err(|why| format!("cannot read {}: {why}", log.display()))?;
    let findings = finding::describe(checker.findings(), &host, &tools, options.leaks);
    let (mut findings, suppressed) = suppressions.apply(findings);
    let left_out = findings.len().saturating_sub(options.limit);
    let exit_code = if findings.is_empty() { program_exit_code } else { options.exit_code };
    findings.truncate(options.limit);
    let report = Report {
        program: options.program.iter().map(|part| part.to_string_lossy().into_owned()).collect(),
        tools,
        findings: &findings,
        left_out,
        suppressed: suppressed.count,
        program_exit_code,
        exit_code,
    };
    let is_terminal = options.output.is_none() && std::io::stderr().is_terminal();
    let has_colors = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let written = match options.format {
        Format::Text => text::write(&report, has_colors),
        Format::Json => json::write(&report),
        Format::Sarif => sarif::write(&report),
    };
    match &options.output {
        Some(path) => {
            fs::write(path, written).map_err(|why| format!("cannot write {}: {why}", path.display()))?;
            eprintln!("hipr check: {}, in {}", text::summary(&report), path.display());
        }
        None => eprint!("{written}"),
    }
    for unused in suppressed.unused {
        eprintln!(
            "hipr: nothing was suppressed by line {} of the suppressions: {}",
            unused.line, unused.text
        );
    }
    Ok(ExitCode::from(exit_code))
}
