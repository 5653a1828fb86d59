//! Copies.
//!
//! Where the bytes are is told from the addresses, as HIP does it: what the process knows as device memory is device
//! memory, whatever the copy's kind says; the kind speaks for addresses nobody knows, which are host memory, and for those
//! that both sides use (see `reserve`).
//!
//! A copy to the device returns when its bytes have left or are in our buffer; a copy from the device waits. Both hold
//! for the asynchronous forms as well: the first is then merely faster than it has to be, the second slower.

mod shaped;

use hipr_proto::op::{self, kind};
use hipr_proto::{HipError, HipResult};

use crate::callbacks::{Role, Work};
use crate::client::{Extra, Rows};
use crate::convert::{Ptr, Stream};
use crate::graphs::Task;
use crate::mirror::Place;
use crate::session::Session;
use crate::types::{Extent, Memcpy3D, PitchedPtr, Pos};

pub(crate) use shaped::{
    drv_3d, drv_3d_async, memcpy_2d, memcpy_2d_async, memcpy_3d, memcpy_3d_async, memcpy_3d_peer,
    memcpy_3d_peer_async, param_2d, param_2d_async,
};

/// `hipMemcpyDeviceToDeviceNoCU`: by the copy engines; here the same as device to device.
const DEVICE_TO_DEVICE_NO_CU: i32 = 1024;

/// Whether the caller relies on the copy being over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    Yes,
    No,
}

/// One end of a copy.
#[derive(Clone, Copy, Debug)]
enum End {
    Device(u64),
    Host,
}

/// A box of bytes at an address: `pitch` bytes from row to row, `rows` rows from slice to slice.
#[derive(Clone, Copy, Debug)]
struct Place3 {
    at: Ptr,
    pitch: usize,
    rows: usize,
    /// What the caller says it is, for addresses nobody knows: true device, false host, None nothing.
    is_device: Option<bool>,
}

/// Width in bytes, height in rows, depth in slices.
#[derive(Clone, Copy, Debug)]
struct Size {
    width: usize,
    height: usize,
    depth: usize,
}

impl Size {
    fn bytes(self) -> Option<usize> {
        self.width.checked_mul(self.height)?.checked_mul(self.depth)
    }
}

impl Place3 {
    fn slice(&self) -> Option<usize> {
        self.pitch.checked_mul(self.rows)
    }

    /// Bytes from the first to the last of a box, which is not empty.
    fn span(&self, size: Size) -> Option<usize> {
        let slices = self.slice()?.checked_mul(size.depth - 1)?;
        let rows = self.pitch.checked_mul(size.height - 1)?;
        slices.checked_add(rows)?.checked_add(size.width)
    }

    /// Whether a box has no gaps.
    fn is_packed(&self, size: Size) -> bool {
        let rows = size.height == 1 || self.pitch == size.width;
        let slices = size.depth == 1 || (self.pitch == size.width && self.rows == size.height);
        rows && slices
    }
}

/// What a kind says of destination and source.
fn hints(kind: i32) -> HipResult<(Option<bool>, Option<bool>)> {
    match kind {
        kind::HOST_TO_HOST => Ok((Some(false), Some(false))),
        kind::HOST_TO_DEVICE => Ok((Some(true), Some(false))),
        kind::DEVICE_TO_HOST => Ok((Some(false), Some(true))),
        kind::DEVICE_TO_DEVICE | DEVICE_TO_DEVICE_NO_CU => Ok((Some(true), Some(true))),
        kind::DEFAULT => Ok((None, None)),
        _ => Err(HipError::INVALID_MEMCPY_DIRECTION),
    }
}

/// The one copy that all others are.
fn copy(
    session: &Session,
    dst: Place3,
    src: Place3,
    size: Size,
    stream: Stream,
    waits: Waits,
) -> HipResult<()> {
    let stream = session.stream(stream)?;
    let task = CopyTask { dst, src, size };
    task.check_shape()?;
    if session.graphs().record(stream, || Task::Copy(task))? {
        return Ok(());
    }
    if session.callbacks().is_waiting(session, stream) {
        if waits == Waits::No && task.may_come_later(session)? && task.hold(session, stream)? {
            return Ok(());
        }
        session.callbacks().gate(session, stream)?;
    }
    task.run(session, stream, waits)
}

/// A copy whose bytes have not been looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyTask {
    dst: Place3,
    src: Place3,
    size: Size,
}

impl CopyTask {
    /// Bytes in one row.
    ///
    /// # Errors
    /// `hipErrorInvalidMemcpyDirection`.
    pub(crate) fn linear(dst: Ptr, src: Ptr, len: usize, kind: i32) -> HipResult<Self> {
        let (to, from) = hints(kind)?;
        let place = |at, is_device| Place3 { at, pitch: len, rows: 1, is_device };
        let size = Size { width: len, height: 1, depth: 1 };
        Ok(Self { dst: place(dst, to), src: place(src, from), size })
    }

    /// What `hipMemcpy3DParms` says.
    ///
    /// # Errors
    /// `hipErrorNotSupported` for arrays, `hipErrorInvalidMemcpyDirection`, `hipErrorInvalidValue`.
    pub(crate) fn of_node(p: Memcpy3D) -> HipResult<Self> {
        if !p.src_array.is_null() || !p.dst_array.is_null() {
            return Err(HipError::NOT_SUPPORTED);
        }
        let (to, from) = hints(p.kind)?;
        let place = |ptr: PitchedPtr, pos: Pos, hint| {
            inside((ptr.ptr, hint), ptr.pitch, ptr.ysize, (pos.x, pos.y, pos.z))
        };
        let size = Size { width: p.extent.width, height: p.extent.height, depth: p.extent.depth };
        Ok(Self { dst: place(p.dst_ptr, p.dst_pos, to)?, src: place(p.src_ptr, p.src_pos, from)?, size })
    }

    /// [`of_node`](Self::of_node) reads it.
    pub(crate) fn node_params(self) -> Memcpy3D {
        let Self { dst, src, size } = self;
        let ptr = |place: Place3| PitchedPtr {
            ptr: place.at,
            pitch: place.pitch,
            xsize: size.width,
            ysize: place.rows,
        };
        let nowhere = Pos { x: 0, y: 0, z: 0 };
        Memcpy3D {
            src_array: Ptr::NULL,
            src_pos: nowhere,
            src_ptr: ptr(src),
            dst_array: Ptr::NULL,
            dst_pos: nowhere,
            dst_ptr: ptr(dst),
            extent: Extent { width: size.width, height: size.height, depth: size.depth },
            kind: match (dst.is_device, src.is_device) {
                (Some(false), Some(false)) => kind::HOST_TO_HOST,
                (Some(true), Some(false)) => kind::HOST_TO_DEVICE,
                (Some(false), Some(true)) => kind::DEVICE_TO_HOST,
                (Some(true), Some(true)) => kind::DEVICE_TO_DEVICE,
                _ => kind::DEFAULT,
            },
        }
    }

    /// Whether both ends are device memory, and of nothing else.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: it goes beyond the memory it begins in.
    pub(crate) fn is_on_device(self, session: &Session) -> HipResult<bool> {
        let Self { dst, src, size } = self;
        let is_device = |place: Place3| -> HipResult<bool> {
            let span = place.span(size).ok_or(HipError::INVALID_VALUE)?;
            let place = session.mirrors().place(session, place.at, span, place.is_device)?;
            Ok(matches!(place, Place::Device(_)))
        };
        Ok(size.bytes().is_some_and(|bytes| bytes > 0) && is_device(dst)? && is_device(src)?)
    }

    /// The bytes of the copy.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` for null pointers and what no memory can hold, `hipErrorInvalidPitchValue`.
    fn check_shape(self) -> HipResult<usize> {
        let Self { dst, src, size } = self;
        let bytes = size.bytes().ok_or(HipError::INVALID_VALUE)?;
        if bytes > 0 {
            dst.at.check()?;
            src.at.check()?;
            if size.height > 1 && (dst.pitch < size.width || src.pitch < size.width) {
                return Err(HipError::INVALID_PITCH_VALUE);
            }
        }
        Ok(bytes)
    }

    /// Where destination and source, which are not empty, are.
    fn places(self, session: &Session) -> HipResult<[Place; 2]> {
        let find = |place: Place3| -> HipResult<Place> {
            let span = place.span(self.size).ok_or(HipError::INVALID_VALUE)?;
            match session.mirrors().place(session, place.at, span, place.is_device)? {
                // HIP API: hipMemcpy refuses what is said to be device memory and is not.
                Place::Unknown if place.is_device == Some(true) => Err(HipError::INVALID_VALUE),
                found => Ok(found),
            }
        };
        Ok([find(self.dst)?, find(self.src)?])
    }

    /// Whether the copy could be made now.
    ///
    /// # Errors
    /// Those of a copy that are known before a byte is moved.
    pub(crate) fn check(self, session: &Session) -> HipResult<()> {
        if self.check_shape()? > 0 { self.places(session).map(drop) } else { Ok(()) }
    }

    /// Whether the asynchronous copy may return before it is made. HIP API: not with host memory that HIP does not know, whose bytes
    /// are read, or there, when it returns.
    ///
    /// # Errors
    /// Those of [`check`](Self::check).
    fn may_come_later(self, session: &Session) -> HipResult<bool> {
        let is_known = |place: &Place| !matches!(place, Place::Unknown);
        Ok(self.check_shape()? > 0 && self.places(session)?.iter().all(is_known))
    }

    /// Holds the copy back behind functions of the program, if there are any. `false`: there are none.
    ///
    /// # Errors
    /// `hipErrorOperatingSystem`.
    pub(crate) fn hold(self, session: &Session, stream: u64) -> HipResult<bool> {
        let work = || -> Work { Box::new(move |session| self.enqueue(session, stream)) };
        session.callbacks().hold(session, stream, Role::Records(&[]), work)
    }

    /// Copies in the order of a stream.
    ///
    /// # Errors
    /// Those of an asynchronous copy.
    pub(crate) fn enqueue(self, session: &Session, stream: u64) -> HipResult<()> {
        self.run(session, stream, Waits::No)
    }

    fn run(self, session: &Session, stream: u64, waits: Waits) -> HipResult<()> {
        let bytes = self.check_shape()?;
        if bytes == 0 { Ok(()) } else { run(session, self, bytes, stream, waits) }
    }
}

fn run(session: &Session, task: CopyTask, bytes: usize, stream: u64, waits: Waits) -> HipResult<()> {
    let CopyTask { dst, src, size } = task;
    let [to, from] = task.places(session)?;
    let end = |found: Place| match found {
        Place::Device(address) | Place::Mirrored(address) => End::Device(address),
        Place::Host | Place::Unknown => End::Host,
    };
    let (to_end, from_end) = (end(to), end(from));
    let is_mirrored = matches!(to, Place::Mirrored(_));
    let send = |transfer: Transfer, bytes: &[u8]| {
        transfer.send(session, bytes)?;
        if is_mirrored {
            session.mirrors().sent(stream);
        }
        Ok(())
    };
    if is_mirrored {
        session.mirrors().before_use(session, stream)?;
    } else if matches!(from, Place::Mirrored(_)) {
        session.mirrors().before_read(session, stream)?;
    }
    match (to_end, from_end) {
        (End::Host, End::Host) => {
            // SAFETY: host memory that the caller names as source and destination of this copy.
            unsafe { copy_host(dst, src, size) };
            Ok(())
        }
        (End::Device(to), End::Host) => {
            let transfer = Transfer {
                kind: kind::HOST_TO_DEVICE,
                to,
                from: src.at.wire(),
                dst,
                src,
                size,
                stream,
                waits,
            };
            // SAFETY: host memory that the caller names as the source of this copy; it may not change before the copy
            // returns, and we are done with it then.
            let packed = |len| unsafe { src.at.host_bytes(len) };
            if src.is_packed(size) {
                let bytes = packed(bytes);
                session.mirrors().note_pointers(session, stream, bytes)?;
                return send(transfer, bytes);
            }
            let mut rows = Vec::with_capacity(bytes);
            let slice = src.slice().ok_or(HipError::INVALID_VALUE)?;
            for z in 0..size.depth {
                for y in 0..size.height {
                    let row = src.at.offset(z * slice + y * src.pitch);
                    // SAFETY: as above.
                    rows.extend_from_slice(unsafe { row.host_bytes(size.width) });
                }
            }
            session.mirrors().note_pointers(session, stream, &rows)?;
            send(transfer, &rows)
        }
        (End::Host, End::Device(from)) => {
            let transfer = Transfer {
                kind: kind::DEVICE_TO_HOST,
                to: dst.at.wire(),
                from,
                dst,
                src,
                size,
                stream,
                waits,
            };
            let rows = Rows {
                start: dst.at.as_mut_ptr(),
                width: size.width,
                height: size.height,
                pitch: dst.pitch,
                slice: dst.slice().ok_or(HipError::INVALID_VALUE)?,
            };
            // SAFETY: host memory that the caller names as the destination of this copy.
            let receive = || unsafe { transfer.receive(session, rows) };
            match waits {
                Waits::Yes => session.mirrors().wait_stream(session, stream, receive),
                Waits::No => receive(),
            }
        }
        (End::Device(to), End::Device(from)) => {
            let kind = kind::DEVICE_TO_DEVICE;
            send(Transfer { kind, to, from, dst, src, size, stream, waits }, &[])?;
            if waits == Waits::Yes && is_mirrored {
                // The program may look at the destination when the copy returns.
                let done = || session.ask(&op::StreamSynchronize { stream });
                session.mirrors().wait_stream(session, stream, done)?;
            }
            Ok(())
        }
    }
}

/// A copy in which the device takes part.
struct Transfer {
    kind: i32,
    to: u64,
    from: u64,
    dst: Place3,
    src: Place3,
    size: Size,
    stream: u64,
    waits: Waits,
}

/// Calls `$with` with the request that fits: the layout for the shape, the name for whether it waits.
macro_rules! request {
    ($transfer:expr, |$request:ident| $with:expr) => {{
        let t = $transfer;
        let waits = t.waits == Waits::Yes;
        if t.size.depth > 1 {
            let all = op::Memcpy3D {
                src_ptr: t.from,
                src_pitch: t.src.pitch as u64,
                src_height: t.src.rows as u64,
                src_x: 0,
                src_y: 0,
                src_z: 0,
                dst_ptr: t.to,
                dst_pitch: t.dst.pitch as u64,
                dst_height: t.dst.rows as u64,
                dst_x: 0,
                dst_y: 0,
                dst_z: 0,
                width: t.size.width as u64,
                height: t.size.height as u64,
                depth: t.size.depth as u64,
                kind: t.kind,
                reserved: 0,
                stream: t.stream,
            };
            if waits {
                let $request = &all;
                $with
            } else {
                let $request = &op::Memcpy3DAsync(all);
                $with
            }
        } else if t.size.height > 1 {
            let all = op::Memcpy2D {
                dst: t.to,
                dpitch: t.dst.pitch as u64,
                src: t.from,
                spitch: t.src.pitch as u64,
                width: t.size.width as u64,
                height: t.size.height as u64,
                kind: t.kind,
                reserved: 0,
                stream: t.stream,
            };
            if waits {
                let $request = &all;
                $with
            } else {
                let $request = &op::Memcpy2DAsync(all);
                $with
            }
        } else {
            let size = t.size.width as u64;
            let all = op::Memcpy { dst: t.to, src: t.from, size, kind: t.kind, stream: t.stream };
            if waits {
                let $request = &all;
                $with
            } else {
                let $request = &op::MemcpyAsync(all);
                $with
            }
        }
    }};
}

impl Transfer {
    fn send(&self, session: &Session, inline: &[u8]) -> HipResult<()> {
        let extra = Extra { inline, ..session.extra() };
        request!(self, |request| Ok(session.connection().tell_with(request, extra)?))
    }

    /// # Safety
    /// The rows are writable and used by nobody else during the call.
    unsafe fn receive(&self, session: &Session, rows: Rows) -> HipResult<()> {
        let extra = session.extra();
        // SAFETY: the caller's promise.
        request!(self, |request| Ok(unsafe { session.connection().read_rows(request, extra, rows) }?))
    }
}

/// # Safety
/// `dst` is writable and `src` readable in the given size.
unsafe fn copy_host(dst: Place3, src: Place3, size: Size) {
    for z in 0..size.depth {
        for y in 0..size.height {
            let to = dst.at.offset((z * dst.rows + y) * dst.pitch);
            let from = src.at.offset((z * src.rows + y) * src.pitch);
            // SAFETY: the caller's promise; the rows may overlap.
            unsafe { core::ptr::copy(from.as_mut_ptr::<u8>(), to.as_mut_ptr(), size.width) };
        }
    }
}

/// Bytes in one row.
pub(crate) fn linear(
    session: &Session,
    dst: Ptr,
    src: Ptr,
    len: usize,
    kind: i32,
    stream: Stream,
    waits: Waits,
) -> HipResult<()> {
    let CopyTask { dst, src, size } = CopyTask::linear(dst, src, len, kind)?;
    copy(session, dst, src, size, stream, waits)
}

/// `hipMemcpy`.
pub(crate) fn memcpy(session: &Session, dst: Ptr, src: Ptr, len: usize, kind: i32) -> HipResult<()> {
    linear(session, dst, src, len, kind, Stream::NULL, Waits::Yes)
}

/// `hipMemcpyAsync`.
pub(crate) fn memcpy_async(
    s: &Session,
    dst: Ptr,
    src: Ptr,
    len: usize,
    kind: i32,
    stream: Stream,
) -> HipResult<()> {
    linear(s, dst, src, len, kind, stream, Waits::No)
}

/// `hipMemcpyWithStream`: in the order of a stream, and over when it returns.
pub(crate) fn memcpy_with_stream(
    s: &Session,
    dst: Ptr,
    src: Ptr,
    len: usize,
    kind: i32,
    stream: Stream,
) -> HipResult<()> {
    linear(s, dst, src, len, kind, stream, Waits::Yes)
}

macro_rules! directed {
    ($($(#[$doc:meta])* $name:ident $name_async:ident $kind:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(session: &Session, dst: Ptr, src: Ptr, len: usize) -> HipResult<()> {
            linear(session, dst, src, len, $kind, Stream::NULL, Waits::Yes)
        }

        $(#[$doc])*
        pub(crate) fn $name_async(s: &Session, dst: Ptr, src: Ptr, len: usize, stream: Stream) -> HipResult<()> {
            linear(s, dst, src, len, $kind, stream, Waits::No)
        }
    )*};
}

directed! {
    /// `hipMemcpyHtoD`, `hipMemcpyHtoDAsync`.
    htod htod_async kind::HOST_TO_DEVICE;
    /// `hipMemcpyDtoH`, `hipMemcpyDtoHAsync`.
    dtoh dtoh_async kind::DEVICE_TO_HOST;
    /// `hipMemcpyDtoD`, `hipMemcpyDtoDAsync`.
    dtod dtod_async kind::DEVICE_TO_DEVICE;
}

/// `hipMemcpyPeer`.
pub(crate) fn peer(
    session: &Session,
    dst: Ptr,
    dst_device: i32,
    src: Ptr,
    src_device: i32,
    len: usize,
) -> HipResult<()> {
    peer_async(session, dst, dst_device, src, src_device, len, Stream::NULL)
}

/// `hipMemcpyPeerAsync`.
pub(crate) fn peer_async(
    session: &Session,
    dst: Ptr,
    dst_device: i32,
    src: Ptr,
    src_device: i32,
    len: usize,
    stream: Stream,
) -> HipResult<()> {
    session.check_device(dst_device)?;
    session.check_device(src_device)?;
    if dst_device == src_device {
        return linear(session, dst, src, len, kind::DEVICE_TO_DEVICE, stream, Waits::No);
    }
    let stream = session.stream(stream)?;
    if len == 0 {
        return Ok(());
    }
    for ptr in [dst, src] {
        let found = session.memory().check_range(ptr.check()?, len)?;
        found.ok_or(HipError::INVALID_VALUE)?;
    }
    let (dst, src, size) = (dst.wire(), src.wire(), len as u64);
    let request = op::MemcpyPeerAsync(op::MemcpyPeer { dst, dst_device, src, src_device, size, stream });
    let copy = move |session: &Session| session.tell(&request);
    session.callbacks().in_order(session, stream, Role::Records(&[]), copy)
}

/// A box that begins `x` bytes, `y` rows and `z` slices into memory.
fn inside(
    (at, is_device): (Ptr, Option<bool>),
    pitch: usize,
    rows: usize,
    (x, y, z): (usize, usize, usize),
) -> HipResult<Place3> {
    let offset = || z.checked_mul(rows)?.checked_add(y)?.checked_mul(pitch)?.checked_add(x);
    let at = at.offset(offset().ok_or(HipError::INVALID_VALUE)?);
    Ok(Place3 { at, pitch, rows, is_device })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(pitch: usize, rows: usize) -> Place3 {
        Place3 { at: Ptr(0x1000), pitch, rows, is_device: None }
    }

    #[test]
    fn a_span_goes_from_the_first_byte_to_the_last() {
        assert_eq!(place(10, 4).span(Size { width: 3, height: 1, depth: 1 }), Some(3));
        assert_eq!(place(10, 4).span(Size { width: 3, height: 2, depth: 1 }), Some(13));
        assert_eq!(place(10, 4).span(Size { width: 3, height: 2, depth: 2 }), Some(53));
        assert_eq!(place(usize::MAX, 4).span(Size { width: 3, height: 2, depth: 2 }), None);
    }

    #[test]
    fn a_box_without_gaps_is_packed() {
        assert!(place(100, 7).is_packed(Size { width: 3, height: 1, depth: 1 }));
        assert!(place(3, 7).is_packed(Size { width: 3, height: 5, depth: 1 }));
        assert!(!place(4, 7).is_packed(Size { width: 3, height: 5, depth: 1 }));
        assert!(!place(3, 7).is_packed(Size { width: 3, height: 5, depth: 2 }));
        assert!(place(3, 5).is_packed(Size { width: 3, height: 5, depth: 2 }));
    }

    #[test]
    fn kinds_are_checked() {
        assert_eq!(hints(5), Err(HipError::INVALID_MEMCPY_DIRECTION));
        assert_eq!(hints(-1), Err(HipError::INVALID_MEMCPY_DIRECTION));
        assert_eq!(hints(kind::HOST_TO_DEVICE), Ok((Some(true), Some(false))));
    }
}
