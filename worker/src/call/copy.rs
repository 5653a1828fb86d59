//! Operations that copy memory. Depending on the direction the bytes are in the request, in the reply, or not on the wire.

use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult};

use super::device::check_device;
use super::{Call, Continuation, Upload};
use crate::owned::NodeWork;
use hipr_device::Region;

/// Copies bytes (HIP API: hipMemcpy and similar functions).
pub(super) fn flat(call: &mut Call<'_>, r: Memcpy) -> HipResult<Continuation> {
    copy(call, r.kind, || Ok(Region::flat(r.dst, r.size)), || Ok(Region::flat(r.src, r.size)), r.stream)
}

/// Copies from the client to a variable that it knows by number (HIP API: hipMemcpyToSymbol).
pub(super) fn to_variable(call: &mut Call<'_>, r: VariablePut) -> HipResult<Continuation> {
    call.check_feature(Features::VARIABLES)?;
    let Variable { address, size } = call.owned.variable(r.module, r.variable)?;
    if r.offset.checked_add(r.length).is_none_or(|end| end > size) {
        return Err(HipError::INVALID_VALUE);
    }
    let dst = address.checked_add(r.offset).ok_or(HipError::INVALID_VALUE)?;
    let copy = Memcpy { dst, src: 0, size: r.length, kind: kind::HOST_TO_DEVICE, stream: r.stream };
    let step = flat(call, copy);
    if r.waits == 0 { unawaited(step) } else { step }
}

/// Copies rows (HIP API: hipMemcpy2D).
pub(super) fn rows(call: &mut Call<'_>, r: Memcpy2D) -> HipResult<Continuation> {
    let region = |ptr, pitch| {
        if pitch < r.width && r.height > 1 {
            return Err(HipError::INVALID_PITCH_VALUE);
        }
        Ok(Region { ptr, pitch, slice: 0, width: r.width, height: r.height, depth: 1 })
    };
    copy(call, r.kind, || region(r.dst, r.dpitch), || region(r.src, r.spitch), r.stream)
}

/// Copies slices of rows (HIP API: hipMemcpy3D).
pub(super) fn slices(call: &mut Call<'_>, r: Memcpy3D) -> HipResult<Continuation> {
    let region = |ptr: u64, pitch: u64, height: u64, [x, y, z]: [u64; 3]| {
        if pitch < r.width && (r.height > 1 || r.depth > 1) {
            return Err(HipError::INVALID_PITCH_VALUE);
        }
        let slice = pitch.checked_mul(height).filter(|_| height >= r.height || r.depth <= 1);
        let region = slice.and_then(|slice| {
            let offset = z.checked_mul(slice)?.checked_add(y.checked_mul(pitch)?)?.checked_add(x)?;
            let ptr = ptr.checked_add(offset)?;
            Some(Region { ptr, pitch, slice, width: r.width, height: r.height, depth: r.depth })
        });
        region.ok_or(HipError::INVALID_VALUE)
    };
    copy(
        call,
        r.kind,
        || region(r.dst_ptr, r.dst_pitch, r.dst_height, [r.dst_x, r.dst_y, r.dst_z]),
        || region(r.src_ptr, r.src_pitch, r.src_height, [r.src_x, r.src_y, r.src_z]),
        r.stream,
    )
}

/// Copies between devices, which share one address space in a context (HIP API: hipMemcpyPeer).
pub(super) fn peer(call: &mut Call<'_>, r: MemcpyPeer) -> HipResult<Continuation> {
    check_device(call, r.dst_device)?;
    check_device(call, r.src_device)?;
    let MemcpyPeer { dst, src, size, stream, .. } = r;
    flat(call, Memcpy { dst, src, size, kind: kind::DEVICE_TO_DEVICE, stream })
}

/// Turns a copy into an asynchronous one: later requests do not wait for it.
pub(super) fn unawaited(step: HipResult<Continuation>) -> HipResult<Continuation> {
    step.map(|step| match step {
        Continuation::Write { dst, stream, what, .. } => {
            Continuation::Write { dst, stream, waits: false, what }
        }
        Continuation::Copied(_) => Continuation::Reply,
        step => step,
    })
}

/// Starts a copy between regions; only the side in device memory is checked, because the other one is in the client.
fn copy(
    call: &mut Call<'_>,
    direction: i32,
    dst: impl FnOnce() -> HipResult<Region>,
    src: impl FnOnce() -> HipResult<Region>,
    stream: u64,
) -> HipResult<Continuation> {
    call.owned.check_stream(stream)?;
    match direction {
        kind::HOST_TO_DEVICE => {
            let dst = dst()?;
            call.owned.check_region(&dst)?;
            call.check_uncaptured_stream(stream)?;
            Ok(Continuation::Write { dst, stream, waits: true, what: Upload::Written })
        }
        kind::DEVICE_TO_HOST => {
            let src = src()?;
            call.owned.check_region(&src)?;
            call.check_uncaptured_stream(stream)?;
            Ok(Continuation::Read { src, stream, packs: false })
        }
        kind::DEVICE_TO_DEVICE | kind::DEFAULT => {
            let (dst, src) = (dst()?, src()?);
            call.owned.check_region(&dst)?;
            call.owned.check_region(&src)?;
            if call.is_captured(stream)? {
                return call.record(stream, NodeWork::Copy { dst, src });
            }
            if dst.len_bytes() == Some(0) {
                return call.done();
            }
            call.context()?.copy(dst, src, stream)?;
            let device =
                |region: Region| call.owned.allocation_at(region.ptr).map(|allocation| allocation.device);
            // HIP API: hipMemcpy does not wait for a copy within a device.
            if device(dst)? == device(src)? { call.done() } else { Ok(Continuation::Copied(stream)) }
        }
        _ => Err(HipError::INVALID_MEMCPY_DIRECTION),
    }
}
