//! Prepares launches: checks, the kernarg segment, the dispatch packet and the initial registers of waves.

use std::sync::Arc;

use hipr_abi::{LaunchFamily, LaunchLimits, LaunchSize};
use hipr_code_object::{KernelDescriptor, LaunchFacts};
use hipr_device::{Args, Launch, Origin, Param};
use hipr_proto::{HipError, HipResult};

use crate::module::Function;
use crate::property as p;
use hipr_isa::aperture::{PRIVATE_BUFFER, PRIVATE_HIGH, SHARED_HIGH};
use hipr_isa::gws::WaveSync;
use hipr_isa::map::FIRST_ADDRESS;
use hipr_isa::mem::Block;
use hipr_isa::wave::{Mode, Wave};

/// Address of the launch's own memory: the same in every launch, below all allocations and visible to its kernel only.
const LAUNCH_ADDRESS: u64 = FIRST_ADDRESS - (1 << 32);
/// Offsets of its parts.
const PACKET: u64 = 0;
const GRID_SYNC: u64 = 64;
const QUEUE: u64 = 128;
const KERNARG: u64 = 1024;

/// Minimum scratch per lane, in addition to what the compiler knows, for a kernel with unknown stack depth.
const DYNAMIC_STACK_BYTES: u64 = 16 << 10;
/// Maximum scratch per lane in bytes.
const SCRATCH_MAX_BYTES: u64 = 256 << 10;

/// A checked launch: what all its waves have in common.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) function: Arc<Function>,
    /// The handle of the function, and the client's request, to say which launch has failed.
    pub(crate) handle: u64,
    pub(crate) origin: Origin,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) lds_bytes: u32,
    pub(crate) scratch_bytes: u32,
    /// Number of workgroups that the device holds at a time.
    pub(crate) resident_groups: u32,
    /// The kernarg segment, the dispatch packet and other memory that the initial registers point to.
    pub(crate) memory: Arc<Block>,
    user_sgprs: Vec<u32>,
    /// The barriers and semaphores between the workgroups of a cooperative launch.
    pub(crate) wave_sync: Option<WaveSync>,
}

/// The host memory that workgroups need while they are executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Bytes of registers and LDS.
    pub(crate) chip_bytes: u64,
    /// Bytes of scratch.
    pub(crate) scratch_bytes: u64,
}

impl Needs {
    /// Returns what so many groups need.
    pub(crate) fn times(self, groups: u64) -> Self {
        Self {
            chip_bytes: self.chip_bytes.saturating_mul(groups),
            scratch_bytes: self.scratch_bytes.saturating_mul(groups),
        }
    }
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
        let user_sgprs = user_sgprs(&function.kernel.descriptor, scratch_bytes);
        let wave_sync = launch.cooperative.then(|| WaveSync::for_groups(volume(grid).unwrap_or(0)));
        Ok(Self {
            function,
            handle: launch.function,
            origin: launch.origin,
            grid,
            block,
            lds_bytes,
            scratch_bytes,
            resident_groups,
            memory,
            user_sgprs,
            wave_sync,
        })
    }

    /// Returns the bytes of host memory that it takes while it waits.
    pub(crate) fn carried_bytes(&self) -> usize {
        size_of::<Self>() + size_of::<Block>() + self.memory.len_bytes() as usize + 4 * self.user_sgprs.len()
    }

    /// Returns the host memory that one of its workgroups takes while it is executed.
    pub(crate) fn group_needs(&self) -> Needs {
        let registers = size_of::<Wave>() as u64 + Wave::rows_bytes(self.function.vgprs() as usize);
        let scratch = u64::from(self.scratch_bytes) * u64::from(p::WAVE_LANES);
        let waves = u64::from(self.waves());
        Needs { chip_bytes: waves * registers + u64::from(p::LDS_BYTES), scratch_bytes: waves * scratch }
    }

    /// Returns the number of workgroups of the grid.
    pub(crate) fn groups(&self) -> u64 {
        volume(self.grid).unwrap_or(0)
    }

    /// Returns the number of waves of a workgroup.
    pub(crate) fn waves(&self) -> u32 {
        self.threads().div_ceil(p::WAVE_LANES)
    }

    fn threads(&self) -> u32 {
        volume(self.block).unwrap_or(0) as u32
    }

    /// Creates a wave with zeroed registers.
    pub(crate) fn new_wave(&self) -> Wave {
        Wave::new(self.function.vgprs() as usize, self.function.kernel.descriptor.accum_offset() as usize)
    }

    /// Makes `wave` wave `index` of group number `group`, as the hardware starts it: user SGPRs, then the group's id in the
    /// dimensions that the kernel asks for; packed work-item ids in v0; lanes beyond the group's end switched off. The other
    /// vector registers stay as they are: on the hardware, too, they hold what a wave before has left.
    pub(crate) fn start(&self, wave: &mut Wave, group: u64, index: u32) {
        let descriptor = &self.function.kernel.descriptor;
        wave.sgpr.fill(0);
        wave.scc = false;
        wave.mode = Mode::from_rsrc1(descriptor.rsrc1);
        wave.pc = self.function.entry;
        wave.hardware_id = (group as u32 & 0xffff) | (index << 16);
        for (register, &value) in wave.sgpr.iter_mut().zip(&self.user_sgprs) {
            *register = value;
        }
        let [nx, ny, _] = self.grid.map(u64::from);
        let ids = [group % nx, group / nx % ny, group / nx / ny];
        let wanted = [descriptor.workgroup_id_x(), descriptor.workgroup_id_y(), descriptor.workgroup_id_z()];
        let ids = ids.into_iter().zip(wanted).filter_map(|(id, wanted)| wanted.then_some(id as u32));
        for (register, id) in wave.sgpr.iter_mut().skip(descriptor.user_sgprs() as usize).zip(ids) {
            *register = id;
        }
        let first = index * p::WAVE_LANES;
        let lanes = self.threads().saturating_sub(first).min(p::WAVE_LANES);
        wave.set_exec(u64::MAX >> (64 - lanes.clamp(1, 64)));
        let [bx, by, _] = self.block;
        let [mut x, mut y, mut z] = [first % bx, first / bx % by, first / bx / by];
        if x + p::WAVE_LANES <= bx {
            for (id, x) in wave.row_mut(0).iter_mut().zip(x..) {
                *id = x | y << 10 | z << 20;
            }
            return;
        }
        for id in wave.row_mut(0).iter_mut().take(lanes as usize) {
            *id = x | y << 10 | z << 20;
            x += 1;
            if x == bx {
                (x, y) = (0, y + 1);
            }
            if y == by {
                (y, z) = (0, z + 1);
            }
        }
    }
}

/// Returns the scratch of a lane in bytes; `None` if it exceeds the limit.
fn scratch_bytes(function: &Function, stack_bytes: u64) -> Option<u32> {
    let kernel = &function.kernel;
    let known = u64::from(kernel.descriptor.private_segment_bytes.max(kernel.private_segment_bytes));
    let dynamic = kernel.uses_dynamic_stack || kernel.descriptor.uses_dynamic_stack();
    let bytes = known + if dynamic { stack_bytes.max(DYNAMIC_STACK_BYTES) } else { 0 };
    (bytes <= SCRATCH_MAX_BYTES).then_some(bytes as u32)
}

/// Returns the values of the user SGPRs that the kernel's properties request, in their order. Preloaded kernarg dwords stay
/// 0: such code starts with a prologue that loads them.
fn user_sgprs(descriptor: &KernelDescriptor, scratch_bytes: u32) -> Vec<u32> {
    let address = |offset: u64| [(LAUNCH_ADDRESS + offset) as u32, ((LAUNCH_ADDRESS + offset) >> 32) as u32];
    let mut sgprs = Vec::with_capacity(16);
    let mut add = |wanted: bool, values: &[u32]| {
        if wanted {
            sgprs.extend_from_slice(values);
        }
    };
    add(descriptor.has_private_segment_buffer(), &private_segment_buffer(scratch_bytes));
    add(descriptor.has_dispatch_ptr(), &address(PACKET));
    add(descriptor.has_queue_ptr(), &address(QUEUE));
    add(descriptor.has_kernarg_segment_ptr(), &address(KERNARG));
    add(descriptor.has_dispatch_id(), &[0; 2]);
    add(descriptor.has_flat_scratch_init(), &[0; 2]);
    add(descriptor.has_private_segment_size(), &[scratch_bytes]);
    sgprs
}

/// Returns the buffer resource of scratch: swizzled, so that lanes' dwords are adjacent, with the lane's number as index.
/// (LLVM's AMDGPU usage guide, "Private Segment Buffer".)
fn private_segment_buffer(scratch_bytes: u32) -> [u32; 4] {
    const SWIZZLE: u32 = 1 << 31;
    const DWORD_ELEMENTS: u32 = 1 << 19;
    const STRIDE_64: u32 = 3 << 21;
    const ADD_LANE: u32 = 1 << 23;
    let bytes = scratch_bytes.saturating_mul(p::WAVE_LANES);
    [
        PRIVATE_BUFFER as u32,
        (PRIVATE_BUFFER >> 32) as u32 | SWIZZLE,
        bytes,
        DWORD_ELEMENTS | STRIDE_64 | ADD_LANE,
    ]
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

/// Builds the AQL kernel dispatch packet (HSA Platform System Architecture, kernel dispatch packet).
fn packet(function: &Function, launch: &Launch<'_>, lds_bytes: u32, scratch_bytes: u32) -> Vec<u8> {
    const KERNEL_DISPATCH: u16 = 2;
    const DIMENSIONS: u16 = 3;
    let mut bytes = Vec::with_capacity(64);
    for half in [KERNEL_DISPATCH, DIMENSIONS].into_iter().chain(launch.block.map(|n| n as u16)).chain([0]) {
        bytes.extend(half.to_le_bytes());
    }
    let items = launch.grid.iter().zip(launch.block).map(|(&grid, block)| grid.saturating_mul(block));
    for word in items.chain([scratch_bytes, lds_bytes]) {
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
