//! Operations for copies between workers: one gives a capability, the other copies what it reads by that.

use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult};

use super::{Call, Continuation};
use crate::capabilities::Readable;
use crate::peers::PeerCapability;
use hipr_device::Region;

/// Gives a capability to read memory of this session.
pub(super) fn give(call: &mut Call<'_>, r: CapabilityGive) -> HipResult<Continuation> {
    call.check_feature(Features::CAPABILITIES)?;
    let CapabilityGive { address: ptr, pitch, slice, width, height, depth, stream, .. } = r;
    let src = Region { ptr, pitch, slice, width, height, depth };
    check(call, &src, stream)?;
    let capabilities = call.capabilities.ok_or(HipError::NOT_SUPPORTED)?;
    let owner = call.conn;
    let end = src.ptr.saturating_add(src.span_bytes().unwrap_or(u64::MAX));
    let number = call.owned.given.add(src.ptr, end, &capabilities.open(owner));
    capabilities.add(r.token, Readable { owner, src, stream, number }, r.timeout_ms)?;
    call.done()
}

/// Reads what a session of this worker has given a capability for.
pub(super) fn read(call: &mut Call<'_>, r: CapabilityRead) -> HipResult<Continuation> {
    call.check_feature(Features::CAPABILITIES)?;
    let capabilities = call.capabilities.ok_or(HipError::NOT_SUPPORTED)?;
    let what = capabilities.read(&r.token, call.conn, r.offset, r.length)?;
    if r.length == 0 {
        return call.done();
    }
    Ok(Continuation::CapabilityRead { what, offset: r.offset, len_bytes: r.length })
}

/// Copies what a session of another worker has given a capability for.
pub(super) fn copy(call: &mut Call<'_>, r: CapabilityCopy, address: &[u8]) -> HipResult<Continuation> {
    call.check_feature(Features::CAPABILITIES)?;
    let CapabilityCopy { token, dst: ptr, pitch, slice, width, height, depth, stream, .. } = r;
    let dst = Region { ptr, pitch, slice, width, height, depth };
    check(call, &dst, stream)?;
    if address.len() > CAPABILITY_ADDRESS_MAX_BYTES {
        return Err(HipError::INVALID_VALUE);
    }
    let address = str::from_utf8(address).map_err(|_| HipError::INVALID_VALUE)?.to_owned();
    let worker = (r.worker != [0; 32]).then_some(r.worker);
    let len_bytes = dst.len_bytes().ok_or(HipError::INVALID_VALUE)?;
    let from = Box::new(PeerCapability { address, worker, token, len_bytes });
    Ok(Continuation::CapabilityCopy { dst, stream, from })
}

fn check(call: &mut Call<'_>, region: &Region, stream: u64) -> HipResult<()> {
    let rows = region.height > 1 || region.depth > 1;
    let slices = region.depth > 1;
    if (rows && region.pitch < region.width)
        || (slices && Some(region.slice) < region.pitch.checked_mul(region.height))
    {
        return Err(HipError::INVALID_PITCH_VALUE);
    }
    if region.len_bytes().is_none_or(|len| len == 0) {
        return Err(HipError::INVALID_VALUE);
    }
    call.owned.check_stream(stream)?;
    call.owned.check_region(region)?;
    call.check_uncaptured_stream(stream)
}
