//! Arrays, mipmapped arrays, and copies to and from them, on devices without images.
//!
//! Every function answers as AMD's runtime 7.2.4 does on an MI300X. There are no arrays there: one that an image could be is refused with
//! `hipErrorNotSupported`, any other with `hipErrorInvalidValue`. So no handle names an array, and a copy says of each handle what HIP
//! says of the null handle, at the same place in the order of its checks.

use hipr_abi::*;
use hipr_graph::Status;
use hipr_proto::{HipError, HipResult};

use crate::command::hints;
use crate::convert::{In, Out, Ptr, Stream};
use crate::host_log;
use crate::session::Session;

/// All flags that an array may have; faces of cubes are none of them.
const FLAGS: u32 = hipArrayLayered | hipArraySurfaceLoadStore | hipArrayTextureGather;

/// A place in an array: its handle, an offset in bytes and one in rows.
pub(super) type Place = (Ptr, usize, usize);
/// The bytes of a row, and the number of rows.
type Rows = (usize, usize);

/// Checks that no capture forbids the call, for functions that look at some parameters before that (the others: `capture.rs`).
fn check_safe(session: &Session) -> HipResult<()> {
    session.streams().graphs.check_safe(&session.caller(), true)
}

fn is_capturing(session: &Session, stream: Stream) -> bool {
    session.handle(stream).is_ok_and(|wire| session.streams().graphs.status(wire) != Status::None)
}

/// Returns the bits of an element's channels and their number; None if they are not the same in the first channels and 0 in the others.
fn channels(desc: hipChannelFormatDesc) -> Option<(i32, u32)> {
    let all = [desc.x, desc.y, desc.z, desc.w];
    let count = all.iter().take_while(|bits| **bits != 0).count();
    let (used, rest) = all.split_at(count);
    let is_even = used.iter().all(|bits| *bits == desc.x) && rest.iter().all(|bits| *bits == 0);
    (count > 0 && is_even).then_some((desc.x, count as u32))
}

/// Returns the error for an array. `is_format` says whether images have such channels.
fn refused(is_format: bool, channels: u32, size: [usize; 3], flags: u32) -> HipError {
    // Gathered are four elements of a flat image.
    let is_gathered =
        flags & hipArrayTextureGather == 0 || size.map(|extent| extent > 0) == [true, true, false];
    let is_right = is_format && matches!(channels, 1 | 2 | 4) && flags & !FLAGS == 0 && is_gathered;
    if is_right { HipError::NOT_SUPPORTED } else { HipError::INVALID_VALUE }
}

/// `hipMallocArray`, `hipMalloc3DArray`.
pub(crate) fn malloc(
    session: &Session,
    array: Out<Ptr>,
    desc: In<hipChannelFormatDesc>,
    extent: hipExtent,
    flags: u32,
) -> HipResult<()> {
    array.check()?;
    let desc = desc.check()?;
    check_safe(session)?;
    let (bits, channels) = channels(desc).ok_or(HipError::INVALID_VALUE)?;
    let is_format = match desc.f {
        hipChannelFormatKindSigned | hipChannelFormatKindUnsigned => matches!(bits, 8 | 16 | 32),
        hipChannelFormatKindFloat => matches!(bits, 16 | 32),
        _ => false,
    };
    Err(refused(is_format, channels, [extent.width, extent.height, extent.depth], flags))
}

fn refuse_described(array: Out<Ptr>, desc: HIP_ARRAY3D_DESCRIPTOR) -> HipResult<()> {
    array.check()?;
    let is_format = matches!(
        desc.Format,
        HIP_AD_FORMAT_UNSIGNED_INT8
            | HIP_AD_FORMAT_UNSIGNED_INT16
            | HIP_AD_FORMAT_UNSIGNED_INT32
            | HIP_AD_FORMAT_SIGNED_INT8
            | HIP_AD_FORMAT_SIGNED_INT16
            | HIP_AD_FORMAT_SIGNED_INT32
            | HIP_AD_FORMAT_HALF
            | HIP_AD_FORMAT_FLOAT
    );
    Err(refused(is_format, desc.NumChannels, [desc.Width, desc.Height, desc.Depth], desc.Flags))
}

/// `hipArrayCreate`.
pub(crate) fn create(session: &Session, array: Out<Ptr>, desc: In<HIP_ARRAY_DESCRIPTOR>) -> HipResult<()> {
    let HIP_ARRAY_DESCRIPTOR { Width, Height, Format, NumChannels } = desc.check()?;
    check_safe(session)?;
    refuse_described(array, HIP_ARRAY3D_DESCRIPTOR { Width, Height, Depth: 0, Format, NumChannels, Flags: 0 })
}

/// `hipArray3DCreate`.
pub(crate) fn create_3d(
    _session: &Session,
    array: Out<Ptr>,
    desc: In<HIP_ARRAY3D_DESCRIPTOR>,
) -> HipResult<()> {
    refuse_described(array, desc.check()?)
}

/// `hipFreeArray`, `hipArrayDestroy`.
pub(crate) fn free(_session: &Session, array: Ptr) -> HipResult<()> {
    array.check()?;
    host_log::freed(array, Err(HipError::CONTEXT_IS_DESTROYED))
}

/// `hipArrayGetInfo`: nothing has to be known where nothing is asked.
pub(crate) fn info(
    _session: &Session,
    desc: Out<hipChannelFormatDesc>,
    extent: Out<hipExtent>,
    flags: Out<u32>,
    array: Ptr,
) -> HipResult<()> {
    let asks_nothing = desc.is_null() && extent.is_null() && flags.is_null();
    if asks_nothing && !array.is_null() { Ok(()) } else { Err(HipError::INVALID_HANDLE) }
}

/// `hipArrayGetDescriptor`, `hipArray3DGetDescriptor`.
pub(crate) fn descriptor(_session: &Session, out: Ptr, array: Ptr) -> HipResult<()> {
    if !array.is_null() {
        out.check()?;
    }
    Err(HipError::INVALID_HANDLE)
}

/// `hipGetChannelDesc`.
pub(crate) fn channel_desc(_session: &Session, desc: Out<hipChannelFormatDesc>, array: Ptr) -> HipResult<()> {
    desc.check()?;
    Err(if array.is_null() { HipError::INVALID_HANDLE } else { HipError::NOT_SUPPORTED })
}

/// Checks rows that are copied to an array.
fn check_source((src, pitch): (Ptr, usize), (width, _): Rows, kind: i32) -> HipResult<()> {
    hints(kind)?;
    src.check()?;
    if pitch == 0 || pitch < width {
        return Err(HipError::INVALID_PITCH_VALUE);
    }
    Err(HipError::INVALID_HANDLE)
}

/// `hipMemcpy2DToArray`.
pub(crate) fn copy_in(
    _session: &Session,
    _to: Place,
    from: (Ptr, usize),
    size: Rows,
    kind: i32,
) -> HipResult<()> {
    check_source(from, size, kind)
}

/// `hipMemcpy2DToArrayAsync`: a capture looks at the array first.
pub(crate) fn copy_in_async(
    session: &Session,
    _to: Place,
    from: (Ptr, usize),
    size: Rows,
    kind: i32,
    stream: Stream,
) -> HipResult<()> {
    if is_capturing(session, stream) {
        return Err(HipError::INVALID_HANDLE);
    }
    check_source(from, size, kind)
}

/// `hipMemcpy2DFromArray`; `hipMemcpy2DArrayToArray`, for which `T` is a place in an array.
pub(crate) fn copy_out<T>(_session: &Session, _to: T, _from: Place, _size: Rows, kind: i32) -> HipResult<()> {
    hints(kind)?;
    Err(HipError::INVALID_HANDLE)
}

/// `hipMemcpy2DFromArrayAsync`: as [`copy_in_async`].
pub(crate) fn copy_out_async(
    session: &Session,
    _to: (Ptr, usize),
    _from: Place,
    _size: Rows,
    kind: i32,
    stream: Stream,
) -> HipResult<()> {
    if !is_capturing(session, stream) {
        hints(kind)?;
    }
    Err(HipError::INVALID_HANDLE)
}

/// `hipMemcpyToArray`, `hipMemcpyFromArray`.
pub(crate) fn copy_elements(
    _session: &Session,
    _array: Place,
    _memory: Ptr,
    _len: usize,
    _kind: i32,
) -> HipResult<()> {
    Err(HipError::INVALID_VALUE)
}

/// Checks a copy of some bytes of a row; for none of them no array is needed.
fn check_bytes(len: usize) -> HipResult<()> {
    if len == 0 { Ok(()) } else { Err(HipError::INVALID_VALUE) }
}

/// `hipMemcpyAtoH`, `hipMemcpyHtoA`, `hipMemcpyAtoD`, `hipMemcpyDtoA`, `hipMemcpyAtoA`: between two addresses or arrays, with offsets in bytes.
pub(crate) fn copy_bytes(
    _session: &Session,
    _to: (Ptr, usize),
    _from: (Ptr, usize),
    len: usize,
) -> HipResult<()> {
    check_bytes(len)
}

/// `hipMemcpyAtoHAsync`, `hipMemcpyHtoAAsync`: a capture looks at the array whatever the number of bytes.
pub(crate) fn copy_bytes_async(
    session: &Session,
    _array: (Ptr, usize),
    _host: Ptr,
    len: usize,
    stream: Stream,
) -> HipResult<()> {
    if is_capturing(session, stream) {
        return Err(HipError::INVALID_VALUE);
    }
    check_bytes(len)
}

/// `hipMallocMipmappedArray`.
pub(crate) fn malloc_mipmapped(
    session: &Session,
    array: Out<Ptr>,
    desc: In<hipChannelFormatDesc>,
    _extent: hipExtent,
    _levels: u32,
    _flags: u32,
) -> HipResult<()> {
    array.check()?;
    let desc = desc.check()?;
    check_safe(session)?;
    Err(if channels(desc).is_some() { HipError::NOT_SUPPORTED } else { HipError::INVALID_VALUE })
}

/// `hipMipmappedArrayCreate`.
pub(crate) fn create_mipmapped(
    _session: &Session,
    _array: Out<Ptr>,
    _desc: Ptr,
    _levels: u32,
) -> HipResult<()> {
    Err(HipError::NOT_SUPPORTED)
}

/// `hipFreeMipmappedArray`, `hipMipmappedArrayDestroy`.
pub(crate) fn free_mipmapped(_session: &Session, _array: Ptr) -> HipResult<()> {
    Err(HipError::INVALID_VALUE)
}

/// `hipGetMipmappedArrayLevel`, `hipMipmappedArrayGetLevel`.
pub(crate) fn level(_session: &Session, out: Out<Ptr>, array: Ptr, _level: u32) -> HipResult<()> {
    out.check()?;
    Err(if array.is_null() { HipError::INVALID_HANDLE } else { HipError::INVALID_VALUE })
}
