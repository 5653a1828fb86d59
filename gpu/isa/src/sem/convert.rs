//! Conversions between integers and floats. Rust's `as` does what the hardware does: it truncates, saturates, and makes 0 of NaN.

use crate::sem::float::{Float, floor32, rndne32};
use crate::sem::half::F16;

/// Converts -1.0 to 1.0 to a signed 16-bit integer, rounded to nearest even.
#[inline(always)]
pub(crate) fn snorm16(x: f32) -> i16 {
    rndne32(x * 32767.0).clamp(-32767.0, 32767.0) as i16
}

/// Converts 0.0 to 1.0 to an unsigned 16-bit integer, rounded to nearest even.
#[inline(always)]
pub(crate) fn unorm16(x: f32) -> u16 {
    rndne32(x * 65535.0) as u16
}

/// Rounds to the nearest integer, halves upward.
#[inline(always)]
pub(crate) fn round_half_up(x: f32) -> i32 {
    // In f64 the sum is exact.
    crate::sem::float::floor64(f64::from(x) + 0.5) as i32
}

/// Rounds down to an integer.
#[inline(always)]
pub(crate) fn round_down(x: f32) -> i32 {
    floor32(x) as i32
}

/// Converts the low 4 bits, a signed number of sixteenths, to f32.
#[inline(always)]
pub(crate) fn sixteenths(x: u32) -> f32 {
    ((x << 28) as i32 >> 28) as f32 / 16.0
}

/// Converts to an unsigned byte, rounding to nearest even.
#[inline(always)]
pub(crate) fn byte(x: f32) -> u8 {
    rndne32(x) as u8
}

/// Converts f16 to f32; a signalling NaN becomes a quiet one.
#[inline(always)]
pub(crate) fn widen(x: F16) -> f32 {
    let wide = x.to_f32();
    if wide.is_nan() { wide.quiet() } else { wide }
}

/// Packs two 16-bit values, the first in the low half.
#[inline(always)]
pub(crate) fn pack(low: u16, high: u16) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

/// Packs two numbers as f16, rounded toward zero.
#[inline(always)]
pub(crate) fn pack_f16_toward_zero(low: f32, high: f32) -> u32 {
    pack(F16::truncate_f32(low).0, F16::truncate_f32(high).0)
}

/// Converts to an unsigned 16-bit integer with saturation.
#[inline(always)]
pub(crate) fn saturate_u16(x: u32) -> u16 {
    x.min(0xffff) as u16
}

/// Converts to a signed 16-bit integer with saturation.
#[inline(always)]
pub(crate) fn saturate_i16(x: i32) -> u16 {
    x.clamp(-0x8000, 0x7fff) as u16
}

/// Converts to an unsigned byte with saturation.
#[inline(always)]
pub(crate) fn saturate_u8(x: u16) -> u32 {
    u32::from((x as i16).clamp(0, 255) as u16)
}

/// Packs two f32 into a register pair.
#[inline(always)]
pub(crate) fn f32_pair(low: f32, high: f32) -> u64 {
    u64::from(low.to_bits()) | u64::from(high.to_bits()) << 32
}

impl F16 {
    /// Converts -1.0 to 1.0 to a signed 16-bit integer, rounded to nearest even.
    #[inline(always)]
    pub fn to_snorm16(self) -> u16 {
        snorm16(self.to_f32()) as u16
    }

    /// Converts 0.0 to 1.0 to an unsigned 16-bit integer, rounded to nearest even.
    #[inline(always)]
    pub fn to_unorm16(self) -> u16 {
        unorm16(self.to_f32())
    }
}
