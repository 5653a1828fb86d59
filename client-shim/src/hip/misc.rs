//! Other functions: names of functions and kernels, channel descriptions, half floats, the profiler.

use core::ffi::CStr;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Mutex;

use hipr_abi::hipChannelFormatDesc;
use hipr_proto::{HipError, HipResult};

use crate::convert::{Function, Out, Ptr, Str, Stream};
use crate::process;
use crate::program::register;
use crate::session::Session;
use crate::worker::lock;

/// `hipApiName`, `hipGetCmdName`: return an unknown name, because the numbers are those of a profiler, and hipr has none.
pub(crate) fn api_name(_id: u32) -> Str {
    Str::of(c"unknown")
}

/// Returns a text to which the program may keep a pointer; each different text is kept forever.
pub(super) fn keep(text: String) -> Str {
    static KEPT: Mutex<Option<HashMap<String, &'static CStr>>> = Mutex::new(None);
    let mut kept = lock(&KEPT);
    let kept = kept.get_or_insert_default();
    if let Some(known) = kept.get(&text) {
        return Str::of(known);
    }
    let Ok(new) = CString::new(text.clone()) else { return Str::NULL };
    let new: &'static CStr = Box::leak(new.into_boxed_c_str());
    kept.insert(text, new);
    Str::of(new)
}

/// `hipKernelNameRef`.
pub(crate) fn kernel_name(function: Function) -> Str {
    let function = process::session().and_then(|session| session.program().function(function));
    function.map_or(Str::NULL, |function| keep(function.name.clone()))
}

/// `hipKernelNameRefByPtr`.
pub(crate) fn kernel_name_by_ptr(host_function: Ptr, _stream: Stream) -> Str {
    register::function_name(host_function).map_or(Str::NULL, keep)
}

/// `hipCreateChannelDesc`.
pub(crate) fn channel_desc(x: i32, y: i32, z: i32, w: i32, f: i32) -> hipChannelFormatDesc {
    hipChannelFormatDesc { x, y, z, w, f }
}

/// `hipProfilerStart`, `hipProfilerStop`: as with AMD's runtime, there is no profiler to start.
pub(crate) fn profiler(_session: &Session) -> HipResult<()> {
    Err(HipError::NOT_SUPPORTED)
}

/// `hipRegisterTracerCallback`: a tracer is told of no call, because `hipr trace` writes what there is to tell.
pub(crate) fn register_tracer(_callback: Ptr) {}

/// `__hipGetPCH`: returns no headers, because there is no built-in run-time compiler.
pub(crate) fn precompiled_header(header: Out<Str>, size: Out<u32>) {
    header.set(Str::NULL);
    size.set(0);
}

/// `amd_dbgapi_get_build_name`, `amd_dbgapi_get_git_hash`.
pub(crate) fn build_name() -> Str {
    Str::of(c"hipr")
}

/// `amd_dbgapi_get_build_id`.
pub(crate) fn build_id() -> usize {
    0
}

/// `__gnu_h2f_ieee`: converts a half to a float, exactly.
pub(crate) fn half_to_float(half: u16) -> f32 {
    let sign = u32::from(half >> 15) << 31;
    let (exponent, mantissa) = (u32::from(half >> 10 & 0x1f), u32::from(half & 0x3ff));
    let magnitude = match (exponent, mantissa) {
        (0, 0) => 0,
        // A subnormal half is mantissa * 2^-24, which a float holds exactly.
        (0, _) => (f32::from(half & 0x3ff) * f32::from_bits((127 - 24) << 23)).to_bits(),
        (0x1f, _) => 0x7f80_0000 | mantissa << 13,
        _ => (exponent + 127 - 15) << 23 | mantissa << 13,
    };
    f32::from_bits(sign | magnitude)
}

/// `__gnu_f2h_ieee`: converts a float to a half, rounded to nearest even.
pub(crate) fn float_to_half(float: f32) -> u16 {
    let bits = float.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude >= 0x7f80_0000 {
        // A NaN stays one, and quiet.
        let nan = if magnitude > 0x7f80_0000 { 0x200 | (magnitude >> 13 & 0x3ff) as u16 } else { 0 };
        return sign | 0x7c00 | nan;
    }
    // What a half cannot hold: from 65520 on, halfway between the largest and the next.
    if magnitude >= 0x477f_f000 {
        return sign | 0x7c00;
    }
    let exponent = (magnitude >> 23) as i32 - 127;
    let (value, shift) = if exponent >= -14 {
        (magnitude - (112 << 23), 13)
    } else if exponent >= -25 {
        ((magnitude & 0x7f_ffff) | 0x80_0000, (-exponent - 14 + 13) as u32)
    } else {
        return sign;
    };
    let half = value >> shift;
    let rest = value & ((1 << shift) - 1);
    let middle = 1 << (shift - 1);
    let up = rest > middle || (rest == middle && half & 1 == 1);
    sign | (half + u32::from(up)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_the_way_through_float() {
        for half in 0..=u16::MAX {
            let float = half_to_float(half);
            if float.is_nan() {
                assert_eq!(float_to_half(float) & 0x7c00, 0x7c00);
            } else {
                assert_eq!(float_to_half(float), half, "{half:#06x} is {float}");
            }
        }
    }

    #[test]
    fn halves_are_the_nearest() {
        assert_eq!(half_to_float(0x3c00), 1.0);
        assert_eq!(half_to_float(0x0001), 5.960_464_5e-8);
        assert_eq!(float_to_half(65519.0), 0x7bff);
        assert_eq!(float_to_half(65520.0), 0x7c00);
        assert_eq!(float_to_half(1.0 + 1.0 / 2048.0), 0x3c00, "a tie goes to the even one");
        assert_eq!(float_to_half(1.0 + 3.0 / 2048.0), 0x3c02, "a tie goes to the even one");
        assert_eq!(float_to_half(2.98e-8), 0x0000);
        assert_eq!(float_to_half(2.99e-8), 0x0001);
        assert_eq!(float_to_half(-0.0), 0x8000);
    }

    #[test]
    fn names_are_kept_once() {
        let [a, b] = [keep("kernel".to_owned()), keep("kernel".to_owned())];
        assert_eq!(a.bytes(), Some(b"kernel".as_slice()));
        assert_eq!(a.bytes().map(<[u8]>::as_ptr), b.bytes().map(<[u8]>::as_ptr));
    }
}
