//! Formats of typed buffers: elements of up to four components, in memory and in registers.

use crate::sem::float::rndne32;
use crate::sem::half::F16;

/// Number format of a component.
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

/// Layout of a buffer element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Widths of the components in bits, the lowest bits' first; 0 for missing components.
    widths: [u32; 4],
    number: Number,
}

/// Component widths by data format number; missing entries are formats that do not exist.
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
    /// Returns the format with these data and number format numbers (`BUF_DATA_FORMAT_*`, `BUF_NUM_FORMAT_*`). `None` if there
    /// is none.
    pub fn new(data: usize, number: usize) -> Option<Self> {
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

    /// Returns the length of an element in bytes.
    pub fn len_bytes(self) -> u32 {
        self.widths.iter().sum::<u32>() / 8
    }

    /// Returns whether the components are integers in registers.
    pub fn is_integer(self) -> bool {
        matches!(self.number, Number::Uint | Number::Sint)
    }

    /// Returns whether the components are signed integers in registers.
    pub fn is_signed(self) -> bool {
        self.number == Number::Sint
    }

    /// Returns the register value of a missing component that reads as 1.
    pub fn one(self) -> u32 {
        if self.is_integer() { 1 } else { 1f32.to_bits() }
    }

    /// Returns the lowest bit of component `index` in the element.
    fn shift(self, index: usize) -> u32 {
        self.widths.iter().take(index).sum()
    }

    /// Returns the four components of an element as registers hold them; missing ones are 0, 0, 0, 1.
    pub fn decode(self, element: [u32; 4]) -> [u32; 4] {
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

    /// Returns the element made of four components.
    pub fn encode(self, components: [u32; 4]) -> [u32; 4] {
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

/// Returns the bits of a float of 32, 16, 11 or 10 bits as an f32. The shortest two have no sign, and the exponent of f16.
fn small_float(raw: u32, width: u32) -> u32 {
    match width {
        32 => raw,
        16 => F16(raw as u16).to_f32().to_bits(),
        _ => F16((raw << (15 - width)) as u16).to_f32().to_bits(),
    }
}

/// Converts an f32 to a float of 32, 16, 11 or 10 bits. Negative values become 0 in formats without a sign.
fn to_small_float(value: f32, width: u32) -> u32 {
    match width {
        32 => value.to_bits(),
        16 => u32::from(F16::from_f32(value).0),
        _ if value.is_nan() => (1 << width) - 1,
        _ if value < 0.0 => 0,
        _ => u32::from(F16::truncate_f32(value.abs()).0) >> (15 - width),
    }
}
