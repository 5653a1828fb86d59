//! Boxes of bytes in device memory.

/// A box of bytes in device memory: `depth` slices of `height` rows of `width` bytes. A flat range is one row.
///
/// *Packed* below means the same bytes one after another without gaps, as they travel on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Address of the first byte.
    pub ptr: u64,
    /// Bytes from one row to the next.
    pub pitch: u64,
    /// Bytes from one slice to the next.
    pub slice: u64,
    /// Bytes in a row.
    pub width: u64,
    /// Rows in a slice.
    pub height: u64,
    /// Slices.
    pub depth: u64,
}

impl Region {
    /// Returns the flat range of `len_bytes` bytes at `ptr`.
    pub const fn flat(ptr: u64, len_bytes: u64) -> Self {
        Self { ptr, pitch: len_bytes, slice: len_bytes, width: len_bytes, height: 1, depth: 1 }
    }

    /// Returns the number of bytes in the region, without gaps; `None` if that does not fit 64 bits.
    pub fn len_bytes(&self) -> Option<u64> {
        self.width.checked_mul(self.height)?.checked_mul(self.depth)
    }

    /// Returns the number of bytes from the first to the last one of the region, including gaps: what an allocation must
    /// have from `ptr` on. 0 for an empty region; `None` if it, or the end address, does not fit 64 bits.
    pub fn span_bytes(&self) -> Option<u64> {
        if self.width == 0 || self.height == 0 || self.depth == 0 {
            return Some(0);
        }
        let rows = self.pitch.checked_mul(self.height - 1)?;
        let slices = self.slice.checked_mul(self.depth - 1)?;
        let span = slices.checked_add(rows)?.checked_add(self.width)?;
        self.ptr.checked_add(span)?;
        Some(span)
    }

    /// Returns whether the region has no gaps.
    pub fn is_contiguous(&self) -> bool {
        let rows = self.height <= 1 || self.pitch == self.width;
        let slices = self.depth <= 1 || Some(self.slice) == self.width.checked_mul(self.height);
        rows && slices
    }

    /// Returns address and length of the longest contiguous range from packed offset `offset` on; `None` past the end. The
    /// [`span_bytes`](Self::span_bytes) must be known to fit.
    pub fn run_at(&self, offset: u64) -> Option<(u64, u64)> {
        let len = self.len_bytes()?;
        if offset >= len {
            return None;
        }
        if self.is_contiguous() {
            return Some((self.ptr.checked_add(offset)?, len - offset));
        }
        let (row, column) = (offset / self.width, offset % self.width);
        let (slice, row) = (row / self.height, row % self.height);
        let rows = self.pitch.checked_mul(row)?;
        let slices = self.slice.checked_mul(slice)?;
        let ptr = self.ptr.checked_add(slices)?.checked_add(rows)?.checked_add(column)?;
        Some((ptr, self.width - column))
    }

    /// Iterates over the contiguous ranges of packed bytes `offset .. offset + len`, as (address, offset in those bytes,
    /// length).
    pub fn runs(&self, offset: u64, len: u64) -> impl Iterator<Item = (u64, u64, u64)> + use<> {
        let region = *self;
        let mut done = 0;
        std::iter::from_fn(move || {
            let left = len.checked_sub(done).filter(|&left| left > 0)?;
            let (ptr, run) = region.run_at(offset.checked_add(done)?)?;
            let (at, run) = (done, run.min(left));
            done += run;
            Some((ptr, at, run))
        })
    }
}
