//! Tests of vector instructions with one source.

use crate::bench::{Bench, QNAN, QUIETED, SNAN, Wide, check_wide, check1, d, f};

#[test]
fn float_to_integer_truncates_saturates_and_makes_zero_of_nan() {
    check1(
        &[0x7e061101],
        "v_cvt_i32_f32 v3, v1",
        &[
            (f(-1.9), -1i32 as u32),
            (f(1.9), 1),
            (f(3e9), 0x7fff_ffff),
            (f(-3e9), 0x8000_0000),
            (f(f32::INFINITY), 0x7fff_ffff),
            (f(f32::NEG_INFINITY), 0x8000_0000),
            (QNAN, 0),
            (1, 0),
        ],
    );
    check1(
        &[0x7e060f01],
        "v_cvt_u32_f32 v3, v1",
        &[(f(-1.9), 0), (f(4e9), 4_000_000_000), (f(5e9), u32::MAX), (QNAN, 0)],
    );
    check1(
        &[0x7e061901],
        "v_cvt_rpi_i32_f32 v3, v1",
        &[(f(0.5), 1), (f(-0.5), 0), (f(-1.5), -1i32 as u32), (f(0.499_999_97), 0)],
    );
    check1(&[0x7e061b01], "v_cvt_flr_i32_f32 v3, v1", &[(f(-0.1), -1i32 as u32), (f(2.9), 2)]);
    check1(&[0x7e067701], "v_cvt_u16_f16 v3, v1", &[(0x4248, 3), (0xc000, 0), (0x7c00, 0xffff), (0x7e00, 0)]);
}

#[test]
fn integer_to_float_rounds_to_nearest_even() {
    check1(
        &[0x7e060b01],
        "v_cvt_f32_i32 v3, v1",
        &[
            (-5i32 as u32, f(-5.0)),
            (0x7fff_ffff, f(2147483648.0)),
            (16_777_217, f(16777216.0)),
            (16_777_219, f(16777220.0)),
        ],
    );
    check1(&[0x7e060d01], "v_cvt_f32_u32 v3, v1", &[(u32::MAX, f(4294967296.0)), (7, f(7.0))]);
    check1(&[0x7e062501], "v_cvt_f32_ubyte1 v3, v1", &[(0x1234_ab56, f(171.0))]);
    check1(&[0x7e061d01], "v_cvt_off_f32_i4 v3, v1", &[(7, f(0.4375)), (8, f(-0.5)), (0x1f, f(-0.0625))]);
    check1(&[0x7e067501], "v_cvt_f16_i16 v3, v1", &[(0xffff, 0xbc00), (2049, 0x6800), (2051, 0x6802)]);
}

#[test]
fn between_f16_and_f32() {
    check1(
        &[0x7e061501],
        "v_cvt_f16_f32 v3, v1",
        &[
            (f(1.0), 0x3c00),
            (f(65504.0), 0x7bff),
            (f(65519.99), 0x7bff),
            (f(65520.0), 0x7c00),
            (f(2f32.powi(-24)), 1),
            (f(2f32.powi(-25)), 0),
            (f(2f32.powi(-25) * 1.5), 1),
            (f(-2f32.powi(-14)), 0x8400),
            (f(6.097_555e-5), 0x03ff),
            (f(1.0 + 2f32.powi(-11)), 0x3c00),
            (f(1.0 + 3.0 * 2f32.powi(-11)), 0x3c02),
            (f(f32::NEG_INFINITY), 0xfc00),
            (f(-0.0), 0x8000),
            (QNAN, 0x7e00),
            (1, 0),
        ],
    );
    let mut bench = Bench::default();
    for block in 0..1024u32 {
        bench.fill(1, |lane| block * 64 + lane as u32);
        bench.run(&[0x7e061701, 0x7e0a1503]); // v_cvt_f32_f16 v3, v1; v_cvt_f16_f32 v5, v3
        for lane in 0..64 {
            let bits = block as u16 * 64 + lane as u16;
            let (wide, back) = (f32::from_bits(bench.wave.row(3)[lane]), bench.wave.row(5)[lane] as u16);
            let expected = half::f16::from_bits(bits).to_f32();
            assert!(wide == expected || wide.is_nan() && expected.is_nan(), "{bits:#x}");
            if wide.is_nan() {
                assert_eq!(back & 0x7fff, bits & 0x7fff | 0x200);
            } else {
                assert_eq!(back, bits);
            }
        }
    }
}

#[test]
fn rounding_to_integers() {
    let cases = |round: fn(f32) -> f32| {
        [
            0.5,
            1.5,
            2.5,
            -0.5,
            -1.5,
            0.3,
            -0.3,
            0.0,
            -0.0,
            8_388_607.5,
            -8_388_607.5,
            1e30,
            0.499_999_97,
            f32::INFINITY,
        ]
        .map(|x| (f(x), f(round(x))))
    };
    check1(&[0x7e063d01], "v_rndne_f32 v3, v1", &cases(f32::round_ties_even));
    check1(&[0x7e063f01], "v_floor_f32 v3, v1", &cases(f32::floor));
    check1(&[0x7e063b01], "v_ceil_f32 v3, v1", &cases(f32::ceil));
    check1(&[0x7e063901], "v_trunc_f32 v3, v1", &cases(f32::trunc));
    check1(&[0x7e063d01], "v_rndne_f32 v3, v1", &[(QNAN, QNAN), (SNAN, QUIETED)]);
    check1(
        &[0x7e063701],
        "v_fract_f32 v3, v1",
        &[(f(1.75), f(0.75)), (f(-0.25), f(0.75)), (f(-1e-10), 0x3f7f_ffff)],
    );
    let wide = |round: fn(f64) -> f64| {
        [0.5, 1.5, 2.5, -0.5, -0.3, 0.0, -0.0, 4_503_599_627_370_495.5, 1e300, f64::NEG_INFINITY]
            .map(|x| (Wide { v4: d(x), ..Wide::default() }, d(round(x))))
    };
    check_wide(&[0x7e103304], "v_rndne_f64 v[8:9], v[4:5]", &wide(f64::round_ties_even));
    check_wide(&[0x7e103504], "v_floor_f64 v[8:9], v[4:5]", &wide(f64::floor));
    check_wide(&[0x7e103104], "v_ceil_f64 v[8:9], v[4:5]", &wide(f64::ceil));
    check_wide(&[0x7e102f04], "v_trunc_f64 v[8:9], v[4:5]", &wide(f64::trunc));
}

#[test]
fn exponent_and_mantissa() {
    check1(
        &[0x7e066701],
        "v_frexp_exp_i32_f32 v3, v1",
        &[(f(1.0), 1), (f(0.75), 0), (1, -148i32 as u32), (f(0.0), 0), (f(f32::INFINITY), 0), (QNAN, 0)],
    );
    check1(
        &[0x7e066901],
        "v_frexp_mant_f32 v3, v1",
        &[(f(-3.0), f(-0.75)), (1, f(0.5)), (f(-0.0), f(-0.0)), (f(f32::NEG_INFINITY), f(f32::NEG_INFINITY))],
    );
    let wide = |x: f64, result: f64| (Wide { v4: d(x), ..Wide::default() }, d(result));
    check_wide(
        &[0x7e106304],
        "v_frexp_mant_f64 v[8:9], v[4:5]",
        &[wide(5e-324, 0.5), wide(-6.0, -0.75), wide(f64::INFINITY, f64::INFINITY)],
    );
    let mut bench = Bench::default();
    bench.fill64(4, |lane| if lane == 0 { 1 } else { d(6.0) });
    bench.run(&[0x7e066104]); // v_frexp_exp_i32_f64 v3, v[4:5]
    assert_eq!(bench.wave.row(3)[..2], [-1073i32 as u32, 3]);
}

#[test]
fn bits() {
    check1(&[0x7e065b01], "v_ffbh_u32 v3, v1", &[(0, u32::MAX), (1, 31), (1 << 31, 0)]);
    check1(&[0x7e065d01], "v_ffbl_b32 v3, v1", &[(0, u32::MAX), (8, 3), (1 << 31, 31)]);
    check1(
        &[0x7e065f01],
        "v_ffbh_i32 v3, v1",
        &[(0, u32::MAX), (u32::MAX, u32::MAX), (1, 31), (0xffff_0000, 16)],
    );
    check1(&[0x7e065901], "v_bfrev_b32 v3, v1", &[(1, 1 << 31), (0x1234_5678, 0x1e6a_2c48)]);
    check1(&[0x7e065701], "v_not_b32 v3, v1", &[(0, u32::MAX)]);
    check1(&[0x7e069f01], "v_sat_pk_u8_i16 v3, v1", &[(0x0100_ffff, 0xff00), (0x0005_0007, 0x0507)]);
}

#[test]
fn eight_bit_floats() {
    let fp8 =
        [(0x40, 1.0), (0x7f, 240.0), (0x01, 2f32.powi(-10)), (0x08, 2f32.powi(-7)), (0xc4, -1.5), (0, 0.0)];
    check1(&[0x7e06a901], "v_cvt_f32_fp8 v3, v1", &fp8.map(|(bits, value)| (bits | 0xab00, f(value))));
    let bf8 = [(0x40, 1.0), (0x7f, 57344.0), (0x01, 2f32.powi(-17)), (0x80 | 0x42, -1.5), (0, 0.0)];
    check1(&[0x7e06ab01], "v_cvt_f32_bf8 v3, v1", &bf8.map(|(bits, value)| (bits, f(value))));
    let mut bench = Bench::default();
    bench.fill(1, |_| 0x80);
    bench.run(&[0x7e06a901]); // v_cvt_f32_fp8 v3, v1
    assert!(f32::from_bits(bench.wave.row(3)[0]).is_nan());
    check_wide(
        &[0x7e10ad01],
        "v_cvt_pk_f32_fp8 v[8:9], v1",
        &[(Wide { v1: 0x1234_4048, ..Wide::default() }, u64::from(f(2.0)) | u64::from(f(1.0)) << 32)],
    );
}

#[test]
fn doubles() {
    let from32 = |v1: u32, result: f64| (Wide { v1, ..Wide::default() }, d(result));
    check_wide(
        &[0x7e102101],
        "v_cvt_f64_f32 v[8:9], v1",
        &[from32(1, 2f64.powi(-149)), from32(f(-2.5), -2.5)],
    );
    check_wide(&[0x7e100901], "v_cvt_f64_i32 v[8:9], v1", &[from32(0x8000_0000, -2147483648.0)]);
    check_wide(&[0x7e102d01], "v_cvt_f64_u32 v[8:9], v1", &[from32(0x8000_0000, 2147483648.0)]);
    let wide = |x: f64, result: f64| (Wide { v4: d(x), ..Wide::default() }, d(result));
    check_wide(&[0x7e104b04], "v_rcp_f64 v[8:9], v[4:5]", &[wide(4.0, 0.25), wide(-0.0, f64::NEG_INFINITY)]);
    check_wide(&[0x7e105104], "v_sqrt_f64 v[8:9], v[4:5]", &[wide(2.0, 2f64.sqrt()), wide(-0.0, -0.0)]);
    check_wide(&[0x7e107104], "v_mov_b64 v[8:9], v[4:5]", &[wide(1.5, 1.5)]);
    let mut bench = Bench::default();
    let values = [-1.9, 3e9, -3e9, f64::NAN, 1e-45, 16_777_217.0, 1.0 + 2f64.powi(-30), 1e300];
    bench.fill64(4, |lane| d(values[lane % 8]));
    bench.run(&[0x7e060704]); // v_cvt_i32_f64 v3, v[4:5]
    assert_eq!(bench.wave.row(3)[..8], values.map(|x| x as i32 as u32));
    bench.run(&[0x7e062b04]); // v_cvt_u32_f64 v3, v[4:5]
    assert_eq!(bench.wave.row(3)[..8], values.map(|x| x as u32));
    bench.run(&[0x7e061f04]); // v_cvt_f32_f64 v3, v[4:5]
    for (lane, x) in values.into_iter().enumerate().filter(|(_, x)| !x.is_nan()) {
        assert_eq!(bench.wave.row(3)[lane], f(x as f32));
    }
}
