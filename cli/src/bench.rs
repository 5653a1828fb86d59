//! `hipr bench`: measures the transport and the worker, and compares them with the limits of the machine.
//!
//! Client and worker are processes of their own. Whatever a figure is compared with is measured in the same run, turn
//! about: the raw limit (the same bytes over a plain socket, or a copy in memory), and a worker as the protocol's contract
//! describes one, which reads a request, carries it out, and reads the next.

mod between;
// The program calls the C API of HIP.
#[allow(unsafe_code)]
mod c_program;
mod clients;
mod contract;
mod fair;
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
mod scale;
mod secured;
mod setup;
mod sim;
mod socket;
mod table;
mod throughput;
mod transport;

use clap::{Args, Subcommand};
use program::Task;
use std::process::ExitCode;

/// Options of `hipr bench`.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    benchmark: Benchmark,
}

/// The benchmark to run.
#[derive(Debug, Subcommand)]
enum Benchmark {
    /// Measures launches without waiting, until the worker has executed them.
    Launch(throughput::Launch),
    /// Measures round trips of a synchronize.
    Rtt(setup::Setup),
    /// Measures copies from host to device.
    H2d(throughput::Copy),
    /// Measures copies from device to host.
    D2h(throughput::Copy),
    /// Measures what keys and encryption cost.
    Secured(secured::Secured),
    /// Measures copies from worker to worker.
    Between(between::Between),
    /// Measures several workers together, or very many that do nothing.
    Scale(scale::Scale),
    /// Measures many connections at once, with small calls of all kinds.
    Clients(clients::Clients),
    /// Measures one client's round trips while another copies.
    Neighbour(neighbour::Neighbour),
    /// Measures how clients share the emulated GPU's time.
    Fair(fair::Fair),
    /// Measures how fast the emulated GPU computes, compared with the same computations in plain Rust.
    Sim(sim::Sim),
    /// Prints reports that were written with --json as rows of a Markdown table.
    Table(table::Table),
    /// Runs a process that workers are compared with.
    #[command(hide = true)]
    Peer(peer::Peer),
    /// Runs the HIP program that is measured.
    #[command(hide = true)]
    CProgram(c_program::CProgram),
    /// Runs a command of hipr that ends with the benchmark.
    #[command(hide = true)]
    Role(process::Role),
}

/// Runs the chosen benchmark.
pub(crate) fn run(options: Bench) -> Result<ExitCode, String> {
    match options.benchmark {
        Benchmark::Launch(options) => throughput::launch(&options),
        Benchmark::Rtt(options) => rtt::run(&options),
        Benchmark::H2d(options) => throughput::copy(Task::H2d, &options),
        Benchmark::D2h(options) => throughput::copy(Task::D2h, &options),
        Benchmark::Secured(options) => secured::run(&options),
        Benchmark::Between(options) => between::run(&options),
        Benchmark::Scale(options) => scale::run(&options),
        Benchmark::Clients(options) => clients::run(&options),
        Benchmark::Neighbour(options) => neighbour::run(&options),
        Benchmark::Fair(options) => fair::run(&options),
        Benchmark::Sim(options) => sim::run(&options),
        Benchmark::Table(options) => table::run(&options),
        Benchmark::Peer(options) => peer::run(&options),
        Benchmark::CProgram(options) => c_program::run(&options),
        Benchmark::Role(options) => process::become_role(&options),
    }
    .map(|()| ExitCode::SUCCESS)
}
