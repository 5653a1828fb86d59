//! Options of the emulated GPU.

use clap::Args;
use hipr_sim::{Arch, Config};
use std::num::NonZero;
use std::time::Duration;

/// Configuration of the emulated GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Emulated GPU")]
pub(crate) struct Sim {
    /// GPU to emulate: gfx942 (an MI300X) or gfx90a (an MI210).
    #[arg(long, value_name = "ARCH", default_value_t = Arch::default())]
    sim_arch: Arch,
    /// Number of GPUs to emulate. [default: $HIPR_SIM_DEVICES, else 1]
    #[arg(long, value_name = "N", value_parser = devices)]
    sim_devices: Option<NonZero<usize>>,
    /// Seconds after which a kernel fails with hipErrorLaunchTimeOut. [default: no limit; 60 for hipr check]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    sim_kernel_timeout: Option<Duration>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|why| format!("{why}"))?;
    let timeout = Duration::try_from_secs_f64(seconds).map_err(|why| why.to_string())?;
    if timeout.is_zero() { Err("it must be more than 0".into()) } else { Ok(timeout) }
}

fn devices(text: &str) -> Result<NonZero<usize>, String> {
    let count = text.trim().parse().ok().filter(|count: &NonZero<usize>| count.get() <= Config::DEVICES_MAX);
    count.ok_or_else(|| format!("it must be a number from 1 to {}", Config::DEVICES_MAX))
}

/// The environment variable that says how many GPUs are emulated.
const DEVICES: &str = "HIPR_SIM_DEVICES";

impl Sim {
    /// Returns the configuration with this limit of a kernel's time, if none was asked for.
    pub(crate) fn or_kernel_timeout(self, timeout: Duration) -> Self {
        Self { sim_kernel_timeout: self.sim_kernel_timeout.or(Some(timeout)), ..self }
    }

    /// Returns the emulated GPU's configuration.
    ///
    /// # Errors
    /// The environment names no number of GPUs.
    pub(crate) fn config(self) -> Result<Config, String> {
        let (arch, kernel_timeout) = (self.sim_arch, self.sim_kernel_timeout);
        let wanted =
            std::env::var(DEVICES).ok().filter(|text| self.sim_devices.is_none() && !text.trim().is_empty());
        let from_env = wanted.map(|text| devices(&text).map_err(|why| format!("{DEVICES}={text}: {why}")));
        let devices = self.sim_devices.or(from_env.transpose()?);
        Ok(Config { arch, devices, kernel_timeout, ..Config::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_counted() {
        assert_eq!(devices(" 16 "), Ok(NonZero::new(16).unwrap()));
        for wrong in ["", "0", "17", "-1", "2,gfx942", "two"] {
            assert!(devices(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_out_is_a_time() {
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        for wrong in ["", "0", "-1", "nan", "inf", "1e300", "2s"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
