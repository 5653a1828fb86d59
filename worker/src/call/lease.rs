//! Memory that the client places itself, within a lease.

use std::ops::Range;

use hipr_abi::{hipMemoryTypeDevice, hipMemoryTypeHost, hipMemoryTypeManaged};
use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult, Wire};

use super::memory::{add, with_idle_released};
use super::{Call, Continuation};
use crate::owned::{Allocation, Origin};
use hipr_device::MemoryKind;

/// Maximum number of allocations that one request adds to a lease.
const ALLOCATIONS_MAX: usize = 4096;

/// Adds to the session's lease: what the client wants, and at least a part of what is free.
pub(super) fn lease(call: &mut Call<'_>, r: MemLease) -> HipResult<Continuation> {
    call.check_feature(Features::PLACES)?;
    let device = call.context_ref()?.device();
    let is_elsewhere = call.owned.lease_device.is_some_and(|leased| leased != device);
    let window = if is_elsewhere { 0..0 } else { call.context()?.address_window()? };
    if window.is_empty() {
        return call.reply(MemLeaseReply::ZERO);
    }
    if r.want_bytes > 0 {
        call.check_memory(r.want_bytes)?;
    }
    let added_bytes = reserve(call, r.want_bytes)?;
    let room = call.limits.handles_max.saturating_sub(call.owned.claimed_handles());
    let least = usize::from(r.want_bytes > 0);
    let added_allocations = (room / 4).clamp(least, ALLOCATIONS_MAX) as u64;
    call.owned.lease_device = Some(device);
    call.owned.lease.grant(window.clone(), added_bytes, added_allocations);
    let Range { start, end } = window;
    call.reply(MemLeaseReply {
        window_start: start,
        window_bytes: end - start,
        added_bytes,
        added_allocations,
    })
}

/// Reserves `want_bytes` or the half of what the session could have, whichever is more; returns how many bytes these are.
///
/// # Errors
/// `OUT_OF_MEMORY` if `want_bytes` are not there.
fn reserve(call: &mut Call<'_>, want_bytes: u64) -> HipResult<u64> {
    let room = call.limits.memory_max_bytes.saturating_sub(call.owned.claimed_bytes());
    let half = call.context_ref()?.reservable()?.min(room) / 2;
    if half > want_bytes && call.context()?.reserve(half).is_ok() {
        return Ok(half);
    }
    if want_bytes > 0 {
        with_idle_released(call, |context| context.reserve(want_bytes))?;
    }
    Ok(want_bytes)
}

/// Allocates memory at an address that the client chose.
pub(super) fn allocate(call: &mut Call<'_>, r: MallocAt) -> HipResult<Continuation> {
    call.check_feature(Features::PLACES)?;
    let MallocAt { device_ptr: base, size: size_bytes, kind, flags } = r;
    let kind = kind_of(kind).ok_or(HipError::INVALID_VALUE)?;
    let device = call.context_ref()?.device();
    if call.owned.lease_device.is_some_and(|leased| leased != device) {
        return Err(HipError::INVALID_DEVICE);
    }
    call.owned.lease.check(base, size_bytes)?;
    call.context()?.malloc_at(base, size_bytes, kind, flags)?;
    call.owned.make_room(size_bytes, call.limits);
    call.owned.lease.place(base, size_bytes)?;
    add(call, Allocation { base, size_bytes, kind, flags, device, origin: Origin::Client })?;
    call.done()
}

/// Returns the kind of memory that a `hipMemoryType` stands for.
fn kind_of(number: u32) -> Option<MemoryKind> {
    match i32::try_from(number).ok()? {
        hipMemoryTypeHost => Some(MemoryKind::Host),
        hipMemoryTypeDevice => Some(MemoryKind::Device),
        hipMemoryTypeManaged => Some(MemoryKind::Managed),
        _ => None,
    }
}

/// Takes back what the client does not need.
pub(super) fn give_back(call: &mut Call<'_>, r: MemReturn) -> HipResult<Continuation> {
    call.check_feature(Features::PLACES)?;
    let (mut bytes, mut allocations) = call.owned.recall.answered(&r);
    if r.recall != 0 {
        // The client may have answered when a reset had ended the lease.
        bytes = bytes.min(call.owned.lease.bytes());
        allocations = allocations.min(call.owned.lease.allocations());
    }
    call.owned.lease.give_back(bytes, allocations)?;
    if bytes > 0
        && let Err(error) = call.context()?.unreserve(bytes)
    {
        let window = call.owned.lease.window();
        call.owned.lease.grant(window, bytes, allocations);
        return Err(error);
    }
    call.done()
}
