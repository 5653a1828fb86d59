//! Allocating memory of pools, and who may access it.

use crate::facts::Agents;
use crate::memory::Kind;
use crate::pointer::{In, Out, Ptr};
use crate::runtime::{Runtime, runtime};
use crate::status::{HsaResult, Status};
use crate::types::{Agent, DeallocationCallback, MemoryPool, Region};

/// Flags that an allocation may have: standard, PCIe, contiguous, executable, uncached.
const FLAGS: u32 = 0x1f;

/// `hsa_amd_memory_pool_allocate`.
pub(crate) fn pool_allocate(pool: MemoryPool, len_bytes: usize, flags: u32, ptr: Out<Ptr>) -> HsaResult {
    let runtime = runtime()?;
    if len_bytes == 0 || ptr.is_null() || flags & !FLAGS != 0 {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let (agent, pool_flags) = runtime.allocatable(pool)?;
    if len_bytes as u64 > runtime.memory.sizes(agent).0 {
        return Err(Status::ERROR_INVALID_ALLOCATION);
    }
    let access = Agents::only(agent).with(Agents::only(0));
    let base = runtime.memory.allocate(len_bytes as u64, agent, Some(pool), pool_flags, access)?;
    ptr.put(Ptr::at(base))
}

/// `hsa_memory_allocate`: all agents may access what it gives.
pub(crate) fn region_allocate(region: Region, len_bytes: usize, ptr: Out<Ptr>) -> HsaResult {
    let runtime = runtime()?;
    if len_bytes == 0 || ptr.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let pool = MemoryPool(region.0);
    let invalid = |status| match status {
        Status::ERROR_INVALID_MEMORY_POOL => Status::ERROR_INVALID_REGION,
        other => other,
    };
    let (agent, flags) = runtime.allocatable(pool).map_err(invalid)?;
    let base = runtime.memory.allocate(len_bytes as u64, agent, Some(pool), flags, Agents::ALL)?;
    ptr.put(Ptr::at(base))
}

/// `hsa_amd_memory_pool_free`.
pub(crate) fn pool_free(ptr: Ptr) -> HsaResult {
    let runtime = runtime()?;
    if ptr.is_null() {
        return Ok(());
    }
    runtime.memory.free(ptr.addr())
}

/// `hsa_memory_free`.
pub(crate) fn free(ptr: Ptr) -> HsaResult {
    if ptr.is_null() {
        runtime()?;
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    pool_free(ptr)
}

impl Runtime {
    /// Returns a list of agents as a set.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an empty list, `INVALID_AGENT` if one of them is none.
    pub(crate) fn agent_set(&self, agents: In<Agent>, count: usize) -> HsaResult<Agents> {
        if count == 0 {
            return Err(Status::ERROR_INVALID_ARGUMENT);
        }
        agents
            .list(count)?
            .into_iter()
            .try_fold(Agents::default(), |set, agent| Ok(set.with(Agents::only(self.agent(agent)?))))
    }
}

/// `hsa_amd_agents_allow_access`: these agents may access the memory, others lose what they had; its own agent and the host always may.
pub(crate) fn allow_access(count: u32, agents: In<Agent>, flags: In<u32>, ptr: Ptr) -> HsaResult {
    let runtime = runtime()?;
    if !flags.is_null() || ptr.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let set = runtime.agent_set(agents, count as usize)?;
    let found = runtime.memory.find(ptr.addr()).ok_or(Status::ERROR_INVALID_ALLOCATION)?;
    if !matches!(found.kind, Kind::Pool | Kind::Ipc) {
        return Err(Status::ERROR_INVALID_ALLOCATION);
    }
    runtime.memory.change(found.base, |allocation| {
        allocation.access = set.with(Agents::only(allocation.owner)).with(Agents::only(0));
    })
}

/// `hsa_memory_assign_agent`: memory has one owner and is accessed by who is allowed to.
pub(crate) fn assign_agent(ptr: Ptr, agent: Agent, access: u32) -> HsaResult {
    let runtime = runtime()?;
    runtime.agent(agent)?;
    if ptr.is_null() || !(1..=3).contains(&access) {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    Ok(())
}

/// `hsa_amd_register_deallocation_callback`.
pub(crate) fn register_deallocation(ptr: Ptr, callback: DeallocationCallback, data: Ptr) -> HsaResult {
    let runtime = runtime()?;
    if callback.is_none() || ptr.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let found = runtime.memory.find(ptr.addr()).ok_or(Status::ERROR_INVALID_ALLOCATION)?;
    runtime.memory.change(found.base, |allocation| allocation.callbacks.push((callback, data)))
}

/// `hsa_amd_deregister_deallocation_callback`.
pub(crate) fn deregister_deallocation(ptr: Ptr, callback: DeallocationCallback) -> HsaResult {
    let runtime = runtime()?;
    let found = runtime.memory.find(ptr.addr()).ok_or(Status::ERROR_INVALID_ARGUMENT)?;
    let same = |known: DeallocationCallback| known.map(|f| f as usize) == callback.map(|f| f as usize);
    runtime.memory.change(found.base, |allocation| {
        let index = allocation.callbacks.iter().position(|&(known, _)| same(known));
        index.map(|index| allocation.callbacks.remove(index)).map(drop).ok_or(Status::ERROR_INVALID_ARGUMENT)
    })?
}

/// `hsa_amd_memory_fill`: stores a 32-bit value `count` times.
pub(crate) fn fill(ptr: Ptr, value: u32, count: usize) -> HsaResult {
    let runtime = runtime()?;
    if ptr.is_null() || !ptr.addr().is_multiple_of(4) {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let len_bytes = count.checked_mul(4).ok_or(Status::ERROR_INVALID_ARGUMENT)? as u64;
    let found = runtime.memory.find(ptr.addr()).filter(|found| found.contains(ptr.addr(), len_bytes));
    let block = found.and_then(|found| found.block).ok_or(Status::ERROR_INVALID_ALLOCATION)?;
    let offset = (ptr.addr() - block.base()) as usize;
    for index in 0..count {
        block.store_u32(offset + index * 4, value);
    }
    Ok(())
}
