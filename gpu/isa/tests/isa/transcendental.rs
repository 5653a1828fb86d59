//! Tests of reciprocals, roots, exponentials, logarithms and sines against the host's f64 functions.

use crate::bench::{Bench, Random, check1, f};

/// Checks that `words` (v3 from v1) is within `ulps` of `reference` at random arguments.
fn compare(words: &[u32], ulps: f64, reference: fn(f64) -> f64, argument: impl Fn(&mut Random) -> f32) {
    let mut bench = Bench::default();
    let mut random = Random::new(7);
    for _ in 0..2000 {
        let arguments: [f32; 64] = std::array::from_fn(|_| argument(&mut random));
        bench.fill(1, |lane| f(arguments[lane]));
        bench.run(words);
        for (lane, x) in arguments.into_iter().enumerate() {
            let got = f32::from_bits(bench.wave.row(3)[lane]);
            let exact = reference(f64::from(x));
            let nearest = exact as f32;
            if !nearest.is_finite() {
                assert_eq!(got, nearest, "{words:x?} of {x:e}");
                continue;
            }
            let unit = f64::from(f32::from_bits((nearest.to_bits() & 0x7f80_0000).max(0x0080_0000)))
                * 2f64.powi(-23);
            let error = (f64::from(got) - exact).abs() / unit;
            assert!(error <= ulps, "{words:x?} of {x:e} is {exact:e}, not {got:e}: {error} units");
        }
    }
}

fn positive(random: &mut Random) -> f32 {
    f32::from_bits(random.u32() & 0x7fff_ffff).min(f32::MAX)
}

fn finite(random: &mut Random) -> f32 {
    let x = f32::from_bits(random.u32());
    if x.is_finite() && x != 0.0 { x } else { 1.0 }
}

#[test]
fn reciprocals_and_roots_are_rounded_correctly() {
    compare(&[0x7e064501], 0.5, |x| 1.0 / x, finite); // v_rcp_f32 v3, v1
    compare(&[0x7e064f01], 0.5, f64::sqrt, positive); // v_sqrt_f32 v3, v1
    compare(&[0x7e064901], 0.500_001, |x| 1.0 / x.sqrt(), |random| positive(random).max(1e-45)); // v_rsq_f32 v3, v1
}

#[test]
fn exponentials_and_logarithms() {
    let exponent = |random: &mut Random| (random.u32() as f32 / 4294967296.0 - 0.5) * 320.0;
    compare(&[0x7e064101], 0.500_2, f64::exp2, exponent); // v_exp_f32 v3, v1
    compare(&[0x7e064101], 0.500_2, f64::exp2, |random| exponent(random) * 1e-3); // v_exp_f32 v3, v1
    compare(&[0x7e064301], 0.500_2, f64::log2, |random| positive(random).max(1e-45)); // v_log_f32 v3, v1
    let near_one = |random: &mut Random| 1.0 + (random.u32() as f32 / 4294967296.0 - 0.5) * 0.01;
    compare(&[0x7e064301], 0.500_2, f64::log2, near_one); // v_log_f32 v3, v1
}

#[test]
fn sines_of_revolutions() {
    let turn = |random: &mut Random| (random.u32() as f32 / 4294967296.0 - 0.5) * 4.0;
    let reduced = |x: f64| (x - x.round()) * std::f64::consts::TAU;
    // Near multiples of a half turn the reference itself is inexact.
    let mut bench = Bench::default();
    let mut random = Random::new(8);
    for _ in 0..2000 {
        let arguments: [f32; 64] = std::array::from_fn(|_| turn(&mut random));
        bench.fill(1, |lane| f(arguments[lane]));
        bench.run(&[0x7e065301, 0x7e0a5501]); // v_sin_f32 v3, v1; v_cos_f32 v5, v1
        for (lane, x) in arguments.into_iter().enumerate() {
            let (sine, cosine) = (reduced(f64::from(x)).sin(), reduced(f64::from(x)).cos());
            assert!((f64::from(f32::from_bits(bench.wave.row(3)[lane])) - sine).abs() < 6e-8, "sine of {x}");
            assert!(
                (f64::from(f32::from_bits(bench.wave.row(5)[lane])) - cosine).abs() < 6e-8,
                "cosine of {x}"
            );
        }
    }
    let exact = [(0.0, 0.0), (0.25, 1.0), (0.75, -1.0), (-0.25, -1.0), (1.0, 0.0), (1.0 / 12.0, 0.5)];
    check1(&[0x7e065301], "v_sin_f32 v3, v1", &exact.map(|(x, y)| (f(x), f(y))));
    let exact = [(0.0, 1.0), (0.5, -1.0), (0.25, 0.0), (-1.0, 1.0)];
    check1(&[0x7e065501], "v_cos_f32 v3, v1", &exact.map(|(x, y)| (f(x), f(y))));
}

#[test]
fn special_values() {
    let (inf, minus_inf) = (f(f32::INFINITY), f(f32::NEG_INFINITY));
    check1(&[0x7e064501], "v_rcp_f32 v3, v1", &[(f(-0.0), minus_inf), (inf, 0), (minus_inf, f(-0.0))]);
    check1(
        &[0x7e064901],
        "v_rsq_f32 v3, v1",
        &[(f(0.0), inf), (f(-0.0), minus_inf), (inf, 0), (f(4.0), f(0.5))],
    );
    check1(
        &[0x7e064101],
        "v_exp_f32 v3, v1",
        &[(minus_inf, 0), (inf, inf), (f(3.0), f(8.0)), (f(-149.0), 1)],
    );
    check1(
        &[0x7e064301],
        "v_log_f32 v3, v1",
        &[(0, minus_inf), (f(-0.0), minus_inf), (inf, inf), (f(8.0), f(3.0)), (1, f(-149.0))],
    );
    let mut bench = Bench::default();
    bench.fill(1, |_| f(-1.0));
    bench.run(&[0x7e064301, 0x7e0a4f01]); // v_log_f32 v3, v1; v_sqrt_f32 v5, v1
    assert!(f32::from_bits(bench.wave.row(3)[0]).is_nan() && f32::from_bits(bench.wave.row(5)[0]).is_nan());
}
