//! Functions about errors: names, messages, and the thread's last error.

use hipr_abi::hipErrorUnknown;
use hipr_proto::{HipError, HipResult, error_message, error_name};

use crate::convert::{Out, Str};
use crate::thread;

/// `hipGetErrorName`.
pub(crate) fn name(code: i32) -> Str {
    Str::of(error_name(code))
}

/// `hipGetErrorString`.
pub(crate) fn message(code: i32) -> Str {
    Str::of(error_message(code))
}

/// `hipDrvGetErrorName`: fails for unknown codes.
pub(crate) fn drv_name(code: i32, text: Out<Str>) -> HipResult<()> {
    drv(code, text, error_name)
}

/// `hipDrvGetErrorString`: fails for unknown codes.
pub(crate) fn drv_message(code: i32, text: Out<Str>) -> HipResult<()> {
    drv(code, text, error_message)
}

fn drv(code: i32, text: Out<Str>, of: fn(i32) -> &'static core::ffi::CStr) -> HipResult<()> {
    text.check()?.set(Str::of(of(code)));
    let is_known = code == hipErrorUnknown || of(code) != of(-1);
    if is_known { Ok(()) } else { Err(HipError::INVALID_VALUE) }
}

/// `hipGetLastError`: returns and clears the thread's last error, without a round trip.
pub(crate) fn last() -> i32 {
    thread::take_last_error()
}

/// `hipPeekAtLastError`: returns the thread's last error, without a round trip.
pub(crate) fn peek() -> i32 {
    thread::last_error()
}

/// `hipExtGetLastError`: returns the result of the last call, success included.
pub(crate) fn last_result() -> i32 {
    thread::take_last_result()
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
