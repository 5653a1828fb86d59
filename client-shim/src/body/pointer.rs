//! What an address is.

use hipr_proto::{HipError, HipResult, op};

use crate::convert::{Out, Ptr};
use crate::memory::Allocation;
use crate::mirror::{Origin, RegionInfo};
use crate::session::Session;
use crate::types::PointerAttributes;

/// `hipMemoryTypeUnregistered`, `Host`, `Device`, `Managed`.
const UNREGISTERED: i32 = 0;
const HOST: i32 = 1;
const DEVICE: i32 = 2;
const MANAGED: i32 = 3;

enum Found {
    Device(Allocation),
    Both(RegionInfo, usize),
    Nothing,
}

fn find(session: &Session, ptr: Ptr) -> Found {
    if let Some(allocation) = session.memory().find(ptr) {
        return Found::Device(allocation);
    }
    match session.mirrors().info(ptr) {
        Some((info, offset, _)) => Found::Both(info, offset),
        None => Found::Nothing,
    }
}

/// `hipPointerGetAttributes`. Memory that HIP was not told of is not an error, as in CUDA.
pub(crate) fn attributes(session: &Session, out: Out<PointerAttributes>, ptr: Ptr) -> HipResult<()> {
    let out = out.check()?;
    ptr.check()?;
    out.set(match find(session, ptr) {
        Found::Device(allocation) => PointerAttributes {
            kind: DEVICE,
            device: allocation.device,
            device_pointer: ptr,
            host_pointer: Ptr::NULL,
            is_managed: 0,
            allocation_flags: allocation.flags,
        },
        Found::Both(info, offset) => PointerAttributes {
            kind: if info.origin == Origin::Managed { MANAGED } else { HOST },
            device: info.device,
            device_pointer: Ptr::from_wire(session.mirrors().device_address(session, ptr)?),
            host_pointer: info.host.offset(offset),
            is_managed: i32::from(info.origin == Origin::Managed),
            allocation_flags: info.flags,
        },
        Found::Nothing => {
            PointerAttributes { kind: UNREGISTERED, device: -2, ..PointerAttributes::default() }
        }
    });
    Ok(())
}

/// Writes one attribute where `data` points to: a value of the type that the attribute has.
fn write_attribute(session: &Session, data: Ptr, attribute: i32, ptr: Ptr) -> HipResult<()> {
    let whole = |value: i32| Out::<i32>::at_address(data).set(value);
    let pointer = |value: Ptr| Out::<Ptr>::at_address(data).set(value);
    let found = find(session, ptr);
    // hipPointer_attribute.
    match (attribute, found) {
        (2, Found::Device(_)) => whole(DEVICE),
        (2, Found::Both(info, _)) => whole(if info.origin == Origin::Managed { MANAGED } else { HOST }),
        (3, Found::Device(_)) => pointer(ptr),
        (3, Found::Both(..)) => pointer(Ptr::from_wire(session.mirrors().device_address(session, ptr)?)),
        (4, Found::Both(info, offset)) => pointer(info.host.offset(offset)),
        (7, Found::Device(allocation)) => pointer(allocation.base),
        (7, Found::Both(info, _)) => pointer(info.host),
        (8, Found::Device(_)) => whole(0),
        (8, Found::Both(info, _)) => whole(i32::from(info.origin == Origin::Managed)),
        (9, Found::Device(allocation)) => whole(allocation.device),
        (9, Found::Both(info, _)) => whole(info.device),
        (11, Found::Device(allocation)) => pointer(allocation.base),
        (11, Found::Both(info, _)) => pointer(info.host),
        (12, Found::Device(allocation)) => pointer(Ptr(allocation.size_bytes)),
        (12, Found::Both(info, _)) => pointer(Ptr(info.len)),
        (13, Found::Device(_) | Found::Both(..)) => whole(1),
        (17, Found::Device(allocation)) => {
            let ask = op::PointerGetAttribute { ptr: allocation.base.wire(), attribute, reserved: 0 };
            pointer(Ptr::from_wire(session.ask(&ask)?.data));
        }
        (1..=17, _) => return Err(HipError::INVALID_VALUE),
        _ => return Err(HipError::NOT_SUPPORTED),
    }
    Ok(())
}

/// `hipPointerGetAttribute`.
pub(crate) fn attribute(session: &Session, data: Ptr, attribute: i32, ptr: Ptr) -> HipResult<()> {
    write_attribute(session, data.check()?, attribute, ptr.check()?)
}

/// `hipDrvPointerGetAttributes`: attributes that an address does not have are null, not errors.
pub(crate) fn drv_attributes(
    session: &Session,
    count: u32,
    attributes: Out<i32>,
    data: crate::convert::In<Ptr>,
    ptr: Ptr,
) -> HipResult<()> {
    if count == 0 || attributes.is_null() || data.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    for index in 0..count as usize {
        let (Some(attribute), Some(place)) = (attributes.value_at(index), data.at(index)) else { continue };
        if write_attribute(session, place.check()?, attribute, ptr).is_err() {
            Out::<i32>::at_address(place).set(0);
        }
    }
    Ok(())
}

/// `hipMemGetAddressRange`.
pub(crate) fn range(session: &Session, base: Out<Ptr>, size: Out<usize>, ptr: Ptr) -> HipResult<()> {
    let (start, len) = match find(session, ptr.check()?) {
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
