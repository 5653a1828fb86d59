//! Properties of the emulated device as HIP has them. What the hardware is, is in [`hipr_grid::model`].

use hipr_proto::Text;
use hipr_proto::op::GetDevicePropertiesReply;

pub use hipr_grid::model::{
    GROUP_MAX, GROUPS_PER_CU, LDS_BYTES, Model, PCI, REGISTERS_PER_GROUP, SCRATCH_MAX_BYTES, SIMDS_PER_CU,
    THREADS_PER_CU, THREADS_PER_GROUP, UUID, VGPRS_PER_SIMD, WALL_CLOCK_KHZ, WAVE_LANES, WAVES_PER_SIMD,
};
use hipr_isa::Arch;

/// hipDriverGetVersion, hipRuntimeGetVersion: HIP 6.4.43484.
pub const VERSION: i32 = hipr_abi::HIP_VERSION;

/// Largest grid in x, y, z, in workgroups, as the attributes have it. HIP API: hipModuleLaunchKernel alone refuses larger ones, which is
/// for the client; other launches are limited by their work-items.
pub const GRID_MAX: [u32; 3] = [i32::MAX as u32, 65_536, 65_536];
/// Address alignment that textures and pitched memory want, in bytes.
pub const PITCH_BYTES: i32 = 256;
/// Lowest and highest stream priority.
pub const STREAM_PRIORITIES: (i32, i32) = (1, -1);

/// Returns the PCI address of device `number`: domain, bus, device. Each has a bus of its own.
pub fn pci(number: usize) -> [i32; 3] {
    let [domain, bus, device] = PCI;
    [domain, bus + number as i32, device]
}

/// Returns what identifies device `number` among others: it ends with the number in hexadecimal.
pub fn uuid(number: usize) -> [u8; 16] {
    let mut uuid = UUID;
    let digits = format!("{number:02x}");
    let place = uuid.len() - digits.len();
    uuid[place..].copy_from_slice(digits.as_bytes());
    uuid
}

/// Returns the reply to hipGetDeviceProperties for device `number` with `memory_bytes` bytes.
pub fn properties(arch: Arch, number: usize, memory_bytes: u64) -> GetDevicePropertiesReply {
    let [pci_domain_id, pci_bus_id, pci_device_id] = pci(number);
    let model = Model::of(arch);
    let [major, minor] = model.capability;
    GetDevicePropertiesReply {
        name: Text::new(model.name),
        total_global_mem: memory_bytes,
        shared_mem_per_block: u64::from(LDS_BYTES),
        regs_per_block: REGISTERS_PER_GROUP as i32,
        warp_size: WAVE_LANES as i32,
        max_threads_per_block: THREADS_PER_GROUP as i32,
        max_threads_dim: GROUP_MAX.map(|n| n as i32),
        max_grid_size: GRID_MAX.map(|n| n as i32),
        clock_rate: model.clock_khz,
        memory_clock_rate: model.memory_clock_khz,
        memory_bus_width: model.memory_bus_bits,
        major,
        minor,
        multi_processor_count: model.compute_units as i32,
        l2_cache_size: model.l2_bytes,
        max_threads_per_multi_processor: THREADS_PER_CU as i32,
        compute_mode: 0,
        pci_bus_id,
        pci_device_id,
        pci_domain_id,
        integrated: 0,
        can_map_host_memory: 1,
        concurrent_kernels: 1,
        gcn_arch_name: Text::new(model.arch_name),
    }
}
