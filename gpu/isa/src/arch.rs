//! The GPUs that can be emulated.

use std::fmt;
use std::str::FromStr;

/// An instruction set, and with it the GPU that has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arch {
    /// CDNA 2: an MI210.
    Gfx90a,
    /// CDNA 3: an MI300X.
    #[default]
    Gfx942,
}

impl Arch {
    /// All emulated GPUs.
    pub const ALL: [Self; 2] = [Self::Gfx90a, Self::Gfx942];

    /// Returns the processor's name in LLVM and HIP, without features.
    pub const fn processor(self) -> &'static str {
        match self {
            Self::Gfx90a => "gfx90a",
            Self::Gfx942 => "gfx942",
        }
    }

    /// Returns the other emulated GPU.
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Gfx90a => Self::Gfx942,
            Self::Gfx942 => Self::Gfx90a,
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.processor())
    }
}

/// No [`Arch`] has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownArch(String);

impl fmt::Display for UnknownArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' cannot be emulated; {} and {} can", self.0, Arch::ALL[0], Arch::ALL[1])
    }
}

impl std::error::Error for UnknownArch {}

impl FromStr for Arch {
    type Err = UnknownArch;

    fn from_str(name: &str) -> Result<Self, UnknownArch> {
        Self::ALL.into_iter().find(|arch| arch.processor() == name).ok_or_else(|| UnknownArch(name.into()))
    }
}
