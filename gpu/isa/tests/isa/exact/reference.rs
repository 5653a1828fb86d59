//! What instructions do, by `rustc_apfloat`: computed exactly, rounded once.

use hipr_isa::wave::Mode;
use rustc_apfloat::ieee::{Double, Half, Single};
use rustc_apfloat::{Float, Round};

use super::numbers::Format;
use crate::bench::Random;

/// What MODE says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Modes {
    /// The rounding direction, as MODE numbers them.
    pub(super) rounding: u32,
    /// Whether denormal operands are kept.
    pub(super) keeps_operands: bool,
    /// Whether denormal results are kept.
    pub(super) keeps_results: bool,
    /// Whether a clamp makes 0 of NaN.
    pub(super) dx10_clamp: bool,
}

impl Modes {
    /// Returns the usual modes with a rounding direction.
    pub(super) fn rounding(rounding: u32) -> Self {
        Self { rounding, keeps_operands: true, keeps_results: true, dx10_clamp: true }
    }

    pub(super) fn draw(random: &mut Random, has_denormal_rules: bool) -> Self {
        let bits = random.u32();
        Self {
            rounding: bits & 3,
            keeps_operands: !has_denormal_rules || bits & 0x1c != 0,
            keeps_results: !has_denormal_rules || bits & 0xe0 != 0,
            dx10_clamp: bits & 0x300 != 0,
        }
    }

    /// Returns MODE, with the other formats' fields at something else.
    pub(super) fn register(self, format: Format) -> Mode {
        let denormals = u32::from(self.keeps_operands) | u32::from(self.keeps_results) << 1;
        let fields = match format {
            Format::F32 => self.rounding | (self.rounding ^ 1) << 2 | denormals << 4 | (denormals ^ 3) << 6,
            Format::F16 | Format::F64 => {
                self.rounding << 2 | (self.rounding ^ 2) | denormals << 6 | (denormals ^ 3) << 4
            }
        };
        const IEEE: u32 = 1 << 9;
        Mode(fields | u32::from(self.dx10_clamp) << 8 | IEEE)
    }

    pub(super) fn round(self) -> Round {
        match self.rounding {
            0 => Round::NearestTiesToEven,
            1 => Round::TowardPositive,
            2 => Round::TowardNegative,
            _ => Round::TowardZero,
        }
    }
}

/// What an instruction computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Add,
    Sub,
    SubReversed,
    Mul,
    /// A product and a sum, rounded once.
    Fma,
    /// A product and a sum, rounded each.
    Mad,
    Min,
    Max,
    Min3,
    Max3,
    Med3,
    Trunc,
    Ceil,
    Floor,
    Rndne,
    Fract,
    FrexpMant,
    Ldexp,
}

impl Op {
    /// Returns whether operands and results that are denormals become zeros where MODE says so. What the others do is not published.
    pub(super) fn has_denormal_rules(self) -> bool {
        matches!(self, Self::Add | Self::Sub | Self::SubReversed | Self::Mul | Self::Fma)
    }

    /// Returns the result for these operands.
    pub(super) fn result(self, format: Format, operands: [u64; 3], modes: Modes) -> u64 {
        let zero = |bits: u64| if format.is_denormal(bits) { bits & format.sign() } else { bits };
        let [a, b, c] = operands.map(|bits| if modes.keeps_operands { bits } else { zero(bits) });
        let result = match self {
            Self::Min => least(format, a, b),
            Self::Max => greatest(format, a, b),
            Self::Min3 => least(format, least(format, a, b), c),
            Self::Max3 => greatest(format, greatest(format, a, b), c),
            Self::Med3 => middle(format, [a, b, c]),
            _ => match format {
                Format::F16 => self.compute::<Half>([a, b, c], modes),
                Format::F32 => self.compute::<Single>([a, b, c], modes),
                Format::F64 => self.compute::<Double>([a, b, c], modes),
            },
        };
        if modes.keeps_results { result } else { zero(result) }
    }

    fn compute<F: Float>(self, operands: [u64; 3], modes: Modes) -> u64 {
        let round = modes.round();
        let [a, b, c] = operands.map(|bits| F::from_bits(bits.into()));
        let integral = |round: Round| a.round_to_integral(round).value;
        let result = match self {
            Self::Add => a.add_r(b, round).value,
            Self::Sub => a.sub_r(b, round).value,
            Self::SubReversed => b.sub_r(a, round).value,
            Self::Mul => a.mul_r(b, round).value,
            Self::Fma => a.mul_add_r(b, c, round).value,
            Self::Mad => a.mul_r(b, round).value.add_r(c, round).value,
            Self::Trunc => integral(Round::TowardZero),
            Self::Ceil => integral(Round::TowardPositive),
            Self::Floor => integral(Round::TowardNegative),
            Self::Rndne => integral(Round::NearestTiesToEven),
            Self::Fract => {
                // To nearest in any mode, and less than 1.
                let part = a.sub_r(integral(Round::TowardNegative), Round::NearestTiesToEven).value;
                let one = F::from_u128(1).value;
                let below = F::from_bits(one.to_bits() - 1);
                if part < one || part.is_nan() { part } else { below }
            }
            Self::FrexpMant if a.is_finite_non_zero() => {
                let mut exponent = 0;
                a.frexp_r(&mut exponent, Round::NearestTiesToEven)
            }
            Self::FrexpMant => a,
            Self::Ldexp => {
                // The operand of f16 is 16 bits wide.
                let exponent = if F::BITS == 16 { operands[1] as i16 as i32 } else { operands[1] as i32 };
                a.scalbn_r(exponent.clamp(-9000, 9000), round)
            }
            Self::Min | Self::Max | Self::Min3 | Self::Max3 | Self::Med3 => unreachable!("it is not rounded"),
        };
        result.to_bits() as u64
    }
}

/// Returns a number whose order is that of the values; -0 is below +0.
fn rank(format: Format, bits: u64) -> i128 {
    let magnitude = i128::from(bits & (format.sign() - 1));
    if bits & format.sign() != 0 { -magnitude - 1 } else { magnitude }
}

/// Returns what decides where an operand is NaN: a signalling one, made quiet, else the number.
fn without_nan(format: Format, a: u64, b: u64) -> Option<u64> {
    if let Some(signaling) = [a, b].into_iter().find(|bits| format.is_signaling(*bits)) {
        return Some(format.quiet(signaling));
    }
    match (format.is_nan(a), format.is_nan(b)) {
        (true, _) => Some(b),
        (_, true) => Some(a),
        _ => None,
    }
}

fn least(format: Format, a: u64, b: u64) -> u64 {
    without_nan(format, a, b).unwrap_or_else(|| if rank(format, a) <= rank(format, b) { a } else { b })
}

fn greatest(format: Format, a: u64, b: u64) -> u64 {
    without_nan(format, a, b).unwrap_or_else(|| if rank(format, a) >= rank(format, b) { a } else { b })
}

/// Returns the middle one; the least of the numbers if one is NaN.
fn middle(format: Format, mut all: [u64; 3]) -> u64 {
    let [a, b, c] = all;
    if all.iter().any(|bits| format.is_nan(*bits)) {
        return least(format, least(format, a, b), c);
    }
    all.sort_by_key(|bits| rank(format, *bits));
    all[1]
}
