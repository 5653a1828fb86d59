//! Kernels in the program's modules.

use std::sync::{Mutex, PoisonError};

use hipr_abi::hipFuncAttributes;
use hipr_code_object::rules::KernelNeeds;
use hipr_proto::op::Param;
use hipr_proto::{HipError, HipResult};

use crate::convert::Module;

/// What a code object says of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KernelFacts {
    /// Offset and size in bytes of each explicit parameter in the kernarg segment.
    pub params: Vec<(u32, u32)>,
    /// What it needs of a compute unit.
    pub needs: KernelNeeds,
}

/// A kernel of a loaded module.
#[derive(Debug)]
pub struct Function {
    /// The kernel's handle on the wire.
    pub handle: u64,
    /// The kernel's name.
    pub name: String,
    /// The module that contains the kernel.
    pub module: Module,
    /// The device on which it can be launched.
    pub device: i32,
    /// Layout of the explicit parameters in the kernarg segment, in bytes; None if the code object could not be parsed.
    pub(super) params: Option<Vec<Param>>,
    /// What the kernel needs of a compute unit; None if unknown.
    pub needs: Option<KernelNeeds>,
    /// The attributes, once the worker has told them.
    attributes: Mutex<Option<hipFuncAttributes>>,
}

impl KernelFacts {
    /// Returns the layout of the explicit parameters.
    pub(crate) fn layout(&self) -> Vec<Param> {
        self.params.iter().map(|&(offset, size)| Param { offset, size }).collect()
    }
}

impl Function {
    /// Creates a kernel of the first device with this layout of its explicit parameters, and what it needs; None if unknown.
    pub fn new(
        handle: u64,
        name: String,
        module: Module,
        params: Option<Vec<Param>>,
        needs: Option<KernelNeeds>,
    ) -> Self {
        Self { handle, name, module, device: 0, params, needs, attributes: Mutex::default() }
    }

    /// Makes it a kernel of another device.
    pub fn of_device(self, device: i32) -> Self {
        Self { device, ..self }
    }

    /// Returns the layout of the explicit parameters, which says how much of the program's memory a launch reads.
    ///
    /// # Errors
    /// `hipErrorInvalidImage` if the client could not parse the code object: what a worker says of it is not used to read memory.
    pub fn params(&self) -> HipResult<&[Param]> {
        self.params.as_deref().ok_or_else(|| {
            tracing::error!(
                "kernel {}: its code object is of an unknown version, so that its arguments can only be passed in one buffer (extra)",
                self.name
            );
            HipError::INVALID_IMAGE
        })
    }

    /// Returns the largest number of threads in a block for which the kernel was compiled; None if unknown.
    pub fn max_threads(&self) -> Option<u32> {
        self.needs.map(|needs| needs.max_block_size)
    }

    /// Returns the kernel's attributes; calls `ask` only the first time.
    ///
    /// # Errors
    /// Those of `ask`.
    pub(crate) fn attributes(
        &self,
        ask: impl FnOnce() -> HipResult<hipFuncAttributes>,
    ) -> HipResult<hipFuncAttributes> {
        if let Some(known) = *self.told() {
            return Ok(known);
        }
        let attributes = ask()?;
        *self.told() = Some(attributes);
        Ok(attributes)
    }

    /// Forgets the attributes, because one of them was set.
    pub(crate) fn forget_attributes(&self) {
        *self.told() = None;
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Option<hipFuncAttributes>> {
        self.attributes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
