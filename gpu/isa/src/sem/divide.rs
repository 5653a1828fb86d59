//! Division: three instructions around a Newton iteration in ordinary code give the quotient that IEEE 754 wants.
//!
//! `div_scale` brings operands to where the iteration neither overflows nor loses bits, `div_fmas` undoes what was scaled while
//! it rounds the last time, `div_fixup` puts in the quotients that are not numbers' quotients.

use crate::sem::float::{fma32_to_odd, fma64};
use crate::sem::half::F16;

macro_rules! scale_and_fixup {
    ($scale:ident, $fixup:ident, $t:ty, $bits:ty, $mantissa:literal, $exponents:literal, $step:literal, $far:literal,
     $huge:literal, $tiny:literal, $lost:literal, $beyond:literal) => {
        /// Scales `operand`, which is the numerator or the denominator, for the Newton iteration; also returns whether the
        /// quotient has to be scaled back.
        #[inline(always)]
        pub(crate) fn $scale(operand: $t, denominator: $t, numerator: $t) -> ($t, bool) {
            const STEP: $bits = $step;
            let exponent = |x: $t| (x.to_bits() >> $mantissa & $exponents) as i32;
            let power = |exponent: $bits| <$t>::from_bits((exponent + $exponents / 2) << $mantissa);
            let (up, down) = (power(STEP), <$t>::from_bits(($exponents / 2 - STEP) << $mantissa));
            let (above, below) = (exponent(numerator), exponent(denominator));
            let is_denominator = operand.to_bits() == denominator.to_bits();
            let is_numerator = operand.to_bits() == numerator.to_bits();
            if denominator == 0.0 || numerator == 0.0 {
                (-<$t>::NAN.abs(), true)
            } else if above - below >= $far {
                // The quotient may overflow.
                (if is_denominator { operand * up } else { operand }, true)
            } else if below == 0 {
                (operand * up, false)
            } else if below >= $huge && above - below <= -$far {
                (if is_denominator { operand * down } else { operand }, true)
            } else if below >= $huge {
                // The reciprocal would be a denormal.
                (operand * down, false)
            } else if above - below <= -$far {
                // The quotient may be a denormal.
                (if is_numerator { operand * up } else { operand }, true)
            } else if above <= $tiny {
                // Remainders would be lost.
                (operand * up, false)
            } else {
                (operand, false)
            }
        }

        /// Returns the quotient: `value` from the iteration, or the result for zeros, infinities, NaN and overflow.
        #[inline(always)]
        pub(crate) fn $fixup(value: $t, denominator: $t, numerator: $t) -> $t {
            let exponent = |x: $t| (x.to_bits() >> $mantissa & $exponents) as i32;
            let negative = denominator.is_sign_negative() != numerator.is_sign_negative();
            let difference = exponent(numerator) - exponent(denominator);
            let magnitude = if numerator.is_nan() {
                return numerator + numerator;
            } else if denominator.is_nan() {
                return denominator + denominator;
            } else if (denominator == 0.0 && numerator == 0.0)
                || (denominator.is_infinite() && numerator.is_infinite())
            {
                return -<$t>::NAN.abs();
            } else if denominator == 0.0 || numerator.is_infinite() {
                <$t>::INFINITY
            } else if denominator.is_infinite() || numerator == 0.0 || difference < -$lost {
                0.0
            } else if difference > $beyond {
                <$t>::INFINITY
            } else {
                value.abs()
            };
            if negative { -magnitude } else { magnitude }
        }
    };
}
scale_and_fixup!(div_scale32, div_fixup32, f32, u32, 23, 0xff, 64, 96, 253, 23, 150, 129);
scale_and_fixup!(div_scale64, div_fixup64, f64, u64, 52, 0x7ff, 128, 768, 2045, 53, 1075, 1025);

/// Returns `a * b + c`, scaled back if `scaled`: down if `c` is small, else up. Rounded once.
#[inline(always)]
pub(crate) fn div_fmas32(a: f32, b: f32, c: f32, scaled: bool) -> f32 {
    const UP: f64 = 18_446_744_073_709_551_616.0;
    let large = c.to_bits() >> 23 & 0xff > 127;
    let factor = match (scaled, large) {
        (false, _) => 1.0,
        (true, true) => UP,
        (true, false) => 1.0 / UP,
    };
    (fma32_to_odd(a, b, c) * factor) as f32
}

/// Returns `a * b + c`, scaled back if `scaled`: down if `c` is small, else up. Rounded once.
#[inline(always)]
pub(crate) fn div_fmas64(a: f64, b: f64, c: f64, scaled: bool) -> f64 {
    let up = f64::from_bits((1023 + 128) << 52);
    let sum = fma64(a, b, c);
    if !scaled {
        sum
    } else if c.to_bits() >> 52 & 0x7ff > 1023 {
        sum * up
    } else {
        let down = sum / up;
        let missing = sum - down * up;
        let unit = f64::from_bits(1);
        // Only where scaling down met the middle between two denormals does it matter what the sum's rounding took away.
        if missing.abs() != unit * up * 0.5 {
            return down;
        }
        let lost = fma_error64(a, b, c, sum);
        let exact = down * up;
        let (below, above) = if exact < sum { (down, down + unit) } else { (down - unit, down) };
        if lost > 0.0 {
            above
        } else if lost < 0.0 {
            below
        } else {
            down
        }
    }
}

/// Returns the exact sign of the error of `sum`, which is `a * b + c` rounded.
fn fma_error64(a: f64, b: f64, c: f64, sum: f64) -> f64 {
    let two_sum = |x: f64, y: f64| {
        let s = x + y;
        let shadow = s - x;
        (s, (x - (s - shadow)) + (y - shadow))
    };
    let product = a * b;
    let product_error = fma64(a, b, -product);
    let (low, low_error) = two_sum(c, product_error);
    let (high, high_error) = two_sum(product, low);
    ((high - sum) + high_error) + low_error
}

/// Returns the quotient: `value` from the iteration, or the result for zeros, infinities and NaN.
#[inline(always)]
pub(crate) fn div_fixup16(value: F16, denominator: F16, numerator: F16) -> F16 {
    let (d, n) = (denominator.to_f32(), numerator.to_f32());
    let sign = (denominator.0 ^ numerator.0) & 0x8000;
    if numerator.is_nan() {
        F16(numerator.0 | 0x200)
    } else if denominator.is_nan() {
        F16(denominator.0 | 0x200)
    } else if (d == 0.0 && n == 0.0) || (d.is_infinite() && n.is_infinite()) {
        F16(0xfe00)
    } else if d == 0.0 || n.is_infinite() {
        F16(sign | 0x7c00)
    } else if d.is_infinite() || n == 0.0 {
        F16(sign)
    } else {
        F16(sign | value.0 & 0x7fff)
    }
}
