//! Tests of atomics on LDS.

use crate::bench::{SOME, is_on};
use crate::lds::*;
use hipr_isa::fault::Cause;
use hipr_isa::wave::{LANES, M0};

/// Runs an atomic with v[10:11] and v[12:13] on LDS, 8 bytes for each lane, and returns v[20:21] and the 8 bytes after it.
fn run_atomic(code: &[u32], old: u64, data: [u64; 2], exec: u64) -> (u64, u64) {
    let mut bench = bench();
    let at = |lane: usize| lane as u32 * 8 + 64;
    for lane in 0..LANES {
        bench.lds.store_u32(at(lane), old as u32);
        bench.lds.store_u32(at(lane) + 4, (old >> 32) as u32);
    }
    bench.fill(0, |lane| at(lane) - 64);
    bench.fill64(10, |_| data[0]);
    bench.fill64(12, |_| data[1]);
    bench.fill64(20, |_| 0x7777_7777_7777_7777);
    bench.wave.set_exec(exec);
    bench.run(code);
    let returned = bench.row64(20);
    let new: [u64; LANES] = std::array::from_fn(|lane| {
        u64::from(bench.lds.load_u32(at(lane))) | u64::from(bench.lds.load_u32(at(lane) + 4)) << 32
    });
    let on = exec.trailing_zeros() as usize;
    for lane in 0..LANES {
        let expected = if is_on(exec, lane) { (returned[on], new[on]) } else { (0x7777_7777_7777_7777, old) };
        assert_eq!((returned[lane], new[lane]), expected, "lane {lane}");
    }
    (returned[on], new[on])
}

/// A case: the old value, the data operands, and the new value.
type Case = (u32, [u32; 2], u32);

/// Checks an atomic on words, in its forms without and with a result.
fn check_atomic(silent: Option<&[u32]>, returning: Option<&[u32]>, cases: &[Case]) {
    let high = 0x1234_5678_0000_0000;
    for &(old, data, new) in cases {
        let data = data.map(u64::from);
        for exec in [u64::MAX, SOME] {
            if let Some(code) = silent {
                let expected = (0x7777_7777_7777_7777, high | u64::from(new));
                assert_eq!(
                    run_atomic(code, high | u64::from(old), data, exec),
                    expected,
                    "{code:x?} {old:#x}"
                );
            }
            if let Some(code) = returning {
                let expected = (0x7777_7777_0000_0000 | u64::from(old), high | u64::from(new));
                assert_eq!(
                    run_atomic(code, high | u64::from(old), data, exec),
                    expected,
                    "{code:x?} {old:#x}"
                );
            }
        }
    }
}

/// Checks an atomic on pairs of words, in its forms without and with a result.
fn check_wide(silent: Option<&[u32]>, returning: Option<&[u32]>, cases: &[(u64, [u64; 2], u64)]) {
    for &(old, data, new) in cases {
        for exec in [u64::MAX, SOME] {
            if let Some(code) = silent {
                assert_eq!(
                    run_atomic(code, old, data, exec),
                    (0x7777_7777_7777_7777, new),
                    "{code:x?} {old:#x}"
                );
            }
            if let Some(code) = returning {
                assert_eq!(run_atomic(code, old, data, exec), (old, new), "{code:x?} {old:#x}");
            }
        }
    }
}

#[test]
fn atomics_on_words() {
    const NEG: u32 = u32::MAX;
    let f = f32::to_bits;
    check_atomic(
        Some(&[0xd8000040, 0x00000a00 /* ds_add_u32 v0, v10 offset:64 */]),
        Some(&[0xd8400040, 0x14000a00 /* ds_add_rtn_u32 v20, v0, v10 offset:64 */]),
        &[(5, [NEG, 0], 4)],
    );
    check_atomic(
        Some(&[0xd8020040, 0x00000a00 /* ds_sub_u32 v0, v10 offset:64 */]),
        Some(&[0xd8420040, 0x14000a00 /* ds_sub_rtn_u32 v20, v0, v10 offset:64 */]),
        &[(5, [7, 0], NEG - 1)],
    );
    check_atomic(
        Some(&[0xd8040040, 0x00000a00 /* ds_rsub_u32 v0, v10 offset:64 */]),
        Some(&[0xd8440040, 0x14000a00 /* ds_rsub_rtn_u32 v20, v0, v10 offset:64 */]),
        &[(5, [7, 0], 2)],
    );
    check_atomic(
        Some(&[0xd8060040, 0x00000a00 /* ds_inc_u32 v0, v10 offset:64 */]),
        Some(&[0xd8460040, 0x14000a00 /* ds_inc_rtn_u32 v20, v0, v10 offset:64 */]),
        &[(5, [7, 0], 6), (7, [7, 0], 0), (8, [7, 0], 0)],
    );
    check_atomic(
        Some(&[0xd8080040, 0x00000a00 /* ds_dec_u32 v0, v10 offset:64 */]),
        Some(&[0xd8480040, 0x14000a00 /* ds_dec_rtn_u32 v20, v0, v10 offset:64 */]),
        &[(5, [7, 0], 4), (0, [7, 0], 7), (8, [7, 0], 7)],
    );
    check_atomic(
        Some(&[0xd80a0040, 0x00000a00 /* ds_min_i32 v0, v10 offset:64 */]),
        Some(&[0xd84a0040, 0x14000a00 /* ds_min_rtn_i32 v20, v0, v10 offset:64 */]),
        &[(5, [NEG, 0], NEG), (5, [6, 0], 5)],
    );
    check_atomic(
        Some(&[0xd80c0040, 0x00000a00 /* ds_max_i32 v0, v10 offset:64 */]),
        Some(&[0xd84c0040, 0x14000a00 /* ds_max_rtn_i32 v20, v0, v10 offset:64 */]),
        &[(5, [NEG, 0], 5), (5, [6, 0], 6)],
    );
    check_atomic(
        Some(&[0xd80e0040, 0x00000a00 /* ds_min_u32 v0, v10 offset:64 */]),
        Some(&[0xd84e0040, 0x14000a00 /* ds_min_rtn_u32 v20, v0, v10 offset:64 */]),
        &[(5, [NEG, 0], 5), (5, [4, 0], 4)],
    );
    check_atomic(
        Some(&[0xd8100040, 0x00000a00 /* ds_max_u32 v0, v10 offset:64 */]),
        Some(&[0xd8500040, 0x14000a00 /* ds_max_rtn_u32 v20, v0, v10 offset:64 */]),
        &[(5, [NEG, 0], NEG), (5, [4, 0], 5)],
    );
    check_atomic(
        Some(&[0xd8120040, 0x00000a00 /* ds_and_b32 v0, v10 offset:64 */]),
        Some(&[0xd8520040, 0x14000a00 /* ds_and_rtn_b32 v20, v0, v10 offset:64 */]),
        &[(3, [5, 0], 1)],
    );
    check_atomic(
        Some(&[0xd8140040, 0x00000a00 /* ds_or_b32 v0, v10 offset:64 */]),
        Some(&[0xd8540040, 0x14000a00 /* ds_or_rtn_b32 v20, v0, v10 offset:64 */]),
        &[(3, [5, 0], 7)],
    );
    check_atomic(
        Some(&[0xd8160040, 0x00000a00 /* ds_xor_b32 v0, v10 offset:64 */]),
        Some(&[0xd8560040, 0x14000a00 /* ds_xor_rtn_b32 v20, v0, v10 offset:64 */]),
        &[(3, [5, 0], 6)],
    );
    check_atomic(
        Some(&[0xd8180040, 0x000c0a00 /* ds_mskor_b32 v0, v10, v12 offset:64 */]),
        Some(&[0xd8580040, 0x140c0a00 /* ds_mskor_rtn_b32 v20, v0, v10, v12 offset:64 */]),
        &[(0xff, [0xf, 0x100], 0x1f0)],
    );
    // The first operand is what is compared with.
    check_atomic(
        Some(&[0xd8200040, 0x000c0a00 /* ds_cmpst_b32 v0, v10, v12 offset:64 */]),
        Some(&[0xd8600040, 0x140c0a00 /* ds_cmpst_rtn_b32 v20, v0, v10, v12 offset:64 */]),
        &[(5, [5, 9], 9), (5, [9, 5], 5)],
    );
    check_atomic(
        Some(&[0xd8220040, 0x000c0a00 /* ds_cmpst_f32 v0, v10, v12 offset:64 */]),
        Some(&[0xd8620040, 0x140c0a00 /* ds_cmpst_rtn_f32 v20, v0, v10, v12 offset:64 */]),
        &[(f(0.0), [f(-0.0), 9], 9), (f(f32::NAN), [f(f32::NAN), 9], f(f32::NAN)), (5, [6, 9], 5)],
    );
    check_atomic(
        Some(&[0xd8240040, 0x00000a00 /* ds_min_f32 v0, v10 offset:64 */]),
        Some(&[0xd8640040, 0x14000a00 /* ds_min_rtn_f32 v20, v0, v10 offset:64 */]),
        &[
            (f(1.0), [f(-1.0), 0], f(-1.0)),
            (f(f32::NAN), [f(2.0), 0], f(2.0)),
            (f(2.0), [f(f32::NAN), 0], f(2.0)),
            // Signalling NaNs come out, quieted.
            (f(2.0), [0x7f80_0001, 0], 0x7fc0_0001),
            (0xff80_0001, [f(2.0), 0], 0xffc0_0001),
            (f(0.0), [f(-0.0), 0], f(-0.0)),
        ],
    );
    check_atomic(
        Some(&[0xd8260040, 0x00000a00 /* ds_max_f32 v0, v10 offset:64 */]),
        Some(&[0xd8660040, 0x14000a00 /* ds_max_rtn_f32 v20, v0, v10 offset:64 */]),
        &[(f(1.0), [f(-1.0), 0], f(1.0)), (f(f32::NAN), [f(2.0), 0], f(2.0)), (f(-0.0), [f(0.0), 0], f(0.0))],
    );
    check_atomic(
        Some(&[0xd82a0040, 0x00000a00 /* ds_add_f32 v0, v10 offset:64 */]),
        Some(&[0xd86a0040, 0x14000a00 /* ds_add_rtn_f32 v20, v0, v10 offset:64 */]),
        &[(f(1.5), [f(2.25), 0], f(3.75)), (f(16_777_216.0), [f(1.0), 0], f(16_777_216.0))],
    );
    check_atomic(
        Some(&[0xd82e0040, 0x00000a00 /* ds_pk_add_f16 v0, v10 offset:64 */]),
        Some(&[0xd96e0040, 0x14000a00 /* ds_pk_add_rtn_f16 v20, v0, v10 offset:64 */]),
        &[(0x3c00_3c00, [0x1000_4000, 0], 0x3c00_4200)],
    );
    check_atomic(
        Some(&[0xd8300040, 0x00000a00 /* ds_pk_add_bf16 v0, v10 offset:64 */]),
        Some(&[0xd9700040, 0x14000a00 /* ds_pk_add_rtn_bf16 v20, v0, v10 offset:64 */]),
        &[(0x3f80_3f80, [0x3b80_4000, 0], 0x3f80_4040)],
    );
    check_atomic(
        None,
        Some(&[0xd85a0040, 0x14000a00 /* ds_wrxchg_rtn_b32 v20, v0, v10 offset:64 */]),
        &[(5, [7, 0], 7)],
    );
    check_atomic(
        None,
        Some(&[0xd8680040, 0x140c0a00 /* ds_wrap_rtn_b32 v20, v0, v10, v12 offset:64 */]),
        &[(9, [7, 100], 2), (5, [7, 100], 105), (7, [7, 100], 0)],
    );
}

#[test]
fn atomics_on_pairs_of_words() {
    const NEG: u64 = u64::MAX;
    const BIG: u64 = 5 << 32;
    let f = f64::to_bits;
    check_wide(
        Some(&[0xd8800040, 0x00000a00 /* ds_add_u64 v0, v[10:11] offset:64 */]),
        Some(&[0xd8c00040, 0x14000a00 /* ds_add_rtn_u64 v[20:21], v0, v[10:11] offset:64 */]),
        &[(0xffff_ffff, [1, 0], 1 << 32)],
    );
    check_wide(
        Some(&[0xd8820040, 0x00000a00 /* ds_sub_u64 v0, v[10:11] offset:64 */]),
        Some(&[0xd8c20040, 0x14000a00 /* ds_sub_rtn_u64 v[20:21], v0, v[10:11] offset:64 */]),
        &[(1 << 32, [1, 0], 0xffff_ffff)],
    );
    check_wide(
        Some(&[0xd8840040, 0x00000a00 /* ds_rsub_u64 v0, v[10:11] offset:64 */]),
        Some(&[0xd8c40040, 0x14000a00 /* ds_rsub_rtn_u64 v[20:21], v0, v[10:11] offset:64 */]),
        &[(1, [1 << 32, 0], 0xffff_ffff)],
    );
    check_wide(
        Some(&[0xd8860040, 0x00000a00 /* ds_inc_u64 v0, v[10:11] offset:64 */]),
        Some(&[0xd8c60040, 0x14000a00 /* ds_inc_rtn_u64 v[20:21], v0, v[10:11] offset:64 */]),
        &[(0xffff_ffff, [NEG, 0], 1 << 32), (BIG, [BIG, 0], 0)],
    );
    check_wide(
        Some(&[0xd8880040, 0x00000a00 /* ds_dec_u64 v0, v[10:11] offset:64 */]),
        Some(&[0xd8c80040, 0x14000a00 /* ds_dec_rtn_u64 v[20:21], v0, v[10:11] offset:64 */]),
        &[(BIG, [BIG, 0], BIG - 1), (0, [BIG, 0], BIG), (BIG + 1, [BIG, 0], BIG)],
    );
    check_wide(
        Some(&[0xd88a0040, 0x00000a00 /* ds_min_i64 v0, v[10:11] offset:64 */]),
        Some(&[0xd8ca0040, 0x14000a00 /* ds_min_rtn_i64 v[20:21], v0, v[10:11] offset:64 */]),
        &[(BIG, [NEG, 0], NEG), (BIG, [6 << 32, 0], BIG)],
    );
    check_wide(
        Some(&[0xd88c0040, 0x00000a00 /* ds_max_i64 v0, v[10:11] offset:64 */]),
        Some(&[0xd8cc0040, 0x14000a00 /* ds_max_rtn_i64 v[20:21], v0, v[10:11] offset:64 */]),
        &[(BIG, [NEG, 0], BIG), (BIG, [6 << 32, 0], 6 << 32)],
    );
    check_wide(
        Some(&[0xd88e0040, 0x00000a00 /* ds_min_u64 v0, v[10:11] offset:64 */]),
        Some(&[0xd8ce0040, 0x14000a00 /* ds_min_rtn_u64 v[20:21], v0, v[10:11] offset:64 */]),
        &[(BIG, [NEG, 0], BIG), (BIG, [4 << 32, 0], 4 << 32)],
    );
    check_wide(
        Some(&[0xd8900040, 0x00000a00 /* ds_max_u64 v0, v[10:11] offset:64 */]),
        Some(&[0xd8d00040, 0x14000a00 /* ds_max_rtn_u64 v[20:21], v0, v[10:11] offset:64 */]),
        &[(BIG, [NEG, 0], NEG), (BIG, [4 << 32, 0], BIG)],
    );
    check_wide(
        Some(&[0xd8920040, 0x00000a00 /* ds_and_b64 v0, v[10:11] offset:64 */]),
        Some(&[0xd8d20040, 0x14000a00 /* ds_and_rtn_b64 v[20:21], v0, v[10:11] offset:64 */]),
        &[(3 << 40, [5 << 40, 0], 1 << 40)],
    );
    check_wide(
        Some(&[0xd8940040, 0x00000a00 /* ds_or_b64 v0, v[10:11] offset:64 */]),
        Some(&[0xd8d40040, 0x14000a00 /* ds_or_rtn_b64 v[20:21], v0, v[10:11] offset:64 */]),
        &[(3 << 40, [5 << 40, 0], 7 << 40)],
    );
    check_wide(
        Some(&[0xd8960040, 0x00000a00 /* ds_xor_b64 v0, v[10:11] offset:64 */]),
        Some(&[0xd8d60040, 0x14000a00 /* ds_xor_rtn_b64 v[20:21], v0, v[10:11] offset:64 */]),
        &[(3 << 40, [5 << 40, 0], 6 << 40)],
    );
    check_wide(
        Some(&[0xd8980040, 0x000c0a00 /* ds_mskor_b64 v0, v[10:11], v[12:13] offset:64 */]),
        Some(&[
            0xd8d80040, 0x140c0a00, /* ds_mskor_rtn_b64 v[20:21], v0, v[10:11], v[12:13] offset:64 */
        ]),
        &[(0xff << 32, [0xf << 32, 1 << 63], 0xf0 << 32 | 1 << 63)],
    );
    check_wide(
        Some(&[0xd8a00040, 0x000c0a00 /* ds_cmpst_b64 v0, v[10:11], v[12:13] offset:64 */]),
        Some(&[
            0xd8e00040, 0x140c0a00, /* ds_cmpst_rtn_b64 v[20:21], v0, v[10:11], v[12:13] offset:64 */
        ]),
        &[(BIG, [BIG, 9], 9), (BIG, [5, 9], BIG)],
    );
    check_wide(
        Some(&[0xd8a20040, 0x000c0a00 /* ds_cmpst_f64 v0, v[10:11], v[12:13] offset:64 */]),
        Some(&[
            0xd8e20040, 0x140c0a00, /* ds_cmpst_rtn_f64 v[20:21], v0, v[10:11], v[12:13] offset:64 */
        ]),
        &[(f(0.0), [f(-0.0), 9], 9), (BIG, [5, 9], BIG)],
    );
    check_wide(
        Some(&[0xd8a40040, 0x00000a00 /* ds_min_f64 v0, v[10:11] offset:64 */]),
        Some(&[0xd8e40040, 0x14000a00 /* ds_min_rtn_f64 v[20:21], v0, v[10:11] offset:64 */]),
        &[(f(1.0), [f(-1.0), 0], f(-1.0)), (f(f64::NAN), [f(2.0), 0], f(2.0))],
    );
    check_wide(
        Some(&[0xd8a60040, 0x00000a00 /* ds_max_f64 v0, v[10:11] offset:64 */]),
        Some(&[0xd8e60040, 0x14000a00 /* ds_max_rtn_f64 v[20:21], v0, v[10:11] offset:64 */]),
        &[(f(1.0), [f(-1.0), 0], f(1.0)), (f(2.0), [f(f64::NAN), 0], f(2.0))],
    );
    check_wide(
        Some(&[0xd8b80040, 0x00000a00 /* ds_add_f64 v0, v[10:11] offset:64 */]),
        Some(&[0xd8f80040, 0x14000a00 /* ds_add_rtn_f64 v[20:21], v0, v[10:11] offset:64 */]),
        &[(f(1.5), [f(2.25), 0], f(3.75))],
    );
    check_wide(
        None,
        Some(&[0xd8da0040, 0x14000a00 /* ds_wrxchg_rtn_b64 v[20:21], v0, v[10:11] offset:64 */]),
        &[(BIG, [7 << 32, 0], 7 << 32)],
    );
    check_wide(
        None,
        Some(&[0xd8fc0040, 0x14000a00 /* ds_condxchg32_rtn_b64 v[20:21], v0, v[10:11] offset:64 */]),
        &[(BIG | 3, [0x8000_0001_0000_0002, 0], 1 << 32 | 3), (BIG | 3, [0x0000_0001_8000_0002, 0], BIG | 2)],
    );
}

#[test]
fn two_exchanges_at_once() {
    let mut bench = bench();
    bench.fill(0, |lane| lane as u32 * 16);
    bench.fill64(10, |lane| 0xaaaa_0000_0000_1000 + lane as u64);
    bench.fill64(12, |lane| 0xbbbb_0000_0000_2000 + lane as u64);
    bench.wave.set_exec(SOME);
    bench.run(&[
        0xd85c0200, 0x140c0a00, // ds_wrxchg2_rtn_b32 v[20:21], v0, v10, v12 offset0:0 offset1:2
        0xd8de0402,
        0x180c0a00, // ds_wrxchg2st64_rtn_b64 v[24:27], v0, v[10:11], v[12:13] offset0:2 offset1:4
    ]);
    for lane in (0..LANES).filter(|&lane| is_on(SOME, lane)) {
        let at = lane as u32 * 16;
        let row = [20, 21, 24, 25, 26, 27].map(|register| bench.wave.row(register)[lane]);
        assert_eq!(row[..2], [word(at), word(at + 8)]);
        assert_eq!(row[2..], [word(at + 1024), word(at + 1028), word(at + 2048), word(at + 2052)]);
        let lane32 = lane as u32;
        assert_eq!((bench.lds.load_u32(at), bench.lds.load_u32(at + 8)), (0x1000 + lane32, 0x2000 + lane32));
        assert_eq!(
            (bench.lds.load_u32(at + 1024), bench.lds.load_u32(at + 1028)),
            (0x1000 + lane32, 0xaaaa_0000)
        );
        assert_eq!(
            (bench.lds.load_u32(at + 2048), bench.lds.load_u32(at + 2052)),
            (0x2000 + lane32, 0xbbbb_0000)
        );
    }
    assert_eq!(bench.wave.row(20)[1], 0);
    assert_eq!(bench.lds.load_u32(16), word(16));
}

#[test]
fn lanes_that_update_one_word_come_one_after_the_other() {
    let mut bench = bench();
    bench.lds.store_u32(16, 100);
    bench.fill(0, |_| 16);
    bench.fill(10, |lane| lane as u32);
    bench.wave.set_exec(SOME);
    bench.run(&[0xd8400000, 0x14000a00 /* ds_add_rtn_u32 v20, v0, v10 */]);
    let mut sum = 100;
    for lane in 0..LANES {
        assert_eq!(bench.wave.row(20)[lane], if is_on(SOME, lane) { sum } else { 0 }, "lane {lane}");
        sum += if is_on(SOME, lane) { lane as u32 } else { 0 };
    }
    assert_eq!(bench.lds.load_u32(16), sum);
}

#[test]
fn atomics_beyond_the_end_see_zero_and_change_nothing() {
    let mut bench = bench();
    bench.fill(0, |_| LEN_BYTES);
    bench.fill(10, |_| 5);
    bench.fill(20, |_| 7);
    bench.run(&[0xd8400000, 0x14000a00 /* ds_add_rtn_u32 v20, v0, v10 */]);
    assert_eq!(bench.wave.row(20), &[0; LANES]);
    assert!(contents(&bench) == (0..LEN_BYTES).map(byte).collect::<Vec<_>>());
}

#[test]
fn misaligned_atomics_are_faults() {
    let code: [(&[u32], u32); 3] = [
        (&[0xd8000000, 0x00000a00 /* ds_add_u32 v0, v10 */], 2),
        (&[0xd8f80000, 0x14000a00 /* ds_add_rtn_f64 v[20:21], v0, v[10:11] */], 4),
        (&[0xd8e00000, 0x140c0a00 /* ds_cmpst_rtn_b64 v[20:21], v0, v[10:11], v[12:13] */], 4),
    ];
    for (code, offset) in code {
        let mut bench = bench();
        bench.fill(0, |lane| if lane == 3 { 64 + offset } else { 64 });
        let fault = bench.try_run(code).unwrap_err();
        assert_eq!(fault.cause, Cause::MisalignedAtomic { lane: 3, addr: u64::from(64 + offset) });
    }
}

#[test]
fn counters_by_lanes() {
    let mut bench = bench();
    bench.lds.store_u32(40, 100);
    bench.wave.sgpr[M0] = 32;
    bench.wave.set_exec(SOME);
    let count = SOME.count_ones();
    bench.run(&[
        0xd97c0008, 0x0a000000, // ds_append v10 offset:8
        0xd97a0008, 0x0b000000, // ds_consume v11 offset:8
        0xd97c0008, 0x0c000000, // ds_append v12 offset:8
        0xd96c0008, 0x0d000000, // ds_read_addtid_b32 v13 offset:8
    ]);
    for lane in 0..LANES {
        let row: [u32; 4] = std::array::from_fn(|index| bench.wave.row(10 + index)[lane]);
        let by_lane = if lane == 0 { 100 + count } else { word(40 + lane as u32 * 4) };
        let expected = if is_on(SOME, lane) { [100, 100 + count, 100, by_lane] } else { [0; 4] };
        assert_eq!(row, expected, "lane {lane}");
    }
    assert_eq!(bench.lds.load_u32(40), 100 + count);
    bench.wave.set_exec(0);
    bench.run(&[0xd97c0008, 0x0a000000 /* ds_append v10 offset:8 */]);
    assert_eq!(bench.lds.load_u32(40), 100 + count);
}
