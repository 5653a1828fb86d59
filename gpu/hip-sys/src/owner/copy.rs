//! Copies and fills inside device memory.

use super::{HipCode, Owner, ptr, size, void};
use crate::{
    hipErrorInvalidValue, hipExtent, hipMemcpy3DParms, hipMemcpyDeviceToDevice, hipMemcpyKind, hipPitchedPtr,
};

/// A box of bytes in device memory: `depth` slices of `height` rows of `width` bytes; `pitch` bytes from row to row, `slice`
/// bytes from slice to slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "said above")]
pub struct Area {
    pub ptr: u64,
    pub pitch: u64,
    pub slice: u64,
    pub width: u64,
    pub height: u64,
    pub depth: u64,
}

/// Rows of bytes in device memory: `height` rows of `width` bytes, `pitch` bytes from row to row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "said above")]
pub struct Rows {
    pub ptr: u64,
    pub pitch: u64,
    pub width: u64,
    pub height: u64,
}

impl Rows {
    /// Bytes from the first to the last; `None` if that does not fit 64 bits.
    fn span_bytes(&self) -> Option<u64> {
        match self.height.checked_sub(1) {
            None => Some(0),
            Some(rows) => self.pitch.checked_mul(rows)?.checked_add(self.width),
        }
    }
}

impl Area {
    /// Bytes from the first to the last; `None` if that does not fit 64 bits.
    fn span_bytes(&self) -> Option<u64> {
        if self.width == 0 || self.height == 0 || self.depth == 0 {
            return Some(0);
        }
        self.slice.checked_mul(self.depth - 1)?.checked_add(self.rows().span_bytes()?)
    }

    fn rows(&self) -> Rows {
        Rows { ptr: self.ptr, pitch: self.pitch, width: self.width, height: self.height }
    }

    /// Whether the bytes lie one after another.
    fn is_packed(&self) -> bool {
        let rows = self.height <= 1 || self.pitch == self.width;
        let slices = self.depth <= 1 || Some(self.slice) == self.width.checked_mul(self.height);
        rows && slices
    }

    /// The C structure; slices must be a whole number of rows apart.
    fn pitched(&self) -> HipCode<hipPitchedPtr> {
        let rows = self
            .slice
            .checked_div(self.pitch)
            .filter(|rows| rows.checked_mul(self.pitch) == Some(self.slice));
        let rows = size(rows.ok_or(hipErrorInvalidValue)?)?;
        Ok(hipPitchedPtr {
            ptr: void(self.ptr),
            pitch: size(self.pitch)?,
            xsize: size(self.width)?,
            ysize: rows,
        })
    }
}

impl Owner {
    fn check_area(&self, area: &Area) -> HipCode {
        match area.span_bytes().ok_or(hipErrorInvalidValue)? {
            0 => Ok(()),
            span => self.check_range(area.ptr, span),
        }
    }

    pub(super) fn check_rows(&self, rows: &Rows) -> HipCode {
        match rows.span_bytes().ok_or(hipErrorInvalidValue)? {
            0 => Ok(()),
            span => self.check_range(rows.ptr, span),
        }
    }

    /// Enqueues a copy between boxes of equal width, height and depth.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what is not allocated, `INVALID_HANDLE`; those of HIP.
    pub fn copy(&mut self, dst: &Area, src: &Area, stream: u64) -> HipCode {
        self.check_area(dst)?;
        self.check_area(src)?;
        let stream = self.enter_stream(stream)?;
        let Area { width, height, depth, .. } = *dst;
        if dst.is_packed() && src.is_packed() {
            let len =
                width.checked_mul(height).and_then(|n| n.checked_mul(depth)).ok_or(hipErrorInvalidValue)?;
            // SAFETY: both ranges are allocated, the stream exists.
            return self.check(unsafe {
                self.hip.hipMemcpyAsync(
                    void(dst.ptr),
                    void(src.ptr),
                    size(len)?,
                    hipMemcpyDeviceToDevice,
                    ptr(stream),
                )
            });
        }
        if depth == 1 {
            // SAFETY: both ranges are allocated.
            return unsafe {
                self.copy_rows(
                    (dst.ptr, dst.pitch),
                    (src.ptr, src.pitch),
                    (width, height),
                    hipMemcpyDeviceToDevice,
                    stream,
                )
            };
        }
        let parms = hipMemcpy3DParms {
            srcPtr: src.pitched()?,
            dstPtr: dst.pitched()?,
            extent: hipExtent { width: size(width)?, height: size(height)?, depth: size(depth)? },
            kind: hipMemcpyDeviceToDevice,
            ..hipMemcpy3DParms::default()
        };
        // SAFETY: both boxes are allocated, the stream exists, the structure outlives the call.
        self.check(unsafe { self.hip.hipMemcpy3DAsync(&parms, ptr(stream)) })
    }

    /// Copies rows: (address, pitch) each, and (width, height).
    ///
    /// # Safety
    /// Both ranges exist for as long as the copy takes; `stream` is a C handle of the current device.
    pub(super) unsafe fn copy_rows(
        &self,
        dst: (u64, u64),
        src: (u64, u64),
        (width, height): (u64, u64),
        kind: hipMemcpyKind,
        stream: u64,
    ) -> HipCode {
        let (to, from, stream) = (void(dst.0), void(src.0), ptr(stream));
        let (width, height) = (size(width)?, size(height)?);
        // SAFETY: the caller's promise.
        self.check(unsafe {
            if height == 1 {
                self.hip.hipMemcpyAsync(to, from, width, kind, stream)
            } else {
                self.hip.hipMemcpy2DAsync(to, size(dst.1)?, from, size(src.1)?, width, height, kind, stream)
            }
        })
    }

    /// Enqueues a fill: each `element_bytes` (1, 2 or 4) bytes of the range become the low bytes of `value`.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what is not allocated or not a whole number of elements, `INVALID_HANDLE`; those of HIP.
    pub fn fill(
        &mut self,
        address: u64,
        len_bytes: u64,
        value: u32,
        element_bytes: u32,
        stream: u64,
    ) -> HipCode {
        self.check_range(address, len_bytes)?;
        if !matches!(element_bytes, 1 | 2 | 4) || !len_bytes.is_multiple_of(u64::from(element_bytes)) {
            return Err(hipErrorInvalidValue);
        }
        let count = size(len_bytes / u64::from(element_bytes))?;
        let stream = self.enter_stream(stream)?;
        let (dst, signed, stream) = (void(address), value.cast_signed(), ptr(stream));
        // SAFETY: the range is allocated, the stream exists.
        self.check(unsafe {
            match element_bytes {
                1 => self.hip.hipMemsetAsync(dst, signed & 0xff, count, stream),
                2 => self.hip.hipMemsetD16Async(dst, (value & 0xffff) as u16, count, stream),
                _ => self.hip.hipMemsetD32Async(dst, signed, count, stream),
            }
        })
    }
}
