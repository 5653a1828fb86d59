//! Which device a worker serves, chosen when it starts.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use crate::library;
use crate::sim::Sim;
use clap::ValueEnum;
use hipr_device::Device;
use hipr_grid::Gate;
use hipr_hip::Hip;
use hipr_sim::Gpu;
use hipr_worker::device::null::Null;
use tracing::info;

/// Why a device cannot be opened.
#[derive(Debug)]
pub(crate) enum NoDevice {
    /// No device has this name.
    Unknown(String),
    /// The HIP runtime cannot be loaded.
    Hip(hipr_hip::LoadError),
    /// There is no pipe for what kernels print.
    Output(std::io::Error),
    /// hipr's HSA library cannot be loaded.
    Hsa(String),
    /// The options of the emulated GPU are wrong.
    Options(String),
    /// The threads of the emulated GPU cannot be started.
    Sim(std::io::Error),
}

impl fmt::Display for NoDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                write!(f, "unknown device '{name}'; choose auto, hip, sim or null")
            }
            Self::Hip(why) => write!(f, "cannot open the device 'hip': {why}"),
            Self::Hsa(why) => write!(f, "cannot emulate what is below the HIP runtime: {why}"),
            Self::Output(why) => write!(f, "cannot take what kernels print: {why}"),
            Self::Options(why) => write!(f, "cannot emulate a GPU: {why}"),
            Self::Sim(why) => write!(f, "cannot open the device 'sim': {why}"),
        }
    }
}

impl std::error::Error for NoDevice {}

/// The kinds of devices that a worker can serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DeviceKind {
    /// A real GPU if the machine has one, else the emulated one.
    #[default]
    Auto,
    /// The GPUs that AMD's HIP runtime finds, even if there are none.
    Hip,
    /// The emulated GPU.
    Sim,
    /// A device that accepts everything and computes nothing.
    Null,
}

impl DeviceKind {
    /// All kinds.
    pub(crate) const ALL: [Self; 4] = [Self::Auto, Self::Hip, Self::Sim, Self::Null];

    /// Returns the name that chooses it on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Hip => "hip",
            Self::Sim => "sim",
            Self::Null => "null",
        }
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DeviceKind {
    type Err = NoDevice;

    fn from_str(name: &str) -> Result<Self, NoDevice> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| NoDevice::Unknown(name.into()))
    }
}

/// The HSA library that AMD's HIP runtime uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum HsaKind {
    /// The machine's own.
    #[default]
    System,
    /// hipr's, which emulates GPUs.
    Emulated,
}

/// The options that choose and configure a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceChoice {
    /// The kind of device.
    pub(crate) kind: DeviceKind,
    /// Path of the HIP runtime's library; `None` for its usual names.
    pub(crate) hip_library: Option<PathBuf>,
    /// The HSA library below it.
    pub(crate) hsa: HsaKind,
    /// Folder in which the processes of one worker exchange what their sessions share; `None` for a worker of one process.
    pub(crate) exchange: Option<PathBuf>,
    /// Whether the process is one session's, so that what its HIP runtime prints is what that session's kernels print.
    pub(crate) is_one_session: bool,
    /// Options of the emulated GPU.
    pub(crate) sim: Sim,
}

impl From<DeviceKind> for DeviceChoice {
    fn from(kind: DeviceKind) -> Self {
        Self { kind, ..Self::default() }
    }
}

impl DeviceChoice {
    fn load_hip(&self) -> Result<Hip, NoDevice> {
        if self.hsa == HsaKind::Emulated {
            // The loader gives the runtime the library of this name that is in the process already.
            let library = library::HSA.find().map_err(NoDevice::Hsa)?;
            hipr_dynlib::open("HSA library", [library]).map_err(|why| NoDevice::Hsa(why.to_string()))?;
        }
        let hip = Hip::load(self.hip_library.as_deref(), self.exchange.as_deref()).map_err(NoDevice::Hip)?;
        if self.is_one_session { hip.with_output().map_err(NoDevice::Output) } else { Ok(hip) }
    }
}

/// Opens the chosen device. Logs which one `auto` chose, and why.
///
/// # Errors
/// There is no HIP runtime (only for `hip`, and for `auto` with a library's path), or the system does not give what the
/// device needs.
pub(crate) fn open(choice: &DeviceChoice) -> Result<Arc<dyn Device>, NoDevice> {
    match choice.kind {
        DeviceKind::Hip => Ok(Arc::new(choice.load_hip()?)),
        DeviceKind::Sim => open_sim(choice, None),
        DeviceKind::Null => Ok(Arc::new(Null)),
        DeviceKind::Auto => auto(choice),
    }
}

/// Opens the emulated GPU, whose threads work when `gate` lets them.
///
/// # Errors
/// Its options are wrong, or the system does not give its threads.
pub(crate) fn open_sim(
    choice: &DeviceChoice,
    gate: Option<Arc<dyn Gate>>,
) -> Result<Arc<dyn Device>, NoDevice> {
    let config = choice.sim.config().map_err(NoDevice::Options)?;
    match Gpu::with_gate(config, gate) {
        Ok(device) => Ok(Arc::new(device)),
        Err(why) => Err(NoDevice::Sim(why)),
    }
}

/// Chooses a device for `auto`. Fails if a library was named that cannot be loaded; if it finds no GPU, the emulated one is
/// chosen.
fn auto(choice: &DeviceChoice) -> Result<Arc<dyn Device>, NoDevice> {
    let hip = match choice.load_hip() {
        Ok(hip) => hip,
        Err(why) if choice.hip_library.is_none() => {
            info!(%why, "serving the emulated GPU: no HIP runtime was found");
            return open_sim(choice, None);
        }
        Err(why) => return Err(why),
    };
    let library = hip.library().display().to_string();
    match hip.device_count() {
        Ok(count) if count > 0 => {
            info!(library, count, "serving the GPUs that the HIP runtime found");
            Ok(Arc::new(hip))
        }
        Ok(_) => {
            info!(library, "serving the emulated GPU: the HIP runtime found no GPU");
            open_sim(choice, None)
        }
        Err(error) => {
            info!(library, %error, "serving the emulated GPU: the HIP runtime found no GPU");
            open_sim(choice, None)
        }
    }
}
