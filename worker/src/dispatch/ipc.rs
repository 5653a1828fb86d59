//! Memory and events that sessions share. (HIP API: hipIpcGetMemHandle and its kin, between processes; here a client's process is a
//! session.) What a handle names stays its maker's: who opens it may use it, and can close it but not free it.

use hipr_proto::op::*;
use hipr_proto::{HipError, HipResult};

use super::{Call, Step};
use crate::device::MemoryKind;
use crate::session::{Allocation, Origin};

/// HIP API: hipIpcMemLazyEnablePeerAccess.
const OPEN_FLAGS: u32 = 1;

/// Device memory that the client allocated, and from no pool: that could be another allocation's before the other session lets go
/// of it.
pub(super) fn memory_handle(call: &mut Call<'_>, r: IpcGetMemHandle) -> HipResult<Step> {
    let allocation = *call.owned.freeable(r.device_ptr)?;
    if allocation.kind != MemoryKind::Device || call.owned.pool_of(allocation.base) != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    let handle = call.context()?.share_memory(allocation.base, allocation.size_bytes)?;
    call.reply(IpcGetMemHandleReply { handle })
}

/// It counts as memory of this session too: its maker may have freed it already.
pub(super) fn open_memory(call: &mut Call<'_>, r: IpcOpenMemHandle) -> HipResult<Step> {
    if r.flags & !OPEN_FLAGS != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    call.check_room(1)?;
    let room_bytes = call.limits.memory_max_bytes.saturating_sub(call.owned.memory_bytes());
    let (base, size_bytes) = call.context()?.open_memory(&r.handle, r.flags, room_bytes)?;
    let (kind, origin, flags) = (MemoryKind::Device, Origin::Opened, r.flags);
    let allocation = Allocation { base, size_bytes, kind, flags, device: 0, origin };
    let device_ptr = super::memory::add(call, allocation)?;
    call.reply(IpcOpenMemHandleReply { device_ptr })
}

/// Waits for the work that uses it.
pub(super) fn close_memory(call: &mut Call<'_>, r: IpcCloseMemHandle) -> HipResult<Step> {
    let allocation = call.owned.allocation_at(r.device_ptr)?;
    if allocation.origin == Origin::Opened && allocation.base == r.device_ptr {
        Ok(Step::Free(r.device_ptr))
    } else {
        Err(HipError::INVALID_VALUE)
    }
}

pub(super) fn event_handle(call: &mut Call<'_>, r: IpcGetEventHandle) -> HipResult<Step> {
    call.owned.check_event(r.event)?;
    let handle = call.context()?.share_event(r.event)?;
    call.reply(IpcGetEventHandleReply { handle })
}

pub(super) fn open_event(call: &mut Call<'_>, r: IpcOpenEventHandle) -> HipResult<Step> {
    call.check_room(1)?;
    let event = call.context()?.open_event(&r.handle)?;
    call.owned.add_event(event);
    call.reply(IpcOpenEventHandleReply { event })
}
