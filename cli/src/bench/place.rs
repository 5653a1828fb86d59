//! Which core the client runs on, and which the other end.

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

/// A core, by its number.
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
    /// In a sentence.
    pub(crate) fn note(self) -> &'static str {
        match self {
            Self::Free => "they share the cores as the system schedules them",
            Self::Apart => "each has a core of its own",
            Self::Together => "they share one core",
        }
    }

    /// The core of the client and that of the other end; `None` where it is any.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn cores(self) -> Result<(Option<Core>, Option<Core>), String> {
        let allowed =
            sched_getaffinity(None).map_err(|why| format!("cannot tell which cores there are: {why}"))?;
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
    /// Moves this thread, and those that it will start, there.
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
