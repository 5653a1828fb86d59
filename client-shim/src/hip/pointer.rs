//! Functions about the attributes of addresses.

use hipr_abi::*;
use hipr_proto::{HipError, HipResult, op};

use super::context;
use crate::convert::{In, Out, Ptr};
use crate::session::Session;
use crate::stream::mirror::{Origin, RegionInfo};
use crate::thread;
use crate::worker::memory::Allocation;

enum Found {
    Device(Allocation),
    Both(RegionInfo, usize),
    Nothing,
}

fn find(session: &Session, ptr: Ptr) -> Found {
    if let Some(allocation) = session.worker().memory().find(ptr) {
        return Found::Device(allocation);
    }
    match session.streams().mirrors.info(ptr) {
        Some((info, offset, _)) => Found::Both(info, offset),
        None => Found::Nothing,
    }
}

/// `hipPointerGetAttributes`. Memory that HIP was not told of is not an error, as in CUDA.
pub(crate) fn attributes(session: &Session, out: Out<hipPointerAttribute_t>, ptr: Ptr) -> HipResult<()> {
    let out = out.check()?;
    ptr.check()?;
    out.set(match find(session, ptr) {
        Found::Device(allocation) => hipPointerAttribute_t {
            r#type: hipMemoryTypeDevice,
            device: allocation.device,
            devicePointer: ptr.as_mut_ptr(),
            hostPointer: core::ptr::null_mut(),
            isManaged: 0,
            allocationFlags: allocation.flags,
        },
        Found::Both(info, offset) => hipPointerAttribute_t {
            r#type: if info.origin == Origin::Managed { hipMemoryTypeManaged } else { hipMemoryTypeHost },
            device: info.device,
            devicePointer: Ptr::from_wire(session.streams().mirrors.device_address(session.worker(), ptr)?)
                .as_mut_ptr(),
            hostPointer: info.host.offset(offset).as_mut_ptr(),
            isManaged: i32::from(info.origin == Origin::Managed),
            // HIP API: the flags are 0 for managed memory, whatever hipMallocManaged was given.
            allocationFlags: if info.origin == Origin::Managed { 0 } else { info.flags },
        },
        Found::Nothing => hipPointerAttribute_t {
            r#type: hipMemoryTypeUnregistered,
            device: hipInvalidDeviceId,
            ..hipPointerAttribute_t::default()
        },
    });
    Ok(())
}

/// Writes one attribute of an address to `data`, with as many bytes as AMD's runtime writes. For an address that HIP does not know, it writes zeros or
/// an invalid device number, and fails.
///
/// # Errors
/// `hipErrorNotSupported` for an attribute that AMD's devices do not have, `hipErrorInvalidValue` for one that is none, or that the memory does not
/// have.
fn write_attribute(session: &Session, data: Ptr, attribute: i32, ptr: Ptr) -> HipResult<()> {
    let whole = |value: i32| Out::<i32>::at_address(data).set(value);
    let flag = |value: bool| Out::<u8>::at_address(data).set(value.into());
    let pointer = |value: Ptr| Out::<Ptr>::at_address(data).set(value);
    // HIP API: sizes and buffer numbers are written as their lower 32 bits.
    let low = |value: usize| Out::<u32>::at_address(data).set(value as u32);
    let found = find(session, ptr);
    let is_known = !matches!(found, Found::Nothing);
    let is_managed = matches!(&found, Found::Both(info, _) if info.origin == Origin::Managed);
    let (base, len, device) = match &found {
        Found::Device(allocation) => (allocation.base, allocation.size_bytes, allocation.device),
        Found::Both(info, _) => (info.host, info.len, info.device),
        Found::Nothing => (Ptr::NULL, 0, hipInvalidDeviceId),
    };
    match (attribute, found) {
        (HIP_POINTER_ATTRIBUTE_CONTEXT, Found::Device(_)) => pointer(Ptr(context::of(device).0)),
        (HIP_POINTER_ATTRIBUTE_CONTEXT, _) => return Err(HipError::INVALID_VALUE),
        (HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, Found::Device(_)) => whole(hipMemoryTypeDevice),
        (HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, Found::Both(..)) => whole(hipMemoryTypeHost),
        (HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, Found::Nothing) => whole(hipMemoryTypeUnregistered),
        (HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, Found::Device(_)) => pointer(ptr),
        (HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, Found::Both(..)) => {
            pointer(Ptr::from_wire(session.streams().mirrors.device_address(session.worker(), ptr)?));
        }
        (HIP_POINTER_ATTRIBUTE_HOST_POINTER, Found::Both(info, offset)) => pointer(info.host.offset(offset)),
        (HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, _) => pointer(Ptr::NULL),
        (HIP_POINTER_ATTRIBUTE_HOST_POINTER, _) => {
            pointer(Ptr::NULL);
            return Err(HipError::INVALID_VALUE);
        }
        (HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, _) => flag(is_known && session.is_synchronous(ptr)),
        (HIP_POINTER_ATTRIBUTE_BUFFER_ID, _) => low(base.0),
        (HIP_POINTER_ATTRIBUTE_IS_MANAGED, _) => flag(is_managed),
        (HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, _) => whole(device),
        (HIP_POINTER_ATTRIBUTE_IS_LEGACY_HIP_IPC_CAPABLE, found) => {
            whole(matches!(found, Found::Device(_)).into());
        }
        (HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, _) => pointer(base),
        (HIP_POINTER_ATTRIBUTE_RANGE_SIZE, _) => low(len),
        (HIP_POINTER_ATTRIBUTE_MAPPED, _) => flag(is_known),
        (HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS, _) => {
            whole(0);
            return Ok(());
        }
        (HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, Found::Device(allocation)) => {
            let ask = op::PointerGetAttribute { ptr: allocation.base.wire(), attribute, reserved: 0 };
            let data = thread::with_device(allocation.device, || session.worker().ask(&ask))?.data;
            pointer(Ptr::from_wire(session.worker().links().of_device(allocation.device).marked(data)));
        }
        (HIP_POINTER_ATTRIBUTE_CONTEXT..=HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, _) => {
            return Err(HipError::NOT_SUPPORTED);
        }
        _ => return Err(HipError::INVALID_VALUE),
    }
    if is_known { Ok(()) } else { Err(HipError::INVALID_VALUE) }
}

/// `hipPointerGetAttribute`.
pub(crate) fn attribute(session: &Session, data: Ptr, attribute: i32, ptr: Ptr) -> HipResult<()> {
    write_attribute(session, data.check()?, attribute, ptr.check()?)
}

/// `hipPointerSetAttribute`: one attribute can be set, that operations on the memory wait.
pub(crate) fn set_attribute(session: &Session, value: Ptr, attribute: i32, ptr: Ptr) -> HipResult<()> {
    let (value, ptr) = (value.check()?, ptr.check()?);
    if attribute != HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS {
        return Err(HipError::INVALID_VALUE);
    }
    let is_synchronous = match In::<u32>::at_address(value).check()? {
        0 => false,
        1 => true,
        _ => return Err(HipError::INVALID_VALUE),
    };
    if session.set_synchronous(ptr, is_synchronous) { Ok(()) } else { Err(HipError::INVALID_DEVICE_POINTER) }
}

/// `hipDrvPointerGetAttributes`: attributes that an address does not have are no errors.
pub(crate) fn drv_attributes(
    session: &Session,
    count: u32,
    attributes: Out<i32>,
    data: In<Ptr>,
    ptr: Ptr,
) -> HipResult<()> {
    if count == 0 || attributes.is_null() || data.is_null() || ptr.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    for index in 0..count as usize {
        let (Some(attribute), Some(place)) = (attributes.value_at(index), data.at(index)) else { continue };
        let _ = write_attribute(session, place.check()?, attribute, ptr);
    }
    Ok(())
}

/// `hipMemGetAddressRange`.
pub(crate) fn range(session: &Session, base: Out<Ptr>, size: Out<usize>, ptr: Ptr) -> HipResult<()> {
    let (start, len) = match find(session, ptr) {
        Found::Device(allocation) => (allocation.base, allocation.size_bytes),
        Found::Both(info, _) => (info.host, info.len),
        Found::Nothing => return Err(HipError::NOT_FOUND),
    };
    base.set(start);
    size.set(len);
    Ok(())
}

/// `hipMemPtrGetInfo`.
pub(crate) fn size(session: &Session, ptr: Ptr, size: Out<usize>) -> HipResult<()> {
    let out = size.check()?;
    match find(session, ptr.check()?) {
        Found::Device(allocation) => out.set(allocation.size_bytes),
        Found::Both(info, _) => out.set(info.len),
        Found::Nothing => return Err(HipError::INVALID_VALUE),
    }
    Ok(())
}
