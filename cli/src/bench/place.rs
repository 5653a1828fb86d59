//! Placement of client and worker on processor cores.

use clap::ValueEnum;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// How client and worker share the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Place {
    /// As the system schedules them.
    Free,
    /// On one core each, if there are two.
    Apart,
    /// On the same core.
    Together,
}

/// A processor core, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Core(usize);

impl FromStr for Core {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

impl fmt::Display for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Free => "free",
            Self::Apart => "apart",
            Self::Together => "together",
        })
    }
}

impl Place {
    /// Returns a description for the report.
    pub(crate) fn note(self) -> &'static str {
        match self {
            Self::Free => "they share the cores as the system schedules them",
            Self::Apart => "each has a core of its own",
            Self::Together => "they share one core",
        }
    }

    /// Returns the core of the client and that of the worker; `None` for any core.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn cores(self) -> Result<(Option<Core>, Option<Core>), String> {
        let allowed =
            sched_getaffinity(None).map_err(|why| format!("cannot list the processor cores: {why}"))?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).map(Core);
        let first = cores.next();
        Ok(match self {
            Self::Free => (None, None),
            Self::Apart => (first, cores.next().or(first)),
            Self::Together => (first, first),
        })
    }
}

impl Core {
    /// Moves this thread, and threads that it starts later, to this core.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn take(self) -> Result<(), String> {
        if self.0 >= CpuSet::MAX_CPU {
            return Err(format!("there is no core {self}"));
        }
        let mut set = CpuSet::new();
        set.set(self.0);
        sched_setaffinity(None, &set).map_err(|why| format!("cannot run on core {self}: {why}"))
    }
}
