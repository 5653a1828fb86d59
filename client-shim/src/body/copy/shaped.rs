//! The functions that copy rows and slices, by their parameters and by what HIP's structures say.

use hipr_proto::op::kind;
use hipr_proto::{HipError, HipResult};

use super::{CopyTask, Place3, Size, Waits, copy, hints, inside};
use crate::convert::{In, Ptr, Stream};
use crate::session::Session;
use crate::types::{DrvMemcpy3D, Memcpy2D, Memcpy3D, Memcpy3DPeer};

/// `hipMemoryTypeHost`, `Device`, `Managed`, `Array`, `Unified`.
const TYPE_HOST: i32 = 1;
const TYPE_DEVICE: i32 = 2;
const TYPE_MANAGED: i32 = 3;
const TYPE_UNIFIED: i32 = 11;

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
    let place = |at, pitch, is_device| Place3 { at, pitch, rows: height, is_device };
    let size = Size { width, height, depth: 1 };
    copy(session, place(dst, dpitch, to), place(src, spitch, from), size, stream, waits)
}

/// Where a memory type says an address is; arrays are not supported.
fn typed(memory_type: i32, host: Ptr, device: Ptr) -> HipResult<(Ptr, Option<bool>)> {
    match memory_type {
        TYPE_HOST => Ok((host, Some(false))),
        TYPE_DEVICE => Ok((device, Some(true))),
        TYPE_MANAGED | TYPE_UNIFIED => Ok((device, None)),
        _ => Err(HipError::NOT_SUPPORTED),
    }
}

/// `hipMemcpyParam2D`, `hipDrvMemcpy2DUnaligned`.
pub(crate) fn param_2d(session: &Session, copy: In<Memcpy2D>) -> HipResult<()> {
    by_param_2d(session, copy, Stream::NULL, Waits::Yes)
}

/// `hipMemcpyParam2DAsync`.
pub(crate) fn param_2d_async(session: &Session, copy: In<Memcpy2D>, stream: Stream) -> HipResult<()> {
    by_param_2d(session, copy, stream, Waits::No)
}

fn by_param_2d(session: &Session, params: In<Memcpy2D>, stream: Stream, waits: Waits) -> HipResult<()> {
    let p = params.check()?;
    let size = Size { width: p.width_in_bytes, height: p.height, depth: 1 };
    // A pitch of 0 means rows without gaps.
    let pitch = |pitch: usize| if pitch == 0 { p.width_in_bytes } else { pitch };
    let dst = typed(p.dst_memory_type, p.dst_host, p.dst_device)?;
    let src = typed(p.src_memory_type, p.src_host, p.src_device)?;
    let dst = inside(dst, pitch(p.dst_pitch), p.height, (p.dst_x_in_bytes, p.dst_y, 0))?;
    let src = inside(src, pitch(p.src_pitch), p.height, (p.src_x_in_bytes, p.src_y, 0))?;
    copy(session, dst, src, size, stream, waits)
}

/// `hipMemcpy3D`.
pub(crate) fn memcpy_3d(session: &Session, params: In<Memcpy3D>) -> HipResult<()> {
    by_params_3d(session, params.check()?, Stream::NULL, Waits::Yes)
}

/// `hipMemcpy3DAsync`.
pub(crate) fn memcpy_3d_async(session: &Session, params: In<Memcpy3D>, stream: Stream) -> HipResult<()> {
    by_params_3d(session, params.check()?, stream, Waits::No)
}

fn by_params_3d(session: &Session, p: Memcpy3D, stream: Stream, waits: Waits) -> HipResult<()> {
    let CopyTask { dst, src, size } = CopyTask::of_node(p)?;
    copy(session, dst, src, size, stream, waits)
}

/// `hipMemcpy3DPeer` (HIP 7).
pub(crate) fn memcpy_3d_peer(session: &Session, params: Ptr) -> HipResult<()> {
    memcpy_3d_peer_async(session, params, Stream::NULL)
}

/// `hipMemcpy3DPeerAsync` (HIP 7): between devices the worker finds the way by the addresses.
pub(crate) fn memcpy_3d_peer_async(session: &Session, params: Ptr, stream: Stream) -> HipResult<()> {
    let p = In::<Memcpy3DPeer>::at_address(params).check()?;
    session.check_device(p.dst_device)?;
    session.check_device(p.src_device)?;
    let params = Memcpy3D {
        src_array: p.src_array,
        src_pos: p.src_pos,
        src_ptr: p.src_ptr,
        dst_array: p.dst_array,
        dst_pos: p.dst_pos,
        dst_ptr: p.dst_ptr,
        extent: p.extent,
        kind: kind::DEVICE_TO_DEVICE,
    };
    by_params_3d(session, params, stream, Waits::No)
}

/// `hipDrvMemcpy3D`.
pub(crate) fn drv_3d(session: &Session, params: In<DrvMemcpy3D>) -> HipResult<()> {
    by_drv_3d(session, params, Stream::NULL, Waits::Yes)
}

/// `hipDrvMemcpy3DAsync`.
pub(crate) fn drv_3d_async(session: &Session, params: In<DrvMemcpy3D>, stream: Stream) -> HipResult<()> {
    by_drv_3d(session, params, stream, Waits::No)
}

fn by_drv_3d(session: &Session, params: In<DrvMemcpy3D>, stream: Stream, waits: Waits) -> HipResult<()> {
    let CopyTask { dst, src, size } = CopyTask::of_driver(params)?;
    copy(session, dst, src, size, stream, waits)
}

impl CopyTask {
    /// What `HIP_MEMCPY3D` says.
    ///
    /// # Errors
    /// `hipErrorNotSupported` for arrays, `hipErrorInvalidValue`.
    pub(crate) fn of_driver(params: In<DrvMemcpy3D>) -> HipResult<Self> {
        let p = params.check()?;
        let or = |given: usize, usual: usize| if given == 0 { usual } else { given };
        let dst = typed(p.dst_memory_type, p.dst_host, p.dst_device)?;
        let src = typed(p.src_memory_type, p.src_host, p.src_device)?;
        let at = (p.dst_x_in_bytes, p.dst_y, p.dst_z);
        let dst = inside(dst, or(p.dst_pitch, p.width_in_bytes), or(p.dst_height, p.height), at)?;
        let at = (p.src_x_in_bytes, p.src_y, p.src_z);
        let src = inside(src, or(p.src_pitch, p.width_in_bytes), or(p.src_height, p.height), at)?;
        let size = Size { width: p.width_in_bytes, height: p.height, depth: p.depth };
        Ok(Self { dst, src, size })
    }
}
