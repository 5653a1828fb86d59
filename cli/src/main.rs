//! The `hipr` program: a worker, programs that use one, a demo and benchmarks.

#![deny(unsafe_code)]

mod bench;
mod check;
mod completions;
mod demo;
mod device;
mod embedded;
mod frames;
mod hsa;
mod info;
mod isa_coverage;
mod key;
mod launch;
mod library;
mod man;
mod output;
mod profile;
mod run;
mod sim;
mod top;
mod trace;
mod worker;

use clap::{CommandFactory as _, Parser, Subcommand};
use hipr_log::Style;
use std::process::ExitCode;

/// Runs HIP programs on a GPU that is somewhere else.
///
/// Without a command: `hipr demo`.
#[derive(Debug, Parser)]
#[command(name = "hipr", version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a program with hipr's libamdhip64.so.
    Run(run::Run),
    /// Runs a program on the emulated GPU and finds mistakes in its kernels: wrong accesses, races, barriers.
    Check(check::Check),
    /// Runs a program on the emulated GPU and counts what its kernels do, exactly.
    Profile(profile::Profile),
    /// Runs a program and records what it calls and what it waits for; says where the time went.
    Trace(trace::Trace),
    /// Runs a program of AMD's HIP runtime on emulated GPUs, with hipr's libhsa-runtime64.so below that.
    Hsa(hsa::Hsa),
    /// Serves a GPU to clients.
    Worker(Box<worker::Worker>),
    /// Shows the sessions of a worker while they work.
    Top(top::Top),
    /// Makes your key, or a worker's, and prints its public half; signs certificates for keys.
    Key(key::Key),
    /// Prints an address with an invitation to a worker, for one client.
    Invite(key::Invite),
    /// Shows a worker's devices, versions and round-trip time.
    Info(info::Info),
    /// Measures the transport and the worker, and compares them with the limits of the machine.
    Bench(bench::Bench),
    /// Lists instructions of a program's kernels that the emulated GPU lacks.
    IsaCoverage(isa_coverage::IsaCoverage),
    /// Runs real kernels in a second process, over TCP, on an emulated GPU, and checks them.
    Demo(demo::Demo),
    /// Prints a script with which a shell completes commands and options.
    Completions(completions::Completions),
    /// Writes the manual pages into a folder.
    Man(man::Man),
    /// Runs the demo's HIP program.
    #[command(hide = true)]
    DemoProgram,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let command = cli.command.unwrap_or(Command::Demo(demo::Demo::default()));
    // A worker says what it serves; everything else stays quiet unless something is wrong.
    let level = match command {
        Command::Worker(_) => "info",
        // What a kernel does wrong is in the report.
        Command::Check(_) => "off",
        _ => "warn",
    };
    hipr_log::start(Style::Timed, level);
    let result = output::until_unread(|| match command {
        Command::Run(options) => run::run(options),
        Command::Check(options) => check::run(options),
        Command::Profile(options) => profile::run(options),
        Command::Trace(options) => trace::run(options),
        Command::Hsa(options) => hsa::run(options),
        Command::Worker(options) => worker::run(*options),
        Command::Top(options) => top::run(options),
        Command::Key(options) => key::run(options),
        Command::Invite(options) => key::run_invite(options),
        Command::Info(options) => info::run(options),
        Command::Bench(options) => bench::run(options),
        Command::IsaCoverage(options) => isa_coverage::run(options),
        Command::Demo(options) => demo::run(options),
        Command::Completions(options) => completions::run(options, Cli::command()),
        Command::Man(options) => man::run(options, Cli::command()),
        Command::DemoProgram => demo::run_program(),
    });
    result.unwrap_or_else(|why| {
        eprintln!("hipr: {}", hipr_log::escaped(&why, 4096));
        ExitCode::FAILURE
    })
}
