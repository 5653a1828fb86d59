//! `hipDeviceProp_t`, which has two layouts: programs compiled before HIP 6.0 use the small one.
//!
//! The protocol carries the properties that most programs look at. The others are attributes of the device; they are asked
//! for together, in one round trip, and remembered.

use hipr_proto::op::{self, GetDevicePropertiesReply};
use hipr_proto::{HipError, HipResult, Text};

use crate::convert::{In, Out};
use crate::session::Session;
use crate::types::{DevicePropR0000, DevicePropR0600, Uuid};

/// `hipDeviceAttribute_t`: the attributes that are fields of the properties.
mod attribute {
    macro_rules! attributes {
        ($($number:literal $NAME:ident;)*) => {
            $(pub(super) const $NAME: i32 = $number;)*
            pub(super) const ALL: &[i32] = &[$($number),*];
        };
    }

    attributes! {
        0 ECC_ENABLED;
        1 ACCESS_POLICY_MAX_WINDOW_SIZE;
        2 ASYNC_ENGINE_COUNT;
        7 COMPUTE_PREEMPTION_SUPPORTED;
        10 COOPERATIVE_LAUNCH;
        12 DEVICE_OVERLAP;
        14 GLOBAL_L1_CACHE_SUPPORTED;
        15 HOST_NATIVE_ATOMIC_SUPPORTED;
        17 IS_MULTI_GPU_BOARD;
        18 KERNEL_EXEC_TIMEOUT;
        20 LOCAL_L1_CACHE_SUPPORTED;
        24 MANAGED_MEMORY;
        25 MAX_BLOCKS_PER_MULTI_PROCESSOR;
        39 MAX_TEXTURE_1D_WIDTH;
        41 MAX_TEXTURE_1D_LINEAR;
        43 MAX_TEXTURE_2D_WIDTH;
        44 MAX_TEXTURE_2D_HEIGHT;
        49 MAX_TEXTURE_3D_WIDTH;
        50 MAX_TEXTURE_3D_HEIGHT;
        51 MAX_TEXTURE_3D_DEPTH;
        58 MAX_PITCH;
        62 MULTI_GPU_BOARD_GROUP_ID;
        70 PERSISTING_L2_CACHE_MAX_SIZE;
        72 MAX_REGISTERS_PER_MULTIPROCESSOR;
        73 RESERVED_SHARED_MEM_PER_BLOCK;
        75 SHARED_MEM_PER_BLOCK_OPTIN;
        76 SHARED_MEM_PER_MULTIPROCESSOR;
        77 SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO;
        78 STREAM_PRIORITIES_SUPPORTED;
        79 SURFACE_ALIGNMENT;
        80 TCC_DRIVER;
        81 TEXTURE_ALIGNMENT;
        82 TEXTURE_PITCH_ALIGNMENT;
        83 TOTAL_CONSTANT_MEMORY;
        85 UNIFIED_ADDRESSING;
        88 MEMORY_POOLS_SUPPORTED;
        90 HOST_REGISTER_SUPPORTED;
        91 MEMORY_POOL_SUPPORTED_HANDLE_TYPES;
        10000 CLOCK_INSTRUCTION_RATE;
        10002 MAX_SHARED_MEMORY_PER_MULTIPROCESSOR;
        10011 IS_LARGE_BAR;
        10012 ASIC_REVISION;
    }
}

/// Attributes that are about this process's memory and its devices together, of which the worker knows nothing: kernels do
/// not reach host memory by themselves, and each launch is for one device.
pub(crate) fn own_attribute(attribute: i32) -> Option<i32> {
    // hipDeviceAttributeCanUseHostPointerForRegisteredMem, ConcurrentManagedAccess, CooperativeMultiDeviceLaunch,
    // DirectManagedMemAccessFromHost, PageableMemoryAccess, PageableMemoryAccessUsesHostPageTables.
    matches!(attribute, 4 | 9 | 11 | 13 | 65 | 66).then_some(0)
}

/// `hipDeviceArch_t`, what every GPU has that runs HIP: all but funnel shift, `__syncthreads_*`, surface functions and
/// dynamic parallelism (bits 11, 13, 14, 16).
const ARCH: u32 = 0x97ff;

/// What is known of a device.
struct Facts<'a> {
    session: &'a Session,
    device: i32,
    p: &'a GetDevicePropertiesReply,
}

impl<'a> Facts<'a> {
    fn of(session: &'a Session, device: i32) -> HipResult<Self> {
        let p = session.properties(device)?;
        session.learn_attributes(device, attribute::ALL.iter().copied())?;
        Ok(Self { session, device, p })
    }

    /// An attribute; 0 where the worker does not know it.
    fn attribute(&self, attribute: i32) -> i32 {
        self.session.known_attribute(self.device, attribute).unwrap_or(0)
    }

    /// An attribute that is a size in bytes; `usual` where the worker does not know it.
    fn size(&self, attribute: i32, usual: usize) -> usize {
        let known = self.session.known_attribute(self.device, attribute);
        known.and_then(|size| usize::try_from(size).ok()).filter(|size| *size > 0).unwrap_or(usual)
    }

    /// Zeros where the worker knows none.
    fn uuid(&self) -> HipResult<Uuid> {
        match self.session.uuid(self.device) {
            Ok(bytes) => Ok(Uuid { bytes }),
            Err(HipError::NOT_SUPPORTED) => Ok(Uuid::default()),
            Err(error) => Err(error),
        }
    }
}

fn text(text: &Text<256>) -> [u8; 256] {
    *text.as_bytes()
}

/// `hipGetDeviceProperties` since HIP 6.0 (`hipGetDevicePropertiesR0600`).
pub(crate) fn r0600(session: &Session, out: Out<DevicePropR0600>, device: i32) -> HipResult<()> {
    use attribute as a;
    let out = out.check()?;
    let facts = Facts::of(session, device)?;
    let p = &facts.p;
    let lds = p.shared_mem_per_block as usize;
    out.set(DevicePropR0600 {
        name: text(&p.name),
        uuid: facts.uuid()?,
        total_global_mem: p.total_global_mem as usize,
        shared_mem_per_block: lds,
        regs_per_block: p.regs_per_block,
        warp_size: p.warp_size,
        mem_pitch: facts.size(a::MAX_PITCH, i32::MAX as usize),
        max_threads_per_block: p.max_threads_per_block,
        max_threads_dim: p.max_threads_dim,
        max_grid_size: p.max_grid_size,
        clock_rate: p.clock_rate,
        total_const_mem: facts.size(a::TOTAL_CONSTANT_MEMORY, i32::MAX as usize),
        major: p.major,
        minor: p.minor,
        texture_alignment: facts.size(a::TEXTURE_ALIGNMENT, 256),
        texture_pitch_alignment: facts.size(a::TEXTURE_PITCH_ALIGNMENT, 256),
        device_overlap: facts.attribute(a::DEVICE_OVERLAP),
        multi_processor_count: p.multi_processor_count,
        kernel_exec_timeout_enabled: facts.attribute(a::KERNEL_EXEC_TIMEOUT),
        integrated: p.integrated,
        can_map_host_memory: p.can_map_host_memory,
        compute_mode: p.compute_mode,
        max_texture_1d: facts.attribute(a::MAX_TEXTURE_1D_WIDTH),
        max_texture_1d_linear: facts.attribute(a::MAX_TEXTURE_1D_LINEAR),
        max_texture_2d: [a::MAX_TEXTURE_2D_WIDTH, a::MAX_TEXTURE_2D_HEIGHT].map(|n| facts.attribute(n)),
        max_texture_3d: [a::MAX_TEXTURE_3D_WIDTH, a::MAX_TEXTURE_3D_HEIGHT, a::MAX_TEXTURE_3D_DEPTH]
            .map(|n| facts.attribute(n)),
        surface_alignment: facts.size(a::SURFACE_ALIGNMENT, 0),
        concurrent_kernels: p.concurrent_kernels,
        ecc_enabled: facts.attribute(a::ECC_ENABLED),
        pci_bus_id: p.pci_bus_id,
        pci_device_id: p.pci_device_id,
        pci_domain_id: p.pci_domain_id,
        tcc_driver: facts.attribute(a::TCC_DRIVER),
        async_engine_count: facts.attribute(a::ASYNC_ENGINE_COUNT),
        unified_addressing: facts.attribute(a::UNIFIED_ADDRESSING),
        memory_clock_rate: p.memory_clock_rate,
        memory_bus_width: p.memory_bus_width,
        l2_cache_size: p.l2_cache_size,
        persisting_l2_cache_max_size: facts.attribute(a::PERSISTING_L2_CACHE_MAX_SIZE),
        max_threads_per_multi_processor: p.max_threads_per_multi_processor,
        stream_priorities_supported: facts.attribute(a::STREAM_PRIORITIES_SUPPORTED),
        global_l1_cache_supported: facts.attribute(a::GLOBAL_L1_CACHE_SUPPORTED),
        local_l1_cache_supported: facts.attribute(a::LOCAL_L1_CACHE_SUPPORTED),
        shared_mem_per_multiprocessor: facts.size(a::SHARED_MEM_PER_MULTIPROCESSOR, lds),
        regs_per_multiprocessor: facts.attribute(a::MAX_REGISTERS_PER_MULTIPROCESSOR).max(p.regs_per_block),
        managed_memory: facts.attribute(a::MANAGED_MEMORY),
        is_multi_gpu_board: facts.attribute(a::IS_MULTI_GPU_BOARD),
        multi_gpu_board_group_id: facts.attribute(a::MULTI_GPU_BOARD_GROUP_ID),
        host_native_atomic_supported: facts.attribute(a::HOST_NATIVE_ATOMIC_SUPPORTED),
        single_to_double_precision_perf_ratio: facts.attribute(a::SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO),
        compute_preemption_supported: facts.attribute(a::COMPUTE_PREEMPTION_SUPPORTED),
        cooperative_launch: facts.attribute(a::COOPERATIVE_LAUNCH),
        shared_mem_per_block_optin: facts.size(a::SHARED_MEM_PER_BLOCK_OPTIN, lds),
        max_blocks_per_multi_processor: facts.attribute(a::MAX_BLOCKS_PER_MULTI_PROCESSOR),
        access_policy_max_window_size: facts.attribute(a::ACCESS_POLICY_MAX_WINDOW_SIZE),
        reserved_shared_mem_per_block: facts.size(a::RESERVED_SHARED_MEM_PER_BLOCK, 0),
        host_register_supported: facts.attribute(a::HOST_REGISTER_SUPPORTED),
        memory_pools_supported: facts.attribute(a::MEMORY_POOLS_SUPPORTED),
        memory_pool_supported_handle_types: facts
            .attribute(a::MEMORY_POOL_SUPPORTED_HANDLE_TYPES)
            .cast_unsigned(),
        gcn_arch_name: text(&p.gcn_arch_name),
        max_shared_memory_per_multi_processor: facts.size(a::MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, lds),
        clock_instruction_rate: facts.attribute(a::CLOCK_INSTRUCTION_RATE),
        arch: ARCH,
        is_large_bar: facts.attribute(a::IS_LARGE_BAR),
        asic_revision: facts.attribute(a::ASIC_REVISION),
        // Among the rest, which is 0, is what `own_attribute` says.
        ..DevicePropR0600::default()
    });
    Ok(())
}

/// `hipGetDeviceProperties` before HIP 6.0 (`hipGetDevicePropertiesR0000`).
pub(crate) fn r0000(session: &Session, out: Out<DevicePropR0000>, device: i32) -> HipResult<()> {
    use attribute as a;
    let out = out.check()?;
    let facts = Facts::of(session, device)?;
    let p = &facts.p;
    let arch_name = p.gcn_arch_name.as_str();
    let digits: String =
        arch_name.trim_start_matches("gfx").chars().take_while(char::is_ascii_digit).collect();
    out.set(DevicePropR0000 {
        name: text(&p.name),
        total_global_mem: p.total_global_mem as usize,
        shared_mem_per_block: p.shared_mem_per_block as usize,
        regs_per_block: p.regs_per_block,
        warp_size: p.warp_size,
        max_threads_per_block: p.max_threads_per_block,
        max_threads_dim: p.max_threads_dim,
        max_grid_size: p.max_grid_size,
        clock_rate: p.clock_rate,
        memory_clock_rate: p.memory_clock_rate,
        memory_bus_width: p.memory_bus_width,
        total_const_mem: facts.size(a::TOTAL_CONSTANT_MEMORY, i32::MAX as usize),
        major: p.major,
        minor: p.minor,
        multi_processor_count: p.multi_processor_count,
        l2_cache_size: p.l2_cache_size,
        max_threads_per_multi_processor: p.max_threads_per_multi_processor,
        compute_mode: p.compute_mode,
        clock_instruction_rate: facts.attribute(a::CLOCK_INSTRUCTION_RATE),
        arch: ARCH,
        concurrent_kernels: p.concurrent_kernels,
        pci_domain_id: p.pci_domain_id,
        pci_bus_id: p.pci_bus_id,
        pci_device_id: p.pci_device_id,
        max_shared_memory_per_multi_processor: facts
            .size(a::MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, p.shared_mem_per_block as usize),
        is_multi_gpu_board: facts.attribute(a::IS_MULTI_GPU_BOARD),
        can_map_host_memory: p.can_map_host_memory,
        // The number of gfx942 is 942.
        gcn_arch: digits.parse().unwrap_or(0),
        gcn_arch_name: text(&p.gcn_arch_name),
        integrated: p.integrated,
        cooperative_launch: facts.attribute(a::COOPERATIVE_LAUNCH),
        max_texture_1d_linear: facts.attribute(a::MAX_TEXTURE_1D_LINEAR),
        max_texture_1d: facts.attribute(a::MAX_TEXTURE_1D_WIDTH),
        max_texture_2d: [a::MAX_TEXTURE_2D_WIDTH, a::MAX_TEXTURE_2D_HEIGHT].map(|n| facts.attribute(n)),
        max_texture_3d: [a::MAX_TEXTURE_3D_WIDTH, a::MAX_TEXTURE_3D_HEIGHT, a::MAX_TEXTURE_3D_DEPTH]
            .map(|n| facts.attribute(n)),
        mem_pitch: facts.size(a::MAX_PITCH, i32::MAX as usize),
        texture_alignment: facts.size(a::TEXTURE_ALIGNMENT, 256),
        texture_pitch_alignment: facts.size(a::TEXTURE_PITCH_ALIGNMENT, 256),
        kernel_exec_timeout_enabled: facts.attribute(a::KERNEL_EXEC_TIMEOUT),
        ecc_enabled: facts.attribute(a::ECC_ENABLED),
        tcc_driver: facts.attribute(a::TCC_DRIVER),
        is_large_bar: facts.attribute(a::IS_LARGE_BAR),
        asic_revision: facts.attribute(a::ASIC_REVISION),
        managed_memory: facts.attribute(a::MANAGED_MEMORY),
        ..DevicePropR0000::default()
    });
    Ok(())
}

/// `hipChooseDevice` since HIP 6.0 (`hipChooseDeviceR0600`).
pub(crate) fn choose_r0600(
    session: &Session,
    device: Out<i32>,
    wanted: In<DevicePropR0600>,
) -> HipResult<()> {
    let out = device.check()?;
    let p = wanted.check()?;
    let request = op::ChooseDevice {
        total_global_mem: p.total_global_mem as u64,
        major: p.major,
        minor: p.minor,
        multi_processor_count: p.multi_processor_count,
        warp_size: p.warp_size,
        max_threads_per_block: p.max_threads_per_block,
    };
    out.set(session.ask(&request)?.device);
    Ok(())
}

/// `hipChooseDevice` before HIP 6.0 (`hipChooseDeviceR0000`).
pub(crate) fn choose_r0000(
    session: &Session,
    device: Out<i32>,
    wanted: In<DevicePropR0000>,
) -> HipResult<()> {
    let p = wanted.check()?;
    let wanted = DevicePropR0600 {
        total_global_mem: p.total_global_mem,
        major: p.major,
        minor: p.minor,
        multi_processor_count: p.multi_processor_count,
        warp_size: p.warp_size,
        max_threads_per_block: p.max_threads_per_block,
        ..DevicePropR0600::default()
    };
    choose_r0600(session, device, In::from(&wanted))
}
