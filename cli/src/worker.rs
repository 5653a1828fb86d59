//! `hipr worker`: serves a GPU to clients until a signal ends it.

use clap::Args;
use hipr_worker::{Config, DEFAULT_PORT, Io, device};
use std::process::ExitCode;

/// Options of `hipr worker`.
#[derive(Debug, Args)]
pub(crate) struct Worker {
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDR:PORT", default_value_t = format!("127.0.0.1:{DEFAULT_PORT}"))]
    listen: String,
    /// Event loop: mio, uring, or auto (io_uring where it can be had).
    #[arg(long, value_name = "LOOP", default_value = "auto")]
    io: Io,
    /// Device: sim (the emulated MI300X), null (accepts everything, computes nothing), hip (a real GPU; not built yet).
    #[arg(long, value_name = "DEVICE", default_value = "sim")]
    device: String,
}

/// Serves on this thread.
pub(crate) fn run(options: Worker) -> Result<ExitCode, String> {
    let device = device::by_name(&options.device).map_err(|why| why.to_string())?;
    let config = Config { listen: options.listen, io: options.io, ..Config::new(device) };
    let worker = hipr_worker::Worker::bind(config).map_err(|why| why.to_string())?;
    // On standard output, for whoever started us with port 0 and has to know the port.
    println!("listening on {}", worker.local_addr());
    worker.run().map(|()| ExitCode::SUCCESS).map_err(|why| why.to_string())
}
