//! A launch of the demo's kernel `saxpy`, for programs that use HIP through its C functions.

use std::ffi::c_void;
use std::ptr::from_mut;

use hip_sys::{Error, Function};

/// Adds the `len` floats at `from` to those at `to`, on the null stream; `len` is a multiple of 256.
///
/// # Errors
/// What the launch returns.
///
/// # Safety
/// `saxpy` is that kernel, and both addresses have as many floats that the device may use.
pub unsafe fn add_floats(
    saxpy: &Function<'_>,
    mut from: *mut c_void,
    mut to: *mut c_void,
    len: usize,
) -> Result<(), Error> {
    let (mut a, mut count) = (1.0f32, len as u32);
    let args = &mut [
        from_mut(&mut a).cast(),
        from_mut(&mut from).cast(),
        from_mut(&mut to).cast(),
        from_mut(&mut count).cast(),
    ];
    // SAFETY: saxpy takes a float, two pointers to `count` floats and `count`; the rest is the caller's word.
    unsafe { saxpy.launch([count / 256, 1, 1], [256, 1, 1], 0, args) }
}
