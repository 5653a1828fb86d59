//! Tests the device library's functions in f32 and f64, and operations that must be rounded correctly.

use crate::check::{Random, blocks, equal, near};
use hipr_tests::{Gpu, args};
use std::{f32, f64::consts::PI};

/// Returns the results of one function for all arguments, from rows of `of` results.
fn column<T: Copy>(results: &[T], of: usize, index: usize) -> Vec<T> {
    results.iter().skip(index).step_by(of).copied().collect()
}

/// Computes the results of `functions_f32` for x and y; arguments that the kernel forms in f32 are formed in f32.
fn functions_f32(x: f32, y: f32) -> [(&'static str, f64); 32] {
    let a = x.abs();
    let u = x / (1.0 + a);
    let positive = f64::from(a + 1e-30);
    let (wide_x, wide_y, wide_a, wide_u) = (f64::from(x), f64::from(y), f64::from(a), f64::from(u));
    let power = f64::from(a + 0.01).powf(f64::from(u * 3.0));
    [
        ("sin", wide_x.sin()),
        ("cos", wide_x.cos()),
        ("tan", wide_u.tan()),
        ("asin", wide_u.asin()),
        ("acos", wide_u.acos()),
        ("atan", wide_x.atan()),
        ("atan2", wide_x.atan2(wide_y)),
        ("sinh", (wide_u * 4.0).sinh()),
        ("cosh", (wide_u * 4.0).cosh()),
        ("tanh", wide_x.tanh()),
        ("exp", f64::from(u * 80.0).exp()),
        ("exp2", f64::from(u * 120.0).exp2()),
        ("log", positive.ln()),
        ("log2", positive.log2()),
        ("log10", positive.log10()),
        ("log1p", wide_a.ln_1p()),
        ("expm1", wide_u.exp_m1()),
        ("pow", power),
        ("sqrt", wide_a.sqrt()),
        ("rsqrt", 1.0 / f64::from(a + 1e-20).sqrt()),
        ("cbrt", wide_x.cbrt()),
        ("hypot", wide_u.hypot(wide_y)),
        ("divide", wide_x / wide_y),
        ("reciprocal", 1.0 / wide_y),
        ("fma", wide_x.mul_add(wide_y, 1.0)),
        ("erf", libm::erf(f64::from(u * 3.0))),
        ("tgamma", libm::tgamma(1.0 + wide_a / (1.0 + wide_a) * 5.0)),
        ("lgamma", libm::lgamma(1.0 + wide_a)),
        ("fmod", wide_x % wide_y),
        ("fdim", libm::fdim(wide_x, wide_y)),
        ("sinpi", (f64::from(u * 9.0) % 2.0 * PI).sin()),
        ("exp10", 10f64.powf(f64::from(u * 5.0))),
    ]
}

pub(crate) fn math_f32(gpu: &mut Gpu) {
    const N: usize = 640;
    let mut random = Random(21);
    let mut x: Vec<f32> = (0..N)
        .map(|i| {
            let exponent = random.below(if i % 3 == 0 { 30 } else { 8 }) as i32 - 3;
            (random.real(-1.0, 1.0) * 2f64.powi(exponent)) as f32
        })
        .collect();
    let y: Vec<f32> =
        (0..N).map(|i| (random.real(0.5, 3.0) * if i & 2 == 2 { 1.0 } else { -1.0 }) as f32).collect();
    x[..8].copy_from_slice(&[0.0, -0.0, 1.0, -1.0, 1e-10, 1e5, -f32::consts::PI, f32::consts::FRAC_PI_2]);
    let (dx, dy, dout) = (gpu.upload(&x), gpu.upload(&y), gpu.zeroed::<f32>(32 * N));
    gpu.launch("functions_f32", blocks(N, 64), 64, 0, args![dx, dy, dout, N as i32]);
    let got = gpu.download(dout);
    let want: Vec<(&str, f64)> = x.iter().zip(&y).flat_map(|(x, y)| functions_f32(*x, *y)).collect();
    for f in 0..32 {
        let (names, want): (Vec<_>, Vec<_>) = column(&want, 32, f).into_iter().unzip();
        // The library promises a few units in the last place (2^-24) of most results.
        let relative = if names[0].ends_with("gamma") { 4e-6 } else { 1e-6 };
        let absolute = if ["divide", "reciprocal"].contains(&names[0]) { 0.0 } else { 3e-7 };
        near(names[0], &column(&got, 32, f), &want, relative, absolute);
    }

    let specials = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-42, 0.5, 2.5, -0.5, 8_388_609.0, -1e30];
    x[8..8 + specials.len()].copy_from_slice(&specials);
    let (mut want, mut whole) = (Vec::new(), Vec::new());
    for ((i, x), y) in (0..).zip(&x).zip(&y) {
        let (fraction, exponent) = libm::frexpf(*x);
        let (rest, integral) = libm::modff(*x);
        want.extend([x.floor(), x.ceil(), x.trunc(), x.round(), x.round_ties_even(), x.min(*y), x.max(*y)]);
        want.extend([x.copysign(*y), libm::ldexpf(*x, i % 20 - 10), fraction, rest, integral]);
        let class =
            i32::from(x.is_nan()) * 4 + i32::from(x.is_infinite()) * 2 + i32::from(x.is_sign_negative());
        let exponent = if x.is_finite() { exponent } else { 0 };
        whole.extend([exponent, class, y.round_ties_even() as i32, libm::ilogbf(*y)]);
    }
    let (dx, dout, dwhole) = (gpu.upload(&x), gpu.zeroed::<f32>(12 * N), gpu.zeroed::<i32>(4 * N));
    gpu.launch("rounding_f32", blocks(N, 64), 64, 0, args![dx, dy, dout, dwhole, N as i32]);
    near("rounding", &gpu.download(dout), &want, 0.0, 0.0);
    let mut got = gpu.download(dwhole);
    // The exponent of infinity and of NaN is not specified.
    got.chunks_mut(4).zip(&x).filter(|(_, x)| !x.is_finite()).for_each(|(row, _)| row[0] = 0);
    equal("rounding to integers", &got, &whole);
}

/// Returns the names and results of the functions that the kernel `functions_f64` computes of x and y.
fn functions_f64(x: f64, y: f64) -> [(&'static str, f64); 28] {
    let a = x.abs();
    let u = x / (1.0 + a);
    [
        ("sin", x.sin()),
        ("cos", x.cos()),
        ("tan", u.tan()),
        ("asin", u.asin()),
        ("acos", u.acos()),
        ("atan", x.atan()),
        ("atan2", x.atan2(y)),
        ("sinh", (u * 4.0).sinh()),
        ("cosh", (u * 4.0).cosh()),
        ("tanh", x.tanh()),
        ("exp", (u * 600.0).exp()),
        ("exp2", (u * 1000.0).exp2()),
        ("log", (a + 1e-300).ln()),
        ("log2", (a + 1e-300).log2()),
        ("log10", (a + 1e-300).log10()),
        ("log1p", a.ln_1p()),
        ("expm1", u.exp_m1()),
        ("pow", (a + 0.01).powf(u * 30.0)),
        ("sqrt", a.sqrt()),
        ("rsqrt", 1.0 / (a + 1e-20).sqrt()),
        ("cbrt", x.cbrt()),
        ("hypot", u.hypot(y)),
        ("divide", x / y),
        ("reciprocal", 1.0 / y),
        ("fma", x.mul_add(y, 1.0)),
        ("erf", libm::erf(u * 3.0)),
        ("fmod", x % y),
        ("tgamma", libm::tgamma(1.0 + a / (1.0 + a) * 5.0)),
    ]
}

pub(crate) fn math_f64(gpu: &mut Gpu) {
    const N: usize = 320;
    let mut random = Random(22);
    let mut x: Vec<f64> = (0..N)
        .map(|i| {
            let exponent = random.below(if i % 3 == 0 { 50 } else { 8 }) as i32 - 3;
            random.real(-1.0, 1.0) * 2f64.powi(exponent)
        })
        .collect();
    let y: Vec<f64> = (0..N).map(|i| random.real(0.5, 3.0) * if i & 2 == 2 { 1.0 } else { -1.0 }).collect();
    x[..8].copy_from_slice(&[0.0, -0.0, 1.0, -1.0, 1e-20, 1e15, -PI, PI / 2.0]);
    let (dx, dy, dout) = (gpu.upload(&x), gpu.upload(&y), gpu.zeroed::<f64>(28 * N));
    gpu.launch("functions_f64", blocks(N, 64), 64, 0, args![dx, dy, dout, N as i32]);
    let got = gpu.download(dout);
    let want: Vec<(&str, f64)> = x.iter().zip(&y).flat_map(|(x, y)| functions_f64(*x, *y)).collect();
    for f in 0..28 {
        let (names, want): (Vec<_>, Vec<_>) = column(&want, 28, f).into_iter().unzip();
        let relative = match names[0] {
            "exp" | "exp2" => 2e-13, // the argument's own rounding counts
            "pow" => 2e-14,
            "tgamma" => 1e-14,
            _ => 2e-15,
        };
        near(names[0], &column(&got, 28, f), &want, relative, 5e-16);
    }

    let specials =
        [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-320, 0.5, 2.5, -0.5, 4_503_599_627_370_497.0, -1e300];
    x[8..8 + specials.len()].copy_from_slice(&specials);
    let (mut want, mut whole) = (Vec::new(), Vec::new());
    for ((i, x), y) in (0..).zip(&x).zip(&y) {
        let (fraction, exponent) = libm::frexp(*x);
        let (rest, integral) = libm::modf(*x);
        want.extend([x.floor(), x.ceil(), x.trunc(), x.round(), x.round_ties_even(), x.min(*y), x.max(*y)]);
        want.extend([x.copysign(*y), libm::ldexp(*x, i % 20 - 10), fraction, rest, integral]);
        let class =
            i64::from(x.is_nan()) * 4 + i64::from(x.is_infinite()) * 2 + i64::from(x.is_sign_negative());
        let exponent = if x.is_finite() { i64::from(exponent) } else { 0 };
        whole.extend([exponent, class, (y * 1e15).round_ties_even() as i64]);
    }
    let (dx, dout, dwhole) = (gpu.upload(&x), gpu.zeroed::<f64>(12 * N), gpu.zeroed::<i64>(3 * N));
    gpu.launch("rounding_f64", blocks(N, 64), 64, 0, args![dx, dy, dout, dwhole, N as i32]);
    near("rounding", &gpu.download(dout), &want, 0.0, 0.0);
    let mut got = gpu.download(dwhole);
    got.chunks_mut(3).zip(&x).filter(|(_, x)| !x.is_finite()).for_each(|(row, _)| row[0] = 0);
    equal("rounding to integers", &got, &whole);

    correctly_rounded(gpu, &mut random);
}

/// Checks quotients and square roots of every magnitude, including denormal and overflowing ones.
fn correctly_rounded(gpu: &mut Gpu, random: &mut Random) {
    const N: usize = 2000;
    macro_rules! check {
        ($kernel:literal, $real:ty, $exponents:literal) => {
            let mut magnitude = || {
                let exponent = random.below(2 * $exponents) as i32 - $exponents;
                libm::ldexp(random.real(0.5, 1.0), exponent)
            };
            let mut a: Vec<$real> = (0..N).map(|_| magnitude() as $real).collect();
            let mut b: Vec<$real> =
                (0..N).map(|i| (magnitude() * if i & 1 == 1 { 1.0 } else { -1.0 }) as $real).collect();
            let least = <$real>::from_bits(1);
            (a[0], a[1], b[2], b[3], a[4]) = (0.0, <$real>::INFINITY, 0.0, <$real>::INFINITY, 1.0);
            (a[5], b[5], a[6], b[6]) = (1.0, 3.0, 0.0, 0.0);
            (a[7], a[8], b[9]) = (least, <$real>::MAX, least);
            let want: Vec<$real> = a.iter().zip(&b).flat_map(|(a, b)| [a / b, a.sqrt()]).collect();
            let (da, db, dout) = (gpu.upload(&a), gpu.upload(&b), gpu.zeroed::<$real>(2 * N));
            gpu.launch($kernel, blocks(N, 256), 256, 0, args![da, db, dout, N as i32]);
            near($kernel, &gpu.download(dout), &want, 0.0, 0.0);
        };
    }
    check!("exact_f64", f64, 1060);
    check!("exact_f32", f32, 140);
}
