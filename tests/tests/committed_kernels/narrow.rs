//! Tests 16-bit numbers: f16, whose arithmetic is exact in f64 and rounded here, and bf16, the upper half of an f32.

use crate::check::{Random, blocks, equal, near};
use hipr_tests::{Gpu, args};

/// Rounds to the nearest f16, ties to even; exact for every f64.
fn round_to_f16(x: f64) -> u16 {
    let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = x.abs();
    if x.is_nan() {
        return sign | 0x7e00;
    }
    if magnitude >= 65_520.0 {
        return sign | 0x7c00;
    }
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(-14);
    // Units in the last place: a carry out of the mantissa becomes the next exponent.
    let units = (magnitude * 2f64.powi(10 - exponent)).round_ties_even() as u16;
    sign | ((((exponent + 14) as u16) << 10) + units)
}

fn value_of_f16(bits: u16) -> f64 {
    let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => mantissa * 2f64.powi(-24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + mantissa) * 2f64.powi(exponent - 25),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

fn rounded(values: &[f64]) -> Vec<u16> {
    values.iter().map(|x| round_to_f16(*x)).collect()
}

fn values(halves: &[u16]) -> Vec<f64> {
    halves.iter().map(|bits| value_of_f16(*bits)).collect()
}

const N: usize = 2000;

pub(crate) fn half(gpu: &mut Gpu) {
    let mut random = Random(20);
    let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..N {
        let magnitude = 2f64.powi(random.below(14) as i32 - 7);
        a.push(round_to_f16(random.real(-1.0, 1.0) * magnitude));
        let sign = if i & 1 == 1 { 1.0 } else { -1.0 };
        b.push(round_to_f16(random.real(0.1, 1.0) * magnitude * sign));
        c.push(round_to_f16(random.real(-1.0, 1.0)));
    }
    // Denormal.
    (a[0], a[1]) = (round_to_f16(6e-8), round_to_f16(1e-5));
    arithmetic(gpu, &a, &b, &c);
    conversions(gpu, &mut random, &a);
    {
        let x: Vec<u16> = (0..N).map(|_| round_to_f16(random.real(0.01, 12.0))).collect();
        let want: Vec<f64> = values(&x)
            .into_iter()
            .flat_map(|v| {
                let root = v.sqrt();
                [root, 1.0 / v, 1.0 / root, v.exp2(), v.log2(), v.floor(), v.trunc(), v.round_ties_even()]
            })
            .collect();
        let (dx, dout) = (gpu.upload(&x), gpu.zeroed::<u16>(8 * N));
        gpu.launch("functions_f16", blocks(N, 128), 128, 0, args![dx, dout, N as i32]);
        near("functions", &values(&gpu.download(dout)), &want, 2e-3, 1e-3);
    }
    const LENGTH: usize = 30;
    let (da, dc, dots) = (gpu.upload(&a), gpu.upload(&c), gpu.zeroed::<f32>(64));
    gpu.launch("dot_f16", 1, 64, 0, args![da, dc, dots, LENGTH as i32]);
    let products: Vec<f64> = values(&a).iter().zip(values(&c)).map(|(a, c)| a * c).collect();
    let want: Vec<f64> = products.chunks(LENGTH).take(64).map(|row| row.iter().sum()).collect();
    near("dot", &gpu.download(dots), &want, 1e-5, 1e-4);

    let dy = gpu.zeroed::<u16>(N);
    gpu.launch("polynomial_f16", blocks(N, 128), 64, 0, args![dc, dy, N as i32]);
    let polynomial = |v: &f64| if *v > 0.0 { v * v + v } else { v * 0.25 - 1.0 };
    let want: Vec<f64> = values(&c).iter().map(polynomial).collect();
    near("polynomial", &values(&gpu.download(dy)), &want, 2e-3, 1e-3);
}

fn arithmetic(gpu: &mut Gpu, a: &[u16], b: &[u16], c: &[u16]) {
    let (wide_a, wide_b, wide_c) = (values(a), values(b), values(c));
    let triples = || wide_a.iter().zip(&wide_b).zip(&wide_c).map(|((x, y), z)| (*x, *y, *z));
    let (da, db, dc) = (gpu.upload(a), gpu.upload(b), gpu.upload(c));

    let want: Vec<f64> = triples()
        .flat_map(|(x, y, z)| [x + y, x - y, x * y, x * y + z, -x, x.abs(), x.min(y), x / y])
        .collect();
    let dout = gpu.zeroed::<u16>(8 * N);
    gpu.launch("arithmetic_f16", blocks(N, 128), 128, 0, args![da, db, dc, dout, N as i32]);
    let (got, want) = (gpu.download(dout), rounded(&want));
    let quotient = |rows: &[u16]| rows.chunks(8).map(|row| value_of_f16(row[7])).collect::<Vec<f64>>();
    let others = |rows: &[u16]| rows.chunks(8).flat_map(|row| &row[..7]).copied().collect::<Vec<u16>>();
    equal("arithmetic", &others(&got), &others(&want));
    // May be one unit off.
    near("division", &quotient(&got), &quotient(&want), 1e-3, 1e-7);

    let both: Vec<[f64; 3]> = triples().map(|(x, y, z)| [x + y, x * y, x * y + z]).collect();
    let want: Vec<u16> = both
        .chunks(2)
        .zip(a.chunks(2))
        .flat_map(|(both, a)| {
            let pair = |k: usize| [round_to_f16(both[0][k]), round_to_f16(both[1][k])];
            [pair(0), pair(1), pair(2), [a[1], a[0]]]
        })
        .flatten()
        .collect();
    let (pairs, dout) = (N / 2, gpu.zeroed::<u16>(want.len()));
    gpu.launch("pairs_f16", blocks(pairs, 128), 128, 0, args![da, db, dc, dout, pairs as i32]);
    equal("pairs", &gpu.download(dout), &want);
}

fn conversions(gpu: &mut Gpu, random: &mut Random, a: &[u16]) {
    let mut x: Vec<f32> =
        (0..N).map(|_| (random.real(-1.0, 1.0) * 2f64.powi(random.below(40) as i32 - 26)) as f32).collect();
    let edges = [65_504.0, 65_519.0, 65_520.0, 1e30, 2.98e-8, 2.99e-8, 0.1, -0.0, f32::INFINITY];
    x[..edges.len()].copy_from_slice(&edges);
    let wide: Vec<f64> = x.iter().copied().map(f64::from).collect();
    let (dx, da, to_half) = (gpu.upload(&x), gpu.upload(a), gpu.zeroed::<u16>(N));
    let (to_float, to_int) = (gpu.zeroed::<f32>(N), gpu.zeroed::<i32>(N));
    gpu.launch("convert_f16", blocks(N, 128), 128, 0, args![dx, da, to_half, to_float, to_int, N as i32]);
    equal("to f16", &gpu.download(to_half), &rounded(&wide));
    let widened = values(a);
    equal("to f32", &gpu.download(to_float), &widened.iter().map(|v| *v as f32).collect::<Vec<f32>>());
    equal("to int", &gpu.download(to_int), &widened.iter().map(|v| *v as i32).collect::<Vec<i32>>());
}

/// Rounds to the nearest bf16, ties to even.
fn round_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

fn value_of_bf16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

pub(crate) fn bf16(gpu: &mut Gpu) {
    let mut random = Random(39);
    let mut x: Vec<f32> =
        (0..N).map(|_| (random.real(-1.0, 1.0) * 2f64.powi(random.below(200) as i32 - 100)) as f32).collect();
    let ulp = f32::EPSILON * 32_768.0; // 2^-8
    let edges = [0.0, -0.0, f32::INFINITY, 3.4e38, 1.0 + ulp, 1.0 + 3.0 * ulp, 1e-40];
    x[..edges.len()].copy_from_slice(&edges);
    let want: Vec<u16> = x.iter().map(|x| round_to_bf16(*x)).collect();
    let back: Vec<f32> = want.iter().map(|bits| value_of_bf16(*bits)).collect();
    let (dx, dout, dback) = (gpu.upload(&x), gpu.zeroed::<u16>(N), gpu.zeroed::<f32>(N));
    gpu.launch("convert_bf16", blocks(N, 128), 128, 0, args![dx, dout, dback, N as i32]);
    equal("to bf16", &gpu.download(dout), &want);
    equal("to f32", &gpu.download(dback), &back);

    let mut some = || (0..N).map(|_| round_to_bf16(random.real(-4.0, 4.0) as f32)).collect::<Vec<u16>>();
    let (a, b) = (some(), some());
    let pairs = || a.iter().zip(&b).map(|(a, b)| (value_of_bf16(*a), value_of_bf16(*b)));
    let want: Vec<u16> =
        pairs().flat_map(|(x, y)| [x + y, x - y, x * y, x.max(y), x.min(y)]).map(round_to_bf16).collect();
    let (da, db, dout) = (gpu.upload(&a), gpu.upload(&b), gpu.zeroed::<u16>(want.len()));
    gpu.launch("arithmetic_bf16", blocks(N, 128), 128, 0, args![da, db, dout, N as i32]);
    equal("arithmetic", &gpu.download(dout), &want);

    const LENGTH: usize = 30;
    let products: Vec<f64> = pairs().map(|(x, y)| f64::from(x) * f64::from(y)).collect();
    let want: Vec<f64> = products.chunks(LENGTH).take(64).map(|row| row.iter().sum()).collect();
    let dots = gpu.zeroed::<f32>(64);
    gpu.launch("dot_bf16", 1, 64, 0, args![da, db, dots, LENGTH as i32]);
    near("dot", &gpu.download(dots), &want, 1e-5, 1e-5);
}

#[test]
fn rounding_of_the_reference_is_right() {
    for bits in (0..0x7c00).flat_map(|bits| [bits, bits | 0x8000]) {
        assert_eq!(round_to_f16(value_of_f16(bits)), bits);
    }
    for (x, bits) in [(65_519.9, 0x7bff), (2f64.powi(-25), 0), (2f64.powi(-25) * 1.000_001, 1), (1.0, 0x3c00)]
    {
        assert_eq!(round_to_f16(x), bits, "{x}");
    }
    assert_eq!(round_to_bf16(1.0 + 1.0 / 256.0), 0x3f80, "a tie to the even one below");
    assert_eq!(round_to_bf16(1.0 + 3.0 / 256.0), 0x3f82, "a tie to the even one above");
}
