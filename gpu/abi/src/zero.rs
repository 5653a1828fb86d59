//! Values whose bytes are all zero, which is what C programs start structures with.

use core::ffi::c_void;

/// A type that has a value whose bytes are all zero.
pub(crate) trait Zero: Copy {
    /// The value whose bytes are all zero.
    const ZERO: Self;
}

macro_rules! numbers {
    ($($number:ty = $zero:literal;)*) => { $(impl Zero for $number { const ZERO: Self = $zero; })* };
}

numbers! {
    i8 = 0;
    u8 = 0;
    i32 = 0;
    u32 = 0;
    i64 = 0;
    u64 = 0;
    usize = 0;
    f32 = 0.0;
}

impl<T> Zero for *mut T {
    const ZERO: Self = core::ptr::null_mut();
}

impl<T> Zero for *const T {
    const ZERO: Self = core::ptr::null();
}

impl Zero for Option<unsafe extern "C" fn(*mut c_void)> {
    const ZERO: Self = None;
}

impl<T: Zero, const N: usize> Zero for [T; N] {
    const ZERO: Self = [T::ZERO; N];
}
