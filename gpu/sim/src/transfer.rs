//! Writes, copies and fills: boxes of bytes in device memory, moved a piece at a time.

use std::sync::Arc;

use hipr_device::Region;
use hipr_isa::mem::{Block, Route};
use hipr_proto::{HipError, HipResult};

use crate::watch::Moved;

/// A region whose bytes all lie in one block: checked once, when a command is enqueued.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    block: Arc<Block>,
    /// Offset of the region's first byte in the block.
    start: usize,
    region: Region,
    len_bytes: u64,
    contiguous: bool,
}

impl Span {
    /// `region` in the block that `find` gives for (address, bytes including gaps).
    ///
    /// # Errors
    /// `INVALID_VALUE` if there is no such block or the region's extent does not fit 64 bits.
    pub(crate) fn new(region: Region, find: impl FnOnce(u64, u64) -> Option<Arc<Block>>) -> HipResult<Self> {
        let span = || {
            let (len_bytes, span_bytes) = (region.len_bytes()?, region.span_bytes()?);
            let block = find(region.ptr, span_bytes)?;
            let start = block.exact_offset(region.ptr, span_bytes)?;
            Some(Self { block, start, region, len_bytes, contiguous: region.is_contiguous() })
        };
        span().ok_or(HipError::INVALID_VALUE)
    }

    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Returns the longest contiguous run from packed offset `offset` on: offset in the block, number of bytes, and the column
    /// of the row at which it starts.
    fn run_at(&self, offset: u64) -> Option<(usize, u64, u64)> {
        let left = self.len_bytes.checked_sub(offset).filter(|&left| left > 0)?;
        let Region { pitch, slice, width, height, .. } = self.region;
        let (row, column) = (offset / width, offset % width);
        if self.contiguous {
            return Some((self.start + offset as usize, left, column));
        }
        let (slices, rows) = (row / height, row % height);
        Some((self.start + (slices * slice + rows * pitch + column) as usize, width - column, column))
    }

    /// Writes `bytes` at packed offset `offset`.
    ///
    /// # Errors
    /// `INVALID_VALUE` if they do not fit.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> HipResult<()> {
        self.fits(offset, bytes.len())?;
        let (mut offset, mut bytes) = (offset, bytes);
        while let Some((at, run, _)) = self.run_at(offset).filter(|_| !bytes.is_empty()) {
            let (now, later) = bytes.split_at(usize::try_from(run).unwrap_or(usize::MAX).min(bytes.len()));
            self.block.write_by(self.route(now.len()), at, now);
            (offset, bytes) = (offset + now.len() as u64, later);
        }
        Ok(())
    }

    /// Fills `out` with packed bytes from `offset` on.
    ///
    /// # Errors
    /// `INVALID_VALUE` if there are not as many.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> HipResult<()> {
        self.fits(offset, out.len())?;
        let (mut offset, mut out) = (offset, out);
        while let Some((at, run, _)) = self.run_at(offset).filter(|_| !out.is_empty()) {
            let (now, later) = out.split_at_mut(usize::try_from(run).unwrap_or(usize::MAX).min(out.len()));
            self.block.read(at, now);
            (offset, out) = (offset + now.len() as u64, later);
        }
        Ok(())
    }

    /// Returns the way that the next `len` bytes go to this memory.
    fn route(&self, len: usize) -> Route {
        let is_far = self.len_bytes >= CACHED_MAX_BYTES && len >= FAR_MIN_BYTES;
        if is_far { Route::Memory } else { Route::Cache }
    }

    fn fits(&self, offset: u64, len: usize) -> HipResult<()> {
        let end = offset.checked_add(len as u64);
        end.filter(|&end| end <= self.len_bytes).map(|_| ()).ok_or(HipError::INVALID_VALUE)
    }
}

/// Bytes of memory that is written as a whole of which a processor's caches may still have the first when the last are written.
const CACHED_MAX_BYTES: u64 = 8 << 20;
/// Bytes for which it pays to go past the caches.
const FAR_MIN_BYTES: usize = 4096;
/// Bytes that one turn of an executor thread moves at most: some milliseconds.
const TURN_BYTES: u64 = 1 << 20;
/// Bytes on their way from one block to another.
const CHUNK_BYTES: usize = 16 << 10;

/// A command that moves bytes.
#[derive(Debug)]
pub(crate) enum Transfer {
    /// Bytes that the context was given.
    Write {
        /// The destination.
        dst: Span,
        /// The bytes, as many as `dst` has.
        bytes: Box<[u8]>,
    },
    /// Device to device; equal width, height and depth.
    Copy {
        /// The destination.
        dst: Span,
        /// The source.
        src: Span,
    },
    /// A pattern.
    Fill {
        /// The destination.
        dst: Span,
        /// What it consists of.
        pattern: Pattern,
    },
}

/// The low bytes of a value over and over. It is laid out only while a fill runs: any number of fills may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern {
    value: u32,
    /// Number of bytes after which it repeats: 1, 2 or 4.
    element_bytes: u32,
}

impl Pattern {
    /// Returns the pattern of the low `element_bytes` bytes of `value`.
    ///
    /// # Errors
    /// `INVALID_VALUE` for another element size than 1, 2 or 4.
    pub(crate) fn new(value: u32, element_bytes: u32) -> HipResult<Self> {
        let is_good = matches!(element_bytes, 1 | 2 | 4);
        if is_good { Ok(Self { value, element_bytes }) } else { Err(HipError::INVALID_VALUE) }
    }

    /// Lays out the first `len` bytes at the beginning of `bytes`; returns those with an element more.
    fn lay_out(self, bytes: &mut [u8; CHUNK_BYTES + 4], len: usize) -> &[u8] {
        let element_bytes = self.element_bytes as usize;
        let len = (len.next_multiple_of(element_bytes) + element_bytes).min(bytes.len());
        let bytes = &mut bytes[..len];
        for chunk in bytes.chunks_exact_mut(element_bytes) {
            chunk.copy_from_slice(&self.value.to_le_bytes()[..element_bytes]);
        }
        bytes
    }
}

impl Transfer {
    /// Returns the bytes of host memory that it carries.
    pub(crate) fn carried_bytes(&self) -> usize {
        match self {
            Self::Write { bytes, .. } => bytes.len(),
            Self::Copy { .. } | Self::Fill { .. } => 0,
        }
    }

    /// Bytes to move.
    pub(crate) fn len_bytes(&self) -> u64 {
        let (Self::Write { dst, .. } | Self::Copy { dst, .. } | Self::Fill { dst, .. }) = self;
        dst.len_bytes()
    }

    /// Returns what it moves, as it is told to what sees the work.
    pub(crate) fn moved(&self) -> Moved {
        match self {
            Self::Write { dst, .. } | Self::Fill { dst, .. } => Moved::Write { dst: dst.region },
            Self::Copy { dst, src } => Moved::Copy { dst: dst.region, src: src.region },
        }
    }

    /// Moves a turn's worth of the packed bytes from `done` on; returns how many are done then.
    pub(crate) fn advance(&self, done: u64) -> HipResult<u64> {
        let end = self.len_bytes().min(done.saturating_add(TURN_BYTES));
        let mut offset = done;
        let mut buffer = [0; CHUNK_BYTES + 4];
        if let Self::Fill { dst, pattern } = self {
            let longest = (end - offset).min(CHUNK_BYTES as u64) as usize;
            let laid_out = pattern.lay_out(&mut buffer, longest);
            let period = u64::from(pattern.element_bytes);
            while offset < end {
                let (_, run, column) = dst.run_at(offset).ok_or(HipError::INVALID_VALUE)?;
                let len = run.min(end - offset).min(CHUNK_BYTES as u64) as usize;
                let phase = (column % period) as usize;
                let bytes = laid_out.get(phase..phase + len).ok_or(HipError::INVALID_VALUE)?;
                dst.write(offset, bytes)?;
                offset += len as u64;
            }
            return Ok(end);
        }
        while offset < end {
            let len = (end - offset).min(CHUNK_BYTES as u64) as usize;
            match self {
                Self::Write { dst, bytes } => {
                    let bytes = bytes.get(offset as usize..end as usize).ok_or(HipError::INVALID_VALUE)?;
                    dst.write(offset, bytes)?;
                    offset = end;
                    continue;
                }
                Self::Copy { dst, src } if !Arc::ptr_eq(&dst.block, &src.block) => {
                    let (to, to_run, _) = dst.run_at(offset).ok_or(HipError::INVALID_VALUE)?;
                    let (from, from_run, _) = src.run_at(offset).ok_or(HipError::INVALID_VALUE)?;
                    let len = to_run.min(from_run).min(end - offset);
                    dst.block.copy_by(dst.route(len as usize), to, &src.block, from, len as usize);
                    offset += len;
                    continue;
                }
                Self::Copy { dst, src } => {
                    let chunk = buffer.get_mut(..len).ok_or(HipError::INVALID_VALUE)?;
                    // From the end if the destination overlaps the source from above, as memmove does.
                    let at = if overlaps_from_above(dst, src) {
                        self.len_bytes() - offset - len as u64
                    } else {
                        offset
                    };
                    src.read(at, chunk)?;
                    dst.write(at, chunk)?;
                }
                Self::Fill { .. } => return Ok(end),
            }
            offset += len as u64;
        }
        Ok(end)
    }
}

fn overlaps_from_above(dst: &Span, src: &Span) -> bool {
    Arc::ptr_eq(&dst.block, &src.block) && dst.start > src.start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(len: usize) -> Arc<Block> {
        let block = Block::new(0x1000, len as u64).unwrap();
        block.write(0, &(0..len).map(|i| i as u8).collect::<Vec<_>>());
        Arc::new(block)
    }

    fn span(block: &Arc<Block>, region: Region) -> Span {
        Span::new(region, |_, _| Some(Arc::clone(block))).unwrap()
    }

    fn bytes(block: &Block) -> Vec<u8> {
        let mut out = vec![0; block.len_bytes() as usize];
        block.read(0, &mut out);
        out
    }

    #[test]
    fn a_pitched_region_leaves_its_gaps_alone() {
        let memory = block(64);
        let region = Region { ptr: 0x1003, pitch: 10, slice: 30, width: 3, height: 2, depth: 2 };
        let dst = span(&memory, region);
        Transfer::Write { dst: dst.clone(), bytes: Box::from(&b"abcdefghijkl"[..]) }.advance(0).unwrap();
        let now = bytes(&memory);
        assert_eq!(&now[3..6], b"abc");
        assert_eq!(&now[13..16], b"def");
        assert_eq!(&now[33..36], b"ghi");
        assert_eq!(&now[43..46], b"jkl");
        let changed = now.iter().enumerate().filter(|&(i, &byte)| byte != i as u8).count();
        assert_eq!(changed, 12);
        let mut packed = [0; 5];
        dst.read(4, &mut packed).unwrap();
        assert_eq!(&packed, b"efghi");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let memory = block(64);
        let refused = |region| Span::new(region, |_, _| Some(Arc::clone(&memory))).is_err();
        assert!(refused(Region::flat(0x1000, 65)));
        assert!(refused(Region::flat(0xfff, 1)));
        assert!(refused(Region { ptr: 0x1000, pitch: u64::MAX, slice: 0, width: 1, height: 3, depth: 1 }));
        assert!(refused(Region { ptr: 0x1000, pitch: 61, slice: 0, width: 4, height: 2, depth: 1 }));
        let dst = span(&memory, Region::flat(0x1000, 8));
        assert!(dst.write(4, &[0; 5]).is_err());
        assert!(dst.read(u64::MAX, &mut [0; 2]).is_err());
    }

    #[test]
    fn overlapping_copies_move_what_was_there_before() {
        for (from, to) in [(0, 5), (5, 0)] {
            let memory = block(3 * CHUNK_BYTES);
            let before = bytes(&memory);
            let len = 2 * CHUNK_BYTES + 77;
            let flat = |at: usize| span(&memory, Region::flat(0x1000 + at as u64, len as u64));
            Transfer::Copy { dst: flat(to), src: flat(from) }.advance(0).unwrap();
            assert_eq!(bytes(&memory)[to..to + len], before[from..from + len]);
        }
    }

    #[test]
    fn fills_of_every_width_start_with_the_low_byte() {
        for (element, expected) in
            [(1, [4, 4, 4, 4, 4, 4, 4]), (2, [4, 3, 4, 3, 4, 3, 4]), (4, [4, 3, 2, 1, 4, 3, 2])]
        {
            let memory = block(40_000);
            let fill = |region| Transfer::Fill {
                dst: span(&memory, region),
                pattern: Pattern::new(0x0102_0304, element).unwrap(),
            };
            assert_eq!(fill(Region::flat(0x1001, 33_000)).advance(0), Ok(33_000));
            let now = bytes(&memory);
            assert_eq!(now[1..8], expected);
            assert_eq!(now[0], 0);
            assert_eq!(now[33_001], 33_001_usize as u8);
            assert!(now[1..33_001].iter().enumerate().all(|(i, &b)| b == expected[i % 4]));
            let rows = Region { ptr: 0x1000 + 100, pitch: 16, slice: 0, width: 8, height: 3, depth: 1 };
            fill(rows).advance(0).unwrap();
            assert_eq!(bytes(&memory)[132..139], expected);
        }
        assert!(Pattern::new(0, 3).is_err());
    }
}
