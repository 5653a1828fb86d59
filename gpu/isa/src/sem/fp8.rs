//! 8-bit floats, in the FNUZ formats of the gfx942: no infinities, no negative zero, one NaN, which is 0x80.

/// An 8-bit floating-point format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    mantissa_bits: u32,
    bias: i32,
}

/// E4M3: up to 240.
pub(crate) const FP8: Format = Format { mantissa_bits: 3, bias: 8 };
/// E5M2: up to 57344.
pub(crate) const BF8: Format = Format { mantissa_bits: 2, bias: 16 };

const NAN: u8 = 0x80;

impl Format {
    /// Returns the number that has these bits.
    #[inline(always)]
    pub(crate) fn decode(self, bits: u8) -> f32 {
        if bits == NAN {
            return f32::NAN;
        }
        let magnitude = i32::from(bits & 0x7f);
        let mantissa = magnitude & ((1 << self.mantissa_bits) - 1);
        let exponent = magnitude >> self.mantissa_bits;
        let (significand, exponent) = match exponent {
            0 => (mantissa, 1),
            _ => (mantissa | 1 << self.mantissa_bits, exponent),
        };
        let scale = exponent - self.bias - self.mantissa_bits as i32;
        let value = significand as f32 * f32::from_bits(((scale + 127) as u32) << 23);
        if bits & 0x80 != 0 { -value } else { value }
    }

    /// Returns `value` rounded to nearest even. What is too large, or no number, becomes NaN.
    #[inline(always)]
    pub(crate) fn encode(self, value: f32) -> u8 {
        self.round(value, |kept, dropped, unit| {
            let half = unit / 2;
            dropped > half || (dropped == half && kept & 1 == 1)
        })
    }

    /// Returns `value` rounded up with the probability of the dropped fraction; `random` is a uniform 32-bit number.
    #[inline(always)]
    pub(crate) fn encode_stochastic(self, value: f32, random: u32) -> u8 {
        self.round(value, |_, dropped, unit| dropped + ((u64::from(random) * unit) >> 32) >= unit)
    }

    /// Rounds to the format, in magnitude up if `up` returns true for the kept integer, the dropped bits and the value of one
    /// unit.
    #[inline(always)]
    fn round(self, value: f32, up: impl Fn(u64, u64, u64) -> bool) -> u8 {
        let bits = value.to_bits();
        let magnitude = bits & 0x7fff_ffff;
        if magnitude >= 0x7f80_0000 {
            return NAN;
        }
        let exponent = (magnitude >> 23).max(1) as i32 - 127;
        let significand = u64::from(magnitude & 0x7f_ffff) | if magnitude >> 23 == 0 { 0 } else { 1 << 23 };
        // The value is significand * 2^(exponent - 23); denormals keep fewer bits.
        let target = exponent.max(1 - self.bias);
        let drop = ((23 - self.mantissa_bits as i32) + (target - exponent)).min(31) as u32;
        let (kept, unit) = (significand >> drop, 1u64 << drop);
        let kept = kept + u64::from(up(kept, significand & (unit - 1), unit));
        let biased = (target + self.bias - 1) as u64;
        // A kept integer with its leading bit adds one to the exponent field, as does one that rounding made longer.
        let encoded = (biased << self.mantissa_bits) + kept;
        if encoded > 0x7f {
            NAN
        } else if encoded == 0 {
            0
        } else {
            encoded as u8 | if bits >> 31 != 0 { 0x80 } else { 0 }
        }
    }
}
