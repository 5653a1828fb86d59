//! Why a wave cannot go on.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::mem::BadAddress;

/// What an instruction did that it must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No such instruction, or a use of one that is not implemented; then its mnemonic is known.
    Unknown {
        /// The encoding: first word in the low half, the next one, if there is one, in the high half.
        word: u64,
        /// The mnemonic that another GPU has for the encoding.
        mnemonic: Option<&'static str>,
    },
    /// The program counter left the code.
    BadPc,
    /// An access that no memory answers.
    IllegalAddress {
        /// The lane, `None` for a scalar access.
        lane: Option<u32>,
        /// What was accessed.
        access: BadAddress,
        /// Whether it would have changed memory.
        write: bool,
    },
    /// An atomic whose address is no multiple of its size.
    MisalignedAtomic {
        /// The lane.
        lane: u32,
        /// The address.
        addr: u64,
    },
    /// `ds_gws_*`: the queue has no part in global wave sync.
    NoGlobalWaveSync(&'static str),
    /// `s_trap`: 2 is an abort.
    Trap(u8),
    /// The launch executed as many instructions as it may
    /// ([`Config::kernel_instructions_max`](crate::Config::kernel_instructions_max)).
    InstructionLimit(u64),
    /// The launch ran for as long as it may ([`Config::kernel_timeout`](crate::Config::kernel_timeout)).
    TimeOut(Duration),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { word, mnemonic: Some(mnemonic) } => {
                write!(f, "{mnemonic} ({word:#x}) is not implemented on this GPU")
            }
            Self::Unknown { word, mnemonic: None } => write!(f, "{word:#x} is no instruction"),
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
                write!(f, "{mnemonic}, but the queue has no global wave sync")
            }
            Self::Trap(id) => write!(f, "trap {id}"),
            Self::TimeOut(timeout) => write!(f, "stopped after {timeout:?}"),
            Self::InstructionLimit(limit) => write!(f, "stopped after {limit} instructions"),
        }
    }
}

/// A cause and where it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What happened.
    pub cause: Cause,
    /// Address of the instruction.
    pub pc: u64,
    /// The mnemonic of the instruction, where it was decoded.
    pub mnemonic: Option<&'static str>,
    /// The kernel, once the executor has said so.
    pub kernel: Option<Arc<str>>,
}

impl Fault {
    /// The same fault with the name of the kernel that the wave belongs to.
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
