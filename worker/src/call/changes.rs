//! Operations on memory of which the client has a copy.

use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult};

use super::{Call, Continuation, Upload};
use crate::owned::{Origin, Watch};
use hipr_device::Region;

/// Begins to watch a range: the client knows that it holds zeros, or makes it so.
pub(super) fn watch(call: &mut Call<'_>, r: MemWatch) -> HipResult<Continuation> {
    call.check_feature(Features::PAGES)?;
    let MemWatch { address, length } = r;
    // Pages are numbered with 32 bits.
    if length == 0 || length.div_ceil(PAGE_BYTES) > u64::from(u32::MAX) {
        return Err(HipError::INVALID_VALUE);
    }
    call.owned.check_region(&Region::flat(address, length))?;
    let allocation = *call.owned.allocation_at(address)?;
    // The device notes what is written to a block, and a mapping's block changes with its neighbours.
    if allocation.origin == Origin::Mapped {
        return Err(HipError::INVALID_VALUE);
    }
    // What the device notes can be taken once, and memory of another session may be watched there.
    let is_own = allocation.origin != Origin::Opened;
    let is_noted = is_own && call.context()?.watch(address, length)?;
    call.owned.watches.insert(allocation.base, Watch::new(address, length, is_noted));
    call.done()
}

/// Copies bytes from the client, which knows them.
pub(super) fn push(call: &mut Call<'_>, r: MemPush) -> HipResult<Continuation> {
    call.check_feature(Features::PAGES)?;
    call.owned.check_stream(r.stream)?;
    let dst = Region::flat(r.address, r.length);
    call.owned.check_region(&dst)?;
    call.check_uncaptured_stream(r.stream)?;
    Ok(Continuation::Write { dst, stream: r.stream, waits: false, what: Upload::Known })
}

/// Returns what the client does not know of a watched range.
pub(super) fn changes(call: &mut Call<'_>, r: MemChanges) -> HipResult<Continuation> {
    call.check_feature(Features::PAGES)?;
    look(call, r, false)
}

/// Returns the same, packed if that pays.
pub(super) fn packed(call: &mut Call<'_>, r: MemChangesPacked) -> HipResult<Continuation> {
    call.check_feature(Features::PAGES.union(Features::PACKED_CHANGES))?;
    let MemChangesPacked { address, length, stream } = r;
    look(call, MemChanges { address, length, stream }, true)
}

fn look(call: &mut Call<'_>, r: MemChanges, packs: bool) -> HipResult<Continuation> {
    call.owned.check_stream(r.stream)?;
    let base = call.owned.allocation_at(r.address)?.base;
    if !call.owned.watches.has(base, r.address, r.length) {
        return Err(HipError::INVALID_VALUE);
    }
    call.check_uncaptured_stream(r.stream)?;
    Ok(Continuation::Changes { base, src: Region::flat(r.address, r.length), stream: r.stream, packs })
}
