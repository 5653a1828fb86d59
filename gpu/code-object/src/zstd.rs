//! Zstandard decompression (RFC 8878) with a hard limit on the output.
//!
//! A decoder of our own, because one compressed block of a hostile stream can hold sequences for gigabytes: here each
//! literal and each match is checked against the limit and against the format's 128 KiB per block before it is
//! written. Dictionaries and skippable frames, which bundles do not have, are refused. The frame's checksum is not
//! looked at: the bundle's hash covers the same bytes.

mod bits;
mod fse;
mod huffman;
mod sequences;

use thiserror::Error;

use crate::bytes::{array, u32_at};
use huffman::Huffman;
use sequences::Sequences;

const FRAME_MAGIC: u32 = 0xfd2f_b528;
/// RFC 8878, Block_Maximum_Size: neither a block nor what it unpacks to is longer.
const BLOCK_MAX_BYTES: usize = 128 << 10;

/// Why a zstd frame cannot be unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum ZstdError {
    #[error("the stream ends in the middle")]
    Truncated,
    #[error("{0}")]
    Corrupt(&'static str),
    #[error("it unpacks to more than its header says")]
    TooLong,
}

type Result<T> = std::result::Result<T, ZstdError>;

/// What a frame header says of the bytes behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// Bytes of the header; the first block follows.
    pub(crate) bytes: usize,
    /// Bytes of checksum behind the last block.
    pub(crate) checksum_bytes: usize,
}

/// The header at the start of a frame, or `None` if `frame` is too short to tell (5 bytes suffice).
pub(crate) fn frame_header(frame: &[u8]) -> Result<Option<FrameHeader>> {
    let (Some(magic), Some(descriptor)) = (u32_at(frame, 0), frame.get(4)) else { return Ok(None) };
    if magic != FRAME_MAGIC {
        return Err(ZstdError::Corrupt("not a zstd frame"));
    }
    if descriptor & 0x08 != 0 {
        return Err(ZstdError::Corrupt("a reserved bit of the zstd frame header is set"));
    }
    if descriptor & 0x03 != 0 {
        return Err(ZstdError::Corrupt("a zstd frame that needs a dictionary"));
    }
    let single_segment = descriptor & 0x20 != 0;
    let size_bytes = [usize::from(single_segment), 2, 4, 8][usize::from(descriptor >> 6)];
    let bytes = 5 + usize::from(!single_segment) + size_bytes;
    Ok(Some(FrameHeader { bytes, checksum_bytes: if descriptor & 0x04 != 0 { 4 } else { 0 } }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Raw,
    Rle,
    Compressed,
}

/// A block's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    pub(crate) last: bool,
    kind: BlockKind,
    size: usize,
}

impl BlockHeader {
    pub(crate) const BYTES: usize = 3;

    /// The header at `at`, or `None` where the input ends before its end.
    pub(crate) fn read(frame: &[u8], at: usize) -> Result<Option<BlockHeader>> {
        let Some([low, middle, high]) = array(frame, at) else { return Ok(None) };
        let header = u32::from_le_bytes([low, middle, high, 0]);
        let kind = match (header >> 1) & 3 {
            0 => BlockKind::Raw,
            1 => BlockKind::Rle,
            2 => BlockKind::Compressed,
            _ => return Err(ZstdError::Corrupt("a reserved kind of zstd block")),
        };
        let size = (header >> 3) as usize;
        if size > BLOCK_MAX_BYTES {
            return Err(ZstdError::Corrupt("a zstd block longer than 128 KiB"));
        }
        Ok(Some(BlockHeader { last: header & 1 != 0, kind, size }))
    }

    /// Bytes in the stream behind the header.
    pub(crate) fn body_bytes(&self) -> usize {
        if self.kind == BlockKind::Rle { 1 } else { self.size }
    }
}

/// What the frame at the start of `stream` unpacks to, at most `limit` bytes; what follows the frame is not looked at.
pub(crate) fn decompress(stream: &[u8], limit: usize) -> Result<Vec<u8>> {
    let header = frame_header(stream)?.ok_or(ZstdError::Truncated)?;
    let mut at = header.bytes;
    let mut output = Output { bytes: Vec::new(), limit, block_start: 0 };
    let mut decoder = Decoder::default();
    loop {
        let block = BlockHeader::read(stream, at)?.ok_or(ZstdError::Truncated)?;
        at += BlockHeader::BYTES;
        let body =
            stream.get(at..).and_then(|rest| rest.get(..block.body_bytes())).ok_or(ZstdError::Truncated)?;
        at += body.len();
        output.block_start = output.bytes.len();
        match block.kind {
            BlockKind::Raw => output.push(body)?,
            BlockKind::Rle => output.repeat_byte(body.first().copied().unwrap_or(0), block.size)?,
            BlockKind::Compressed => decoder.block(body, &mut output)?,
        }
        if block.last {
            return Ok(output.bytes);
        }
    }
}

/// The bytes so far, which matches refer to.
struct Output {
    bytes: Vec<u8>,
    limit: usize,
    block_start: usize,
}

impl Output {
    /// Makes room for `len` more bytes if they are allowed.
    fn reserve(&mut self, len: usize) -> Result<()> {
        let end =
            self.bytes.len().checked_add(len).filter(|end| *end <= self.limit).ok_or(ZstdError::TooLong)?;
        if end - self.block_start > BLOCK_MAX_BYTES {
            return Err(ZstdError::Corrupt("a zstd block unpacks to more than 128 KiB"));
        }
        if end > self.bytes.capacity() {
            // Grow as Vec does, but not over the limit.
            let grown = self.bytes.capacity().saturating_mul(2).max(BLOCK_MAX_BYTES).max(end).min(self.limit);
            self.bytes.reserve_exact(grown - self.bytes.len());
        }
        Ok(())
    }

    fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.reserve(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn repeat_byte(&mut self, byte: u8, len: usize) -> Result<()> {
        self.reserve(len)?;
        self.bytes.resize(self.bytes.len() + len, byte);
        Ok(())
    }

    /// Repeats `len` bytes from `offset` bytes back; they may reach into what is being written.
    fn copy_match(&mut self, offset: usize, len: usize) -> Result<()> {
        self.reserve(len)?;
        let start = self.bytes.len().checked_sub(offset).filter(|_| offset > 0);
        let start = start.ok_or(ZstdError::Corrupt("a match before the start of the zstd frame"))?;
        let mut left = len;
        while left > 0 {
            // What was written since `start` is periodic, so each round can copy all of it.
            let round = left.min(self.bytes.len() - start);
            self.bytes.extend_from_within(start..start + round);
            left -= round;
        }
        Ok(())
    }
}

/// What one block hands on to the next.
#[derive(Default)]
struct Decoder {
    huffman: Option<Huffman>,
    sequences: Sequences,
    literals: Vec<u8>,
}

impl Decoder {
    fn block(&mut self, body: &[u8], output: &mut Output) -> Result<()> {
        let used = self.literals(body)?;
        let rest = body.get(used..).ok_or(ZstdError::Truncated)?;
        self.sequences.execute(rest, &self.literals, output)
    }

    /// Reads the literals section (RFC 8878, 3.1.1.3.1) and returns its length.
    fn literals(&mut self, body: &[u8]) -> Result<usize> {
        let header = array::<5>(body, 0).or_else(|| {
            let mut padded = [0; 5];
            padded.get_mut(..body.len())?.copy_from_slice(body);
            Some(padded)
        });
        let header = header.unwrap_or_default();
        let [low, ..] = header;
        let bits = header.iter().rev().fold(0u64, |bits, byte| (bits << 8) | u64::from(*byte));
        let (kind, format) = (low & 3, (low >> 2) & 3);
        self.literals.clear();
        if kind < 2 {
            let (header_bytes, len) = match format {
                0 | 2 => (1, bits >> 3 & 0x1f),
                1 => (2, bits >> 4 & 0xfff),
                _ => (3, bits >> 4 & 0xf_ffff),
            };
            let len = self.literals_len(len)?;
            let source_len = if kind == 0 { len } else { 1 };
            let source = body.get(header_bytes..header_bytes + source_len).ok_or(ZstdError::Truncated)?;
            if kind == 0 {
                self.literals.extend_from_slice(source);
            } else {
                self.literals.resize(len, source.first().copied().unwrap_or(0));
            }
            return Ok(header_bytes + source_len);
        }
        let (header_bytes, size_bits) = match format {
            0 | 1 => (3, 10),
            2 => (4, 14),
            _ => (5, 18),
        };
        let size = |shift: u32| bits >> shift & ((1 << size_bits) - 1);
        let (len, source_len) = (self.literals_len(size(4))?, size(4 + size_bits) as usize);
        let mut source = body.get(header_bytes..header_bytes + source_len).ok_or(ZstdError::Truncated)?;
        if kind == 2 {
            let (huffman, used) = Huffman::read(source)?;
            self.huffman = Some(huffman);
            source = source.get(used..).ok_or(ZstdError::Truncated)?;
        }
        let huffman =
            self.huffman.as_ref().ok_or(ZstdError::Corrupt("zstd literals without a Huffman table"))?;
        if format == 0 {
            huffman.decode(source, len, &mut self.literals)?;
        } else {
            huffman.decode_four(source, len, &mut self.literals)?;
        }
        Ok(header_bytes + source_len)
    }

    fn literals_len(&self, len: u64) -> Result<usize> {
        let len = usize::try_from(len).ok().filter(|len| *len <= BLOCK_MAX_BYTES);
        len.ok_or(ZstdError::Corrupt("more zstd literals than a block can have"))
    }
}
