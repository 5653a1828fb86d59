//! Tests of LDS, and of exchanges between lanes.

use crate::bench::{SOME, is_on};
use crate::lds::*;
use hipr_isa::fault::Cause;
use hipr_isa::wave::{LANES, Row};

/// Distributions of the lanes over LDS: consecutive, with gaps, backwards, scattered and unaligned, all at one address, beyond
/// the end.
const SPREADS: [fn(usize) -> u32; 8] = [
    |lane| 0x400 + lane as u32 * 4,
    |lane| 0x400 + lane as u32 * 8,
    |lane| 0x400 + lane as u32 * 16,
    |lane| 0x600 - lane as u32 * 12,
    |lane| (lane as u32 * 0x9e37 + 3) & 0x7ff,
    |_| 0x404,
    |lane| LEN_BYTES - 128 + lane as u32 * 4,
    |lane| 0xffff_ff80 + lane as u32 * 2,
];

/// Checks that a load reads word `n` of `N` from the address plus `offsets[n]`.
fn check_load<const N: usize>(code: &[u32], offsets: [u32; N]) {
    for spread in SPREADS {
        for exec in [u64::MAX, SOME, 1 << 63, 0] {
            let mut bench = bench();
            bench.fill(0, spread);
            (10..15).for_each(|register| bench.fill(register, |_| 7));
            bench.wave.set_exec(exec);
            bench.run(code);
            for register in 0..5 {
                let expected: Row = std::array::from_fn(|lane| match offsets.get(register) {
                    Some(&offset) if is_on(exec, lane) => word(spread(lane).wrapping_add(offset)),
                    _ => 7,
                });
                assert_eq!(
                    bench.wave.row(10 + register),
                    &expected,
                    "{code:x?}, EXEC {exec:#x}, word {register}"
                );
            }
        }
    }
}

#[test]
fn loads_of_words() {
    check_load(&[0xd86c0000, 0x0a000000 /* ds_read_b32 v10, v0 */], [0]);
    check_load(&[0xd86c03e8, 0x0a000000 /* ds_read_b32 v10, v0 offset:1000 */], [1000]);
    check_load(&[0xd8ec0008, 0x0a000000 /* ds_read_b64 v[10:11], v0 offset:8 */], [8, 12]);
    check_load(&[0xd9fc0100, 0x0a000000 /* ds_read_b96 v[10:12], v0 offset:256 */], [256, 260, 264]);
    check_load(&[0xd9fe0000, 0x0a000000 /* ds_read_b128 v[10:13], v0 */], [0, 4, 8, 12]);
    check_load(&[0xd86e0103, 0x0a000000 /* ds_read2_b32 v[10:11], v0 offset0:3 offset1:1 */], [12, 4]);
    check_load(
        &[0xd8eeff03, 0x0a000000 /* ds_read2_b64 v[10:13], v0 offset0:3 offset1:255 */],
        [24, 28, 2040, 2044],
    );
    check_load(
        &[0xd8700401, 0x0a000000 /* ds_read2st64_b32 v[10:11], v0 offset0:1 offset1:4 */],
        [256, 1024],
    );
    check_load(
        &[0xd8f00102, 0x0a000000 /* ds_read2st64_b64 v[10:13], v0 offset0:2 offset1:1 */],
        [1024, 1028, 512, 516],
    );
}

/// Checks that a store writes register `n` (from v10 on, or v20 for the second half of `halves`) to the address plus
/// `offsets[n]`.
fn check_store<const N: usize>(code: &[u32], offsets: [u32; N], halves: bool) {
    for spread in SPREADS {
        for exec in [u64::MAX, SOME, 1 << 63, 0] {
            let mut bench = bench();
            bench.fill(0, spread);
            let value = |register: usize, lane: usize| (0xa000_0000 + register * 0x10_0000 + lane) as u32;
            for register in 0..N {
                let second = halves && register >= N / 2;
                let number = if second { 20 + register - N / 2 } else { 10 + register };
                bench.fill(number, |lane| value(register, lane));
            }
            bench.wave.set_exec(exec);
            bench.run(code);
            let mut expected: Vec<u8> = (0..LEN_BYTES).map(byte).collect();
            // Of two addresses, all lanes' first ones come before all lanes' second ones.
            let middle = if halves { N / 2 } else { N };
            for part in [0..middle, middle..N] {
                for lane in (0..LANES).filter(|&lane| is_on(exec, lane)) {
                    for register in part.clone() {
                        let addr = spread(lane).wrapping_add(offsets[register]);
                        for (index, byte) in value(register, lane).to_le_bytes().into_iter().enumerate() {
                            if let Some(slot) = expected.get_mut(addr.wrapping_add(index as u32) as usize) {
                                *slot = byte;
                            }
                        }
                    }
                }
            }
            assert!(contents(&bench) == expected, "{code:x?}, EXEC {exec:#x}");
        }
    }
}

#[test]
fn stores_of_words() {
    check_store(&[0xd81a0000, 0x00000a00 /* ds_write_b32 v0, v10 */], [0], false);
    check_store(&[0xd81a03e8, 0x00000a00 /* ds_write_b32 v0, v10 offset:1000 */], [1000], false);
    check_store(&[0xd89a0008, 0x00000a00 /* ds_write_b64 v0, v[10:11] offset:8 */], [8, 12], false);
    check_store(&[0xd9bc0100, 0x00000a00 /* ds_write_b96 v0, v[10:12] offset:256 */], [256, 260, 264], false);
    check_store(&[0xd9be0000, 0x00000a00 /* ds_write_b128 v0, v[10:13] */], [0, 4, 8, 12], false);
    check_store(
        &[0xd81c0103, 0x00140a00 /* ds_write2_b32 v0, v10, v20 offset0:3 offset1:1 */],
        [12, 4],
        true,
    );
    check_store(
        &[0xd89cff03, 0x00140a00 /* ds_write2_b64 v0, v[10:11], v[20:21] offset0:3 offset1:255 */],
        [24, 28, 2040, 2044],
        true,
    );
    check_store(
        &[0xd81e0401, 0x00140a00 /* ds_write2st64_b32 v0, v10, v20 offset0:1 offset1:4 */],
        [256, 1024],
        true,
    );
    check_store(
        &[0xd89e0102, 0x00140a00 /* ds_write2st64_b64 v0, v[10:11], v[20:21] offset0:2 offset1:1 */],
        [1024, 1028, 512, 516],
        true,
    );
}

/// The expected result of a load from an address.
type Loaded = fn(u32) -> u32;

#[test]
fn parts_of_words() {
    let loads: [(&[u32], Loaded); 10] = [
        (&[0xd8740000, 0x0a000000 /* ds_read_u8 v10, v0 */], |at| u32::from(byte(at))),
        (&[0xd8720000, 0x0a000000 /* ds_read_i8 v10, v0 */], |at| i32::from(byte(at) as i8) as u32),
        (&[0xd8780000, 0x0a000000 /* ds_read_u16 v10, v0 */], |at| word(at) & 0xffff),
        (&[0xd8760000, 0x0a000000 /* ds_read_i16 v10, v0 */], |at| i32::from(word(at) as i16) as u32),
        (&[0xd8ac0000, 0x0a000000 /* ds_read_u8_d16 v10, v0 */], |at| u32::from(byte(at))),
        (&[0xd8ae0000, 0x0a000000 /* ds_read_u8_d16_hi v10, v0 */], |at| u32::from(byte(at)) << 16),
        (&[0xd8b00000, 0x0a000000 /* ds_read_i8_d16 v10, v0 */], |at| u32::from(byte(at) as i8 as u16)),
        (&[0xd8b20000, 0x0a000000 /* ds_read_i8_d16_hi v10, v0 */], |at| {
            u32::from(byte(at) as i8 as u16) << 16
        }),
        (&[0xd8b40000, 0x0a000000 /* ds_read_u16_d16 v10, v0 */], |at| word(at) & 0xffff),
        (&[0xd8b60000, 0x0a000000 /* ds_read_u16_d16_hi v10, v0 */], |at| word(at) << 16),
    ];
    let stores: [(&[u32], usize, u32); 4] = [
        (&[0xd83c0000, 0x00000a00 /* ds_write_b8 v0, v10 */], 1, 0),
        (&[0xd8a80000, 0x00000a00 /* ds_write_b8_d16_hi v0, v10 */], 1, 16),
        (&[0xd83e0000, 0x00000a00 /* ds_write_b16 v0, v10 */], 2, 0),
        (&[0xd8aa0000, 0x00000a00 /* ds_write_b16_d16_hi v0, v10 */], 2, 16),
    ];
    // Next to each other, on a word and not, apart; the last lanes beyond the end.
    let cases = [(0x100, 1), (0x102, 1), (0x100, 2), (0x103, 2), (LEN_BYTES - 150, 3), (LEN_BYTES - 64, 2)];
    for ((first, step), exec) in
        cases.into_iter().flat_map(|case| [(case, u64::MAX), (case, SOME), (case, 0)])
    {
        let addr = |lane: usize| first + lane as u32 * step;
        for (load, expected) in loads {
            let mut bench = bench();
            bench.fill(0, addr);
            bench.fill(10, |_| 0xaaaa_bbbb);
            bench.wave.set_exec(exec);
            bench.run(load);
            for lane in 0..LANES {
                let expected = if is_on(exec, lane) { expected(addr(lane)) } else { 0xaaaa_bbbb };
                assert_eq!(bench.wave.row(10)[lane], expected, "{load:x?}, lane {lane}");
            }
        }
        for (store, len, shift) in stores {
            let mut bench = bench();
            bench.fill(0, addr);
            bench.fill(10, |lane| 0x1122_3344 + lane as u32 * 0x0101_0101);
            bench.wave.set_exec(exec);
            bench.run(store);
            let mut expected: Vec<u8> = (0..LEN_BYTES).map(byte).collect();
            for lane in (0..LANES).filter(|&lane| is_on(exec, lane)) {
                let value = (0x1122_3344 + lane as u32 * 0x0101_0101) >> shift;
                for (index, byte) in value.to_le_bytes().into_iter().take(len).enumerate() {
                    if let Some(slot) = expected.get_mut(addr(lane) as usize + index) {
                        *slot = byte;
                    }
                }
            }
            assert!(contents(&bench) == expected, "{store:x?}, EXEC {exec:#x}");
        }
    }
}

#[test]
fn data_may_be_in_accumulation_registers() {
    let mut bench = bench();
    // a4 is register 68.
    bench.fill(0, |lane| lane as u32 * 8);
    bench.fill(68, |lane| lane as u32);
    bench.fill(69, |lane| 0x100 + lane as u32);
    bench.run(&[
        0xda9a0000, 0x00000400, // ds_write_b64 v0, a[4:5]
        0xda6e0001, 0x0a000000, // ds_read2_b32 a[10:11], v0 offset0:1 offset1:0
        0xda400000, 0x0c000400, // ds_add_rtn_u32 a12, v0, a4
        0xda1c8180, 0x00040500, // ds_write2_b32 v0, a5, a4 offset0:128 offset1:129
        0xd8ec0200, 0x0a000000, // ds_read_b64 v[10:11], v0 offset:512
    ]);
    for lane in 0..LANES {
        let lane32 = lane as u32;
        let row = [74, 75, 76, 10, 11].map(|register| bench.wave.row(register)[lane]);
        assert_eq!(row, [0x100 + lane32, lane32, lane32, 0x100 + lane32, lane32]);
        assert_eq!(bench.lds.load_u32(lane32 * 8), 2 * lane32);
    }
}

#[test]
fn an_address_may_be_overwritten_by_what_it_points_at() {
    let mut bench = bench();
    bench.fill(0, |lane| lane as u32 * 4);
    bench.run(&[0xd86e0605, 0x00000000 /* ds_read2_b32 v[0:1], v0 offset0:5 offset1:6 */]);
    for lane in 0..LANES {
        let at = lane as u32 * 4;
        assert_eq!((bench.wave.row(0)[lane], bench.wave.row(1)[lane]), (word(at + 20), word(at + 24)));
    }
}

#[test]
fn the_global_data_share_is_a_fault() {
    let mut bench = bench();
    let mut code = [0xd86c0000, 0x0a000000 /* ds_read_b32 v10, v0 */];
    code[0] |= 1 << 16;
    let fault = bench.try_run(&code).unwrap_err();
    assert!(matches!(fault.cause, Cause::Unknown { mnemonic: Some("ds_read_b32"), .. }), "{fault}");
}

/// Runs an exchange of v1 by the addresses in v0, and returns v2, which was 7 before.
fn exchange(code: &[u32], addr: impl Fn(usize) -> u32, exec: u64) -> Row {
    let mut bench = bench();
    bench.fill(0, addr);
    bench.fill(1, |lane| 0x100 + lane as u32);
    bench.fill(2, |_| 7);
    bench.wave.set_exec(exec);
    bench.run(code);
    assert!(contents(&bench) == (0..LEN_BYTES).map(byte).collect::<Vec<_>>(), "LDS is not touched");
    *bench.wave.row(2)
}

#[test]
fn lanes_pull_from_lanes() {
    let code = [0xd87e0000, 0x02000100 /* ds_bpermute_b32 v2, v0, v1 */];
    // Low bits and high bits of the address do not count.
    let addr = |lane: usize| ((63 - lane) * 4 + lane % 4) as u32 | 0xffff_ff00;
    let out = exchange(&code, addr, u64::MAX);
    assert_eq!(out, std::array::from_fn(|lane| 0x100 + 63 - lane as u32));
    // Lanes that are off give 0 and take nothing.
    let out = exchange(&code, |lane| ((lane + 1) % 64 * 4) as u32, SOME);
    let expected = |lane: usize| match (is_on(SOME, lane), is_on(SOME, (lane + 1) % 64)) {
        (false, _) => 7,
        (true, false) => 0,
        (true, true) => 0x100 + (lane as u32 + 1) % 64,
    };
    assert_eq!(out, std::array::from_fn(expected));
    let out = exchange(
        &[0xd87e0008, 0x02000100 /* ds_bpermute_b32 v2, v0, v1 offset:8 */],
        |lane| lane as u32 * 4,
        u64::MAX,
    );
    assert_eq!(out, std::array::from_fn(|lane| 0x100 + (lane as u32 + 2) % 64));
}

#[test]
fn lanes_push_to_lanes() {
    let code = [0xd87c0000, 0x02000100 /* ds_permute_b32 v2, v0, v1 */];
    let out = exchange(&code, |lane| ((lane + 1) % 64 * 4) as u32, u64::MAX);
    assert_eq!(out, std::array::from_fn(|lane| 0x100 + (lane as u32 + 63) % 64));
    // Of several, the highest lane counts; who gets nothing has 0.
    let out = exchange(&code, |lane| (lane / 2 * 4) as u32, u64::MAX);
    assert_eq!(out, std::array::from_fn(|lane| if lane < 32 { 0x101 + 2 * lane as u32 } else { 0 }));
    let out = exchange(&code, |lane| ((lane + 1) % 64 * 4) as u32, SOME);
    let expected = |lane: usize| match (is_on(SOME, lane), is_on(SOME, (lane + 63) % 64)) {
        (false, _) => 7,
        (true, false) => 0,
        (true, true) => 0x100 + (lane as u32 + 63) % 64,
    };
    assert_eq!(out, std::array::from_fn(expected));
}

/// The lane from which a lane reads.
type Source = fn(usize) -> usize;

#[test]
fn lanes_pull_by_a_pattern() {
    let code: [(&[u32], Source); 7] = [
        (
            &[0xd87a8072, 0x02000001 /* ds_swizzle_b32 v2, v1 offset:swizzle(QUAD_PERM, 2, 0, 3, 1) */],
            |lane| lane & !3 | [2, 0, 3, 1][lane % 4],
        ),
        (&[0xd87a401f, 0x02000001 /* ds_swizzle_b32 v2, v1 offset:swizzle(SWAP, 16) */], |lane| lane ^ 16),
        (&[0xd87a1c1f, 0x02000001 /* ds_swizzle_b32 v2, v1 offset:swizzle(REVERSE, 8) */], |lane| lane ^ 7),
        (&[0xd87a00a0, 0x02000001 /* ds_swizzle_b32 v2, v1 offset:swizzle(BROADCAST, 32, 5) */], |lane| {
            lane & 32 | 5
        }),
        (
            &[0xd87a0926, 0x02000001 /* ds_swizzle_b32 v2, v1 offset:swizzle(BITMASK_PERM, "01pi1") */],
            |lane| lane & 0x24 | 9 | !lane & 2,
        ),
        // Rotated by 3 among lanes that differ in the bits that the mask (16) leaves.
        (&[0xd87ac070, 0x02000001 /* ds_swizzle_b32 v2, v1 offset:0xc070 */], |lane| {
            lane & 48 | (lane + 3) & 15
        }),
        // Bits reversed.
        (&[0xd87ae000, 0x02000001 /* ds_swizzle_b32 v2, v1 offset:0xe000 */], |lane| {
            lane & 32 | (lane as u8 & 31).reverse_bits() as usize >> 3
        }),
    ];
    for (code, source) in code {
        for exec in [u64::MAX, SOME, 0] {
            let out = exchange(code, |_| 0, exec);
            let expected = |lane: usize| match (is_on(exec, lane), is_on(exec, source(lane))) {
                (false, _) => 7,
                (true, false) => 0,
                (true, true) => 0x100 + source(lane) as u32,
            };
            assert_eq!(out, std::array::from_fn(expected), "{code:x?}, EXEC {exec:#x}");
        }
    }
}
