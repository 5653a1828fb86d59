//! What the emulated GPUs are: those of an MI300X or an MI210, with a name that says that they are emulated. All other files take their
//! limits from here.

pub use hipr_code_object::rules::{
    GROUPS_PER_CU, LDS_BYTES, SIMDS_PER_CU, THREADS_PER_GROUP, VGPRS_PER_SIMD, WAVE_LANES, WAVES_PER_SIMD,
};
use hipr_isa::Arch;

/// The properties in which the emulated GPUs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// The name of the product.
    pub name: &'static str,
    /// The instruction set and its features, as code objects name them.
    pub arch_name: &'static str,
    /// Compute units.
    pub compute_units: u32,
    /// Engine clock.
    pub clock_khz: i32,
    /// Memory clock.
    pub memory_clock_khz: i32,
    /// Width of the memory bus.
    pub memory_bus_bits: i32,
    /// Size of the real GPU's memory in bytes.
    pub memory_bytes: u64,
    /// Size of the L2 cache of one die in bytes.
    pub l2_bytes: i32,
    /// Version of the instruction set: major, minor.
    pub capability: [i32; 2],
    /// The real GPU's number as a PCI device.
    pub chip_id: u32,
    /// Shader engines, of all dies together.
    pub shader_engines: u32,
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
    chip_id: 0x740f,
    shader_engines: 8,
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
    chip_id: 0x74a1,
    shader_engines: 32,
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

/// Work-items that a compute unit holds.
pub const THREADS_PER_CU: u32 = WAVE_LANES * SIMDS_PER_CU * WAVES_PER_SIMD;
/// What a kernel needs is judged by the numbers of the interpreter.
const _: () = assert!(LDS_BYTES == hipr_isa::lds::LDS_BYTES && WAVE_LANES as usize == hipr_isa::wave::LANES);
/// Largest workgroup in x, y, z.
pub const GROUP_MAX: [u32; 3] = [1024, 1024, 1024];
/// 32-bit registers that a workgroup can use.
pub const REGISTERS_PER_GROUP: u32 = 65_536;
/// Maximum scratch of a lane in bytes.
pub const SCRATCH_MAX_BYTES: u64 = 256 << 10;
/// The clock of `s_memrealtime`.
pub const WALL_CLOCK_KHZ: i32 = 100_000;
/// PCI address: domain, bus, device.
pub const PCI: [i32; 3] = [0, 5, 0];
/// Identifies the device among others.
pub const UUID: [u8; 16] = *b"hipr-emulated-00";
