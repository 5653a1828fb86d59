//! Scalar operands: registers, inline constants and literals.

use crate::aperture;
use crate::wave::Wave;

/// Width and type of an operand, which determine the bits of inline float constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// 16 bits.
    W16,
    /// 32 bits.
    W32,
    /// 64 bits; a literal is the low half, zero-extended.
    W64,
    /// 64 bits of a double; a literal is the high half.
    Double,
}

/// Type of an operand, which determines the effect of modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    B16,
    F16,
    B32,
    F32,
    B64,
    F64,
}

impl Kind {
    pub(crate) const fn width(self) -> Width {
        match self {
            Self::B16 | Self::F16 => Width::W16,
            Self::B32 | Self::F32 => Width::W32,
            Self::B64 => Width::W64,
            Self::F64 => Width::Double,
        }
    }

    pub(crate) const fn is_wide(self) -> bool {
        matches!(self, Self::B64 | Self::F64)
    }
}

/// Inline float constants 240 to 248 (the last is 1/(2 pi)), as f16, f32 and f64.
const FLOATS: [(u16, u32, u64); 9] = [
    (0x3800, 0x3f00_0000, 0x3fe0_0000_0000_0000),
    (0xb800, 0xbf00_0000, 0xbfe0_0000_0000_0000),
    (0x3c00, 0x3f80_0000, 0x3ff0_0000_0000_0000),
    (0xbc00, 0xbf80_0000, 0xbff0_0000_0000_0000),
    (0x4000, 0x4000_0000, 0x4000_0000_0000_0000),
    (0xc000, 0xc000_0000, 0xc000_0000_0000_0000),
    (0x4400, 0x4080_0000, 0x4010_0000_0000_0000),
    (0xc400, 0xc080_0000, 0xc010_0000_0000_0000),
    (0x3118, 0x3e22_f983, 0x3fc4_5f30_6dc9_c882),
];

/// Returns the value of scalar operand `code`. Codes of VGPRs and unused codes give 0.
#[inline(always)]
pub(crate) fn scalar(wave: &Wave, code: usize, literal: u32, width: Width) -> u64 {
    match code {
        0..=127 if matches!(width, Width::W64 | Width::Double) => wave.pair(code),
        0..=127 => u64::from(wave.sgpr[code]),
        128..=LAST_CONSTANT if matches!(width, Width::W32) => u64::from(CONSTANTS[code - 128]),
        _ => no_register(wave, code, literal, width),
    }
}

/// The last operand code that stands for a constant.
const LAST_CONSTANT: usize = 248;

/// Values of the constants from code 128 on, in 32 bits.
static CONSTANTS: [u32; LAST_CONSTANT - 127] = {
    let mut constants = [0; LAST_CONSTANT - 127];
    let mut index = 0;
    while index < constants.len() {
        constants[index] = constant(index + 128, Width::W32) as u32;
        index += 1;
    }
    constants
};

const fn constant(code: usize, width: Width) -> u64 {
    match code {
        128..=192 => (code - 128) as u64,
        193..=208 => (192 - code as i64) as u64,
        235 => aperture::SHARED_BASE,
        236 => aperture::SHARED_BASE | 0xffff_ffff,
        237 => aperture::PRIVATE_BASE,
        238 => aperture::PRIVATE_BASE | 0xffff_ffff,
        240..=248 => {
            let (half, single, double) = FLOATS[code - 240];
            match width {
                Width::W16 => half as u64,
                Width::W32 => single as u64,
                Width::W64 | Width::Double => double,
            }
        }
        _ => 0,
    }
}

/// Returns the value of a scalar operand that is not a register.
#[inline(never)]
fn no_register(wave: &Wave, code: usize, literal: u32, width: Width) -> u64 {
    match code {
        251 => u64::from(wave.vcc() == 0),
        252 => u64::from(wave.exec() == 0),
        253 => u64::from(wave.scc),
        255 if width == Width::Double => u64::from(literal) << 32,
        255 => u64::from(literal),
        _ => constant(code, width),
    }
}

/// Returns the 32-bit value of scalar operand `code`.
#[inline(always)]
pub(crate) fn scalar32(wave: &Wave, code: usize, literal: u32) -> u32 {
    if code < 128 { wave.sgpr[code] } else { scalar(wave, code, literal, Width::W32) as u32 }
}

/// Returns the 64-bit value of scalar operand `code`.
#[inline(always)]
pub(crate) fn scalar64(wave: &Wave, code: usize, literal: u32) -> u64 {
    scalar(wave, code, literal, Width::W64)
}
