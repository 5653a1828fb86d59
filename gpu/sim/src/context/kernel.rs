//! Modules, kernels and launches of a context.

use std::sync::Arc;

use hipr_proto::op::FuncGetAttributesReply;
use hipr_proto::{HipError, HipResult};

use super::Context;
use crate::executor::lock;
use crate::grid::Grid;
use crate::launch::{Launch, Param, Setup};
use crate::module::{Function, Module};
use crate::occupancy::Demand;
use crate::property;
use crate::stream::{Task, Work};

/// A kernel found in a module.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionInfo {
    /// The function's handle.
    pub handle: u64,
    /// Size of the kernarg segment in bytes, hidden arguments included.
    pub kernarg_size_bytes: u32,
    /// The explicit parameters in order.
    pub params: Vec<Param>,
}

/// An answer to "which block size fills the device".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize {
    /// Workgroups that fill the device.
    pub min_grid_size: i32,
    /// Work-items of a group.
    pub block_size: i32,
}

/// hipFuncAttributeMaxDynamicSharedMemorySize.
const FUNC_MAX_DYNAMIC_SHARED: i32 = 8;
/// hipFuncAttributePreferredSharedMemoryCarveout.
const FUNC_CARVEOUT: i32 = 9;
/// hipFuncAttributeMax.
const FUNC_MAX: i32 = 10;

impl Context {
    /// Loads a code object: an ELF or an offload bundle, also a compressed one.
    ///
    /// # Errors
    /// `NO_BINARY_FOR_GPU` when there is code for other devices only, `INVALID_IMAGE` for what is no code object,
    /// `SHARED_OBJECT_SYMBOL_NOT_FOUND` for undefined symbols, `OUT_OF_MEMORY`.
    pub fn module_load(&mut self, image: &[u8]) -> HipResult<u64> {
        let mut allocated = None;
        let (arch, level) = (self.gpu.arch, self.gpu.level);
        let module = Module::load(image, arch, level, |len_bytes| {
            let block = lock(&self.shared.state).allocator.allocate(len_bytes)?;
            allocated = Some(block.base());
            Ok(block)
        });
        match module {
            Ok(module) => {
                let handle = self.handle();
                self.modules.insert(handle, module);
                Ok(handle)
            }
            Err(error) => {
                if let Some(ptr) = allocated {
                    lock(&self.shared.state).allocator.finish_free(ptr);
                }
                Err(error)
            }
        }
    }

    /// Unloads a module; its memory goes when the work that is enqueued now is done.
    ///
    /// # Errors
    /// `INVALID_HANDLE`.
    pub fn module_unload(&mut self, module: u64) -> HipResult<()> {
        let unloaded = self.modules.remove(&module).ok_or(HipError::INVALID_HANDLE)?;
        self.functions.retain(|_, function| function.module != module);
        let ptr = unloaded.block.base();
        self.shared.update(|state| {
            let result = state.allocator.start_free(ptr);
            state.streams.enqueue_after_all(Work::Free(ptr));
            (result, false)
        })
    }

    /// A kernel by its name. The same handle for the same name.
    ///
    /// # Errors
    /// `INVALID_HANDLE` for an unknown module; `NOT_FOUND`.
    pub fn function(&mut self, module: u64, name: &str) -> HipResult<FunctionInfo> {
        let next_handle = self.next_handle + 1;
        let loaded = self.modules.get_mut(&module).ok_or(HipError::INVALID_HANDLE)?;
        let handle = match loaded.functions.get(name) {
            Some(&handle) => handle,
            None => {
                let function = loaded.function(name, module).ok_or(HipError::NOT_FOUND)?;
                loaded.functions.insert(name.to_owned(), next_handle);
                self.functions.insert(next_handle, Arc::new(function));
                self.next_handle = next_handle;
                next_handle
            }
        };
        let kernel = &self.loaded(handle)?.kernel;
        let params = kernel.param_layout().into_iter().map(|(offset, size)| Param { offset, size }).collect();
        Ok(FunctionInfo { handle, kernarg_size_bytes: kernel.kernarg_bytes, params })
    }

    fn loaded(&self, function: u64) -> HipResult<&Arc<Function>> {
        self.functions.get(&function).ok_or(HipError::INVALID_HANDLE)
    }

    /// Address and size in bytes of a device variable.
    ///
    /// # Errors
    /// `INVALID_HANDLE` for an unknown module; `NOT_FOUND`.
    pub fn global(&mut self, module: u64, name: &str) -> HipResult<(u64, u64)> {
        let module = self.modules.get(&module).ok_or(HipError::INVALID_HANDLE)?;
        module.global(name).ok_or(HipError::NOT_FOUND)
    }

    /// HIP API: hipFuncGetAttributes.
    ///
    /// # Errors
    /// `INVALID_HANDLE`.
    pub fn function_attributes(&self, function: u64) -> HipResult<FuncGetAttributesReply> {
        let function = self.loaded(function)?;
        let int = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
        let [major, minor] = function.arch.model().capability;
        let static_lds_bytes = function.static_lds_bytes();
        Ok(FuncGetAttributesReply {
            shared_size_bytes: int(static_lds_bytes),
            const_size_bytes: 0,
            local_size_bytes: int(function.kernel.descriptor.private_segment_bytes),
            num_regs: int(function.kernel.vgpr_count),
            max_threads_per_block: int(function.kernel.max_flat_workgroup_size),
            ptx_version: major * 10 + minor,
            binary_version: major * 10 + minor,
            cache_mode_ca: 0,
            max_dynamic_shared_size_bytes: int(property::LDS_BYTES.saturating_sub(static_lds_bytes)),
            preferred_shared_memory_carveout: 0,
        })
    }

    /// HIP API: hipFuncSetAttribute. All LDS is there for every kernel, so that nothing changes.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; `INVALID_VALUE` for an unknown attribute and for a value that HIP refuses.
    pub fn set_function_attribute(&mut self, function: u64, attribute: i32, value: i32) -> HipResult<()> {
        let free_lds_bytes = property::LDS_BYTES.saturating_sub(self.loaded(function)?.static_lds_bytes());
        let valid = match attribute {
            FUNC_MAX_DYNAMIC_SHARED => u32::try_from(value).is_ok_and(|value| value <= free_lds_bytes),
            FUNC_CARVEOUT => (-1..=100).contains(&value),
            _ => (0..=FUNC_MAX).contains(&attribute),
        };
        if valid { Ok(()) } else { Err(HipError::INVALID_VALUE) }
    }

    fn demand(&self, function: u64, shared_mem_bytes: u64) -> HipResult<Demand> {
        let function = self.loaded(function)?;
        let lds_bytes = u64::from(function.static_lds_bytes()).saturating_add(shared_mem_bytes.min(1 << 32));
        let max_block_size = function.kernel.max_flat_workgroup_size;
        Ok(Demand { vgprs: function.vgprs(), lds_bytes, max_block_size })
    }

    /// Workgroups of `block_size` work-items that one CU holds at a time.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; `INVALID_VALUE` for a block size below 1.
    pub fn max_active_blocks(&self, function: u64, block_size: i32, shared_mem_bytes: u64) -> HipResult<i32> {
        let demand = self.demand(function, shared_mem_bytes)?;
        let block_size =
            u32::try_from(block_size).ok().filter(|&size| size > 0).ok_or(HipError::INVALID_VALUE)?;
        Ok(demand.groups_per_cu(block_size) as i32)
    }

    /// The block size that fills the device; a `limit` of 0 is none.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; `INVALID_VALUE` for a negative limit.
    pub fn max_potential_block_size(
        &self,
        function: u64,
        shared_mem_bytes: u64,
        limit: i32,
    ) -> HipResult<BlockSize> {
        let compute_units = self.gpu.arch.model().compute_units;
        let demand = self.demand(function, shared_mem_bytes)?;
        let block_size = demand.best_block_size(u32::try_from(limit).map_err(|_| HipError::INVALID_VALUE)?);
        Ok(BlockSize {
            min_grid_size: demand.groups(block_size, compute_units) as i32,
            block_size: block_size as i32,
        })
    }

    /// Enqueues a kernel.
    ///
    /// # Errors
    /// `INVALID_HANDLE` for an unknown function, stream or event; for the others see the checks of a launch in HIP: wrong
    /// dimensions, arguments and resources are `INVALID_VALUE`, `INVALID_CONFIGURATION`, `LAUNCH_FAILURE`,
    /// `LAUNCH_OUT_OF_RESOURCES` or `COOPERATIVE_LAUNCH_TOO_LARGE`.
    pub fn launch(&mut self, launch: &Launch<'_>) -> HipResult<()> {
        let function = Arc::clone(self.loaded(launch.function)?);
        self.stream_flags(launch.stream)?;
        for event in launch.start_event.iter().chain(&launch.stop_event) {
            self.event(*event)?;
        }
        let setup = Setup::new(function, launch, self.stack_bytes)?;
        if let Some(event) = launch.start_event {
            self.event_record(event, launch.stream)?;
        }
        self.shared.enqueue(launch.stream, Work::Task(Task::Launch(Box::new(Grid(setup)))))?;
        launch.stop_event.map_or(Ok(()), |event| self.event_record(event, launch.stream))
    }
}
