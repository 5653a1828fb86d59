//! Formats of typed buffers: elements of up to four components, in memory and in registers.

use crate::sem::float::rndne32;
use crate::sem::half::F16;

/// What a component's bits mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Unorm,
    Snorm,
    Uscaled,
    Sscaled,
    Uint,
    Sint,
    Float,
}

/// How an element is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Bits of the components, the one in the lowest bits first; 0 for those that are not there.
    widths: [u32; 4],
    number: Number,
}

/// Widths by the number of the data format; those that are missing do not exist.
const WIDTHS: [[u32; 4]; 15] = [
    [0, 0, 0, 0],
    [8, 0, 0, 0],
    [16, 0, 0, 0],
    [8, 8, 0, 0],
    [32, 0, 0, 0],
    [16, 16, 0, 0],
    [11, 11, 10, 0],
    [10, 11, 11, 0],
    [2, 10, 10, 10],
    [10, 10, 10, 2],
    [8, 8, 8, 8],
    [32, 32, 0, 0],
    [16, 16, 16, 16],
    [32, 32, 32, 0],
    [32, 32, 32, 32],
];

impl Format {
    /// The format of these numbers (`BUF_DATA_FORMAT_*`, `BUF_NUM_FORMAT_*`). `None` if there is none.
    pub(crate) fn new(data: usize, number: usize) -> Option<Self> {
        let widths = *WIDTHS.get(data).filter(|widths| widths[0] != 0)?;
        let number = match number {
            0 => Number::Unorm,
            1 => Number::Snorm,
            2 => Number::Uscaled,
            3 => Number::Sscaled,
            4 => Number::Uint,
            5 => Number::Sint,
            7 => Number::Float,
            _ => return None,
        };
        let has_float =
            widths.iter().all(|width| matches!(width, 0 | 10 | 11 | 16 | 32)) && !widths.contains(&2);
        (number != Number::Float || has_float).then_some(Self { widths, number })
    }

    /// Length in bytes.
    pub(crate) fn len_bytes(self) -> u32 {
        self.widths.iter().sum::<u32>() / 8
    }

    /// Whether registers hold integers.
    pub(crate) fn is_integer(self) -> bool {
        matches!(self.number, Number::Uint | Number::Sint)
    }

    /// Whether registers hold signed integers.
    pub(crate) fn is_signed(self) -> bool {
        self.number == Number::Sint
    }

    /// What a component that is not there reads as if it is asked for as 1.
    pub(crate) fn one(self) -> u32 {
        if self.is_integer() { 1 } else { 1f32.to_bits() }
    }

    /// Lowest bit of component `index` in the element.
    fn shift(self, index: usize) -> u32 {
        self.widths.iter().take(index).sum()
    }

    /// The four components of an element as registers hold them: those that are not there are 0, 0, 0, 1.
    pub(crate) fn decode(self, element: [u32; 4]) -> [u32; 4] {
        let bits = element.iter().rev().fold(0u128, |bits, word| bits << 32 | u128::from(*word));
        std::array::from_fn(|index| match self.widths[index] {
            0 if index == 3 => self.one(),
            0 => 0,
            width => {
                let raw = (bits >> self.shift(index)) as u32 & (u32::MAX >> (32 - width));
                self.number.decode(raw, width)
            }
        })
    }

    /// The element of four components.
    pub(crate) fn encode(self, components: [u32; 4]) -> [u32; 4] {
        let mut bits = 0u128;
        for (index, component) in components.into_iter().enumerate() {
            if self.widths[index] != 0 {
                bits |= u128::from(self.number.encode(component, self.widths[index])) << self.shift(index);
            }
        }
        [0, 32, 64, 96].map(|shift: u32| (bits >> shift) as u32)
    }
}

impl Number {
    fn decode(self, raw: u32, width: u32) -> u32 {
        let signed = (raw << (32 - width)) as i32 >> (32 - width);
        let most = u32::MAX >> (32 - width);
        let value = match self {
            Self::Uint => return raw,
            Self::Sint => return signed as u32,
            Self::Float => return small_float(raw, width),
            Self::Unorm => (f64::from(raw) / f64::from(most)) as f32,
            Self::Snorm => (f64::from(signed) / f64::from(most / 2)).max(-1.0) as f32,
            Self::Uscaled => raw as f32,
            Self::Sscaled => signed as f32,
        };
        value.to_bits()
    }

    fn encode(self, component: u32, width: u32) -> u32 {
        let most = u32::MAX >> (32 - width);
        let value = f32::from_bits(component);
        // Products are exact in f64; casts saturate and make 0 of NaN.
        let nearest = |scaled: f64| crate::sem::float::rndne64(scaled);
        let signed =
            |scaled: f64| scaled.clamp(-f64::from(most / 2) - 1.0, f64::from(most / 2)) as i32 as u32 & most;
        match self {
            Self::Uint => component.min(most),
            Self::Sint => (component as i32).clamp(-((most / 2) as i32) - 1, (most / 2) as i32) as u32 & most,
            Self::Float => to_small_float(value, width),
            Self::Unorm => nearest(f64::from(value).clamp(0.0, 1.0) * f64::from(most)) as u32,
            Self::Snorm => signed(nearest(f64::from(value).clamp(-1.0, 1.0) * f64::from(most / 2))),
            Self::Uscaled => (rndne32(value) as u32).min(most),
            Self::Sscaled => signed(f64::from(rndne32(value))),
        }
    }
}

/// The bits of the f32 that a float of 32, 16, 11 or 10 bits is. The shortest two have no sign, and the exponent of f16.
fn small_float(raw: u32, width: u32) -> u32 {
    match width {
        32 => raw,
        16 => F16(raw as u16).to_f32().to_bits(),
        _ => F16((raw << (15 - width)) as u16).to_f32().to_bits(),
    }
}

/// The other way. What is negative is 0 without a sign; the shortest floats drop bits.
fn to_small_float(value: f32, width: u32) -> u32 {
    match width {
        32 => value.to_bits(),
        16 => u32::from(F16::from_f32(value).0),
        _ if value.is_nan() => (1 << width) - 1,
        _ if value < 0.0 => 0,
        _ => u32::from(F16::truncate_f32(value.abs()).0) >> (15 - width),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_survive_a_round_trip() {
        let mut random = 0x1234_5678_9abc_def1u64;
        for data in 0..16 {
            for number in 0..8 {
                let Some(format) = Format::new(data, number) else { continue };
                for _ in 0..200 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let words = [0, 7, 19, 31].map(|shift: u32| (random >> shift) as u32);
                    let canonical = format.decode(format.encode(format.decode(words)));
                    let decoded = format.decode(words);
                    for (a, b) in canonical.into_iter().zip(decoded) {
                        let nan = |bits: u32| !format.is_integer() && f32::from_bits(bits).is_nan();
                        assert!(a == b || (nan(a) && nan(b)), "{format:?}: {decoded:x?} and {canonical:x?}");
                    }
                }
            }
        }
    }

    #[test]
    fn components_mean_what_their_format_says() {
        let decode = |data, number, word: u32| Format::new(data, number).unwrap().decode([word, 0, 0, 0]);
        let f = |values: [f32; 4]| values.map(f32::to_bits);
        assert_eq!(decode(10, 0, 0xff80_3300), f([0.0, 0.2, 128.0 / 255.0, 1.0]));
        assert_eq!(decode(10, 1, 0x8081_7f00), f([0.0, 1.0, -1.0, -1.0]));
        assert_eq!(decode(3, 5, 0x80ff), [u32::MAX, -128i32 as u32, 0, 1]);
        assert_eq!(decode(5, 7, 0xc000_3c00), f([1.0, -2.0, 0.0, 1.0]));
        assert_eq!(decode(9, 4, 0xc030_0802), [2, 2, 3, 3]);
        assert_eq!(decode(6, 7, 0x3c0 | 0x3c0 << 11 | 0x1e0 << 22), f([1.0, 1.0, 1.0, 1.0]));
        assert_eq!(decode(1, 3, 0xfe), f([-2.0, 0.0, 0.0, 1.0]));
        let encode = |data, number, values| Format::new(data, number).unwrap().encode(f(values))[0];
        assert_eq!(encode(10, 0, [2.0, -1.0, 0.5, f32::NAN]), 0x0080_00ff);
        assert_eq!(encode(3, 1, [-2.0, 1.0, 0.0, 0.0]), 0x7f81);
        assert_eq!(encode(6, 7, [1.0, -1.0, 1.0, 0.0]), 0x3c0 | 0x1e0 << 22);
        assert_eq!(Format::new(1, 4).unwrap().encode([256, 0, 0, 0])[0], 0xff);
        assert_eq!(Format::new(1, 5).unwrap().encode([-300i32 as u32, 0, 0, 0])[0], 0x80);
        assert_eq!(Format::new(0, 4), None);
        assert_eq!(Format::new(15, 4), None);
        assert_eq!(Format::new(1, 7), None, "no float of 8 bits");
        assert_eq!(Format::new(4, 6), None);
    }
}
