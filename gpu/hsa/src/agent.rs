//! Agents: the host and the emulated GPUs, and what they say of themselves.

use hipr_code_object::rules::{SIMDS_PER_CU, THREADS_PER_GROUP, WAVE_LANES, WAVES_PER_SIMD};
use hipr_grid::model::Model;
use hipr_isa::Arch;

use crate::clock::{CLOCK_HZ, now};
use crate::facts::{
    AgentIndex, GRID_MAX, QUEUE_PACKETS_MAX, QUEUE_PACKETS_MIN, QUEUES_MAX, SCRATCH_MAX_BYTES,
};
use crate::pointer::{Out, Ptr};
use crate::runtime::{Runtime, runtime};
use crate::status::{HsaResult, Status};
use crate::types::{Agent, Cache, Dim3, Each, Isa, each};

/// Rows of pitched memory begin at multiples of this many bytes.
const PITCH_BYTES: usize = 256;
/// Size of a cache line in bytes.
const CACHE_LINE_BYTES: u32 = 128;
/// AMD's number as a vendor of PCI devices is not asked for; this is the emulated GPUs' first bus.
const FIRST_BUS: u32 = 5;

/// Returns the handle of the agent with this index.
pub(crate) fn handle_of(index: AgentIndex) -> Agent {
    Agent(index as u64 + 1)
}

/// Returns the instruction set's handle of the GPU with this index.
pub(crate) fn isa_of(index: AgentIndex) -> Isa {
    Isa(index as u64 + 1)
}

impl Runtime {
    /// Returns the index of an agent.
    ///
    /// # Errors
    /// `INVALID_AGENT` if there is no such agent.
    pub(crate) fn agent(&self, agent: Agent) -> HsaResult<AgentIndex> {
        let index = (agent.0 as usize).checked_sub(1).filter(|&index| index < self.agents.len());
        index.ok_or(Status::ERROR_INVALID_AGENT)
    }

    /// Returns index and instruction set of a GPU.
    ///
    /// # Errors
    /// `INVALID_AGENT` if there is no such agent, or if it is the host.
    pub(crate) fn gpu(&self, agent: Agent) -> HsaResult<(AgentIndex, Arch)> {
        let index = self.agent(agent)?;
        let arch = self.agents[index].arch.ok_or(Status::ERROR_INVALID_AGENT)?;
        Ok((index, arch))
    }
}

/// The number of the extension for images.
const IMAGES: u16 = 1;

/// Returns the extensions that an agent has. GPUs answer questions about images, of which they say that they have none: AMD's runtime learns
/// only so how rows of pitched memory are aligned.
pub(crate) fn extensions_of(runtime: &Runtime, agent: AgentIndex) -> impl Iterator<Item = u16> + use<> {
    runtime.agents[agent].arch.map(|_| IMAGES).into_iter()
}

/// `hsa_iterate_agents`.
pub(crate) fn iterate(callback: Each<Agent>, data: Ptr) -> HsaResult {
    let runtime = runtime()?;
    each((0..runtime.agents.len()).map(handle_of), callback, data)
}

/// `hsa_agent_iterate_isas`.
pub(crate) fn iterate_isas(agent: Agent, callback: Each<Isa>, data: Ptr) -> HsaResult {
    let runtime = runtime()?;
    let index = runtime.agent(agent)?;
    each(runtime.agents[index].arch.map(|_| isa_of(index)), callback, data)
}

/// `hsa_agent_iterate_caches`.
pub(crate) fn iterate_caches(agent: Agent, callback: Each<Cache>, data: Ptr) -> HsaResult {
    let runtime = runtime()?;
    let index = runtime.agent(agent)?;
    let levels: &[u64] = if runtime.agents[index].arch.is_some() { &[1, 2] } else { &[] };
    each(levels.iter().map(|level| Cache((index as u64 + 1) << 8 | level)), callback, data)
}

/// `hsa_cache_get_info`.
pub(crate) fn cache_info(cache: Cache, attribute: u32, value: Ptr) -> HsaResult {
    let runtime = runtime()?;
    let agent = runtime.gpu(Agent(cache.0 >> 8)).map_err(|_| Status::ERROR_INVALID_CACHE)?;
    let level = cache.0 as u8;
    if !(1..=2).contains(&level) {
        return Err(Status::ERROR_INVALID_CACHE);
    }
    let name = format!("{} L{level}", agent.1.processor());
    let [l1, l2, ..] = cache_bytes(agent.1);
    match attribute {
        0 => value.put(name.len() as u32),
        1 => value.put_text(&name, name.len() + 1),
        2 => value.put(level),
        3 => value.put(if level == 1 { l1 } else { l2 }),
        _ => Err(Status::ERROR_INVALID_ARGUMENT),
    }
}

fn cache_bytes(arch: Arch) -> [u32; 4] {
    let l1 = match arch {
        Arch::Gfx90a => 16 << 10,
        Arch::Gfx942 => 32 << 10,
    };
    [l1, Model::of(arch).l2_bytes as u32, 0, 0]
}

/// `hsa_agent_get_exception_policies`: none is offered.
pub(crate) fn exception_policies(agent: Agent, profile: u32, mask: Out<u16>) -> HsaResult {
    runtime()?.agent(agent)?;
    if profile > 1 {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    mask.put(0)
}

/// `hsa_amd_agent_set_async_scratch_limit`: the emulated GPUs give scratch to each workgroup as it begins, so that there is nothing to be
/// taken back.
pub(crate) fn set_scratch_limit(agent: Agent, threshold_bytes: usize) -> HsaResult {
    runtime()?.gpu(agent)?;
    if threshold_bytes as u64 > SCRATCH_MAX_BYTES {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    Ok(())
}

/// `hsa_agent_get_info`.
pub(crate) fn info(agent: Agent, attribute: u32, value: Ptr) -> HsaResult {
    let runtime = runtime()?;
    let index = runtime.agent(agent)?;
    if value.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    match runtime.agents[index].arch {
        Some(arch) => gpu_info(&runtime, index, arch, attribute, value),
        None => host_info(&runtime, index, attribute, value),
    }
}

/// Attributes of `hsa_agent_info_t` and `hsa_amd_agent_info_t`.
mod attribute {
    pub(super) const NAME: u32 = 0;
    pub(super) const VENDOR_NAME: u32 = 1;
    pub(super) const FEATURE: u32 = 2;
    pub(super) const MACHINE_MODEL: u32 = 3;
    pub(super) const PROFILE: u32 = 4;
    pub(super) const DEFAULT_FLOAT_ROUNDING_MODE: u32 = 5;
    pub(super) const WAVEFRONT_SIZE: u32 = 6;
    pub(super) const WORKGROUP_MAX_DIM: u32 = 7;
    pub(super) const WORKGROUP_MAX_SIZE: u32 = 8;
    pub(super) const GRID_MAX_DIM: u32 = 9;
    pub(super) const GRID_MAX_SIZE: u32 = 10;
    pub(super) const FBARRIER_MAX_SIZE: u32 = 11;
    pub(super) const QUEUES_MAX: u32 = 12;
    pub(super) const QUEUE_MIN_SIZE: u32 = 13;
    pub(super) const QUEUE_MAX_SIZE: u32 = 14;
    pub(super) const QUEUE_TYPE: u32 = 15;
    pub(super) const NODE: u32 = 16;
    pub(super) const DEVICE: u32 = 17;
    pub(super) const CACHE_SIZE: u32 = 18;
    pub(super) const ISA: u32 = 19;
    pub(super) const EXTENSIONS: u32 = 20;
    pub(super) const VERSION_MAJOR: u32 = 21;
    pub(super) const VERSION_MINOR: u32 = 22;
    pub(super) const BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES: u32 = 23;
    pub(super) const FAST_F16_OPERATION: u32 = 24;
    pub(super) const CHIP_ID: u32 = 0xa000;
    pub(super) const CACHELINE_SIZE: u32 = 0xa001;
    pub(super) const COMPUTE_UNIT_COUNT: u32 = 0xa002;
    pub(super) const MAX_CLOCK_FREQUENCY: u32 = 0xa003;
    pub(super) const DRIVER_NODE_ID: u32 = 0xa004;
    pub(super) const MAX_ADDRESS_WATCH_POINTS: u32 = 0xa005;
    pub(super) const BDFID: u32 = 0xa006;
    pub(super) const MEMORY_WIDTH: u32 = 0xa007;
    pub(super) const MEMORY_MAX_FREQUENCY: u32 = 0xa008;
    pub(super) const PRODUCT_NAME: u32 = 0xa009;
    pub(super) const MAX_WAVES_PER_CU: u32 = 0xa00a;
    pub(super) const NUM_SIMDS_PER_CU: u32 = 0xa00b;
    pub(super) const NUM_SHADER_ENGINES: u32 = 0xa00c;
    pub(super) const NUM_SHADER_ARRAYS_PER_SE: u32 = 0xa00d;
    pub(super) const HDP_FLUSH: u32 = 0xa00e;
    pub(super) const DOMAIN: u32 = 0xa00f;
    pub(super) const COOPERATIVE_QUEUES: u32 = 0xa010;
    pub(super) const UUID: u32 = 0xa011;
    pub(super) const ASIC_REVISION: u32 = 0xa012;
    pub(super) const SVM_DIRECT_HOST_ACCESS: u32 = 0xa013;
    pub(super) const COOPERATIVE_COMPUTE_UNIT_COUNT: u32 = 0xa014;
    pub(super) const MEMORY_AVAIL: u32 = 0xa015;
    pub(super) const TIMESTAMP_FREQUENCY: u32 = 0xa016;
    pub(super) const ASIC_FAMILY_ID: u32 = 0xa107;
    pub(super) const UCODE_VERSION: u32 = 0xa108;
    pub(super) const SDMA_UCODE_VERSION: u32 = 0xa109;
    pub(super) const NUM_SDMA_ENG: u32 = 0xa10a;
    pub(super) const NUM_SDMA_XGMI_ENG: u32 = 0xa10b;
    pub(super) const IOMMU_SUPPORT: u32 = 0xa110;
    pub(super) const NUM_XCC: u32 = 0xa111;
    pub(super) const DRIVER_UID: u32 = 0xa112;
    pub(super) const NEAREST_CPU: u32 = 0xa113;
    pub(super) const MEMORY_PROPERTIES: u32 = 0xa114;
    pub(super) const AQL_EXTENSIONS: u32 = 0xa115;
    pub(super) const SCRATCH_LIMIT_MAX: u32 = 0xa116;
    pub(super) const SCRATCH_LIMIT_CURRENT: u32 = 0xa117;
    // Of the extension for images.
    pub(super) const IMAGE_1D_MAX_ELEMENTS: u32 = 0x3000;
    pub(super) const IMAGE_1DA_MAX_ELEMENTS: u32 = 0x3001;
    pub(super) const IMAGE_1DB_MAX_ELEMENTS: u32 = 0x3002;
    pub(super) const IMAGE_2D_MAX_ELEMENTS: u32 = 0x3003;
    pub(super) const IMAGE_2DADEPTH_MAX_ELEMENTS: u32 = 0x3006;
    pub(super) const IMAGE_3D_MAX_ELEMENTS: u32 = 0x3007;
    pub(super) const IMAGE_ARRAY_MAX_LAYERS: u32 = 0x3008;
    pub(super) const MAX_IMAGE_RD_HANDLES: u32 = 0x3009;
    pub(super) const MAX_SAMPLER_HANDLERS: u32 = 0x300b;
    pub(super) const IMAGE_LINEAR_ROW_PITCH_ALIGNMENT: u32 = 0x300c;
    /// `HSA_AMD_AGENT_INFO_CLOCK_COUNTERS`, since 7.0: four 64-bit counters.
    pub(super) const CLOCK_COUNTERS: u32 = 0xa118;
}

/// Length in bytes of `HSA_AGENT_INFO_NAME` and `HSA_AGENT_INFO_VENDOR_NAME`.
const NAME_BYTES: usize = 64;
/// Length in bytes of `HSA_AGENT_INFO_EXTENSIONS`, a bit for each extension.
const EXTENSIONS_BYTES: usize = 128;
/// Length in bytes of `HSA_AMD_AGENT_INFO_UUID`.
const UUID_BYTES: usize = 21;

/// Returns what host and GPUs say in the same way; `None` for other attributes.
fn common_info(runtime: &Runtime, index: AgentIndex, attribute: u32, value: Ptr) -> Option<HsaResult> {
    use self::attribute as a;
    Some(match attribute {
        a::MACHINE_MODEL => value.put(1u32),
        a::DEFAULT_FLOAT_ROUNDING_MODE => value.put(2u32),
        a::BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES => value.put(1u32 << 2),
        a::NODE | a::DRIVER_NODE_ID => value.put(index as u32),
        a::VERSION_MAJOR => value.put(1u16),
        a::VERSION_MINOR => value.put(1u16),
        a::EXTENSIONS => {
            let mut bits = [0; EXTENSIONS_BYTES];
            for number in extensions_of(runtime, index).map(usize::from) {
                bits[number / 8] |= 1 << (number % 8);
            }
            value.put_bytes(&bits)
        }
        a::MEMORY_AVAIL => value.put(runtime.memory.sizes(index).1),
        a::NEAREST_CPU => value.put(handle_of(0)),
        a::MEMORY_PROPERTIES | a::AQL_EXTENSIONS => value.put([0u8; 8]),
        a::FBARRIER_MAX_SIZE
        | a::IOMMU_SUPPORT
        | a::DOMAIN
        | a::ASIC_REVISION
        | a::MAX_ADDRESS_WATCH_POINTS => value.put(0u32),
        a::TIMESTAMP_FREQUENCY => value.put(CLOCK_HZ),
        a::HDP_FLUSH => value.put([Ptr::NULL; 2]),
        a::CLOCK_COUNTERS => {
            let now = now();
            value.put([now, now, now, CLOCK_HZ])
        }
        _ => return None,
    })
}

fn host_info(runtime: &Runtime, index: AgentIndex, attribute: u32, value: Ptr) -> HsaResult {
    use self::attribute as a;
    if let Some(result) = common_info(runtime, index, attribute, value) {
        return result;
    }
    let cores = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    match attribute {
        a::NAME => value.put_text("CPU", NAME_BYTES),
        a::PRODUCT_NAME => value.put_text("Host of the emulated GPUs", NAME_BYTES),
        a::VENDOR_NAME => value.put_text("CPU", NAME_BYTES),
        a::PROFILE => value.put(1u32),
        a::UUID => value.put_text("CPU-XX", UUID_BYTES),
        a::COMPUTE_UNIT_COUNT => value.put(cores),
        a::CACHELINE_SIZE => value.put(64u32),
        a::CACHE_SIZE => value.put([32u32 << 10, 0, 0, 0]),
        a::WORKGROUP_MAX_DIM => value.put([0u16; 3]),
        a::GRID_MAX_DIM => value.put(Dim3::default()),
        a::COOPERATIVE_QUEUES | a::SVM_DIRECT_HOST_ACCESS | a::FAST_F16_OPERATION => value.put(false),
        a::ISA => value.put(Isa(0)),
        a::SCRATCH_LIMIT_MAX | a::SCRATCH_LIMIT_CURRENT => value.put(0u64),
        // The host takes no packets, and is no device of a bus.
        a::FEATURE
        | a::WAVEFRONT_SIZE
        | a::WORKGROUP_MAX_SIZE
        | a::GRID_MAX_SIZE
        | a::QUEUES_MAX
        | a::QUEUE_MIN_SIZE
        | a::QUEUE_MAX_SIZE
        | a::QUEUE_TYPE
        | a::DEVICE
        | a::CHIP_ID
        | a::MAX_CLOCK_FREQUENCY
        | a::BDFID
        | a::MEMORY_WIDTH
        | a::MEMORY_MAX_FREQUENCY
        | a::MAX_WAVES_PER_CU
        | a::NUM_SIMDS_PER_CU
        | a::NUM_SHADER_ENGINES
        | a::NUM_SHADER_ARRAYS_PER_SE
        | a::COOPERATIVE_COMPUTE_UNIT_COUNT
        | a::ASIC_FAMILY_ID
        | a::UCODE_VERSION
        | a::SDMA_UCODE_VERSION
        | a::NUM_SDMA_ENG
        | a::NUM_SDMA_XGMI_ENG
        | a::NUM_XCC
        | a::DRIVER_UID => value.put(0u32),
        _ => Err(Status::ERROR_INVALID_ARGUMENT),
    }
}

fn gpu_info(runtime: &Runtime, index: AgentIndex, arch: Arch, attribute: u32, value: Ptr) -> HsaResult {
    use self::attribute as a;
    if let Some(result) = common_info(runtime, index, attribute, value) {
        return result;
    }
    let model = Model::of(arch);
    match attribute {
        a::NAME => value.put_text(arch.processor(), NAME_BYTES),
        a::PRODUCT_NAME => value.put_text(model.name, NAME_BYTES),
        a::VENDOR_NAME => value.put_text("AMD", NAME_BYTES),
        a::FEATURE | a::DEVICE => value.put(1u32),
        a::PROFILE => value.put(0u32),
        a::WAVEFRONT_SIZE => value.put(WAVE_LANES),
        a::WORKGROUP_MAX_DIM => value.put([THREADS_PER_GROUP as u16; 3]),
        a::WORKGROUP_MAX_SIZE => value.put(THREADS_PER_GROUP),
        a::GRID_MAX_DIM => value.put(Dim3 { x: GRID_MAX, y: GRID_MAX, z: GRID_MAX }),
        a::GRID_MAX_SIZE => value.put(GRID_MAX),
        a::QUEUES_MAX => value.put(QUEUES_MAX),
        a::QUEUE_MIN_SIZE => value.put(QUEUE_PACKETS_MIN),
        a::QUEUE_MAX_SIZE => value.put(QUEUE_PACKETS_MAX),
        a::QUEUE_TYPE => value.put(0u32),
        a::CACHE_SIZE => value.put(cache_bytes(arch)),
        a::ISA => value.put(isa_of(index)),
        a::FAST_F16_OPERATION => value.put(true),
        a::CHIP_ID => value.put(model.chip_id),
        a::CACHELINE_SIZE => value.put(CACHE_LINE_BYTES),
        a::COMPUTE_UNIT_COUNT | a::COOPERATIVE_COMPUTE_UNIT_COUNT => value.put(model.compute_units),
        a::MAX_CLOCK_FREQUENCY => value.put(model.clock_khz as u32 / 1000),
        a::BDFID => value.put((FIRST_BUS + index as u32 - 1) << 8),
        a::MEMORY_WIDTH => value.put(model.memory_bus_bits as u32),
        a::MEMORY_MAX_FREQUENCY => value.put(model.memory_clock_khz as u32 / 1000),
        a::MAX_WAVES_PER_CU => value.put(SIMDS_PER_CU * WAVES_PER_SIMD),
        a::NUM_SIMDS_PER_CU => value.put(SIMDS_PER_CU),
        a::NUM_SHADER_ENGINES => value.put(model.shader_engines),
        a::NUM_SHADER_ARRAYS_PER_SE => value.put(1u32),
        a::COOPERATIVE_QUEUES | a::SVM_DIRECT_HOST_ACCESS => value.put(true),
        a::UUID => {
            value.put_text(&format!("GPU-{:016x}", 0x6869_7072_0000_0000_u64 + index as u64), UUID_BYTES)
        }
        // The driver's number of the family, and versions of firmware that both are new enough for everything.
        a::ASIC_FAMILY_ID => value.put(141u32),
        a::UCODE_VERSION => value.put(177u32),
        a::SDMA_UCODE_VERSION => value.put(22u32),
        a::NUM_SDMA_ENG => value.put(2u32),
        a::NUM_SDMA_XGMI_ENG => value.put(0u32),
        // One partition: what a workgroup's number says of its die means nothing here.
        a::NUM_XCC => value.put(1u32),
        a::DRIVER_UID => value.put(index as u32),
        a::SCRATCH_LIMIT_MAX => value.put(SCRATCH_MAX_BYTES),
        a::SCRATCH_LIMIT_CURRENT => value.put(0u64),
        // There are no images. Rows of pitched memory are aligned by the last one all the same.
        a::IMAGE_1D_MAX_ELEMENTS
        | a::IMAGE_1DA_MAX_ELEMENTS
        | a::IMAGE_1DB_MAX_ELEMENTS
        | a::IMAGE_ARRAY_MAX_LAYERS => value.put(0usize),
        a::IMAGE_2D_MAX_ELEMENTS..=a::IMAGE_2DADEPTH_MAX_ELEMENTS => value.put([0usize; 2]),
        a::IMAGE_3D_MAX_ELEMENTS => value.put([0usize; 3]),
        // The header says size_t. AMD's library writes 4 bytes, and AMD's HIP runtime has no room for more.
        a::MAX_IMAGE_RD_HANDLES..=a::MAX_SAMPLER_HANDLERS => value.put(0u32),
        a::IMAGE_LINEAR_ROW_PITCH_ALIGNMENT => value.put(PITCH_BYTES),
        _ => Err(Status::ERROR_INVALID_ARGUMENT),
    }
}
