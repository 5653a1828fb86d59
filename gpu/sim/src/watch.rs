//! What sees the work of an emulated device: checkers and profilers.
//!
//! A device without one ([`Gpu::watched`](crate::Gpu::watched) makes one with it) asks nothing and keeps nothing.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use hipr_device::{MemoryKind, Region};
use hipr_grid::{Dispatch, Failure, GridWatch};

pub use crate::order::Order;

/// Memory that a context has allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// The number of the context.
    pub context: u64,
    /// Address of the first byte.
    pub ptr: u64,
    /// Length in bytes, as it was asked for.
    pub len_bytes: u64,
    /// What it was allocated as.
    pub kind: MemoryKind,
    /// Whether the program may write it at any time without the device being told.
    pub is_shared: bool,
    /// Whether only kernels know of it: the heap that they allocate from, and what they call the host with.
    pub is_of_kernels: bool,
}

/// A module that a context has loaded.
#[derive(Clone, Copy, Debug)]
pub struct Loaded<'a> {
    /// The number of the context.
    pub context: u64,
    /// Address that the code object's address 0 is at.
    pub base: u64,
    /// Length in bytes of its memory.
    pub len_bytes: u64,
    /// The code object: an ELF file.
    pub elf: &'a [u8],
    /// Names and addresses of its variables.
    pub variables: &'a [(&'a str, Range<u64>)],
}

/// A kernel that starts.
#[derive(Clone, Copy, Debug)]
pub struct Started<'a> {
    /// The number of the context.
    pub context: u64,
    /// The stream.
    pub stream: u64,
    /// Its place among all work of the context; `None` where it is told of again.
    pub order: Option<&'a Order>,
    /// The kernel and its grid.
    pub dispatch: &'a Dispatch,
}

/// What moves bytes without a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// Bytes of the program are written.
    Write {
        /// Where to.
        dst: Region,
    },
    /// Bytes are copied.
    Copy {
        /// Where to.
        dst: Region,
        /// Where from.
        src: Region,
    },
    /// The program gets bytes.
    Read {
        /// Where from.
        src: Region,
    },
}

/// Sees the work of an emulated device, from several threads at a time.
pub trait DeviceWatch: Send + Sync {
    /// Memory was allocated.
    fn allocated(&self, memory: &Allocated);

    /// The program has freed the memory at `ptr`; work that was enqueued before may still use it.
    fn freed(&self, context: u64, ptr: u64);

    /// A module was loaded. Its memory was allocated before that.
    fn loaded(&self, module: &Loaded<'_>);

    /// A kernel starts. Returns what sees its workgroups, if anything does.
    fn started(&self, kernel: &Started<'_>) -> Option<Arc<dyn GridWatch>>;

    /// A kernel has ended: `failure` says why it did before all its workgroups had.
    fn ended(&self, kernel: &Started<'_>, failure: Option<&Failure>);

    /// Bytes are moved by a command with this place among all work, or, if that is `None`, by the program while the device waits.
    fn moved(&self, context: u64, order: Option<&Order>, moved: &Moved);

    /// A context has ended, and all its memory is gone.
    fn closed(&self, context: u64);
}

impl fmt::Debug for dyn DeviceWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceWatch")
    }
}
