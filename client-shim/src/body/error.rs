//! Errors: names, messages, and the thread's last one.

use hipr_proto::{HipError, HipResult, error_message, error_name};

use crate::convert::{Out, Str};
use crate::state;

/// `hipGetErrorName`.
pub(crate) fn name(code: i32) -> Str {
    Str::of(error_name(code))
}

/// `hipGetErrorString`.
pub(crate) fn message(code: i32) -> Str {
    Str::of(error_message(code))
}

/// `hipDrvGetErrorName`: refuses codes that are none.
pub(crate) fn drv_name(code: i32, text: Out<Str>) -> HipResult<()> {
    drv(code, text, error_name)
}

/// `hipDrvGetErrorString`: refuses codes that are none.
pub(crate) fn drv_message(code: i32, text: Out<Str>) -> HipResult<()> {
    drv(code, text, error_message)
}

fn drv(code: i32, text: Out<Str>, of: fn(i32) -> &'static core::ffi::CStr) -> HipResult<()> {
    text.check()?.set(Str::of(of(code)));
    if code != 0 && error_message(code) == error_message(-1) { Err(HipError::INVALID_VALUE) } else { Ok(()) }
}

/// `hipGetLastError`: no round trip; the error is forgotten.
pub(crate) fn last() -> i32 {
    state::take_last_error()
}

/// `hipPeekAtLastError`: no round trip.
pub(crate) fn peek() -> i32 {
    state::last_error()
}

/// `hipExtGetLastError`: what the last call returned, success included.
pub(crate) fn last_result() -> i32 {
    state::take_last_result()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_real_library() {
        assert_eq!(name(2).bytes(), Some(b"hipErrorOutOfMemory".as_slice()));
        assert_eq!(message(0).bytes(), Some(b"no error".as_slice()));
        assert_eq!(name(12345).bytes(), Some(b"hipErrorUnknown".as_slice()));
    }

    #[test]
    fn the_driver_variant_refuses_numbers_that_are_no_errors() {
        let mut text = Str::NULL;
        assert_eq!(drv_name(700, Out::to(&mut text)), Ok(()));
        assert_eq!(text.bytes(), Some(b"hipErrorIllegalAddress".as_slice()));
        assert_eq!(drv_name(-1, Out::to(&mut text)), Err(HipError::INVALID_VALUE));
        assert_eq!(drv_message(0, Out::NULL), Err(HipError::INVALID_VALUE));
    }
}
