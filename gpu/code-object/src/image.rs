//! What kind of file it is, and where it ends: the registration functions and `hipModuleLoadData` give a pointer
//! without a length.

use thiserror::Error;

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::{bundle, compressed};

/// No code object, bundle or compressed bundle is longer than this (4 GiB).
pub const IMAGE_MAX_BYTES: u64 = 1 << 32;

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

/// What a prefix of an image says about its length; counted from the image's first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The image has at least this many bytes, more than were given; give that many to learn more.
    More(u64),
    /// The image has this many bytes.
    Total(u64),
}

/// Why bytes are not an image or cannot be unpacked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ImageError {
    /// Neither ELF nor bundle nor compressed bundle.
    #[error("neither an ELF file nor an offload bundle nor a compressed bundle")]
    UnknownFormat,
    /// The headers promise more bytes than there are.
    #[error("the image needs {needed} bytes and has {len}")]
    Truncated {
        /// Bytes that the headers promise, at least.
        needed: u64,
        /// Bytes there are.
        len: u64,
    },
    /// A length over a limit of [`IMAGE_MAX_BYTES`] or [`crate::Limits`].
    #[error("a length of {len} bytes is over the limit of {limit}")]
    TooLong {
        /// The length that the image claims or has.
        len: u64,
        /// The limit.
        limit: u64,
    },
    /// An ELF file that is not 64-bit little-endian AMDGPU.
    #[error("an ELF file for another machine (class {class}, data {data}, machine {machine})")]
    NotAmdgpu {
        /// `EI_CLASS`, 2 in a code object.
        class: u8,
        /// `EI_DATA`, 1 in a code object.
        data: u8,
        /// `e_machine`, 224 in a code object.
        machine: u16,
    },
    /// A structure that makes no sense.
    #[error("malformed image: {0}")]
    Malformed(&'static str),
    /// A compressed bundle of a version other than 1, 2 and 3.
    #[error("compressed bundle version {0} is not known")]
    Version(u16),
    /// A compression method other than 0 (zlib) and 1 (zstd).
    #[error("compression method {0} is not known")]
    Method(u16),
    /// The compressed stream is damaged.
    #[error("the compressed bundle is damaged: {0}")]
    Damaged(String),
    /// The uncompressed bytes are not those that were compressed.
    #[error("the uncompressed bundle's hash is {found:#018x}, its header says {expected:#018x}")]
    Hash {
        /// Hash of the bytes.
        found: u64,
        /// Hash in the header.
        expected: u64,
    },
}

impl Format {
    /// The kind of image that starts with these bytes; `None` if it is none, or less than its magic is there
    /// (24 bytes suffice).
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

/// Finds an image's length from its first bytes, for a caller who has a pointer only.
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
    /// Ready for the first bytes of an image.
    pub fn new() -> Measure {
        Measure::default()
    }

    /// Looks at `prefix`, all bytes of the image that are known so far: what was given before and more.
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

/// One step of [`Measure`] without memory of the steps before.
pub fn needed_len(prefix: &[u8]) -> Result<Need, ImageError> {
    Measure::new().advance(prefix)
}

/// The length in bytes of the image that starts at `bytes[0]`, all of which must be there.
pub fn image_len(bytes: &[u8]) -> Result<usize, ImageError> {
    match needed_len(bytes)? {
        Need::Total(len) if len <= bytes.len() as u64 => Ok(len as usize),
        Need::Total(needed) | Need::More(needed) => {
            Err(ImageError::Truncated { needed, len: bytes.len() as u64 })
        }
    }
}

/// The header fields that every ELF code object must have.
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

/// An ELF file ends where the last of its header tables, segments and sections ends.
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
