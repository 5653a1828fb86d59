//! Bounds what a code object costs beyond its own bytes: how often its file is read, and the memory of what is made of it.
//!
//! Headers may name the same bytes any number of times, and a byte of metadata can become a table entry of a hundred. So each byte of the
//! file is paid for once, as a segment and as notes or relocations, and each table entry is paid for before it is made.

use std::ops::Range;

use crate::error::{ParseError, wrong};
use crate::layout::Segment;

/// Maximum number of segments that are loaded; linkers write up to 5, and compilers that do not link about 10 sections.
pub const SEGMENTS_MAX: usize = 64;

/// Maximum memory of a code object's tables, as a multiple of its file's length. Real ones need less than a quarter of it.
const TABLES_PER_BYTE: u64 = 24;
/// Memory that the tables of any code object may have, however short its file is.
const TABLES_FREE_BYTES: u64 = 64 << 10;

/// Memory of one word of code that an emulator has decoded, at most; its own copy of the word included.
pub const DECODED_BYTES_PER_WORD: u64 = 80;

/// Maximum size that a compressed bundle unpacks to, for each byte of the bundle; real ones come to about 20.
const UNPACKED_PER_BYTE: u64 = 256;
/// Size that any compressed bundle may unpack to, however short it is.
const UNPACKED_FREE_BYTES: u64 = 64 << 20;

/// Returns the maximum size that a compressed bundle with so many bytes may unpack to: unpacking takes time as well as memory.
pub(crate) fn unpacked_max_bytes(compressed_bytes: usize) -> u64 {
    UNPACKED_FREE_BYTES.saturating_add(UNPACKED_PER_BYTE.saturating_mul(compressed_bytes as u64))
}

/// Memory that an allocator needs for itself, for each allocation.
const ALLOCATION_BYTES: u64 = 16;

/// The bytes of the file, and of memory for tables, that a parser may still use.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// Bytes of notes and relocations that may still be read.
    file_bytes: u64,
    tables_max_bytes: u64,
    tables_bytes: u64,
}

impl Allowance {
    /// Creates the allowance for a file of this length, whose tables may have `room_bytes` of memory.
    pub(crate) fn new(file_len: usize, room_bytes: u64) -> Self {
        let own = TABLES_FREE_BYTES.saturating_add(TABLES_PER_BYTE.saturating_mul(file_len as u64));
        Self { file_bytes: file_len as u64, tables_max_bytes: own.min(room_bytes), tables_bytes: 0 }
    }

    /// Pays for reading so many bytes of notes or relocations.
    pub(crate) fn read(&mut self, bytes: u64) -> Result<(), ParseError> {
        let left = self.file_bytes.checked_sub(bytes);
        self.file_bytes = left.ok_or_else(|| wrong("notes and relocations that are longer than the file"))?;
        Ok(())
    }

    /// Pays for `count` entries of a type in a table.
    pub(crate) fn entries<T>(&mut self, count: usize) -> Result<(), ParseError> {
        self.memory((count as u64).saturating_mul(size_of::<T>() as u64))
    }

    /// Pays for a copy of a text.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), ParseError> {
        self.memory(text.len() as u64 + ALLOCATION_BYTES)
    }

    fn memory(&mut self, bytes: u64) -> Result<(), ParseError> {
        let sum = self.tables_bytes.saturating_add(bytes);
        if sum > self.tables_max_bytes {
            return Err(ParseError::Tables { limit: self.tables_max_bytes });
        }
        self.tables_bytes = sum;
        Ok(())
    }

    /// Returns the memory that was paid for.
    pub(crate) fn tables_bytes(&self) -> u64 {
        self.tables_bytes
    }
}

/// Checks that there are few segments and that no two have the same bytes, neither in the file nor in memory.
pub(crate) fn check_segments(segments: &[Segment]) -> Result<(), ParseError> {
    if segments.len() > SEGMENTS_MAX {
        return Err(wrong("more than 64 segments"));
    }
    let loaded = segments.iter().map(|segment| segment.vaddr..segment.vaddr + segment.memory_bytes);
    if overlap(loaded.collect()) {
        return Err(wrong("segments that overlap in memory"));
    }
    let stored = segments.iter().map(|segment| segment.file.start as u64..segment.file.end as u64);
    if overlap(stored.collect()) {
        return Err(wrong("segments that overlap in the file"));
    }
    Ok(())
}

fn overlap(mut ranges: Vec<Range<u64>>) -> bool {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by_key(|range| range.start);
    ranges.windows(2).any(|pair| matches!(pair, [first, second] if first.end > second.start))
}
