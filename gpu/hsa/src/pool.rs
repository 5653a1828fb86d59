//! Memory pools and regions: where memory can be allocated, and who may access it.
//!
//! A region of the base standard and a pool of AMD's extension are the same here, with one number.

use crate::facts::AgentIndex;
use crate::facts::GROUP_BYTES;
use crate::pointer::{Out, Ptr};
use crate::runtime::{Runtime, runtime};
use crate::segment::GRANULE_BYTES;
use crate::status::{HsaResult, Status};
use crate::types::{Agent, Each, MemoryPool, Region, each};

/// What a pool is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Memory at an address, with these flags (`hsa_amd_memory_pool_global_flag_t`).
    Global {
        /// Who sees writes when, and whether kernel arguments may lie there.
        flags: u32,
    },
    /// LDS, which nobody allocates.
    Group,
}

/// `HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT`.
const KERNARG: u32 = 1;
/// `HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED`.
pub(crate) const FINE: u32 = 2;
/// `HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED`.
pub(crate) const COARSE: u32 = 4;
/// `HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_EXTENDED_SCOPE_FINE_GRAINED`.
const EXTENDED: u32 = 8;

/// The host's pools, in the order in which they are told.
const HOST_POOLS: &[Use] = &[
    Use::Global { flags: FINE },
    Use::Global { flags: EXTENDED },
    Use::Global { flags: KERNARG | FINE },
    Use::Global { flags: COARSE },
];
/// A GPU's pools.
const GPU_POOLS: &[Use] = &[
    Use::Global { flags: COARSE },
    Use::Global { flags: EXTENDED },
    Use::Global { flags: FINE },
    Use::Group,
];

/// A pool of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) handle: MemoryPool,
    pub(crate) agent: AgentIndex,
    pub(crate) purpose: Use,
}

impl Runtime {
    fn pools_of(&self, agent: AgentIndex) -> impl Iterator<Item = Pool> + use<> {
        let pools = if self.agents[agent].arch.is_some() { GPU_POOLS } else { HOST_POOLS };
        let handle = move |number: usize| MemoryPool((agent as u64 + 1) << 8 | number as u64);
        pools.iter().enumerate().map(move |(number, &purpose)| Pool {
            handle: handle(number),
            agent,
            purpose,
        })
    }

    /// Returns the pool with this handle.
    ///
    /// # Errors
    /// `INVALID_MEMORY_POOL` if there is none.
    pub(crate) fn pool(&self, pool: MemoryPool) -> HsaResult<Pool> {
        let agent = self.agent(Agent(pool.0 >> 8)).map_err(|_| Status::ERROR_INVALID_MEMORY_POOL)?;
        self.pools_of(agent).find(|found| found.handle == pool).ok_or(Status::ERROR_INVALID_MEMORY_POOL)
    }

    /// Returns the flags and the agent of the pool, if memory can be allocated from it.
    ///
    /// # Errors
    /// `INVALID_MEMORY_POOL` if there is none; `INVALID_ALLOCATION` for LDS.
    pub(crate) fn allocatable(&self, pool: MemoryPool) -> HsaResult<(AgentIndex, u32)> {
        let pool = self.pool(pool)?;
        match pool.purpose {
            Use::Global { flags } => Ok((pool.agent, flags)),
            Use::Group => Err(Status::ERROR_INVALID_ALLOCATION),
        }
    }

    /// Returns the pool of an agent that code objects are loaded into, and its flags: the first coarse-grained one.
    ///
    /// # Errors
    /// `INVALID_AGENT` if the agent has none.
    pub(crate) fn code_pool(&self, agent: AgentIndex) -> HsaResult<(MemoryPool, u32)> {
        let coarse = Use::Global { flags: COARSE };
        let pool = self.pools_of(agent).find(|pool| pool.purpose == coarse);
        Ok((pool.ok_or(Status::ERROR_INVALID_AGENT)?.handle, COARSE))
    }
}

/// `hsa_amd_agent_iterate_memory_pools`.
pub(crate) fn iterate_pools(agent: Agent, callback: Each<MemoryPool>, data: Ptr) -> HsaResult {
    let runtime = runtime()?;
    let index = runtime.agent(agent)?;
    each(runtime.pools_of(index).map(|pool| pool.handle), callback, data)
}

/// `hsa_agent_iterate_regions`.
pub(crate) fn iterate_regions(agent: Agent, callback: Each<Region>, data: Ptr) -> HsaResult {
    let runtime = runtime()?;
    let index = runtime.agent(agent)?;
    each(runtime.pools_of(index).map(|pool| Region(pool.handle.0)), callback, data)
}

/// `hsa_amd_memory_pool_get_info`.
pub(crate) fn pool_info(pool: MemoryPool, attribute: u32, value: Ptr) -> HsaResult {
    let runtime = runtime()?;
    let pool = runtime.pool(pool)?;
    let (total_bytes, _) = runtime.memory.sizes(pool.agent);
    let (is_global, flags, size_bytes) = match pool.purpose {
        Use::Global { flags } => (true, flags, total_bytes),
        Use::Group => (false, 0, GROUP_BYTES),
    };
    let granule = if is_global { GRANULE_BYTES } else { 0 };
    match attribute {
        0 => value.put(if is_global { 0u32 } else { 3 }),
        1 => value.put(flags),
        2 => value.put(size_bytes),
        5 => value.put(is_global),
        6 | 7 => value.put(granule),
        // Whether all agents may access its memory without being allowed to.
        15 => value.put(pool.agent == 0),
        16 => value.put(if is_global { size_bytes } else { 0 }),
        17 => value.put(u32::from(pool.agent != 0)),
        18 => value.put(if is_global { 2u64 << 20 } else { 0 }),
        _ => Err(Status::ERROR_INVALID_ARGUMENT),
    }
}

/// `hsa_region_get_info`.
pub(crate) fn region_info(region: Region, attribute: u32, value: Ptr) -> HsaResult {
    let pool = MemoryPool(region.0);
    let runtime = runtime()?;
    let found = runtime.pool(pool).map_err(|_| Status::ERROR_INVALID_REGION)?;
    match attribute {
        0..=2 | 5..=7 => pool_info(pool, attribute, value),
        4 => pool_info(pool, 16, value),
        8 => value.put(0u32),
        0xa000 => value.put(found.purpose != Use::Group),
        0xa001 => value.put(Ptr::NULL),
        0xa002 | 0xa003 => value.put(0u32),
        _ => Err(Status::ERROR_INVALID_ARGUMENT),
    }
}

/// How an agent may access a pool (`hsa_amd_memory_pool_access_t`): the own one always, others when it is allowed to.
fn access(agent: AgentIndex, pool: &Pool) -> u32 {
    match pool.purpose {
        Use::Group => u32::from(agent == pool.agent),
        Use::Global { .. } if agent == pool.agent => 1,
        Use::Global { .. } => 2,
    }
}

/// `hsa_amd_memory_pool_link_info_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LinkInfo {
    min_latency: u32,
    max_latency: u32,
    min_bandwidth: u32,
    max_bandwidth: u32,
    atomic_32: bool,
    atomic_64: bool,
    coherent: bool,
    link_type: u32,
    numa_distance: u32,
}

/// `hsa_amd_agent_memory_pool_get_info`.
pub(crate) fn agent_pool_info(agent: Agent, pool: MemoryPool, attribute: u32, value: Ptr) -> HsaResult {
    const PCIE: u32 = 2;
    const XGMI: u32 = 4;
    let runtime = runtime()?;
    let agent = runtime.agent(agent)?;
    let pool = runtime.pool(pool)?;
    let hops = u32::from(agent != pool.agent);
    match attribute {
        0 => value.put(access(agent, &pool)),
        1 => value.put(hops),
        2 if hops == 0 => Ok(()),
        2 => {
            let (link_type, numa_distance) =
                if agent == 0 || pool.agent == 0 { (PCIE, 20) } else { (XGMI, 15) };
            value.put(LinkInfo {
                min_latency: 0,
                max_latency: 0,
                min_bandwidth: 0,
                max_bandwidth: 0,
                atomic_32: true,
                atomic_64: true,
                coherent: true,
                link_type,
                numa_distance,
            })
        }
        _ => Err(Status::ERROR_INVALID_ARGUMENT),
    }
}

/// `hsa_amd_memory_pool_can_migrate`: memory stays where it was allocated.
pub(crate) fn can_migrate(from: MemoryPool, to: MemoryPool, result: Out<bool>) -> HsaResult {
    let runtime = runtime()?;
    runtime.pool(from)?;
    runtime.pool(to)?;
    result.put(false)
}

/// `hsa_amd_memory_migrate`: AMD's runtime does not do it either.
pub(crate) fn migrate(_ptr: Ptr, pool: MemoryPool, flags: u32) -> HsaResult {
    runtime()?.pool(pool)?;
    if flags != 0 {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    Err(Status::ERROR_OUT_OF_RESOURCES)
}

/// `hsa_amd_coherency_get_type`: host and GPUs see each other's writes.
pub(crate) fn coherency_type(agent: Agent, kind: Out<u32>) -> HsaResult {
    runtime()?.gpu(agent)?;
    kind.put(0)
}

/// `hsa_amd_coherency_set_type`: is accepted, and what is coherent stays so.
pub(crate) fn set_coherency_type(agent: Agent, kind: u32) -> HsaResult {
    runtime()?.gpu(agent)?;
    if kind > 1 { Err(Status::ERROR_INVALID_ARGUMENT) } else { Ok(()) }
}
