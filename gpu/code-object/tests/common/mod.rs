//! The test files in `data/`, and compressed bundles built by hand.
#![allow(dead_code, reason = "each test file uses a part")]

use std::io::Write as _;
use std::path::Path;

use hipr_code_object::Target;
use md5::{Digest, Md5};

/// Returns the bytes of a file in `data/`.
pub(crate) fn data(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the text of a file in `data/`.
pub(crate) fn text(name: &str) -> String {
    String::from_utf8(data(name)).unwrap()
}

pub(crate) fn target(text: &str) -> Target {
    text.parse().unwrap()
}

/// The names of all committed images.
pub(crate) const IMAGES: [&str; 14] = [
    "kernels-v4.elf",
    "kernels-v5.elf",
    "kernels-v6.elf",
    "kernels-gfx1100.elf",
    "notes.elf",
    "relocations.elf",
    "undefined.elf",
    "descriptor.elf",
    "unlinked.elf",
    "one-gfx942.elf",
    "one.bundle",
    "one-v2.ccob",
    "one-v3.ccob",
    "one-v2-zlib.ccob",
];

pub(crate) const ZLIB: u16 = 0;
pub(crate) const ZSTD: u16 = 1;

/// Returns the zstd frame that clang wrote for `one.bundle`.
pub(crate) fn clang_zstd_stream() -> Vec<u8> {
    data("one-v3.ccob")[32..].to_vec()
}

pub(crate) fn zlib_stream(bundle: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bundle).unwrap();
    encoder.finish().unwrap()
}

/// Builds a zstd frame of uncompressed blocks (RFC 8878, 3.1.1) with a window of 2^(10 + `exponent`).
pub(crate) fn raw_zstd_stream(bundle: &[u8], exponent: u8) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3];
    let blocks = bundle.chunks(100_000).count();
    for (index, block) in bundle.chunks(100_000).enumerate() {
        let header = (block.len() as u32) << 3 | u32::from(index + 1 == blocks);
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.extend_from_slice(block);
    }
    frame
}

/// Compresses `bundle` as a stream of unknown length: blocks of at most `block_bytes`, a window of 2^`window_log`, long
/// distance matches and a checksum.
pub(crate) fn streamed_zstd(bundle: &[u8], block_bytes: usize, window_log: u32) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 5).unwrap();
    encoder.window_log(window_log).unwrap();
    encoder.long_distance_matching(true).unwrap();
    encoder.include_checksum(true).unwrap();
    for part in bundle.chunks(block_bytes) {
        encoder.write_all(part).unwrap();
        encoder.flush().unwrap();
    }
    encoder.finish().unwrap()
}

/// Builds a zstd frame of four bytes and one block of 60,000 matches of 131,074 bytes each: 7.8 GB from 120 kB, if blocks
/// could be longer than 128 KiB.
pub(crate) fn long_matches_zstd_stream() -> Vec<u8> {
    let mut block = vec![0, 255];
    block.extend_from_slice(&(60_000u16 - 0x7f00).to_le_bytes());
    block.extend_from_slice(&[0b0101_0100, 0, 0, 52]);
    block.extend(std::iter::repeat_n(0xff, 120_000));
    block.push(1);
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x58, 4 << 3, 0, 0];
    frame.extend_from_slice(b"abcd");
    frame.extend_from_slice(&((block.len() as u32) << 3 | 2 << 1 | 1).to_le_bytes()[..3]);
    frame.extend_from_slice(&block);
    frame
}

/// Builds a compressed bundle whose header says `claim` uncompressed bytes.
pub(crate) fn claiming(version: u16, claim: u32, stream: &[u8]) -> Vec<u8> {
    let mut image = ccob(version, ZSTD, &[], stream);
    let at = if version == 1 { 8 } else { 12 };
    image[at..at + 4].copy_from_slice(&claim.to_le_bytes());
    image
}

/// Builds a compressed bundle of any version and method around a stream.
pub(crate) fn ccob(version: u16, method: u16, bundle: &[u8], stream: &[u8]) -> Vec<u8> {
    let mut image = b"CCOB".to_vec();
    image.extend_from_slice(&version.to_le_bytes());
    image.extend_from_slice(&method.to_le_bytes());
    let (len, stream_len) = (bundle.len(), stream.len());
    match version {
        1 => image.extend_from_slice(&(len as u32).to_le_bytes()),
        2 => {
            image.extend_from_slice(&(stream_len as u32 + 24).to_le_bytes());
            image.extend_from_slice(&(len as u32).to_le_bytes());
        }
        _ => {
            image.extend_from_slice(&(stream_len as u64 + 32).to_le_bytes());
            image.extend_from_slice(&(len as u64).to_le_bytes());
        }
    }
    image.extend_from_slice(&Md5::digest(bundle)[..8]);
    image.extend_from_slice(stream);
    image
}
