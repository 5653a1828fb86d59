//! Tests of instructions of real kernels that no other test covers: edge cases of each.

use crate::bench::{Bench, Wide, check, check_wide, check1, check2, d, f};
use crate::bench::{QUIETED, SNAN};

#[test]
fn integers() {
    let minus = |n: i32| -n as u32;
    check2(&[0x1e060501], "v_max_u32 v3, v1, v2", &[(1, u32::MAX, u32::MAX), (5, 4, 5), (0, 0, 0)]);
    check2(
        &[0x18060501],
        "v_min_i32 v3, v1, v2",
        &[(1, minus(1), minus(1)), (0x8000_0000, 0x7fff_ffff, 0x8000_0000)],
    );
    check2(
        &[0x60060501],
        "v_max_i16 v3, v1, v2",
        &[(0xffff, 1, 1), (0x8000, 0x7fff, 0x7fff), (0xaaaa_0001, 0, 1)],
    );
    check2(&[0x5e060501], "v_max_u16 v3, v1, v2", &[(0xffff, 1, 0xffff), (0x5_0002, 0x6_0003, 3)]);
    check2(&[0x62060501], "v_min_u16 v3, v1, v2", &[(0xffff, 1, 1), (0x5_0002, 0x6_0003, 2)]);
    check2(
        &[0x56060501],
        "v_lshrrev_b16 v3, v1, v2",
        &[(4, 0xffff_8000, 0x0800), (16 + 1, 2, 1), (15, 0x8000, 1)],
    );
    check(
        &[0xd1eb0003, 0x04120501],
        "v_mad_legacy_u16 v3, v1, v2, v4",
        &[(3, 4, 5, 17), (0xffff, 0xffff, 0xffff, 0), (0x1_0002, 0x1_0003, 0x1_0001, 7)],
    );
    check(
        &[0xd1d40003, 0x04120501],
        "v_max3_i32 v3, v1, v2, v4",
        &[(minus(5), minus(7), minus(6), minus(5)), (0x8000_0000, 0, 1, 1), (3, 9, 4, 9)],
    );
    check(
        &[0xd1d50003, 0x04120501],
        "v_max3_u32 v3, v1, v2, v4",
        &[(minus(5), minus(7), 1, minus(5)), (0x8000_0000, 0x7fff_ffff, 1, 0x8000_0000), (3, 9, 14, 14)],
    );
    check1(
        &[0x7e062301],
        "v_cvt_f32_ubyte0 v3, v1",
        &[(0xffff_ff00, 0), (0x1234_56ff, f(255.0)), (1, f(1.0))],
    );
}

#[test]
fn a_borrow_for_each_lane() {
    let mut bench = Bench::default();
    bench.wave.set_exec(0b1111);
    bench.wave.set_vcc(u64::MAX);
    for (register, values) in [(1, [1, 5, 0, u32::MAX]), (2, [3, 4, 0, 0])] {
        bench.fill(register, |lane| values[lane % 4]);
    }
    bench.fill(3, |_| 9);
    // v_subrev_co_u32 v3, vcc, v1, v2
    bench.run(&[0x36060501]);
    assert_eq!(bench.wave.row(3)[..5], [2, u32::MAX, 0, 1, 9]);
    assert_eq!(bench.wave.vcc(), 0b1010);
}

#[test]
fn lanes_below_are_counted() {
    for exec in [u64::MAX, 0xff0f_0000_8000_0001] {
        let mut bench = Bench::default();
        bench.wave.set_exec(exec);
        bench.fill(1, |_| 0xf000_000f);
        bench.fill(2, |_| 100);
        bench.fill(3, |_| 9);
        bench.fill(5, |_| 9);
        // v_mbcnt_lo_u32_b32 v3, v1, v2; v_mbcnt_hi_u32_b32 v5, v1, v2
        bench.run(&[0xd28c0003, 0x00020501, 0xd28d0005, 0x00020501]);
        for lane in 0..64u32 {
            let below = |bits: u64| (bits & ((1u64 << lane) - 1)).count_ones() + 100;
            let expected =
                if exec >> lane & 1 == 1 { [below(0xf000_000f), below(0xf000_000f << 32)] } else { [9, 9] };
            let got = [3, 5].map(|register| bench.wave.row(register)[lane as usize]);
            assert_eq!(got, expected, "lane {lane}");
        }
    }
}

#[test]
fn floats() {
    check2(
        &[0x06060501],
        "v_subrev_f32 v3, v1, v2",
        &[
            (f(1.0), f(3.0), f(2.0)),
            (f(1.0), f(1.0), 0),
            (f(0.0), f(-0.0), f(-0.0)),
            (SNAN, f(1.0), QUIETED),
            (f(f32::INFINITY), f(1.0), f(f32::NEG_INFINITY)),
            (1, 3, 2),
        ],
    );
    let wide = |v4: f64, result: f64| (Wide { v4: d(v4), ..Wide::default() }, d(result));
    check_wide(
        &[0x7e106504],
        "v_fract_f64 v[8:9], v[4:5]",
        &[
            wide(1.25, 0.25),
            wide(-1.25, 0.75),
            wide(-1e-300, 1.0 - f64::EPSILON / 2.0),
            wide(7.0, 0.0),
            wide(1e300, 0.0),
        ],
    );
}

#[test]
fn half_floats() {
    check2(
        &[0x42060501],
        "v_subrev_f16 v3, v1, v2",
        &[(0x3c00, 0x4200, 0x4000), (0x7c00, 0x3c00, 0xfc00), (0x0001, 0x0003, 0x0002), (0, 0x8000, 0x8000)],
    );
    let cases = [
        (0x3c00, 0x4000),
        (0xbc00, 0x3800),
        (0, 0x3c00),
        (0x4c00, 0x7c00),
        (0xfc00, 0),
        (0xd000, 0),
        (0x7c00, 0x7c00),
    ];
    check1(&[0x7e068301], "v_exp_f16 v3, v1", &cases);
    let cases = [
        (0x3e00, 0x3c00),
        (0xbe00, 0xc000),
        (0x8001, 0xbc00),
        (0x0001, 0),
        (0x7c00, 0x7c00),
        (0x8000, 0x8000),
    ];
    check1(&[0x7e068901], "v_floor_f16 v3, v1", &cases);
    let cases = [
        (0x4000, 0x3800),
        (0, 0x7c00),
        (0x8000, 0xfc00),
        (0xfc00, 0x8000),
        (0x0001, 0x7c00),
        (0xc400, 0xb400),
    ];
    check1(&[0x7e067b01], "v_rcp_f16 v3, v1", &cases);
    check1(
        &[0x7e067f01],
        "v_rsq_f16 v3, v1",
        &[(0x4400, 0x3800), (0, 0x7c00), (0x7c00, 0), (0x0001, 0x6c00)],
    );
    check1(
        &[0x7e067d01],
        "v_sqrt_f16 v3, v1",
        &[(0x4400, 0x4000), (0, 0), (0x8000, 0x8000), (0x7c00, 0x7c00), (0x0001, 0x0c00)],
    );
    check1(
        &[0x7e067901],
        "v_cvt_i16_f16 v3, v1",
        &[(0x3e00, 1), (0xbe00, 0xffff), (0x7c00, 0x7fff), (0xfc00, 0x8000), (0x7e00, 0), (0x7bff, 0x7fff)],
    );
    check2(
        &[0xd3924003, 0x18020501],
        "v_pk_max_f16 v3, v1, v2",
        &[
            (0x3c00_bc00, 0x4000_c000, 0x4000_bc00),
            (0x8000_7e00, 0x0000_3c00, 0x0000_3c00),
            (0x7c00_fc00, 0x7bff_0001, 0x7c00_0001),
        ],
    );
}

/// E5M2 has bias 16 and no infinities.
#[test]
fn eight_bits() {
    let pair = |low: f32, high: f32| u64::from(f(low)) | u64::from(f(high)) << 32;
    let case = |v1: u32, result: u64| (Wide { v1, ..Wide::default() }, result);
    check_wide(
        &[0x7e10af01],
        "v_cvt_pk_f32_bf8 v[8:9], v1",
        &[
            case(0xffff_4440, pair(1.0, 2.0)),
            case(0xc041, pair(1.25, -1.0)),
            case(0x017f, pair(57344.0, 2f32.powi(-17))),
        ],
    );
    // v_cvt_sr_bf8_f32 v3, v1, v2: rounded up as the random number in v2 says; the other bytes stay.
    for (value, random, byte) in [
        (1.0, 0, 0x40),
        (1.125, 0, 0x40),
        (1.125, u32::MAX, 0x41),
        (-1.125, 0x8000_0000, 0xc1),
        (0.0, u32::MAX, 0),
    ] {
        let mut bench = Bench::default();
        bench.fill(1, |_| f(value));
        bench.fill(2, |_| random);
        bench.fill(3, |_| 0x1122_3344);
        bench.run(&[0xd2a50003, 0x00020501]);
        assert_eq!(bench.wave.row(3)[7], 0x1122_3300 | byte, "{value} {random:#x}");
    }
    // v_mfma_f32_16x16x32_bf8_fp8 v[10:13], v[2:3], v[4:5], v[10:13]: A is 1.25 (bf8), B is 1.5 (fp8).
    let mut bench = Bench::default();
    (2..4).for_each(|register| bench.fill(register, |_| 0x4141_4141));
    (4..6).for_each(|register| bench.fill(register, |_| 0x4444_4444));
    (10..14).for_each(|register| bench.fill(register, |lane| f(lane as f32)));
    bench.run(&[0xd3f1000a, 0x042a0902]);
    for lane in 0..64 {
        assert_eq!(f32::from_bits(bench.wave.row(12)[lane]), lane as f32 + 32.0 * 1.25 * 1.5);
    }
}

#[test]
fn signed_halves_are_loaded() {
    let mut bench = crate::global::bench();
    bench.wave.set_exec(crate::bench::SOME);
    bench.fill64(4, |lane| crate::bench::MEMORY + lane as u64 * 3);
    bench.fill(3, |_| 9);
    // global_load_sshort v3, v[4:5], off
    bench.run(&[0xdc4c8000, 0x037f0004]);
    for lane in 0..64 {
        let bytes = [0, 1].map(|index| crate::global::byte(lane as u64 * 3 + index));
        let value = i32::from(i16::from_le_bytes(bytes)) as u32;
        let expected = if crate::bench::is_on(crate::bench::SOME, lane) { value } else { 9 };
        assert_eq!(bench.wave.row(3)[lane], expected, "lane {lane}");
    }
}
