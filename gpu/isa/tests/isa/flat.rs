//! Tests of global and flat memory.

use crate::bench::{MEMORY, SOME, is_on};
use crate::global::*;
use hipr_isa::aperture::{PRIVATE_BASE, SHARED_BASE};
use hipr_isa::fault::{Cause, Fault};
use hipr_isa::mem::BadAddress;
use hipr_isa::wave::{LANES, Row};

/// Returns `N` bytes of the memory of [`bench`].
fn bytes<const N: usize>(offset: u64) -> [u8; N] {
    std::array::from_fn(|index| byte(offset + index as u64))
}

fn word(offset: u64) -> u32 {
    u32::from_le_bytes(bytes(offset))
}

/// Distributions of the lanes over memory: consecutive, with gaps, backwards, scattered and unaligned, all at one address.
const SPREADS: [fn(usize) -> u64; 6] = [
    |lane| 0x1000 + lane as u64 * 4,
    |lane| 0x1000 + lane as u64 * 16,
    |lane| 0x1000 + lane as u64 * 8,
    |lane| 0x1000 - lane as u64 * 12,
    |lane| (lane as u64 * 0x9e37 + 3) & 0x3fff,
    |_| 0x404,
];

#[test]
fn loads_of_words_however_the_lanes_are_spread() {
    let loads = [
        &[0xdc508008, 0x0a7f0000 /* global_load_dword v10, v[0:1], off offset:8 */],
        &[0xdc548008, 0x0a7f0000 /* global_load_dwordx2 v[10:11], v[0:1], off offset:8 */],
        &[0xdc588008, 0x0a7f0000 /* global_load_dwordx3 v[10:12], v[0:1], off offset:8 */],
        &[0xdc5c8008, 0x0a7f0000 /* global_load_dwordx4 v[10:13], v[0:1], off offset:8 */],
        &[0xdc500008, 0x0a000000 /* flat_load_dword v10, v[0:1] offset:8 */],
        &[0xdc540008, 0x0a000000 /* flat_load_dwordx2 v[10:11], v[0:1] offset:8 */],
        &[0xdc580008, 0x0a000000 /* flat_load_dwordx3 v[10:12], v[0:1] offset:8 */],
        &[0xdc5c0008, 0x0a000000 /* flat_load_dwordx4 v[10:13], v[0:1] offset:8 */],
    ];
    for spread in SPREADS {
        for exec in [u64::MAX, SOME, 1 << 63, 0] {
            for (index, load) in loads.iter().enumerate() {
                let mut bench = bench();
                bench.fill64(0, |lane| MEMORY + spread(lane));
                (10..16).for_each(|register| bench.fill(register, |_| 7));
                bench.wave.set_exec(exec);
                bench.run(*load);
                for register in 0..6 {
                    let loaded = register <= index % 4;
                    let expected: Row = std::array::from_fn(|lane| {
                        let offset = spread(lane) + 8 + register as u64 * 4;
                        if loaded && is_on(exec, lane) { word(offset) } else { 7 }
                    });
                    assert_eq!(bench.wave.row(10 + register), &expected, "{load:x?}, EXEC {exec:#x}");
                }
            }
        }
    }
}

#[test]
fn stores_of_words_however_the_lanes_are_spread() {
    let stores = [
        &[0xdc708008, 0x007f0a00 /* global_store_dword v[0:1], v10, off offset:8 */],
        &[0xdc748008, 0x007f0a00 /* global_store_dwordx2 v[0:1], v[10:11], off offset:8 */],
        &[0xdc788008, 0x007f0a00 /* global_store_dwordx3 v[0:1], v[10:12], off offset:8 */],
        &[0xdc7c8008, 0x007f0a00 /* global_store_dwordx4 v[0:1], v[10:13], off offset:8 */],
        &[0xdc700008, 0x00000a00 /* flat_store_dword v[0:1], v10 offset:8 */],
        &[0xdc740008, 0x00000a00 /* flat_store_dwordx2 v[0:1], v[10:11] offset:8 */],
        &[0xdc780008, 0x00000a00 /* flat_store_dwordx3 v[0:1], v[10:12] offset:8 */],
        &[0xdc7c0008, 0x00000a00 /* flat_store_dwordx4 v[0:1], v[10:13] offset:8 */],
    ];
    for spread in SPREADS {
        for exec in [u64::MAX, SOME, 1 << 63, 0] {
            for (index, store) in stores.iter().enumerate() {
                let mut bench = bench();
                bench.fill64(0, |lane| MEMORY + spread(lane));
                for register in 0..4 {
                    bench.fill(10 + register, |lane| (0xa000_0000 + register * 0x10_0000 + lane) as u32);
                }
                bench.wave.set_exec(exec);
                bench.run(*store);
                // Lanes come one after the other, so that the last one's bytes stay.
                let mut expected: Vec<u8> = (0..0x8000).map(byte).collect();
                for lane in (0..LANES).filter(|&lane| is_on(exec, lane)) {
                    for register in 0..=index % 4 {
                        let at = spread(lane) as usize + 8 + register * 4;
                        let value = (0xa000_0000 + register * 0x10_0000 + lane) as u32;
                        expected[at..at + 4].copy_from_slice(&value.to_le_bytes());
                    }
                }
                assert!(read::<0x8000>(&bench, MEMORY)[..] == expected, "{store:x?}, EXEC {exec:#x}");
            }
        }
    }
}

#[test]
fn addresses_are_pairs_or_a_scalar_and_an_offset() {
    let mut bench = bench();
    bench.fill64(0, |lane| MEMORY + lane as u64 * 4);
    bench.fill(2, |lane| lane as u32 * 4 + 0x20);
    bench.fill64(4, |lane| MEMORY + 0x1000 + lane as u64 * 4);
    // The offset in a register is unsigned.
    bench.fill(3, |lane| 0xffff_f000 + lane as u32 * 4);
    bench.wave.set_pair(2, MEMORY + 0x2000 - 0xffff_f000);
    bench.run(&[
        0xdc508000, 0x0a000002, // global_load_dword v10, v2, s[0:1]
        0xdc508fff, 0x0b000002, // global_load_dword v11, v2, s[0:1] offset:4095
        0xdc509000, 0x0c7f0004, // global_load_dword v12, v[4:5], off offset:-4096
        0xdc509ff0, 0x0d020003, // global_load_dword v13, v3, s[2:3] offset:-16
        0xdc500fff, 0x0e000000, // flat_load_dword v14, v[0:1] offset:4095
    ]);
    for lane in 0..LANES {
        let step = lane as u64 * 4;
        let loaded: [u32; 5] = std::array::from_fn(|index| bench.wave.row(10 + index)[lane]);
        assert_eq!(
            loaded,
            [word(step + 0x20), word(step + 0x101f), word(step), word(step + 0x1ff0), word(step + 4095)]
        );
    }
}

/// Distances in bytes between lanes and offsets of the first one: consecutive, aligned to words or not, overlapping, apart.
const SMALL_SPREADS: [(u64, u64); 7] = [(1, 0), (1, 4), (1, 3), (2, 8), (2, 6), (2, 1), (5, 0)];

/// Returns all pairs of an element of `a` and one of `b`.
fn all_pairs<A: Copy, B: Copy>(a: &[A], b: &[B]) -> Vec<(A, B)> {
    a.iter().flat_map(|&a| b.iter().map(move |&b| (a, b))).collect()
}

/// The expected result of a load from an offset.
type Loaded = fn(u64) -> u32;

#[test]
fn small_loads_extend_and_clear_the_other_half() {
    let loads: [(&[u32], Loaded); 10] = [
        (&[0xdc408000, 0x0a7f0000 /* global_load_ubyte v10, v[0:1], off */], |at| u32::from(byte(at))),
        (&[0xdc448000, 0x0a7f0000 /* global_load_sbyte v10, v[0:1], off */], |at| {
            i32::from(byte(at) as i8) as u32
        }),
        (&[0xdc488000, 0x0a7f0000 /* global_load_ushort v10, v[0:1], off */], |at| word(at) & 0xffff),
        (&[0xdc4c0000, 0x0a000000 /* flat_load_sshort v10, v[0:1] */], |at| {
            i32::from(word(at) as i16) as u32
        }),
        (&[0xdc808000, 0x0a7f0000 /* global_load_ubyte_d16 v10, v[0:1], off */], |at| u32::from(byte(at))),
        (&[0xdc848000, 0x0a7f0000 /* global_load_ubyte_d16_hi v10, v[0:1], off */], |at| {
            u32::from(byte(at)) << 16
        }),
        (&[0xdc880000, 0x0a000000 /* flat_load_sbyte_d16 v10, v[0:1] */], |at| {
            u32::from(byte(at) as i8 as u16)
        }),
        (&[0xdc8c8000, 0x0a7f0000 /* global_load_sbyte_d16_hi v10, v[0:1], off */], |at| {
            u32::from(byte(at) as i8 as u16) << 16
        }),
        (&[0xdc908000, 0x0a7f0000 /* global_load_short_d16 v10, v[0:1], off */], |at| word(at) & 0xffff),
        (&[0xdc940000, 0x0a000000 /* flat_load_short_d16_hi v10, v[0:1] */], |at| word(at) << 16),
    ];
    for ((load, expected), (step, first)) in all_pairs(&loads, &SMALL_SPREADS) {
        for exec in [u64::MAX, SOME, 0] {
            let mut bench = bench();
            let offset = |lane: usize| first + lane as u64 * step;
            bench.fill64(0, |lane| MEMORY + offset(lane));
            bench.fill(10, |_| 0xaaaa_bbbb);
            bench.wave.set_exec(exec);
            bench.run(load);
            for lane in 0..LANES {
                let expected = if is_on(exec, lane) { expected(offset(lane)) } else { 0xaaaa_bbbb };
                assert_eq!(bench.wave.row(10)[lane], expected, "{load:x?}, {step} bytes apart, lane {lane}");
            }
        }
    }
}

#[test]
fn small_stores_leave_their_neighbours_alone() {
    let stores: [(&[u32], usize, u32); 4] = [
        (&[0xdc608000, 0x007f0a00 /* global_store_byte v[0:1], v10, off */], 1, 0),
        (&[0xdc640000, 0x00000a00 /* flat_store_byte_d16_hi v[0:1], v10 */], 1, 16),
        (&[0xdc680000, 0x00000a00 /* flat_store_short v[0:1], v10 */], 2, 0),
        (&[0xdc6c8000, 0x007f0a00 /* global_store_short_d16_hi v[0:1], v10, off */], 2, 16),
    ];
    for ((store, len, shift), (step, first)) in all_pairs(&stores, &SMALL_SPREADS) {
        for exec in [u64::MAX, SOME, 0] {
            let mut bench = bench();
            let offset = |lane: usize| first + lane as u64 * step;
            bench.fill64(0, |lane| MEMORY + offset(lane));
            bench.fill(10, |lane| 0x1122_3344 + lane as u32 * 0x0101_0101);
            bench.wave.set_exec(exec);
            bench.run(store);
            let mut expected: Vec<u8> = (0..0x200).map(byte).collect();
            for lane in (0..LANES).filter(|&lane| is_on(exec, lane)) {
                let value = (0x1122_3344 + lane as u32 * 0x0101_0101) >> shift;
                expected[offset(lane) as usize..][..len].copy_from_slice(&value.to_le_bytes()[..len]);
            }
            assert_eq!(
                read::<0x200>(&bench, MEMORY)[..],
                expected,
                "{store:x?}, {step} bytes apart, EXEC {exec:#x}"
            );
        }
    }
}

#[test]
fn data_may_be_in_accumulation_registers() {
    let mut bench = bench();
    // a4 is register 68.
    bench.fill64(0, |lane| MEMORY + lane as u64 * 4);
    bench.fill(68, |lane| lane as u32);
    bench.run(&[
        0xdc508000, 0x02ff0000, // global_load_dword a2, v[0:1], off
        0xdc708400, 0x00ff0400, // global_store_dword v[0:1], a4, off offset:1024
        0xdc500400, 0x0a000000, // flat_load_dword v10, v[0:1] offset:1024
        0xdd098400, 0x06ff0400, // global_atomic_add a6, v[0:1], a4, off offset:1024 sc0
    ]);
    for lane in 0..LANES {
        assert_eq!(bench.wave.row(66)[lane], word(lane as u64 * 4));
        assert_eq!(bench.wave.row(10)[lane], lane as u32);
        assert_eq!(bench.wave.row(70)[lane], lane as u32);
        assert_eq!(read_word(&bench, 1024 + lane as u64 * 4), 2 * lane as u32);
    }
}

#[test]
fn an_address_may_be_overwritten_by_what_it_points_at() {
    let mut bench = bench();
    bench.fill64(0, |lane| MEMORY + lane as u64 * 16);
    bench.run(&[0xdc5c8000, 0x007f0000 /* global_load_dwordx4 v[0:3], v[0:1], off */]);
    for lane in 0..LANES {
        for register in 0..4 {
            assert_eq!(bench.wave.row(register)[lane], word(lane as u64 * 16 + register as u64 * 4));
        }
    }
}

/// Returns the lane, address, length and direction of an illegal access.
fn illegal(fault: &Fault) -> (Option<u32>, u64, u64, bool) {
    match fault.cause {
        Cause::IllegalAddress { lane, access: BadAddress { addr, len_bytes }, write } => {
            (lane, addr, len_bytes, write)
        }
        _ => panic!("{fault}"),
    }
}

#[test]
fn wild_addresses_are_faults_of_the_first_such_lane() {
    let code: [(&[u32], u64, bool); 6] = [
        (&[0xdc548000, 0x0a7f0000 /* global_load_dwordx2 v[10:11], v[0:1], off */], 8, false),
        (&[0xdc7c8000, 0x007f0a00 /* global_store_dwordx4 v[0:1], v[10:13], off */], 16, true),
        (&[0xdc400000, 0x0a000000 /* flat_load_ubyte v10, v[0:1] */], 1, false),
        (&[0xdc680000, 0x00000a00 /* flat_store_short v[0:1], v10 */], 2, true),
        (&[0xdd088000, 0x007f0a00 /* global_atomic_add v[0:1], v10, off */], 4, true),
        (&[0xdd880000, 0x00000a00 /* flat_atomic_add_x2 v[0:1], v[10:11] */], 8, true),
    ];
    for (code, len_bytes, write) in code {
        for addr in [0, 8, MEMORY - 16, MEMORY + LEN_BYTES, u64::MAX - 15] {
            let mut bench = bench();
            bench.fill64(0, |lane| if lane < 40 { MEMORY + lane as u64 * 16 } else { addr });
            // Lane 40 is off.
            bench.wave.set_exec(!(1 << 40));
            bench.fill(10, |_| 5);
            let fault = bench.try_run(code).unwrap_err();
            assert_eq!(illegal(&fault), (Some(41), addr, len_bytes, write), "{code:x?}");
            assert_eq!((fault.pc, bench.wave.pc), (crate::bench::CODE, crate::bench::CODE));
            if !write {
                assert_eq!(bench.wave.row(10), &[5; LANES], "a load that faults writes nothing");
            }
            // Lanes that are off may have any address.
            bench.wave.set_exec((1 << 40) - 1);
            bench.run(code);
        }
    }
}

#[test]
fn accesses_that_reach_beyond_the_end_are_faults() {
    let mut bench = bench();
    bench.fill64(0, |lane| MEMORY + LEN_BYTES - 64 * 16 + lane as u64 * 16);
    bench.run(&[0xdc5c8000, 0x0a7f0000 /* global_load_dwordx4 v[10:13], v[0:1], off */]);
    let fault = bench
        .try_run(&[0xdc5c8004, 0x0a7f0000 /* global_load_dwordx4 v[10:13], v[0:1], off offset:4 */])
        .unwrap_err();
    assert_eq!(illegal(&fault), (Some(63), MEMORY + LEN_BYTES - 12, 16, false));
    let fault = bench
        .try_run(&[0xdc7c8004, 0x007f0a00 /* global_store_dwordx4 v[0:1], v[10:13], off offset:4 */])
        .unwrap_err();
    assert_eq!(illegal(&fault), (Some(63), MEMORY + LEN_BYTES - 12, 16, true));
}

#[test]
fn flat_addresses_reach_lds_and_scratch() {
    let mut bench = bench();
    // By lane modulo 4: memory, LDS, own scratch, own scratch elsewhere.
    let addr = |lane: usize| match lane % 4 {
        0 => MEMORY + lane as u64 * 8,
        1 => SHARED_BASE + lane as u64 * 8,
        2 => PRIVATE_BASE + 16,
        _ => PRIVATE_BASE + 40,
    };
    bench.fill64(0, addr);
    bench.fill(10, |lane| 0x100 + lane as u32);
    bench.fill(11, |lane| 0x200 + lane as u32);
    bench.run(&[
        0xdc740000, 0x00000a00, // flat_store_dwordx2 v[0:1], v[10:11]
        0xdc540000, 0x0c000000, // flat_load_dwordx2 v[12:13], v[0:1]
        0xdc480004, 0x0e000000, // flat_load_ushort v14, v[0:1] offset:4
        0xdd090000, 0x0f000a00, // flat_atomic_add v15, v[0:1], v10 sc0
        0xdc500000, 0x10000000, // flat_load_dword v16, v[0:1]
    ]);
    for lane in 0..LANES {
        let row: [u32; 5] = std::array::from_fn(|index| bench.wave.row(12 + index)[lane]);
        let value = 0x100 + lane as u32;
        assert_eq!(row, [value, value + 0x100, value + 0x100, value, 2 * value], "lane {lane}");
        match lane % 4 {
            0 => assert_eq!(read_word(&bench, lane as u64 * 8), 2 * value),
            1 => assert_eq!(bench.lds.load_u32(lane as u32 * 8), 2 * value),
            2 => assert_eq!(bench.scratch.load_u32(lane, 16), Some(2 * value)),
            _ => assert_eq!(bench.scratch.load_u32(lane, 40), Some(2 * value)),
        }
    }
}

#[test]
fn whole_rows_of_lds_and_scratch_by_flat_addresses() {
    for exec in [u64::MAX, SOME, 0] {
        let mut bench = bench();
        bench.fill64(0, |lane| SHARED_BASE + 256 + lane as u64 * 16);
        bench.fill64(2, |_| PRIVATE_BASE + 32);
        for register in 0..4 {
            bench.fill(10 + register, |lane| (register * 0x100 + lane) as u32);
        }
        bench.wave.set_exec(exec);
        bench.run(&[
            0xdc7c0000, 0x00000a00, // flat_store_dwordx4 v[0:1], v[10:13]
            0xdc7c0000, 0x00000a02, // flat_store_dwordx4 v[2:3], v[10:13]
            0xdc5c0000, 0x14000000, // flat_load_dwordx4 v[20:23], v[0:1]
            0xdc5c0000, 0x18000002, // flat_load_dwordx4 v[24:27], v[2:3]
        ]);
        for lane in 0..LANES {
            for register in 0..4 {
                let expected = if is_on(exec, lane) { (register * 0x100 + lane) as u32 } else { 0 };
                assert_eq!(bench.lds.load_u32((256 + lane * 16 + register * 4) as u32), expected);
                assert_eq!(bench.scratch.load_u32(lane, 32 + register as u32 * 4), Some(expected));
                assert_eq!(bench.wave.row(20 + register)[lane], expected);
                assert_eq!(bench.wave.row(24 + register)[lane], expected);
            }
        }
    }
}

#[test]
fn flat_addresses_beyond_lds_and_scratch() {
    let mut bench = bench();
    // LDS of 4096 bytes: beyond its end reads give 0 and writes are dropped.
    bench.fill64(0, |_| SHARED_BASE + 4092);
    bench.fill(10, |_| 3);
    bench.fill(11, |_| 4);
    bench.run(&[
        0xdc740000, 0x00000a00, // flat_store_dwordx2 v[0:1], v[10:11]
        0xdc540000, 0x0c000000, // flat_load_dwordx2 v[12:13], v[0:1]
    ]);
    assert_eq!((bench.wave.row(12), bench.wave.row(13)), (&[3; LANES], &[0; LANES]));
    // Scratch of 256 bytes: an error.
    bench.fill64(0, |lane| PRIVATE_BASE + if lane == 9 { 252 } else { 248 });
    let fault =
        bench.try_run(&[0xdc540000, 0x0c000000 /* flat_load_dwordx2 v[12:13], v[0:1] */]).unwrap_err();
    assert_eq!(illegal(&fault), (Some(9), PRIVATE_BASE + 252, 8, false));
}

#[test]
fn shared_pairs_are_loaded_and_stored_whole() {
    let mut bench = bench();
    bench.fill64(0, |lane| MEMORY + lane as u64 * 8);
    bench.fill64(2, |lane| MEMORY + 0x1004 + lane as u64 * 8);
    bench.run(&[
        0xde548000, 0x0a7f0000, // global_load_dwordx2 v[10:11], v[0:1], off sc1
        0xdc550000, 0x0c000002, // flat_load_dwordx2 v[12:13], v[2:3] sc0
        0xde758000, 0x007f0c00, // global_store_dwordx2 v[0:1], v[12:13], off sc0 sc1
        0xde740000, 0x00000a02, // flat_store_dwordx2 v[2:3], v[10:11] sc1
    ]);
    for lane in 0..LANES {
        let (near, far) = (lane as u64 * 8, 0x1004 + lane as u64 * 8);
        assert_eq!((bench.wave.row(10)[lane], bench.wave.row(11)[lane]), (word(near), word(near + 4)));
        assert_eq!((bench.wave.row(12)[lane], bench.wave.row(13)[lane]), (word(far), word(far + 4)));
        assert_eq!(read::<8>(&bench, MEMORY + near), bytes(far));
        assert_eq!(read::<8>(&bench, MEMORY + far), bytes(near));
    }
}

#[test]
fn loads_straight_to_lds() {
    let mut bench = bench();
    bench.fill64(0, |lane| MEMORY + lane as u64 * 12);
    bench.wave.sgpr[hipr_isa::wave::M0] = 0x7777_0100;
    bench.wave.set_exec(SOME);
    bench.run(&[
        0xdca88000, 0x007f0000, // global_load_lds_dword v[0:1], off
        0xdc9c8400, 0x007f0000, // global_load_lds_sbyte v[0:1], off offset:1024
        0xdca08800, 0x007f0000, // global_load_lds_ushort v[0:1], off offset:2048
    ]);
    for lane in 0..LANES {
        let at = lane as u64 * 12;
        let expected = [word(at), i32::from(byte(at + 1024) as i8) as u32, word(at + 2048) & 0xffff];
        for (index, expected) in expected.into_iter().enumerate() {
            let loaded = bench.lds.load_u32((0x100 + index * 1024 + lane * 4) as u32);
            assert_eq!(loaded, if is_on(SOME, lane) { expected } else { 0 }, "lane {lane}");
        }
    }
}
