//! `hipr bench`: what the transport and the worker achieve, beside what the machine allows.
//!
//! Client and worker are processes of their own. Whatever a figure is compared with is measured in the same run, turn
//! about: the raw limit (the same bytes over a plain socket, or a copy in memory), and a worker as the protocol's contract
//! describes one, which reads a request, carries it out, and reads the next.

// The program calls the C API of HIP.
#[allow(unsafe_code)]
mod c_program;
mod clients;
mod contract;
mod latency;
mod neighbour;
mod peer;
mod peers;
mod place;
mod process;
mod program;
mod raw;
pub(crate) mod report;
pub(crate) mod rounds;
mod rtt;
mod setup;
mod sim;
mod table;
mod throughput;

use clap::{Args, Subcommand};
use program::Task;
use std::process::ExitCode;

/// Options of `hipr bench`.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

/// What is measured.
#[derive(Debug, Subcommand)]
enum What {
    /// Launches that are not waited for, from the client's call until they were carried out.
    Launch(throughput::Launch),
    /// Round trips of a synchronize.
    Rtt(setup::Setup),
    /// Copies from host to device.
    H2d(throughput::Copy),
    /// Copies from device to host.
    D2h(throughput::Copy),
    /// Many connections at once, with small calls of all kinds.
    Clients(clients::Clients),
    /// One client's round trips while another copies.
    Neighbour(neighbour::Neighbour),
    /// What the emulated GPU computes, beside the same loops in plain Rust.
    Sim(sim::Sim),
    /// Prints reports that were written with --json as the rows of a table in Markdown.
    Table(table::Table),
    /// What workers are compared with.
    #[command(hide = true)]
    Peer(peer::Peer),
    /// The HIP program that is measured.
    #[command(hide = true)]
    CProgram(c_program::CProgram),
    /// A command of hipr that ends with the benchmark.
    #[command(hide = true)]
    Role(process::Role),
}

/// Measures and prints.
pub(crate) fn run(options: Bench) -> Result<ExitCode, String> {
    match options.what {
        What::Launch(options) => throughput::launch(&options),
        What::Rtt(options) => rtt::run(&options),
        What::H2d(options) => throughput::copy(Task::H2d, &options),
        What::D2h(options) => throughput::copy(Task::D2h, &options),
        What::Clients(options) => clients::run(&options),
        What::Neighbour(options) => neighbour::run(&options),
        What::Sim(options) => sim::run(&options),
        What::Table(options) => table::run(&options),
        What::Peer(options) => peer::run(&options),
        What::CProgram(options) => c_program::run(&options),
        What::Role(options) => process::become_role(&options),
    }
    .map(|()| ExitCode::SUCCESS)
}
