//! `hipr hsa`: runs a program of AMD's runtime on emulated GPUs.

use crate::launch::Program;
use crate::library;
use clap::Args;
use hipr_sim::Arch;
use hipr_tls::Size;
use std::ffi::OsString;
use std::num::NonZero;
use std::process::ExitCode;

/// Options of `hipr hsa`.
#[derive(Debug, Args)]
pub(crate) struct Hsa {
    /// How many GPUs, or which: 2, or gfx942,gfx90a, or 2,gfx942,1,gfx90a. [default: $HIPR_SIM_DEVICES, else one]
    #[arg(long, value_name = "LIST")]
    devices: Option<String>,
    /// GPU to emulate, where --devices gives only a number: gfx942 (an MI300X) or gfx90a (an MI210). [default: gfx942]
    #[arg(long, value_name = "ARCH")]
    arch: Option<Arch>,
    /// Memory of each GPU, for example 16G. [default: $HIPR_SIM_MEMORY, else as much as this machine can give]
    #[arg(long, value_name = "SIZE")]
    memory: Option<Size>,
    /// Threads that execute kernels. [default: $HIPR_SIM_THREADS, else one for each processor]
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM ARGS")]
    program: Vec<OsString>,
}

impl Hsa {
    /// Returns the value of `HIPR_SIM_DEVICES`; `None` leaves what it is.
    ///
    /// # Errors
    /// The list names GPUs, and so does the other option.
    fn devices(&self) -> Result<Option<String>, String> {
        match (&self.devices, self.arch) {
            (list, None) => Ok(list.clone()),
            (None, Some(arch)) => Ok(Some(arch.to_string())),
            (Some(count), Some(arch)) if count.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok(Some(format!("{count},{arch}")))
            }
            (Some(list), Some(arch)) => {
                Err(format!("--devices {list} names GPUs, so --arch {arch} says nothing: leave one out"))
            }
        }
    }

    /// Returns the environment variables that configure the library.
    fn variables(&self) -> Result<impl Iterator<Item = (&'static str, String)> + use<>, String> {
        let variables = [
            ("HIPR_SIM_DEVICES", self.devices()?),
            ("HIPR_SIM_MEMORY", self.memory.map(|size| size.to_string())),
            ("HIPR_SIM_THREADS", self.threads.map(|count| count.to_string())),
        ];
        Ok(variables.into_iter().filter_map(|(name, value)| Some((name, value?))))
    }
}

/// Runs the program; exits with its exit code, or like a shell with 128 + n if signal n ended it.
pub(crate) fn run(options: Hsa) -> Result<ExitCode, String> {
    let folder = library::HSA.folder()?;
    let mut program = Program::new(&options.program, &folder)?;
    program.envs(options.variables()?);
    program.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices(list: Option<&str>, arch: Option<&str>) -> Result<Option<String>, String> {
        let options = Hsa {
            devices: list.map(str::to_owned),
            arch: arch.map(|arch| arch.parse().expect("an architecture")),
            memory: None,
            threads: None,
            program: Vec::new(),
        };
        options.devices()
    }

    #[test]
    fn a_number_of_gpus_and_their_kind_go_together() {
        for (list, arch, expected) in [
            (None, None, None),
            (Some("2"), None, Some("2")),
            (Some("gfx90a,gfx942"), None, Some("gfx90a,gfx942")),
            (None, Some("gfx90a"), Some("gfx90a")),
            (Some("3"), Some("gfx90a"), Some("3,gfx90a")),
        ] {
            assert_eq!(devices(list, arch), Ok(expected.map(str::to_owned)), "{list:?} {arch:?}");
        }
        for list in ["gfx942", "2,gfx942", "2,1"] {
            assert!(devices(Some(list), Some("gfx90a")).is_err(), "{list}");
        }
    }
}
