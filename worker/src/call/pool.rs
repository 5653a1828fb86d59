//! Operations on memory pools.

use hipr_proto::op::*;
use hipr_proto::{HipError, HipResult};

use super::device::check_device;
use super::memory::add;
use super::{Call, Continuation};
use crate::owned::{Allocation, Origin};
use hipr_device::MemoryKind;

/// Creates a pool.
pub(super) fn create(call: &mut Call<'_>, r: MemPoolCreate) -> HipResult<Continuation> {
    hipr_abi::check_pool(r.alloc_type, r.handle_types, r.location_type).map_err(HipError)?;
    let device = check_device(call, r.location_id).map_err(|_| HipError::INVALID_VALUE)?;
    call.check_room(1)?;
    let (pools, context) = call.owned.pools()?;
    let pool = pools.create(context, device, r.max_size)?;
    let mem_pool = call.owned.names.made(Handle::Pool, pool);
    call.reply(MemPoolCreateReply { mem_pool })
}

pub(super) fn destroy(call: &mut Call<'_>, r: MemPoolDestroy) -> HipResult<Continuation> {
    let (pools, context) = call.owned.pools()?;
    pools.destroy(context, r.mem_pool)?;
    call.owned.names.forget(Handle::Pool, r.mem_pool);
    call.done()
}

pub(super) fn set_attribute(call: &mut Call<'_>, r: MemPoolSetAttribute) -> HipResult<Continuation> {
    let (pools, context) = call.owned.pools()?;
    pools.set_attribute(context, r.mem_pool, r.attr, r.value)?;
    call.done()
}

pub(super) fn attribute(call: &mut Call<'_>, r: MemPoolGetAttribute) -> HipResult<Continuation> {
    let (pools, context) = call.owned.pools()?;
    let value = pools.attribute(context, r.mem_pool, r.attr)?;
    call.reply(MemPoolGetAttributeReply { value })
}

pub(super) fn trim(call: &mut Call<'_>, r: MemPoolTrimTo) -> HipResult<Continuation> {
    let (pools, context) = call.owned.pools()?;
    pools.trim(context, r.mem_pool, r.min_bytes_to_hold)?;
    call.done()
}

pub(super) fn default_of(call: &mut Call<'_>, r: DeviceGetDefaultMemPool) -> HipResult<Continuation> {
    let device = check_device(call, r.device)?;
    let (pools, context) = call.owned.pools()?;
    let pool = pools.default_of(context, device)?;
    let mem_pool = call.owned.names.number_of(Handle::Pool, pool);
    call.reply(DeviceGetDefaultMemPoolReply { mem_pool })
}

pub(super) fn current_of(call: &mut Call<'_>, r: DeviceGetMemPool) -> HipResult<Continuation> {
    let device = check_device(call, r.device)?;
    let (pools, context) = call.owned.pools()?;
    let pool = pools.current_of(context, device)?;
    let mem_pool = call.owned.names.number_of(Handle::Pool, pool);
    call.reply(DeviceGetMemPoolReply { mem_pool })
}

pub(super) fn set_current(call: &mut Call<'_>, r: DeviceSetMemPool) -> HipResult<Continuation> {
    let device = check_device(call, r.device)?;
    let (pools, _) = call.owned.pools()?;
    pools.set_current(device, r.mem_pool)?;
    call.done()
}

pub(super) fn malloc(call: &mut Call<'_>, r: MallocFromPoolAsync) -> HipResult<Continuation> {
    call.check_uncaptured_stream(r.stream)?;
    call.owned.check_pool(r.mem_pool)?;
    let device_ptr = allocate(call, r.size, Some(r.mem_pool), r.stream)?;
    call.reply(MallocFromPoolAsyncReply { device_ptr })
}

/// Allocates from the current pool of the current device (HIP API: hipMallocAsync).
pub(super) fn malloc_from_current(call: &mut Call<'_>, r: MallocAsync) -> HipResult<Continuation> {
    call.check_uncaptured_stream(r.stream)?;
    let device_ptr = allocate(call, r.size, None, r.stream)?;
    call.reply(MallocAsyncReply { device_ptr })
}

fn allocate(call: &mut Call<'_>, size_bytes: u64, pool: Option<u64>, stream: u64) -> HipResult<u64> {
    // HIP API: an allocation of no bytes succeeds and gives the null pointer.
    if size_bytes == 0 {
        return Ok(0);
    }
    let (pools, context) = call.owned.pools()?;
    let device = context.device();
    let pool = match pool {
        Some(pool) => Ok(pool),
        None => pools.current_of(context, device),
    };
    let base = match pool {
        Ok(pool) => match pools.reuse(context, size_bytes, pool, stream)? {
            Some(base) => base,
            None => {
                call.check_memory(size_bytes)?;
                let (pools, context) = call.owned.pools()?;
                pools.malloc(context, size_bytes, pool, stream)?
            }
        },
        // A release of a runtime may have memory in stream order and no pools.
        Err(HipError::NOT_SUPPORTED) => {
            call.check_memory(size_bytes)?;
            call.context()?.malloc_async(size_bytes, stream)?
        }
        Err(error) => return Err(error),
    };
    let (kind, origin) = (MemoryKind::Device, Origin::Client);
    add(call, Allocation { base, size_bytes, kind, flags: 0, device, origin })
}
