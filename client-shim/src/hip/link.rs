//! Functions that link code, which AMD's runtime compiler does on this machine: the state is the compiler's.

use hipr_proto::{HipError, HipResult};

use crate::convert::{In, Out, Ptr, Str};
use crate::rtc;
use crate::types::RtcResult;

/// Returns the error for a result of the compiler.
fn of_result(result: RtcResult) -> HipResult<()> {
    match result.0 {
        0 => Ok(()),
        // HIPRTC_ERROR_OUT_OF_MEMORY.
        1 => Err(HipError::OUT_OF_MEMORY),
        // HIPRTC_ERROR_INTERNAL_ERROR, which is also what there is where the compiler is missing.
        11 => Err(HipError::NOT_SUPPORTED),
        _ => Err(HipError::INVALID_VALUE),
    }
}

macro_rules! of_compiler {
    ($name:literal ($($arg:ident: $ty:ty),*)) => {{
        // SAFETY: the type is that of the C function in every release.
        let function = unsafe { rtc::function::<unsafe extern "C" fn($($ty),*) -> RtcResult>($name) };
        let function = function.ok_or(HipError::NOT_SUPPORTED)?;
        // SAFETY: what the C caller promises of HIP's function it promises of the compiler's, whose parameters are the same.
        of_result(unsafe { function($($arg),*) })
    }};
}

/// `hipLinkCreate`.
pub(crate) fn create(count: u32, options: Ptr, values: In<Ptr>, state: Out<Ptr>) -> HipResult<()> {
    state.check()?;
    of_compiler!("hiprtcLinkCreate" (count: u32, options: Ptr, values: In<Ptr>, state: Out<Ptr>))
}

/// `hipLinkAddData`.
#[allow(clippy::too_many_arguments, reason = "the C function's parameters")]
pub(crate) fn add_data(
    state: Ptr,
    kind: i32,
    data: Ptr,
    size: usize,
    name: Str,
    count: u32,
    options: Ptr,
    values: In<Ptr>,
) -> HipResult<()> {
    state.check()?;
    data.check()?;
    of_compiler!("hiprtcLinkAddData" (
        state: Ptr, kind: i32, data: Ptr, size: usize, name: Str, count: u32, options: Ptr, values: In<Ptr>
    ))
}

/// `hipLinkAddFile`.
pub(crate) fn add_file(
    state: Ptr,
    kind: i32,
    path: Str,
    count: u32,
    options: Ptr,
    values: In<Ptr>,
) -> HipResult<()> {
    state.check()?;
    path.bytes().ok_or(HipError::INVALID_VALUE)?;
    of_compiler!("hiprtcLinkAddFile" (
        state: Ptr, kind: i32, path: Str, count: u32, options: Ptr, values: In<Ptr>
    ))
}

/// `hipLinkComplete`: the code object is the state's.
pub(crate) fn complete(state: Ptr, code: Out<Ptr>, size: Out<usize>) -> HipResult<()> {
    state.check()?;
    code.check()?;
    size.check()?;
    of_compiler!("hiprtcLinkComplete" (state: Ptr, code: Out<Ptr>, size: Out<usize>))
}

/// `hipLinkDestroy`.
pub(crate) fn destroy(state: Ptr) -> HipResult<()> {
    state.check()?;
    of_compiler!("hiprtcLinkDestroy" (state: Ptr))
}
