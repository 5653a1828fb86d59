//! Formats of numbers, special values, and random operands that meet what is hard: neighbours, cancellation, the limits.

use crate::bench::Random;

/// A floating-point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    F16,
    F32,
    F64,
}

/// Powers of 2 by which ldexp is asked to scale.
pub(super) const EXPONENTS: &[i32] = &[
    0, 1, -1, 2, 10, -10, 24, -24, 25, 53, 127, -126, -149, 150, 300, -300, 1023, -1074, 2100, -2200, 32767,
    -32768,
];

impl Format {
    pub(super) fn bits(self) -> u32 {
        match self {
            Self::F16 => 16,
            Self::F32 => 32,
            Self::F64 => 64,
        }
    }

    /// Returns the number of bits of the fraction.
    pub(super) fn fraction(self) -> u32 {
        match self {
            Self::F16 => 10,
            Self::F32 => 23,
            Self::F64 => 52,
        }
    }

    pub(super) fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    pub(super) fn sign(self) -> u64 {
        1 << (self.bits() - 1)
    }

    pub(super) fn infinity(self) -> u64 {
        (self.sign() - 1) & !((1 << self.fraction()) - 1)
    }

    /// Returns the bits of 1.
    pub(super) fn one(self) -> u64 {
        (self.infinity() >> 1) & !((1 << self.fraction()) - 1)
    }

    pub(super) fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign() - 1) > self.infinity()
    }

    pub(super) fn is_signaling(self, bits: u64) -> bool {
        self.is_nan(bits) && bits >> (self.fraction() - 1) & 1 == 0
    }

    pub(super) fn quiet(self, bits: u64) -> u64 {
        bits | 1 << (self.fraction() - 1)
    }

    pub(super) fn is_denormal(self, bits: u64) -> bool {
        let magnitude = bits & (self.sign() - 1);
        magnitude != 0 && magnitude >> self.fraction() == 0
    }

    /// Returns whether two results are the same: any quiet NaN is like another.
    pub(super) fn is_same(self, got: u64, expected: u64) -> bool {
        if self.is_nan(expected) { self.is_nan(got) && !self.is_signaling(got) } else { got == expected }
    }

    /// Returns a result between 0 and 1.
    pub(super) fn clamped(self, bits: u64, dx10_clamp: bool) -> u64 {
        let is_negative = bits & self.sign() != 0;
        match bits & (self.sign() - 1) {
            magnitude if magnitude > self.infinity() => {
                if dx10_clamp {
                    0
                } else {
                    bits
                }
            }
            _ if is_negative => 0,
            magnitude => magnitude.min(self.one()),
        }
    }

    /// Returns the values at which something changes.
    pub(super) fn specials(self) -> Vec<u64> {
        let least_normal = 1 << self.fraction();
        let (one, infinity) = (self.one(), self.infinity());
        let exponent = |power: u64| one + (power << self.fraction());
        let positive = [
            0,
            1,
            2,
            least_normal / 2,
            least_normal - 1,
            least_normal,
            least_normal + 1,
            least_normal * 2,
            one - least_normal,
            one - 1,
            one,
            one + 1,
            one + least_normal / 2,
            exponent(1),
            exponent(1) + least_normal / 4,
            exponent(u64::from(self.fraction()) - 1) + 1,
            exponent(u64::from(self.fraction())) + 1,
            exponent(u64::from(self.fraction()) + 1),
            infinity - least_normal,
            infinity - 1,
            infinity,
            infinity + 1,
            infinity + least_normal / 2,
            infinity + least_normal / 2 + 1,
        ];
        positive.into_iter().flat_map(|bits| [bits, bits | self.sign()]).collect()
    }
}

/// Random operands of one format.
pub(super) struct Numbers {
    format: Format,
    specials: Vec<u64>,
    pub(super) random: Random,
}

impl Numbers {
    pub(super) fn new(format: Format, seed: u64) -> Self {
        Self { format, specials: format.specials(), random: Random::new(seed) }
    }

    /// Draws a number: of any bits, of an exponent near that of `other`, or a special one.
    pub(super) fn number(&mut self, other: u64) -> u64 {
        let (format, bits) = (self.format, self.random.u64());
        let near = |distance: u64| {
            let exponent = (other & (format.sign() - 1)) >> format.fraction();
            let most = format.infinity() >> format.fraction();
            let exponent = (exponent + distance).saturating_sub(4).min(most);
            bits & format.sign() | exponent << format.fraction() | bits & ((1 << format.fraction()) - 1)
        };
        match self.random.u32() % 8 {
            0 => self.specials[bits as usize % self.specials.len()],
            1 | 2 => near(bits >> 32 & 7),
            // A number with few bits: what is computed with it is often exact, or in the middle.
            3 => near(bits >> 32 & 7) & !((1 << (format.fraction() - 5)) - 1),
            // A neighbour.
            4 => (other ^ format.sign() & bits).wrapping_add(bits >> 60).wrapping_sub(8) & format.mask(),
            _ => bits & format.mask(),
        }
    }

    /// Draws operands.
    pub(super) fn operands(&mut self, arity: usize, second_is_exponent: bool) -> [u64; 3] {
        let a = self.number(self.format.one());
        if second_is_exponent {
            let exponents = u64::from(self.format.bits());
            let exponent = match self.random.u32() % 4 {
                0 => EXPONENTS[self.random.u32() as usize % EXPONENTS.len()],
                _ => (self.random.u64() % (exponents * 4)) as i32 - exponents as i32 * 2,
            };
            return [a, u64::from(exponent as u32), 0];
        }
        let b = if arity > 1 { self.number(a) } else { 0 };
        let c = match arity {
            3 => self.addend(a, b),
            _ => 0,
        };
        [a, b, c]
    }

    /// Draws what is added to a product: often of the product's size, so that much of it cancels.
    fn addend(&mut self, a: u64, b: u64) -> u64 {
        let format = self.format;
        let exponent = |bits: u64| ((bits & (format.sign() - 1)) >> format.fraction()) as i64;
        let bias = exponent(format.one());
        let product = (exponent(a) + exponent(b) - bias).clamp(0, exponent(format.infinity()) - 1) as u64;
        let like = product << format.fraction() | (a ^ b ^ format.sign()) & format.sign();
        match self.random.u32() % 4 {
            0 | 1 => self.number(like),
            2 => like | self.random.u64() & ((1 << format.fraction()) - 1),
            _ => self.number(a),
        }
    }
}
