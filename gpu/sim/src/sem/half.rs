//! f16, with its arithmetic: every operation rounds once.

/// A binary16 number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F16(pub(crate) u16);

impl F16 {
    /// The same number as f32. Branch-free, so that a loop of it vectorizes.
    #[inline(always)]
    pub(crate) fn to_f32(self) -> f32 {
        // As the exponent of an f32, that of an f16 is 112 too small; it is so for denormals too.
        const SCALE: f32 = f32::from_bits((127 + 112) << 23);
        const SPECIAL: u32 = 0x7c00 << 13;
        let bits = u32::from(self.0);
        let magnitude = (bits & 0x7fff) << 13;
        let scaled = (f32::from_bits(magnitude) * SCALE).to_bits();
        let exponent = if magnitude >= SPECIAL { 0x7f80_0000 } else { 0 };
        f32::from_bits(scaled | exponent | (bits & 0x8000) << 16)
    }

    /// Rounds to nearest even.
    #[inline(always)]
    pub(crate) fn from_f32(value: f32) -> Self {
        let sign = (value.to_bits() >> 16) as u16 & 0x8000;
        let bits = value.to_bits() & 0x7fff_ffff;
        let normal = bits.wrapping_add(0xfff + (bits >> 13 & 1)).wrapping_sub(112 << 23) >> 13;
        let denormal = (f32::from_bits(bits) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
        let nan = 0x7e00 | (bits >> 13 & 0x3ff);
        let rounded = if bits < 0x3880_0000 { denormal } else { normal };
        let finite = if bits >= 0x477f_f000 { 0x7c00 } else { rounded };
        Self(sign | if bits > 0x7f80_0000 { nan } else { finite } as u16)
    }

    /// Rounds to nearest even. By way of f32 rounded to odd, which leaves the second rounding nothing to get wrong.
    #[inline(always)]
    pub(crate) fn from_f64(value: f64) -> Self {
        Self::from_f32(crate::sem::float::narrow_to_odd(value))
    }

    /// Rounds toward zero; what is too large becomes the largest finite number.
    #[inline(always)]
    pub(crate) fn truncate_f32(value: f32) -> Self {
        let bits = value.to_bits();
        let magnitude = bits & 0x7fff_ffff;
        let toward = Self::from_f32(value);
        if magnitude >= 0x7f80_0000 {
            return toward;
        }
        let larger = toward.to_f32().abs() > value.abs();
        Self(toward.0 - u16::from(larger))
    }

    #[inline(always)]
    pub(crate) fn is_nan(self) -> bool {
        self.0 & 0x7fff > 0x7c00
    }

    /// `a * b`, rounded, `+ c`, rounded again.
    #[inline(always)]
    pub(crate) fn mul_then_add(self, b: Self, c: Self) -> Self {
        self.map2(b, |a, b| a * b).map2(c, |product, c| product + c)
    }

    /// Applies an operation that f32 has precision enough for to round only once.
    #[inline(always)]
    pub(crate) fn map(self, f: impl Fn(f32) -> f32) -> Self {
        Self::from_f32(f(self.to_f32()))
    }

    /// The same of two numbers.
    #[inline(always)]
    pub(crate) fn map2(self, b: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Self::from_f32(f(self.to_f32(), b.to_f32()))
    }

    /// The largest number less than 1 in place of 1, which rounding may have made of a fraction.
    #[inline(always)]
    pub(crate) fn below_one(self) -> Self {
        if self.0 == 0x3c00 { Self(0x3bff) } else { self }
    }

    /// -1 to 1 as a signed integer of 16 bits, to nearest even.
    #[inline(always)]
    pub(crate) fn to_snorm16(self) -> u16 {
        crate::sem::convert::snorm16(self.to_f32()) as u16
    }

    /// 0 to 1 as an unsigned integer of 16 bits, to nearest even.
    #[inline(always)]
    pub(crate) fn to_unorm16(self) -> u16 {
        crate::sem::convert::unorm16(self.to_f32())
    }
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
