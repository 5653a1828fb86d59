//! Locked memory: memory of the program that GPUs reach at its own address.
//!
//! What is locked are whole pages. Locks may overlap: an agent reaches what one of them gives it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

use hipr_grid::lock as locked;

use crate::facts::Agents;
use crate::foreign::{Claim, is_foreign, pages_of};
use crate::host_memory::{self, Wanted};
use crate::pointer::{Out, Ptr};
use crate::pool;
use crate::runtime::{Runtime, runtime};
use crate::status::{HsaResult, Status};
use crate::types::{Agent, MemoryPool};
use crate::vmem::Vmem;

/// A lock, as the program has made it.
#[derive(Clone, Debug)]
pub(crate) struct Lock {
    pub(crate) base: u64,
    pub(crate) len_bytes: u64,
    pub(crate) access: Agents,
    /// Flags of the pool whose rules hold for it.
    pub(crate) flags: u32,
    pub(crate) user_data: Ptr,
    claim: Claim,
}

impl Lock {
    fn contains(&self, addr: u64) -> bool {
        addr >= self.base && addr - self.base < self.len_bytes
    }

    fn pages(&self) -> Range<u64> {
        pages_of(self.base, self.len_bytes).unwrap_or(0..0)
    }
}

/// The locks there are.
#[derive(Debug, Default)]
pub(crate) struct Locks(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// By address; of those at one address the last is the newest.
    by_base: BTreeMap<u64, Vec<Lock>>,
    /// Length in bytes of the longest lock there has been, which is how far from its beginning an address can be.
    longest_bytes: u64,
}

impl State {
    /// Returns the lock of an address: the one that begins closest before it, of several there the newest.
    fn at(&mut self, addr: u64) -> Option<&mut Lock> {
        let near = self.by_base.range_mut(addr.saturating_sub(self.longest_bytes)..=addr).rev();
        near.flat_map(|(_, locks)| locks.iter_mut().rev()).find(|lock| lock.contains(addr))
    }
}

impl Locks {
    /// Returns the lock of an address: the one that begins closest before it, of several there the newest.
    pub(crate) fn find(&self, addr: u64) -> Option<Lock> {
        locked(&self.0).at(addr).cloned()
    }

    /// Attaches a value to the lock that begins at `base`; returns whether there is one.
    pub(crate) fn set_user_data(&self, base: u64, user_data: Ptr) -> bool {
        let mut state = locked(&self.0);
        let lock = state.by_base.get_mut(&base).and_then(|locks| locks.last_mut());
        lock.map(|lock| lock.user_data = user_data).is_some()
    }
}

impl Runtime {
    /// Returns who a list of agents of a lock is: all for none.
    fn locking_agents(&self, agents: Out<Agent>, count: i32) -> HsaResult<Agents> {
        let count = usize::try_from(count).map_err(|_| Status::ERROR_INVALID_ARGUMENT)?;
        if agents.is_null() != (count == 0) {
            return Err(Status::ERROR_INVALID_ARGUMENT);
        }
        if count == 0 {
            return Ok(Agents::ALL);
        }
        Ok(self.agent_set(agents.to_in(), count)?.with(Agents::only(0)))
    }

    fn lock_pages(&self, base: u64, len_bytes: u64, access: Agents, flags: u32) -> HsaResult {
        let pages = pages_of(base, len_bytes).ok_or(Status::ERROR_INVALID_ARGUMENT)?;
        if !is_foreign(&pages) || self.part::<Vmem>().withholds(&pages) {
            tracing::debug!(?pages, "memory that the runtime has made needs no lock, and gets none");
            return Err(Status::ERROR);
        }
        if !host_memory::is(Wanted::Writable, &pages) {
            tracing::debug!(?pages, "memory that is not there, or cannot be written, cannot be locked");
            return Err(Status::ERROR_OUT_OF_RESOURCES);
        }
        let mut state = locked(&self.part::<Locks>().0);
        let claim = self.memory.claim(&[], pages, access).ok_or(Status::ERROR_OUT_OF_RESOURCES)?;
        state.longest_bytes = state.longest_bytes.max(len_bytes);
        let lock = Lock { base, len_bytes, access, flags, user_data: Ptr::NULL, claim };
        state.by_base.entry(base).or_default().push(lock);
        Ok(())
    }
}

/// `hsa_amd_memory_lock`.
pub(crate) fn lock(
    ptr: Ptr,
    len_bytes: usize,
    agents: Out<Agent>,
    count: i32,
    agent_ptr: Out<Ptr>,
) -> HsaResult {
    lock_as(&*runtime()?, ptr, len_bytes, agents, count, pool::COARSE, agent_ptr)
}

/// `hsa_amd_memory_lock_to_pool`: host and GPUs see each other's writes in any case.
pub(crate) fn lock_to_pool(
    ptr: Ptr,
    len_bytes: usize,
    agents: Out<Agent>,
    count: i32,
    pool: MemoryPool,
    flags: u32,
    agent_ptr: Out<Ptr>,
) -> HsaResult {
    let runtime = runtime()?;
    if flags != 0 {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let (owner, pool_flags) = runtime.allocatable(pool).map_err(|_| Status::ERROR_INVALID_MEMORY_POOL)?;
    if owner != 0 {
        return Err(Status::ERROR_INVALID_MEMORY_POOL);
    }
    lock_as(&runtime, ptr, len_bytes, agents, count, pool_flags, agent_ptr)
}

fn lock_as(
    runtime: &Runtime,
    ptr: Ptr,
    len_bytes: usize,
    agents: Out<Agent>,
    count: i32,
    flags: u32,
    agent_ptr: Out<Ptr>,
) -> HsaResult {
    if ptr.is_null() || len_bytes == 0 || agent_ptr.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let access = runtime.locking_agents(agents, count)?;
    runtime.lock_pages(ptr.addr(), len_bytes as u64, access, flags)?;
    agent_ptr.put(ptr)
}

/// `hsa_amd_memory_unlock`: ends the newest lock that begins there, and returns when no kernel reaches what only this lock gave it. As
/// AMD's it succeeds where nothing is locked.
pub(crate) fn unlock(ptr: Ptr) -> HsaResult {
    let runtime = runtime()?;
    let mut state = locked(&runtime.part::<Locks>().0);
    let Some(locks) = state.by_base.get_mut(&ptr.addr()) else {
        tracing::debug!(?ptr, "there is no lock to be ended");
        return Ok(());
    };
    let lock = locks.pop();
    if locks.is_empty() {
        state.by_base.remove(&ptr.addr());
    }
    drop(state);
    if let Some(lock) = lock {
        runtime.memory.claim_all(&[lock.claim], &[]);
        runtime.memory.wait_until_left(&lock.pages());
    }
    Ok(())
}

/// `hsa_memory_register`: GPUs of the base profile reach memory that is locked, which this does not do.
pub(crate) fn register(ptr: Ptr, len_bytes: usize) -> HsaResult {
    runtime()?;
    if len_bytes == 0 && !ptr.is_null() { Err(Status::ERROR_INVALID_ARGUMENT) } else { Ok(()) }
}

/// `hsa_memory_deregister`.
pub(crate) fn deregister(_ptr: Ptr, _len_bytes: usize) -> HsaResult {
    runtime().map(drop)
}
