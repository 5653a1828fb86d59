//! Operations on memory: allocations, frees, fills, and attributes of addresses.

use hipr_abi::*;
use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult, PITCH_BYTES};

use super::device::check_device;
use super::{Call, Continuation};
use crate::owned::{Allocation, NodeWork, Origin};
use hipr_device::{Context, MemoryKind, Region};

/// The flags that registered memory may have.
const REGISTER_FLAGS: u32 =
    hipHostRegisterPortable | hipHostRegisterMapped | hipHostRegisterIoMemory | hipHostRegisterReadOnly;
/// Element sizes that hipMemAllocPitch accepts.
const PITCH_ELEMENTS: [u32; 3] = [4, 8, 16];

fn allocate(call: &mut Call<'_>, size_bytes: u64, kind: MemoryKind, flags: u32) -> HipResult<u64> {
    // HIP API: an allocation of no bytes succeeds and gives the null pointer.
    if size_bytes == 0 {
        return Ok(0);
    }
    let base = allocate_some(call, size_bytes, kind, flags)?;
    add(call, Allocation { base, size_bytes, kind, flags, device: 0, origin: Origin::Client })
}

/// Allocates `size_bytes` > 0 bytes.
fn allocate_some(call: &mut Call<'_>, size_bytes: u64, kind: MemoryKind, flags: u32) -> HipResult<u64> {
    call.check_memory(size_bytes)?;
    with_idle_released(call, |context| context.malloc(size_bytes, kind, flags))
}

/// Takes memory of the device. If it is short, releases the idle blocks of the session's pools and tries again. What other sessions
/// have leased and do not use is asked for when the whole request has failed (`session/recall.rs`).
pub(super) fn with_idle_released<R>(
    call: &mut Call<'_>,
    take: impl Fn(&mut dyn Context) -> HipResult<R>,
) -> HipResult<R> {
    let (pools, context) = call.owned.pools()?;
    match take(context) {
        Err(HipError::OUT_OF_MEMORY) if pools.spare_bytes() > 0 => {
            pools.release_idle(context)?;
            take(context)
        }
        result => result,
    }
}

/// Adds an allocation on the current device; returns its address.
pub(super) fn add(call: &mut Call<'_>, allocation: Allocation) -> HipResult<u64> {
    let device = call.context_ref()?.device();
    call.owned.add_allocation(Allocation { device, ..allocation });
    Ok(allocation.base)
}

pub(super) fn malloc(call: &mut Call<'_>, r: Malloc) -> HipResult<Continuation> {
    let device_ptr = allocate(call, r.size, MemoryKind::Device, r.flags)?;
    call.reply(MallocReply { device_ptr })
}

pub(super) fn malloc_host(call: &mut Call<'_>, r: MallocHost) -> HipResult<Continuation> {
    let device_ptr = allocate(call, r.size, MemoryKind::Host, r.flags)?;
    call.reply(MallocHostReply { device_ptr })
}

pub(super) fn malloc_managed(call: &mut Call<'_>, r: MallocManaged) -> HipResult<Continuation> {
    if r.size == 0 {
        return Err(HipError::INVALID_VALUE);
    }
    let device_ptr = allocate(call, r.size, MemoryKind::Managed, r.flags)?;
    call.reply(MallocManagedReply { device_ptr })
}

/// Allocates all buffers or none: if one fails, the others are freed again.
pub(super) fn malloc_batch(call: &mut Call<'_>, r: MallocBatch) -> HipResult<Continuation> {
    let count = usize::try_from(r.count).unwrap_or(usize::MAX);
    let sizes = r.sizes.get(..count).ok_or(HipError::INVALID_VALUE)?;
    call.check_room(count)?;
    let mut ptrs = [0; 64];
    for (i, &size) in sizes.iter().enumerate() {
        match (allocate(call, size, MemoryKind::Device, 0), ptrs.get_mut(i)) {
            (Ok(ptr), Some(place)) => *place = ptr,
            (result, _) => {
                for ptr in ptrs.into_iter().filter(|&ptr| ptr != 0) {
                    call.owned.free_async(ptr, 0)?;
                }
                return Err(result.err().unwrap_or(HipError::INVALID_VALUE));
            }
        }
    }
    call.reply(MallocBatchReply { count: r.count, pad: 0, ptrs })
}

pub(super) fn malloc_pitch(call: &mut Call<'_>, r: MemAllocPitch) -> HipResult<Continuation> {
    if !PITCH_ELEMENTS.contains(&r.element_size) {
        return Err(HipError::INVALID_VALUE);
    }
    let pitch = r.width_in_bytes.checked_next_multiple_of(PITCH_BYTES).ok_or(HipError::INVALID_VALUE)?;
    let size = pitch.checked_mul(r.height).ok_or(HipError::INVALID_VALUE)?;
    if size == 0 {
        return Err(HipError::INVALID_VALUE);
    }
    let dptr = allocate(call, size, MemoryKind::Device, 0)?;
    call.reply(MemAllocPitchReply { dptr, pitch })
}

/// Frees memory of any allocating function; does nothing for null (HIP API: hipFree).
pub(super) fn free(call: &mut Call<'_>, r: Free) -> HipResult<Continuation> {
    if r.device_ptr == 0 {
        return call.done();
    }
    call.owned.freeable(r.device_ptr)?;
    Ok(Continuation::Free(r.device_ptr))
}

pub(super) fn free_host(call: &mut Call<'_>, r: FreeHost) -> HipResult<Continuation> {
    if r.device_ptr == 0 {
        return call.done();
    }
    if call.owned.freeable(r.device_ptr)?.kind != MemoryKind::Host {
        return Err(HipError::INVALID_VALUE);
    }
    Ok(Continuation::Free(r.device_ptr))
}

pub(super) fn free_async(call: &mut Call<'_>, r: FreeAsync) -> HipResult<Continuation> {
    call.check_uncaptured_stream(r.stream)?;
    if r.device_ptr != 0 {
        call.owned.freeable(r.device_ptr)?;
        call.owned.free_async(r.device_ptr, r.stream)?;
    }
    call.done()
}

/// Fills memory; `r.size` counts elements of `element_bytes` bytes.
pub(super) fn fill(call: &mut Call<'_>, r: Memset, element_bytes: u32) -> HipResult<Continuation> {
    call.owned.check_stream(r.stream)?;
    let len = r.size.checked_mul(u64::from(element_bytes)).ok_or(HipError::INVALID_VALUE)?;
    let dst = Region::flat(r.dst, len);
    call.owned.check_region(&dst)?;
    let value = r.value.cast_unsigned();
    if call.is_captured(r.stream)? {
        return call.record(r.stream, NodeWork::Fill { dst, value, element_bytes });
    }
    if len > 0 {
        call.context()?.fill(dst, value, element_bytes, r.stream)?;
    }
    call.done()
}

pub(super) fn info(call: &mut Call<'_>, _: MemGetInfo) -> HipResult<Continuation> {
    let (free_bytes, total_bytes) = call.memory_info()?;
    call.reply(MemGetInfoReply { free_bytes, total_bytes })
}

/// Replies as [`info`], and tells the client when that no longer holds (`session/told.rs`).
pub(super) fn watched_info(call: &mut Call<'_>, r: MemInfo) -> HipResult<Continuation> {
    call.check_feature(Features::MEM_INFO)?;
    let (free_bytes, total_bytes) = call.memory_info()?;
    call.owned.tell(r.number, free_bytes, call.limits.memory_max_bytes)?;
    call.reply(MemGetInfoReply { free_bytes, total_bytes })
}

// ---- what an address is ----------------------------------------------------------------------------------------------

/// Returns the `hipMemoryType` of a kind of memory.
fn memory_type(kind: MemoryKind) -> i32 {
    match kind {
        MemoryKind::Host => hipMemoryTypeHost,
        MemoryKind::Device => hipMemoryTypeDevice,
        MemoryKind::Managed => hipMemoryTypeManaged,
    }
}

fn host_pointer(allocation: &Allocation, ptr: u64) -> u64 {
    if allocation.kind == MemoryKind::Device { 0 } else { ptr }
}

pub(super) fn pointer_attributes(call: &mut Call<'_>, r: PointerGetAttributes) -> HipResult<Continuation> {
    let allocation = call.owned.allocation_at(r.ptr)?;
    let reply = PointerGetAttributesReply {
        memory_type: memory_type(allocation.kind),
        device: allocation.device,
        device_pointer: r.ptr,
        host_pointer: host_pointer(allocation, r.ptr),
        is_managed: i32::from(allocation.kind == MemoryKind::Managed),
        allocation_flags: allocation.flags,
    };
    call.reply(reply)
}

pub(super) fn pointer_attribute(call: &mut Call<'_>, r: PointerGetAttribute) -> HipResult<Continuation> {
    let allocation = *call.owned.allocation_at(r.ptr)?;
    let data = match r.attribute {
        HIP_POINTER_ATTRIBUTE_MEMORY_TYPE => u64::from(memory_type(allocation.kind).unsigned_abs()),
        HIP_POINTER_ATTRIBUTE_DEVICE_POINTER => r.ptr,
        HIP_POINTER_ATTRIBUTE_HOST_POINTER => host_pointer(&allocation, r.ptr),
        HIP_POINTER_ATTRIBUTE_BUFFER_ID => allocation.base,
        HIP_POINTER_ATTRIBUTE_IS_MANAGED => u64::from(allocation.kind == MemoryKind::Managed),
        HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL => u64::try_from(allocation.device).unwrap_or(0),
        HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR => allocation.base,
        HIP_POINTER_ATTRIBUTE_RANGE_SIZE => allocation.size_bytes,
        HIP_POINTER_ATTRIBUTE_MAPPED => 1,
        HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE => call.owned.pool_of(allocation.base),
        HIP_POINTER_ATTRIBUTE_CONTEXT..HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE => {
            return Err(HipError::NOT_SUPPORTED);
        }
        _ => return Err(HipError::INVALID_VALUE),
    };
    call.reply(PointerGetAttributeReply { data })
}

pub(super) fn pointer_size(call: &mut Call<'_>, r: MemPtrGetInfo) -> HipResult<Continuation> {
    let size = call.owned.allocation_at(r.ptr)?.size_bytes;
    call.reply(MemPtrGetInfoReply { size })
}

/// Registers memory of the client's process. The worker cannot access it, so it allocates host memory in its place: kernels
/// use that, HOST_GET_DEVICE_POINTER returns its address, and the client copies between the two. (HIP API: hipHostRegister.
/// hipr's own client keeps such memory on both sides and does not send this.)
pub(super) fn register(call: &mut Call<'_>, r: HostRegister) -> HipResult<Continuation> {
    let HostRegister { host_ptr, size_bytes, flags } = r;
    let ends = host_ptr.checked_add(size_bytes).is_some();
    if host_ptr == 0 || size_bytes == 0 || !ends || flags & !REGISTER_FLAGS != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    if call.owned.is_registered(host_ptr, size_bytes) {
        return Err(HipError::HOST_MEMORY_ALREADY_REGISTERED);
    }
    let (kind, origin) = (MemoryKind::Host, Origin::Registered);
    let base = allocate_some(call, size_bytes, kind, 0)?;
    add(call, Allocation { base, size_bytes, kind, flags, device: 0, origin })?;
    call.owned.register(host_ptr, size_bytes, base);
    call.done()
}

/// Ends the registration of the memory at an address.
pub(super) fn unregister(call: &mut Call<'_>, r: HostUnregister) -> HipResult<Continuation> {
    let base = call.owned.registered_from(r.host_ptr).ok_or(HipError::HOST_MEMORY_NOT_REGISTERED)?;
    Ok(Continuation::Free(base))
}

/// Returns the device address of host memory: the same address for the worker's memory, another one for registered memory
/// of the client.
pub(super) fn device_pointer(call: &mut Call<'_>, r: HostGetDevicePointer) -> HipResult<Continuation> {
    if let Some(device_ptr) = call.owned.registered_at(r.host_ptr).filter(|_| r.flags == 0) {
        return call.reply(HostGetDevicePointerReply { device_ptr });
    }
    if r.flags != 0 || call.owned.allocation_at(r.host_ptr)?.kind == MemoryKind::Device {
        return Err(HipError::INVALID_VALUE);
    }
    call.reply(HostGetDevicePointerReply { device_ptr: r.host_ptr })
}

/// Accepts a hint (hipMemAdvise) without effect.
pub(super) fn advise(call: &mut Call<'_>, r: MemAdvise) -> HipResult<Continuation> {
    check_managed(call, r.dev_ptr, r.count)?;
    call.context()?.advise(r.dev_ptr, r.count, r.advice, r.device)?;
    call.done()
}

/// Accepts a hint (hipMemPrefetchAsync) without effect.
pub(super) fn prefetch(call: &mut Call<'_>, r: MemPrefetchAsync) -> HipResult<Continuation> {
    // HIP API: hipCpuDeviceId is -1.
    if r.device != -1 {
        check_device(call, r.device)?;
    }
    call.check_uncaptured_stream(r.stream)?;
    check_managed(call, r.dev_ptr, r.count)?;
    call.context()?.prefetch(r.dev_ptr, r.count, r.device, r.stream)?;
    call.done()
}

fn check_managed(call: &Call<'_>, ptr: u64, count: u64) -> HipResult<()> {
    if count == 0 || call.owned.allocation_at(ptr)?.kind != MemoryKind::Managed {
        return Err(HipError::INVALID_VALUE);
    }
    call.owned.check_region(&Region::flat(ptr, count))
}
