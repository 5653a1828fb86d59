//! Builds kernarg segments from the program's arguments and the hidden arguments that a launch adds.

use thiserror::Error;

use crate::{Arg, Kernel, ValueKind};

/// Why arguments do not fit a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KernargError {
    /// The segment to write to is smaller than [`Kernel::kernarg_bytes`].
    #[error("the kernarg segment has {len} bytes, the kernel needs {needed}")]
    Segment {
        /// Size of the segment in bytes.
        len: usize,
        /// Bytes that the kernel needs.
        needed: usize,
    },
    /// There are more or fewer arguments than parameters.
    #[error("{given} arguments were given for {params} parameters")]
    Count {
        /// Number of arguments.
        given: usize,
        /// Number of the kernel's parameters.
        params: usize,
    },
    /// An argument does not have the size of its parameter.
    #[error("argument {index} has {len} bytes, the parameter has {size}")]
    Size {
        /// Index of the argument.
        index: usize,
        /// Size of the argument in bytes.
        len: usize,
        /// Size of the parameter in bytes.
        size: u32,
    },
    /// An argument buffer is too short for the kernel's parameters.
    #[error("the argument buffer has {len} bytes, the parameters end at {needed}")]
    Flat {
        /// Size of the buffer in bytes.
        len: usize,
        /// Bytes that the parameters need.
        needed: u32,
    },
}

/// Facts about a launch that its kernel receives in hidden arguments. Code objects v4, v5 and v6 differ only in which of them
/// they request and where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LaunchFacts {
    /// Number of full workgroups in x, y and z.
    pub block_count: [u32; 3],
    /// Work-items of a full workgroup in x, y and z.
    pub group_size: [u16; 3],
    /// Work-items of the last, partial workgroup in x, y and z; 0 if it is full.
    pub remainder: [u16; 3],
    /// First global id in x, y and z (OpenCL only).
    pub global_offset: [u64; 3],
    /// Dimensions of the grid. HIP always launches with 3.
    pub grid_dims: u16,
    /// Bytes of LDS in addition to those that the kernel declares.
    pub dynamic_lds_bytes: u32,
    /// Address of the buffer for device printf, assert and malloc; 0 if there is none.
    pub hostcall_buffer: u64,
    /// Address of OpenCL's printf buffer.
    pub printf_buffer: u64,
    /// Address of the state that a grid-wide barrier uses; 0 outside of cooperative launches.
    pub multigrid_sync_arg: u64,
    /// Address of the device heap.
    pub heap_v1: u64,
    /// Address of the queue for device enqueue.
    pub default_queue: u64,
    /// Address of the completion action for device enqueue.
    pub completion_action: u64,
    /// Address of the queue.
    pub queue_ptr: u64,
    /// High half of the scratch aperture's address.
    pub private_base: u32,
    /// High half of the LDS aperture's address.
    pub shared_base: u32,
}

impl LaunchFacts {
    /// Returns the facts of a launch of `grid` full workgroups of `block` work-items (HIP API: hipModuleLaunchKernel).
    /// Block sizes are clamped to 65535.
    pub fn blocks(grid: [u32; 3], block: [u32; 3], dynamic_lds_bytes: u32) -> LaunchFacts {
        LaunchFacts {
            block_count: grid,
            group_size: block.map(clamp),
            grid_dims: 3,
            dynamic_lds_bytes,
            ..Self::default()
        }
    }

    /// Returns the facts of a launch of `global` work-items in workgroups of `block`, of which the last may be partial (HIP
    /// API: hipExtModuleLaunchKernel).
    pub fn work_items(global: [u32; 3], block: [u32; 3], dynamic_lds_bytes: u32) -> LaunchFacts {
        let mut facts = Self::blocks([0; 3], block, dynamic_lds_bytes);
        let dimensions =
            facts.block_count.iter_mut().zip(&mut facts.remainder).zip(global.iter().zip(&block));
        for ((count, remainder), (global, block)) in dimensions {
            *count = global / (*block).max(1);
            *remainder = clamp(global % (*block).max(1));
        }
        facts
    }

    /// Returns the value of a hidden argument of this kind; `None` if it is not hidden, unknown or always zero.
    pub fn value(&self, kind: &ValueKind) -> Option<u64> {
        use ValueKind as K;
        Some(match kind {
            K::HiddenBlockCountX => self.block_count[0].into(),
            K::HiddenBlockCountY => self.block_count[1].into(),
            K::HiddenBlockCountZ => self.block_count[2].into(),
            K::HiddenGroupSizeX => self.group_size[0].into(),
            K::HiddenGroupSizeY => self.group_size[1].into(),
            K::HiddenGroupSizeZ => self.group_size[2].into(),
            K::HiddenRemainderX => self.remainder[0].into(),
            K::HiddenRemainderY => self.remainder[1].into(),
            K::HiddenRemainderZ => self.remainder[2].into(),
            K::HiddenGlobalOffsetX => self.global_offset[0],
            K::HiddenGlobalOffsetY => self.global_offset[1],
            K::HiddenGlobalOffsetZ => self.global_offset[2],
            K::HiddenGridDims => self.grid_dims.into(),
            K::HiddenPrintfBuffer => self.printf_buffer,
            K::HiddenHostcallBuffer => self.hostcall_buffer,
            K::HiddenMultigridSyncArg => self.multigrid_sync_arg,
            K::HiddenHeapV1 => self.heap_v1,
            K::HiddenDefaultQueue => self.default_queue,
            K::HiddenCompletionAction => self.completion_action,
            K::HiddenDynamicLdsSize => self.dynamic_lds_bytes.into(),
            K::HiddenPrivateBase => self.private_base.into(),
            K::HiddenSharedBase => self.shared_base.into(),
            K::HiddenQueuePtr => self.queue_ptr,
            _ => return None,
        })
    }
}

fn clamp(value: u32) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

impl Kernel {
    /// Iterates over the parameters that the program passes values for, in order.
    pub fn explicit_params(&self) -> impl Iterator<Item = &Arg> {
        self.args.iter().filter(|arg| !arg.kind.is_hidden())
    }

    /// Returns offset and size in bytes of each parameter that the program passes a value for, in order.
    pub fn param_layout(&self) -> Vec<(u32, u32)> {
        self.explicit_params().map(|arg| (arg.offset, arg.size)).collect()
    }

    /// Iterates over the arguments that the launch fills in, in the order of the metadata.
    pub fn hidden_args(&self) -> impl Iterator<Item = &Arg> {
        self.args.iter().filter(|arg| arg.kind.is_hidden())
    }

    /// Returns the offset in bytes at which the last of the program's parameters ends.
    pub fn explicit_bytes(&self) -> u32 {
        self.explicit_params().map(|arg| arg.offset + arg.size).max().unwrap_or(0)
    }

    /// Returns whether the kernel has a hidden argument of this kind.
    pub fn uses(&self, kind: &ValueKind) -> bool {
        self.args.iter().any(|arg| arg.kind == *kind)
    }

    /// Builds the kernarg segment from one value per parameter, each of which must have the parameter's size (HIP API:
    /// hipModuleLaunchKernel with kernelParams).
    pub fn kernarg_of_params(&self, values: &[&[u8]], facts: &LaunchFacts) -> Result<Vec<u8>, KernargError> {
        let params = self.explicit_params().count();
        if values.len() != params {
            return Err(KernargError::Count { given: values.len(), params });
        }
        let mut segment = vec![0; self.kernarg_bytes as usize];
        for (index, (value, param)) in values.iter().zip(self.explicit_params()).enumerate() {
            if value.len() != param.size as usize {
                return Err(KernargError::Size { index, len: value.len(), size: param.size });
            }
            put(&mut segment, param.offset, value);
        }
        self.write_hidden(&mut segment, facts)?;
        Ok(segment)
    }

    /// Builds the kernarg segment from a buffer that contains the parameters at their offsets (HIP API:
    /// hipModuleLaunchKernel with HIP_LAUNCH_PARAM_BUFFER_POINTER). Bytes behind the last parameter are ignored.
    pub fn kernarg_of_buffer(&self, buffer: &[u8], facts: &LaunchFacts) -> Result<Vec<u8>, KernargError> {
        let needed = self.explicit_bytes();
        let explicit =
            buffer.get(..needed as usize).ok_or(KernargError::Flat { len: buffer.len(), needed })?;
        let mut segment = vec![0; self.kernarg_bytes as usize];
        put(&mut segment, 0, explicit);
        self.write_hidden(&mut segment, facts)?;
        Ok(segment)
    }

    /// Writes the kernel's hidden arguments to their places in a kernarg segment.
    pub fn write_hidden(&self, segment: &mut [u8], facts: &LaunchFacts) -> Result<(), KernargError> {
        let needed = self.kernarg_bytes as usize;
        if segment.len() < needed {
            return Err(KernargError::Segment { len: segment.len(), needed });
        }
        for arg in self.hidden_args() {
            let value = facts.value(&arg.kind).unwrap_or(0).to_le_bytes();
            let len = value.len().min(arg.size as usize);
            put(segment, arg.offset, value.get(..len).unwrap_or_default());
        }
        Ok(())
    }
}

/// Copies `bytes` to `offset`; the metadata was checked so that arguments lie within the segment.
fn put(segment: &mut [u8], offset: u32, bytes: &[u8]) {
    let place = segment.get_mut(offset as usize..).and_then(|rest| rest.get_mut(..bytes.len()));
    if let Some(place) = place {
        place.copy_from_slice(bytes);
    }
}
