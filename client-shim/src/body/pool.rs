//! Memory pools: the worker has them, the shim hands their handles on.

use hipr_proto::{HipError, HipResult, op};

use crate::convert::{In, Out, Ptr};
use crate::session::Session;
use crate::types::MemPoolProps;

/// `hipMemPoolAttrReleaseThreshold`: from here on values have 64 bits, before it 32.
const FIRST_WIDE: i32 = 4;
const ATTRIBUTES: core::ops::RangeInclusive<i32> = 1..=8;

/// `hipMemPoolCreate`.
pub(crate) fn create(session: &Session, pool: Out<Ptr>, properties: In<MemPoolProps>) -> HipResult<()> {
    let out = pool.check()?;
    let p = properties.check()?;
    let reply = session.ask(&op::MemPoolCreate {
        alloc_type: p.alloc_type,
        handle_types: p.handle_types,
        location_type: p.location.kind,
        location_id: p.location.id,
        max_size: p.max_size as u64,
        reserved: [0; 32],
    })?;
    out.set(Ptr::from_wire(reply.mem_pool));
    Ok(())
}

/// `hipMemPoolSetAttribute`.
pub(crate) fn set_attribute(session: &Session, pool: Ptr, attr: i32, value: Ptr) -> HipResult<()> {
    pool.check()?;
    let place = value.check()?;
    if !ATTRIBUTES.contains(&attr) {
        return Err(HipError::INVALID_VALUE);
    }
    let value = if attr < FIRST_WIDE {
        u64::from(In::<u32>::at_address(place).check()?)
    } else {
        In::<u64>::at_address(place).check()?
    };
    session.ask(&op::MemPoolSetAttribute { mem_pool: pool.wire(), attr, reserved: 0, value })
}

/// `hipMemPoolGetAttribute`.
pub(crate) fn attribute(session: &Session, pool: Ptr, attr: i32, value: Ptr) -> HipResult<()> {
    pool.check()?;
    let place = value.check()?;
    if !ATTRIBUTES.contains(&attr) {
        return Err(HipError::INVALID_VALUE);
    }
    let value = session.ask(&op::MemPoolGetAttribute { mem_pool: pool.wire(), attr })?.value;
    if attr < FIRST_WIDE {
        Out::<u32>::at_address(place).set(u32::try_from(value).unwrap_or(u32::MAX));
    } else {
        Out::<u64>::at_address(place).set(value);
    }
    Ok(())
}

/// `hipDeviceGetDefaultMemPool`.
pub(crate) fn default(session: &Session, pool: Out<Ptr>, device: i32) -> HipResult<()> {
    let out = pool.check()?;
    session.check_device(device)?;
    out.set(Ptr::from_wire(session.ask(&op::DeviceGetDefaultMemPool { device })?.mem_pool));
    Ok(())
}

/// `hipDeviceGetMemPool`.
pub(crate) fn current(session: &Session, pool: Out<Ptr>, device: i32) -> HipResult<()> {
    let out = pool.check()?;
    session.check_device(device)?;
    out.set(Ptr::from_wire(session.ask(&op::DeviceGetMemPool { device })?.mem_pool));
    Ok(())
}

/// `hipDeviceSetMemPool`.
pub(crate) fn set_current(session: &Session, device: i32, pool: Ptr) -> HipResult<()> {
    session.check_device(device)?;
    pool.check()?;
    session.tell(&op::DeviceSetMemPool { device, reserved: 0, mem_pool: pool.wire() })
}
