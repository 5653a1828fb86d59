//! Functions that copy boxes of rows and slices, from parameters or HIP's structures.

use hipr_abi::*;
use hipr_proto::{HipError, HipResult};

use super::{Waits, copy, linear};
use crate::command::{MemoryBox, MemoryCopy, Size, hints};
use crate::convert::{In, Out, Ptr, Stream};
use crate::session::Session;

/// `hipMemcpy2D`.
#[allow(clippy::too_many_arguments, reason = "the C function's parameters")]
pub(crate) fn memcpy_2d(
    session: &Session,
    dst: Ptr,
    dpitch: usize,
    src: Ptr,
    spitch: usize,
    width: usize,
    height: usize,
    kind: i32,
) -> HipResult<()> {
    rows(session, (dst, dpitch), (src, spitch), (width, height), kind, Stream::NULL, Waits::Yes)
}

/// `hipMemcpy2DAsync`.
#[allow(clippy::too_many_arguments, reason = "the C function's parameters")]
pub(crate) fn memcpy_2d_async(
    session: &Session,
    dst: Ptr,
    dpitch: usize,
    src: Ptr,
    spitch: usize,
    width: usize,
    height: usize,
    kind: i32,
    stream: Stream,
) -> HipResult<()> {
    rows(session, (dst, dpitch), (src, spitch), (width, height), kind, stream, Waits::No)
}

fn rows(
    session: &Session,
    (dst, dpitch): (Ptr, usize),
    (src, spitch): (Ptr, usize),
    (width, height): (usize, usize),
    kind: i32,
    stream: Stream,
    waits: Waits,
) -> HipResult<()> {
    let (to, from) = hints(kind)?;
    let place = |at, pitch, is_device| MemoryBox { at, pitch, rows: height, is_device };
    let size = Size { width, height, depth: 1 };
    let (dst, src) = (place(dst, dpitch, to), place(src, spitch, from));
    let described = MemoryCopy { dst, src, size };
    // HIP API: also of one row, and before the addresses are looked at.
    if described.has_narrow_pitch() && size.bytes() != Some(0) {
        return Err(HipError::INVALID_PITCH_VALUE);
    }
    copy(session, described, stream, waits)
}

/// Returns the address that applies to a memory type, and whether it is a device address. There are no arrays: only a copy of nothing may
/// name one.
fn typed(memory_type: i32, host: Ptr, device: Ptr, size: Size) -> HipResult<(Ptr, Option<bool>)> {
    match memory_type {
        hipMemoryTypeArray if size.bytes() == Some(0) => Ok((Ptr::NULL, None)),
        hipMemoryTypeArray => Err(HipError::INVALID_VALUE),
        hipMemoryTypeHost => Ok((host, Some(false))),
        hipMemoryTypeDevice => Ok((device, Some(true))),
        hipMemoryTypeManaged | hipMemoryTypeUnified => Ok((device, None)),
        _ => Err(HipError::NOT_SUPPORTED),
    }
}

/// `hipMemcpyParam2D`, `hipDrvMemcpy2DUnaligned`.
pub(crate) fn param_2d(session: &Session, copy: In<hip_Memcpy2D>) -> HipResult<()> {
    by_param_2d(session, copy, Stream::NULL, Waits::Yes)
}

/// `hipMemcpyParam2DAsync`.
pub(crate) fn param_2d_async(session: &Session, copy: In<hip_Memcpy2D>, stream: Stream) -> HipResult<()> {
    by_param_2d(session, copy, stream, Waits::No)
}

fn by_param_2d(session: &Session, params: In<hip_Memcpy2D>, stream: Stream, waits: Waits) -> HipResult<()> {
    let p = params.check()?;
    let size = Size { width: p.WidthInBytes, height: p.Height, depth: 1 };
    // Rows without gaps.
    let pitch = |pitch: usize| or(pitch, p.WidthInBytes);
    let dst = typed(p.dstMemoryType, p.dstHost.into(), p.dstDevice.into(), size)?;
    let src = typed(p.srcMemoryType, p.srcHost.into(), p.srcDevice.into(), size)?;
    let dst = MemoryBox::inside(dst, pitch(p.dstPitch), p.Height, (p.dstXInBytes, p.dstY, 0))?;
    let src = MemoryBox::inside(src, pitch(p.srcPitch), p.Height, (p.srcXInBytes, p.srcY, 0))?;
    copy(session, with_room(MemoryCopy { dst, src, size })?, stream, waits)
}

/// `hipMemcpy3D`.
pub(crate) fn memcpy_3d(session: &Session, params: In<hipMemcpy3DParms>) -> HipResult<()> {
    by_params_3d(session, params.check()?, Stream::NULL, Waits::Yes)
}

/// `hipMemcpy3DAsync`.
pub(crate) fn memcpy_3d_async(
    session: &Session,
    params: In<hipMemcpy3DParms>,
    stream: Stream,
) -> HipResult<()> {
    by_params_3d(session, params.check()?, stream, Waits::No)
}

fn by_params_3d(session: &Session, p: hipMemcpy3DParms, stream: Stream, waits: Waits) -> HipResult<()> {
    copy(session, MemoryCopy::of_node(p)?, stream, waits)
}

/// `hipMemcpy3DPeer` (HIP 7).
pub(crate) fn memcpy_3d_peer(session: &Session, params: Ptr) -> HipResult<()> {
    by_peer_params_3d(session, params, Stream::NULL, Waits::Yes)
}

/// `hipMemcpy3DPeerAsync` (HIP 7).
pub(crate) fn memcpy_3d_peer_async(session: &Session, params: Ptr, stream: Stream) -> HipResult<()> {
    by_peer_params_3d(session, params, stream, Waits::No)
}

/// Copies between devices: the worker finds the way by the addresses.
fn by_peer_params_3d(session: &Session, params: Ptr, stream: Stream, waits: Waits) -> HipResult<()> {
    let p = In::<hipMemcpy3DPeerParms>::at_address(params).check()?;
    session.worker().check_device(p.dstDevice)?;
    session.worker().check_device(p.srcDevice)?;
    let params = hipMemcpy3DParms {
        srcArray: p.srcArray,
        srcPos: p.srcPos,
        srcPtr: p.srcPtr,
        dstArray: p.dstArray,
        dstPos: p.dstPos,
        dstPtr: p.dstPtr,
        extent: p.extent,
        kind: hipMemcpyDeviceToDevice,
    };
    by_params_3d(session, params, stream, waits)
}

/// `hipDrvMemcpy3D`.
pub(crate) fn drv_3d(session: &Session, params: In<HIP_MEMCPY3D>) -> HipResult<()> {
    by_drv_3d(session, params, Stream::NULL, Waits::Yes)
}

/// `hipDrvMemcpy3DAsync`.
pub(crate) fn drv_3d_async(session: &Session, params: In<HIP_MEMCPY3D>, stream: Stream) -> HipResult<()> {
    by_drv_3d(session, params, stream, Waits::No)
}

fn by_drv_3d(session: &Session, params: In<HIP_MEMCPY3D>, stream: Stream, waits: Waits) -> HipResult<()> {
    copy(session, with_room(of_driver(params)?)?, stream, waits)
}

/// Returns a copy whose rows and slices have room. HIP API: the functions with the driver's structures have one error for those that do not.
fn with_room(copy: MemoryCopy) -> HipResult<MemoryCopy> {
    let has_low_slices = copy.dst.rows < copy.size.height || copy.src.rows < copy.size.height;
    let is_wrong = copy.has_narrow_pitch() || has_low_slices;
    if is_wrong && copy.size.bytes() != Some(0) { Err(HipError::INVALID_VALUE) } else { Ok(copy) }
}

/// Returns a pitch or a number of rows that is given; 0 stands for the usual one.
fn or(given: usize, usual: usize) -> usize {
    if given == 0 { usual } else { given }
}

/// Creates a copy as `HIP_MEMCPY3D` describes it.
///
/// # Errors
/// `hipErrorNotSupported` for memory types that HIP does not have, `hipErrorInvalidValue`.
pub(in crate::hip) fn of_driver(params: In<HIP_MEMCPY3D>) -> HipResult<MemoryCopy> {
    let p = params.check()?;
    let size = Size { width: p.WidthInBytes, height: p.Height, depth: p.Depth };
    let dst = typed(p.dstMemoryType, p.dstHost.into(), p.dstDevice.into(), size)?;
    let src = typed(p.srcMemoryType, p.srcHost.into(), p.srcDevice.into(), size)?;
    let at = (p.dstXInBytes, p.dstY, p.dstZ);
    let dst = MemoryBox::inside(dst, or(p.dstPitch, p.WidthInBytes), or(p.dstHeight, p.Height), at)?;
    let at = (p.srcXInBytes, p.srcY, p.srcZ);
    let src = MemoryBox::inside(src, or(p.srcPitch, p.WidthInBytes), or(p.srcHeight, p.Height), at)?;
    Ok(MemoryCopy { dst, src, size })
}

/// `hipMemcpyBatchAsync` (HIP 7): release 7.2.4 carries out copies without attributes only.
#[allow(clippy::too_many_arguments, reason = "the C function's parameters")]
pub(crate) fn batch(
    session: &Session,
    dsts: In<Ptr>,
    srcs: In<Ptr>,
    sizes: Out<usize>,
    count: usize,
    _attributes: Ptr,
    _indices: Out<usize>,
    attribute_count: usize,
    failed: Out<usize>,
    stream: Stream,
) -> HipResult<()> {
    let (failed, sizes) = (failed.check()?, sizes.check()?);
    if count == 0 || dsts.is_null() || srcs.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    if attribute_count > 0 {
        return Err(HipError::NOT_SUPPORTED);
    }
    each(failed, count, |index| {
        let at = |list: In<Ptr>| list.at(index).ok_or(HipError::INVALID_VALUE);
        let len = sizes.value_at(index).filter(|len| *len > 0).ok_or(HipError::INVALID_VALUE)?;
        linear(session, at(dsts)?, at(srcs)?, len, hipMemcpyDefault, stream, Waits::No)
    })
}

/// Does the copies of a batch up to the first that fails, and tells which that is; the largest number if none does.
fn each(failed: Out<usize>, count: usize, mut copy: impl FnMut(usize) -> HipResult<()>) -> HipResult<()> {
    failed.set(usize::MAX);
    (0..count).try_for_each(|index| copy(index).inspect_err(|_| failed.set(index)))
}

/// `hipMemcpy3DBatchAsync` (HIP 7).
pub(crate) fn batch_3d(
    session: &Session,
    count: usize,
    list: Ptr,
    failed: Out<usize>,
    flags: u64,
    stream: Stream,
) -> HipResult<()> {
    let list = In::<hipMemcpy3DBatchOp>::at_address(list);
    let failed = failed.check()?;
    if count == 0 || list.is_null() || flags != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    each(failed, count, |index| {
        let op = list.at(index).ok_or(HipError::INVALID_VALUE)?;
        let size = Size { width: op.extent.width, height: op.extent.height, depth: op.extent.depth };
        let end = |operand: hipMemcpy3DOperand| -> HipResult<MemoryBox> {
            match operand.r#type {
                hipMemcpyOperandTypePointer => {}
                // There are no arrays.
                hipMemcpyOperandTypeArray => return Err(HipError::NOT_SUPPORTED),
                _ => return Err(HipError::INVALID_VALUE),
            }
            let hipMemcpy3DOperandPtr { ptr, rowLength, layerHeight, .. } = operand.op;
            let (pitch, rows) = (or(rowLength, size.width), or(layerHeight, size.height));
            Ok(MemoryBox { at: ptr.into(), pitch, rows, is_device: None })
        };
        let described = MemoryCopy { dst: end(op.dst)?, src: end(op.src)?, size };
        if described.has_narrow_pitch() {
            return Err(HipError::INVALID_VALUE);
        }
        copy(session, described, stream, Waits::No)
    })
}
