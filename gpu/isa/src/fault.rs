//! Faults: why a wave cannot continue.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// An access that no allocation covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadAddress {
    /// The first byte of the access.
    pub addr: u64,
    /// Size of the access in bytes.
    pub len_bytes: u64,
}

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no memory at {:#x} ({} bytes)", self.addr, self.len_bytes)
    }
}

impl std::error::Error for BadAddress {}

/// The cause of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The instruction is unknown, or used in a way that is not implemented; then its mnemonic is known.
    Unknown {
        /// The encoding: first word in the low half, the next one, if there is one, in the high half.
        word: u64,
        /// The mnemonic that another GPU has for the encoding.
        mnemonic: Option<&'static str>,
    },
    /// The program counter left the code.
    BadPc,
    /// An access to an address without memory.
    IllegalAddress {
        /// The lane, `None` for a scalar access.
        lane: Option<u32>,
        /// What was accessed.
        access: BadAddress,
        /// Whether it would have changed memory.
        write: bool,
    },
    /// An atomic whose address is not a multiple of its size.
    MisalignedAtomic {
        /// The lane.
        lane: u32,
        /// The address.
        addr: u64,
    },
    /// `ds_gws_*` in a launch that is not cooperative: its queue has no global wave sync.
    NoGlobalWaveSync(&'static str),
    /// `s_trap` with this number; 2 is an abort.
    Trap(u8),
    /// The launch reached this limit of instructions.
    InstructionLimit(u64),
    /// The launch reached this limit of time.
    TimeOut(Duration),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { word, mnemonic: Some(mnemonic) } => {
                write!(f, "{mnemonic} ({word:#x}) is not implemented on this GPU")
            }
            Self::Unknown { word, mnemonic: None } => write!(f, "{word:#x} is not an instruction"),
            Self::BadPc => write!(f, "the program counter left the code"),
            Self::IllegalAddress { lane, access, write } => {
                write!(f, "illegal {}: {access}", if *write { "store" } else { "load" })?;
                match lane {
                    Some(lane) => write!(f, ", lane {lane}"),
                    None => Ok(()),
                }
            }
            Self::MisalignedAtomic { lane, addr } => write!(f, "misaligned atomic at {addr:#x}, lane {lane}"),
            Self::NoGlobalWaveSync(mnemonic) => {
                write!(
                    f,
                    "{mnemonic}, but the launch is not cooperative, so that its queue has no global wave sync"
                )
            }
            Self::Trap(id) => write!(f, "trap {id}"),
            Self::TimeOut(timeout) => write!(f, "stopped after {timeout:?}"),
            Self::InstructionLimit(limit) => write!(f, "stopped after {limit} instructions"),
        }
    }
}

/// The reason why a wave cannot continue, and where that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The reason.
    pub cause: Cause,
    /// Address of the instruction.
    pub pc: u64,
    /// The mnemonic of the instruction, where it was decoded.
    pub mnemonic: Option<&'static str>,
    /// Name of the kernel, once the executor has added it.
    pub kernel: Option<Arc<str>>,
}

impl Fault {
    /// Adds the name of the kernel that the wave belongs to.
    #[must_use]
    pub fn in_kernel(mut self, name: Arc<str>) -> Self {
        self.kernel = Some(name);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at pc {:#x}", self.cause, self.pc)?;
        if let (Some(mnemonic), false) = (self.mnemonic, matches!(self.cause, Cause::Unknown { .. })) {
            write!(f, " ({mnemonic})")?;
        }
        if let Some(kernel) = &self.kernel {
            write!(f, " in kernel {kernel}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}
