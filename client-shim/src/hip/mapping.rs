//! Functions of virtual memory management: addresses are reserved, physical memory is created, and one is mapped at the other.
//!
//! What the program can have done wrong is judged here, so that only what makes something is waited for.

use hipr_abi::*;
use hipr_proto::{Features, HipError, HipResult, op};

use super::pool::check_device;
use super::{allocation, shareable};
use crate::convert::{In, Out, Ptr};
use crate::host_log;
use crate::session::Session;
use crate::thread;
use crate::worker::mappings::Properties;
use crate::worker::memory::Kind;

/// Largest number of devices to which `hipMemSetAccess` gives access in one call.
const DEVICES_MAX: usize = op::DEVICES_MAX as usize;

/// Fails where the worker maps nothing.
fn check_supported(session: &Session) -> HipResult<()> {
    let has = session.worker().features().contains(Features::MAPPINGS);
    if has { Ok(()) } else { Err(HipError::NOT_SUPPORTED) }
}

/// Checks what is to be known of memory before it is made: it is a device's, which is there.
fn check_properties(session: &Session, properties: &hipMemAllocationProp) -> HipResult<()> {
    let hipMemAllocationProp { r#type, location, .. } = *properties;
    let is_of_device = matches!(r#type, hipMemAllocationTypePinned | hipMemAllocationTypeUncached)
        && location.r#type == hipMemLocationTypeDevice;
    if is_of_device { check_device(session, location.id) } else { Err(HipError::INVALID_VALUE) }
}

/// Returns of what sizes and addresses are multiples.
fn granularity_of(session: &Session, device: i32) -> HipResult<usize> {
    let granularity =
        session.worker().ask(&op::MemGranularity { device: session.worker().there(device) })?.granularity;
    usize::try_from(granularity).ok().filter(|bytes| *bytes > 0).ok_or(HipError::UNKNOWN)
}

/// Checks that a size is a multiple of a device's granularity, and not 0.
fn check_size(session: &Session, size: usize, device: i32) -> HipResult<()> {
    let is_whole = size > 0 && size.is_multiple_of(granularity_of(session, device)?);
    if is_whole { Ok(()) } else { Err(HipError::INVALID_VALUE) }
}

/// `hipMemGetAllocationGranularity`: the least is what is recommended.
pub(crate) fn granularity(
    session: &Session,
    granularity: Out<usize>,
    properties: In<hipMemAllocationProp>,
    option: hipMemAllocationGranularity_flags,
) -> HipResult<()> {
    check_supported(session)?;
    let (out, properties) = (granularity.check()?, properties.check()?);
    if !matches!(option, hipMemAllocationGranularityMinimum | hipMemAllocationGranularityRecommended) {
        return Err(HipError::INVALID_VALUE);
    }
    check_properties(session, &properties)?;
    out.set(granularity_of(session, properties.location.id)?);
    Ok(())
}

/// `hipMemAddressReserve`.
pub(crate) fn reserve(
    session: &Session,
    ptr: Out<Ptr>,
    size: usize,
    alignment: usize,
    wanted: Ptr,
    flags: u64,
) -> HipResult<()> {
    check_supported(session)?;
    let out = ptr.check()?;
    if flags != 0 || !(alignment == 0 || alignment.is_power_of_two()) {
        return Err(HipError::INVALID_VALUE);
    }
    check_size(session, size, thread::device())?;
    let request =
        op::AddressReserve { size: size as u64, alignment: alignment as u64, wanted: wanted.wire() };
    let base = Ptr::of_memory(session.worker().ask(&request)?.device_ptr, request.size)?;
    session.worker().mappings().add_range(base, size);
    out.set(base);
    Ok(())
}

/// `hipMemAddressFree`.
pub(crate) fn free(session: &Session, ptr: Ptr, size: usize) -> HipResult<()> {
    check_supported(session)?;
    session.worker().mappings().remove_range(ptr.check()?, size)?;
    session.worker().tell(&op::AddressFree { device_ptr: ptr.wire(), size: size as u64 })
}

/// `hipMemCreate`.
pub(crate) fn create(
    session: &Session,
    handle: Out<Ptr>,
    size: usize,
    properties: In<hipMemAllocationProp>,
    flags: u64,
) -> HipResult<()> {
    check_supported(session)?;
    let (out, properties) = (handle.check()?, properties.check()?);
    if flags != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    check_properties(session, &properties)?;
    if !matches!(properties.requestedHandleType, hipMemHandleTypeNone | hipMemHandleTypePosixFileDescriptor) {
        return Err(HipError::NOT_SUPPORTED);
    }
    let device = properties.location.id;
    check_size(session, size, device)?;
    session.worker().make_room(size as u64)?;
    let there = session.worker().there(device);
    let request = op::PhysicalCreate { size: size as u64, device: there, reserved: 0 };
    let physical = Ptr::from_wire(session.worker().ask(&request)?.physical);
    let known = Properties {
        allocation_type: properties.r#type,
        handle_type: properties.requestedHandleType,
        device,
        flags: properties.allocFlags,
    };
    session.worker().mappings().add_physical(physical, size, known);
    out.set(physical);
    Ok(())
}

/// Gives physical memory back to the worker.
fn give_back(session: &Session, physical: Ptr) -> HipResult<()> {
    session.worker().tell(&op::PhysicalRelease { physical: physical.wire() })
}

/// `hipMemRelease`.
pub(crate) fn release(session: &Session, handle: Ptr) -> HipResult<()> {
    check_supported(session)?;
    let is_unused = session.worker().mappings().release(handle.check()?)?;
    if is_unused { give_back(session, handle) } else { Ok(()) }
}

/// `hipMemRetainAllocationHandle`.
pub(crate) fn retain(session: &Session, handle: Out<Ptr>, ptr: Ptr) -> HipResult<()> {
    check_supported(session)?;
    let out = handle.check()?;
    out.set(session.worker().mappings().retain(ptr.check()?)?);
    Ok(())
}

/// `hipMemGetAllocationPropertiesFromHandle`.
pub(crate) fn properties(
    session: &Session,
    properties: Out<hipMemAllocationProp>,
    handle: Ptr,
) -> HipResult<()> {
    check_supported(session)?;
    let out = properties.check()?;
    let Properties { allocation_type, handle_type, device, flags } =
        session.worker().mappings().properties(handle.check()?)?;
    out.set(hipMemAllocationProp {
        r#type: allocation_type,
        requestedHandleType: handle_type,
        location: hipMemLocation { r#type: hipMemLocationTypeDevice, id: device },
        win32HandleMetaData: core::ptr::null_mut(),
        allocFlags: flags,
    });
    Ok(())
}

/// `hipMemMap`: all of the memory, as HIP has no offset yet.
pub(crate) fn map(
    session: &Session,
    ptr: Ptr,
    size: usize,
    offset: usize,
    handle: Ptr,
    flags: u64,
) -> HipResult<()> {
    check_supported(session)?;
    if offset != 0 || flags != 0 || size == 0 {
        return Err(HipError::INVALID_VALUE);
    }
    let device = session.worker().mappings().map(ptr.check()?, size, handle.check()?)?;
    let request = op::MemMap { device_ptr: ptr.wire(), size: size as u64, physical: handle.wire() };
    session.worker().tell(&request)?;
    allocation::note_kind(session, ptr, size, Kind::Mapped, device, 0);
    Ok(())
}

/// `hipMemSetAccess`. Taking access away waits for what the device has to do.
pub(crate) fn set_access(
    session: &Session,
    ptr: Ptr,
    size: usize,
    list: In<hipMemAccessDesc>,
    count: usize,
) -> HipResult<()> {
    check_supported(session)?;
    ptr.check()?;
    if size == 0 || count == 0 || count > DEVICES_MAX {
        return Err(HipError::INVALID_VALUE);
    }
    let mut access = Vec::new();
    for index in 0..count {
        let hipMemAccessDesc { location, flags } = list.at(index).ok_or(HipError::INVALID_VALUE)?;
        let is_access = (hipMemAccessFlagsProtNone..=hipMemAccessFlagsProtReadWrite).contains(&flags);
        if location.r#type != hipMemLocationTypeDevice || !is_access {
            return Err(HipError::INVALID_VALUE);
        }
        check_device(session, location.id)?;
        access.push((location.id, flags));
    }
    session.worker().mappings().set_access(ptr, size, &access)?;
    if access.iter().any(|(_, flags)| *flags == hipMemAccessFlagsProtNone) {
        session.wait_for_host_functions()?;
    }
    access.into_iter().try_for_each(|(device, flags)| {
        session.worker().tell(&op::MemSetAccess {
            device_ptr: ptr.wire(),
            size: size as u64,
            device: session.worker().there(device),
            access: flags.cast_unsigned(),
        })
    })
}

/// `hipMemGetAccess`.
pub(crate) fn access(
    session: &Session,
    flags: Out<u64>,
    location: In<hipMemLocation>,
    ptr: Ptr,
) -> HipResult<()> {
    check_supported(session)?;
    let (out, location) = (flags.check()?, location.check()?);
    if location.r#type != hipMemLocationTypeDevice {
        return Err(HipError::INVALID_VALUE);
    }
    check_device(session, location.id)?;
    let access = session.worker().mappings().access(ptr.check()?, location.id)?;
    out.set(u64::from(access.cast_unsigned()));
    Ok(())
}

/// `hipMemUnmap`: behind all that the device has to do.
pub(crate) fn unmap(session: &Session, ptr: Ptr, size: usize) -> HipResult<()> {
    check_supported(session)?;
    ptr.check()?;
    session.wait_for_host_functions()?;
    let unused = session.worker().mappings().unmap(ptr, size)?;
    session.worker().memory().remove(ptr);
    host_log::freed(ptr, Ok(()))?;
    session.worker().tell(&op::MemUnmap { device_ptr: ptr.wire(), size: size as u64 })?;
    unused.map_or(Ok(()), |physical| give_back(session, physical))
}

/// `hipMemExportToShareableHandle`: a file descriptor by which any process has the memory.
pub(crate) fn export(
    session: &Session,
    out: Ptr,
    handle: Ptr,
    handle_type: hipMemAllocationHandleType,
    flags: u64,
) -> HipResult<()> {
    check_supported(session)?;
    let out = Out::<i32>::at_address(out.check()?);
    let properties = session.worker().mappings().properties(handle.check()?)?;
    let is_file = handle_type == hipMemHandleTypePosixFileDescriptor;
    if flags != 0 || !is_file || properties.handle_type != handle_type {
        return Err(HipError::INVALID_VALUE);
    }
    session.streams().share();
    let name = session.worker().ask(&op::PhysicalExport { physical: handle.wire() })?.handle;
    out.set(shareable::file_of(shareable::Shared::Physical, &name)?);
    Ok(())
}

/// `hipMemImportFromShareableHandle`.
pub(crate) fn import(
    session: &Session,
    handle: Out<Ptr>,
    shareable: Ptr,
    handle_type: hipMemAllocationHandleType,
) -> HipResult<()> {
    check_supported(session)?;
    let out = handle.check()?;
    if handle_type != hipMemHandleTypePosixFileDescriptor {
        return Err(HipError::INVALID_VALUE);
    }
    let handle = shareable::name_in(shareable::Shared::Physical, shareable)?;
    session.streams().share();
    // How large it is the worker finds out.
    session.worker().make_room(u64::MAX)?;
    let reply = session.worker().ask(&op::PhysicalImport { handle })?;
    let size = usize::try_from(reply.size).map_err(|_| HipError::OUT_OF_MEMORY)?;
    let physical = Ptr::from_wire(reply.physical);
    let properties = Properties {
        allocation_type: hipMemAllocationTypePinned,
        handle_type,
        device: thread::device(),
        flags: [0; 4],
    };
    session.worker().mappings().add_physical(physical, size, properties);
    out.set(physical);
    Ok(())
}
