//! Functions that look up functions by name: `hipGetProcAddress` and similar.

use hipr_abi::{
    HIP_GET_PROC_ADDRESS_SUCCESS, HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, hipEnablePerThreadDefaultStream,
};
use hipr_proto::{HipError, HipResult};

use crate::api::EXPORTS;
use crate::convert::{Out, Ptr, Str};

/// First version in which the plain names mean the functions with large structures.
const R0600_VERSION: i32 = 600;
/// The flag that prefers the `_spt` functions.
const PER_THREAD: u64 = hipEnablePerThreadDefaultStream as u64;

/// Returns the address of this library's function `name`.
pub(crate) fn address(name: &str) -> Option<Ptr> {
    EXPORTS.iter().find(|export| export.name == name).map(|export| export.address.ptr())
}

/// Returns the function that a program compiled for `version` means by `name`.
fn find(name: &str, version: i32, flags: u64) -> Option<Ptr> {
    if flags == PER_THREAD
        && let Some(found) = address(&format!("{name}_spt"))
    {
        return Some(found);
    }
    match name {
        "hipGetDeviceProperties" | "hipChooseDevice" if version >= R0600_VERSION => {
            address(&format!("{name}R0600"))
        }
        "hipGetDeviceProperties" | "hipChooseDevice" => address(&format!("{name}R0000")),
        _ => address(name),
    }
}

/// `hipGetProcAddress`.
pub(crate) fn proc_address(
    symbol: Str,
    function: Out<Ptr>,
    version: i32,
    flags: u64,
    status: Out<i32>,
) -> HipResult<()> {
    let out = function.check()?;
    let name = symbol.bytes().and_then(|name| core::str::from_utf8(name).ok());
    let name = name.filter(|name| !name.is_empty()).ok_or(HipError::INVALID_VALUE)?;
    match find(name, version, flags) {
        Some(found) => {
            out.set(found);
            status.set(HIP_GET_PROC_ADDRESS_SUCCESS);
            Ok(())
        }
        None => {
            out.set(Ptr::NULL);
            status.set(HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
            Err(HipError::INVALID_VALUE)
        }
    }
}

/// `hipGetDriverEntryPoint` (HIP 7): unlike `hipGetProcAddress` it refuses flags that HIP does not have.
pub(crate) fn driver_entry_point(
    symbol: Str,
    function: Out<Ptr>,
    flags: u64,
    status: Out<i32>,
) -> HipResult<()> {
    if flags > PER_THREAD {
        return Err(HipError::INVALID_VALUE);
    }
    proc_address(symbol, function, i32::MAX, flags, status)
}

/// `hipGetDriverEntryPoint_spt` (HIP 7).
pub(crate) fn driver_entry_point_spt(
    symbol: Str,
    function: Out<Ptr>,
    flags: u64,
    status: Out<i32>,
) -> HipResult<()> {
    driver_entry_point(symbol, function, if flags == 0 { PER_THREAD } else { flags }, status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_changed_their_meaning_follow_the_version() {
        assert_eq!(find("hipGetDeviceProperties", 600, 0), address("hipGetDevicePropertiesR0600"));
        assert_eq!(find("hipGetDeviceProperties", 500, 0), address("hipGetDevicePropertiesR0000"));
        assert_eq!(find("hipChooseDevice", 60000, 0), address("hipChooseDeviceR0600"));
        assert!(find("hipMemcpy", 600, 0).is_some());
    }

    #[test]
    fn per_thread_functions_are_found_where_there_are_some() {
        assert_eq!(find("hipMemcpy", 600, PER_THREAD), address("hipMemcpy_spt"));
        assert_ne!(find("hipMemcpy", 600, PER_THREAD), address("hipMemcpy"));
        assert_eq!(find("hipMalloc", 600, PER_THREAD), address("hipMalloc"));
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        let (mut function, mut status) = (Ptr(1), -1);
        let result =
            proc_address(Str::of(c"hipNoSuch"), Out::to(&mut function), 600, 0, Out::to(&mut status));
        assert_eq!(
            (result, function, status),
            (Err(HipError::INVALID_VALUE), Ptr::NULL, HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND)
        );
        let result = driver_entry_point(Str::of(c"hipMalloc"), Out::to(&mut function), 3, Out::NULL);
        assert_eq!(result, Err(HipError::INVALID_VALUE));
    }
}
