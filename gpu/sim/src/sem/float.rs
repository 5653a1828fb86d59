//! Floating point.

/// `a * b + c`, rounded once.
///
/// Without an FMA unit to compile for, the product is exact in f64, the sum is rounded to odd there, and f64 has enough bits
/// more than f32 that rounding it again gives the same as rounding once.
#[inline(always)]
pub(crate) fn fma32(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(target_feature = "fma") {
        return a.mul_add(b, c);
    }
    let (product, addend) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + addend;
    let shadow = sum - product;
    let error = (product - (sum - shadow)) + (addend - shadow);
    // An infinite or NaN sum has a NaN error: neither comparison holds.
    let inexact = (error > 0.0) | (error < 0.0);
    let bits = sum.to_bits();
    let toward_error = if (error > 0.0) == (sum > 0.0) { 1u64 } else { u64::MAX };
    let odd = if inexact & (bits & 1 == 0) { bits.wrapping_add(toward_error) } else { bits };
    f64::from_bits(odd) as f32
}
