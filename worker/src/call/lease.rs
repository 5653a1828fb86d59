//! Memory that the client places itself, within a lease.

use std::ops::Range;

use hipr_abi::{hipMemoryTypeDevice, hipMemoryTypeHost, hipMemoryTypeManaged};
use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult, Wire};

use super::memory::{add, with_idle_released};
use super::{Call, Continuation};
use crate::owned::{Allocation, Origin};
use hipr_device::{Context, MemoryKind};

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
    let room = call.owned.handles_left(added_bytes, call.limits);
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
    let kind = kind_of(r.kind).ok_or(HipError::INVALID_VALUE)?;
    place(call, &r, kind, |context| context.malloc_at(r.device_ptr, r.size, kind, r.flags))
}

/// Allocates memory that the client has as well, at an address that it chose.
pub(super) fn allocate_shared(call: &mut Call<'_>, r: MallocShared) -> HipResult<Continuation> {
    call.check_feature(Features::PLACES.union(Features::SHARED))?;
    let kind = kind_of(r.kind).filter(|kind| *kind != MemoryKind::Device).ok_or(HipError::INVALID_VALUE)?;
    let MallocShared { device_ptr, size, kind: number, flags } = r;
    let at = MallocAt { device_ptr, size, kind: number, flags };
    place(call, &at, kind, |context| context.malloc_shared(device_ptr, size, kind, flags))
}

/// Passes the client the file of the memory that both have, once.
pub(super) fn share(call: &mut Call<'_>, _: MemShare) -> HipResult<Continuation> {
    call.check_feature(Features::PLACES.union(Features::SHARED))?;
    let is_elsewhere = call
        .owned
        .lease_device
        .is_none_or(|leased| call.context_ref().map_or(true, |context| context.device() != leased));
    if is_elsewhere {
        return Err(HipError::INVALID_DEVICE);
    }
    let window = call.context()?.address_window()?;
    let is_passed = !call.owned.shares;
    if is_passed {
        let file = call.context()?.share_host_memory()?;
        call.owned.shares = true;
        call.owned.passing = Some(file);
    }
    let file_bytes = window.end - window.start;
    call.reply(MemShareReply { file_bytes, is_passed: u32::from(is_passed), reserved: 0 })
}

/// Allocates memory at an address that the client chose, in the way of `allocate`.
fn place(
    call: &mut Call<'_>,
    r: &MallocAt,
    kind: MemoryKind,
    allocate: impl FnOnce(&mut dyn Context) -> HipResult<()>,
) -> HipResult<Continuation> {
    let MallocAt { device_ptr: base, size: size_bytes, flags, .. } = *r;
    let device = call.context_ref()?.device();
    if call.owned.lease_device.is_some_and(|leased| leased != device) {
        return Err(HipError::INVALID_DEVICE);
    }
    call.owned.lease.check(base, size_bytes)?;
    restore(call, size_bytes)?;
    allocate(call.context()?)?;
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
    call.owned.give_back(bytes, allocations)?;
    call.done()
}

/// Reserves again what was withdrawn from the lease, as far as an allocation of `size_bytes` bytes needs it.
///
/// # Errors
/// `OUT_OF_MEMORY`: others have it.
fn restore(call: &mut Call<'_>, size_bytes: u64) -> HipResult<()> {
    let lacking_bytes = size_bytes.saturating_sub(call.owned.reserved_bytes());
    if lacking_bytes > 0 {
        call.check_memory(lacking_bytes)?;
        with_idle_released(call, |context| context.reserve(lacking_bytes))?;
        call.owned.withdrawn_bytes -= lacking_bytes;
    }
    Ok(())
}
