//! Kernels in the program's modules.

use hipr_proto::op::Param;

use crate::convert::Module;

/// A kernel of a loaded module.
#[derive(Debug)]
pub struct Function {
    /// The kernel's handle on the wire.
    pub handle: u64,
    /// The kernel's name.
    pub name: String,
    /// Layout of the explicit parameters in the kernarg segment, in bytes.
    pub params: Vec<Param>,
    /// Largest number of threads in a block for which the kernel was compiled; None if unknown.
    pub max_threads: Option<u32>,
    /// The module that contains the kernel.
    pub module: Module,
}
