//! Errors in images, ELF files and their metadata.

use thiserror::Error;

/// Why bytes are not an image or cannot be decompressed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ImageError {
    /// The bytes are neither ELF nor a bundle nor a compressed bundle.
    #[error("neither an ELF file nor an offload bundle nor a compressed bundle")]
    UnknownFormat,
    /// The image is shorter than its headers say.
    #[error("the image needs {needed} bytes and has {len}")]
    Truncated {
        /// Minimum size according to the headers, in bytes.
        needed: u64,
        /// Size of the image in bytes.
        len: u64,
    },
    /// A length exceeds [`crate::IMAGE_MAX_BYTES`] or a limit of [`crate::Limits`].
    #[error("a length of {len} bytes exceeds the limit of {limit}")]
    TooLong {
        /// The length that the image has or claims, in bytes.
        len: u64,
        /// The limit in bytes.
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
    /// A part of the image is invalid; the text says which.
    #[error("malformed image: {0}")]
    Malformed(&'static str),
    /// The version of a compressed bundle is not 1, 2 or 3.
    #[error("unknown version {0} of a compressed bundle")]
    Version(u16),
    /// The compression method is neither 0 (zlib) nor 1 (zstd).
    #[error("unknown compression method {0}")]
    Method(u16),
    /// The compressed stream is damaged.
    #[error("the compressed bundle is damaged: {0}")]
    Damaged(String),
    /// The uncompressed bundle does not match the hash in its header.
    #[error("the uncompressed bundle has the hash {found:#018x} instead of {expected:#018x}")]
    Hash {
        /// Hash of the uncompressed bundle.
        found: u64,
        /// Hash in the header.
        expected: u64,
    },
}

/// Why bytes are not a code object.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseError {
    /// The bytes are not an ELF file for AMDGPU.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// An ELF structure is invalid or lies outside of the file.
    #[error("malformed ELF file: {0}")]
    Elf(String),
    /// The file is not for HSA, the ABI of HIP programs.
    #[error("an ELF file for OS ABI {0}, not for HSA")]
    OsAbi(u8),
    /// The code object version is not 4, 5 or 6.
    #[error("unknown ELF ABI version {0} (code object versions 4 to 6 have ABI versions 2 to 4)")]
    AbiVersion(u8),
    /// The file is neither a shared nor a relocatable object.
    #[error("an ELF file of type {0}, not a shared or relocatable object")]
    NotLinked(u16),
    /// Neither `e_flags` nor the metadata names a known processor.
    #[error("unknown processor number {0:#x}, and the metadata names no processor")]
    Processor(u8),
    /// The metadata cannot be read.
    #[error("kernel metadata: {0}")]
    Metadata(#[from] MetadataError),
    /// What has to be kept of the file needs more memory than a code object of its length may have, or than the caller grants.
    #[error("its kernels, variables and relocations need more than {limit} bytes of memory")]
    Tables {
        /// The limit in bytes.
        limit: u64,
    },
    /// The file has a relocation of an unknown type.
    #[error("unknown relocation type {0}")]
    Relocation(u32),
    /// The descriptor of a kernel is not in the file.
    #[error("the descriptor of kernel {0} is not in the file")]
    Descriptor(String),
}

/// Why metadata cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MetadataError {
    /// A note ends in the middle of a value.
    #[error("it ends in the middle of a value")]
    Truncated,
    /// A value has the wrong type for its key; the text says which type is expected.
    #[error("a value is not {0}")]
    Kind(&'static str),
    /// `amdhsa.version` is not 1.x.
    #[error("unknown metadata version {major}.{minor}")]
    Version {
        /// Major version.
        major: u64,
        /// Minor version.
        minor: u64,
    },
    /// A key that every kernel or argument has is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// An argument lies outside of the kernarg segment, or the segment exceeds [`crate::KERNARG_MAX_BYTES`].
    #[error("kernel {kernel}: {what} ends at byte {end} of a kernarg segment of {size} bytes")]
    Layout {
        /// Name of the kernel.
        kernel: String,
        /// The part that does not fit.
        what: &'static str,
        /// Offset of its end in bytes.
        end: u64,
        /// Size of the segment in bytes, or the limit.
        size: u32,
    },
}

/// Returns the error for an invalid ELF structure.
pub(crate) fn wrong(what: &str) -> ParseError {
    ParseError::Elf(what.to_owned())
}
