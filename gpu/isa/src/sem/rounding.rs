//! Floating-point arithmetic with any rounding direction: exact results as integers, rounded once. Slow, for kernels that set
//! MODE's rounding to anything but nearest even.

use crate::sem::float::without_denormals;
use crate::sem::half::F16;

/// A rounding direction of MODE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
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
    /// Returns the direction that a field of MODE stands for.
    pub fn of_field(field: u32) -> Self {
        match field & 3 {
            0 => Self::Nearest,
            1 => Self::Up,
            2 => Self::Down,
            _ => Self::Zero,
        }
    }

    /// Returns whether the magnitude of an inexact number of this sign is rounded up.
    fn grows(self, negative: bool) -> bool {
        match self {
            Self::Up => !negative,
            Self::Down => negative,
            Self::Nearest | Self::Zero => false,
        }
    }
}

/// The exact value `±significand * 2^exponent`. The lowest bit may stand for everything below it: it is 1 if any of that is not
/// 0.
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    negative: bool,
    significand: u128,
    exponent: i32,
}

impl Exact {
    fn zero(negative: bool) -> Self {
        Self { negative, significand: 0, exponent: 0 }
    }

    /// Returns the value of an integer.
    pub fn of_integer(value: i64) -> Self {
        Self { negative: value < 0, significand: u128::from(value.unsigned_abs()), exponent: 0 }
    }

    /// Returns the same number with its highest set bit at bit 126.
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

/// Returns `value >> shift`, with the lowest bit set if any set bit was dropped.
fn jam(value: u128, shift: u32) -> u128 {
    if shift >= 128 {
        return u128::from(value != 0);
    }
    value >> shift | u128::from(value & ((1 << shift) - 1) != 0)
}

/// A floating-point format.
pub trait Rounded: Copy {
    /// Number of bits of the significand, including the implied one.
    const PRECISION: u32;
    /// Exponent of the lowest bit of denormals.
    const LEAST: i32;
    /// Bits of infinity.
    const INFINITY: u64;
    /// The sign bit.
    const SIGN: u64 = 1 << (64 - Self::INFINITY.leading_zeros());
    /// Returns the bits of the number, in the low bits.
    fn bits(self) -> u64;
    /// Returns the number with these bits.
    fn from_bits(bits: u64) -> Self;
    /// Returns the result of `a * b + c` if an operand is infinite or NaN.
    fn special(a: Self, b: Self, c: Self) -> Self;

    /// Returns the number's value, or `None` for infinities and NaN.
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

    /// Rounds `value` to the format.
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

/// Returns `a * b + c`, rounded once.
pub fn fma<T: Rounded>(a: T, b: T, c: T, rounding: Rounding) -> T {
    fma_scaled(a, b, c, 0, rounding)
}

/// Returns `a * b + c` times 2 to the `exponent`, rounded once.
fn fma_scaled<T: Rounded>(a: T, b: T, c: T, exponent: i32, rounding: Rounding) -> T {
    match (a.exact(), b.exact(), c.exact()) {
        (Some(x), Some(y), Some(z)) => T::round(x.times(y).plus(z, rounding).scaled(exponent), rounding),
        // The product is a number, even if one that the format does not have.
        (Some(_), Some(_), None) => T::special(c, one(), T::from_bits(0)),
        _ => T::special(a, b, c),
    }
}

/// Returns the value 1.
fn one<T: Rounded>() -> T {
    T::round(Exact::of_integer(1), Rounding::Nearest)
}

/// Returns `a + b`.
pub fn add<T: Rounded>(a: T, b: T, rounding: Rounding) -> T {
    fma(a, one(), b, rounding)
}

/// Returns `a - b`.
pub fn sub<T: Rounded>(a: T, b: T, rounding: Rounding) -> T {
    fma(b, T::round(Exact::of_integer(-1), Rounding::Nearest), a, rounding)
}

/// Returns `a * b`.
pub fn mul<T: Rounded>(a: T, b: T, rounding: Rounding) -> T {
    match (a.exact(), b.exact()) {
        (Some(x), Some(y)) => T::round(x.times(y), rounding),
        // A zero with the sign of the product changes nothing.
        _ => T::special(a, b, T::from_bits(0)),
    }
}

/// Returns `a * b + c`, rounded after the product and after the sum.
pub fn mul_then_add<T: Rounded>(a: T, b: T, c: T, rounding: Rounding) -> T {
    add(mul(a, b, rounding), c, rounding)
}

/// Returns `a * b + c` of f32, rounded after the product and after the sum; denormals count as zeros, whatever MODE says.
pub fn mad32(a: f32, b: f32, c: f32, rounding: Rounding) -> f32 {
    let product = mul(without_denormals(a), without_denormals(b), rounding);
    without_denormals(add(without_denormals(product), without_denormals(c), rounding))
}

/// Returns `a * b + c`, scaled back if `scaled`, by the power of 2 that divisions of this format use: down if `c` is small,
/// else up.
pub fn div_fmas<T: Rounded>(a: T, b: T, c: T, scaled: bool, rounding: Rounding) -> T {
    let step = if T::PRECISION == 24 { 64 } else { 128 };
    let bias = 2 - T::LEAST - T::PRECISION as i32;
    let large = (c.bits() & (T::SIGN - 1)) >> (T::PRECISION - 1) > bias as u64;
    let exponent = match (scaled, large) {
        (false, _) => 0,
        (true, true) => step,
        (true, false) => -step,
    };
    fma_scaled(a, b, c, exponent, rounding)
}

/// Returns `a` times 2 to the `exponent`.
pub fn ldexp<T: Rounded>(a: T, exponent: i32, rounding: Rounding) -> T {
    let bounded = exponent.clamp(-4096, 4096);
    a.exact().map_or_else(|| add(a, T::from_bits(0), rounding), |x| T::round(x.scaled(bounded), rounding))
}

/// Converts `a` to another format; `special` returns the result for infinities and NaN.
pub fn convert<T: Rounded, U: Rounded>(a: T, rounding: Rounding, special: impl Fn(T) -> U) -> U {
    a.exact().map_or_else(|| special(a), |x| U::round(x, rounding))
}

/// Converts an integer.
pub fn of_integer<T: Rounded>(value: impl Into<i64>, rounding: Rounding) -> T {
    T::round(Exact::of_integer(value.into()), rounding)
}
