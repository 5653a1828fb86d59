//! Pinned, registered and managed memory: see `mirror` for how it comes to be on both sides.

use hipr_proto::{HipError, HipResult};

use crate::convert::{Out, Ptr, Stream};
use crate::mirror::Origin;
use crate::session::Session;
use crate::types::MemLocation;

/// `hipHostMallocPortable | Mapped | WriteCombined | Uncached | NumaUser | Coherent | NonCoherent`.
const HOST_FLAGS: u32 = 1 | 2 | 4 | 0x1000_0000 | 0x2000_0000 | COHERENT | NON_COHERENT;
const COHERENT: u32 = 0x4000_0000;
const NON_COHERENT: u32 = 0x8000_0000;
/// `hipHostRegisterPortable | Mapped | IoMemory | ReadOnly`.
const REGISTER_FLAGS: u32 = 1 | 2 | 4 | 8;

/// `hipHostMalloc`, `hipHostAlloc`, `hipExtHostAlloc`.
pub(crate) fn malloc(session: &Session, ptr: Out<Ptr>, size: usize, flags: u32) -> HipResult<()> {
    let out = ptr.check()?;
    if flags & !HOST_FLAGS != 0 || flags & (COHERENT | NON_COHERENT) == COHERENT | NON_COHERENT {
        return Err(HipError::INVALID_VALUE);
    }
    session.graphs().check_safe()?;
    if size == 0 {
        out.set(Ptr::NULL);
        return Ok(());
    }
    out.set(session.mirrors().allocate_pinned(session, size, flags)?);
    Ok(())
}

/// `hipMallocHost`, `hipMemAllocHost`.
pub(crate) fn malloc_plain(session: &Session, ptr: Out<Ptr>, size: usize) -> HipResult<()> {
    malloc(session, ptr, size, 0)
}

/// `hipHostFree`, `hipFreeHost`.
pub(crate) fn free(session: &Session, ptr: Ptr) -> HipResult<()> {
    session.graphs().check_safe()?;
    session.callbacks().gate_all()?;
    if ptr.is_null() || session.mirrors().free_pinned(session, ptr)? {
        return Ok(());
    }
    Err(HipError::INVALID_VALUE)
}

/// `hipMallocManaged`: `flags` is `hipMemAttachGlobal` or `hipMemAttachHost`.
pub(crate) fn malloc_managed(session: &Session, ptr: Out<Ptr>, size: usize, flags: u32) -> HipResult<()> {
    let out = ptr.check()?;
    if size == 0 || !matches!(flags, 1 | 2) {
        return Err(HipError::INVALID_VALUE);
    }
    session.graphs().check_safe()?;
    out.set(session.mirrors().allocate_managed(session, size, flags)?);
    Ok(())
}

/// `hipHostRegister`.
pub(crate) fn register(session: &Session, ptr: Ptr, size: usize, flags: u32) -> HipResult<()> {
    if ptr.is_null() || size == 0 || flags & !REGISTER_FLAGS != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    session.mirrors().register(ptr, size, flags)
}

/// `hipHostUnregister`.
pub(crate) fn unregister(session: &Session, ptr: Ptr) -> HipResult<()> {
    session.callbacks().gate_all()?;
    session.mirrors().unregister(session, ptr.check()?)
}

/// `hipHostGetDevicePointer`.
pub(crate) fn device_pointer(session: &Session, out: Out<Ptr>, host: Ptr, flags: u32) -> HipResult<()> {
    let out = out.check()?;
    if flags != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    out.set(Ptr::from_wire(session.mirrors().device_pointer(session, host.check()?)?));
    Ok(())
}

/// `hipHostGetFlags`.
pub(crate) fn flags(session: &Session, flags: Out<u32>, host: Ptr) -> HipResult<()> {
    let out = flags.check()?;
    match session.mirrors().info(host.check()?) {
        Some((info, _, _)) if info.origin != Origin::Managed => {
            out.set(info.flags);
            Ok(())
        }
        _ => Err(HipError::INVALID_VALUE),
    }
}

/// Refuses `len` bytes that are not all managed memory (or device memory, for which advice means nothing).
fn check_managed(session: &Session, ptr: Ptr, len: usize) -> HipResult<bool> {
    ptr.check()?;
    match session.mirrors().info(ptr) {
        Some((info, offset, _)) if info.origin == Origin::Managed && info.len - offset >= len => Ok(true),
        Some(_) => Err(HipError::INVALID_VALUE),
        None => match session.memory().check_range(ptr, len)? {
            Some(_) => Ok(false),
            None => Err(HipError::INVALID_VALUE),
        },
    }
}

/// `hipMemAdvise`: advice changes nothing that a program can see.
pub(crate) fn advise(session: &Session, ptr: Ptr, count: usize, advice: i32, device: i32) -> HipResult<()> {
    if count == 0 || !matches!(advice, 1..=6 | 100 | 101) {
        return Err(HipError::INVALID_VALUE);
    }
    // hipCpuDeviceId.
    if device != -1 {
        session.check_device(device)?;
    }
    check_managed(session, ptr, count).map(drop)
}

/// `hipMemPrefetchAsync`: what has to move moves with the next launch or synchronization anyway.
pub(crate) fn prefetch(
    session: &Session,
    ptr: Ptr,
    count: usize,
    device: i32,
    stream: Stream,
) -> HipResult<()> {
    if count == 0 {
        return Err(HipError::INVALID_VALUE);
    }
    if device != -1 {
        session.check_device(device)?;
    }
    session.stream(stream)?;
    check_managed(session, ptr, count).map(drop)
}

/// What HIP 6's functions call the place that HIP 7's name: a device, or -1 for the host.
fn device_at(location: MemLocation) -> HipResult<i32> {
    match location.kind {
        // hipMemLocationTypeDevice.
        1 => Ok(location.id),
        // hipMemLocationTypeHost, and its NUMA nodes.
        2..=4 => Ok(-1),
        _ => Err(HipError::INVALID_VALUE),
    }
}

/// `hipMemAdvise_v2` (HIP 7).
pub(crate) fn advise_at(
    session: &Session,
    ptr: Ptr,
    count: usize,
    advice: i32,
    location: MemLocation,
) -> HipResult<()> {
    advise(session, ptr, count, advice, device_at(location)?)
}

/// `hipMemPrefetchAsync_v2` (HIP 7): `flags` must be 0.
pub(crate) fn prefetch_at(
    session: &Session,
    ptr: Ptr,
    count: usize,
    location: MemLocation,
    flags: u32,
    stream: Stream,
) -> HipResult<()> {
    if flags != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    prefetch(session, ptr, count, device_at(location)?, stream)
}

/// `hipStreamAttachMemAsync`: all streams may use managed memory in any case.
pub(crate) fn attach(session: &Session, stream: Stream, ptr: Ptr, _len: usize, flags: u32) -> HipResult<()> {
    session.stream(stream)?;
    if !matches!(flags, 1 | 2 | 4) {
        return Err(HipError::INVALID_VALUE);
    }
    check_managed(session, ptr, 1).map(drop)
}
