//! Which device a worker serves, chosen when it starts.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use tracing::info;

use super::hip::Hip;
use super::null::Null;
use super::sim::Sim;
use super::{Device, NoDevice};

/// The kinds of device that can be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceKind {
    /// A real GPU if the machine has one, else the emulated one.
    #[default]
    Auto,
    /// The GPUs that AMD's HIP runtime finds, even if that is none.
    Hip,
    /// The emulated GPU.
    Sim,
    /// One that does nothing.
    Null,
}

impl DeviceKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Hip, Self::Sim, Self::Null];

    /// The name by which it is chosen.
    pub const fn name(self) -> &'static str {
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

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceChoice {
    /// Which kind.
    pub kind: DeviceKind,
    /// The HIP runtime's library; `None` looks under its usual names.
    pub hip_library: Option<PathBuf>,
    /// A folder in which the processes of one worker tell each other what their sessions share; `None` for a worker of one
    /// process.
    pub exchange: Option<PathBuf>,
    /// What the emulated GPU is to be like.
    pub sim: hipr_sim::Config,
}

impl From<DeviceKind> for DeviceChoice {
    fn from(kind: DeviceKind) -> Self {
        Self { kind, ..Self::default() }
    }
}

impl DeviceChoice {
    fn load_hip(&self) -> Result<Hip, NoDevice> {
        Hip::load(self.hip_library.as_deref(), self.exchange.as_deref())
    }
}

/// Opens the chosen device. What `auto` took, and why, is logged.
///
/// # Errors
/// There is no HIP runtime (only for `hip`, and for `auto` with a library's path), or the system does not give what the
/// device needs.
pub fn open(choice: &DeviceChoice) -> Result<Arc<dyn Device>, NoDevice> {
    match choice.kind {
        DeviceKind::Hip => Ok(Arc::new(choice.load_hip()?)),
        DeviceKind::Sim => sim(choice),
        DeviceKind::Null => Ok(Arc::new(Null)),
        DeviceKind::Auto => auto(choice),
    }
}

fn sim(choice: &DeviceChoice) -> Result<Arc<dyn Device>, NoDevice> {
    match Sim::new(choice.sim) {
        Ok(device) => Ok(Arc::new(device)),
        Err(why) => Err(NoDevice::System("sim", why)),
    }
}

/// A library that was named must be there; whether it finds a GPU is another matter.
fn auto(choice: &DeviceChoice) -> Result<Arc<dyn Device>, NoDevice> {
    let hip = match choice.load_hip() {
        Ok(hip) => hip,
        Err(why) if choice.hip_library.is_none() => {
            info!(%why, "the emulated GPU serves: there is no HIP runtime");
            return sim(choice);
        }
        Err(why) => return Err(why),
    };
    let library = hip.library().display().to_string();
    match hip.device_count() {
        Ok(count) if count > 0 => {
            info!(library, count, "real GPUs serve: the HIP runtime finds them");
            Ok(Arc::new(hip))
        }
        Ok(_) => {
            info!(library, "the emulated GPU serves: the HIP runtime finds no GPU");
            sim(choice)
        }
        Err(error) => {
            info!(library, %error, "the emulated GPU serves: the HIP runtime finds no GPU");
            sim(choice)
        }
    }
}
