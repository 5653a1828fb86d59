//! A worker with the emulated GPU inside this process, for the lifetime of one program.

use crate::device::{self, DeviceChoice, DeviceKind};
use crate::sim::Sim;
use hipr_worker::{Config, Handle, Worker};

/// Starts a worker on a free loopback port; dropping the handle stops it.
pub(crate) fn start(sim: Sim) -> Result<Handle, String> {
    let choice = DeviceChoice { sim: sim.config(), ..DeviceKind::Sim.into() };
    let device = device::open(&choice).map_err(|why| why.to_string())?;
    let config = Config { listen: "127.0.0.1:0".into(), ..Config::new(device) };
    Worker::bind(config).and_then(Worker::spawn).map_err(|why| format!("cannot start a worker: {why}"))
}
