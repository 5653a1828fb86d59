//! Functions that fill memory.

use hipr_abi::{hipExtent, hipPitchedPtr};
use hipr_graph::Status;
use hipr_proto::{HipError, HipResult};

use crate::command::{MemoryFill, Pattern};
use crate::convert::{Ptr, Stream};
use crate::session::Session;
use crate::stream::mirror::Place;

/// Puts a fill of `count` elements from `dst` on on a stream.
fn fill(session: &Session, dst: Ptr, pattern: Pattern, count: usize, stream: Stream) -> HipResult<()> {
    let stream = session.handle(stream)?;
    if count > 0 {
        dst.check()?;
    }
    let fill = MemoryFill { dst, pitch: 0, pattern, width: count, height: 1 };
    session.submit_fill(stream, &fill)
}

/// Ends a synchronous fill of memory from `dst` on, waiting if necessary. HIP API: one of device memory is not waited for, one
/// of memory that the program can look at is over when it returns.
fn finish(session: &Session, dst: Ptr) -> HipResult<()> {
    let stream = session.handle(Stream::NULL)?;
    if session.streams().graphs.status(stream) != Status::None {
        return Ok(());
    }
    if session.is_synchronous(dst) {
        return super::copy::finish(session, stream);
    }
    let place = || session.streams().mirrors.place(session.worker(), dst, 0, Some(true));
    if matches!(place()?, Place::Device(_) | Place::Unknown) {
        return Ok(());
    }
    // What is before the fill may make the memory available to kernels, so that the worker fills it.
    session.wait_for_functions(stream)?;
    if matches!(place()?, Place::Mirrored(_) | Place::Shared(_)) {
        session.end_call(stream)?;
    }
    session.streams().settle(stream);
    Ok(())
}

/// `hipMemset`.
pub(crate) fn memset(session: &Session, dst: Ptr, value: i32, size: usize) -> HipResult<()> {
    memset_async(session, dst, value, size, Stream::NULL)?;
    finish(session, dst)
}

/// `hipMemsetAsync`: the low byte of `value`.
pub(crate) fn memset_async(
    session: &Session,
    dst: Ptr,
    value: i32,
    size: usize,
    stream: Stream,
) -> HipResult<()> {
    fill(session, dst, Pattern::Byte(value as u8), size, stream)
}

/// `hipMemsetD8`.
pub(crate) fn memset_d8(session: &Session, dst: Ptr, value: u8, count: usize) -> HipResult<()> {
    fill(session, dst, Pattern::Byte(value), count, Stream::NULL)?;
    finish(session, dst)
}

/// `hipMemsetD8Async`.
pub(crate) fn memset_d8_async(
    s: &Session,
    dst: Ptr,
    value: u8,
    count: usize,
    stream: Stream,
) -> HipResult<()> {
    fill(s, dst, Pattern::Byte(value), count, stream)
}

/// `hipMemsetD16`.
pub(crate) fn memset_d16(session: &Session, dst: Ptr, value: u16, count: usize) -> HipResult<()> {
    fill(session, dst, Pattern::Half(value), count, Stream::NULL)?;
    finish(session, dst)
}

/// `hipMemsetD16Async`.
pub(crate) fn memset_d16_async(
    s: &Session,
    dst: Ptr,
    value: u16,
    count: usize,
    stream: Stream,
) -> HipResult<()> {
    fill(s, dst, Pattern::Half(value), count, stream)
}

/// `hipMemsetD32`.
pub(crate) fn memset_d32(session: &Session, dst: Ptr, value: i32, count: usize) -> HipResult<()> {
    fill(session, dst, Pattern::Word(value.cast_unsigned()), count, Stream::NULL)?;
    finish(session, dst)
}

/// `hipMemsetD32Async`.
pub(crate) fn memset_d32_async(
    s: &Session,
    dst: Ptr,
    value: i32,
    count: usize,
    stream: Stream,
) -> HipResult<()> {
    fill(s, dst, Pattern::Word(value.cast_unsigned()), count, stream)
}

/// Puts a fill of `height` rows of `width` elements on a stream. The protocol has no fill of rows: each is one small request,
/// sent together.
fn fill_rows(
    session: &Session,
    dst: Ptr,
    pitch: usize,
    pattern: Pattern,
    (width, height): (usize, usize),
    stream: Stream,
) -> HipResult<()> {
    let row_bytes = width.checked_mul(pattern.len()).ok_or(HipError::INVALID_VALUE)?;
    if width == 0 || height == 0 {
        return session.handle(stream).map(drop);
    }
    if pitch == row_bytes || height == 1 {
        let count = width.checked_mul(height).ok_or(HipError::INVALID_VALUE)?;
        return fill(session, dst, pattern, count, stream);
    }
    if pitch < row_bytes {
        return Err(HipError::INVALID_VALUE);
    }
    // The whole is judged before the first row is set.
    let len = pitch.checked_mul(height - 1).and_then(|rows| rows.checked_add(row_bytes));
    session.streams().mirrors.place(
        session.worker(),
        dst.check()?,
        len.ok_or(HipError::INVALID_VALUE)?,
        Some(true),
    )?;
    (0..height).try_for_each(|y| fill(session, dst.offset(y * pitch), pattern, width, stream))
}

macro_rules! fill_2d {
    ($($(#[$doc:meta])* $sync:ident $name:ident $value:ident: $ty:ty => $pattern:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(
            session: &Session,
            dst: Ptr,
            pitch: usize,
            $value: $ty,
            width: usize,
            height: usize,
            stream: Stream,
        ) -> HipResult<()> {
            fill_rows(session, dst, pitch, $pattern, (width, height), stream)
        }

        $(#[$doc])*
        pub(crate) fn $sync(
            session: &Session,
            dst: Ptr,
            pitch: usize,
            $value: $ty,
            width: usize,
            height: usize,
        ) -> HipResult<()> {
            $name(session, dst, pitch, $value, width, height, Stream::NULL)?;
            finish(session, dst)
        }
    )*};
}

fill_2d! {
    /// `hipMemset2D`, `hipMemset2DAsync`: the low byte of `value`.
    memset_2d memset_2d_async value: i32 => Pattern::Byte(value as u8);
    /// `hipMemsetD2D8`, `hipMemsetD2D8Async`.
    memset_d2d8 memset_d2d8_async value: u8 => Pattern::Byte(value);
    /// `hipMemsetD2D16`, `hipMemsetD2D16Async`.
    memset_d2d16 memset_d2d16_async value: u16 => Pattern::Half(value);
    /// `hipMemsetD2D32`, `hipMemsetD2D32Async`.
    memset_d2d32 memset_d2d32_async value: u32 => Pattern::Word(value);
}

/// `hipMemset3D`.
pub(crate) fn memset_3d(
    session: &Session,
    dst: hipPitchedPtr,
    value: i32,
    extent: hipExtent,
) -> HipResult<()> {
    memset_3d_async(session, dst, value, extent, Stream::NULL)?;
    finish(session, dst.ptr.into())
}

/// `hipMemset3DAsync`: slices are `ysize` rows apart.
pub(crate) fn memset_3d_async(
    session: &Session,
    dst: hipPitchedPtr,
    value: i32,
    extent: hipExtent,
    stream: Stream,
) -> HipResult<()> {
    let hipExtent { width, height, depth } = extent;
    let pattern = Pattern::Byte(value as u8);
    // HIP API: the pitch has to be at least `xsize`, even if less than that is set.
    if dst.pitch < dst.xsize && width > 0 && height > 0 && depth > 0 {
        return Err(HipError::INVALID_VALUE);
    }
    let slice = dst.pitch.checked_mul(dst.ysize).ok_or(HipError::INVALID_VALUE)?;
    let at = Ptr::from(dst.ptr);
    if height == dst.ysize {
        let rows = height.checked_mul(depth).ok_or(HipError::INVALID_VALUE)?;
        return fill_rows(session, at, dst.pitch, pattern, (width, rows), stream);
    }
    (0..depth).try_for_each(|z| {
        fill_rows(session, at.offset(z * slice), dst.pitch, pattern, (width, height), stream)
    })
}
