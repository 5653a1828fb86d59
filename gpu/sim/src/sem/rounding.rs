//! Arithmetic with a direction of rounding: exact results as integers, rounded once. Slow, for kernels that set MODE's rounding to
//! anything but nearest even.

use crate::sem::float::without_denormals;
use crate::sem::half::F16;

/// MODE's rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To nearest, ties to even.
    Nearest,
    /// Toward positive infinity.
    Up,
    /// Toward negative infinity.
    Down,
    /// Toward zero.
    Zero,
}

impl Rounding {
    /// A field of MODE.
    pub(crate) fn of_field(field: u32) -> Self {
        match field & 3 {
            0 => Self::Nearest,
            1 => Self::Up,
            2 => Self::Down,
            _ => Self::Zero,
        }
    }

    /// Whether magnitudes grow when something is dropped of a number of this sign.
    fn grows(self, negative: bool) -> bool {
        match self {
            Self::Up => !negative,
            Self::Down => negative,
            Self::Nearest | Self::Zero => false,
        }
    }
}

/// `±significand * 2^exponent`. The lowest bit may stand for everything below it: it is 1 if any of that is not 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exact {
    negative: bool,
    significand: u128,
    exponent: i32,
}

impl Exact {
    fn zero(negative: bool) -> Self {
        Self { negative, significand: 0, exponent: 0 }
    }

    /// Of an integer.
    pub(crate) fn of_integer(value: i64) -> Self {
        Self { negative: value < 0, significand: u128::from(value.unsigned_abs()), exponent: 0 }
    }

    /// The same number with its highest bit at bit 126.
    fn normalized(self) -> Self {
        let shift = self.significand.leading_zeros() as i32 - 1;
        let significand = if shift >= 0 { self.significand << shift } else { jam(self.significand, 1) };
        Self { significand, exponent: self.exponent - shift, ..self }
    }

    fn times(self, other: Self) -> Self {
        Self {
            negative: self.negative != other.negative,
            significand: self.significand * other.significand,
            exponent: self.exponent + other.exponent,
        }
    }

    fn plus(self, other: Self, rounding: Rounding) -> Self {
        match (self.significand, other.significand) {
            (0, 0) if self.negative == other.negative => return self,
            (0, 0) => return Self::zero(rounding == Rounding::Down),
            (0, _) => return other,
            (_, 0) => return self,
            _ => {}
        }
        let (a, b) = (self.normalized(), other.normalized());
        let (a, b) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
        // Halved, so that the sum fits.
        let (x, y) = (jam(a.significand, 1), jam(b.significand, (a.exponent - b.exponent) as u32 + 1));
        let exponent = a.exponent + 1;
        if a.negative == b.negative {
            Self { negative: a.negative, significand: x + y, exponent }
        } else if x == y {
            Self::zero(rounding == Rounding::Down)
        } else {
            Self { negative: a.negative != (x < y), significand: x.abs_diff(y), exponent }
        }
    }

    fn scaled(self, exponent: i32) -> Self {
        Self { exponent: self.exponent.saturating_add(exponent), ..self }
    }
}

/// `value >> shift`, whose lowest bit is 1 if a 1 was dropped.
fn jam(value: u128, shift: u32) -> u128 {
    if shift >= 128 {
        return u128::from(value != 0);
    }
    value >> shift | u128::from(value & ((1 << shift) - 1) != 0)
}

/// A floating-point format.
pub(crate) trait Rounded: Copy {
    /// Bits of the significand, the implied one included.
    const PRECISION: u32;
    /// Exponent of the least bit that denormals have.
    const LEAST: i32;
    /// The bits of infinity.
    const INFINITY: u64;
    /// The sign's bit.
    const SIGN: u64 = 1 << (64 - Self::INFINITY.leading_zeros());
    fn bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
    /// The sum of the product and `c` as it is where one of them is infinite or NaN.
    fn special(a: Self, b: Self, c: Self) -> Self;

    /// The number's value; `None` for infinities and NaN.
    fn exact(self) -> Option<Exact> {
        let sign = Self::SIGN;
        let (negative, magnitude) = (self.bits() & sign != 0, self.bits() & (sign - 1));
        if magnitude >= Self::INFINITY {
            return None;
        }
        let field = (magnitude >> (Self::PRECISION - 1)) as i32;
        let fraction = magnitude & ((1 << (Self::PRECISION - 1)) - 1);
        let implied = if field == 0 { 0 } else { 1 << (Self::PRECISION - 1) };
        Some(Exact {
            negative,
            significand: u128::from(fraction | implied),
            exponent: Self::LEAST + field.max(1) - 1,
        })
    }

    /// The number that `value` is rounded to.
    fn round(value: Exact, rounding: Rounding) -> Self {
        let sign = if value.negative { Self::SIGN } else { 0 };
        if value.significand == 0 {
            return Self::from_bits(sign);
        }
        let len = 128 - value.significand.leading_zeros() as i32;
        let last = (value.exponent + len - Self::PRECISION as i32).max(Self::LEAST);
        let shift = last - value.exponent;
        let (kept, rest, half) = if shift <= 0 {
            (value.significand << -shift, 0, 0)
        } else if shift >= 128 {
            (0, 1, 2)
        } else {
            let half = 1u128 << (shift - 1);
            (value.significand >> shift, value.significand & (2 * half).wrapping_sub(1), half)
        };
        let up = match rounding {
            Rounding::Nearest => rest > half || (rest == half && rest != 0 && kept & 1 == 1),
            _ => rest != 0 && rounding.grows(value.negative),
        };
        // A significand of full length adds one to the exponent field, as does one that rounding made longer.
        let field = u64::try_from(last - Self::LEAST).unwrap_or(0);
        let magnitude = (u128::from(field) << (Self::PRECISION - 1)) + kept + u128::from(up);
        let infinity = u128::from(Self::INFINITY);
        let bounded = if magnitude < infinity {
            magnitude
        } else if rounding == Rounding::Nearest || rounding.grows(value.negative) {
            infinity
        } else {
            infinity - 1
        };
        Self::from_bits(sign | bounded as u64)
    }
}

macro_rules! formats {
    ($($t:ty, $precision:literal, $least:literal, $infinity:expr, |$v:ident| $bits:expr, |$b:ident| $from:expr,
       |$x:ident, $y:ident, $z:ident| $special:expr;)*) => {$(
        impl Rounded for $t {
            const PRECISION: u32 = $precision;
            const LEAST: i32 = $least;
            const INFINITY: u64 = $infinity;
            fn bits(self) -> u64 {
                let $v = self;
                $bits
            }
            fn from_bits($b: u64) -> Self {
                $from
            }
            fn special($x: Self, $y: Self, $z: Self) -> Self {
                $special
            }
        }
    )*};
}
formats! {
    F16, 11, -24, 0x7c00, |v| u64::from(v.0), |b| F16(b as u16), |a, b, c| a.map2(b, |a, b| a * b).map2(c, |a, b| a + b);
    f32, 24, -149, 0x7f80_0000, |v| u64::from(v.to_bits()), |b| f32::from_bits(b as u32), |a, b, c| a * b + c;
    f64, 53, -1074, 0x7ff0_0000_0000_0000, |v| v.to_bits(), |b| f64::from_bits(b), |a, b, c| a * b + c;
}

/// `a * b + c`, rounded once.
pub(crate) fn fma<T: Rounded>(a: T, b: T, c: T, rounding: Rounding) -> T {
    match (a.exact(), b.exact(), c.exact()) {
        (Some(x), Some(y), Some(z)) => T::round(x.times(y).plus(z, rounding), rounding),
        _ => T::special(a, b, c),
    }
}

/// The value 1, to be signed.
fn one<T: Rounded>() -> T {
    T::round(Exact::of_integer(1), Rounding::Nearest)
}

/// `a + b`.
pub(crate) fn add<T: Rounded>(a: T, b: T, rounding: Rounding) -> T {
    fma(a, one(), b, rounding)
}

/// `a - b`.
pub(crate) fn sub<T: Rounded>(a: T, b: T, rounding: Rounding) -> T {
    fma(b, T::round(Exact::of_integer(-1), Rounding::Nearest), a, rounding)
}

/// `a * b`.
pub(crate) fn mul<T: Rounded>(a: T, b: T, rounding: Rounding) -> T {
    match (a.exact(), b.exact()) {
        (Some(x), Some(y)) => T::round(x.times(y), rounding),
        // A zero with the sign of the product changes nothing.
        _ => T::special(a, b, T::from_bits(0)),
    }
}

/// `a * b`, rounded, `+ c`, rounded again.
pub(crate) fn mul_then_add<T: Rounded>(a: T, b: T, c: T, rounding: Rounding) -> T {
    add(mul(a, b, rounding), c, rounding)
}

/// The same of f32, where denormals are zeros, whatever MODE says.
pub(crate) fn mad32(a: f32, b: f32, c: f32, rounding: Rounding) -> f32 {
    let product = mul(without_denormals(a), without_denormals(b), rounding);
    without_denormals(add(without_denormals(product), without_denormals(c), rounding))
}

/// `a * b + c`, scaled back if `scaled`: down if `c` is small, else up; by 2 to the power that divisions of this format scale by.
pub(crate) fn div_fmas<T: Rounded>(a: T, b: T, c: T, scaled: bool, rounding: Rounding) -> T {
    let step = if T::PRECISION == 24 { 64 } else { 128 };
    let bias = 2 - T::LEAST - T::PRECISION as i32;
    let large = (c.bits() & (T::SIGN - 1)) >> (T::PRECISION - 1) > bias as u64;
    let exponent = match (scaled, large) {
        (false, _) => 0,
        (true, true) => step,
        (true, false) => -step,
    };
    match (a.exact(), b.exact(), c.exact()) {
        (Some(x), Some(y), Some(z)) => T::round(x.times(y).plus(z, rounding).scaled(exponent), rounding),
        _ => T::special(a, b, c),
    }
}

/// `a` times 2 to the `exponent`.
pub(crate) fn ldexp<T: Rounded>(a: T, exponent: i32, rounding: Rounding) -> T {
    let bounded = exponent.clamp(-4096, 4096);
    a.exact().map_or_else(|| add(a, T::from_bits(0), rounding), |x| T::round(x.scaled(bounded), rounding))
}

/// `a` in another format, which `special` gives for infinities and NaN.
pub(crate) fn convert<T: Rounded, U: Rounded>(a: T, rounding: Rounding, special: impl Fn(T) -> U) -> U {
    a.exact().map_or_else(|| special(a), |x| U::round(x, rounding))
}

/// An integer.
pub(crate) fn of_integer<T: Rounded>(value: impl Into<i64>, rounding: Rounding) -> T {
    T::round(Exact::of_integer(value.into()), rounding)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A double that f32 has no room for is between its neighbours.
    #[test]
    fn directions_enclose_the_exact_result() {
        let mut bits = 0x0123_4567_89ab_cdefu64;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (a, b) = (f32::from_bits(bits as u32), f32::from_bits((bits >> 32) as u32));
            if !a.is_finite() || !b.is_finite() {
                continue;
            }
            let exact = f64::from(a) * f64::from(b);
            let [down, near, up, zero] = [Rounding::Down, Rounding::Nearest, Rounding::Up, Rounding::Zero]
                .map(|rounding| mul(a, b, rounding));
            assert_eq!(near.to_bits(), (a * b).to_bits(), "{a:e} * {b:e}");
            assert!(f64::from(down) <= exact && exact <= f64::from(up), "{a:e} * {b:e}");
            let neighbours =
                up.to_bits() == down.to_bits() || up == down.next_up() || down == 0.0 && up == 0.0;
            assert!(neighbours, "{a:e} * {b:e}: {down:e}, {up:e}");
            assert_eq!(zero.to_bits(), if exact < 0.0 { up } else { down }.to_bits(), "{a:e} * {b:e}");
        }
    }

    #[test]
    fn nearest_is_what_the_host_computes() {
        let mut bits = 0xfeed_5eed_0bad_cafeu64;
        let mut next = || {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            bits ^ bits >> 29
        };
        for round in 0..20_000u64 {
            // Every other round exponents are near each other, so that much cancels.
            let wide = |bits: u64| if round % 2 == 0 { bits } else { bits & !(0x7e0 << 52) | 0x3c0 << 52 };
            let [a, b, c] = [next(), next(), next()].map(|bits| f64::from_bits(wide(bits)));
            if [a, b, c].iter().all(|x| x.is_finite()) {
                let near = Rounding::Nearest;
                assert_eq!(fma(a, b, c, near).to_bits(), a.mul_add(b, c).to_bits(), "{a:e} * {b:e} + {c:e}");
                assert_eq!(add(a, b, near).to_bits(), (a + b).to_bits(), "{a:e} + {b:e}");
                assert_eq!(sub(a, b, near).to_bits(), (a - b).to_bits(), "{a:e} - {b:e}");
                let narrow: f32 = convert(a, near, |a| a as f32);
                assert_eq!(narrow.to_bits(), (a as f32).to_bits(), "{a:e}");
            }
        }
    }

    #[test]
    fn what_is_too_large_or_nothing_has_the_sign_that_the_direction_wants() {
        let max = f32::MAX;
        assert_eq!(add(max, max, Rounding::Up), f32::INFINITY);
        assert_eq!(add(max, max, Rounding::Down), max);
        assert_eq!(add(max, max, Rounding::Zero), max);
        assert_eq!(add(-max, -max, Rounding::Down), f32::NEG_INFINITY);
        assert_eq!(add(-max, -max, Rounding::Up), -max);
        assert_eq!(sub(1.0f32, 1.0, Rounding::Down).to_bits(), (-0.0f32).to_bits());
        assert_eq!(sub(1.0f32, 1.0, Rounding::Up).to_bits(), 0);
        let least = f32::from_bits(1);
        assert_eq!(mul(least, least, Rounding::Up), least);
        assert_eq!(mul(-least, least, Rounding::Down), -least);
        assert_eq!(mul(-least, least, Rounding::Up).to_bits(), (-0.0f32).to_bits());
        assert!(add(f32::NAN, 1.0, Rounding::Up).is_nan());
        assert_eq!(add(f32::INFINITY, -1.0, Rounding::Down), f32::INFINITY);
        assert_eq!(ldexp(1.0f32, -200, Rounding::Up), least);
        assert_eq!(of_integer::<f32>(i64::from(u32::MAX), Rounding::Zero), 4_294_967_040.0);
        assert_eq!(convert::<f32, F16>(65_519.0, Rounding::Zero, F16::from_f32).0, 0x7bff);
        assert_eq!(convert::<f32, F16>(65_504.01, Rounding::Up, F16::from_f32).0, 0x7c00);
    }
}
