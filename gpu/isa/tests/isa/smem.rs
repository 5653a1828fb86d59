//! Tests of scalar memory.

use crate::bench::{Bench, MEMORY};
use hipr_isa::fault::Cause;
use hipr_isa::wave::VCC;

/// Creates a wave whose s[4:5] point to 64 words, 0x100 and following.
fn bench() -> Bench {
    let mut bench = Bench::default();
    bench.wave.set_pair(4, MEMORY);
    for index in 0..64 {
        bench.space.store_u32(MEMORY + index * 4, 0x100 + index as u32).unwrap();
    }
    bench
}

/// Returns `len` words of memory from byte `offset` on.
fn words(bench: &Bench, offset: u64, len: usize) -> Vec<u32> {
    let mut words = vec![0; len];
    bench.space.load_words(MEMORY + offset, &mut words).unwrap();
    words
}

#[test]
fn loads_take_one_to_sixteen_words() {
    let mut bench = bench();
    bench.run(&[
        0xc0020202, 0x00000004, // s_load_dword s8, s[4:5], 0x4
        0xc0061a82, 0x00000008, // s_load_dwordx2 vcc, s[4:5], 0x8
        0xc00a0302, 0x00000010, // s_load_dwordx4 s[12:15], s[4:5], 0x10
        0xc00e0402, 0x00000020, // s_load_dwordx8 s[16:23], s[4:5], 0x20
        0xc0120602, 0x00000040, // s_load_dwordx16 s[24:39], s[4:5], 0x40
    ]);
    let sgpr = &bench.wave.sgpr;
    assert_eq!((sgpr[8], sgpr[9]), (0x101, 0));
    assert_eq!(sgpr[VCC..VCC + 2], [0x102, 0x103]);
    let expected: Vec<u32> = (0x104..0x120).collect();
    assert_eq!(sgpr[12..40], expected);
    assert_eq!(sgpr[40], 0);
}

#[test]
fn offsets_are_constants_registers_or_both() {
    let mut bench = bench();
    bench.wave.sgpr[0] = 0x20;
    bench.wave.set_pair(6, MEMORY + 0x40);
    bench.run(&[
        0xc0000202, 0x00000000, // s_load_dword s8, s[4:5], s0
        0xc0020243, 0x001ffff0, // s_load_dword s9, s[6:7], -0x10
        0xc0024282, 0x00000008, // s_load_dword s10, s[4:5], s0 offset:0x8
        0xc00242c3, 0x001ffffc, // s_load_dword s11, s[6:7], s0 offset:-0x4
    ]);
    assert_eq!(bench.wave.sgpr[8..12], [0x108, 0x10c, 0x10a, 0x117]);
}

#[test]
fn the_low_two_bits_of_each_part_of_an_address_do_not_count() {
    let mut bench = bench();
    bench.wave.set_pair(6, MEMORY + 3);
    bench.wave.sgpr[0] = 7;
    bench.run(&[
        0xc0020203, 0x00000000, // s_load_dword s8, s[6:7], 0x0
        0xc0000242, 0x00000000, // s_load_dword s9, s[4:5], s0
        0xc0020282, 0x0000000b, // s_load_dword s10, s[4:5], 0xb
        0xc00242c3, 0x00000003, // s_load_dword s11, s[6:7], s0 offset:0x3
    ]);
    assert_eq!(bench.wave.sgpr[8..12], [0x100, 0x101, 0x102, 0x101]);
}

#[test]
fn an_address_may_be_overwritten_by_what_it_points_at() {
    let mut bench = bench();
    bench.run(&[0xc00a0102, 0x00000000 /* s_load_dwordx4 s[4:7], s[4:5], 0x0 */]);
    assert_eq!(bench.wave.sgpr[4..8], [0x100, 0x101, 0x102, 0x103]);
}

#[test]
fn wild_addresses_are_faults_without_a_lane() {
    for (addr, write) in
        [(0, false), (MEMORY - 4, false), (MEMORY + (1 << 16) - 4, true), (u64::MAX - 3, true)]
    {
        let mut bench = bench();
        bench.wave.set_pair(4, addr);
        bench.wave.sgpr[8] = 99;
        let load = [0xc0060202, 0x00000000 /* s_load_dwordx2 s[8:9], s[4:5], 0x0 */];
        let store = [0xc0460202, 0x00000000 /* s_store_dwordx2 s[8:9], s[4:5], 0x0 */];
        let fault = bench.try_run(if write { &store } else { &load }).unwrap_err();
        let Cause::IllegalAddress { lane: None, access, write: wrote } = fault.cause else {
            panic!("{fault}")
        };
        assert_eq!((access.addr, access.len_bytes, wrote), (addr & !3, 8, write));
        assert_eq!(bench.wave.sgpr[8], 99);
    }
}

#[test]
fn stores_write_one_two_or_four_words() {
    let mut bench = bench();
    for index in 0..8 {
        bench.wave.sgpr[8 + index] = 0x200 + index as u32;
    }
    bench.run(&[
        0xc0420202, 0x00000004, // s_store_dword s8, s[4:5], 0x4
        0xc0460282, 0x0000000c, // s_store_dwordx2 s[10:11], s[4:5], 0xc
        0xc04a0302, 0x00000018, // s_store_dwordx4 s[12:15], s[4:5], 0x18
    ]);
    assert_eq!(
        words(&bench, 0, 11),
        [0x100, 0x200, 0x102, 0x202, 0x203, 0x105, 0x204, 0x205, 0x206, 0x207, 0x10a]
    );
}

/// Creates a wave with a resource with `records` of `stride` bytes in s[12:15].
fn with_buffer(stride: u32, records: u32) -> Bench {
    let mut bench = bench();
    bench.wave.sgpr[12] = MEMORY as u32;
    bench.wave.sgpr[13] = (MEMORY >> 32) as u32 | stride << 16;
    bench.wave.sgpr[14] = records;
    bench.wave.sgpr[15] = 0x27000;
    bench
}

#[test]
fn buffer_loads_beyond_the_end_give_zero() {
    let load4 = [0xc02a0506, 0x00000008 /* s_buffer_load_dwordx4 s[20:23], s[12:15], 0x8 */];
    let load8 = [0xc02c0506, 0x00000000 /* s_buffer_load_dwordx8 s[20:27], s[12:15], s0 */];
    let mut bench = with_buffer(0, 0x10);
    bench.run(&load4);
    assert_eq!(bench.wave.sgpr[20..24], [0x102, 0x103, 0, 0]);
    // A word that is not all inside is not there.
    let mut bench = with_buffer(0, 0xf);
    bench.run(&load4);
    assert_eq!(bench.wave.sgpr[20..24], [0x102, 0, 0, 0]);
    // With a stride, records are counted.
    let mut bench = with_buffer(8, 3);
    bench.run(&load4);
    assert_eq!(bench.wave.sgpr[20..24], [0x102, 0x103, 0x104, 0x105]);
    let mut bench = with_buffer(0, 0x10);
    bench.wave.sgpr[0] = 0x8000_0000;
    bench.wave.sgpr[20..28].fill(9);
    bench.run(&load8);
    assert_eq!(bench.wave.sgpr[20..28], [0; 8]);
}

#[test]
fn buffer_stores_beyond_the_end_are_dropped() {
    let mut bench = with_buffer(0, 0x10);
    bench.wave.sgpr[20..24].copy_from_slice(&[1, 2, 3, 4]);
    bench.run(&[
        0xc06a0506, 0x00000008, // s_buffer_store_dwordx4 s[20:23], s[12:15], 0x8
        0xc0620506, 0x00000010, // s_buffer_store_dword s20, s[12:15], 0x10
    ]);
    assert_eq!(words(&bench, 4, 5), [0x101, 1, 2, 0x104, 0x105]);
}

#[test]
fn atomics_return_the_old_value_if_asked() {
    let mut bench = bench();
    bench.wave.sgpr[8..20].copy_from_slice(&[5, 5, 5, 0x102, 7, 0, 8, 0x106, 0x107, 0, 0, 0]);
    bench.run(&[
        0xc20a0202, 0x00000000, // s_atomic_add s8, s[4:5], 0x0
        0xc20f0242, 0x00000004, // s_atomic_sub s9, s[4:5], 0x4 glc
        0xc2070282, 0x00000008, // s_atomic_cmpswap s[10:11], s[4:5], 0x8 glc
        0xc28b0302, 0x00000010, // s_atomic_add_x2 s[12:13], s[4:5], 0x10 glc
    ]);
    assert_eq!(bench.wave.sgpr[8..14], [5, 0x101, 0x102, 0x102, 0x104, 0x105]);
    assert_eq!(words(&bench, 0, 6), [0x105, 0xfc, 5, 0x103, 0x10b, 0x105]);
    let mut bench = with_buffer(0, 8);
    bench.wave.sgpr[8..10].copy_from_slice(&[0xffff_ffff, 3]);
    bench.run(&[
        0xc11b0206, 0x00000004, // s_buffer_atomic_smax s8, s[12:15], 0x4 glc
        0xc1030246, 0x00000008, // s_buffer_atomic_swap s9, s[12:15], 0x8 glc
    ]);
    assert_eq!(bench.wave.sgpr[8..10], [0x101, 0]);
    assert_eq!(words(&bench, 4, 2), [0x101, 0x102]);
}

#[test]
fn clocks_go_on() {
    let mut bench = bench();
    // Ends when both have moved.
    bench.run(&[
        0xc0900200, 0x00000000, // s_memtime s[8:9]
        0xc0900280, 0x00000000, // s_memtime s[10:11]
        0xbf120a08, // s_cmp_eq_u64 s[8:9], s[10:11]
        0xbf85fffa, // s_cbranch_scc1 -6
        0xc0940200, 0x00000000, // s_memrealtime s[8:9]
        0xc0940280, 0x00000000, // s_memrealtime s[10:11]
        0xbf120a08, // s_cmp_eq_u64 s[8:9], s[10:11]
        0xbf85fffa, // s_cbranch_scc1 -6
    ]);
    bench.run(&[
        0xc0900200, 0x00000000, // s_memtime s[8:9]
        0xc0940280, 0x00000000, // s_memrealtime s[10:11]
        0xc0900300, 0x00000000, // s_memtime s[12:13]
        0xc0940380, 0x00000000, // s_memrealtime s[14:15]
    ]);
    assert!(bench.wave.pair(12) >= bench.wave.pair(8));
    assert!(bench.wave.pair(14) >= bench.wave.pair(10));
    // 2.1 GHz against 100 MHz, from the same zero.
    assert!(bench.wave.pair(12) / 21 <= bench.wave.pair(14));
    assert!(bench.wave.pair(8) / 21 <= bench.wave.pair(10) + 1);
}

#[test]
fn cache_operations_do_nothing_to_see() {
    let mut bench = bench();
    let before = bench.wave.sgpr;
    bench.run(&[
        0xc0800000, 0x00000000, // s_dcache_inv
        0xc0840000, 0x00000000, // s_dcache_wb
        0xc0880000, 0x00000000, // s_dcache_inv_vol
        0xc08c0000, 0x00000000, // s_dcache_wb_vol
        0xc0a20002, 0x00000000, // s_dcache_discard s[4:5], 0x0
    ]);
    assert_eq!(bench.wave.sgpr, before);
    assert_eq!(words(&bench, 0, 2), [0x100, 0x101]);
}

#[test]
fn scratch_counts_registers_in_dwords_of_all_lanes() {
    let mut bench = bench();
    bench.wave.set_pair(0, MEMORY);
    bench.space.store_u32(MEMORY + 4 * 64, 0x0bad_cafe).unwrap();
    // s_scratch_load_dwordx2 s[4:5], s[0:1], 0x8
    bench.run(&[0xc01a_0100, 0x0000_0008]);
    assert_eq!(bench.wave.sgpr[4..6], [0x102, 0x103]);
    // s_scratch_load_dword s4, s[0:1], s2; of the offset the lowest two bits mean nothing.
    bench.wave.sgpr[2] = 4 + 3;
    bench.run(&[0xc014_0100, 0x0000_0002]);
    assert_eq!(bench.wave.sgpr[4], 0x0bad_cafe);
    // s_scratch_store_dword s4, s[0:1], s2
    bench.wave.sgpr[4] = 0x1357_9bdf;
    bench.run(&[0xc054_0100, 0x0000_0002]);
    assert_eq!(words(&bench, 4 * 64, 1), [0x1357_9bdf]);
}
