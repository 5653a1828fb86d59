//! Memory copies: boxes of bytes, from one address to another.

use hipr_abi::{hipArray_t, hipExtent, hipMemcpy3DParms, hipMemcpyDeviceToDeviceNoCU, hipPitchedPtr, hipPos};
use hipr_proto::op::kind;
use hipr_proto::{HipError, HipResult};

use crate::convert::Ptr;

/// A box of bytes at an address, with `pitch` bytes from row to row and `rows` rows from slice to slice.
#[derive(Clone, Copy, Debug)]
pub struct MemoryBox {
    /// The address.
    pub at: Ptr,
    /// Distance between the starts of two rows, in bytes.
    pub pitch: usize,
    /// Number of rows from slice to slice.
    pub rows: usize,
    /// The kind that the caller states for an address unknown to HIP: true for device, false for host, None if it states
    /// none.
    pub is_device: Option<bool>,
}

/// The size of a box: width in bytes, height in rows, depth in slices.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Size of a row in bytes.
    pub width: usize,
    /// Number of rows in a slice.
    pub height: usize,
    /// Number of slices.
    pub depth: usize,
}

impl Size {
    /// Returns the number of bytes; None if it is larger than any memory.
    pub fn bytes(self) -> Option<usize> {
        self.width.checked_mul(self.height)?.checked_mul(self.depth)
    }
}

impl MemoryBox {
    /// Returns a box that begins `x` bytes, `y` rows and `z` slices into memory.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`.
    pub fn inside(
        (at, is_device): (Ptr, Option<bool>),
        pitch: usize,
        rows: usize,
        (x, y, z): (usize, usize, usize),
    ) -> HipResult<Self> {
        let offset = || z.checked_mul(rows)?.checked_add(y)?.checked_mul(pitch)?.checked_add(x);
        let at = at.offset(offset().ok_or(HipError::INVALID_VALUE)?);
        Ok(Self { at, pitch, rows, is_device })
    }

    /// Returns the distance between the starts of two slices, in bytes.
    pub fn slice(&self) -> Option<usize> {
        self.pitch.checked_mul(self.rows)
    }

    /// Returns the distance from the first to the last byte of a box that is not empty, in bytes.
    #[inline]
    pub fn span(&self, size: Size) -> Option<usize> {
        if (size.height, size.depth) == (1, 1) {
            return Some(size.width);
        }
        let slices = self.slice()?.checked_mul(size.depth - 1)?;
        let rows = self.pitch.checked_mul(size.height - 1)?;
        slices.checked_add(rows)?.checked_add(size.width)
    }

    /// Returns whether a box has no gaps between rows and slices.
    pub fn is_packed(&self, size: Size) -> bool {
        let rows = size.height == 1 || self.pitch == size.width;
        let slices = size.depth == 1 || (self.pitch == size.width && self.rows == size.height);
        rows && slices
    }
}

/// Returns the kinds of destination and source that a copy kind states: true for device, false for host, None if it states
/// none.
///
/// # Errors
/// `hipErrorInvalidMemcpyDirection`.
pub fn hints(kind: i32) -> HipResult<(Option<bool>, Option<bool>)> {
    match kind {
        kind::HOST_TO_HOST => Ok((Some(false), Some(false))),
        kind::HOST_TO_DEVICE => Ok((Some(true), Some(false))),
        kind::DEVICE_TO_HOST => Ok((Some(false), Some(true))),
        kind::DEVICE_TO_DEVICE | hipMemcpyDeviceToDeviceNoCU => Ok((Some(true), Some(true))),
        kind::DEFAULT => Ok((None, None)),
        _ => Err(HipError::INVALID_MEMCPY_DIRECTION),
    }
}

/// A copy between two boxes, whose addresses have not been checked.
#[derive(Clone, Copy, Debug)]
pub struct MemoryCopy {
    /// The destination.
    pub dst: MemoryBox,
    /// The source.
    pub src: MemoryBox,
    /// The size of the box that is copied.
    pub size: Size,
}

impl MemoryCopy {
    /// Creates a copy of `len` consecutive bytes.
    ///
    /// # Errors
    /// `hipErrorInvalidMemcpyDirection`.
    pub fn linear(dst: Ptr, src: Ptr, len: usize, kind: i32) -> HipResult<Self> {
        let (to, from) = hints(kind)?;
        let place = |at, is_device| MemoryBox { at, pitch: len, rows: 1, is_device };
        let size = Size { width: len, height: 1, depth: 1 };
        Ok(Self { dst: place(dst, to), src: place(src, from), size })
    }

    /// Creates a copy as `hipMemcpy3DParms` describes it.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` for null pointers, `hipErrorInvalidPitchValue`, `hipErrorInvalidValue` for rows and slices without room,
    /// `hipErrorInvalidMemcpyDirection`, in this order, also where there is nothing to copy.
    pub fn of_node(p: hipMemcpy3DParms) -> HipResult<Self> {
        if !p.srcArray.is_null() || !p.dstArray.is_null() {
            return Err(array_error(&p));
        }
        let ends = [(p.dstPtr, p.dstPos), (p.srcPtr, p.srcPos)];
        if ends.iter().any(|(ptr, _)| ptr.ptr.is_null()) {
            return Err(HipError::INVALID_VALUE);
        }
        if ends.iter().any(|(ptr, _)| ptr.pitch == 0 || ptr.pitch < ptr.xsize) {
            return Err(HipError::INVALID_PITCH_VALUE);
        }
        ends.into_iter().try_for_each(|(ptr, pos)| check_room(ptr, pos, p.extent))?;
        let (to, from) = hints(p.kind)?;
        let place = |ptr: hipPitchedPtr, pos: hipPos, hint| {
            MemoryBox::inside((ptr.ptr.into(), hint), ptr.pitch, ptr.ysize, (pos.x, pos.y, pos.z))
        };
        let size = Size { width: p.extent.width, height: p.extent.height, depth: p.extent.depth };
        Ok(Self { dst: place(p.dstPtr, p.dstPos, to)?, src: place(p.srcPtr, p.srcPos, from)?, size })
    }

    /// Returns whether the rows of an end are closer to each other than they are long.
    #[inline]
    pub fn has_narrow_pitch(&self) -> bool {
        self.dst.pitch < self.size.width || self.src.pitch < self.size.width
    }

    /// Returns the kinds of destination and source that the copy's kind states, as [`hints`] does.
    pub fn direction(&self) -> (Option<bool>, Option<bool>) {
        (self.dst.is_device, self.src.is_device)
    }

    /// Returns the `hipMemcpyKind` that states the same.
    pub fn kind(&self) -> i32 {
        match self.direction() {
            (Some(false), Some(false)) => kind::HOST_TO_HOST,
            (Some(true), Some(false)) => kind::HOST_TO_DEVICE,
            (Some(false), Some(true)) => kind::DEVICE_TO_HOST,
            (Some(true), Some(true)) => kind::DEVICE_TO_DEVICE,
            _ => kind::DEFAULT,
        }
    }

    /// Returns the parameters of a graph node for this copy, which [`of_node`](Self::of_node) reads.
    pub fn node_params(self) -> hipMemcpy3DParms {
        let Self { dst, src, size } = self;
        let ptr = |place: MemoryBox| hipPitchedPtr {
            ptr: place.at.as_mut_ptr(),
            pitch: place.pitch,
            xsize: size.width,
            ysize: place.rows,
        };
        let nowhere = hipPos { x: 0, y: 0, z: 0 };
        hipMemcpy3DParms {
            srcArray: core::ptr::null_mut(),
            srcPos: nowhere,
            srcPtr: ptr(src),
            dstArray: core::ptr::null_mut(),
            dstPos: nowhere,
            dstPtr: ptr(dst),
            extent: hipExtent { width: size.width, height: size.height, depth: size.depth },
            kind: self.kind(),
        }
    }

    /// Checks that pitches and sizes fit each other, and returns the number of bytes.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` for null pointers and what no memory can hold, `hipErrorInvalidPitchValue`.
    #[inline]
    pub fn check_shape(&self) -> HipResult<usize> {
        let Self { dst, src, size } = self;
        let bytes = size.bytes().ok_or(HipError::INVALID_VALUE)?;
        if bytes > 0 {
            dst.at.check()?;
            src.at.check()?;
            if size.height > 1 && self.has_narrow_pitch() {
                return Err(HipError::INVALID_PITCH_VALUE);
            }
            if size.depth > 1 && (dst.rows < size.height || src.rows < size.height) {
                return Err(HipError::INVALID_VALUE);
            }
        }
        Ok(bytes)
    }
}

/// Largest distance between the starts of two rows, in bytes.
const PITCH_MAX: usize = i32::MAX as usize;

/// Returns the error for a copy to or from arrays, which no device has.
fn array_error(p: &hipMemcpy3DParms) -> HipError {
    let is_one = |ptr: hipPitchedPtr, array: hipArray_t| ptr.ptr.is_null() != array.is_null();
    if !is_one(p.srcPtr, p.srcArray) || !is_one(p.dstPtr, p.dstArray) {
        HipError::INVALID_VALUE
    } else if p.srcPtr.pitch < p.srcPtr.xsize || p.dstPtr.pitch < p.dstPtr.xsize {
        HipError::INVALID_PITCH_VALUE
    } else if p.srcPtr.pitch >= PITCH_MAX || p.dstPtr.pitch >= PITCH_MAX {
        HipError::INVALID_VALUE
    } else {
        hints(p.kind).err().unwrap_or(HipError::INVALID_VALUE)
    }
}

/// Checks that rows and slices have room for a box at a position.
fn check_room(ptr: hipPitchedPtr, pos: hipPos, extent: hipExtent) -> HipResult<()> {
    let fits = |at: usize, size, room| at.checked_add(size).is_some_and(|end: usize| end <= room);
    if ptr.pitch <= PITCH_MAX && fits(pos.x, extent.width, ptr.pitch) && fits(pos.y, extent.height, ptr.ysize)
    {
        Ok(())
    } else {
        Err(HipError::INVALID_VALUE)
    }
}

/// A copy from, to or within device memory.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// The `hipMemcpyKind` that the addresses imply.
    pub kind: i32,
    /// Address of the destination: a device address if the kind says so.
    pub to: u64,
    /// Address of the source: a device address if the kind says so.
    pub from: u64,
    /// The copy, with pitches, rows and the program's addresses.
    pub copy: MemoryCopy,
    /// The stream.
    pub stream: u64,
    /// Whether the caller relies on the copy being finished when the call returns.
    pub is_blocking: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(pitch: usize, rows: usize) -> MemoryBox {
        MemoryBox { at: Ptr(0x1000), pitch, rows, is_device: None }
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
