//! Products of packed fields, added up.

use crate::sem::half::F16;

/// The f16 halves of a register.
#[inline(always)]
fn halves(pair: u32) -> (F16, F16) {
    (F16(pair as u16), F16((pair >> 16) as u16))
}

/// Two products of f16 and a sum, rounded once but where f64 is too short for all of it.
#[inline(always)]
pub(crate) fn dot2_f16(a: u32, b: u32, sum: f32) -> f32 {
    let ((a_low, a_high), (b_low, b_high)) = (halves(a), halves(b));
    let product = |a: F16, b: F16| f64::from(a.to_f32() * b.to_f32());
    (product(a_low, b_low) + product(a_high, b_high) + f64::from(sum)) as f32
}

/// A signed dot product and a sum; saturated if `clamp`, else wrapped.
#[inline(always)]
pub(crate) fn accumulate_i32(dot: i64, sum: u32, clamp: bool) -> u32 {
    let total = dot + i64::from(sum as i32);
    if clamp { total.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32 } else { total as u32 }
}

/// An unsigned dot product and a sum; saturated if `clamp`, else wrapped.
#[inline(always)]
pub(crate) fn accumulate_u32(dot: u64, sum: u32, clamp: bool) -> u32 {
    let total = dot + u64::from(sum);
    if clamp { total.min(u64::from(u32::MAX)) as u32 } else { total as u32 }
}
