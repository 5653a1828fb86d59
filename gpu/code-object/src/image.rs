//! Formats of images and their lengths: the registration functions and `hipModuleLoadData` are given a pointer without a
//! length.

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::error::ImageError;
use crate::need::{IMAGE_MAX_BYTES, Need};
use crate::{bundle, compressed};

/// EM_AMDGPU.
pub(crate) const MACHINE_AMDGPU: u16 = 224;

/// The three kinds of file that hold GPU code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A bare ELF code object.
    Elf,
    /// An uncompressed offload bundle.
    Bundle,
    /// A compressed offload bundle (`CCOB`).
    CompressedBundle,
}

impl Format {
    /// Returns the format of the image that starts with these bytes; `None` if it has none or the bytes are too few (24
    /// always suffice).
    pub fn sniff(bytes: &[u8]) -> Option<Format> {
        if bytes.starts_with(b"\x7fELF") {
            Some(Format::Elf)
        } else if bytes.starts_with(compressed::MAGIC) {
            Some(Format::CompressedBundle)
        } else if bytes.starts_with(bundle::MAGIC) {
            Some(Format::Bundle)
        } else {
            None
        }
    }
}

/// Finds an image's length from its first bytes, for a caller that has only a pointer.
///
/// Call [`Measure::advance`] with ever longer prefixes: each [`Need::More`] is a number of bytes that the image is
/// sure to have, so nothing outside the image needs to be read. A caller may give more than was asked for. Files
/// say their length in their headers, with one exception: a compressed bundle of version 1, whose stream ends
/// itself. Such a stream is unpacked and the output is dropped. A zstd frame says before each block how long the
/// block is; deflate does not announce how long it is, so `More` then asks for a few bytes at a time: give what is
/// left of the memory page, which can always be read.
#[derive(Debug, Default)]
pub struct Measure {
    stream: Option<compressed::StreamEnd>,
}

impl Measure {
    /// Creates a measure for a new image.
    pub fn new() -> Measure {
        Measure::default()
    }

    /// Reads `prefix`, all bytes of the image that are known so far: those of the last call and more.
    pub fn advance(&mut self, prefix: &[u8]) -> Result<Need, ImageError> {
        let need = match Format::sniff(prefix) {
            Some(Format::Elf) => elf_needed(prefix)?,
            Some(Format::Bundle) => bundle::needed(prefix)?,
            Some(Format::CompressedBundle) => compressed::needed(prefix, &mut self.stream)?,
            None => match [b"\x7fELF".as_slice(), compressed::MAGIC, bundle::MAGIC]
                .iter()
                .find(|magic| magic.starts_with(prefix))
            {
                Some(magic) => Need::More(magic.len() as u64),
                None => return Err(ImageError::UnknownFormat),
            },
        };
        let (Need::More(len) | Need::Total(len)) = need;
        if len > IMAGE_MAX_BYTES {
            return Err(ImageError::TooLong { len, limit: IMAGE_MAX_BYTES });
        }
        Ok(need)
    }
}

/// Returns the length of the image that begins with `prefix`, as far as those bytes determine it.
pub fn needed_len(prefix: &[u8]) -> Result<Need, ImageError> {
    Measure::new().advance(prefix)
}

/// Returns the length in bytes of the image at the start of `bytes`, which have to contain all of it.
pub fn image_len(bytes: &[u8]) -> Result<usize, ImageError> {
    match needed_len(bytes)? {
        Need::Total(len) if len <= bytes.len() as u64 => Ok(len as usize),
        Need::Total(needed) | Need::More(needed) => {
            Err(ImageError::Truncated { needed, len: bytes.len() as u64 })
        }
    }
}

/// Checks the header fields that are the same in every ELF code object.
pub(crate) fn check_elf(header: &[u8]) -> Result<(), ImageError> {
    let truncated = || ImageError::Truncated { needed: ELF_HEADER_BYTES, len: header.len() as u64 };
    let [_, _, _, _, class, data, ..] = *header else { return Err(truncated()) };
    let machine = u16_at(header, 18).ok_or_else(truncated)?;
    if (class, data, machine) != (2, 1, MACHINE_AMDGPU) {
        return Err(ImageError::NotAmdgpu { class, data, machine });
    }
    Ok(())
}

const ELF_HEADER_BYTES: u64 = 64;
const PROGRAM_HEADER_BYTES: u64 = 56;
const SECTION_HEADER_BYTES: u64 = 64;
const SHT_NOBITS: u32 = 8;

/// Returns the length of an ELF file: the end of its last header table, segment or section.
fn elf_needed(prefix: &[u8]) -> Result<Need, ImageError> {
    let Some(header) = prefix.get(..ELF_HEADER_BYTES as usize) else {
        return Ok(Need::More(ELF_HEADER_BYTES));
    };
    check_elf(header)?;
    let short = || ImageError::Malformed("ELF header");
    let [program_at, section_at] =
        [u64_at(header, 32).ok_or_else(short)?, u64_at(header, 40).ok_or_else(short)?];
    let [program_size, programs, section_size, sections] =
        [54, 56, 58, 60].map(|at| u16_at(header, at).map_or(0, u64::from));
    if (programs != 0 && program_size != PROGRAM_HEADER_BYTES)
        || (section_at != 0 && section_size != SECTION_HEADER_BYTES)
        || programs == 0xffff
    {
        return Err(ImageError::Malformed("ELF header table"));
    }
    let end_of = |at: u64, len: u64| {
        at.checked_add(len).filter(|end| *end <= IMAGE_MAX_BYTES).ok_or(too_long(at, len))
    };
    let mut end = ELF_HEADER_BYTES;
    if programs != 0 {
        end = end.max(end_of(program_at, programs * PROGRAM_HEADER_BYTES)?);
    }
    // A count that does not fit is in the first section header instead.
    let mut sections = sections;
    if section_at != 0 {
        let first_end = end_of(section_at, SECTION_HEADER_BYTES)?;
        if sections == 0 {
            if (prefix.len() as u64) < first_end {
                return Ok(Need::More(first_end.max(end)));
            }
            sections = u64_at(prefix, section_at as usize + 32).ok_or_else(short)?;
        }
        let len =
            sections.checked_mul(SECTION_HEADER_BYTES).ok_or(ImageError::Malformed("ELF section count"))?;
        end = end.max(end_of(section_at, len)?);
    } else {
        sections = 0;
    }
    if (prefix.len() as u64) < end {
        return Ok(Need::More(end));
    }
    for index in 0..programs {
        let at = (program_at + index * PROGRAM_HEADER_BYTES) as usize;
        let (offset, len) =
            (u64_at(prefix, at + 8).ok_or_else(short)?, u64_at(prefix, at + 32).ok_or_else(short)?);
        if len != 0 {
            end = end.max(end_of(offset, len)?);
        }
    }
    for index in 0..sections {
        let at = (section_at + index * SECTION_HEADER_BYTES) as usize;
        let kind = u32_at(prefix, at + 4).ok_or_else(short)?;
        let (offset, len) =
            (u64_at(prefix, at + 24).ok_or_else(short)?, u64_at(prefix, at + 32).ok_or_else(short)?);
        // Section 0 is not a section: its size field may hold the count.
        if kind != SHT_NOBITS && kind != 0 && len != 0 {
            end = end.max(end_of(offset, len)?);
        }
    }
    Ok(Need::Total(end))
}

fn too_long(at: u64, len: u64) -> ImageError {
    ImageError::TooLong { len: at.saturating_add(len), limit: IMAGE_MAX_BYTES }
}
