//! Results of atomics, from the old value and their operands.

use half::{bf16, f16};

/// Returns the new value.
pub(crate) fn swap<T>(_: T, new: T) -> T {
    new
}

/// Returns `new` if the old value is `compare`, else the old value.
pub(crate) fn compare_swap<T: PartialEq>(old: T, new: T, compare: T) -> T {
    if old == compare { new } else { old }
}

/// Returns `old + 1`, or 0 if `old` has reached `limit`.
pub(crate) fn increment_u32(old: u32, limit: u32) -> u32 {
    if old >= limit { 0 } else { old + 1 }
}

/// Returns `old + 1`, or 0 if `old` has reached `limit`.
pub(crate) fn increment_u64(old: u64, limit: u64) -> u64 {
    if old >= limit { 0 } else { old + 1 }
}

/// Returns `old - 1`, or `limit` if `old` is 0 or above `limit`.
pub(crate) fn decrement_u32(old: u32, limit: u32) -> u32 {
    if old == 0 || old > limit { limit } else { old - 1 }
}

/// Returns `old - 1`, or `limit` if `old` is 0 or above `limit`.
pub(crate) fn decrement_u64(old: u64, limit: u64) -> u64 {
    if old == 0 || old > limit { limit } else { old - 1 }
}

/// Returns `old - back` if that is not negative, else `old + forth`.
pub(crate) fn wrap(old: u32, back: u32, forth: u32) -> u32 {
    if old >= back { old - back } else { old.wrapping_add(forth) }
}

/// Replaces each half of `old` by the half of `data` without its top bit, where that bit is set.
pub(crate) fn conditional_swap(old: u64, data: u64) -> u64 {
    let half = |shift: u32| {
        let (old, data) = ((old >> shift) as u32, (data >> shift) as u32);
        u64::from(if data >> 31 != 0 { data & 0x7fff_ffff } else { old }) << shift
    };
    half(0) | half(32)
}

macro_rules! floats {
    ($($min:ident $max:ident $pick:ident $t:ty, $quiet:literal;)*) => {$(
        /// Returns the value that a minimum or maximum keeps: `new` if `prefer_new` says so, else `old`. A signalling NaN comes
        /// out as a quiet one; of a quiet NaN and a number, the number.
        fn $pick(old: $t, new: $t, prefer_new: impl Fn($t, $t) -> bool) -> $t {
            let signals = |a: $t| a.is_nan() && a.to_bits() & $quiet == 0;
            let quiet = |a: $t| <$t>::from_bits(a.to_bits() | $quiet);
            if signals(old) {
                quiet(old)
            } else if signals(new) {
                quiet(new)
            } else if new.is_nan() {
                old
            } else if old.is_nan() || prefer_new(old, new) {
                new
            } else {
                old
            }
        }

        /// Returns the smaller value; -0 is smaller than 0.
        pub(crate) fn $min(old: $t, new: $t) -> $t {
            $pick(old, new, |old, new| new < old || (new == old && new.is_sign_negative()))
        }

        /// Returns the larger value; 0 is larger than -0.
        pub(crate) fn $max(old: $t, new: $t) -> $t {
            $pick(old, new, |old, new| new > old || (new == old && new.is_sign_positive()))
        }
    )*};
}
floats! {
    min_f32 max_f32 pick_f32 f32, 0x0040_0000;
    min_f64 max_f64 pick_f64 f64, 0x0008_0000_0000_0000;
}

/// Applies `f` to the low halves and to the high halves.
fn halves(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

/// Returns the sums of two pairs of f16, each rounded once.
pub(crate) fn add_f16_pair(a: u32, b: u32) -> u32 {
    halves(a, b, |a, b| (f16::from_bits(a) + f16::from_bits(b)).to_bits())
}

/// Returns the sums of two pairs of bf16, each rounded once.
pub(crate) fn add_bf16_pair(a: u32, b: u32) -> u32 {
    halves(a, b, |a, b| (bf16::from_bits(a) + bf16::from_bits(b)).to_bits())
}

/// Returns the lane that `ds_swizzle` reads, by its offset.
///
/// In the last two patterns, lanes are taken by their bits in groups of 32: rotated as numbers within the bits that the mask
/// leaves, or with those bits reversed (the order of a fast Fourier transform).
pub(crate) fn swizzle_source(pattern: usize, lane: usize) -> usize {
    let (group, lane) = (lane & 0x20, lane & 0x1f);
    let mask = pattern & 0x1f;
    group
        | match pattern {
            // For each of four lanes, two bits.
            0x8000..0xc000 => lane & !3 | pattern >> (lane % 4 * 2) & 3,
            0xc000..0xe000 => {
                let distance = pattern >> 5 & 0x1f;
                let moved = if pattern & 0x400 == 0 { lane + distance } else { lane.wrapping_sub(distance) };
                lane & mask | moved & !mask & 0x1f
            }
            0xe000.. => {
                let reversed = (lane as u8).reverse_bits() as usize >> 3;
                lane & mask | reversed >> mask.count_ones()
            }
            _ => (lane & mask | pattern >> 5 & 0x1f) ^ (pattern >> 10 & 0x1f),
        }
}

/// Sign-extends a byte.
pub(crate) fn sign8(value: u8) -> u32 {
    i32::from(value as i8) as u32
}

/// Sign-extends 16 bits.
pub(crate) fn sign16(value: u16) -> u32 {
    i32::from(value as i16) as u32
}
