//! Memory pools that hipr refuses to create, and the error for each.

use core::ffi::c_int;

use crate::{
    hipErrorInvalidValue, hipErrorNotSupported, hipMemAllocationTypePinned, hipMemHandleTypeNone,
    hipMemLocationTypeDevice,
};

/// Checks the fields of `hipMemPoolProps` that need no device to be judged. Pools shared between processes are refused: those would be
/// processes beside the worker, not beside the program.
///
/// # Errors
/// `hipErrorInvalidValue`: the pool is not of a device's memory. `hipErrorNotSupported`: it would be shared.
pub const fn check_pool(
    allocation_type: c_int,
    handle_types: c_int,
    location_type: c_int,
) -> Result<(), c_int> {
    if allocation_type != hipMemAllocationTypePinned || location_type != hipMemLocationTypeDevice {
        return Err(hipErrorInvalidValue);
    }
    if handle_types != hipMemHandleTypeNone { Err(hipErrorNotSupported) } else { Ok(()) }
}
