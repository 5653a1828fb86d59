//! Contexts, an interface that HIP keeps for programs that come from CUDA's driver API. There is one per device, the
//! primary one, and making it current makes its device current.

use hipr_abi::{hipFuncCachePreferEqual, hipFuncCachePreferNone};
use hipr_proto::{HipError, HipResult};

use super::device;
use crate::convert::{Context, Out};
use crate::session::Session;
use crate::thread;

/// Number that, plus the device's number, is the handle of a context; no address has such values.
const BASE: usize = 0xc0;

/// Returns the context of a device.
pub(super) fn of(device: i32) -> Context {
    Context(BASE + usize::try_from(device).unwrap_or(0))
}

fn device_of(session: &Session, context: Context) -> HipResult<i32> {
    let device = context.0.checked_sub(BASE).and_then(|device| i32::try_from(device).ok());
    let device = device.ok_or(HipError::INVALID_CONTEXT)?;
    session.worker().check_device(device).map_err(|_| HipError::INVALID_CONTEXT)?;
    Ok(device)
}

/// `hipCtxCreate`: puts the device's context on the thread's list, as AMD's runtime does: the current device stays as it is.
pub(crate) fn create(session: &Session, context: Out<Context>, _flags: u32, device: i32) -> HipResult<()> {
    let out = context.check()?;
    session.worker().check_device(device).map_err(|_| HipError::INVALID_VALUE)?;
    thread::push_device(device);
    out.set(of(device));
    Ok(())
}

/// `hipCtxDestroy`: a primary context stays; it is taken from the thread's list if it is the last there.
pub(crate) fn destroy(session: &Session, context: Context) -> HipResult<()> {
    if context.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    let device = device_of(session, context)?;
    if thread::last_pushed() == Some(device) {
        thread::pop_device();
    }
    Ok(())
}

/// `hipCtxGetCurrent`.
pub(crate) fn current(_session: &Session, context: Out<Context>) -> HipResult<()> {
    context.check()?.set(of(thread::device()));
    Ok(())
}

/// `hipCtxSetCurrent`: takes the place of the last context in the thread's list; no context leaves the device as it is.
pub(crate) fn set_current(session: &Session, context: Context) -> HipResult<()> {
    let device = if context.is_null() { None } else { Some(device_of(session, context)?) };
    thread::pop_device();
    if let Some(device) = device {
        session.uses_device(device);
        thread::set_device(device);
        thread::push_device(device);
    }
    Ok(())
}

/// `hipCtxPushCurrent`.
pub(crate) fn push(session: &Session, context: Context) -> HipResult<()> {
    let device = device_of(session, context)?;
    session.uses_device(device);
    thread::set_device(device);
    thread::push_device(device);
    Ok(())
}

/// `hipCtxPopCurrent`: takes the last context from the thread's list. As with AMD's runtime the current device stays as it is.
pub(crate) fn pop(_session: &Session, context: Out<Context>) -> HipResult<()> {
    let popped = thread::pop_device().ok_or(HipError::INVALID_CONTEXT)?;
    context.set(of(popped));
    Ok(())
}

/// `hipCtxGetDevice`.
pub(crate) fn current_device(session: &Session, device: Out<i32>) -> HipResult<()> {
    device::current(session, device)
}

/// `hipCtxSetCacheConfig`.
pub(crate) fn set_cache_config(session: &Session, cache_config: i32) -> HipResult<()> {
    if !(hipFuncCachePreferNone..=hipFuncCachePreferEqual).contains(&cache_config) {
        return Err(HipError::INVALID_VALUE);
    }
    not_offered(session, cache_config)
}

/// `hipCtxGetApiVersion`, `hipCtxGetFlags`, `hipCtxGetCacheConfig`, `hipCtxSetSharedMemConfig`, `hipCtxSynchronize`: HIP has them for programs
/// that are compiled for NVIDIA's devices, and says that AMD's do not offer them.
pub(crate) fn not_offered<T>(_session: &Session, _parameters: T) -> HipResult<()> {
    Err(HipError::NOT_SUPPORTED)
}

/// `hipDevicePrimaryCtxRetain`.
pub(crate) fn retain(session: &Session, context: Out<Context>, device: i32) -> HipResult<()> {
    session.worker().check_device(device)?;
    context.check()?.set(of(device));
    Ok(())
}

/// `hipDevicePrimaryCtxRelease`.
pub(crate) fn release(session: &Session, device: i32) -> HipResult<()> {
    session.worker().check_device(device)
}

/// `hipDevicePrimaryCtxGetState`: active from the first allocation on. Either result can be left out.
pub(crate) fn primary_state(
    session: &Session,
    device: i32,
    flags: Out<u32>,
    active: Out<i32>,
) -> HipResult<()> {
    session.worker().check_device(device)?;
    flags.set(0);
    active.set(i32::from(session.worker().memory().was_used(device)));
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
