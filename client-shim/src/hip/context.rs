//! Contexts, an interface that HIP keeps for programs that come from CUDA's driver API. There is one per device, the
//! primary one, and making it current makes its device current.

use hipr_proto::{HipError, HipResult};

use super::device;
use crate::convert::{Context, Out};
use crate::session::Session;
use crate::thread;

/// Number that, plus the device's number, is the handle of a context; no address has such values.
const BASE: usize = 0xc0;
/// The version that `hipCtxGetApiVersion` returns.
const API_VERSION: i32 = 4;

fn of(device: i32) -> Context {
    Context(BASE + usize::try_from(device).unwrap_or(0))
}

fn device_of(session: &Session, context: Context) -> HipResult<i32> {
    let device = context.0.checked_sub(BASE).and_then(|device| i32::try_from(device).ok());
    let device = device.ok_or(HipError::INVALID_CONTEXT)?;
    session.worker().check_device(device).map_err(|_| HipError::INVALID_CONTEXT)?;
    Ok(device)
}

/// `hipCtxCreate`: the device's context, made current.
pub(crate) fn create(session: &Session, context: Out<Context>, _flags: u32, device: i32) -> HipResult<()> {
    let out = context.check()?;
    session.worker().check_device(device)?;
    session.uses_device(device);
    thread::push_device(device);
    out.set(of(device));
    Ok(())
}

/// `hipCtxDestroy`: a primary context stays.
pub(crate) fn destroy(session: &Session, context: Context) -> HipResult<()> {
    if context.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    device_of(session, context).map(drop)
}

/// `hipCtxGetCurrent`.
pub(crate) fn current(_session: &Session, context: Out<Context>) -> HipResult<()> {
    context.check()?.set(of(thread::device()));
    Ok(())
}

/// `hipCtxSetCurrent`; no context leaves the device as it is.
pub(crate) fn set_current(session: &Session, context: Context) -> HipResult<()> {
    if context.is_null() {
        return Ok(());
    }
    let device = device_of(session, context)?;
    session.uses_device(device);
    thread::set_device(device);
    Ok(())
}

/// `hipCtxPushCurrent`.
pub(crate) fn push(session: &Session, context: Context) -> HipResult<()> {
    let device = device_of(session, context)?;
    session.uses_device(device);
    thread::push_device(device);
    Ok(())
}

/// `hipCtxPopCurrent`: gives the context that was current; the one before it is current again.
pub(crate) fn pop(_session: &Session, context: Out<Context>) -> HipResult<()> {
    let was = of(thread::device());
    if !thread::pop_device() {
        return Err(HipError::INVALID_CONTEXT);
    }
    context.set(was);
    Ok(())
}

/// `hipCtxGetDevice`.
pub(crate) fn current_device(session: &Session, device: Out<i32>) -> HipResult<()> {
    device::current(session, device)
}

/// `hipCtxGetApiVersion`.
pub(crate) fn api_version(session: &Session, context: Context, version: Out<i32>) -> HipResult<()> {
    let out = version.check()?;
    device_of(session, context)?;
    out.set(API_VERSION);
    Ok(())
}

/// `hipCtxGetFlags`.
pub(crate) fn flags(session: &Session, flags: Out<u32>) -> HipResult<()> {
    device::flags(session, flags)
}

/// `hipDevicePrimaryCtxRetain`.
pub(crate) fn retain(session: &Session, context: Out<Context>, device: i32) -> HipResult<()> {
    let out = context.check()?;
    session.worker().check_device(device)?;
    out.set(of(device));
    Ok(())
}

/// `hipDevicePrimaryCtxRelease`.
pub(crate) fn release(session: &Session, device: i32) -> HipResult<()> {
    session.worker().check_device(device)
}

/// `hipDevicePrimaryCtxGetState`.
pub(crate) fn primary_state(
    session: &Session,
    device: i32,
    flags: Out<u32>,
    active: Out<i32>,
) -> HipResult<()> {
    session.worker().check_device(device)?;
    let (flags, active) = (flags.check()?, active.check()?);
    flags.set(0);
    active.set(i32::from(device == thread::device()));
    Ok(())
}

/// `hipDevicePrimaryCtxSetFlags`: it is in use from the start.
pub(crate) fn set_flags(session: &Session, device: i32, _flags: u32) -> HipResult<()> {
    session.worker().check_device(device)?;
    Err(HipError::CONTEXT_ALREADY_IN_USE)
}

/// `hipCtxEnablePeerAccess`, `hipCtxDisablePeerAccess`: have no effect in HIP; `hipDeviceEnablePeerAccess` has.
pub(crate) fn peer_access<T>(_session: &Session, _parameters: T) -> HipResult<()> {
    Ok(())
}
