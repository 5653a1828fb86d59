//! Options of the emulated GPU.

use clap::Args;
use hipr_sim::{Arch, Config};
use std::time::Duration;

/// Configuration of the emulated GPU.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Emulated GPU")]
pub(crate) struct Sim {
    /// GPU to emulate: gfx942 (an MI300X) or gfx90a (an MI210).
    #[arg(long, value_name = "ARCH", default_value_t = Arch::default())]
    sim_arch: Arch,
    /// Seconds after which a kernel fails with hipErrorLaunchTimeOut. [default: no limit; 60 for hipr check]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    sim_kernel_timeout: Option<Duration>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|why| format!("{why}"))?;
    let timeout = Duration::try_from_secs_f64(seconds).map_err(|why| why.to_string())?;
    if timeout.is_zero() { Err("it must be more than 0".into()) } else { Ok(timeout) }
}

impl Sim {
    /// Returns the configuration with this limit of a kernel's time, if none was asked for.
    pub(crate) fn or_kernel_timeout(self, timeout: Duration) -> Self {
        Self { sim_kernel_timeout: self.sim_kernel_timeout.or(Some(timeout)), ..self }
    }

    /// Returns the emulated GPU's configuration.
    pub(crate) fn config(self) -> Config {
        Config { arch: self.sim_arch, kernel_timeout: self.sim_kernel_timeout, ..Config::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_out_is_a_time() {
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        for wrong in ["", "0", "-1", "nan", "inf", "1e300", "2s"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
