//! Compressed offload bundles, as `clang --offload-compress` writes them.
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

use std::fmt::{self, Debug, Formatter};
use std::io::{self, Read};

use flate2::{Decompress, FlushDecompress, Status};
use md5::{Digest, Md5};
use zstd::stream::raw::{DParameter, Operation};

use crate::bytes::{array, u16_at, u32_at, u64_at};
use crate::cost::unpacked_max_bytes;
use crate::error::ImageError;
use crate::need::Need;

pub(crate) const MAGIC: &[u8] = b"CCOB";

/// Limits of decompression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum uncompressed size of a bundle. The bundle's own length sets another limit, and the lower one counts. A zstd frame with a
    /// window longer than the next power of two is refused too if the window exceeds 8 MiB, because its bundle would be too long. Windows
    /// over 2 GiB are always refused.
    pub uncompressed_max_bytes: u64,
}

/// The default is 2 GiB.
impl Default for Limits {
    fn default() -> Limits {
        Limits { uncompressed_max_bytes: 2 << 30 }
    }
}

/// Compression method of a bundle.
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
    /// Version of the format: 1, 2 or 3.
    pub version: u16,
    /// Compression method.
    pub method: Method,
    /// Size of the header in bytes; the compressed stream follows.
    pub header_bytes: usize,
    /// Size of header and stream in bytes; version 1 does not contain it.
    pub total_bytes: Option<u64>,
    /// Size of the uncompressed bundle in bytes.
    pub uncompressed_bytes: u64,
    /// First 8 bytes of the uncompressed bundle's MD5, little-endian.
    pub hash: u64,
}

impl CompressedHeader {
    /// Parses the header at the start of `image`.
    pub fn parse(image: &[u8]) -> Result<CompressedHeader, ImageError> {
        match Self::read(image)? {
            Ok(header) => Ok(header),
            Err(needed) => Err(ImageError::Truncated { needed, len: image.len() as u64 }),
        }
    }

    /// Parses the header; returns the number of bytes needed if `image` is too short.
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

/// Decompresses the compressed bundle at the start of `image`; checks its length and hash.
///
/// Memory in use grows with what the stream yields, never with what the header claims. libzstd reserves addresses for
/// the window that a zstd frame declares, within [`Limits`], and uses as much of it as the stream yields.
pub fn decompress(image: &[u8], limits: Limits) -> Result<Vec<u8>, ImageError> {
    let header = CompressedHeader::parse(image)?;
    let len = header.uncompressed_bytes;
    if len > limits.uncompressed_max_bytes {
        return Err(ImageError::TooLong { len, limit: limits.uncompressed_max_bytes });
    }
    if len > unpacked_max_bytes(image.len()) {
        return Err(ImageError::Malformed("a compressed bundle that says it is far longer than its stream"));
    }
    let end = header.total_bytes.unwrap_or(image.len() as u64);
    let stream = usize::try_from(end).ok().and_then(|end| image.get(header.header_bytes..end));
    let stream = stream.ok_or(ImageError::Truncated { needed: end, len: image.len() as u64 })?;
    let bundle = match header.method {
        Method::Zlib => read_past(flate2::read::ZlibDecoder::new(stream), len),
        Method::Zstd => zstd_reader(stream, limits).and_then(|reader| read_past(reader, len)),
    };
    let bundle = bundle.map_err(damaged)?;
    if bundle.len() as u64 > len {
        return Err(yields_more());
    }
    if bundle.len() as u64 != len {
        return Err(yields_less(len));
    }
    let found = hash(&bundle);
    if found != header.hash {
        return Err(ImageError::Hash { found, expected: header.hash });
    }
    Ok(bundle)
}

/// Bytes that are unpacked at a time.
const PIECE_BYTES: u64 = 64 << 10;

/// Reads to the end, but at most one byte more than `len`, which is enough to see that `len` is wrong. The memory for it doubles as bytes
/// come, and is never more than one byte over `len`.
fn read_past(mut reader: impl Read, len: u64) -> io::Result<Vec<u8>> {
    let max = len.saturating_add(1);
    let mut bytes = Vec::new();
    loop {
        let len = bytes.len() as u64;
        let piece = len.max(PIECE_BYTES).min(max.saturating_sub(len));
        bytes.try_reserve_exact(piece as usize)?;
        if piece == 0 || reader.by_ref().take(piece).read_to_end(&mut bytes)? == 0 {
            return Ok(bytes);
        }
    }
}

/// Opens the zstd frame at the start of `stream`; what follows the frame is not read.
fn zstd_reader(stream: &[u8], limits: Limits) -> io::Result<impl Read> {
    let mut reader = zstd::Decoder::with_buffer(stream)?.single_frame();
    reader.window_log_max(window_log_max(limits))?;
    Ok(reader)
}

/// Base-2 logarithm of the largest window that every decoder should accept (RFC 8878, 3.1.1.1.2): 8 MiB.
const WINDOW_LOG_COMMON: u32 = 23;
/// Base-2 logarithm of the largest window that libzstd accepts.
const WINDOW_LOG_MAX: u32 = if usize::BITS == 64 { 31 } else { 30 };

/// Returns the base-2 logarithm of the largest window that a bundle within `limits` can need: compressors reduce it to the
/// next power of two of the content.
fn window_log_max(limits: Limits) -> u32 {
    let window = limits.uncompressed_max_bytes.checked_next_power_of_two();
    window.map_or(WINDOW_LOG_MAX, u64::ilog2).clamp(WINDOW_LOG_COMMON, WINDOW_LOG_MAX)
}

fn damaged(error: impl fmt::Display) -> ImageError {
    ImageError::Damaged(error.to_string())
}

fn yields_more() -> ImageError {
    ImageError::Damaged("its uncompressed data is longer than its header says".to_owned())
}

fn yields_less(len: u64) -> ImageError {
    ImageError::Damaged(format!("its uncompressed data does not have {len} bytes"))
}

fn hash(bundle: &[u8]) -> u64 {
    let digest = Md5::digest(bundle);
    array(&digest, 0).map_or(0, u64::from_le_bytes)
}

/// Search for the end of a version 1 stream, which is decompressed while the output is dropped.
pub(crate) struct StreamEnd {
    decoder: StreamDecoder,
    /// Offset in the image up to which the stream was decompressed.
    at: usize,
    /// Number of uncompressed bytes so far.
    yielded: u64,
}

enum StreamDecoder {
    Zlib(Decompress),
    Zstd(zstd::stream::raw::Decoder<'static>),
}

impl Debug for StreamEnd {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamEnd")
            .field("at", &self.at)
            .field("yielded", &self.yielded)
            .finish_non_exhaustive()
    }
}

/// Returns how many bytes the compressed bundle that starts with `prefix` has.
pub(crate) fn needed(prefix: &[u8], stream: &mut Option<StreamEnd>) -> Result<Need, ImageError> {
    let header = match CompressedHeader::read(prefix)? {
        Ok(header) => header,
        Err(needed) => return Ok(Need::More(needed)),
    };
    if let Some(total) = header.total_bytes {
        return Ok(Need::Total(total));
    }
    let stream = match stream {
        Some(stream) => stream,
        None => stream.insert(StreamEnd::new(&header).map_err(damaged)?),
    };
    stream.advance(prefix, header.uncompressed_bytes)
}

/// Result of one decompression call.
struct Decompressed {
    read: usize,
    yielded: usize,
    /// Minimum number of bytes of the stream that follow those read so far; 0 at its end.
    left: usize,
}

/// Minimum number of bytes that follow a deflate stream before its end: the checksum.
const ZLIB_TRAILER_BYTES: usize = 4;

impl StreamEnd {
    fn new(header: &CompressedHeader) -> io::Result<StreamEnd> {
        let decoder = match header.method {
            Method::Zlib => StreamDecoder::Zlib(Decompress::new(true)),
            Method::Zstd => {
                let mut decoder = zstd::stream::raw::Decoder::new()?;
                decoder.set_parameter(DParameter::WindowLogMax(window_log_max(Limits::default())))?;
                StreamDecoder::Zstd(decoder)
            }
        };
        Ok(StreamEnd { decoder, at: header.header_bytes, yielded: 0 })
    }

    fn advance(&mut self, prefix: &[u8], uncompressed_bytes: u64) -> Result<Need, ImageError> {
        let mut sink = vec![0; 64 << 10];
        loop {
            let input = prefix.get(self.at..).unwrap_or_default();
            let step = self.step(input, &mut sink, uncompressed_bytes)?;
            self.at += step.read;
            self.yielded += step.yielded as u64;
            if self.yielded > uncompressed_bytes {
                return Err(yields_more());
            }
            if self.yielded > unpacked_max_bytes(self.at) {
                return Err(ImageError::Malformed(
                    "a compressed stream that yields far more than its length",
                ));
            }
            if step.left == 0 {
                // Such a stream may also be shorter than it was taken for while it was unpacked.
                let is_whole = self.yielded == uncompressed_bytes;
                return if is_whole {
                    Ok(Need::Total(self.at as u64))
                } else {
                    Err(yields_less(uncompressed_bytes))
                };
            }
            if step.read == 0 && step.yielded == 0 {
                return Ok(Need::More(prefix.len() as u64 + step.left as u64));
            }
        }
    }

    fn step(
        &mut self,
        input: &[u8],
        sink: &mut [u8],
        uncompressed_bytes: u64,
    ) -> Result<Decompressed, ImageError> {
        match &mut self.decoder {
            StreamDecoder::Zlib(inflate) => {
                let (read_before, made_before) = (inflate.total_in(), inflate.total_out());
                let status = inflate.decompress(input, sink, FlushDecompress::None).map_err(damaged)?;
                // In the trailer itself fewer bytes may be left, but never none.
                let sure = if inflate.total_out() == uncompressed_bytes { 1 } else { ZLIB_TRAILER_BYTES };
                Ok(Decompressed {
                    read: (inflate.total_in() - read_before) as usize,
                    yielded: (inflate.total_out() - made_before) as usize,
                    left: if status == Status::StreamEnd { 0 } else { sure },
                })
            }
            StreamDecoder::Zstd(decoder) => {
                let status = decoder.run_on_buffers(input, sink).map_err(damaged)?;
                // ZSTD_decompressStream promises to suggest no more than is left of the frame.
                Ok(Decompressed {
                    read: status.bytes_read,
                    yielded: status.bytes_written,
                    left: status.remaining,
                })
            }
        }
    }
}
