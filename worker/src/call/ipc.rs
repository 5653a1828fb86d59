//! Memory and events shared between sessions. (HIP API: hipIpcGetMemHandle and similar functions, which share between
//! processes; here each process is a session.) A shared object belongs to the session that created it: others may use and
//! close it, but not free it.

use hipr_proto::op::*;
use hipr_proto::{HipError, HipResult};

use super::{Call, Continuation};
use crate::owned::{Allocation, Origin};
use hipr_device::MemoryKind;

/// The flags that an opened handle may have.
const OPEN_FLAGS: u32 = hipr_abi::hipIpcMemLazyEnablePeerAccess;

/// Returns a handle of device memory that the client allocated outside of pools, whose memory could be reused before the
/// other session closes it.
pub(super) fn memory_handle(call: &mut Call<'_>, r: IpcGetMemHandle) -> HipResult<Continuation> {
    call.owned.lease.lend(r.device_ptr);
    let allocation = *call.owned.freeable(r.device_ptr)?;
    if allocation.kind != MemoryKind::Device || call.owned.pool_of(allocation.base) != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    let handle = call.context()?.share_memory(allocation.base, allocation.size_bytes)?;
    call.reply(IpcGetMemHandleReply { handle })
}

/// Opens shared memory. It counts as this session's memory too, because its owner may have freed it already.
pub(super) fn open_memory(call: &mut Call<'_>, r: IpcOpenMemHandle) -> HipResult<Continuation> {
    if r.flags & !OPEN_FLAGS != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    call.check_room(1)?;
    let room_bytes = call.limits.memory_max_bytes.saturating_sub(call.owned.claimed_bytes());
    let (base, size_bytes) = call.context()?.open_memory(&r.handle, r.flags, room_bytes)?;
    let (kind, origin, flags) = (MemoryKind::Device, Origin::Opened, r.flags);
    let allocation = Allocation { base, size_bytes, kind, flags, device: 0, origin };
    let device_ptr = super::memory::add(call, allocation)?;
    call.owned.make_room(0, call.limits);
    call.reply(IpcOpenMemHandleReply { device_ptr })
}

/// Closes shared memory after the work that uses it.
pub(super) fn close_memory(call: &mut Call<'_>, r: IpcCloseMemHandle) -> HipResult<Continuation> {
    let allocation = call.owned.allocation_at(r.device_ptr)?;
    if allocation.origin == Origin::Opened && allocation.base == r.device_ptr {
        Ok(Continuation::Free(r.device_ptr))
    } else {
        Err(HipError::INVALID_VALUE)
    }
}

pub(super) fn event_handle(call: &mut Call<'_>, r: IpcGetEventHandle) -> HipResult<Continuation> {
    call.owned.check_event(r.event)?;
    let (pools, context) = call.owned.pools()?;
    let handle = context.share_event(r.event)?;
    pools.event_shared(r.event);
    call.reply(IpcGetEventHandleReply { handle })
}

pub(super) fn open_event(call: &mut Call<'_>, r: IpcOpenEventHandle) -> HipResult<Continuation> {
    call.check_room(1)?;
    let (pools, context) = call.owned.pools()?;
    let event = context.open_event(&r.handle)?;
    pools.event_shared(event);
    let event = call.owned.add_event(event);
    call.reply(IpcOpenEventHandleReply { event })
}
