//! Functions about pinned, registered and managed memory (see `mirror` for how it is kept on both sides).

use hipr_abi::*;
use hipr_proto::{HipError, HipResult};

use crate::convert::{Out, Ptr};
use crate::host_log;
use crate::session::Session;
use crate::stream::mirror::Origin;

/// All flags that pinned memory may have.
const HOST_FLAGS: u32 = hipHostMallocPortable
    | hipHostMallocMapped
    | hipHostMallocWriteCombined
    | hipHostMallocUncached
    | hipHostMallocNumaUser
    | hipHostMallocCoherent
    | hipHostMallocNonCoherent;
/// All flags that registered memory may have.
const REGISTER_FLAGS: u32 =
    hipHostRegisterPortable | hipHostRegisterMapped | hipHostRegisterIoMemory | hipHostRegisterReadOnly;

/// `hipHostMalloc`, `hipHostAlloc`, `hipExtHostAlloc`.
pub(crate) fn malloc(session: &Session, ptr: Out<Ptr>, size: usize, flags: u32) -> HipResult<()> {
    let out = ptr.check()?;
    if flags & !HOST_FLAGS != 0
        || flags & (hipHostMallocCoherent | hipHostMallocNonCoherent)
            == hipHostMallocCoherent | hipHostMallocNonCoherent
    {
        return Err(HipError::INVALID_VALUE);
    }
    if size == 0 {
        out.set(Ptr::NULL);
        return Ok(());
    }
    let pinned = session.streams().mirrors.allocate_pinned(session.worker(), size, flags)?;
    host_log::allocated(pinned, size);
    out.set(pinned);
    Ok(())
}

/// `hipMallocHost`, `hipMemAllocHost`.
pub(crate) fn malloc_plain(session: &Session, ptr: Out<Ptr>, size: usize) -> HipResult<()> {
    malloc(session, ptr, size, 0)
}

/// `hipHostFree`, `hipFreeHost`.
pub(crate) fn free(session: &Session, ptr: Ptr) -> HipResult<()> {
    session.wait_for_host_functions()?;
    let (mirrors, worker) = (&session.streams().mirrors, session.worker());
    if ptr.is_null()
        || mirrors.free(worker, ptr, Origin::Pinned)?
        || mirrors.free(worker, ptr, Origin::Signal)?
    {
        return host_log::freed(ptr, Ok(()));
    }
    host_log::freed(ptr, Err(HipError::INVALID_VALUE))
}

/// `hipMallocManaged`: `flags` is `hipMemAttachGlobal` or `hipMemAttachHost`.
pub(crate) fn malloc_managed(session: &Session, ptr: Out<Ptr>, size: usize, flags: u32) -> HipResult<()> {
    let out = ptr.check()?;
    if size == 0 || !matches!(flags, hipMemAttachGlobal | hipMemAttachHost) {
        return Err(HipError::INVALID_VALUE);
    }
    let managed = session.streams().mirrors.allocate_managed(session.worker(), size, flags)?;
    host_log::allocated(managed, size);
    out.set(managed);
    Ok(())
}

/// `hipHostRegister`.
pub(crate) fn register(session: &Session, ptr: Ptr, size: usize, flags: u32) -> HipResult<()> {
    if ptr.is_null() || size == 0 || flags & !REGISTER_FLAGS != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    session.streams().mirrors.register(ptr, size, flags)
}

/// `hipHostUnregister`.
pub(crate) fn unregister(session: &Session, ptr: Ptr) -> HipResult<()> {
    session.wait_for_host_functions()?;
    if session.streams().mirrors.free(session.worker(), ptr.check()?, Origin::Registered)? {
        Ok(())
    } else {
        Err(HipError::HOST_MEMORY_NOT_REGISTERED)
    }
}

/// `hipHostGetDevicePointer`.
pub(crate) fn device_pointer(session: &Session, out: Out<Ptr>, host: Ptr, flags: u32) -> HipResult<()> {
    let out = out.check()?;
    if flags != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    out.set(Ptr::from_wire(session.streams().mirrors.device_pointer(session.worker(), host.check()?)?));
    Ok(())
}

/// `hipHostGetFlags`.
pub(crate) fn flags(session: &Session, flags: Out<u32>, host: Ptr) -> HipResult<()> {
    let out = flags.check()?;
    match session.streams().mirrors.info(host.check()?) {
        Some((info, _, _)) if info.origin != Origin::Managed => {
            out.set(info.flags);
            Ok(())
        }
        _ => Err(HipError::INVALID_VALUE),
    }
}
