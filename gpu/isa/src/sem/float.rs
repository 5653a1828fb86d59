//! Floating-point operations. The functions have no branches where they can, so that loops over lanes vectorize.

use crate::sem::half::F16;

/// Returns `a * b + c`, rounded once.
///
/// The product is exact in f64, the sum is rounded to odd there, and f64 has enough bits more than f32 that rounding it again gives
/// the same as rounding once. Where there is an FMA unit, `f32::mul_add` gives the same.
#[inline(always)]
pub(crate) fn fma32(a: f32, b: f32, c: f32) -> f32 {
    fma32_to_odd(a, b, c) as f32
}

/// Returns `a * b + c`, and a second value that is not 0 if the last bit may be wrong.
///
/// The sum is rounded to f64 and then to f32. That differs from rounding once only if the first rounding met the middle between
/// two numbers of f32, or, where those are further apart than their bits say, among denormals.
#[inline(always)]
pub(crate) fn fma32_nearly(a: f32, b: f32, c: f32) -> (f32, u32) {
    let sum = f64::from(a) * f64::from(b) + f64::from(c);
    let result = sum as f32;
    let middle = sum.to_bits() as u32 & 0x1fff_ffff == 0x1000_0000;
    let denormal = (result.abs() <= f32::MIN_POSITIVE) & (sum != 0.0);
    (result, u32::from(middle | denormal))
}

/// Computes `a * b + c` as an f64 rounded to odd, so that rounding it again to f32 or less is exact.
#[inline(always)]
pub(crate) fn fma32_to_odd(a: f32, b: f32, c: f32) -> f64 {
    let (product, addend) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + addend;
    let shadow = sum - product;
    let error = (product - (sum - shadow)) + (addend - shadow);
    to_odd64(sum, error)
}

/// Returns `a * b + c`, rounded to odd, so that rounding it again to f16 is exact. The product must be exact.
#[inline(always)]
pub(crate) fn exact_product_to_odd(a: f32, b: f32, c: f32) -> f32 {
    let product = a * b;
    let sum = product + c;
    let shadow = sum - product;
    let error = (product - (sum - shadow)) + (c - shadow);
    let inexact = (error > 0.0) | (error < 0.0);
    let bits = sum.to_bits();
    let toward_error = if (error > 0.0) == (sum > 0.0) { 1u32 } else { u32::MAX };
    f32::from_bits(if inexact & (bits & 1 == 0) { bits.wrapping_add(toward_error) } else { bits })
}

/// Returns the f64 next to `sum` in the direction of `error`, if `sum` is even and `error` is not 0; else `sum`.
#[inline(always)]
fn to_odd64(sum: f64, error: f64) -> f64 {
    // An infinite or NaN sum has a NaN error: neither comparison holds.
    let inexact = (error > 0.0) | (error < 0.0);
    let bits = sum.to_bits();
    let toward_error = if (error > 0.0) == (sum > 0.0) { 1u64 } else { u64::MAX };
    f64::from_bits(if inexact & (bits & 1 == 0) { bits.wrapping_add(toward_error) } else { bits })
}

/// Replaces a denormal by a zero of the same sign.
#[inline(always)]
pub(crate) fn without_denormals(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE { 0f32.copysign(x) } else { x }
}

/// Returns `a * b + c`, rounded after the product and after the sum; denormals count as zeros, whatever MODE says.
#[inline(always)]
pub(crate) fn mad32(a: f32, b: f32, c: f32) -> f32 {
    let product = without_denormals(a) * without_denormals(b);
    without_denormals(without_denormals(product) + without_denormals(c))
}

/// Returns `a * b + c`, rounded once.
#[inline(always)]
pub(crate) fn fma64(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}

/// Operations that the functions below need of a float type.
pub(crate) trait Float: Copy + PartialOrd {
    fn nan(self) -> bool;
    fn signaling(self) -> bool;
    fn quiet(self) -> Self;
    fn negative(self) -> bool;
    fn zero() -> Self;
    fn one() -> Self;
}

macro_rules! floats {
    ($($t:ty, |$v:ident| $bits:expr, $from:expr, $mantissa:expr, $total:expr;)*) => {$(
        impl Float for $t {
            #[inline(always)]
            fn nan(self) -> bool {
                self.is_nan()
            }
            #[inline(always)]
            fn signaling(self) -> bool {
                let $v = self;
                self.is_nan() & ($bits >> ($mantissa - 1) & 1 == 0)
            }
            #[inline(always)]
            fn quiet(self) -> Self {
                let $v = self;
                $from($bits | 1 << ($mantissa - 1))
            }
            #[inline(always)]
            fn negative(self) -> bool {
                let $v = self;
                $bits >> ($total - 1) != 0
            }
            #[inline(always)]
            fn zero() -> Self {
                $from(0)
            }
            #[inline(always)]
            fn one() -> Self {
                $from(((1 << ($total - $mantissa - 2)) - 1) << $mantissa)
            }
        }
    )*};
}
floats! {
    f32, |v| v.to_bits(), f32::from_bits, 23, 32;
    f64, |v| v.to_bits(), f64::from_bits, 52, 64;
    F16, |v| v.0, F16, 10, 16;
}

/// Returns the operand that is a number if the other is NaN, else `chosen`; a quiet NaN if one is a signalling NaN, as in the
/// IEEE mode of compute kernels.
#[inline(always)]
fn prefer_number<T: Float>(a: T, b: T, chosen: T) -> T {
    let number = if b.nan() { a } else { chosen };
    let number = if a.nan() { b } else { number };
    let number = if b.signaling() { b.quiet() } else { number };
    if a.signaling() { a.quiet() } else { number }
}

/// Returns the lesser of two numbers; -0 is less than +0.
#[inline(always)]
fn lesser<T: Float>(a: T, b: T) -> T {
    if (a < b) | ((a == b) & a.negative()) { a } else { b }
}

/// Returns the greater of two numbers; +0 is greater than -0.
#[inline(always)]
fn greater<T: Float>(a: T, b: T) -> T {
    if (a > b) | ((a == b) & !a.negative()) { a } else { b }
}

/// Returns the lesser value; -0 is less than +0.
#[inline(always)]
pub(crate) fn min<T: Float>(a: T, b: T) -> T {
    prefer_number(a, b, lesser(a, b))
}

/// Returns the greater value; +0 is greater than -0.
#[inline(always)]
pub(crate) fn max<T: Float>(a: T, b: T) -> T {
    prefer_number(a, b, greater(a, b))
}

/// Returns whether either value is NaN.
#[inline(always)]
pub(crate) fn unordered<T: Float>(a: T, b: T) -> bool {
    a.nan() | b.nan()
}

/// Returns whether the values differ and neither is NaN.
#[inline(always)]
pub(crate) fn less_or_greater<T: Float>(a: T, b: T) -> bool {
    (a < b) | (a > b)
}

#[inline(always)]
pub(crate) fn min3<T: Float>(a: T, b: T, c: T) -> T {
    min(min(a, b), c)
}

#[inline(always)]
pub(crate) fn max3<T: Float>(a: T, b: T, c: T) -> T {
    max(max(a, b), c)
}

/// Returns the middle one of three values; the least of the numbers if one is NaN.
#[inline(always)]
pub(crate) fn med3<T: Float>(a: T, b: T, c: T) -> T {
    let middle = greater(lesser(a, b), lesser(greater(a, b), c));
    if a.nan() | b.nan() | c.nan() { min3(a, b, c) } else { middle }
}

/// Clamps a value to 0 to 1. NaN becomes 0 if `dx10` says so.
#[inline(always)]
pub(crate) fn clamp<T: Float>(value: T, dx10: bool) -> T {
    if value.nan() {
        return if dx10 { T::zero() } else { value };
    }
    max(min(value, T::one()), T::zero())
}

/// The categories of `v_cmp_class`, one bit each.
mod class {
    pub(super) const SIGNALING: u32 = 1;
    pub(super) const QUIET: u32 = 1 << 1;
    pub(super) const INFINITE: [u32; 2] = [1 << 9, 1 << 2];
    pub(super) const NORMAL: [u32; 2] = [1 << 8, 1 << 3];
    pub(super) const DENORMAL: [u32; 2] = [1 << 7, 1 << 4];
    pub(super) const ZERO: [u32; 2] = [1 << 6, 1 << 5];
}

macro_rules! class_tests {
    ($($name:ident, $t:ty, $mantissa:literal, $total:literal;)*) => {$(
        /// Returns whether the number with these bits is in one of the categories of `mask`.
        #[inline(always)]
        pub(crate) fn $name(bits: $t, mask: u32) -> bool {
            const INFINITY: $t = ((1 << ($total - $mantissa - 1)) - 1) << $mantissa;
            let sign = (bits >> ($total - 1)) as usize;
            let magnitude = bits & (<$t>::MAX >> 1);
            let category = if magnitude > INFINITY {
                if magnitude >> ($mantissa - 1) & 1 == 1 { class::QUIET } else { class::SIGNALING }
            } else if magnitude == INFINITY {
                class::INFINITE[sign]
            } else if magnitude == 0 {
                class::ZERO[sign]
            } else if magnitude >> $mantissa == 0 {
                class::DENORMAL[sign]
            } else {
                class::NORMAL[sign]
            };
            category & mask != 0
        }
    )*};
}
class_tests! {
    class16, u16, 10, 16;
    class32, u32, 23, 32;
    class64, u64, 52, 64;
}

macro_rules! roundings {
    ($rndne:ident, $trunc:ident, $floor:ident, $ceil:ident, $fract:ident, $t:ty, $integral:expr, $below_one:expr) => {
        /// Rounds to the nearest integer, ties to even.
        #[inline(always)]
        pub(crate) fn $rndne(x: $t) -> $t {
            const INTEGRAL: $t = $integral;
            let rounded = ((x.abs() + INTEGRAL) - INTEGRAL).copysign(x);
            let whole = if x.nan() { x.quiet() } else { x };
            if x.abs() < INTEGRAL { rounded } else { whole }
        }

        /// Rounds toward zero.
        #[inline(always)]
        pub(crate) fn $trunc(x: $t) -> $t {
            let near = $rndne(x.abs());
            (if near > x.abs() { near - 1.0 } else { near }).copysign(x)
        }

        /// Rounds down.
        #[inline(always)]
        pub(crate) fn $floor(x: $t) -> $t {
            let near = $rndne(x);
            if near > x { near - 1.0 } else { near }
        }

        /// Rounds up.
        #[inline(always)]
        pub(crate) fn $ceil(x: $t) -> $t {
            -$floor(-x)
        }

        /// Returns the fractional part, which is less than 1; NaN for infinities and NaN.
        #[inline(always)]
        pub(crate) fn $fract(x: $t) -> $t {
            let part = x - $floor(x);
            if part >= 1.0 { <$t>::from_bits($below_one) } else { part }
        }
    };
}
roundings!(rndne32, trunc32, floor32, ceil32, fract32, f32, 8_388_608.0, 0x3f7f_ffff);
roundings!(rndne64, trunc64, floor64, ceil64, fract64, f64, 4_503_599_627_370_496.0, 0x3fef_ffff_ffff_ffff);

/// Returns `x` times 2 to the `exponent`, rounded once.
#[inline(always)]
pub(crate) fn ldexp32(x: f32, exponent: i32) -> f32 {
    // Exact in f64 whatever the exponent: beyond these bounds the result is 0 or infinite anyway.
    let power = f64::from_bits(((exponent.clamp(-300, 300) + 1023) as u64) << 52);
    (f64::from(x) * power) as f32
}

/// Returns `x` times 2 to the `exponent`, rounded once.
#[inline(always)]
pub(crate) fn ldexp64(x: f64, exponent: i32) -> f64 {
    libm::scalbn(x, exponent)
}

/// Returns `x` times 2 to the `exponent`, rounded once.
#[inline(always)]
pub(crate) fn ldexp16(x: F16, exponent: i16) -> F16 {
    let power = f64::from_bits(((i64::from(exponent.clamp(-100, 100)) + 1023) as u64) << 52);
    F16::from_f64(f64::from(x.to_f32()) * power)
}

/// Returns the exponent that belongs to a mantissa in 0.5 to 1; 0 for 0, infinities and NaN.
#[inline(always)]
pub(crate) fn frexp_exponent64(x: f64) -> i32 {
    let exponent = (x.to_bits() >> 52 & 0x7ff) as i32;
    match exponent {
        0x7ff => 0,
        0 if x == 0.0 => 0,
        0 => -1022 - (x.to_bits() << 12).leading_zeros() as i32,
        _ => exponent - 1022,
    }
}

/// Returns the mantissa, in 0.5 to 1 and with the sign of `x`; 0, infinities and NaN are returned unchanged.
#[inline(always)]
pub(crate) fn frexp_mantissa64(x: f64) -> f64 {
    if x == 0.0 || x.is_infinite() { x } else { ldexp64(x, -frexp_exponent64(x)) }
}

/// Returns the exponent that belongs to a mantissa in 0.5 to 1; 0 for 0, infinities and NaN.
#[inline(always)]
pub(crate) fn frexp_exponent32(x: f32) -> i32 {
    frexp_exponent64(f64::from(x))
}

/// Returns the mantissa, in 0.5 to 1 and with the sign of `x`; 0, infinities and NaN are returned unchanged.
#[inline(always)]
pub(crate) fn frexp_mantissa32(x: f32) -> f32 {
    frexp_mantissa64(f64::from(x)) as f32
}
