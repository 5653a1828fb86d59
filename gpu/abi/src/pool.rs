//! What hipr refuses of memory pools: kinds of pools, and values of attributes.

#![allow(non_upper_case_globals, reason = "the names are those of the C headers, in patterns as well")]

use core::ffi::c_int;

use crate::{
    hipErrorInvalidValue, hipErrorNotSupported, hipMemAllocationTypePinned, hipMemHandleTypeNone,
    hipMemLocationTypeDevice, hipMemPoolAttrReleaseThreshold, hipMemPoolAttrReservedMemHigh,
    hipMemPoolAttrUsedMemHigh, hipMemPoolReuseAllowInternalDependencies, hipMemPoolReuseAllowOpportunistic,
    hipMemPoolReuseFollowEventDependencies,
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

/// Checks whether an attribute of a memory pool can be set to a value: reuse and the release threshold to any, a high-water mark to 0.
///
/// # Errors
/// `hipErrorInvalidValue`: there is no such attribute, it is only read, or the value is wrong.
pub const fn check_pool_attribute(attribute: c_int, value: u64) -> Result<(), c_int> {
    match (attribute, value) {
        (
            hipMemPoolReuseFollowEventDependencies
            | hipMemPoolReuseAllowOpportunistic
            | hipMemPoolReuseAllowInternalDependencies
            | hipMemPoolAttrReleaseThreshold,
            _,
        )
        | (hipMemPoolAttrReservedMemHigh | hipMemPoolAttrUsedMemHigh, 0) => Ok(()),
        _ => Err(hipErrorInvalidValue),
    }
}
