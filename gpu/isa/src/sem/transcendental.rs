//! Reciprocals, roots, exponentials, logarithms and sines of f32, computed in f64 and rounded: correct for all but about one
//! argument in a million. Polynomials, not library calls, so that loops over lanes vectorize.

use std::f64::consts::{LN_2, TAU};

use crate::sem::float::rndne64;

/// Constant that, added to a small f64, leaves the nearest integer in the low bits of the sum.
const INTEGER_IN_LOW_BITS: f64 = 6_755_399_441_055_744.0;

#[inline(always)]
pub(crate) fn rcp32(x: f32) -> f32 {
    1.0 / x
}

#[inline(always)]
pub(crate) fn rsq32(x: f32) -> f32 {
    // Negative zero has a reciprocal root, minus infinity.
    (1.0 / f64::from(x).sqrt()) as f32
}

#[inline(always)]
pub(crate) fn sqrt32(x: f32) -> f32 {
    x.sqrt()
}

/// Returns the value of a polynomial with these coefficients, lowest first.
#[inline(always)]
fn polynomial<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// Coefficients of the power series of the exponential.
const EXPONENTIAL: [f64; 10] = reciprocal_factorials();

const fn reciprocal_factorials() -> [f64; 10] {
    let mut terms = [1.0; 10];
    let mut n = 1;
    while n < terms.len() {
        terms[n] = terms[n - 1] / n as f64;
        n += 1;
    }
    terms
}

/// Returns 2 to the power of `x`.
#[inline(always)]
pub(crate) fn exp2_32(x: f32) -> f32 {
    // Beyond these bounds f32 is 0 or infinite. NaN stays NaN.
    let x = f64::from(x);
    let bounded = if x > 200.0 { 200.0 } else { x };
    let bounded = if bounded < -200.0 { -200.0 } else { bounded };
    let shifted = bounded + INTEGER_IN_LOW_BITS;
    let fraction = polynomial((bounded - (shifted - INTEGER_IN_LOW_BITS)) * LN_2, EXPONENTIAL);
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    (fraction * power) as f32
}

/// Coefficients of artanh(s) / s in s squared, times 2 / ln 2.
const LOGARITHM: [f64; 8] = logarithm_terms();

const fn logarithm_terms() -> [f64; 8] {
    let mut terms = [0.0; 8];
    let mut n = 0;
    while n < terms.len() {
        terms[n] = 2.0 / LN_2 / (2 * n + 1) as f64;
        n += 1;
    }
    terms
}

/// Returns the logarithm to base 2.
#[inline(always)]
pub(crate) fn log2_32(x: f32) -> f32 {
    // Every f32 but 0 is normal as f64.
    let bits = f64::from(x).to_bits();
    // The mantissa goes from 0.707 to 1.414.
    const BIAS: u64 = 1024;
    let offset = (BIAS << 52).wrapping_sub(std::f64::consts::FRAC_1_SQRT_2.to_bits());
    let exponent = bits.wrapping_add(offset) >> 52;
    let mantissa = f64::from_bits(bits.wrapping_sub(exponent.wrapping_sub(BIAS) << 52));
    // 2^52 + exponent, without a conversion of integers.
    let whole = f64::from_bits(0x4330_0000_0000_0000 | exponent) - (4_503_599_627_370_496.0 + BIAS as f64);
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let value = whole + s * polynomial(s * s, LOGARITHM);
    if x == 0.0 {
        f32::NEG_INFINITY
    } else if x < 0.0 || x.is_nan() {
        f32::NAN
    } else if x == f32::INFINITY {
        x
    } else {
        value as f32
    }
}

/// Coefficients of the power series of sin(t) / t in t squared.
const SINE: [f64; 9] = sine_terms();

const fn sine_terms() -> [f64; 9] {
    let mut terms = [1.0; 9];
    let mut n = 1;
    while n < terms.len() {
        terms[n] = -terms[n - 1] / (2 * n * (2 * n + 1)) as f64;
        n += 1;
    }
    terms
}

/// Returns the sine of `x` revolutions, for `x` from -1/4 to 1/4.
#[inline(always)]
fn sine(x: f64) -> f64 {
    let t = x * TAU;
    t * polynomial(t * t, SINE)
}

/// Returns the sine of `x` revolutions.
#[inline(always)]
pub(crate) fn sin32(x: f32) -> f32 {
    let x = f64::from(x);
    let part = x - rndne64(x);
    let folded = if part.abs() > 0.25 { 0.5f64.copysign(part) - part } else { part };
    sine(folded) as f32
}

/// Returns the cosine of `x` revolutions.
#[inline(always)]
pub(crate) fn cos32(x: f32) -> f32 {
    let x = f64::from(x);
    let part = x - rndne64(x);
    sine(0.25 - part.abs()) as f32
}
