//! Tests formats, lengths and decompression of images.

mod common;

use common::{
    IMAGES, ZLIB, ZSTD, ccob, clang_zstd_stream, data, long_matches_zstd_stream, raw_zstd_stream,
    streamed_zstd, zlib_stream,
};
use hipr_code_object::{
    Bundle, CompressedHeader, Format, ImageError, Limits, Measure, Method, Need, decompress, image_len,
    needed_len,
};

#[test]
fn formats_are_told_by_their_magic() {
    for name in IMAGES {
        let expected = match name.rsplit_once('.') {
            Some((_, "elf")) => Format::Elf,
            Some((_, "bundle")) => Format::Bundle,
            _ => Format::CompressedBundle,
        };
        assert_eq!(Format::sniff(&data(name)), Some(expected), "{name}");
    }
    assert_eq!(Format::sniff(b""), None);
    assert_eq!(Format::sniff(b"__CLANG_OFFLOAD_BUNDL"), None);
    assert_eq!(needed_len(b"MZ"), Err(ImageError::UnknownFormat));
}

#[test]
fn every_image_has_the_length_of_its_file() {
    for name in IMAGES {
        let mut bytes = data(name);
        let len = bytes.len();
        assert_eq!(image_len(&bytes), Ok(len), "{name}");
        // What follows in memory does not count.
        bytes.extend_from_slice(&[0xa5; 5000]);
        assert_eq!(image_len(&bytes), Ok(len), "{name} with more behind it");
        // Nothing shorter will do.
        let short = image_len(&bytes[..len - 1]);
        assert!(
            matches!(short, Err(ImageError::Truncated { needed, .. }) if needed <= len as u64),
            "{name}: {short:?}"
        );
    }
}

/// Returns all images, including those of version 1, which do not contain their length.
fn images_of_every_version() -> Vec<(String, Vec<u8>)> {
    let bundle = data("one.bundle");
    let mut images: Vec<_> = IMAGES.iter().map(|name| (name.to_string(), data(name))).collect();
    for version in 1..=3 {
        images.push((format!("v{version} zlib"), ccob(version, ZLIB, &bundle, &zlib_stream(&bundle))));
        images.push((format!("v{version} zstd"), ccob(version, ZSTD, &bundle, &clang_zstd_stream())));
        images.push((
            format!("v{version} raw zstd"),
            ccob(version, ZSTD, &bundle, &raw_zstd_stream(&bundle, 10)),
        ));
        images.push((
            format!("v{version} streamed zstd"),
            ccob(version, ZSTD, &bundle, &streamed_zstd(&bundle, 10_000, 27)),
        ));
    }
    images
}

#[test]
fn measuring_never_asks_for_bytes_outside_of_the_image() {
    for (name, image) in images_of_every_version() {
        // Steps of every length meet the end of a stream at every distance.
        for start in 1..if name.starts_with("v1") { 12 } else { 3 } {
            // Only what was asked for is shown: as if the next byte could not be read.
            let (mut measure, mut known, mut steps) = (Measure::new(), start, 0);
            let total = loop {
                match measure.advance(&image[..known]).unwrap() {
                    Need::More(len) => {
                        assert!(len > known as u64, "{name}: asks for {len} after {known}");
                        assert!(len <= image.len() as u64, "{name}: asks for {len} of {}", image.len());
                        known = len as usize;
                    }
                    Need::Total(len) => break len,
                }
                steps += 1;
                if steps == 5 && known + start < image.len() - 20 {
                    known += start;
                }
            };
            assert_eq!(total, image.len() as u64, "{name}");
            assert!(steps < 20 || name.contains("v1 zlib"), "{name}: {steps} steps");
        }
    }
}

#[test]
fn measuring_by_pages_gives_the_same_length() {
    for (name, image) in images_of_every_version() {
        let mut memory = image.clone();
        memory.resize(image.len().next_multiple_of(4096) + 4096, 0xcc);
        let (mut measure, mut known) = (Measure::new(), 4096);
        let total = loop {
            match measure.advance(&memory[..known]).unwrap() {
                Need::More(len) => known = (len as usize).next_multiple_of(4096),
                Need::Total(len) => break len,
            }
        };
        assert_eq!(total, image.len() as u64, "{name}");
    }
}

#[test]
fn bundles_list_what_the_bundler_lists() {
    let bundle = Bundle::parse(&data("one.bundle")).unwrap();
    let mut found: Vec<_> = bundle.entries().iter().map(|entry| entry.id.clone()).collect();
    let text = common::text("one.targets");
    let mut expected: Vec<_> = text.lines().map(str::to_owned).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    let host = bundle.entries().iter().find(|entry| entry.id.starts_with("host")).unwrap();
    assert!(host.range.is_empty());
}

#[test]
fn every_version_and_method_unpacks_to_the_bundle() {
    let bundle = data("one.bundle");
    for (name, image) in images_of_every_version() {
        if Format::sniff(&image) == Some(Format::CompressedBundle) {
            assert_eq!(decompress(&image, Limits::default()).as_ref(), Ok(&bundle), "{name}");
        }
    }
    let header = CompressedHeader::parse(&data("one-v2-zlib.ccob")).unwrap();
    assert_eq!((header.version, header.method, header.header_bytes), (2, Method::Zlib, 24));
    assert_eq!((header.total_bytes, header.uncompressed_bytes), (Some(2085), bundle.len() as u64));
}

#[test]
fn a_window_larger_than_the_bundle_costs_nothing() {
    // Long distance matching declares windows of 128 MiB and more.
    let bundle = data("one.bundle");
    let image = ccob(2, ZSTD, &bundle, &raw_zstd_stream(&bundle, 21));
    assert_eq!(decompress(&image, Limits::default()), Ok(bundle));
}

#[test]
fn windows_are_limited_as_the_bundle_is() {
    let bundle = data("one.bundle");
    let tight = Limits { uncompressed_max_bytes: bundle.len() as u64 };
    // Each decoder should take 8 MiB; more only where a bundle could be that long. The longest is 2 GiB.
    for (exponent, limits, fine) in [
        (13, tight, true),
        (14, tight, false),
        (14, Limits { uncompressed_max_bytes: (8 << 20) + 1 }, true),
        (22, Limits::default(), false),
        (22, Limits { uncompressed_max_bytes: u64::MAX }, false),
    ] {
        let result = decompress(&ccob(2, ZSTD, &bundle, &raw_zstd_stream(&bundle, exponent)), limits);
        match result {
            Ok(found) => assert!(fine && found == bundle, "{exponent}, {limits:?}"),
            Err(error) => assert!(!fine && matches!(error, ImageError::Damaged(_)), "{exponent}: {error}"),
        }
    }
}

#[test]
fn a_bundle_may_be_longer_than_the_window() {
    // 3 MiB that repeat at a distance of 100 KB with changes, so that matches reach over block and window ends.
    let (mut state, mut bundle) = (1u32, Vec::new());
    for at in 0..3usize << 20 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let fresh = at < 100_000 || state >> 24 == 0;
        let byte = if fresh { (state >> 16) as u8 } else { bundle[at - 100_000] };
        bundle.push(byte);
    }
    let stream = streamed_zstd(&bundle, 1 << 20, 18);
    assert!(stream.len() < bundle.len() / 4, "{}", stream.len());
    let image = ccob(1, ZSTD, &bundle, &stream);
    assert!(decompress(&image, Limits::default()).as_ref() == Ok(&bundle));
    let (mut measure, mut known) = (Measure::new(), 1);
    while let Need::More(len) = measure.advance(&image[..known]).unwrap() {
        known = len as usize;
    }
    assert_eq!(known, image.len());
}

#[test]
fn only_whole_frames_of_their_own_are_unpacked() {
    let bundle = data("one.bundle");
    let stream = streamed_zstd(&bundle, 10_000, 20);
    let unpack = |stream: &[u8]| decompress(&ccob(2, ZSTD, &bundle, stream), Limits::default());
    assert_eq!(unpack(&stream).as_ref(), Ok(&bundle));
    // Also where only the checksum is missing or wrong.
    for len in [0, 3, 5, 9, stream.len() / 2, stream.len() - 4, stream.len() - 1] {
        let result = unpack(&stream[..len]);
        assert!(matches!(result, Err(ImageError::Damaged(_))), "{len}: {result:?}");
    }
    let mut wrong = stream.clone();
    *wrong.last_mut().unwrap() ^= 1;
    assert!(matches!(unpack(&wrong), Err(ImageError::Damaged(_))));
    // What follows the frame is not looked at.
    assert_eq!(unpack(&[&stream[..], b"more"].concat()).as_ref(), Ok(&bundle));
    // A frame in front that is skipped, and one that needs dictionary 7.
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 0][..], &stream].concat();
    assert!(matches!(unpack(&skippable), Err(ImageError::Damaged(_))));
    let raw = raw_zstd_stream(&bundle, 10);
    let dictionary = [&raw[..4], &[1], &raw[5..6], &[7], &raw[6..]].concat();
    assert!(matches!(unpack(&dictionary), Err(ImageError::Damaged(_))));
    for stream in [&long_matches_zstd_stream(), &dictionary] {
        let result = image_len(&ccob(1, ZSTD, &bundle, stream));
        assert!(matches!(result, Err(ImageError::Damaged(_))), "{result:?}");
    }
}

#[test]
fn limits_hold_for_claims_and_for_contents() {
    let bundle = data("one.bundle");
    let len = bundle.len() as u64;
    let limits = Limits { uncompressed_max_bytes: len - 1 };
    let image = data("one-v2.ccob");
    assert_eq!(decompress(&image, limits), Err(ImageError::TooLong { len, limit: len - 1 }));
    assert!(decompress(&image, Limits { uncompressed_max_bytes: len }).is_ok());
    for (method, stream) in [(ZSTD, clang_zstd_stream()), (ZLIB, zlib_stream(&bundle))] {
        // The header claims less, and more, than the stream has.
        for claimed in [&bundle[..1000], &[bundle.as_slice(), &[0]].concat()] {
            let result = decompress(&ccob(2, method, claimed, &stream), Limits::default());
            assert!(matches!(result, Err(ImageError::Damaged(_))), "{result:?}");
        }
        let length = image_len(&ccob(1, method, &bundle[..1000], &stream));
        assert!(matches!(length, Err(ImageError::Damaged(_))), "{length:?}");
    }
}

#[test]
fn a_bomb_ends_at_its_claim() {
    // 1 GiB of zeros in 8192 blocks of one repeated byte; the header claims 4 KiB.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x58];
    for _ in 0..8192 {
        frame.extend_from_slice(&((128u32 << 10) << 3 | 1 << 1).to_le_bytes()[..3]);
        frame.push(0);
    }
    let result = decompress(&ccob(2, ZSTD, &[0; 4096], &frame), Limits::default());
    assert!(
        matches!(&result, Err(ImageError::Damaged(why)) if why.contains("longer than its header says")),
        "{result:?}"
    );
}

#[test]
fn a_stream_without_a_length_that_yields_less_than_the_header_says_is_no_image() {
    let bundle = data("one.bundle");
    for (method, stream) in [(ZLIB, zlib_stream(&bundle)), (ZSTD, clang_zstd_stream())] {
        let mut image = ccob(1, method, &bundle, &stream);
        assert_eq!(image_len(&image), Ok(image.len()));
        image[8..12].copy_from_slice(&(bundle.len() as u32 + 1).to_le_bytes());
        for result in [image_len(&image).map(drop), decompress(&image, Limits::default()).map(drop)] {
            assert!(
                matches!(&result, Err(ImageError::Damaged(why)) if why.contains("does not have")),
                "{result:?}"
            );
        }
    }
}

#[test]
fn damage_is_found() {
    for name in ["one-v2.ccob", "one-v3.ccob", "one-v2-zlib.ccob"] {
        let image = data(name);
        let header = CompressedHeader::parse(&image).unwrap().header_bytes;
        let mut wrong_hash = image.clone();
        wrong_hash[header - 1] ^= 1;
        assert!(matches!(decompress(&wrong_hash, Limits::default()), Err(ImageError::Hash { .. })), "{name}");
        for at in (header..image.len()).step_by(7) {
            let mut damaged = image.clone();
            damaged[at] ^= 0x10;
            // A flipped bit may be one that does not count; the bundle is right all the same then.
            if let Ok(bundle) = decompress(&damaged, Limits::default()) {
                assert_eq!(bundle, data("one.bundle"), "{name}, byte {at}");
            }
        }
    }
    let unknown = |at: usize, value| {
        let mut image = data("one-v2.ccob");
        image[at] = value;
        decompress(&image, Limits::default())
    };
    assert_eq!(unknown(4, 4), Err(ImageError::Version(4)));
    assert_eq!(unknown(6, 2), Err(ImageError::Method(2)));
}

#[test]
fn lengths_beyond_the_limit_are_refused() {
    let mut image = data("one-v3.ccob");
    image[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(image_len(&image), Err(ImageError::TooLong { .. })));

    let mut bundle = data("one.bundle");
    bundle[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(image_len(&bundle), Err(ImageError::Malformed(_))));
    let mut bundle = data("one.bundle");
    bundle[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(image_len(&bundle), Err(ImageError::TooLong { .. })));

    let mut elf = data("one-gfx942.elf");
    elf[40..48].copy_from_slice(&(u64::MAX - 8).to_le_bytes());
    assert!(matches!(image_len(&elf), Err(ImageError::TooLong { .. })));
    let mut elf = data("one-gfx942.elf");
    elf[18] = 62;
    assert_eq!(image_len(&elf), Err(ImageError::NotAmdgpu { class: 2, data: 1, machine: 62 }));
}
