//! f16 arithmetic: every operation rounds once.

/// A binary16 number.
#[derive(Clone, Copy, Debug)]
pub struct F16(pub u16);

impl F16 {
    /// Converts to f32, exactly. Branch-free, so that a loop of it vectorizes.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        // As the exponent of an f32, that of an f16 is 112 too small; it is so for denormals too.
        const SCALE: f32 = f32::from_bits((127 + 112) << 23);
        const SPECIAL: u32 = 0x7c00 << 13;
        let bits = u32::from(self.0);
        let magnitude = (bits & 0x7fff) << 13;
        let scaled = (f32::from_bits(magnitude) * SCALE).to_bits();
        let exponent = if magnitude >= SPECIAL { 0x7f80_0000 } else { 0 };
        f32::from_bits(scaled | exponent | (bits & 0x8000) << 16)
    }

    /// Converts from f32, rounded to nearest even.
    #[inline(always)]
    pub fn from_f32(value: f32) -> Self {
        let sign = (value.to_bits() >> 16) as u16 & 0x8000;
        let bits = value.to_bits() & 0x7fff_ffff;
        let normal = bits.wrapping_add(0xfff + (bits >> 13 & 1)).wrapping_sub(112 << 23) >> 13;
        let denormal = (f32::from_bits(bits) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
        let nan = 0x7e00 | (bits >> 13 & 0x3ff);
        let rounded = if bits < 0x3880_0000 { denormal } else { normal };
        let finite = if bits >= 0x477f_f000 { 0x7c00 } else { rounded };
        Self(sign | if bits > 0x7f80_0000 { nan } else { finite } as u16)
    }

    /// Converts from f64, rounded to nearest even. By way of f32 rounded to odd, which leaves the second rounding nothing to
    /// get wrong.
    #[inline(always)]
    pub fn from_f64(value: f64) -> Self {
        Self::from_f32(narrow_to_odd(value))
    }

    /// Converts from f32, rounded toward zero; too large numbers become the largest finite number.
    #[inline(always)]
    pub fn truncate_f32(value: f32) -> Self {
        let bits = value.to_bits();
        let magnitude = bits & 0x7fff_ffff;
        let toward = Self::from_f32(value);
        if magnitude >= 0x7f80_0000 {
            return toward;
        }
        let larger = toward.to_f32().abs() > value.abs();
        Self(toward.0 - u16::from(larger))
    }

    /// Returns whether it is NaN.
    #[inline(always)]
    pub fn is_nan(self) -> bool {
        self.0 & 0x7fff > 0x7c00
    }

    /// Returns `self * b + c`, rounded after the product and after the sum.
    #[inline(always)]
    pub fn mul_then_add(self, b: Self, c: Self) -> Self {
        self.map2(b, |a, b| a * b).map2(c, |product, c| product + c)
    }

    /// Computes in f32, which is so precise that only the conversion of the result to f16 rounds.
    #[inline(always)]
    pub fn map(self, f: impl Fn(f32) -> f32) -> Self {
        Self::from_f32(f(self.to_f32()))
    }

    /// Computes with two numbers in f32, as [`map`](Self::map).
    #[inline(always)]
    pub fn map2(self, b: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Self::from_f32(f(self.to_f32(), b.to_f32()))
    }

    /// Returns the largest number less than 1 in place of 1, which rounding may have made of a fraction.
    #[inline(always)]
    pub fn below_one(self) -> Self {
        if self.0 == 0x3c00 { Self(0x3bff) } else { self }
    }
}

/// Converts to f32, rounded to odd, so that rounding it again to f16 or less is exact.
#[inline(always)]
fn narrow_to_odd(value: f64) -> f32 {
    let near = value as f32;
    let back = f64::from(near);
    let bits = near.to_bits();
    let adjust = if back.abs() > value.abs() { u32::MAX } else { 1 };
    let inexact = (back < value) | (back > value);
    f32::from_bits(if inexact & (bits & 1 == 0) { bits.wrapping_add(adjust) } else { bits })
}

impl PartialEq for F16 {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.to_f32() == other.to_f32()
    }
}

impl PartialOrd for F16 {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.to_f32().partial_cmp(&other.to_f32())
    }
    #[inline(always)]
    fn lt(&self, other: &Self) -> bool {
        self.to_f32() < other.to_f32()
    }
    #[inline(always)]
    fn le(&self, other: &Self) -> bool {
        self.to_f32() <= other.to_f32()
    }
    #[inline(always)]
    fn gt(&self, other: &Self) -> bool {
        self.to_f32() > other.to_f32()
    }
    #[inline(always)]
    fn ge(&self, other: &Self) -> bool {
        self.to_f32() >= other.to_f32()
    }
}
