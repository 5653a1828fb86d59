//! Compressed offload bundles, `clang --offload-compress`.
//!
//! `CCOB`, u16 version, u16 method, then by version (little endian):
//!
//! | version | header bytes | fields |
//! |---|---|---|
//! | 1 | 20 | u32 uncompressed size, u64 hash |
//! | 2 | 24 | u32 total size with the header, u32 uncompressed size, u64 hash |
//! | 3 | 32 | u64 total size with the header, u64 uncompressed size, u64 hash |
//!
//! and the stream. The hash is the first 8 bytes of the uncompressed bundle's MD5.

use std::io::Read;

use flate2::{Decompress, FlushDecompress, Status};
use md5::{Digest, Md5};

use crate::bytes::{array, u16_at, u32_at, u64_at};
use crate::image::{ImageError, Need};
use crate::zstd::{self, BlockHeader, ZstdError};

pub(crate) const MAGIC: &[u8] = b"CCOB";

/// What unpacking may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A compressed bundle that claims or has more uncompressed bytes than this is refused.
    pub uncompressed_max_bytes: u64,
}

/// 2 GiB uncompressed.
impl Default for Limits {
    fn default() -> Limits {
        Limits { uncompressed_max_bytes: 2 << 30 }
    }
}

/// How a bundle is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// A zlib stream (method 0).
    Zlib,
    /// A zstd frame (method 1).
    Zstd,
}

/// The header of a compressed bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressedHeader {
    /// 1, 2 or 3.
    pub version: u16,
    /// The stream's kind.
    pub method: Method,
    /// Bytes of the header; the stream starts there.
    pub header_bytes: usize,
    /// Bytes of header and stream; version 1 does not say.
    pub total_bytes: Option<u64>,
    /// Bytes of the bundle inside.
    pub uncompressed_bytes: u64,
    /// First 8 bytes of the MD5 of the bundle inside, little endian.
    pub hash: u64,
}

impl CompressedHeader {
    /// Reads the header at the start of `image`.
    pub fn parse(image: &[u8]) -> Result<CompressedHeader, ImageError> {
        match Self::read(image)? {
            Ok(header) => Ok(header),
            Err(needed) => Err(ImageError::Truncated { needed, len: image.len() as u64 }),
        }
    }

    /// The header, or how many bytes are needed to read it.
    fn read(image: &[u8]) -> Result<Result<CompressedHeader, u64>, ImageError> {
        if !image.starts_with(MAGIC) {
            return Err(ImageError::Malformed("not a compressed bundle"));
        }
        let (Some(version), Some(method)) = (u16_at(image, 4), u16_at(image, 6)) else { return Ok(Err(8)) };
        let header_bytes = match version {
            1 => 20,
            2 => 24,
            3 => 32,
            _ => return Err(ImageError::Version(version)),
        };
        let method = match method {
            0 => Method::Zlib,
            1 => Method::Zstd,
            _ => return Err(ImageError::Method(method)),
        };
        let narrow = |at| u32_at(image, at).map(u64::from);
        let fields = match version {
            1 => (Some(None), narrow(8), u64_at(image, 12)),
            2 => (narrow(8).map(Some), narrow(12), u64_at(image, 16)),
            _ => (u64_at(image, 8).map(Some), u64_at(image, 16), u64_at(image, 24)),
        };
        let (Some(total_bytes), Some(uncompressed_bytes), Some(hash)) = fields else {
            return Ok(Err(header_bytes as u64));
        };
        if total_bytes.is_some_and(|total| total < header_bytes as u64) {
            return Err(ImageError::Malformed("a compressed bundle shorter than its header"));
        }
        Ok(Ok(CompressedHeader { version, method, header_bytes, total_bytes, uncompressed_bytes, hash }))
    }
}

/// The bundle inside the compressed bundle that starts at `image[0]`; its length and hash are checked.
///
/// Memory grows with what the stream yields, never with what the header claims.
pub fn decompress(image: &[u8], limits: Limits) -> Result<Vec<u8>, ImageError> {
    let header = CompressedHeader::parse(image)?;
    let len = header.uncompressed_bytes;
    if len > limits.uncompressed_max_bytes {
        return Err(ImageError::TooLong { len, limit: limits.uncompressed_max_bytes });
    }
    let end = header.total_bytes.unwrap_or(image.len() as u64);
    let stream = usize::try_from(end).ok().and_then(|end| image.get(header.header_bytes..end));
    let stream = stream.ok_or(ImageError::Truncated { needed: end, len: image.len() as u64 })?;
    let damaged = |error: &dyn std::fmt::Display| ImageError::Damaged(error.to_string());
    let bundle = match header.method {
        Method::Zlib => {
            let mut bundle = Vec::new();
            // One byte more than claimed is enough to see that the claim is wrong.
            let result = flate2::read::ZlibDecoder::new(stream).take(len + 1).read_to_end(&mut bundle);
            result.map_err(|error| damaged(&error))?;
            bundle
        }
        Method::Zstd => {
            let limit = usize::try_from(len).map_err(|error| damaged(&error))?;
            zstd::decompress(stream, limit).map_err(|error| damaged(&error))?
        }
    };
    if bundle.len() as u64 != len {
        return Err(ImageError::Damaged(format!("it unpacks to another length than {len} bytes")));
    }
    let found = hash(&bundle);
    if found != header.hash {
        return Err(ImageError::Hash { found, expected: header.hash });
    }
    Ok(bundle)
}

fn hash(bundle: &[u8]) -> u64 {
    let digest = Md5::digest(bundle);
    array(&digest, 0).map_or(0, u64::from_le_bytes)
}

/// Progress in finding the end of a version 1 stream.
#[derive(Debug)]
pub(crate) enum StreamEnd {
    /// The next zstd block header is at this offset of the image.
    Zstd { block_at: usize, checksum_bytes: usize },
    /// The zlib stream was inflated up to this offset of the image.
    Zlib { inflate: Decompress, at: usize },
}

/// How many bytes the compressed bundle that starts with `prefix` has.
pub(crate) fn needed(prefix: &[u8], stream: &mut Option<StreamEnd>) -> Result<Need, ImageError> {
    let header = match CompressedHeader::read(prefix)? {
        Ok(header) => header,
        Err(needed) => return Ok(Need::More(needed)),
    };
    if let Some(total) = header.total_bytes {
        return Ok(Need::Total(total));
    }
    let state = match stream {
        Some(state) => state,
        None => stream.insert(match header.method {
            Method::Zlib => StreamEnd::Zlib { inflate: Decompress::new(true), at: header.header_bytes },
            Method::Zstd => {
                let frame = prefix.get(header.header_bytes..).unwrap_or_default();
                let Some(frame) = zstd::frame_header(frame).map_err(damaged_stream)? else {
                    return Ok(Need::More(header.header_bytes as u64 + 5));
                };
                let block_at = header.header_bytes + frame.bytes;
                StreamEnd::Zstd { block_at, checksum_bytes: frame.checksum_bytes }
            }
        }),
    };
    match state {
        StreamEnd::Zstd { block_at, checksum_bytes } => zstd_end(prefix, block_at, *checksum_bytes),
        StreamEnd::Zlib { inflate, at } => zlib_end(prefix, inflate, at, header.uncompressed_bytes),
    }
}

fn zstd_end(prefix: &[u8], block_at: &mut usize, checksum_bytes: usize) -> Result<Need, ImageError> {
    loop {
        let block = BlockHeader::read(prefix, *block_at).map_err(damaged_stream)?;
        let Some(block) = block else { return Ok(Need::More((*block_at + BlockHeader::BYTES) as u64)) };
        *block_at += BlockHeader::BYTES + block.body_bytes();
        if block.last {
            return Ok(Need::Total((*block_at + checksum_bytes) as u64));
        }
    }
}

fn damaged_stream(error: ZstdError) -> ImageError {
    ImageError::Damaged(error.to_string())
}

/// A deflate stream that has not ended is followed by at least this many bytes of checksum.
const ZLIB_TRAILER_BYTES: u64 = 4;

fn zlib_end(
    prefix: &[u8],
    inflate: &mut Decompress,
    at: &mut usize,
    uncompressed_bytes: u64,
) -> Result<Need, ImageError> {
    let mut sink = vec![0; 64 << 10];
    loop {
        let input = prefix.get(*at..).unwrap_or_default();
        let (read_before, made_before) = (inflate.total_in(), inflate.total_out());
        let status = inflate.decompress(input, &mut sink, FlushDecompress::None);
        let status = status.map_err(|error| ImageError::Damaged(error.to_string()))?;
        let read = inflate.total_in() - read_before;
        *at += read as usize;
        if inflate.total_out() > uncompressed_bytes {
            return Err(ImageError::Damaged(format!("it unpacks to more than {uncompressed_bytes} bytes")));
        }
        if status == Status::StreamEnd {
            return Ok(Need::Total(*at as u64));
        }
        if read == 0 && inflate.total_out() == made_before {
            // In the trailer itself fewer bytes may be left, but never none.
            let sure = if inflate.total_out() == uncompressed_bytes { 1 } else { ZLIB_TRAILER_BYTES };
            return Ok(Need::More(prefix.len() as u64 + sure));
        }
    }
}
