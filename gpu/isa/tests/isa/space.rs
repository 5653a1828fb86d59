//! Tests of device memory as kernels access it: every width at every alignment, bounds, and guarantees between threads.

use hipr_isa::mem::{BadAddress, Block, Space};

const BASE: u64 = 0x5000_0000_0000;

fn space(len_bytes: u64) -> Space {
    Space::of_block(Block::new(BASE, len_bytes).unwrap())
}

#[test]
fn every_width_at_every_alignment_is_little_endian() {
    let space = space(64);
    let mut model = [0u8; 64];
    let mut state = 1u64;
    for step in 0..20_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let value = state ^ state >> 29;
        let width = [1, 2, 4, 8][step % 4];
        let at = (state >> 40) as usize % (64 - width + 1);
        let addr = BASE + at as u64;
        let bytes = &mut model[at..at + width];
        let expected = bytes.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
        let loaded = match width {
            1 => space.load_u8(addr).map(u64::from),
            2 => space.load_u16(addr).map(u64::from),
            4 => space.load_u32(addr).map(u64::from),
            _ => space.load_u64(addr),
        };
        assert_eq!(loaded, Ok(expected), "{width} bytes at {at}");
        bytes.copy_from_slice(&value.to_le_bytes()[..width]);
        match width {
            1 => space.store_u8(addr, value as u8),
            2 => space.store_u16(addr, value as u16),
            4 => space.store_u32(addr, value as u32),
            _ => space.store_u64(addr, value),
        }
        .unwrap();
    }
    for at in 0..56 {
        let mut words = [0; 2];
        space.load_words(BASE + at as u64, &mut words).unwrap();
        let expected = [at, at + 4].map(|at| u32::from_le_bytes(model[at..at + 4].try_into().unwrap()));
        assert_eq!(words, expected);
        let mut bytes = [0; 7];
        space.read(BASE + at as u64, &mut bytes).unwrap();
        assert_eq!(bytes, model[at..at + 7]);
        space.write(BASE + at as u64, &bytes).unwrap();
    }
    let mut all = [0; 64];
    space.read(BASE, &mut all).unwrap();
    assert_eq!(all, model);
}

#[test]
fn what_leaves_the_block_faults_with_its_address() {
    let space = space(64);
    let bad = |addr, len_bytes| Err(BadAddress { addr, len_bytes });
    let far = [0, 4, BASE - 4, BASE - 1, BASE + 64, BASE + (1 << 21), u64::MAX, u64::MAX - 3, 1 << 63];
    for addr in far {
        assert_eq!(space.load_u8(addr).map(drop), bad(addr, 1));
        assert_eq!(space.load_u32(addr).map(drop), bad(addr, 4));
        assert_eq!(space.store_u32(addr, 0), bad(addr, 4));
        assert_eq!(space.fetch_update_u32(addr, |old| old).map(drop), bad(addr, 4));
        assert_eq!(space.write(addr, &[0; 2]), bad(addr, 2));
    }
    for (offset, width) in [(63, 2), (61, 4), (57, 8)] {
        let addr = BASE + offset;
        let result = match width {
            2 => space.store_u16(addr, 0),
            4 => space.store_u32(addr, 0),
            _ => space.store_u64(addr, 0),
        };
        assert_eq!(result, bad(addr, width));
    }
    assert_eq!(space.store_words(BASE + 56, &[1, 2, 3]), bad(BASE + 56, 12));
    assert_eq!(space.load_words(BASE, &mut [0; 17]), bad(BASE, 68));
    // Atomics want alignment.
    assert_eq!(space.fetch_update_u32(BASE + 2, |old| old), bad(BASE + 2, 4).map(|()| 0));
    assert_eq!(space.fetch_update_u64(BASE + 4, |old| old), bad(BASE + 4, 8).map(|()| 0));
    assert!(Block::new(u64::MAX - 8, 64).is_none());
    assert!(Block::new(BASE, u64::MAX).is_none());
}

#[test]
fn a_cursor_follows_accesses_between_blocks() {
    let space = space(64);
    let mut cursor = space.cursor();
    cursor.store_u32(BASE, 1).unwrap();
    assert!(cursor.load_u32(BASE + 64).is_err());
    assert_eq!(cursor.load_u32(BASE), Ok(1));
}

#[test]
fn neighbouring_bytes_do_not_disturb_each_other() {
    let space = space(64);
    std::thread::scope(|scope| {
        for lane in 0..4u64 {
            let space = &space;
            scope.spawn(move || {
                for round in 0..20_000u32 {
                    space.store_u8(BASE + lane, round as u8).unwrap();
                    assert_eq!(space.load_u8(BASE + lane), Ok(round as u8));
                }
            });
        }
    });
}

#[test]
fn atomics_of_both_widths_lose_nothing() {
    let space = space(64);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    space.fetch_update_u32(BASE, |old| old + 1).unwrap();
                    space.fetch_update_u64(BASE + 8, |old| old + u64::from(u32::MAX)).unwrap();
                }
            });
        }
    });
    assert_eq!(space.load_u32(BASE), Ok(80_000));
    assert_eq!(space.load_u64(BASE + 8), Ok(80_000 * u64::from(u32::MAX)));
}

#[test]
fn aligned_64_bit_values_change_as_one() {
    let space = space(64);
    let values = [0, u64::MAX];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..100_000 {
                if round % 2 == 0 {
                    space.store_u64(BASE, values[round / 2 % 2]).unwrap();
                } else {
                    space.fetch_update_u64(BASE, |old| !old).unwrap();
                }
            }
        });
        for _ in 0..100_000 {
            let value = space.load_u64(BASE).unwrap();
            assert!(values.contains(&value), "{value:#x}");
        }
    });
}
