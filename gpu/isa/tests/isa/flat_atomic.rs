//! Tests of atomics on global and flat memory.

use crate::bench::{MEMORY, SOME, is_on};
use crate::global::*;
use hipr_isa::aperture::{PRIVATE_BASE, SHARED_BASE};
use hipr_isa::fault::Cause;
use hipr_isa::wave::LANES;

/// Runs an atomic with the data from v10 on, on 8 bytes of memory for each lane, and returns v[20:21] and those 8 bytes
/// afterwards.
fn run_atomic(code: &[u32], old: u64, data: [u32; 4], exec: u64) -> (u64, u64) {
    let mut bench = bench();
    for lane in 0..LANES as u64 {
        bench.space.store_u64(MEMORY + lane * 8, old).unwrap();
    }
    bench.fill64(0, |lane| MEMORY + lane as u64 * 8);
    for (register, value) in (10..).zip(data) {
        bench.fill(register, |_| value);
    }
    bench.fill64(20, |_| 0x7777_7777_7777_7777);
    bench.wave.set_exec(exec);
    bench.run(code);
    let returned = bench.row64(20);
    let new: [u64; LANES] =
        std::array::from_fn(|lane| u64::from_le_bytes(read(&bench, MEMORY + lane as u64 * 8)));
    let on = exec.trailing_zeros() as usize;
    for lane in 0..LANES {
        let expected = if is_on(exec, lane) { (returned[on], new[on]) } else { (0x7777_7777_7777_7777, old) };
        assert_eq!((returned[lane], new[lane]), expected, "lane {lane}");
    }
    (returned[on], new[on])
}

/// A case: the value in memory before, the data operands, and the value in memory afterwards.
type Case = (u32, [u32; 2], u32);

#[test]
fn atomics_on_words() {
    const NEG: u32 = u32::MAX;
    let code: [(&[u32], &[u32], &[Case]); 17] = [
        (
            &[0xdd018000, 0x147f0a00 /* global_atomic_swap v20, v[0:1], v10, off sc0 */],
            &[0xdd000000, 0x00000a00 /* flat_atomic_swap v[0:1], v10 */],
            &[(5, [7, 0], 7)],
        ),
        (
            &[0xdd058000, 0x147f0a00 /* global_atomic_cmpswap v20, v[0:1], v[10:11], off sc0 */],
            &[0xdd040000, 0x00000a00 /* flat_atomic_cmpswap v[0:1], v[10:11] */],
            &[(5, [7, 5], 7), (5, [7, 6], 5)],
        ),
        (
            &[0xdd098000, 0x147f0a00 /* global_atomic_add v20, v[0:1], v10, off sc0 */],
            &[0xdd080000, 0x00000a00 /* flat_atomic_add v[0:1], v10 */],
            &[(5, [NEG, 0], 4)],
        ),
        (
            &[0xdd0d8000, 0x147f0a00 /* global_atomic_sub v20, v[0:1], v10, off sc0 */],
            &[0xdd0c0000, 0x00000a00 /* flat_atomic_sub v[0:1], v10 */],
            &[(5, [7, 0], NEG - 1)],
        ),
        (
            &[0xdd118000, 0x147f0a00 /* global_atomic_smin v20, v[0:1], v10, off sc0 */],
            &[0xdd100000, 0x00000a00 /* flat_atomic_smin v[0:1], v10 */],
            &[(5, [NEG, 0], NEG), (5, [6, 0], 5)],
        ),
        (
            &[0xdd158000, 0x147f0a00 /* global_atomic_umin v20, v[0:1], v10, off sc0 */],
            &[0xdd140000, 0x00000a00 /* flat_atomic_umin v[0:1], v10 */],
            &[(5, [NEG, 0], 5), (5, [4, 0], 4)],
        ),
        (
            &[0xdd198000, 0x147f0a00 /* global_atomic_smax v20, v[0:1], v10, off sc0 */],
            &[0xdd180000, 0x00000a00 /* flat_atomic_smax v[0:1], v10 */],
            &[(5, [NEG, 0], 5), (5, [6, 0], 6)],
        ),
        (
            &[0xdd1d8000, 0x147f0a00 /* global_atomic_umax v20, v[0:1], v10, off sc0 */],
            &[0xdd1c0000, 0x00000a00 /* flat_atomic_umax v[0:1], v10 */],
            &[(5, [NEG, 0], NEG), (5, [4, 0], 5)],
        ),
        (
            &[0xdd218000, 0x147f0a00 /* global_atomic_and v20, v[0:1], v10, off sc0 */],
            &[0xdd200000, 0x00000a00 /* flat_atomic_and v[0:1], v10 */],
            &[(0b0011, [0b0101, 0], 0b0001)],
        ),
        (
            &[0xdd258000, 0x147f0a00 /* global_atomic_or v20, v[0:1], v10, off sc0 */],
            &[0xdd240000, 0x00000a00 /* flat_atomic_or v[0:1], v10 */],
            &[(0b0011, [0b0101, 0], 0b0111)],
        ),
        (
            &[0xdd298000, 0x147f0a00 /* global_atomic_xor v20, v[0:1], v10, off sc0 */],
            &[0xdd280000, 0x00000a00 /* flat_atomic_xor v[0:1], v10 */],
            &[(0b0011, [0b0101, 0], 0b0110)],
        ),
        (
            &[0xdd2d8000, 0x147f0a00 /* global_atomic_inc v20, v[0:1], v10, off sc0 */],
            &[0xdd2c0000, 0x00000a00 /* flat_atomic_inc v[0:1], v10 */],
            &[(5, [7, 0], 6), (7, [7, 0], 0), (8, [7, 0], 0), (NEG - 1, [NEG, 0], NEG)],
        ),
        (
            &[0xdd318000, 0x147f0a00 /* global_atomic_dec v20, v[0:1], v10, off sc0 */],
            &[0xdd300000, 0x00000a00 /* flat_atomic_dec v[0:1], v10 */],
            &[(5, [7, 0], 4), (0, [7, 0], 7), (8, [7, 0], 7), (7, [7, 0], 6)],
        ),
        (
            &[0xdd358000, 0x147f0a00 /* global_atomic_add_f32 v20, v[0:1], v10, off sc0 */],
            &[0xdd340000, 0x00000a00 /* flat_atomic_add_f32 v[0:1], v10 */],
            &[(1.5f32.to_bits(), [2.25f32.to_bits(), 0], 3.75f32.to_bits()), (1, [1, 0], 2)],
        ),
        // 1.0 + 2.0 and 1.0 + 2^-11, which is halfway and goes to the even one.
        (
            &[0xdd398000, 0x147f0a00 /* global_atomic_pk_add_f16 v20, v[0:1], v10, off sc0 */],
            &[0xdd380000, 0x00000a00 /* flat_atomic_pk_add_f16 v[0:1], v10 */],
            &[(0x3c00_3c00, [0x1000_4000, 0], 0x3c00_4200)],
        ),
        (
            &[0xdd498000, 0x147f0a00 /* global_atomic_pk_add_bf16 v20, v[0:1], v10, off sc0 */],
            &[0xdd480000, 0x00000a00 /* flat_atomic_pk_add_bf16 v[0:1], v10 */],
            &[(0x3f80_3f80, [0x3b80_4000, 0], 0x3f80_4040)],
        ),
        (
            &[0xdf098000, 0x147f0a00 /* global_atomic_add v20, v[0:1], v10, off sc0 sc1 */],
            &[0xdf080000, 0x00000a00 /* flat_atomic_add v[0:1], v10 sc1 */],
            &[(1, [1, 0], 2)],
        ),
    ];
    for (returning, silent, cases) in code {
        for &(old, [first, second], new) in cases {
            let high = 0x1234_5678_0000_0000;
            for exec in [u64::MAX, SOME] {
                let memory = high | u64::from(old);
                let expected = (0x7777_7777_0000_0000 | u64::from(old), high | u64::from(new));
                assert_eq!(
                    run_atomic(returning, memory, [first, second, 0, 0], exec),
                    expected,
                    "{returning:x?}"
                );
                let expected = (0x7777_7777_7777_7777, high | u64::from(new));
                assert_eq!(run_atomic(silent, memory, [first, second, 0, 0], exec), expected, "{silent:x?}");
            }
        }
    }
}

/// A case: the value in memory before, the data operands, and the value in memory afterwards.
type WideCase = (u64, [u64; 2], u64);

#[test]
fn atomics_on_pairs_of_words() {
    const NEG: u64 = u64::MAX;
    const BIG: u64 = 5 << 32;
    let code: [(&[u32], &[u32], &[WideCase]); 16] = [
        (
            &[0xdd818000, 0x147f0a00 /* global_atomic_swap_x2 v[20:21], v[0:1], v[10:11], off sc0 */],
            &[0xdd800000, 0x00000a00 /* flat_atomic_swap_x2 v[0:1], v[10:11] */],
            &[(BIG, [7, 0], 7)],
        ),
        (
            &[0xdd858000, 0x147f0a00 /* global_atomic_cmpswap_x2 v[20:21], v[0:1], v[10:13], off sc0 */],
            &[0xdd840000, 0x00000a00 /* flat_atomic_cmpswap_x2 v[0:1], v[10:13] */],
            &[(BIG, [7, BIG], 7), (BIG, [7, 0], BIG), (BIG | 1, [7, 1], BIG | 1)],
        ),
        (
            &[0xdd898000, 0x147f0a00 /* global_atomic_add_x2 v[20:21], v[0:1], v[10:11], off sc0 */],
            &[0xdd880000, 0x00000a00 /* flat_atomic_add_x2 v[0:1], v[10:11] */],
            &[(0xffff_ffff, [1, 0], 1 << 32), (5, [NEG, 0], 4)],
        ),
        (
            &[0xdd8d8000, 0x147f0a00 /* global_atomic_sub_x2 v[20:21], v[0:1], v[10:11], off sc0 */],
            &[0xdd8c0000, 0x00000a00 /* flat_atomic_sub_x2 v[0:1], v[10:11] */],
            &[(1 << 32, [1, 0], 0xffff_ffff)],
        ),
        (
            &[0xdd918000, 0x147f0a00 /* global_atomic_smin_x2 v[20:21], v[0:1], v[10:11], off sc0 */],
            &[0xdd900000, 0x00000a00 /* flat_atomic_smin_x2 v[0:1], v[10:11] */],
            &[(BIG, [NEG, 0], NEG), (BIG, [6 << 32, 0], BIG)],
        ),
        (
            &[0xdd958000, 0x147f0a00 /* global_atomic_umin_x2 v[20:21], v[0:1], v[10:11], off sc0 */],
            &[0xdd940000, 0x00000a00 /* flat_atomic_umin_x2 v[0:1], v[10:11] */],
            &[(BIG, [NEG, 0], BIG), (BIG, [4 << 32, 0], 4 << 32)],
        ),
        (
            &[0xdd998000, 0x147f0a00 /* global_atomic_smax_x2 v[20:21], v[0:1], v[10:11], off sc0 */],
            &[0xdd980000, 0x00000a00 /* flat_atomic_smax_x2 v[0:1], v[10:11] */],
            &[(BIG, [NEG, 0], BIG), (BIG, [6 << 32, 0], 6 << 32)],
        ),
        (
            &[0xdd9d8000, 0x147f0a00 /* global_atomic_umax_x2 v[20:21], v[0:1], v[10:11], off sc0 */],
            &[0xdd9c0000, 0x00000a00 /* flat_atomic_umax_x2 v[0:1], v[10:11] */],
            &[(BIG, [NEG, 0], NEG), (BIG, [4 << 32, 0], BIG)],
        ),
        (
            &[0xdda18000, 0x147f0a00 /* global_atomic_and_x2 v[20:21], v[0:1], v[10:11], off sc0 */],
            &[0xdda00000, 0x00000a00 /* flat_atomic_and_x2 v[0:1], v[10:11] */],
            &[(0x3 << 40, [0x5 << 40, 0], 0x1 << 40)],
        ),
        (
            &[0xdda58000, 0x147f0a00 /* global_atomic_or_x2 v[20:21], v[0:1], v[10:11], off sc0 */],
            &[0xdda40000, 0x00000a00 /* flat_atomic_or_x2 v[0:1], v[10:11] */],
            &[(0x3 << 40, [0x5 << 40, 0], 0x7 << 40)],
        ),
        (
            &[0xdda98000, 0x147f0a00 /* global_atomic_xor_x2 v[20:21], v[0:1], v[10:11], off sc0 */],
            &[0xdda80000, 0x00000a00 /* flat_atomic_xor_x2 v[0:1], v[10:11] */],
            &[(0x3 << 40, [0x5 << 40, 0], 0x6 << 40)],
        ),
        (
            &[0xddad8000, 0x147f0a00 /* global_atomic_inc_x2 v[20:21], v[0:1], v[10:11], off sc0 */],
            &[0xddac0000, 0x00000a00 /* flat_atomic_inc_x2 v[0:1], v[10:11] */],
            &[(0xffff_ffff, [NEG, 0], 1 << 32), (BIG, [BIG, 0], 0), (BIG + 1, [BIG, 0], 0)],
        ),
        (
            &[0xddb18000, 0x147f0a00 /* global_atomic_dec_x2 v[20:21], v[0:1], v[10:11], off sc0 */],
            &[0xddb00000, 0x00000a00 /* flat_atomic_dec_x2 v[0:1], v[10:11] */],
            &[(BIG, [BIG, 0], BIG - 1), (0, [BIG, 0], BIG), (BIG + 1, [BIG, 0], BIG)],
        ),
        (
            &[0xdd3d8000, 0x147f0a00 /* global_atomic_add_f64 v[20:21], v[0:1], v[10:11], off sc0 */],
            &[0xdd3c0000, 0x00000a00 /* flat_atomic_add_f64 v[0:1], v[10:11] */],
            &[(1.5f64.to_bits(), [2.25f64.to_bits(), 0], 3.75f64.to_bits()), (1, [1, 0], 2)],
        ),
        (
            &[0xdd418000, 0x147f0a00 /* global_atomic_min_f64 v[20:21], v[0:1], v[10:11], off sc0 */],
            &[0xdd400000, 0x00000a00 /* flat_atomic_min_f64 v[0:1], v[10:11] */],
            &[
                (1.5f64.to_bits(), [(-2f64).to_bits(), 0], (-2f64).to_bits()),
                (0, [(-0f64).to_bits(), 0], (-0f64).to_bits()),
                (1.5f64.to_bits(), [f64::NAN.to_bits(), 0], 1.5f64.to_bits()),
                (f64::NAN.to_bits(), [1.5f64.to_bits(), 0], 1.5f64.to_bits()),
            ],
        ),
        (
            &[0xdd458000, 0x147f0a00 /* global_atomic_max_f64 v[20:21], v[0:1], v[10:11], off sc0 */],
            &[0xdd440000, 0x00000a00 /* flat_atomic_max_f64 v[0:1], v[10:11] */],
            &[
                (1.5f64.to_bits(), [(-2f64).to_bits(), 0], 1.5f64.to_bits()),
                ((-0f64).to_bits(), [0, 0], 0),
                (1.5f64.to_bits(), [f64::INFINITY.to_bits(), 0], f64::INFINITY.to_bits()),
                (f64::NAN.to_bits(), [1.5f64.to_bits(), 0], 1.5f64.to_bits()),
            ],
        ),
    ];
    for (returning, silent, cases) in code {
        for &(old, [first, second], new) in cases {
            let data = [first as u32, (first >> 32) as u32, second as u32, (second >> 32) as u32];
            for exec in [u64::MAX, SOME] {
                assert_eq!(run_atomic(returning, old, data, exec), (old, new), "{returning:x?}");
                assert_eq!(run_atomic(silent, old, data, exec), (0x7777_7777_7777_7777, new), "{silent:x?}");
            }
        }
    }
}

#[test]
fn lanes_that_update_one_word_come_one_after_the_other() {
    let mut bench = bench();
    bench.space.store_u32(MEMORY, 100).unwrap();
    bench.fill64(0, |_| MEMORY);
    bench.fill(10, |lane| lane as u32);
    bench.wave.set_exec(SOME);
    bench.run(&[0xdd098000, 0x147f0a00 /* global_atomic_add v20, v[0:1], v10, off sc0 */]);
    let mut sum = 100;
    for lane in 0..LANES {
        let expected = if is_on(SOME, lane) { sum } else { 0 };
        assert_eq!(bench.wave.row(20)[lane], expected, "lane {lane}");
        sum += if is_on(SOME, lane) { lane as u32 } else { 0 };
    }
    assert_eq!(read_word(&bench, 0), sum);
}

#[test]
fn misaligned_atomics_are_faults() {
    let code: [(&[u32], u64); 4] = [
        (&[0xdd088000, 0x007f0a00 /* global_atomic_add v[0:1], v10, off */], 2),
        (&[0xdd340000, 0x00000a00 /* flat_atomic_add_f32 v[0:1], v10 */], 1),
        (&[0xdd888000, 0x007f0a00 /* global_atomic_add_x2 v[0:1], v[10:11], off */], 4),
        (&[0xdd840000, 0x00000a00 /* flat_atomic_cmpswap_x2 v[0:1], v[10:13] */], 4),
    ];
    for base in [MEMORY, SHARED_BASE, PRIVATE_BASE] {
        for (code, offset) in code {
            if base != MEMORY && code[0] >> 14 & 3 == 2 {
                continue;
            }
            let mut bench = bench();
            bench.fill64(0, |lane| base + if lane == 3 { offset } else { 0 });
            let fault = bench.try_run(code).unwrap_err();
            assert_eq!(fault.cause, Cause::MisalignedAtomic { lane: 3, addr: base + offset }, "{code:x?}");
        }
    }
}
