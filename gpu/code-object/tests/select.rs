//! Tests the selection of the code object for a device.

mod common;

use std::borrow::Cow;

use common::{ZSTD, ccob, data, target};
use hipr_code_object::{CodeObject, ImageError, SelectError, select};

#[test]
fn a_bundle_gives_what_the_bundler_takes_out() {
    let (bundle, expected) = (data("one.bundle"), data("one-gfx942.elf"));
    for device in ["gfx942", "gfx942:sramecc+:xnack-"] {
        let found = select(&bundle, &target(device)).unwrap();
        assert!(matches!(found, Cow::Borrowed(_)));
        assert_eq!(*found, *expected, "{device}");
    }
    for name in ["one-v2.ccob", "one-v3.ccob", "one-v2-zlib.ccob"] {
        assert_eq!(*select(&data(name), &target("gfx942")).unwrap(), *expected, "{name}");
    }
    assert_eq!(*select(&expected, &target("gfx942:sramecc+:xnack-")).unwrap(), *expected);
}

#[test]
fn each_device_gets_its_own_code() {
    let bundle = data("one.bundle");
    for (device, code) in [
        ("gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack-"),
        ("gfx90a:sramecc+:xnack+", "gfx90a:xnack+"),
        ("gfx90a:sramecc-:xnack+", "gfx90a:xnack+"),
        ("gfx950:sramecc+:xnack-", "gfx9-4-generic"),
        ("gfx942", "gfx942"),
        ("gfx1030", "gfx1030"),
    ] {
        let elf = select(&bundle, &target(device)).unwrap();
        assert_eq!(CodeObject::parse(&elf).unwrap().target(), &target(code), "{device}");
    }
}

#[test]
fn the_error_lists_what_there_is() {
    for name in ["one.bundle", "one-v3.ccob"] {
        for device in ["gfx1100", "gfx90a:sramecc-:xnack-", "gfx90a"] {
            let Err(SelectError::NoMatch { device: asked, mut available }) =
                select(&data(name), &target(device))
            else {
                panic!("{name} has nothing for {device}");
            };
            available.sort();
            assert_eq!(asked, target(device));
            assert_eq!(
                available,
                [
                    "hipv4-amdgcn-amd-amdhsa--gfx1030",
                    "hipv4-amdgcn-amd-amdhsa--gfx9-4-generic",
                    "hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-",
                    "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+",
                    "hipv4-amdgcn-amd-amdhsa--gfx942",
                ]
            );
        }
    }
    let error = select(&data("one-gfx942.elf"), &target("gfx1100")).unwrap_err();
    assert_eq!(error.to_string(), "no code object for gfx1100; the image has code for: gfx942");
}

/// Builds a bundle with these entries; each one's code is an ELF header with the entry's number in its last byte.
fn bundle_of(ids: &[&str]) -> Vec<u8> {
    let mut image = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    image.extend_from_slice(&(ids.len() as u64).to_le_bytes());
    let table_bytes: usize = ids.iter().map(|id| 24 + id.len()).sum();
    for (index, id) in ids.iter().enumerate() {
        for number in [32 + table_bytes + 64 * index, 64, id.len()] {
            image.extend_from_slice(&(number as u64).to_le_bytes());
        }
        image.extend_from_slice(id.as_bytes());
    }
    for index in 0..ids.len() {
        image.extend_from_slice(&data("one-gfx942.elf")[..63]);
        image.push(index as u8);
    }
    image
}

#[test]
fn the_order_of_entries_only_decides_among_equals() {
    let ids = [
        "hip-amdgcn-amd-amdhsa--gfx9-4-generic",
        "hip-amdgcn-amd-amdhsa--gfx942",
        "hipv4-amdgcn-amd-amdhsa--gfx942",
        "hipv4-amdgcn-amd-amdhsa--gfx942:xnack-",
        "hipv4-amdgcn-amd-amdhsa--gfx942:xnack+",
        "hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+",
    ];
    let image = bundle_of(&ids);
    for (device, index) in [
        ("gfx942:sramecc+:xnack-", 3),
        ("gfx942:sramecc+:xnack+", 4),
        ("gfx942:sramecc-", 1),
        ("gfx942:sramecc+", 5),
        ("gfx942", 1),
        ("gfx950", 0),
    ] {
        assert_eq!(select(&image, &target(device)).unwrap()[63], index, "{device}");
    }
}

#[test]
fn entries_of_other_languages_are_left_alone() {
    let mut bundle = data("one.bundle");
    let id = b"hipv4-amdgcn-amd-amdhsa--gfx942";
    let at = bundle.windows(id.len()).position(|window| window == id).unwrap();
    bundle[at..at + 5].copy_from_slice(b"openm");
    let found = select(&bundle, &target("gfx942")).unwrap();
    assert_eq!(CodeObject::parse(&found).unwrap().target(), &target("gfx9-4-generic"));
}

#[test]
fn what_is_not_code_is_refused() {
    let device = target("gfx942");
    assert_eq!(select(b"#!/bin/sh", &device), Err(ImageError::UnknownFormat.into()));
    // A compressed bundle around an ELF file, and a bundle whose entry is no ELF file.
    let elf = data("one-gfx942.elf");
    let image = ccob(1, ZSTD, &elf, &common::raw_zstd_stream(&elf, 10));
    assert!(matches!(select(&image, &device), Err(SelectError::Image(ImageError::Malformed(_)))));
    let mut bundle = data("one.bundle");
    let at = bundle.windows(elf.len()).position(|window| window == elf).unwrap();
    bundle[at] = 0;
    assert!(matches!(select(&bundle, &device), Err(SelectError::Image(ImageError::Malformed(_)))));
}

#[test]
fn the_processor_table_is_llvms() {
    let elf = data("one-gfx942.elf");
    for line in common::text("machines.txt").lines() {
        let (processor, flags) = line.split_once(" 0x").unwrap();
        let mut elf = elf.clone();
        elf[48..52].copy_from_slice(&u32::from_str_radix(flags, 16).unwrap().to_le_bytes());
        let code = CodeObject::parse(&elf).unwrap();
        assert_eq!(code.target(), &target(processor), "{line}");
        assert_eq!(
            code.generic_version(),
            processor.ends_with("-generic").then_some(1).filter(|_| !flags.starts_with("00"))
        );
        assert_eq!(*select(&elf, &target(processor)).unwrap(), *elf, "{line}");
    }
}
