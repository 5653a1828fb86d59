//! A worker with the HIP runtime at the path that is its argument. With hipr's own client library, which talks to the
//! worker in `HIPR_WORKER`, it forms a chain: every call of the device `hip` goes through HIP's C API to a GPU that is
//! emulated elsewhere. It is a process of its own because the library has one connection per process.

use hipr_hip::Hip;
use hipr_worker::{CacheConfig, Config, Worker};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

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
    let library = std::env::args_os().nth(1).map(PathBuf::from);
    let device = Arc::new(Hip::load(library.as_deref(), None)?);
    let cache = Some(CacheConfig { max_bytes: 256 << 20, folder: None, folder_max_bytes: 0 });
    let worker = Worker::bind(Config { listen: "127.0.0.1:0".into(), cache, ..Config::new(device) })?;
    println!("listening on {}", worker.local_addr());
    Ok(worker.run()?)
}
