//! Copies and fills inside device memory.

use hipr_device::Region;
use hipr_proto::{HipError, HipResult};

use super::{Owner, ptr, size, void};
use hip_sys::{hipExtent, hipMemcpy3DParms, hipMemcpyDeviceToDevice, hipMemcpyKind, hipPitchedPtr};

/// Returns the C structure of a region, whose slices must be a whole number of rows apart.
fn pitched(region: &Region) -> HipResult<hipPitchedPtr> {
    let &Region { ptr, pitch, slice, width, .. } = region;
    let rows = slice.checked_div(pitch).filter(|rows| rows.checked_mul(pitch) == Some(slice));
    let rows = size(rows.ok_or(HipError::INVALID_VALUE)?)?;
    Ok(hipPitchedPtr { ptr: void(ptr), pitch: size(pitch)?, xsize: size(width)?, ysize: rows })
}

impl Owner {
    pub(super) fn check_region(&self, region: &Region) -> HipResult<()> {
        match region.span_bytes().ok_or(HipError::INVALID_VALUE)? {
            0 => Ok(()),
            span => self.check_range(region.ptr, span),
        }
    }

    /// Enqueues a copy between regions of equal width, height and depth.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what is not allocated, `INVALID_HANDLE`; those of HIP.
    pub(crate) fn copy(&mut self, dst: &Region, src: &Region, stream: u64) -> HipResult<()> {
        self.check_region(dst)?;
        self.check_region(src)?;
        let stream = self.enter_stream(stream)?;
        let Region { width, height, depth, .. } = *dst;
        if dst.is_contiguous() && src.is_contiguous() {
            let len = dst.len_bytes().ok_or(HipError::INVALID_VALUE)?;
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
            srcPtr: pitched(src)?,
            dstPtr: pitched(dst)?,
            extent: hipExtent { width: size(width)?, height: size(height)?, depth: size(depth)? },
            kind: hipMemcpyDeviceToDevice,
            ..hipMemcpy3DParms::default()
        };
        // SAFETY: both boxes are allocated, the stream exists, the structure outlives the call.
        self.check(unsafe { self.hip.hipMemcpy3DAsync(&parms, ptr(stream)) })
    }

    /// Copies rows between two ends, each given as (address, pitch), with the size (width, height).
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
    ) -> HipResult<()> {
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
    pub(crate) fn fill(
        &mut self,
        address: u64,
        len_bytes: u64,
        value: u32,
        element_bytes: u32,
        stream: u64,
    ) -> HipResult<()> {
        self.check_range(address, len_bytes)?;
        if !matches!(element_bytes, 1 | 2 | 4) || !len_bytes.is_multiple_of(u64::from(element_bytes)) {
            return Err(HipError::INVALID_VALUE);
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
