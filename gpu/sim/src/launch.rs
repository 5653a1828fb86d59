//! Prepares launches: checks, the kernarg segment and the dispatch packet.

use std::sync::Arc;

use hipr_abi::{LaunchFamily, LaunchLimits, LaunchSize};
use hipr_code_object::LaunchFacts;
use hipr_device::{Args, Launch, Origin, Param};
use hipr_grid::{Addresses, Dispatch, GridSize, user_sgprs};
use hipr_proto::{HipError, HipResult};

use crate::hostcall::{BufferPlace, Places, packets};
use crate::module::Function;
use crate::property as p;
use hipr_isa::aperture::{PRIVATE_HIGH, SHARED_HIGH};
use hipr_isa::gws::WaveSync;
use hipr_isa::map::FIRST_ADDRESS;
use hipr_isa::mem::Block;

/// Address of the launch's own memory: the same in every launch, below all allocations and visible to its kernel only.
const LAUNCH_ADDRESS: u64 = FIRST_ADDRESS - (1 << 32);
/// Offsets of its parts.
const PACKET: u64 = 0;
const GRID_SYNC: u64 = 64;
const QUEUE: u64 = 128;
const KERNARG: u64 = 1024;

/// A checked launch.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) dispatch: Dispatch,
    /// The handle of the function, and the client's request, to say which launch has failed.
    pub(crate) handle: u64,
    pub(crate) origin: Origin,
    /// Where the addresses of what the kernel calls the host with go when it starts.
    pub(crate) places: Places,
}

/// Returns the product of three sizes.
pub(crate) fn volume(size: [u32; 3]) -> Option<u64> {
    size.iter().try_fold(1u64, |product, &n| product.checked_mul(u64::from(n)))
}

impl Setup {
    /// Checks a launch of `function` and lays out what it needs. `stack_bytes` is hipLimitStackSize.
    ///
    /// # Errors
    /// As hipModuleLaunchKernel: those of [`LaunchSize::check`]; `INVALID_VALUE` for arguments that do not fit the kernel's parameters;
    /// `LAUNCH_OUT_OF_RESOURCES` for static and dynamic LDS or scratch beyond the device's;
    /// `COOPERATIVE_LAUNCH_TOO_LARGE` for a cooperative grid that is not resident at once.
    pub(crate) fn new(function: Arc<Function>, launch: &Launch<'_>, stack_bytes: u64) -> HipResult<Self> {
        let Launch { grid, block, shared_mem_bytes, .. } = *launch;
        let limits = LaunchLimits {
            device_threads: Some(p::THREADS_PER_GROUP.into()),
            kernel_threads: Some(function.kernel.max_flat_workgroup_size.into()),
            shared_mem_bytes: Some(p::LDS_BYTES.into()),
        };
        let size = LaunchSize { grid, block, shared_mem_bytes: shared_mem_bytes.into() };
        let threads = size.check(LaunchFamily::Module, &limits).map_err(HipError)? as u32;
        if function.kernel.descriptor.wave32() {
            tracing::error!(kernel = %function.name, "cannot launch a kernel for waves of 32 lanes on this GPU");
            return Err(HipError::INVALID_DEVICE_FUNCTION);
        }
        let needs = function.needs();
        let lds_bytes = needs
            .lds_bytes
            .checked_add(shared_mem_bytes)
            .filter(|&bytes| bytes <= p::LDS_BYTES)
            .ok_or(HipError::LAUNCH_OUT_OF_RESOURCES)?;
        let scratch_bytes = scratch_bytes(&function, stack_bytes).ok_or(HipError::LAUNCH_OUT_OF_RESOURCES)?;
        // A kernel whose metadata asks for the impossible still runs, a group at a time.
        let compute_units = p::Model::of(function.arch).compute_units;
        let resident_groups = needs.groups(threads, shared_mem_bytes.into(), compute_units).max(1);
        if launch.cooperative && volume(grid).is_none_or(|groups| groups > u64::from(resident_groups)) {
            return Err(HipError::COOPERATIVE_LAUNCH_TOO_LARGE);
        }
        let memory = memory(&function, launch, lds_bytes, scratch_bytes)?;
        let places = call_places(&function, launch, threads, resident_groups);
        let descriptor = function.kernel.descriptor;
        let addresses = Addresses {
            dispatch_packet: LAUNCH_ADDRESS + PACKET,
            queue: LAUNCH_ADDRESS + QUEUE,
            kernarg: LAUNCH_ADDRESS + KERNARG,
            dispatch_id: 0,
        };
        let wave_sync = launch.cooperative.then(|| Arc::new(WaveSync::for_groups(volume(grid).unwrap_or(0))));
        let dispatch = Dispatch {
            name: Arc::clone(&function.name),
            program: Arc::clone(&function.program),
            entry: function.entry,
            descriptor,
            vgprs: needs.vgprs,
            size: GridSize::new(items(launch), block).ok_or(HipError::INVALID_VALUE)?,
            lds_bytes,
            scratch_bytes,
            resident_groups,
            memory,
            user_sgprs: user_sgprs(&descriptor, scratch_bytes, &addresses),
            wave_sync,
        };
        Ok(Self { dispatch, handle: launch.function, origin: launch.origin, places })
    }

    /// Returns the bytes of host memory that it takes while it waits.
    pub(crate) fn carried_bytes(&self) -> usize {
        let Dispatch { memory, user_sgprs, .. } = &self.dispatch;
        size_of::<Self>() + size_of::<Block>() + memory.len_bytes() as usize + 4 * user_sgprs.len()
    }
}

/// Returns where the kernel finds what it calls the host with.
fn call_places(function: &Function, launch: &Launch<'_>, threads: u32, resident_groups: u32) -> Places {
    let place = |offset: u32| KERNARG as usize + offset as usize;
    let buffer = function.hostcall_at.map(|offset| {
        let waves_per_group = u64::from(threads.div_ceil(64));
        let groups = volume(launch.grid).unwrap_or(u64::MAX);
        let groups = if launch.cooperative { groups } else { groups.min(resident_groups.into()) };
        BufferPlace { at: place(offset), packets: packets(waves_per_group, groups), waves_per_group }
    });
    Places { buffer, heap: function.heap_at.map(place) }
}

/// Returns the scratch of a lane in bytes; `None` if it exceeds the limit. As on AMD's runtime a kernel of unknown stack depth has
/// hipLimitStackSize, or what the compiler knows of if that is more.
fn scratch_bytes(function: &Function, stack_bytes: u64) -> Option<u32> {
    let kernel = &function.kernel;
    let known = u64::from(kernel.descriptor.private_segment_bytes.max(kernel.private_segment_bytes));
    let dynamic = kernel.uses_dynamic_stack || kernel.descriptor.uses_dynamic_stack();
    let bytes = if dynamic { known.max(stack_bytes) } else { known };
    (bytes <= p::SCRATCH_MAX_BYTES).then_some(bytes as u32)
}

/// Builds the launch's memory: dispatch packet, grid barrier, queue (zeroed) and kernarg segment.
fn memory(
    function: &Function,
    launch: &Launch<'_>,
    lds_bytes: u32,
    scratch_bytes: u32,
) -> HipResult<Arc<Block>> {
    let kernel = &function.kernel;
    let facts = LaunchFacts {
        multigrid_sync_arg: LAUNCH_ADDRESS + GRID_SYNC,
        queue_ptr: LAUNCH_ADDRESS + QUEUE,
        private_base: PRIVATE_HIGH,
        shared_base: SHARED_HIGH,
        ..LaunchFacts::blocks(launch.grid, launch.block, launch.shared_mem_bytes)
    };
    let kernarg = match launch.args {
        Args::Params { table, data } => {
            let value = |param: &Param| data.get(param.offset as usize..)?.get(..param.size as usize);
            let values: Option<Vec<_>> = table.iter().map(value).collect();
            kernel.kernarg_of_params(&values.ok_or(HipError::INVALID_VALUE)?, &facts)
        }
        Args::Flat(bytes) => kernel.kernarg_of_buffer(bytes, &facts),
    };
    let kernarg = kernarg.map_err(|reason| {
        tracing::warn!(kernel = %function.name, %reason, "launch arguments do not match the kernel's parameters");
        HipError::INVALID_VALUE
    })?;
    let len_bytes = KERNARG + kernarg.len() as u64;
    let block = Block::new(LAUNCH_ADDRESS, len_bytes).ok_or(HipError::OUT_OF_MEMORY)?;
    block.write(PACKET as usize, &packet(function, launch, lds_bytes, scratch_bytes));
    block.write(GRID_SYNC as usize, &grid_sync(launch));
    block.write(KERNARG as usize, &kernarg);
    Ok(Arc::new(block))
}

/// Returns the work-items of the grid in x, y and z.
fn items(launch: &Launch<'_>) -> [u32; 3] {
    std::array::from_fn(|dimension| launch.grid[dimension].saturating_mul(launch.block[dimension]))
}

/// Builds the AQL kernel dispatch packet (HSA Platform System Architecture, kernel dispatch packet).
fn packet(function: &Function, launch: &Launch<'_>, lds_bytes: u32, scratch_bytes: u32) -> Vec<u8> {
    const KERNEL_DISPATCH: u16 = 2;
    const DIMENSIONS: u16 = 3;
    let mut bytes = Vec::with_capacity(64);
    for half in [KERNEL_DISPATCH, DIMENSIONS].into_iter().chain(launch.block.map(|n| n as u16)).chain([0]) {
        bytes.extend(half.to_le_bytes());
    }
    for word in items(launch).into_iter().chain([scratch_bytes, lds_bytes]) {
        bytes.extend(word.to_le_bytes());
    }
    for long in [function.descriptor, LAUNCH_ADDRESS + KERNARG, 0, 0] {
        bytes.extend(long.to_le_bytes());
    }
    bytes
}

/// Builds the state of the device library's grid barrier: no other grids, a counter of arrivals at offset 32 and the number
/// of workgroups at 40.
fn grid_sync(launch: &Launch<'_>) -> Vec<u8> {
    let groups = volume(launch.grid).unwrap_or(0) as u32;
    let mut bytes = vec![0; 40];
    bytes.extend(groups.to_le_bytes());
    bytes
}
