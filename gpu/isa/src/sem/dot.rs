//! Products of packed fields, added up.

/// Returns the sum of two exact products of f16 and `sum`, rounded once, except where f64 cannot hold all of it.
#[inline(always)]
pub(crate) fn dot2(low: f32, high: f32, sum: f32) -> f32 {
    (f64::from(low) + f64::from(high) + f64::from(sum)) as f32
}

/// Adds a signed dot product to `sum`; saturates if `clamp`, else wraps.
#[inline(always)]
pub(crate) fn accumulate_i32(dot: i64, sum: u32, clamp: bool) -> u32 {
    let total = dot + i64::from(sum as i32);
    if clamp { total.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32 } else { total as u32 }
}

/// Adds an unsigned dot product to `sum`; saturates if `clamp`, else wraps.
#[inline(always)]
pub(crate) fn accumulate_u32(dot: u64, sum: u32, clamp: bool) -> u32 {
    let total = dot + u64::from(sum);
    if clamp { total.min(u64::from(u32::MAX)) as u32 } else { total as u32 }
}
