//! A worker with the emulated GPU inside this process, for the lifetime of one program.

use crate::device::{self, DeviceChoice, DeviceKind, NoDevice};
use crate::sim::Sim;
use hipr_proto::Features;
use hipr_sim::Gpu;
use hipr_sim::watch::DeviceWatch;
use hipr_worker::{Address, Config, Handle, Worker};
use std::path::Path;
use std::sync::Arc;

/// Returns the address of a free loopback port.
pub(crate) fn loopback() -> Address {
    "127.0.0.1:0".into()
}

/// Returns the address of shared memory that is set up over a socket in `folder`, or where no socket's name is that long, of a
/// free loopback port.
pub(crate) fn beside(folder: &Path) -> Address {
    /// Length of a socket's name, with the zero behind it.
    const NAME_MAX: usize = 108;
    let path = folder.join("worker");
    if path.as_os_str().len() < NAME_MAX { Address::Shm(path) } else { loopback() }
}

/// Starts a worker that listens at `address`; dropping the handle stops it.
pub(crate) fn start(sim: Sim, address: &Address) -> Result<Handle, String> {
    let choice = DeviceChoice { sim, ..DeviceKind::Sim.into() };
    let device = device::open(&choice).map_err(|why| why.to_string())?;
    spawn(Config { listen: address.clone(), ..Config::new(device) })
}

/// Starts a worker as [`start`] does, the work of whose device `watch` sees. The program asks it for each wait: what it would learn without
/// asking, the watch would not learn.
pub(crate) fn start_watched(
    sim: Sim,
    address: &Address,
    watch: Arc<dyn DeviceWatch>,
) -> Result<Handle, String> {
    let config = sim.config().map_err(|why| NoDevice::Options(why).to_string())?;
    let device = Gpu::watched(config, watch).map_err(|why| NoDevice::Sim(why).to_string())?;
    let mut config = Config { listen: address.clone(), ..Config::new(Arc::new(device)) };
    let untold = Features::NOTIFICATIONS.union(Features::WATCHES);
    config.session.features = config.session.features.map(|features| features.without(untold));
    spawn(config)
}

fn spawn(config: Config) -> Result<Handle, String> {
    Worker::bind(config).and_then(Worker::spawn).map_err(|why| format!("cannot start a worker: {why}"))
}
