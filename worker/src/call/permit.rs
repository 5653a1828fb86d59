//! Operations for copies between workers: one permits to read, the other copies what it reads.

use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult};

use super::{Call, Continuation};
use crate::peers::PeerPermit;
use crate::permits::Permitted;
use hipr_device::Region;

/// Permits another worker to read memory of this session.
pub(super) fn permit(call: &mut Call<'_>, r: PermitRead) -> HipResult<Continuation> {
    call.check_feature(Features::PERMITS)?;
    let PermitRead { address: ptr, pitch, slice, width, height, depth, stream, .. } = r;
    let src = Region { ptr, pitch, slice, width, height, depth };
    check(call, &src, stream)?;
    let permits = call.permits.ok_or(HipError::NOT_SUPPORTED)?;
    permits.add(r.token, Permitted { owner: call.conn, src, stream }, r.timeout_ms)?;
    call.done()
}

/// Reads what a session of this worker permits.
pub(super) fn read(call: &mut Call<'_>, r: ReadPermitted) -> HipResult<Continuation> {
    call.check_feature(Features::PERMITS)?;
    let permits = call.permits.ok_or(HipError::NOT_SUPPORTED)?;
    let what = permits.read(&r.token, call.conn, r.offset, r.length)?;
    if r.length == 0 {
        return call.done();
    }
    Ok(Continuation::ReadPermitted { what, offset: r.offset, len_bytes: r.length })
}

/// Copies what another worker permits to read.
pub(super) fn copy(call: &mut Call<'_>, r: CopyPermitted, address: &[u8]) -> HipResult<Continuation> {
    call.check_feature(Features::PERMITS)?;
    let CopyPermitted { token, dst: ptr, pitch, slice, width, height, depth, stream, .. } = r;
    let dst = Region { ptr, pitch, slice, width, height, depth };
    check(call, &dst, stream)?;
    if address.len() > PERMIT_ADDRESS_MAX_BYTES {
        return Err(HipError::INVALID_VALUE);
    }
    let address = str::from_utf8(address).map_err(|_| HipError::INVALID_VALUE)?.to_owned();
    let worker = (r.worker != [0; 32]).then_some(r.worker);
    let len_bytes = dst.len_bytes().ok_or(HipError::INVALID_VALUE)?;
    let from = Box::new(PeerPermit { address, worker, token, len_bytes });
    Ok(Continuation::CopyPermitted { dst, stream, from })
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
