//! Properties of the emulated device: those of an MI300X or an MI210, with a name that says that it is emulated. All other
//! files take their limits from here.

use hipr_proto::Text;
use hipr_proto::op::GetDevicePropertiesReply;

pub use hipr_code_object::rules::{
    GROUPS_PER_CU, LDS_BYTES, SIMDS_PER_CU, THREADS_PER_GROUP, VGPRS_PER_SIMD, WAVE_LANES, WAVES_PER_SIMD,
};
use hipr_isa::Arch;

/// The properties in which the emulated GPUs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// hipDeviceProp_t::name.
    pub name: &'static str,
    /// hipDeviceProp_t::gcnArchName.
    pub arch_name: &'static str,
    /// Compute units.
    pub compute_units: u32,
    /// Engine clock.
    pub clock_khz: i32,
    /// Memory clock.
    pub memory_clock_khz: i32,
    /// Memory bus.
    pub memory_bus_bits: i32,
    /// Size of the real GPU's memory in bytes.
    pub memory_bytes: u64,
    /// Size of the L2 cache of one die in bytes.
    pub l2_bytes: i32,
    /// Compute capability: major, minor.
    pub capability: [i32; 2],
}

const MI210: Model = Model {
    name: "AMD Instinct MI210 (hipr emulated)",
    arch_name: "gfx90a:sramecc+:xnack-",
    compute_units: 104,
    clock_khz: 1_700_000,
    memory_clock_khz: 1_600_000,
    memory_bus_bits: 4096,
    memory_bytes: 64 << 30,
    l2_bytes: 8 << 20,
    capability: [9, 0],
};

const MI300X: Model = Model {
    name: "AMD Instinct MI300X (hipr emulated)",
    arch_name: "gfx942:sramecc+:xnack-",
    compute_units: 304,
    clock_khz: 2_100_000,
    memory_clock_khz: 1_300_000,
    memory_bus_bits: 8192,
    memory_bytes: 192 << 30,
    l2_bytes: 4 << 20,
    capability: [9, 4],
};

impl Model {
    /// Returns the properties of an emulated GPU.
    pub const fn of(arch: Arch) -> &'static Self {
        match arch {
            Arch::Gfx90a => &MI210,
            Arch::Gfx942 => &MI300X,
        }
    }
}

/// hipDriverGetVersion, hipRuntimeGetVersion: HIP 6.4.43484.
pub const VERSION: i32 = hipr_abi::HIP_VERSION;

/// Work-items that a compute unit holds.
pub const THREADS_PER_CU: u32 = WAVE_LANES * SIMDS_PER_CU * WAVES_PER_SIMD;
/// What a kernel needs is judged by the numbers of the interpreter.
const _: () = assert!(LDS_BYTES == hipr_isa::lds::LDS_BYTES && WAVE_LANES as usize == hipr_isa::wave::LANES);
/// Largest workgroup in x, y, z.
pub const GROUP_MAX: [u32; 3] = [1024, 1024, 1024];
/// Largest grid in x, y, z, in workgroups, as the attributes have it. HIP API: hipModuleLaunchKernel alone refuses larger ones, which is
/// for the client; other launches are limited by their work-items.
pub const GRID_MAX: [u32; 3] = [i32::MAX as u32, 65_536, 65_536];
/// 32-bit registers that a workgroup can use.
pub const REGISTERS_PER_GROUP: u32 = 65_536;
/// The clock of s_memrealtime and wall_clock64().
pub const WALL_CLOCK_KHZ: i32 = 100_000;
/// Address alignment that textures and pitched memory want, in bytes.
pub const PITCH_BYTES: i32 = 256;
/// PCI address: domain, bus, device.
pub const PCI: [i32; 3] = [0, 5, 0];
/// hipDeviceGetUuid.
pub const UUID: [u8; 16] = *b"hipr-emulated-00";
/// Lowest and highest stream priority.
pub const STREAM_PRIORITIES: (i32, i32) = (1, -1);

/// Returns the reply to hipGetDeviceProperties for a device with `memory_bytes` bytes.
pub fn properties(arch: Arch, memory_bytes: u64) -> GetDevicePropertiesReply {
    let [pci_domain_id, pci_bus_id, pci_device_id] = PCI;
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
