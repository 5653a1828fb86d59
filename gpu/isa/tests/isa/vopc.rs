//! Tests of vector comparisons.

use crate::bench::{Bench, QNAN, SNAN, d, f};

/// Checks a comparison of v1 and v2 (v[4:5] and v[6:7]) that writes VCC on every case, all in one wave.
fn check(words: &[u32], text: &str, cases: &[(u64, u64, bool)]) {
    let mut bench = Bench::default();
    let case = |lane: usize| cases[lane % cases.len()];
    bench.fill(1, |lane| case(lane).0 as u32);
    bench.fill(2, |lane| case(lane).1 as u32);
    bench.fill64(4, |lane| case(lane).0);
    bench.fill64(6, |lane| case(lane).1);
    for exec in [u64::MAX, 0x0f0f_1234_8000_0001, 0] {
        bench.wave.set_exec(exec);
        bench.wave.set_vcc(u64::MAX);
        bench.run(words);
        for lane in 0..64 {
            let (a, b, expected) = case(lane);
            let expected = expected && exec >> lane & 1 == 1;
            assert_eq!(bench.wave.vcc() >> lane & 1 == 1, expected, "{text}: {a:#x}, {b:#x}, lane {lane}");
        }
        assert_eq!(bench.wave.exec(), exec);
    }
}

fn floats(cases: &[(f32, f32, bool)]) -> Vec<(u64, u64, bool)> {
    cases.iter().map(|&(a, b, result)| (u64::from(f(a)), u64::from(f(b)), result)).collect()
}

const NAN: f32 = f32::NAN;

#[test]
fn floats_and_nan() {
    let table: &[(&[u32], &str, [bool; 4])] = &[
        // less, equal, greater, unordered
        (&[0x7c820501], "v_cmp_lt_f32 vcc, v1, v2", [true, false, false, false]),
        (&[0x7c9c0501], "v_cmp_nlt_f32 vcc, v1, v2", [false, true, true, true]),
        (&[0x7c8a0501], "v_cmp_lg_f32 vcc, v1, v2", [true, false, true, false]),
        (&[0x7c940501], "v_cmp_nlg_f32 vcc, v1, v2", [false, true, false, true]),
        (&[0x7c8e0501], "v_cmp_o_f32 vcc, v1, v2", [true, true, true, false]),
        (&[0x7c900501], "v_cmp_u_f32 vcc, v1, v2", [false, false, false, true]),
    ];
    for &(words, text, [less, equal, greater, unordered]) in table {
        check(
            words,
            text,
            &floats(&[
                (1.0, 2.0, less),
                (f32::NEG_INFINITY, f32::MIN, less),
                (-1e-45, 0.0, less),
                (0.0, -0.0, equal),
                (f32::INFINITY, f32::INFINITY, equal),
                (1e-45, -1e-45, greater),
                (NAN, 1.0, unordered),
                (1.0, NAN, unordered),
                (NAN, NAN, unordered),
            ]),
        );
    }
    let halves =
        [(0x3c00, 0x3c00, true), (0x8000, 0, true), (0x7e00, 0x7e00, false), (0xffff_3c00, 0x3c00, true)];
    check(&[0x7c440501], "v_cmp_eq_f16 vcc, v1, v2", &halves);
    let doubles =
        [(d(1.0), d(1.0 + f64::EPSILON), true), (d(f64::NAN), d(1.0), false), (d(-0.0), d(0.0), false)];
    check(&[0x7cc20d04], "v_cmp_lt_f64 vcc, v[4:5], v[6:7]", &doubles);
}

#[test]
fn integers() {
    check(
        &[0x7d880501],
        "v_cmp_gt_i32 vcc, v1, v2",
        &[(1, 0xffff_ffff, true), (0x8000_0000, 0, false), (5, 5, false)],
    );
    check(&[0x7d580501], "v_cmp_gt_u16 vcc, v1, v2", &[(0xffff, 1, true), (0x1_0000, 1, false)]);
    check(&[0x7d420501], "v_cmp_lt_i16 vcc, v1, v2", &[(0xffff, 1, true), (0x7fff, 0x8000, false)]);
    let wide = [(1, 1 << 40, true), (u64::MAX, 0, false), (7, 7, false)];
    check(&[0x7dd20d04], "v_cmp_lt_u64 vcc, v[4:5], v[6:7]", &wide);
    check(&[0x7dc80d04], "v_cmp_gt_i64 vcc, v[4:5], v[6:7]", &[(1, u64::MAX, true), (1 << 63, 0, false)]);
}

#[test]
fn classes() {
    let numbers: [(u32, u64); 10] = [
        (SNAN, 0),
        (QNAN, 1),
        (f(f32::NEG_INFINITY), 2),
        (f(-1.0), 3),
        (0x8000_0001, 4),
        (f(-0.0), 5),
        (f(0.0), 6),
        (1, 7),
        (f(1.0), 8),
        (f(f32::INFINITY), 9),
    ];
    let cases = |number: fn(u32) -> u64| -> Vec<_> {
        numbers
            .iter()
            .flat_map(|&(bits, class)| {
                [(number(bits), 1 << class, true), (number(bits), !(1 << class), false)]
            })
            .collect()
    };
    let check_v2_mask = |words: &[u32], text: &str, cases: &[(u64, u64, bool)]| {
        // The mask is v2 whatever the width of the number.
        for &(number, mask, expected) in cases {
            let mut bench = Bench::default();
            bench.fill(1, |_| number as u32);
            bench.fill64(4, |_| number);
            bench.fill(2, |_| mask as u32);
            bench.run(words);
            assert_eq!(
                bench.wave.vcc(),
                if expected { u64::MAX } else { 0 },
                "{text}: {number:#x}, {mask:#x}"
            );
        }
    };
    check_v2_mask(&[0x7c200501], "v_cmp_class_f32 vcc, v1, v2", &cases(u64::from));
    let double = |bits: u32| match bits {
        SNAN => 0x7ff0_0000_0000_0001,
        QNAN => 0x7ff8_0000_0000_0001,
        1 | 0x8000_0001 => u64::from(bits & 1 << 31) << 32 | 1,
        bits => d(f64::from(f32::from_bits(bits))),
    };
    check_v2_mask(&[0x7c240504], "v_cmp_class_f64 vcc, v[4:5], v2", &cases(double));
    let half = |bits: u32| match bits {
        SNAN => 0x7c01,
        QNAN => 0x7e01,
        1 | 0x8000_0001 => u64::from(bits >> 16 | 1),
        bits => u64::from(half::f16::from_f32(f32::from_bits(bits)).to_bits()),
    };
    check_v2_mask(&[0x7c280501], "v_cmp_class_f16 vcc, v1, v2", &cases(half));
}

#[test]
fn cmpx_narrows_exec() {
    let mut bench = Bench::default();
    bench.fill(1, |lane| lane as u32 % 4);
    bench.fill(2, |_| 2);
    bench.wave.set_exec(0xffff_ffff);
    bench.run(&[0x7db40501]); // v_cmpx_eq_u32 vcc, v1, v2
    assert_eq!(bench.wave.exec(), 0x4444_4444);
    assert_eq!(bench.wave.vcc(), 0x4444_4444);
}

#[test]
fn scalar_destinations_and_modifiers() {
    let mut bench = Bench::default();
    bench.fill(1, |lane| if lane % 2 == 0 { f(-3.0) } else { f(1.0) });
    bench.fill(2, |_| f(-2.0));
    bench.wave.set_vcc(77);
    bench.run(&[0xd0440104, 0x20020501]); // v_cmp_gt_f32 s[4:5], -|v1|, v2
    assert_eq!(bench.wave.pair(4), 0xaaaa_aaaa_aaaa_aaaa);
    bench.fill(1, |lane| (lane as u32) << 8);
    bench.fill(2, |_| 5 << 16);
    bench.run(&[0x7d9404f9, 0x05018401]); // v_cmp_eq_u32_sdwa s[4:5], v1, v2 src0_sel:BYTE_1 src1_sel:WORD_1
    assert_eq!(bench.wave.pair(4), 1 << 5);
    assert_eq!(bench.wave.vcc(), 77);
}

/// Checks the comparison on pairs that are less, equal, greater and unordered.
fn check_order(words: &[u32], text: &str, results: [bool; 4], pairs: [&[(u64, u64)]; 4]) {
    let cases =
        pairs.iter().zip(results).flat_map(|(pairs, result)| pairs.iter().map(move |&(a, b)| (a, b, result)));
    check(words, text, &cases.collect::<Vec<_>>());
}

#[test]
fn half_floats_are_ordered() {
    const LESS: &[(u64, u64)] = &[(0x3c00, 0x4000), (0xfc00, 0xfbff), (0x8001, 0x0000), (0x0001, 0x0002)];
    const EQUAL: &[(u64, u64)] = &[(0x0000, 0x8000), (0x7c00, 0x7c00), (0xffff_3c00, 0x1234_3c00)];
    const GREATER: &[(u64, u64)] = &[(0x4000, 0x3c00), (0x0001, 0x8001), (0x7c00, 0x7bff)];
    const UNORDERED: &[(u64, u64)] = &[(0x7e00, 0x3c00), (0x3c00, 0x7c01), (0xfe00, 0x7e00)];
    for (word, text, results) in [
        (0x7c4c_0501, "v_cmp_ge_f16 vcc, v1, v2", [false, true, true, false]),
        (0x7c48_0501, "v_cmp_gt_f16 vcc, v1, v2", [false, false, true, false]),
        (0x7c42_0501, "v_cmp_lt_f16 vcc, v1, v2", [true, false, false, false]),
        (0x7c54_0501, "v_cmp_nlg_f16 vcc, v1, v2", [false, true, false, true]),
        (0x7c5c_0501, "v_cmp_nlt_f16 vcc, v1, v2", [false, true, true, true]),
        (0x7c50_0501, "v_cmp_u_f16 vcc, v1, v2", [false, false, false, true]),
    ] {
        check_order(&[word], text, results, [LESS, EQUAL, GREATER, UNORDERED]);
    }
}

#[test]
fn doubles_and_long_integers_are_ordered() {
    let pairs = |pairs: &[(f64, f64)]| pairs.iter().map(|&(a, b)| (d(a), d(b))).collect::<Vec<_>>();
    let less = pairs(&[(1.0, 2.0), (f64::NEG_INFINITY, f64::MIN), (-5e-324, 0.0)]);
    let equal = pairs(&[(0.0, -0.0), (f64::INFINITY, f64::INFINITY)]);
    let greater = pairs(&[(2.0, 1.0), (5e-324, -5e-324)]);
    let unordered = pairs(&[(f64::NAN, 1.0), (1.0, f64::NAN)]);
    for (word, text, results) in [
        (0x7ccc_0d04, "v_cmp_ge_f64 vcc, v[4:5], v[6:7]", [false, true, true, false]),
        (0x7cc6_0d04, "v_cmp_le_f64 vcc, v[4:5], v[6:7]", [true, true, false, false]),
    ] {
        check_order(&[word], text, results, [&less, &equal, &greater, &unordered]);
    }
    let cases = [(1 << 32, 1, false), (1, 1 << 32, true), (u64::MAX, u64::MAX, true), (u64::MAX, 0, false)];
    check(&[0x7dd6_0d04], "v_cmp_le_u64 vcc, v[4:5], v[6:7]", &cases);
}

#[test]
fn short_integers_and_unequal_floats() {
    let cases = [(0x1_0007, 0x2_0007, true), (7, 8, false), (0xffff, 0x7fff, false)];
    check(&[0x7d54_0501], "v_cmp_eq_u16 vcc, v1, v2", &cases);
    check(&[0x7d5a_0501], "v_cmp_ne_u16 vcc, v1, v2", &cases.map(|(a, b, equal)| (a, b, !equal)));
    let cases = [(1.0, 2.0, true), (0.0, -0.0, false), (NAN, NAN, true), (3.0, 3.0, false)];
    check(&[0x7c9a_0501], "v_cmp_neq_f32 vcc, v1, v2", &floats(&cases));
}
