//! Virtual memory: addresses that are reserved, memory without an address, and the one mapped at the other.
//!
//! Reserved addresses lie outside of the pools'. The memory of a handle is a file of its own, which another process may be given. Mapped
//! memory is the host's to read and write; a GPU reaches it once it has been given access, which is a claim as that of locked memory: what
//! is mapped side by side is one block for a kernel. Access to read only is kept and told, and lets kernels write all the same.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use hipr_grid::lock;
use hipr_isa::map::PAGE_BYTES;
use rustix::io::fcntl_dupfd_cloexec;

use crate::addresses::{Content, Freed, map_content, release_addresses, reserve};
use crate::facts::{AgentIndex, Agents};
use crate::foreign::Claim;
use crate::memory::Memory;
use crate::pointer::{In, Out, Ptr};
use crate::runtime::{Runtime, runtime};
use crate::segment::{GRANULE_BYTES, Label, Segment};
use crate::status::{HsaResult, Status};
use crate::types::{Agent, MemoryAccess, MemoryPool, VmemHandle};

/// `MEMORY_TYPE_PINNED`, the last of `hsa_amd_memory_type_t`.
const PINNED: u32 = 1;
/// `HSA_ACCESS_PERMISSION_RW`, the last of `hsa_access_permission_t`.
const READ_WRITE: u32 = 3;
/// `HSA_AMD_VMEM_ADDRESS_NO_REGISTER`: what is reserved is [`Content::HostMemory`].
const NO_REGISTER: u64 = 1;

/// The number of the first handle. AMD's runtime keeps handles and addresses in one table of ranges, each as long as its memory: so no handle is an
/// address of the process, and the next handle's number is larger by the length of the memory.
const FIRST_HANDLE: u64 = 1 << 56;

/// Addresses that are reserved.
#[derive(Clone, Copy, Debug)]
struct Reservation {
    /// What was asked for, which `hsa_amd_vmem_address_free` has to name.
    wanted_bytes: u64,
    /// Whole pages.
    len_bytes: u64,
    content: Content,
}

/// Memory without an address.
#[derive(Debug)]
struct Handle {
    segment: Arc<Segment>,
    /// How often it was created, imported and retained and not released.
    uses: u64,
    /// How often it is mapped.
    mappings: u64,
    owner: AgentIndex,
    pool: MemoryPool,
    /// Flags of the pool.
    flags: u32,
    /// Whether this process has created it, so that it is of the agent's memory.
    is_own: bool,
}

/// Memory at an address.
#[derive(Debug)]
struct Mapping {
    len_bytes: u64,
    handle: VmemHandle,
    /// What was said of agents.
    permissions: BTreeMap<AgentIndex, u32>,
    claim: Option<Claim>,
    user_data: Ptr,
}

impl Mapping {
    fn access(&self) -> Agents {
        let allowed = self.permissions.iter().filter(|(_, permissions)| **permissions != 0);
        allowed.fold(Agents::only(0), |set, (&agent, _)| set.with(Agents::only(agent)))
    }
}

/// Reserved addresses, handles and what is mapped.
#[derive(Debug, Default)]
pub(crate) struct Vmem(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The bytes of all handles that there were.
    handles_bytes: u64,
    handles: BTreeMap<VmemHandle, Handle>,
    /// What is reserved, by first address.
    reserved: BTreeMap<u64, Reservation>,
    mapped: BTreeMap<u64, Mapping>,
    freed: Freed,
}

/// What is at a reserved address.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) is_mapped: bool,
    pub(crate) base: u64,
    pub(crate) len_bytes: u64,
    pub(crate) owner: Option<AgentIndex>,
    pub(crate) flags: u32,
    pub(crate) access: Agents,
    pub(crate) user_data: Ptr,
}

impl State {
    fn reserved_at(&self, addr: u64) -> Option<(Range<u64>, Content)> {
        let (&base, reservation) = self.reserved.range(..=addr).next_back()?;
        let range = base..base + reservation.len_bytes;
        range.contains(&addr).then_some((range, reservation.content))
    }

    fn mapped_at(&self, addr: u64) -> Option<(u64, &Mapping)> {
        let (&base, mapping) = self.mapped.range(..=addr).next_back()?;
        (addr - base < mapping.len_bytes).then_some((base, mapping))
    }

    /// Returns a handle that somebody has not released.
    fn used(&mut self, handle: VmemHandle) -> Option<&mut Handle> {
        self.handles.get_mut(&handle).filter(|found| found.uses > 0)
    }

    /// Forgets a handle that nobody uses; its memory goes with the last descriptor of it.
    fn forget_unused(&mut self, handle: VmemHandle, memory: &Memory) {
        let is_unused = |found: &Handle| found.uses == 0 && found.mappings == 0;
        if self.handles.get(&handle).is_some_and(is_unused)
            && let Some(found) = self.handles.remove(&handle)
            && found.is_own
        {
            memory.give_bytes(found.owner, found.segment.len_bytes());
        }
    }

    fn add(&mut self, handle: Handle) -> VmemHandle {
        let number = VmemHandle(FIRST_HANDLE + self.handles_bytes);
        self.handles_bytes += handle.segment.len_bytes();
        self.handles.insert(number, handle);
        number
    }
}

impl Vmem {
    /// Returns what is at an address, if it is reserved.
    pub(crate) fn find(&self, addr: u64) -> Option<Found> {
        let state = lock(&self.0);
        if let Some((base, mapping)) = state.mapped_at(addr) {
            let handle = state.handles.get(&mapping.handle);
            return Some(Found {
                is_mapped: true,
                base,
                len_bytes: mapping.len_bytes,
                owner: handle.map(|handle| handle.owner),
                flags: handle.map_or(0, |handle| handle.flags),
                access: mapping.access(),
                user_data: mapping.user_data,
            });
        }
        let (range, _) = state.reserved_at(addr)?;
        Some(Found {
            is_mapped: false,
            base: range.start,
            len_bytes: range.end - range.start,
            owner: None,
            flags: 0,
            access: Agents::default(),
            user_data: Ptr::NULL,
        })
    }

    /// Returns whether one of these addresses is reserved and not the program's memory: nothing is there, or the memory of a handle.
    pub(crate) fn withholds(&self, range: &Range<u64>) -> bool {
        let state = lock(&self.0);
        let reserved = state.reserved.range(..range.end).rev();
        let is_bare = reserved
            .take_while(|&(base, reservation)| base + reservation.len_bytes > range.start)
            .any(|(_, reservation)| reservation.content == Content::Nothing);
        let before_end = state.mapped.range(..range.end).next_back();
        is_bare || before_end.is_some_and(|(base, mapping)| base + mapping.len_bytes > range.start)
    }

    /// Attaches a value to the memory that is mapped at `base`; returns whether there is some.
    pub(crate) fn set_user_data(&self, base: u64, user_data: Ptr) -> bool {
        let mut state = lock(&self.0);
        state.mapped.get_mut(&base).map(|mapping| mapping.user_data = user_data).is_some()
    }
}

impl Drop for Vmem {
    fn drop(&mut self) {
        for (&base, reservation) in &lock(&self.0).reserved {
            release_addresses(base, reservation.len_bytes);
        }
    }
}

/// `hsa_amd_vmem_address_reserve`.
pub(crate) fn address_reserve(va: Out<Ptr>, len_bytes: usize, wish: u64, flags: u64) -> HsaResult {
    address_reserve_align(va, len_bytes, wish, 0, flags)
}

/// `hsa_amd_vmem_address_reserve_align`.
pub(crate) fn address_reserve_align(
    va: Out<Ptr>,
    len_bytes: usize,
    wish: u64,
    align_bytes: u64,
    flags: u64,
) -> HsaResult {
    let runtime = runtime()?;
    let wanted_bytes = len_bytes as u64;
    let content = if flags & NO_REGISTER == 0 { Content::Nothing } else { Content::HostMemory };
    let is_paged = |bytes: u64| content == Content::HostMemory || bytes.is_multiple_of(GRANULE_BYTES);
    let is_aligned = align_bytes == 0 || (is_paged(align_bytes) && align_bytes.is_power_of_two());
    if va.is_null() || wanted_bytes == 0 || !is_paged(wanted_bytes) || !is_aligned {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let len_bytes =
        wanted_bytes.checked_next_multiple_of(GRANULE_BYTES).ok_or(Status::ERROR_OUT_OF_RESOURCES)?;
    let align_bytes = match align_bytes {
        0 if len_bytes >= PAGE_BYTES => PAGE_BYTES,
        wanted => wanted.max(GRANULE_BYTES),
    };
    let mut state = lock(&runtime.part::<Vmem>().0);
    state.freed.give_back(&(wish..wish.saturating_add(len_bytes)));
    let base = reserve(len_bytes, wish, align_bytes, content).or_else(|| {
        state.freed.give_back(&(0..u64::MAX));
        reserve(len_bytes, wish, align_bytes, content)
    });
    let base = base.ok_or(Status::ERROR_OUT_OF_RESOURCES)?;
    state.reserved.insert(base, Reservation { wanted_bytes, len_bytes, content });
    va.put(Ptr::at(base))
}

/// `hsa_amd_vmem_address_free`: attributes of memory there end with it, and no kernel has it any more when it goes.
pub(crate) fn address_free(va: Ptr, len_bytes: usize) -> HsaResult {
    let runtime = runtime()?;
    let mut state = lock(&runtime.part::<Vmem>().0);
    let base = va.addr();
    let &reservation = state.reserved.get(&base).ok_or(Status::ERROR_INVALID_ALLOCATION)?;
    if reservation.wanted_bytes != len_bytes as u64 {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let range = base..base + reservation.len_bytes;
    if state.mapped.range(range.clone()).next().is_some() {
        return Err(Status::ERROR_RESOURCE_FREE);
    }
    state.reserved.remove(&base);
    match reservation.content {
        Content::Nothing => state.freed.keep(range),
        Content::HostMemory => {
            drop(state);
            runtime.forget_svm(&range)?;
            release_addresses(base, reservation.len_bytes);
        }
    }
    Ok(())
}

/// `hsa_amd_vmem_handle_create`.
pub(crate) fn handle_create(
    pool: MemoryPool,
    len_bytes: usize,
    kind: u32,
    _flags: u64,
    handle: Out<VmemHandle>,
) -> HsaResult {
    let runtime = runtime()?;
    let len_bytes = len_bytes as u64;
    if handle.is_null() || kind > PINNED || len_bytes == 0 || !len_bytes.is_multiple_of(GRANULE_BYTES) {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let (owner, flags) = runtime.allocatable(pool).map_err(|status| match status {
        Status::ERROR_INVALID_MEMORY_POOL => Status::ERROR_INVALID_ARGUMENT,
        other => other,
    })?;
    runtime.memory.take_bytes(owner, len_bytes)?;
    let segment = Segment::new(len_bytes, Label { pool, requested_bytes: len_bytes, kind });
    let segment = segment.inspect_err(|_| runtime.memory.give_bytes(owner, len_bytes))?;
    let segment = Arc::new(segment);
    let made = Handle { segment, uses: 1, mappings: 0, owner, pool, flags, is_own: true };
    let number = lock(&runtime.part::<Vmem>().0).add(made);
    handle.put(number)
}

/// `hsa_amd_vmem_handle_release`: what is mapped stays mapped.
pub(crate) fn handle_release(handle: VmemHandle) -> HsaResult {
    let runtime = runtime()?;
    let mut state = lock(&runtime.part::<Vmem>().0);
    state.used(handle).ok_or(Status::ERROR_INVALID_ALLOCATION)?.uses -= 1;
    state.forget_unused(handle, &runtime.memory);
    Ok(())
}

/// `hsa_amd_vmem_map`: the whole of a handle's memory, at reserved addresses where nothing is mapped.
pub(crate) fn map(va: Ptr, len_bytes: usize, offset: usize, handle: VmemHandle, _flags: u64) -> HsaResult {
    let runtime = runtime()?;
    let invalid = Status::ERROR_INVALID_ARGUMENT;
    let (base, len_bytes) = (va.addr(), len_bytes as u64);
    let mut state = lock(&runtime.part::<Vmem>().0);
    let segment = Arc::clone(&state.used(handle).ok_or(invalid)?.segment);
    let end = base.checked_add(len_bytes).ok_or(invalid)?;
    let is_inside = state.reserved_at(base).is_some_and(|(range, _)| end <= range.end);
    let is_free = state.mapped_at(base).is_none() && state.mapped.range(base..end).next().is_none();
    let is_whole = offset == 0 && len_bytes == segment.len_bytes() && base.is_multiple_of(GRANULE_BYTES);
    if !is_inside || !is_free || !is_whole {
        return Err(invalid);
    }
    // SAFETY: reserved addresses where nothing is mapped.
    unsafe { segment.map(base, true) }?;
    let claim = runtime.memory.claim(&[], base..end, Agents::only(0));
    let permissions = BTreeMap::new();
    state.mapped.insert(base, Mapping { len_bytes, handle, permissions, claim, user_data: Ptr::NULL });
    state.handles.entry(handle).and_modify(|found| found.mappings += 1);
    Ok(())
}

/// `hsa_amd_vmem_unmap`: returns when no kernel reaches the memory there; the addresses stay reserved.
pub(crate) fn unmap(va: Ptr, len_bytes: usize) -> HsaResult {
    let runtime = runtime()?;
    let base = va.addr();
    let mut state = lock(&runtime.part::<Vmem>().0);
    let mapping = state.mapped.get(&base).ok_or(Status::ERROR_INVALID_ALLOCATION)?;
    if mapping.len_bytes != len_bytes as u64 {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let Some(mapping) = state.mapped.remove(&base) else { return Err(Status::ERROR_INVALID_ALLOCATION) };
    runtime.memory.claim_all(mapping.claim.as_slice(), &[]);
    runtime.memory.wait_until_left(&(base..base + mapping.len_bytes));
    let content = state.reserved_at(base).map_or(Content::Nothing, |(_, content)| content);
    // SAFETY: reserved addresses, which no kernel has any more by this mapping.
    if unsafe { map_content(base, mapping.len_bytes, content, true) }.is_none() {
        tracing::warn!(len_bytes, "memory is no more a GPU's, but the system leaves it mapped");
    }
    if let Some(handle) = state.handles.get_mut(&mapping.handle) {
        handle.mappings -= 1;
    }
    state.forget_unused(mapping.handle, &runtime.memory);
    Ok(())
}

impl Runtime {
    /// Returns what an access list says, by agents.
    fn permissions(&self, list: In<MemoryAccess>, count: usize) -> HsaResult<Vec<(AgentIndex, u32)>> {
        if count == 0 {
            return Err(Status::ERROR_INVALID_ARGUMENT);
        }
        let each = |access: MemoryAccess| {
            let agent = self.agent(access.agent)?;
            let is_known = access.permissions <= READ_WRITE;
            if is_known { Ok((agent, access.permissions)) } else { Err(Status::ERROR_INVALID_ARGUMENT) }
        };
        list.list(count)?.into_iter().map(each).collect()
    }
}

/// `hsa_amd_vmem_set_access`: of one mapping, or of several that lie side by side.
pub(crate) fn set_access(va: Ptr, len_bytes: usize, list: In<MemoryAccess>, count: usize) -> HsaResult {
    let runtime = runtime()?;
    let permissions = runtime.permissions(list, count)?;
    let base = va.addr();
    let end =
        base.checked_add(len_bytes as u64).filter(|&end| end > base).ok_or(Status::ERROR_INVALID_ARGUMENT)?;
    let state = &mut *lock(&runtime.part::<Vmem>().0);
    let mut at = base;
    while at < end {
        at += state.mapped.get(&at).ok_or(Status::ERROR_INVALID_ALLOCATION)?.len_bytes;
    }
    if at != end {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let (mut ended, mut made) = (Vec::new(), Vec::new());
    let mut takes_away = false;
    for (&start, mapping) in state.mapped.range_mut(base..end) {
        let before = mapping.access();
        mapping.permissions.extend(permissions.iter().copied());
        let after = mapping.access();
        takes_away |= before.0 & !after.0 != 0;
        ended.extend(mapping.claim.take());
        made.push((start..start + mapping.len_bytes, after));
    }
    let claims = runtime.memory.claim_all(&ended, &made);
    for ((_, mapping), claim) in state.mapped.range_mut(base..end).zip(claims) {
        mapping.claim = Some(claim);
    }
    if takes_away {
        runtime.memory.wait_until_left(&(base..end));
    }
    Ok(())
}

/// `hsa_amd_vmem_get_access`.
pub(crate) fn get_access(va: Ptr, permissions: Out<u32>, agent: Agent) -> HsaResult {
    let runtime = runtime()?;
    let agent = runtime.agent(agent)?;
    let state = lock(&runtime.part::<Vmem>().0);
    let (_, mapping) = state.mapped_at(va.addr()).ok_or(Status::ERROR_INVALID_ALLOCATION)?;
    let &found = mapping.permissions.get(&agent).ok_or(Status::ERROR_INVALID_ALLOCATION)?;
    permissions.put(found)
}

/// `hsa_amd_vmem_export_shareable_handle`.
pub(crate) fn export_shareable_handle(descriptor: Out<i32>, handle: VmemHandle, _flags: u64) -> HsaResult {
    let runtime = runtime()?;
    if descriptor.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let mut state = lock(&runtime.part::<Vmem>().0);
    let found = state.used(handle).ok_or(Status::ERROR_INVALID_ALLOCATION)?;
    descriptor.put(found.segment.descriptor()?)
}

/// `hsa_amd_vmem_import_shareable_handle`: takes a descriptor of a handle or of an exported allocation, of this process or another, which
/// stays the caller's.
pub(crate) fn import_shareable_handle(descriptor: i32, handle: Out<VmemHandle>) -> HsaResult {
    let runtime = runtime()?;
    if handle.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    if descriptor < 0 {
        return Err(Status::ERROR_INVALID_ALLOCATION);
    }
    // SAFETY: what is no open descriptor is refused by the system; the program keeps it open during the call.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let file = fcntl_dupfd_cloexec(borrowed, 3).map_err(|_| Status::ERROR_INVALID_ALLOCATION)?;
    let segment = Segment::received(file).ok_or(Status::ERROR_INVALID_ALLOCATION)?;
    let mut state = lock(&runtime.part::<Vmem>().0);
    let known = state.handles.iter_mut().find(|(_, known)| known.segment.is_same(&segment));
    if let Some((&number, known)) = known {
        known.uses += 1;
        return handle.put(number);
    }
    let pool = segment.label().pool;
    let (owner, flags) = runtime.allocatable(pool).map_err(|_| {
        tracing::warn!(?pool, "memory of a GPU that this process does not have is not taken");
        Status::ERROR_INVALID_ALLOCATION
    })?;
    let segment = Arc::new(segment);
    let number = state.add(Handle { segment, uses: 1, mappings: 0, owner, pool, flags, is_own: false });
    handle.put(number)
}

/// `hsa_amd_vmem_retain_alloc_handle`.
pub(crate) fn retain_alloc_handle(handle: Out<VmemHandle>, va: Ptr) -> HsaResult {
    let runtime = runtime()?;
    if handle.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let mut state = lock(&runtime.part::<Vmem>().0);
    let number = state.mapped_at(va.addr()).ok_or(Status::ERROR_INVALID_ALLOCATION)?.1.handle;
    state.handles.get_mut(&number).ok_or(Status::ERROR_INVALID_ALLOCATION)?.uses += 1;
    handle.put(number)
}

/// `hsa_amd_vmem_get_alloc_properties_from_handle`.
pub(crate) fn properties(handle: VmemHandle, pool: Out<MemoryPool>, kind: Out<u32>) -> HsaResult {
    let runtime = runtime()?;
    if pool.is_null() || kind.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let mut state = lock(&runtime.part::<Vmem>().0);
    let found = state.used(handle).ok_or(Status::ERROR_INVALID_ALLOCATION)?;
    kind.put(found.segment.label().kind)?;
    pool.put(found.pool)
}
