//! Symbols of executables: what a program can ask of a kernel or a variable.

use std::sync::Arc;

use hipr_code_object::Kernel;

use crate::agent::handle_of;
use crate::facts::AgentIndex;
use crate::pointer::Ptr;
use crate::status::{HsaResult, Status};
use crate::types::Agent;

/// Attributes of a symbol (`hsa_executable_symbol_info_t`).
mod attribute {
    pub(super) const KIND: u32 = 0;
    pub(super) const NAME_LENGTH: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const MODULE_NAME_LENGTH: u32 = 3;
    pub(super) const MODULE_NAME: u32 = 4;
    pub(super) const LINKAGE: u32 = 5;
    pub(super) const VARIABLE_ALLOCATION: u32 = 6;
    pub(super) const VARIABLE_SEGMENT: u32 = 7;
    pub(super) const VARIABLE_ALIGNMENT: u32 = 8;
    pub(super) const VARIABLE_SIZE: u32 = 9;
    pub(super) const VARIABLE_IS_CONST: u32 = 10;
    pub(super) const KERNARG_SIZE: u32 = 11;
    pub(super) const KERNARG_ALIGNMENT: u32 = 12;
    pub(super) const GROUP_SIZE: u32 = 13;
    pub(super) const PRIVATE_SIZE: u32 = 14;
    pub(super) const DYNAMIC_CALL_STACK: u32 = 15;
    pub(super) const IS_DEFINITION: u32 = 17;
    pub(super) const CALL_CONVENTION: u32 = 18;
    pub(super) const AGENT: u32 = 20;
    pub(super) const VARIABLE_ADDRESS: u32 = 21;
    pub(super) const KERNEL_OBJECT: u32 = 22;
}

/// `HSA_SYMBOL_KIND_VARIABLE` and `HSA_SYMBOL_KIND_KERNEL`.
const KINDS: [u32; 2] = [0, 1];
/// `HSA_SYMBOL_LINKAGE_PROGRAM`: symbols that only their own module sees are not shown.
const LINKAGE_PROGRAM: u32 = 1;
/// The least alignment of kernel arguments.
const KERNARG_ALIGN_MIN: u32 = 16;

/// The segment that a variable belongs to (`hsa_variable_segment_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// The global segment.
    Global = 0,
    /// The readonly segment.
    Readonly = 1,
}

/// What a symbol is.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A kernel: the name of its descriptor.
    Kernel {
        /// Bytes of its arguments.
        kernarg_bytes: u32,
        /// Their alignment.
        kernarg_align: u32,
        /// Bytes of LDS that it declares.
        group_bytes: u32,
        /// Bytes of scratch of a work-item.
        private_bytes: u32,
        /// Whether it may need more scratch.
        has_dynamic_stack: bool,
    },
    /// A variable.
    Variable {
        /// Its size in bytes; 0 if the program has defined it.
        len_bytes: u64,
        /// Its alignment; 0 if the program has defined it.
        align: u64,
        is_const: bool,
        segment: Segment,
    },
}

impl Kind {
    /// Returns what a kernel is. Sizes are the descriptor's; old compilers left that of the arguments to the metadata.
    pub(crate) fn of_kernel(kernel: &Kernel) -> Self {
        let descriptor = &kernel.descriptor;
        Self::Kernel {
            kernarg_bytes: if descriptor.kernarg_bytes == 0 {
                kernel.kernarg_bytes
            } else {
                descriptor.kernarg_bytes
            },
            kernarg_align: kernel.kernarg_align.max(KERNARG_ALIGN_MIN),
            group_bytes: descriptor.group_segment_bytes,
            private_bytes: descriptor.private_segment_bytes,
            has_dynamic_stack: kernel.uses_dynamic_stack,
        }
    }
}

/// A symbol of an executable.
#[derive(Debug)]
pub(crate) struct Symbol {
    pub(crate) name: Arc<str>,
    /// The agent that has it; `None` if all agents have it.
    pub(crate) agent: Option<AgentIndex>,
    /// Address of the variable, or of the kernel's descriptor.
    pub(crate) addr: u64,
    pub(crate) kind: Kind,
}

impl Symbol {
    /// Writes the value of an attribute. Addresses are 0 until the executable is frozen.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an attribute that such a symbol does not have, and without a place for the value.
    pub(crate) fn info(&self, is_frozen: bool, attribute: u32, value: Ptr) -> HsaResult {
        use self::attribute as a;
        match attribute {
            a::NAME_LENGTH => return value.put(self.name.len() as u32),
            // There is room for the name and nothing behind it.
            a::NAME => return value.put_bytes(self.name.as_bytes()),
            a::MODULE_NAME_LENGTH => return value.put(0u32),
            a::MODULE_NAME => return value.put_bytes(&[]),
            a::LINKAGE => return value.put(LINKAGE_PROGRAM),
            a::IS_DEFINITION => return value.put(true),
            a::AGENT => return value.put(self.agent.map_or(Agent(0), handle_of)),
            a::VARIABLE_ADDRESS | a::KERNEL_OBJECT => {
                return value.put(if is_frozen { self.addr } else { 0 });
            }
            _ => {}
        }
        match self.kind {
            Kind::Kernel { kernarg_bytes, kernarg_align, group_bytes, private_bytes, has_dynamic_stack } => {
                match attribute {
                    a::KIND => value.put(KINDS[1]),
                    a::KERNARG_SIZE => value.put(kernarg_bytes),
                    a::KERNARG_ALIGNMENT => value.put(kernarg_align),
                    a::GROUP_SIZE => value.put(group_bytes),
                    a::PRIVATE_SIZE => value.put(private_bytes),
                    a::DYNAMIC_CALL_STACK => value.put(has_dynamic_stack),
                    a::CALL_CONVENTION => value.put(0u32),
                    _ => Err(Status::ERROR_INVALID_ARGUMENT),
                }
            }
            Kind::Variable { len_bytes, align, is_const, segment } => match attribute {
                a::KIND => value.put(KINDS[0]),
                a::VARIABLE_ALLOCATION => value.put(u32::from(self.agent.is_none())),
                a::VARIABLE_SEGMENT => value.put(segment as u32),
                a::VARIABLE_ALIGNMENT => value.put(u32::try_from(align).unwrap_or(u32::MAX)),
                a::VARIABLE_SIZE => value.put(u32::try_from(len_bytes).unwrap_or(u32::MAX)),
                a::VARIABLE_IS_CONST => value.put(is_const),
                _ => Err(Status::ERROR_INVALID_ARGUMENT),
            },
        }
    }
}
