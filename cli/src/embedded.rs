//! A worker with the emulated GPU inside this process, for the life of one program.

use hipr_worker::{Config, Handle, Worker, device};

/// Starts it on a free loopback port; dropping the handle stops it.
pub(crate) fn start() -> Result<Handle, String> {
    let device = device::by_name("sim").map_err(|why| why.to_string())?;
    let config = Config { listen: "127.0.0.1:0".into(), ..Config::new(device) };
    Worker::bind(config).and_then(Worker::spawn).map_err(|why| format!("cannot start a worker: {why}"))
}
