//! Tests of vector instructions with three sources, and of those with two that only VOP3 has.

use crate::bench::{Bench, QNAN, QUIETED, Random, SNAN, Wide, check, check_wide, check2, d, f};

#[test]
fn fused_multiply_add_rounds_once() {
    check(
        &[0xd1cb0003, 0x04120501],
        "v_fma_f32 v3, v1, v2, v4",
        &[
            (f(2.0), f(3.0), f(4.0), f(10.0)),
            (f(1.0 + 2f32.powi(-12)), f(1.0 + 2f32.powi(-12)), f(-1.0), f(2f32.powi(-11) + 2f32.powi(-24))),
            (f(f32::MAX), f(2.0), f(f32::NEG_INFINITY), f(f32::NEG_INFINITY)),
            (f(f32::MAX), f(2.0), f(-f32::MAX), f(f32::MAX)),
            (1, f(0.5), 0, 0),
            // Next to the middle between two numbers: rounding to f64 first would meet it and go the other way.
            (
                f(2f32.powi(-24) * (1.0 + f32::EPSILON)),
                f(1.0 - f32::EPSILON),
                f(1.0 + f32::EPSILON),
                f(1.0 + f32::EPSILON),
            ),
            (
                f(2f32.powi(-24) * (1.0 + f32::EPSILON)),
                f(-1.0 + f32::EPSILON),
                f(-1.0 - f32::EPSILON),
                f(-1.0 - f32::EPSILON),
            ),
            (1, f(0.5), 1, 2),
            (f(-0.0), f(1.0), f(-0.0), f(-0.0)),
            (f(1.0), f(1.0), f(-1.0), f(0.0)),
            (f(1.0), QNAN, f(1.0), QNAN),
        ],
    );
    let mut bench = Bench::default();
    let mut random = Random::new(5);
    for round in 0..20_000 {
        let near = round % 2 == 0;
        let mut value = || {
            let bits = random.u32();
            // Half of the rounds keep exponents together, so that all three operands matter.
            if near { bits & 0x81ff_ffff | 0x3e00_0000 } else { bits }
        };
        let operands: [[u32; 3]; 64] = std::array::from_fn(|_| [value(), value(), value()]);
        bench.fill(1, |lane| operands[lane][0]);
        bench.fill(2, |lane| operands[lane][1]);
        bench.fill(4, |lane| operands[lane][2]);
        bench.run(&[0xd1cb0003, 0x04120501]); // v_fma_f32 v3, v1, v2, v4
        for (lane, bits) in operands.into_iter().enumerate() {
            let [a, b, c] = bits.map(f32::from_bits);
            let (got, expected) = (f32::from_bits(bench.wave.row(3)[lane]), a.mul_add(b, c));
            assert!(
                got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(),
                "{a:e} * {b:e} + {c:e} is {expected:e}, not {got:e}"
            );
        }
    }
}

#[test]
fn fields_of_bits() {
    check(
        &[0xd1c80003, 0x04120501],
        "v_bfe_u32 v3, v1, v2, v4",
        &[
            (0xdead_beef, 8, 8, 0xbe),
            (0xdead_beef, 0, 0, 0),
            (0xdead_beef, 28, 31, 0xd),
            (0xdead_beef, 40, 40, 0xbe),
        ],
    );
    check(
        &[0xd1c90003, 0x04120501],
        "v_bfe_i32 v3, v1, v2, v4",
        &[
            (0xdead_beef, 8, 8, 0xffff_ffbe),
            (0xdead_beef, 8, 0, 0),
            (0x7f, 0, 8, 0x7f),
            (0xdead_beef, 28, 31, 0xd),
        ],
    );
    check(&[0xd1ca0003, 0x04120501], "v_bfi_b32 v3, v1, v2, v4", &[(0xff00, 0x1234, 0x5678, 0x1278)]);
    check2(
        &[0xd2930003, 0x00020501],
        "v_bfm_b32 v3, v1, v2",
        &[(4, 8, 0xf00), (32, 0, 0), (31, 31, 0x8000_0000)],
    );
    check(
        &[0xd1ce0003, 0x04120501],
        "v_alignbit_b32 v3, v1, v2, v4",
        &[(0x1234_5678, 0x9abc_def0, 8, 0x789a_bcde), (1, 2, 32, 2), (1, 2, 31, 2)],
    );
    check(
        &[0xd1cf0003, 0x04120501],
        "v_alignbyte_b32 v3, v1, v2, v4",
        &[(0x1234_5678, 0x9abc_def0, 5, 0x789a_bcde)],
    );
    check(
        &[0xd1ed0003, 0x04120501],
        "v_perm_b32 v3, v1, v2, v4",
        &[
            (0x8765_4321, 0x0fed_cba9, 0x0706_0100, 0x8765_cba9),
            (0x8765_4321, 0x0fed_cba9, 0x0b0a_0908, 0xff00_00ff),
            (0x8765_4321, 0x0fed_cba9, 0xff0d_0c04, 0xffff_0021),
        ],
    );
    check2(
        &[0xd28b0003, 0x00020501],
        "v_bcnt_u32_b32 v3, v1, v2",
        &[(0xff, 3, 11), (u32::MAX, u32::MAX, 31)],
    );
}

#[test]
fn sums_of_three() {
    check(&[0xd1fd0003, 0x04120501], "v_lshl_add_u32 v3, v1, v2, v4", &[(3, 34, 1, 13), (1, 31, 1 << 31, 0)]);
    check(&[0xd1fe0003, 0x04120501], "v_add_lshl_u32 v3, v1, v2, v4", &[(3, 4, 33, 14)]);
    check(&[0xd2000003, 0x04120501], "v_lshl_or_b32 v3, v1, v2, v4", &[(3, 4, 1, 0x31)]);
    check(&[0xd2010003, 0x04120501], "v_and_or_b32 v3, v1, v2, v4", &[(0xff, 0x3c, 0x300, 0x33c)]);
    check(&[0xd1f30003, 0x04120501], "v_xad_u32 v3, v1, v2, v4", &[(0xff, 0x0f, 1, 0xf1)]);
    check(&[0xd1c30003, 0x04120501], "v_mad_u32_u24 v3, v1, v2, v4", &[(0xff00_0003, 0x0100_0005, 7, 22)]);
    check(&[0xd1c20003, 0x04120501], "v_mad_i32_i24 v3, v1, v2, v4", &[(0x00ff_ffff, 5, 7, 2)]);
    check(&[0xd1d90003, 0x04120501], "v_sad_u8 v3, v1, v2, v4", &[(0x01ff_0010, 0x0200_0500, 1, 278)]);
    check(&[0xd1e40003, 0x04120501], "v_msad_u8 v3, v1, v2, v4", &[(0x01ff_0010, 0x0200_0500, 1, 7)]);
    check(
        &[0xd1cd0003, 0x04120501],
        "v_lerp_u8 v3, v1, v2, v4",
        &[(0xff01_0203, 0xff02_0204, 0x0100_0001, 0xff01_0204)],
    );
}

#[test]
fn middle_and_extremes() {
    check(
        &[0xd1d70003, 0x04120501],
        "v_med3_i32 v3, v1, v2, v4",
        &[(1, 2, 3, 2), (3, u32::MAX, 1, 1), (5, 5, 1, 5)],
    );
    check(&[0xd1d10003, 0x04120501], "v_min3_i32 v3, v1, v2, v4", &[(1, u32::MAX, 3, u32::MAX)]);
    check(
        &[0xd1d30003, 0x04120501],
        "v_max3_f32 v3, v1, v2, v4",
        &[
            (f(1.0), f(3.0), f(2.0), f(3.0)),
            (QNAN, f(-3.0), QNAN, f(-3.0)),
            (f(-0.0), f(0.0), f(-0.0), f(0.0)),
        ],
    );
    check(
        &[0xd1d60003, 0x04120501],
        "v_med3_f32 v3, v1, v2, v4",
        &[
            (f(1.0), f(3.0), f(2.0), f(2.0)),
            (f(3.0), f(1.0), f(2.0), f(2.0)),
            (f(2.0), f(3.0), f(1.0), f(2.0)),
            (QNAN, f(3.0), f(2.0), f(2.0)),
            (f(f32::INFINITY), f(0.0), f(1.0), f(1.0)),
        ],
    );
}

#[test]
fn products() {
    check2(&[0xd2860003, 0x00020501], "v_mul_hi_u32 v3, v1, v2", &[(u32::MAX, u32::MAX, u32::MAX - 1)]);
    check2(
        &[0xd2870003, 0x00020501],
        "v_mul_hi_i32 v3, v1, v2",
        &[(u32::MAX, 5, u32::MAX), (1 << 31, 1 << 31, 1 << 30)],
    );
    check2(&[0xd2850003, 0x00020501], "v_mul_lo_u32 v3, v1, v2", &[(0x1_0001, 0x1_0001, 0x2_0001)]);
    let product = |v1: u32, v2: u32, v4: u64, result: u64| (Wide { v1, v2, v4, ..Wide::default() }, result);
    check_wide(
        &[0xd1e86a08, 0x04120501],
        "v_mad_u64_u32 v[8:9], vcc, v1, v2, v[4:5]",
        &[
            product(u32::MAX, u32::MAX, 5, 0xffff_fffe_0000_0006),
            product(u32::MAX, u32::MAX, u64::MAX, 0xffff_fffe_0000_0000),
        ],
    );
    check_wide(
        &[0xd1e96a08, 0x04120501],
        "v_mad_i64_i32 v[8:9], vcc, v1, v2, v[4:5]",
        &[product(u32::MAX, 3, 1, -2i64 as u64)],
    );
    let mut bench = Bench::default();
    bench.fill(1, |_| u32::MAX);
    bench.fill(2, |_| u32::MAX);
    bench.fill64(4, |lane| if lane == 3 { u64::MAX } else { 1 });
    bench.run(&[0xd1e86a08, 0x04120501]); // v_mad_u64_u32 v[8:9], vcc, v1, v2, v[4:5]
    assert_eq!(bench.wave.vcc(), 1 << 3);
}

#[test]
fn scaling_by_powers_of_two_rounds_once() {
    check2(
        &[0xd2880003, 0x00020501],
        "v_ldexp_f32 v3, v1, v2",
        &[
            (f(1.5), 4, f(24.0)),
            (f(1.0), -149i32 as u32, 1),
            (f(1.0), -150i32 as u32, 0),
            (f(1.5), -150i32 as u32, 1),
            (0x3f80_0001, -150i32 as u32, 1),
            (f(-1.0), i32::MIN as u32, f(-0.0)),
            (f(1.0), i32::MAX as u32, f(f32::INFINITY)),
            (1, 277, f(2f32.powi(127) * 2.0)),
            (1, 276, f(2f32.powi(127))),
            (f(0.0), 1000, 0),
            (QNAN, 1, QNAN),
        ],
    );
    let scaled = |x: f64, exponent: i32, result: u64| {
        (Wide { v4: d(x), v1: exponent as u32, ..Wide::default() }, result)
    };
    check_wide(
        &[0xd2840008, 0x00020304],
        "v_ldexp_f64 v[8:9], v[4:5], v1",
        &[
            scaled(1.5, 4, d(24.0)),
            scaled(1.0, -1074, 1),
            scaled(1.0, -1075, 0),
            scaled(1.0 + f64::EPSILON, -1075, 1),
            scaled(5e-324, 2097, d(2f64.powi(1023))),
            scaled(-1.0, i32::MAX, d(f64::NEG_INFINITY)),
        ],
    );
}

#[test]
fn packing() {
    check2(
        &[0xd2960003, 0x00020501],
        "v_cvt_pkrtz_f16_f32 v3, v1, v2",
        &[
            (f(1.0), f(-2.0), 0xc000_3c00),
            (f(65519.0), f(1e9), 0x7bff_7bff),
            (f(1.0009), f(-1.0009), 0xbc00_3c00),
            (f(2f32.powi(-25)), f(f32::INFINITY), 0x7c00_0000),
        ],
    );
    check2(
        &[0xd2980003, 0x00020501],
        "v_cvt_pk_i16_i32 v3, v1, v2",
        &[(0x9000, -0x9000i32 as u32, 0x8000_7fff)],
    );
    check2(&[0xd2970003, 0x00020501], "v_cvt_pk_u16_u32 v3, v1, v2", &[(0x1_0000, 5, 0x0005_ffff)]);
    check2(
        &[0xd2940003, 0x00020501],
        "v_cvt_pknorm_i16_f32 v3, v1, v2",
        &[(f(1.0), f(-1.0), 0x8001_7fff), (f(0.5), f(-3.0), 0x8001_4000)],
    );
    check2(
        &[0xd2a00803, 0x00020501],
        "v_pack_b32_f16 v3, v1, v2 op_sel:[1,0,0]",
        &[(0x1234_5678, 0x9abc_3ef0, 0x3ef0_1234)],
    );
    check2(
        &[0xd29c8003, 0x00020501],
        "v_add_i32 v3, v1, v2 clamp",
        &[(0x7fff_ffff, 1, 0x7fff_ffff), (0x8000_0000, u32::MAX, 0x8000_0000)],
    );
}

#[test]
fn wide_integers() {
    let shift = |v1: u32, v4: u64, result: u64| (Wide { v1, v4, ..Wide::default() }, result);
    check_wide(
        &[0xd28f0008, 0x00020901],
        "v_lshlrev_b64 v[8:9], v1, v[4:5]",
        &[shift(40, 3, 3 << 40), shift(65, 1, 2)],
    );
    check_wide(
        &[0xd2900008, 0x00020901],
        "v_lshrrev_b64 v[8:9], v1, v[4:5]",
        &[shift(33, u64::MAX, 0x7fff_ffff)],
    );
    check_wide(
        &[0xd2910008, 0x00020901],
        "v_ashrrev_i64 v[8:9], v1, v[4:5]",
        &[shift(63, 1 << 63, u64::MAX)],
    );
    check_wide(
        &[0xd2080008, 0x041a0304],
        "v_lshl_add_u64 v[8:9], v[4:5], v1, v[6:7]",
        &[(Wide { v4: 0x1_ffff_ffff, v1: 3, v6: 1, ..Wide::default() }, 0xf_ffff_fff9)],
    );
}

#[test]
fn doubles() {
    let two = |a: f64, b: f64, result: f64| (Wide { v4: d(a), v6: d(b), ..Wide::default() }, d(result));
    check_wide(
        &[0xd2800008, 0x00020d04],
        "v_add_f64 v[8:9], v[4:5], v[6:7]",
        &[two(1.0, 2.0, 3.0), two(0.1, 0.2, 0.1 + 0.2)],
    );
    check_wide(&[0xd2800008, 0x0001e504], "v_add_f64 v[8:9], v[4:5], 1.0", &[two(1.0, 9.0, 2.0)]);
    check_wide(
        &[0xd2830008, 0x00020d04],
        "v_max_f64 v[8:9], v[4:5], v[6:7]",
        &[two(-0.0, 0.0, 0.0), two(f64::NAN, 1.0, 1.0), two(2.0, 1.0, 2.0)],
    );
    check_wide(&[0xd2820008, 0x00020d04], "v_min_f64 v[8:9], v[4:5], v[6:7]", &[two(0.0, -0.0, -0.0)]);
    check_wide(
        &[0xd1cc0008, 0x042a0d04],
        "v_fma_f64 v[8:9], v[4:5], v[6:7], v[10:11]",
        &[(
            Wide {
                v4: d(1.0 + 2f64.powi(-30)),
                v6: d(1.0 + 2f64.powi(-30)),
                v10: d(-1.0),
                ..Wide::default()
            },
            d(2f64.powi(-29) + 2f64.powi(-60)),
        )],
    );
}

/// The segments of 2/pi add up to it, and are shifted for large arguments.
#[test]
fn range_reduction_constants() {
    let mut bench = Bench::default();
    bench.fill64(4, |_| d(1.0));
    bench.fill(1, |lane| lane as u32 % 3);
    bench.run(&[0xd2920008, 0x00020304]); // v_trig_preop_f64 v[8:9], v[4:5], v1
    let pieces = bench.row64(8).map(f64::from_bits);
    // 0.63661977236758134307553505349005744813783858296182579499...
    assert_eq!(pieces[0] + pieces[1], std::f64::consts::FRAC_2_PI);
    assert_eq!(d(pieces[0]), d(0.636_619_772_367_581_3) - u64::from(pieces[0] < 0.636_619_772_367_581_3));
    assert!(pieces[1] > 0.0 && pieces[1] < 2f64.powi(-53) && pieces[2] < 2f64.powi(-106));
    // An argument of 2^60 has no use for the first bits: the top piece starts 6 bits further on.
    bench.fill64(4, |_| d(2f64.powi(60)));
    bench.run(&[0xd2920008, 0x00020304]); // v_trig_preop_f64 v[8:9], v[4:5], v1
    let shifted = f64::from_bits(bench.row64(8)[0]);
    let expected = (std::f64::consts::FRAC_2_PI * 64.0).fract() / 64.0;
    assert!((shifted - expected).abs() < 2f64.powi(-52), "{shifted:e}, {expected:e}");
}

#[test]
fn halves_chosen_by_op_sel() {
    let mut bench = Bench::default();
    bench.fill(1, |_| 0x4000_7777); // 2
    bench.fill(2, |_| 0x7777_4200); // 3
    bench.fill(4, |_| 0x7777_3c00); // 1
    bench.fill(3, |_| 0x1111_2222);
    bench.run(&[0xd2064803, 0x04120501]); // v_fma_f16 v3, v1, v2, v4 op_sel:[1,0,0,1]
    assert_eq!(bench.wave.row(3)[0], 0x4700_2222);
    bench.fill(1, |_| 5);
    bench.fill(2, |_| 7 << 16);
    bench.run(&[0xd29e5003, 0x00020501]); // v_add_i16 v3, v1, v2 op_sel:[0,1,1]
    assert_eq!(bench.wave.row(3)[0], 0x000c_2222);
    check(
        &[0xd2070003, 0x04120501],
        "v_div_fixup_f16 v3, v1, v2, v4",
        &[
            (0x3c00, 0xbc00, 0x3c00, 0xdead_bc00),
            (0x3c00, 0, 0x3c00, 0xdead_7c00),
            (0x3c00, 0, 0, 0xdead_fe00),
            (0x3c00, 0x7c00, 0xbc00, 0xdead_8000),
            (0x3c00, 0x7e01, 0x3c00, 0xdead_7e01),
        ],
    );
}

#[test]
fn eight_bit_floats() {
    let cases = [
        (f(1.0), f(-1.5), 0xdead_c440),
        (f(240.0), f(248.0), 0xdead_807f), // 248 would round to 256
        (f(247.9), f(1e9), 0xdead_807f),
        (f(2f32.powi(-10)), f(2f32.powi(-11)), 0xdead_0001),
        (f(-0.0), f(1.0625), 0xdead_4000),
        (f(1.1875), QNAN, 0xdead_8042),
    ];
    check2(
        &[0xd2a20003, 0x00020501],
        "v_cvt_pk_fp8_f32 v3, v1, v2",
        &cases.map(|(a, b, result)| (a, b, result & 0xffff | 0xdead_0000)),
    );
    check2(
        &[0xd2a34003, 0x00020501],
        "v_cvt_pk_bf8_f32 v3, v1, v2 op_sel:[0,0,1]",
        &[(f(1.0), f(57344.0), 0x7f40_beef)],
    );
    check2(
        &[0xd2a46003, 0x00020501],
        "v_cvt_sr_fp8_f32 v3, v1, v2 op_sel:[0,0,1,1]",
        &[(f(1.0625), 0, 0x40ad_beef), (f(1.0625), u32::MAX, 0x41ad_beef), (f(1.0), u32::MAX, 0x40ad_beef)],
    );
}

#[test]
fn a_signalling_nan_becomes_a_quiet_one_before_it_meets_the_third() {
    check(
        &[0xd1d30003, 0x04120501],
        "v_max3_f32 v3, v1, v2, v4",
        &[(SNAN, f(1.0), f(2.0), f(2.0)), (f(1.0), f(2.0), SNAN, QUIETED)],
    );
}
