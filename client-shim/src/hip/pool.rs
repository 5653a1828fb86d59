//! Functions about memory pools, which exist on the worker; the shim passes on their handles.

use hipr_abi::*;
use hipr_proto::{HipError, HipResult, op};

use crate::convert::{In, Out, Ptr};
use crate::session::Session;
use crate::thread;
use crate::worker::PoolInfo;

/// First attribute with a 64-bit value; the ones before it have 32 bits.
const FIRST_WIDE: hipMemPoolAttr = hipMemPoolAttrReleaseThreshold;
const ATTRIBUTES: core::ops::RangeInclusive<hipMemPoolAttr> =
    hipMemPoolReuseFollowEventDependencies..=hipMemPoolAttrUsedMemHigh;

/// Adds a pool that the worker has named to the table, unless it is one of the program's own.
fn note(session: &Session, pool: u64, device: i32) -> Ptr {
    let pool = Ptr::from_wire(pool);
    session.worker().pools().entry(pool).or_insert(PoolInfo { device, is_own: false });
    pool
}

/// Returns what is known of a pool.
fn info(session: &Session, pool: Ptr) -> HipResult<PoolInfo> {
    session.worker().pools().get(&pool).copied().ok_or(HipError::INVALID_VALUE)
}

/// Checks the number of a device for functions that have one error for all that is wrong.
pub(super) fn check_device(session: &Session, device: i32) -> HipResult<()> {
    session.worker().check_device(device).map_err(|_| HipError::INVALID_VALUE)
}

/// Makes a request that names a device of the worker of that device; which device is current there does not matter.
fn on_worker_of<R>(session: &Session, device: i32, ask: impl FnOnce() -> R) -> R {
    if session.worker().links().are_several() { thread::with_device(device, ask) } else { ask() }
}

/// `hipMemPoolCreate`.
pub(crate) fn create(session: &Session, pool: Out<Ptr>, properties: In<hipMemPoolProps>) -> HipResult<()> {
    let out = pool.check()?;
    let p = properties.check()?;
    check_pool(p.allocType, p.handleTypes, p.location.r#type).map_err(HipError)?;
    check_device(session, p.location.id)?;
    let request = op::MemPoolCreate {
        alloc_type: p.allocType,
        handle_types: p.handleTypes,
        location_type: p.location.r#type,
        location_id: session.worker().there(p.location.id),
        max_size: p.maxSize as u64,
        reserved: [0; 32],
    };
    let pool = on_worker_of(session, p.location.id, || session.worker().create(&request))?;
    let pool = Ptr::from_wire(pool);
    session.worker().pools().insert(pool, PoolInfo { device: p.location.id, is_own: true });
    out.set(pool);
    Ok(())
}

/// `hipMemPoolDestroy`.
pub(crate) fn destroy(session: &Session, pool: Ptr) -> HipResult<()> {
    let request = op::MemPoolDestroy { mem_pool: pool.wire() };
    if !info(session, pool)?.is_own {
        // A device's own pool: the worker refuses.
        return session.worker().ask(&request);
    }
    session.worker().pools().remove(&pool);
    session.worker().destroy(&request, pool.wire())
}

/// `hipMemPoolTrimTo`.
pub(crate) fn trim(session: &Session, pool: Ptr, min_bytes_to_hold: usize) -> HipResult<()> {
    info(session, pool)?;
    session
        .worker()
        .tell(&op::MemPoolTrimTo { mem_pool: pool.wire(), min_bytes_to_hold: min_bytes_to_hold as u64 })
}

/// `hipMemPoolSetAccess`: the pool's own device reads and writes it, always; there is no message that lets another.
pub(crate) fn set_access(
    session: &Session,
    pool: Ptr,
    list: In<hipMemAccessDesc>,
    count: usize,
) -> HipResult<()> {
    let home = info(session, pool)?.device;
    if list.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    for index in 0..count {
        let hipMemAccessDesc { location, flags } = list.at(index).ok_or(HipError::INVALID_VALUE)?;
        if location.r#type != hipMemLocationTypeDevice {
            return Err(HipError::INVALID_VALUE);
        }
        session.worker().check_device(location.id)?;
        match (location.id == home, flags) {
            (true, hipMemAccessFlagsProtRead..=hipMemAccessFlagsProtReadWrite) => {}
            (false, hipMemAccessFlagsProtNone) => {}
            (true, hipMemAccessFlagsProtNone) => return Err(HipError::INVALID_DEVICE),
            (true, _) => return Err(HipError::INVALID_VALUE),
            (false, _) => return Err(HipError::NOT_SUPPORTED),
        }
    }
    Ok(())
}

/// `hipMemPoolGetAccess`.
pub(crate) fn access(
    session: &Session,
    flags: Out<i32>,
    pool: Ptr,
    location: In<hipMemLocation>,
) -> HipResult<()> {
    let (out, location) = (flags.check()?, location.check()?);
    let home = info(session, pool)?.device;
    if location.r#type != hipMemLocationTypeDevice {
        return Err(HipError::INVALID_VALUE);
    }
    check_device(session, location.id)?;
    out.set(if location.id == home { hipMemAccessFlagsProtReadWrite } else { hipMemAccessFlagsProtNone });
    Ok(())
}

/// `hipMemPoolSetAttribute`.
pub(crate) fn set_attribute(session: &Session, pool: Ptr, attr: i32, value: Ptr) -> HipResult<()> {
    info(session, pool)?;
    let place = value.check()?;
    if !ATTRIBUTES.contains(&attr) {
        return Err(HipError::INVALID_VALUE);
    }
    let value = if attr < FIRST_WIDE {
        u64::from(In::<u32>::at_address(place).check()?)
    } else {
        In::<u64>::at_address(place).check()?
    };
    check_pool_attribute(attr, value).map_err(HipError)?;
    session.worker().tell(&op::MemPoolSetAttribute { mem_pool: pool.wire(), attr, reserved: 0, value })
}

/// `hipMemPoolGetAttribute`.
pub(crate) fn attribute(session: &Session, pool: Ptr, attr: i32, value: Ptr) -> HipResult<()> {
    info(session, pool)?;
    let place = value.check()?;
    if !ATTRIBUTES.contains(&attr) {
        return Err(HipError::INVALID_VALUE);
    }
    let value = session.worker().ask(&op::MemPoolGetAttribute { mem_pool: pool.wire(), attr })?.value;
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
    session.worker().check_device(device)?;
    let request = op::DeviceGetDefaultMemPool { device: session.worker().there(device) };
    let reply = on_worker_of(session, device, || session.worker().ask(&request))?;
    out.set(note(session, reply.mem_pool, device));
    Ok(())
}

/// `hipDeviceGetMemPool`.
pub(crate) fn current(session: &Session, pool: Out<Ptr>, device: i32) -> HipResult<()> {
    let out = pool.check()?;
    check_device(session, device)?;
    let request = op::DeviceGetMemPool { device: session.worker().there(device) };
    let reply = on_worker_of(session, device, || session.worker().ask(&request))?;
    out.set(note(session, reply.mem_pool, device));
    Ok(())
}

/// `hipDeviceSetMemPool`.
pub(crate) fn set_current(session: &Session, device: i32, pool: Ptr) -> HipResult<()> {
    check_device(session, device)?;
    if info(session, pool)?.device != device {
        return Err(HipError::INVALID_DEVICE);
    }
    let device = session.worker().there(device);
    session.worker().tell(&op::DeviceSetMemPool { device, reserved: 0, mem_pool: pool.wire() })
}
