//! Memory that host and agents see at one address, and who may access what.
//!
//! All memory of pools lies in one sparse file, each byte at the file's offset that its address has in the range of addresses, so that
//! another process can map it too. What an agent's kernels can reach is its [`Map`]: an allocation is in the maps of the agents that have
//! access, and nowhere else.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hipr_grid::lock;
use hipr_isa::map::{FIRST_ADDRESS, Map, PAGE_BYTES, PAGES, page_count};
use hipr_isa::mem::Block;
use rustix::fs::{FallocateFlags, MemfdFlags, SeekFrom, fallocate, ftruncate, memfd_create, seek, sendfile};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::facts::{AgentIndex, Agents};
use crate::foreign::{self, Claim, Foreign};
use crate::pointer::Ptr;
use crate::segment::{GRANULE_BYTES, Label, Segment};
use crate::status::{HsaResult, Status};
use crate::types::{DeallocationCallback, MemoryPool};

/// What a range of the pools' addresses is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Memory of a pool.
    Pool,
    /// Memory of another process.
    Ipc,
}

/// A range of addresses that the runtime knows.
#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    /// What kernels access; `None` where addresses have no memory.
    pub(crate) block: Option<Arc<Block>>,
    pub(crate) kind: Kind,
    pub(crate) base: u64,
    pub(crate) len_bytes: u64,
    /// Length in bytes that was asked for.
    pub(crate) requested_bytes: u64,
    /// The file that has the memory, if it is not the one of all.
    pub(crate) segment: Option<Arc<Segment>>,
    /// The agent whose memory it is.
    pub(crate) owner: AgentIndex,
    /// The pool that it is from.
    pub(crate) pool: Option<MemoryPool>,
    /// Flags of the pool.
    pub(crate) flags: u32,
    /// Who may access it.
    pub(crate) access: Agents,
    /// What the program has attached.
    pub(crate) user_data: Ptr,
    /// What is called when it is freed, with its data.
    pub(crate) callbacks: Vec<(DeallocationCallback, Ptr)>,
}

impl Allocation {
    /// Returns whether the `len_bytes` bytes at `addr` belong to it.
    pub(crate) fn contains(&self, addr: u64, len_bytes: u64) -> bool {
        addr.checked_sub(self.base)
            .and_then(|offset| offset.checked_add(len_bytes))
            .is_some_and(|end| end <= self.len_bytes)
    }
}

/// All memory of the runtime.
pub(crate) struct Memory {
    file: OwnedFd,
    state: Mutex<State>,
}

struct State {
    /// Where the search for free addresses begins.
    next: u64,
    allocations: BTreeMap<u64, Allocation>,
    /// What each agent's kernels can reach.
    maps: Vec<Arc<Map>>,
    /// Memory of the pools of each agent that is allocated, in bytes.
    used_bytes: Vec<u64>,
    /// Memory of each agent, in bytes.
    total_bytes: Vec<u64>,
    /// Memory that is freed, while a kernel may still have it in its snapshot of a map.
    leaving: Vec<Arc<Block>>,
    /// Memory outside of the pools' addresses that agents reach.
    foreign: Foreign,
}

/// End of the addresses for memory.
const END_ADDRESS: u64 = FIRST_ADDRESS + PAGES * PAGE_BYTES;

impl Memory {
    /// Creates the memory of agents with so many bytes each, the host's first.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` if the system has no memory file.
    pub(crate) fn new(total_bytes: Vec<u64>) -> HsaResult<Self> {
        let file = memfd_create("hipr-hsa", MemfdFlags::CLOEXEC)
            .and_then(|file| ftruncate(&file, PAGES * PAGE_BYTES).map(|()| file))
            .map_err(|error| {
                tracing::error!(%error, "there is no file for the memory of the emulated GPUs");
                Status::ERROR_OUT_OF_RESOURCES
            })?;
        let agents = total_bytes.len();
        let state = State {
            next: FIRST_ADDRESS,
            allocations: BTreeMap::new(),
            maps: vec![Arc::default(); agents],
            used_bytes: vec![0; agents],
            total_bytes,
            leaving: Vec::new(),
            foreign: Foreign::new(agents),
        };
        Ok(Self { file, state: Mutex::new(state) })
    }

    /// Returns the offset of an address in the file.
    pub(crate) fn file_offset(addr: u64) -> u64 {
        addr.wrapping_sub(FIRST_ADDRESS)
    }

    /// Returns what kernels of an agent can reach now.
    pub(crate) fn snapshot(&self, agent: AgentIndex) -> Arc<Map> {
        lock(&self.state).maps.get(agent).map(Arc::clone).unwrap_or_default()
    }

    /// Returns memory in bytes of an agent: all, and what is free.
    pub(crate) fn sizes(&self, agent: AgentIndex) -> (u64, u64) {
        let state = lock(&self.state);
        let total = state.total_bytes.get(agent).copied().unwrap_or(0);
        (total, total.saturating_sub(state.used_bytes.get(agent).copied().unwrap_or(0)))
    }

    /// Allocates `len_bytes` zeroed bytes for a program, of the pool of an agent, which `access` may access besides.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` if the agent's memory does not suffice.
    pub(crate) fn allocate(
        &self,
        len_bytes: u64,
        owner: AgentIndex,
        pool: Option<MemoryPool>,
        flags: u32,
        access: Agents,
    ) -> HsaResult<u64> {
        let requested_bytes = len_bytes;
        let len_bytes = len_bytes
            .checked_next_multiple_of(GRANULE_BYTES)
            .filter(|&len| len > 0)
            .ok_or(Status::ERROR_INVALID_ALLOCATION)?;
        let mut state = lock(&self.state);
        state.reap(self);
        let (used, total) = (state.used_bytes[owner], state.total_bytes[owner]);
        if used.checked_add(len_bytes).is_none_or(|sum| sum > total) {
            return Err(Status::ERROR_OUT_OF_RESOURCES);
        }
        let (base, block) = self.map_somewhere(&mut state, len_bytes)?;
        state.used_bytes[owner] += len_bytes;
        let (kind, user_data) = (Kind::Pool, Ptr::NULL);
        let access = access.with(Agents::only(owner));
        let allocation = Allocation {
            block: Some(block),
            kind,
            base,
            len_bytes,
            requested_bytes,
            segment: None,
            owner,
            pool,
            flags,
            access,
            user_data,
            callbacks: Vec::new(),
        };
        state.insert(allocation);
        Ok(base)
    }

    /// Maps `len_bytes` bytes of the file where neither the runtime nor anybody else has something.
    fn map_somewhere(&self, state: &mut State, len_bytes: u64) -> HsaResult<(u64, Arc<Block>)> {
        loop {
            let base = state.find(len_bytes, PAGE_BYTES).ok_or(Status::ERROR_OUT_OF_RESOURCES)?;
            let access = ProtFlags::READ | ProtFlags::WRITE;
            let flags = MapFlags::SHARED | MapFlags::FIXED_NOREPLACE;
            let (at, len, offset) = (Ptr::at(base).raw(), len_bytes as usize, Self::file_offset(base));
            // SAFETY: the system refuses addresses at which something is mapped already.
            match unsafe { mmap(at, len, access, flags, &self.file, offset) } {
                Ok(_) => {}
                Err(Errno::EXIST) => continue,
                Err(error) => {
                    tracing::warn!(%error, len_bytes, "the system has no memory for an allocation");
                    return Err(Status::ERROR_OUT_OF_RESOURCES);
                }
            }
            // SAFETY: the mapping above, which is ended only when nobody has the block any more.
            let block = unsafe { Block::over(base, len_bytes) };
            return Ok((base, Arc::new(block.ok_or(Status::ERROR_INVALID_ALLOCATION)?)));
        }
    }

    /// Returns free addresses for `len_bytes` bytes, a multiple of `align_bytes`, without reserving them; `None` if there are none.
    pub(crate) fn with_free_addresses<R>(
        &self,
        len_bytes: u64,
        align_bytes: u64,
        make: impl FnOnce(u64) -> HsaResult<(Allocation, R)>,
    ) -> HsaResult<R> {
        let mut state = lock(&self.state);
        state.reap(self);
        let base =
            state.find(len_bytes, align_bytes.max(PAGE_BYTES)).ok_or(Status::ERROR_OUT_OF_RESOURCES)?;
        let (allocation, result) = make(base)?;
        state.insert(allocation);
        Ok(result)
    }

    /// Returns the range that an address is in.
    pub(crate) fn find(&self, addr: u64) -> Option<Allocation> {
        lock(&self.state).at(addr).cloned()
    }

    /// Changes the range that begins at `base`; what its block or its access is then is what kernels see from their next turn on.
    ///
    /// # Errors
    /// `INVALID_ALLOCATION` if none begins there.
    pub(crate) fn change<R>(&self, base: u64, change: impl FnOnce(&mut Allocation) -> R) -> HsaResult<R> {
        let mut state = lock(&self.state);
        let mut allocation = state.allocations.get(&base).cloned().ok_or(Status::ERROR_INVALID_ALLOCATION)?;
        let result = change(&mut allocation);
        let old = state.take(base);
        state.insert(allocation);
        drop(state);
        drop(old);
        Ok(result)
    }

    /// Frees memory of a pool and calls who wanted to know.
    ///
    /// # Errors
    /// `INVALID_ALLOCATION` if no memory of a pool begins there.
    pub(crate) fn free(&self, base: u64) -> HsaResult {
        let mut state = lock(&self.state);
        let mut allocation = state.take_kind(base, Kind::Pool)?;
        state.used_bytes[allocation.owner] -= allocation.len_bytes;
        state.leaving.extend(allocation.block.take());
        state.reap(self);
        drop(state);
        for (callback, data) in allocation.callbacks {
            if let Some(callback) = callback {
                // SAFETY: the program's function, with the address and the data that it was registered with.
                unsafe { callback(Ptr::at(base).raw(), data.raw()) };
            }
        }
        Ok(())
    }

    /// Removes memory of another process that is mapped at `base`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if none begins there.
    pub(crate) fn detach(&self, base: u64) -> HsaResult {
        let mut state = lock(&self.state);
        let allocation = state.take_kind(base, Kind::Ipc).map_err(|_| Status::ERROR_INVALID_ARGUMENT)?;
        state.leaving.extend(allocation.block);
        state.reap(self);
        Ok(())
    }

    /// Takes so many bytes of an agent's memory for something that is not at an address.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` if there are not as many.
    pub(crate) fn take_bytes(&self, owner: AgentIndex, len_bytes: u64) -> HsaResult {
        let mut state = lock(&self.state);
        let used = state.used_bytes[owner].checked_add(len_bytes);
        let used = used.filter(|&used| used <= state.total_bytes[owner]);
        state.used_bytes[owner] = used.ok_or(Status::ERROR_OUT_OF_RESOURCES)?;
        Ok(())
    }

    /// Gives back what was [taken](Self::take_bytes).
    pub(crate) fn give_bytes(&self, owner: AgentIndex, len_bytes: u64) {
        lock(&self.state).used_bytes[owner] -= len_bytes;
    }

    /// Ends claims of memory outside of the pools' addresses and makes others, all at once. The caller keeps the rules of
    /// [`Foreign::change`].
    pub(crate) fn claim_all(&self, ended: &[Claim], made: &[(Range<u64>, Agents)]) -> Vec<Claim> {
        let state = &mut *lock(&self.state);
        state.foreign.change(&mut state.maps, ended, made)
    }

    /// Does the same for a claim that is made.
    pub(crate) fn claim(&self, ended: &[Claim], range: Range<u64>, agents: Agents) -> Option<Claim> {
        self.claim_all(ended, &[(range, agents)]).pop()
    }

    /// Waits until no kernel and no copy has anything of these addresses that no claim gives it any more. That is when their turns end, some
    /// milliseconds.
    pub(crate) fn wait_until_left(&self, range: &Range<u64>) {
        while !lock(&self.state).foreign.has_left(range) {
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Returns what is at two addresses, for a copy from one to the other.
    pub(crate) fn places(&self, addrs: [u64; 2]) -> [Place; 2] {
        let state = lock(&self.state);
        addrs.map(|addr| state.place(addr))
    }

    /// Returns whether a copy may have these bytes: all of them, or none, are of one allocation.
    pub(crate) fn may_copy(&self, addr: u64, len_bytes: u64) -> bool {
        let Some(range) = addr.checked_add(len_bytes).map(|end| addr..end) else { return false };
        !foreign::touches_pools(&range)
            || self.find(addr).is_some_and(|found| found.contains(addr, len_bytes))
    }

    /// Returns the file of its own of an allocation of a pool, which is moved into one unless it has one already. Kernels and copies wait
    /// meanwhile; what threads of the program store meanwhile may be lost.
    ///
    /// # Errors
    /// `INVALID_ALLOCATION` if there is none at this address; `OUT_OF_RESOURCES` if the system has no file for it, or if something keeps
    /// the memory busy for seconds.
    pub(crate) fn own_segment(&self, base: u64) -> HsaResult<Arc<Segment>> {
        let begun = Instant::now();
        loop {
            if let Some(segment) = self.try_own_segment(base)? {
                return Ok(segment);
            }
            if begun.elapsed() > MOVE_MAX {
                tracing::warn!("memory could not be made shareable, because it is never unused");
                return Err(Status::ERROR_OUT_OF_RESOURCES);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Does the same; returns `None` if a kernel has had the memory for too long.
    fn try_own_segment(&self, base: u64) -> HsaResult<Option<Arc<Segment>>> {
        // No turn of a kernel or a copy begins while this is locked.
        let mut state = lock(&self.state);
        let found = state.allocations.get(&base).filter(|found| found.kind == Kind::Pool);
        let found = found.ok_or(Status::ERROR_INVALID_ALLOCATION)?;
        if let Some(segment) = &found.segment {
            return Ok(Some(Arc::clone(segment)));
        }
        let pool = found.pool.ok_or(Status::ERROR_INVALID_ALLOCATION)?;
        let label = Label { pool, requested_bytes: found.requested_bytes, kind: 0 };
        let segment = Arc::new(Segment::new(found.len_bytes, label)?);
        let mut allocation = state.take_kind(base, Kind::Pool)?;
        let result = match &allocation.block {
            Some(block) if is_soon_unused(block) => self.move_into(&segment, base).map(Some),
            _ => Ok(None),
        };
        if let Ok(Some(())) = result {
            allocation.segment = Some(Arc::clone(&segment));
        }
        state.insert(allocation);
        drop(state);
        result.map(|moved| moved.map(|()| segment))
    }

    /// Moves what is at `base` from the file of all into another, which is mapped there in its place.
    fn move_into(&self, segment: &Segment, base: u64) -> HsaResult {
        let (first, len_bytes) = (Self::file_offset(base), segment.len_bytes());
        let end = first + len_bytes;
        let copied = || {
            let mut at = first;
            // What was never written is in neither file.
            while let Ok(data) = seek(&self.file, SeekFrom::Data(at)) {
                if data >= end {
                    break;
                }
                at = data;
                let hole = seek(&self.file, SeekFrom::Hole(data))?.min(end);
                seek(segment.fd(), SeekFrom::Start(data - first))?;
                while at < hole {
                    let left = (hole - at) as usize;
                    sendfile(segment.fd(), &self.file, Some(&mut at), left)?;
                }
            }
            Ok(())
        };
        copied().map_err(|error: Errno| {
            tracing::warn!(%error, len_bytes, "memory could not be moved into a file of its own");
            Status::ERROR_OUT_OF_RESOURCES
        })?;
        // SAFETY: the addresses of an allocation that no kernel has now, and the same bytes.
        unsafe { segment.map(base, true) }?;
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if let Err(error) = fallocate(&self.file, hole, first, len_bytes) {
            tracing::warn!(%error, len_bytes, "memory is in two files");
        }
        Ok(())
    }
}

/// What a copy finds at an address.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// Memory that kernels may access at the same time.
    Known(Arc<Block>),
    /// What the program has there, up to this address, at which something else may be.
    Program(u64),
    /// Nothing: an address of the pools where none is allocated.
    Nothing,
}

/// How often who waits for kernels to leave memory looks.
const LOOK_AGAIN: Duration = Duration::from_micros(50);
/// For how long nothing else happens because an allocation is moved, if a kernel has it.
const PAUSE_MAX: Duration = Duration::from_millis(20);
/// For how long it is tried to move an allocation.
const MOVE_MAX: Duration = Duration::from_secs(5);

/// Returns whether nobody else has a block, or will not have it in a moment.
fn is_soon_unused(block: &Arc<Block>) -> bool {
    let begun = Instant::now();
    while Arc::strong_count(block) > 1 {
        if begun.elapsed() > PAUSE_MAX {
            return false;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    true
}

impl State {
    /// Returns addresses for `len_bytes` bytes and a page behind them.
    fn find(&mut self, len_bytes: u64, align_bytes: u64) -> Option<u64> {
        let span = page_count(len_bytes).checked_add(1)?.checked_mul(PAGE_BYTES)?;
        let first =
            self.gap(self.next, span, align_bytes).or_else(|| self.gap(FIRST_ADDRESS, span, align_bytes))?;
        self.next = first + span;
        Some(first)
    }

    /// Returns the first free addresses from `start` on.
    fn gap(&self, start: u64, span: u64, align_bytes: u64) -> Option<u64> {
        let mut at = start.checked_next_multiple_of(align_bytes)?;
        let before = self.allocations.range(..at).next_back().map(|(_, found)| found);
        if let Some(end) =
            before.and_then(|found| found.base.checked_add(found.len_bytes)).filter(|&end| end > at)
        {
            at = end.checked_add(PAGE_BYTES)?.checked_next_multiple_of(align_bytes)?;
        }
        let leaving = |at: u64| {
            let ends = self.leaving.iter().filter(|block| {
                block.base() < at.saturating_add(span) && at < block.base().saturating_add(block.len_bytes())
            });
            ends.map(|block| block.base() + block.len_bytes()).max()
        };
        loop {
            let end = at.checked_add(span).filter(|&end| end <= END_ADDRESS)?;
            let beyond = match self.allocations.range(at..end).next() {
                Some((&base, found)) => base.checked_add(found.len_bytes.max(1))?,
                None => match leaving(at) {
                    Some(end) => end,
                    None => return Some(at),
                },
            };
            at = beyond.checked_add(PAGE_BYTES)?.checked_next_multiple_of(align_bytes)?;
        }
    }

    fn place(&self, addr: u64) -> Place {
        if let Some(found) = self.at(addr) {
            return found.block.as_ref().map_or(Place::Nothing, |block| Place::Known(Arc::clone(block)));
        }
        if foreign::touches_pools(&(addr..addr.saturating_add(1))) {
            return Place::Nothing;
        }
        match self.foreign.at(addr) {
            Ok(block) => Place::Known(Arc::clone(block)),
            Err(next) if addr < FIRST_ADDRESS => Place::Program(next.min(FIRST_ADDRESS)),
            Err(next) => Place::Program(next),
        }
    }

    /// Takes the range of this kind that begins at `base`.
    ///
    /// # Errors
    /// `INVALID_ALLOCATION` if there is none.
    fn take_kind(&mut self, base: u64, kind: Kind) -> HsaResult<Allocation> {
        let is_there = self.allocations.get(&base).is_some_and(|found| found.kind == kind);
        let taken = if is_there { self.take(base) } else { None };
        taken.ok_or(Status::ERROR_INVALID_ALLOCATION)
    }

    fn at(&self, addr: u64) -> Option<&Allocation> {
        let (_, found) = self.allocations.range(..=addr).next_back()?;
        found.contains(addr, 1).then_some(found)
    }

    fn insert(&mut self, allocation: Allocation) {
        if let Some(block) = &allocation.block {
            for (_, map) in
                self.maps.iter_mut().enumerate().filter(|(index, _)| allocation.access.contains(*index))
            {
                if let Err(error) = Arc::make_mut(map).insert(block) {
                    tracing::error!(%error, base = allocation.base, "an agent cannot be given access to memory");
                }
            }
        }
        self.allocations.insert(allocation.base, allocation);
    }

    fn take(&mut self, base: u64) -> Option<Allocation> {
        let allocation = self.allocations.remove(&base)?;
        if let Some(block) = &allocation.block {
            for (_, map) in
                self.maps.iter_mut().enumerate().filter(|(index, _)| allocation.access.contains(*index))
            {
                Arc::make_mut(map).remove(block);
            }
        }
        Some(allocation)
    }

    /// Gives back the memory of freed allocations that no kernel can reach any more.
    fn reap(&mut self, memory: &Memory) {
        self.leaving.retain(|block| {
            if Arc::strong_count(block) > 1 {
                return true;
            }
            let (base, len_bytes) = (block.base(), block.len_bytes());
            // SAFETY: the mapping that `map_file` made for this block, which only the list still has.
            let unmapped = unsafe { munmap(Ptr::at(base).raw(), len_bytes as usize) };
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let emptied = fallocate(&memory.file, hole, Memory::file_offset(base), len_bytes);
            if let Err(error) = unmapped.and(emptied) {
                tracing::warn!(%error, len_bytes, "freed memory could not be given back to the system");
            }
            false
        });
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let pools = state.allocations.values().filter(|allocation| allocation.kind == Kind::Pool);
        let blocks = pools.filter_map(|allocation| allocation.block.as_ref()).chain(&state.leaving);
        for block in blocks {
            // SAFETY: a mapping of `map_somewhere`; no thread executes kernels any more, and the library has ended for the program.
            let _ = unsafe { munmap(Ptr::at(block.base()).raw(), block.len_bytes() as usize) };
        }
    }
}
