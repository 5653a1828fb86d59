//! Element types of matrix instructions: decoding and multiply-accumulate.
//!
//! Products of elements shorter than f32 are exact in f32. In which order and with how many roundings the hardware adds those up is
//! not published; here it is one after the other, rounded each time. f32 and f64 are chains of fused multiply-adds, as on the
//! hardware.

use crate::sem::float::{fma32, fma32_nearly, fma64};
use crate::sem::fp8::{BF8, FP8};
use crate::sem::half::F16;
use crate::simd::Level;
use crate::simd::halves::widen;
use crate::wave::{LANES, Row};

/// The type of the accumulated sums.
pub(crate) trait Sum: Copy + Default {
    /// Number of registers that an element takes.
    const WORDS: usize;
    fn from_bits(bits: u64) -> Self;
    fn bits(self) -> u64;
    fn negated(self) -> Self;
}

macro_rules! sums {
    ($($t:ty, $words:literal, |$bits:ident| $from:expr, |$value:ident| $to:expr, $negated:expr;)*) => {$(
        impl Sum for $t {
            const WORDS: usize = $words;
            #[inline(always)]
            fn from_bits($bits: u64) -> Self {
                $from
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                let $value = self;
                $to
            }
            #[inline(always)]
            fn negated(self) -> Self {
                let $value = self;
                $negated
            }
        }
    )*};
}
sums! {
    f32, 1, |bits| f32::from_bits(bits as u32), |value| u64::from(value.to_bits()), -value;
    i32, 1, |bits| bits as i32, |value| u64::from(value as u32), value.wrapping_neg();
    f64, 2, |bits| f64::from_bits(bits), |value| value.to_bits(), -value;
}

/// The types of the elements of A and B and of the sums of their products.
pub(crate) trait Elements {
    type Factor: Copy + Default;
    type Sum: Sum;
    /// Size of an element in a register, in bits.
    const BITS: usize;
    /// The elements that all lanes hold in a register pair, by number of the element, then by lane.
    type Held: AsRef<[[Self::Factor; LANES]]> + AsMut<[[Self::Factor; LANES]]>;
    const NONE: Self::Held;
    fn a(bits: u64) -> Self::Factor;
    fn b(bits: u64) -> Self::Factor {
        Self::a(bits)
    }
    /// Takes element `index` of each lane from the row that holds it, if there is a faster way than one by one; returns false
    /// if not.
    #[inline(always)]
    fn take_row(_level: Level, _row: &Row, _index: usize, _out: &mut [Self::Factor; LANES]) -> bool {
        false
    }
    fn multiply_add(a: Self::Factor, b: Self::Factor, sum: Self::Sum) -> Self::Sum;
    /// Adds the products of one element of A and a row of B to a row of sums. `fused` says that there is an FMA unit.
    #[inline(always)]
    fn add_products<const N: usize>(
        _fused: bool,
        a: Self::Factor,
        b: &[Self::Factor; N],
        sums: &mut [Self::Sum; N],
    ) {
        for (sum, b) in sums.iter_mut().zip(b) {
            *sum = Self::multiply_add(a, *b, *sum);
        }
    }
}

macro_rules! elements {
    ($($name:ident: $bits:literal bits, $factor:ty => $sum:ty,
       |$a:ident| $from_a:expr, |$b:ident| $from_b:expr, $multiply_add:expr;)*) => {$(
        #[derive(Debug)]
        pub(crate) struct $name;
        impl Elements for $name {
            type Factor = $factor;
            type Sum = $sum;
            const BITS: usize = $bits;
            type Held = [[$factor; LANES]; 64 / $bits];
            const NONE: Self::Held = [[0 as $factor; LANES]; 64 / $bits];
            #[inline(always)]
            fn a($a: u64) -> $factor {
                $from_a
            }
            #[inline(always)]
            fn b($b: u64) -> $factor {
                $from_b
            }
            #[inline(always)]
            fn multiply_add(a: $factor, b: $factor, sum: $sum) -> $sum {
                $multiply_add(a, b, sum)
            }
        }
    )*};
}

#[inline(always)]
fn fused_products<const N: usize>(a: f32, b: &[f32; N], sums: &mut [f32; N]) {
    for (sum, b) in sums.iter_mut().zip(b) {
        *sum = a.mul_add(*b, *sum);
    }
}

/// Returns `a * b + sum`, where the product is exact.
#[inline(always)]
fn exact_product(a: f32, b: f32, sum: f32) -> f32 {
    a * b + sum
}

#[inline(always)]
fn integer_product(a: i32, b: i32, sum: i32) -> i32 {
    (a * b).wrapping_add(sum)
}

#[inline(always)]
fn half(bits: u64) -> f32 {
    F16(bits as u16).to_f32()
}

#[inline(always)]
fn bf16(bits: u64) -> f32 {
    f32::from_bits((bits as u32) << 16)
}

#[inline(always)]
fn byte(bits: u64) -> i32 {
    i32::from(bits as u8 as i8)
}

/// Returns an f32 rounded to nearest even with 10 bits of mantissa.
#[inline(always)]
fn xf32(bits: u64) -> f32 {
    let bits = bits as u32;
    let value = f32::from_bits(bits);
    let rounded = f32::from_bits(bits.wrapping_add(0xfff + (bits >> 13 & 1)) & !0x1fff);
    if value.is_nan() { value } else { rounded }
}

/// The f32 type.
#[derive(Debug)]
pub(crate) struct F32;

impl Elements for F32 {
    type Factor = f32;
    type Sum = f32;
    const BITS: usize = 32;
    type Held = [[f32; LANES]; 2];
    const NONE: Self::Held = [[0.0; LANES]; 2];
    #[inline(always)]
    fn a(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
    #[inline(always)]
    fn multiply_add(a: f32, b: f32, sum: f32) -> f32 {
        fma32(a, b, sum)
    }
    #[inline(always)]
    fn add_products<const N: usize>(fused: bool, a: f32, b: &[f32; N], sums: &mut [f32; N]) {
        if fused {
            return fused_products(a, b, sums);
        }
        let mut doubt = 0;
        let mut nearly = [0.0; N];
        for lane in 0..N {
            let (value, doubtful) = fma32_nearly(a, b[lane], sums[lane]);
            nearly[lane] = value;
            doubt |= doubtful;
        }
        *sums = if doubt == 0 { nearly } else { std::array::from_fn(|lane| fma32(a, b[lane], sums[lane])) };
    }
}

/// The f16 type: every product is exact and no denormal, so that fusing makes no difference.
#[derive(Debug)]
pub(crate) struct F16s;

impl Elements for F16s {
    type Factor = f32;
    type Sum = f32;
    const BITS: usize = 16;
    type Held = [[f32; LANES]; 4];
    const NONE: Self::Held = [[0.0; LANES]; 4];
    #[inline(always)]
    fn a(bits: u64) -> f32 {
        half(bits)
    }
    #[inline(always)]
    fn take_row(level: Level, row: &Row, index: usize, out: &mut [f32; LANES]) -> bool {
        widen(level, row, index as u32 % 2 * 16, out);
        true
    }
    #[inline(always)]
    fn multiply_add(a: f32, b: f32, sum: f32) -> f32 {
        exact_product(a, b, sum)
    }
    #[inline(always)]
    fn add_products<const N: usize>(fused: bool, a: f32, b: &[f32; N], sums: &mut [f32; N]) {
        if fused {
            return fused_products(a, b, sums);
        }
        for (sum, b) in sums.iter_mut().zip(b) {
            *sum = exact_product(a, *b, *sum);
        }
    }
}

elements! {
    Xf32: 32 bits, f32 => f32, |a| xf32(a), |b| xf32(b), exact_product;
    Bf16: 16 bits, f32 => f32, |a| bf16(a), |b| bf16(b), exact_product;
    I8: 8 bits, i32 => i32, |a| byte(a), |b| byte(b), integer_product;
    Bf8Bf8: 8 bits, f32 => f32, |a| BF8.decode(a as u8), |b| BF8.decode(b as u8), exact_product;
    Bf8Fp8: 8 bits, f32 => f32, |a| BF8.decode(a as u8), |b| FP8.decode(b as u8), exact_product;
    Fp8Bf8: 8 bits, f32 => f32, |a| FP8.decode(a as u8), |b| BF8.decode(b as u8), exact_product;
    Fp8Fp8: 8 bits, f32 => f32, |a| FP8.decode(a as u8), |b| FP8.decode(b as u8), exact_product;
    F64: 64 bits, f64 => f64, |a| f64::from_bits(a), |b| f64::from_bits(b), fma64;
}
