//! A worker on the HIP runtime at the path that is its argument. Given hipr's own client library, which talks to the worker that
//! `HIPR_WORKER` names, it makes a chain: every call of the device `hip` goes through the C API to a GPU that is emulated
//! elsewhere. It has a process of its own because the library has one connection per process.

use hipr_worker::device::{DeviceChoice, DeviceKind, open};
use hipr_worker::{Config, Worker};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("chain-worker: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let hip_library = std::env::args_os().nth(1).map(Into::into);
    let device = open(&DeviceChoice { hip_library, ..DeviceKind::Hip.into() })?;
    let worker = Worker::bind(Config { listen: "127.0.0.1:0".into(), ..Config::new(device) })?;
    println!("listening on {}", worker.local_addr());
    Ok(worker.run()?)
}
