//! Offload bundles: one code object per architecture, behind a table.
//!
//! `__CLANG_OFFLOAD_BUNDLE__`, u64 count, then per entry u64 offset from the magic, u64 size, u64 length of the id
//! and the id. Little endian. Entries come in any order; the host's is empty.

use std::ops::Range;

use crate::bytes::u64_at;
use crate::error::ImageError;
use crate::need::{IMAGE_MAX_BYTES, Need};

pub(crate) const MAGIC: &[u8; 24] = b"__CLANG_OFFLOAD_BUNDLE__";
/// Maximum number of entries, more than there are architectures.
const ENTRIES_MAX: u64 = 4096;
/// Maximum length of an entry's id; a triple with all features has fewer than 100 bytes.
const ID_MAX_BYTES: u64 = 1024;

/// The table of an offload bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    entries: Vec<BundleEntry>,
}

/// One entry of an offload bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleEntry {
    /// Kind and target: `hipv4-amdgcn-amd-amdhsa--gfx942`.
    pub id: String,
    /// Range of its bytes in the image that [`Bundle::parse`] was given.
    pub range: Range<usize>,
}

impl Bundle {
    /// Parses the table of the bundle at the start of `image`; bytes behind the bundle are ignored.
    pub fn parse(image: &[u8]) -> Result<Bundle, ImageError> {
        match walk(image)? {
            Walk::More(needed) => Err(ImageError::Truncated { needed, len: image.len() as u64 }),
            Walk::Done { end, .. } if end > image.len() as u64 => {
                Err(ImageError::Truncated { needed: end, len: image.len() as u64 })
            }
            Walk::Done { entries, .. } => Ok(Bundle { entries }),
        }
    }

    /// Returns the entries in the order of the table.
    pub fn entries(&self) -> &[BundleEntry] {
        &self.entries
    }
}

/// Returns how many bytes the bundle that starts with `prefix` has.
pub(crate) fn needed(prefix: &[u8]) -> Result<Need, ImageError> {
    Ok(match walk(prefix)? {
        Walk::More(needed) => Need::More(needed),
        Walk::Done { end, .. } => Need::Total(end),
    })
}

enum Walk {
    More(u64),
    Done { entries: Vec<BundleEntry>, end: u64 },
}

fn walk(prefix: &[u8]) -> Result<Walk, ImageError> {
    let mut at = MAGIC.len();
    if !prefix.starts_with(MAGIC) {
        return Err(ImageError::Malformed("not an offload bundle"));
    }
    let Some(count) = u64_at(prefix, at) else { return Ok(Walk::More(at as u64 + 8)) };
    if count > ENTRIES_MAX {
        return Err(ImageError::Malformed("an offload bundle with more than 4096 entries"));
    }
    at += 8;
    let mut entries = Vec::new();
    let mut end = 0u64;
    for _ in 0..count {
        let (Some(offset), Some(size), Some(id_len)) =
            (u64_at(prefix, at), u64_at(prefix, at + 8), u64_at(prefix, at + 16))
        else {
            return Ok(Walk::More(at as u64 + 24));
        };
        if id_len > ID_MAX_BYTES {
            return Err(ImageError::Malformed("an offload bundle with an entry id longer than 1024 bytes"));
        }
        at += 24;
        let Some(id) = prefix.get(at..at + id_len as usize) else {
            return Ok(Walk::More(at as u64 + id_len));
        };
        at += id.len();
        let entry_end = offset.checked_add(size).filter(|end| *end <= IMAGE_MAX_BYTES);
        let entry_end = entry_end
            .ok_or(ImageError::TooLong { len: offset.saturating_add(size), limit: IMAGE_MAX_BYTES })?;
        // An empty entry's offset is not part of the image: the host's points anywhere.
        let range = if size == 0 {
            0..0
        } else {
            end = end.max(entry_end);
            offset as usize..entry_end as usize
        };
        entries.push(BundleEntry { id: String::from_utf8_lossy(id).into_owned(), range });
    }
    Ok(Walk::Done { entries, end: end.max(at as u64) })
}
