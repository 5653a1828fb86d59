//! Functions about pinned, registered and managed memory (see `mirror` for how it is kept on both sides).

use hipr_abi::*;
use hipr_proto::{HipError, HipResult};

use super::allocation::or_null;
use crate::convert::{Out, Ptr};
use crate::host_log;
use crate::session::Session;
use crate::stream::mirror::{Origin, RegionInfo};

/// All flags that pinned memory may have.
const HOST_FLAGS: u32 = hipHostMallocPortable
    | hipHostMallocMapped
    | hipHostMallocWriteCombined
    | hipHostMallocUncached
    | hipHostMallocNumaUser
    | hipHostMallocCoherent
    | hipHostMallocNonCoherent;
/// Flags of `hipHostAlloc`.
const ALLOC_FLAGS: u32 = hipHostMallocPortable | hipHostMallocMapped | hipHostMallocWriteCombined;
/// All flags that registered memory may have.
const REGISTER_FLAGS: u32 =
    hipHostRegisterPortable | hipHostRegisterMapped | hipHostRegisterIoMemory | hipHostRegisterReadOnly;

/// `hipHostAlloc`: accepts only the flags that CUDA's function accepts.
pub(crate) fn alloc(session: &Session, ptr: Out<Ptr>, size: usize, flags: u32) -> HipResult<()> {
    if flags & !ALLOC_FLAGS != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    malloc(session, ptr, size, flags)
}

/// `hipHostMalloc`, `hipExtHostAlloc`.
pub(crate) fn malloc(session: &Session, ptr: Out<Ptr>, size: usize, flags: u32) -> HipResult<()> {
    let out = ptr.check()?;
    // HIP API: an allocation of 0 bytes succeeds with any flags.
    if size == 0 {
        out.set(Ptr::NULL);
        return Ok(());
    }
    if flags & (hipHostMallocCoherent | hipHostMallocNonCoherent)
        == hipHostMallocCoherent | hipHostMallocNonCoherent
    {
        out.set(Ptr::NULL);
        return Err(HipError::INVALID_VALUE);
    }
    if flags & !HOST_FLAGS != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    let pinned = or_null(out, session.streams().mirrors.allocate_pinned(session.worker(), size, flags))?;
    host_log::allocated(pinned, size);
    out.set(pinned);
    Ok(())
}

/// `hipMallocHost`, `hipMemAllocHost`.
pub(crate) fn malloc_plain(session: &Session, ptr: Out<Ptr>, size: usize) -> HipResult<()> {
    malloc(session, ptr, size, 0)
}

/// `hipHostFree`, `hipFreeHost`. HIP API: they free all memory that [`hipFree`](super::memory::free) frees.
pub(crate) fn free(session: &Session, ptr: Ptr) -> HipResult<()> {
    session.wait_for_host_functions()?;
    let (mirrors, worker) = (&session.streams().mirrors, session.worker());
    if ptr.is_null()
        || mirrors.free(worker, ptr, Origin::Pinned)?
        || mirrors.free(worker, ptr, Origin::Signal)?
    {
        return host_log::freed(ptr, Ok(()));
    }
    let is_of_device = worker.memory().find(ptr).is_some_and(|found| found.base == ptr);
    let is_managed = |info: &RegionInfo| info.origin == Origin::Managed && info.host == ptr;
    if is_of_device || mirrors.info(ptr).is_some_and(|(info, ..)| is_managed(&info)) {
        host_log::freed_by_other(ptr);
    }
    super::memory::free(session, ptr)
}

/// `hipMallocManaged`: `flags` is `hipMemAttachGlobal` or `hipMemAttachHost`.
pub(crate) fn malloc_managed(session: &Session, ptr: Out<Ptr>, size: usize, flags: u32) -> HipResult<()> {
    let out = ptr.check()?;
    if size == 0 || !matches!(flags, hipMemAttachGlobal | hipMemAttachHost) {
        return Err(HipError::INVALID_VALUE);
    }
    let managed = or_null(out, session.streams().mirrors.allocate_managed(session.worker(), size, flags))?;
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

/// `hipHostGetDevicePointer`. HIP API: an address of device memory is its own.
pub(crate) fn device_pointer(session: &Session, out: Out<Ptr>, host: Ptr, flags: u32) -> HipResult<()> {
    let out = out.check()?;
    if flags != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    let is_of_device = session.worker().memory().find(host.check()?).is_some();
    let address = || session.streams().mirrors.device_pointer(session.worker(), host);
    out.set(if is_of_device { host } else { Ptr::from_wire(address()?) });
    Ok(())
}

/// `hipHostGetFlags`.
pub(crate) fn flags(session: &Session, flags: Out<u32>, host: Ptr) -> HipResult<()> {
    let out = flags.check()?;
    match session.streams().mirrors.info(host.check()?) {
        Some((info, _, _)) => {
            out.set(if info.origin == Origin::Managed { 0 } else { info.flags });
            Ok(())
        }
        None => Err(HipError::INVALID_VALUE),
    }
}
