//! Setting memory.

use hipr_proto::{HipError, HipResult, op};

use crate::callbacks::{Role, Work};
use crate::convert::{Ptr, Stream};
use crate::graphs::Task;
use crate::mirror::Place;
use crate::session::Session;
use crate::types::{Extent, MemsetParams, PitchedPtr};

/// What is written again and again.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    Byte(u8),
    Half(u16),
    Word(u32),
}

impl Pattern {
    fn bytes(self) -> usize {
        match self {
            Self::Byte(_) => 1,
            Self::Half(_) => 2,
            Self::Word(_) => 4,
        }
    }
}

/// `count` elements from `dst` on.
fn fill(session: &Session, dst: Ptr, pattern: Pattern, count: usize, stream: Stream) -> HipResult<()> {
    let stream = session.stream(stream)?;
    if count > 0 {
        dst.check()?;
    }
    let task = FillTask { dst, pitch: 0, pattern, width: count, height: 1 };
    if session.graphs().record(stream, || Task::Fill(task))? {
        return Ok(());
    }
    if session.callbacks().is_waiting(session, stream) && task.hold(session, stream)? {
        return Ok(());
    }
    fill_now(session, dst, pattern, count, stream)
}

/// A fill of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FillTask {
    dst: Ptr,
    /// Bytes from row to row.
    pitch: usize,
    pattern: Pattern,
    /// Elements of a row.
    width: usize,
    height: usize,
}

impl FillTask {
    /// What `hipMemsetParams` says.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: no such elements, no such memory, or nothing to fill.
    pub(crate) fn of_node(session: &Session, p: &MemsetParams) -> HipResult<Self> {
        let pattern = match p.element_size {
            1 => Pattern::Byte(p.value as u8),
            2 => Pattern::Half(p.value as u16),
            4 => Pattern::Word(p.value),
            _ => return Err(HipError::INVALID_VALUE),
        };
        let row_bytes = p.width.checked_mul(pattern.bytes()).ok_or(HipError::INVALID_VALUE)?;
        if row_bytes == 0 || p.height == 0 || (p.height > 1 && p.pitch < row_bytes) {
            return Err(HipError::INVALID_VALUE);
        }
        let rows = p.pitch.checked_mul(p.height - 1).and_then(|rows| rows.checked_add(row_bytes));
        let len = rows.ok_or(HipError::INVALID_VALUE)?;
        match session.mirrors().place(session, p.dst.check()?, len, Some(true))? {
            Place::Unknown => Err(HipError::INVALID_VALUE),
            _ => Ok(Self { dst: p.dst, pitch: p.pitch, pattern, width: p.width, height: p.height }),
        }
    }

    /// [`of_node`](Self::of_node) reads it.
    pub(crate) fn node_params(self) -> MemsetParams {
        let Self { dst, pitch, pattern, width, height } = self;
        let value = match pattern {
            Pattern::Byte(value) => value.into(),
            Pattern::Half(value) => value.into(),
            Pattern::Word(value) => value,
        };
        MemsetParams { dst, element_size: pattern.bytes() as u32, height, pitch, value, width }
    }

    /// Whether it is device memory, and of nothing else, that is filled.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: it goes beyond the memory it begins in.
    pub(crate) fn is_on_device(self, session: &Session) -> HipResult<bool> {
        let row_bytes = self.width.checked_mul(self.pattern.bytes());
        let rows = self.pitch.checked_mul(self.height.saturating_sub(1));
        let len = row_bytes.and_then(|row| rows?.checked_add(row)).ok_or(HipError::INVALID_VALUE)?;
        let place = session.mirrors().place(session, self.dst, len, Some(true))?;
        Ok(len > 0 && matches!(place, Place::Device(_)))
    }

    /// Holds the fill back behind functions of the program, or waits for them if it is not one of device memory. `false`: it is to be
    /// done now.
    ///
    /// # Errors
    /// As [`is_on_device`](Self::is_on_device).
    pub(crate) fn hold(self, session: &Session, stream: u64) -> HipResult<bool> {
        if !self.dst.0.is_multiple_of(self.pattern.bytes()) || !self.is_on_device(session)? {
            return session.callbacks().gate(session, stream).map(|()| false);
        }
        let work = || -> Work { Box::new(move |session| self.enqueue(session, stream)) };
        session.callbacks().hold(session, stream, Role::Records(&[]), work)
    }

    /// Fills in the order of a stream.
    ///
    /// # Errors
    /// Those of an asynchronous fill.
    pub(crate) fn enqueue(self, session: &Session, stream: u64) -> HipResult<()> {
        let Self { dst, pitch, pattern, width, height } = self;
        (0..height).try_for_each(|y| fill_now(session, dst.offset(y * pitch), pattern, width, stream))
    }
}

fn fill_now(session: &Session, dst: Ptr, pattern: Pattern, count: usize, stream: u64) -> HipResult<()> {
    if count == 0 {
        return Ok(());
    }
    dst.check()?;
    let len = count.checked_mul(pattern.bytes()).ok_or(HipError::INVALID_VALUE)?;
    if !dst.0.is_multiple_of(pattern.bytes()) {
        return Err(HipError::INVALID_VALUE);
    }
    match session.mirrors().place(session, dst, len, Some(true))? {
        Place::Device(device) => row(session, device, pattern, count, stream),
        Place::Mirrored(device) => {
            session.mirrors().before_use(session, stream)?;
            row(session, device, pattern, count, stream)?;
            session.mirrors().sent(stream);
            Ok(())
        }
        Place::Host => {
            // Pinned or managed memory that no kernel has seen: the host's bytes are the only ones.
            // SAFETY: `place` found the whole range in memory that was given to the program and is not freed.
            let bytes = unsafe { dst.host_bytes_mut(len) };
            match pattern {
                Pattern::Byte(value) => bytes.fill(value),
                Pattern::Half(value) => {
                    bytes.chunks_exact_mut(2).for_each(|c| c.copy_from_slice(&value.to_ne_bytes()))
                }
                Pattern::Word(value) => {
                    bytes.chunks_exact_mut(4).for_each(|c| c.copy_from_slice(&value.to_ne_bytes()))
                }
            }
            Ok(())
        }
        Place::Unknown => Err(HipError::INVALID_VALUE),
    }
}

fn row(session: &Session, device: u64, pattern: Pattern, count: usize, stream: u64) -> HipResult<()> {
    let fill = |value| op::Memset { dst: device, value, size: count as u64, stream };
    match pattern {
        Pattern::Byte(value) => session.tell(&op::MemsetAsync(fill(value.into()))),
        Pattern::Half(value) => session.tell(&op::MemsetD16(fill(value.into()))),
        Pattern::Word(value) => session.tell(&op::MemsetD32(fill(value.cast_signed()))),
    }
}

/// `hipMemset`.
pub(crate) fn memset(session: &Session, dst: Ptr, value: i32, size: usize) -> HipResult<()> {
    memset_async(session, dst, value, size, Stream::NULL)
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
    fill(session, dst, Pattern::Byte(value), count, Stream::NULL)
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
    fill(session, dst, Pattern::Half(value), count, Stream::NULL)
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
    fill(session, dst, Pattern::Word(value.cast_unsigned()), count, Stream::NULL)
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

/// `hipStreamWriteValue32`.
pub(crate) fn write_value_32(
    s: &Session,
    stream: Stream,
    ptr: Ptr,
    value: u32,
    _flags: u32,
) -> HipResult<()> {
    fill(s, ptr, Pattern::Word(value), 1, stream)
}

/// `hipStreamWriteValue64`.
pub(crate) fn write_value_64(
    s: &Session,
    stream: Stream,
    ptr: Ptr,
    value: u64,
    _flags: u32,
) -> HipResult<()> {
    let [low, high] = [value as u32, (value >> 32) as u32];
    if low == high {
        return fill(s, ptr, Pattern::Word(low), 2, stream);
    }
    // One after the other in the same stream: whoever is ordered behind it sees both.
    fill(s, ptr, Pattern::Word(low), 1, stream)?;
    fill(s, ptr.offset(4), Pattern::Word(high), 1, stream)
}

/// Rows of `width` elements. The protocol has no fill of rows: each is one small request, sent together.
fn fill_rows(
    session: &Session,
    dst: Ptr,
    pitch: usize,
    pattern: Pattern,
    (width, height): (usize, usize),
    stream: Stream,
) -> HipResult<()> {
    let row_bytes = width.checked_mul(pattern.bytes()).ok_or(HipError::INVALID_VALUE)?;
    if width == 0 || height == 0 {
        return session.stream(stream).map(drop);
    }
    if pitch == row_bytes || height == 1 {
        let count = width.checked_mul(height).ok_or(HipError::INVALID_VALUE)?;
        return fill(session, dst, pattern, count, stream);
    }
    if pitch < row_bytes {
        return Err(HipError::INVALID_PITCH_VALUE);
    }
    // The whole is judged before the first row is set.
    let len = pitch.checked_mul(height - 1).and_then(|rows| rows.checked_add(row_bytes));
    session.mirrors().place(session, dst.check()?, len.ok_or(HipError::INVALID_VALUE)?, Some(true))?;
    (0..height).try_for_each(|y| fill(session, dst.offset(y * pitch), pattern, width, stream))
}

/// `hipMemset2D`.
pub(crate) fn memset_2d(
    session: &Session,
    dst: Ptr,
    pitch: usize,
    value: i32,
    width: usize,
    height: usize,
) -> HipResult<()> {
    memset_2d_async(session, dst, pitch, value, width, height, Stream::NULL)
}

/// `hipMemset2DAsync`.
pub(crate) fn memset_2d_async(
    session: &Session,
    dst: Ptr,
    pitch: usize,
    value: i32,
    width: usize,
    height: usize,
    stream: Stream,
) -> HipResult<()> {
    fill_rows(session, dst, pitch, Pattern::Byte(value as u8), (width, height), stream)
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
            $name(session, dst, pitch, $value, width, height, Stream::NULL)
        }
    )*};
}

fill_2d! {
    /// `hipMemsetD2D8`, `hipMemsetD2D8Async`.
    memset_d2d8 memset_d2d8_async value: u8 => Pattern::Byte(value);
    /// `hipMemsetD2D16`, `hipMemsetD2D16Async`.
    memset_d2d16 memset_d2d16_async value: u16 => Pattern::Half(value);
    /// `hipMemsetD2D32`, `hipMemsetD2D32Async`.
    memset_d2d32 memset_d2d32_async value: u32 => Pattern::Word(value);
}

/// `hipMemset3D`.
pub(crate) fn memset_3d(session: &Session, dst: PitchedPtr, value: i32, extent: Extent) -> HipResult<()> {
    memset_3d_async(session, dst, value, extent, Stream::NULL)
}

/// `hipMemset3DAsync`: slices are `ysize` rows apart.
pub(crate) fn memset_3d_async(
    session: &Session,
    dst: PitchedPtr,
    value: i32,
    extent: Extent,
    stream: Stream,
) -> HipResult<()> {
    let Extent { width, height, depth } = extent;
    let pattern = Pattern::Byte(value as u8);
    let slice = dst.pitch.checked_mul(dst.ysize).ok_or(HipError::INVALID_VALUE)?;
    if height == dst.ysize {
        let rows = height.checked_mul(depth).ok_or(HipError::INVALID_VALUE)?;
        return fill_rows(session, dst.ptr, dst.pitch, pattern, (width, rows), stream);
    }
    (0..depth).try_for_each(|z| {
        fill_rows(session, dst.ptr.offset(z * slice), dst.pitch, pattern, (width, height), stream)
    })
}
