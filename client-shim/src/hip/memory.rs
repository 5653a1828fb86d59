//! Functions that allocate and free device memory.

use hipr_abi::{
    bytes_of, chars_of, hipDeviceMallocContiguous, hipExtent, hipIpcMemHandle_t, hipMallocSignalMemory,
    hipPitchedPtr,
};
use hipr_graph::Status;
use hipr_proto::{HipError, HipResult, PITCH_BYTES, op};

use super::{allocation, graph};
use crate::command::{Command, Node};
use crate::convert::{Out, Ptr, Stream};
use crate::host_log;
use crate::session::Session;
use crate::stream::mirror::Origin;
use crate::stream::pending::Outcome;
use crate::thread;
use crate::worker::memory::{Kind, Memory};
use crate::worker::{Release, Wait, placer};

/// Size of what is allocated as signal memory.
const SIGNAL_BYTES: usize = 8;

/// `hipMalloc`.
pub(crate) fn malloc(session: &Session, ptr: Out<Ptr>, size: usize) -> HipResult<()> {
    malloc_with_flags(session, ptr, size, 0)
}

/// `hipExtMallocWithFlags`.
pub(crate) fn malloc_with_flags(session: &Session, ptr: Out<Ptr>, size: usize, flags: u32) -> HipResult<()> {
    let out = ptr.check()?;
    // hipDeviceMallocDefault, Finegrained, hipMallocSignalMemory, Uncached, Contiguous.
    if flags > hipDeviceMallocContiguous || (flags == hipMallocSignalMemory && size != SIGNAL_BYTES) {
        return Err(HipError::INVALID_VALUE);
    }
    if size == 0 {
        out.set(Ptr::NULL);
        return Ok(());
    }
    if flags == hipMallocSignalMemory {
        let signal = session.streams().mirrors.allocate_signal(session.worker(), size, flags)?;
        host_log::allocated(signal, size);
        out.set(signal);
        return Ok(());
    }
    out.set(allocation::allocate(session, size, flags)?);
    Ok(())
}

/// Allocates memory of a node of the graph that a stream captures; `None` if it captures none.
fn capture(session: &Session, stream: u64, size: usize) -> Option<HipResult<Ptr>> {
    let graphs = &session.streams().graphs;
    if graphs.status(stream) == Status::None {
        return None;
    }
    let device = thread::device();
    Some(graph::memory::allocate(session, size, device, |node| graphs.record(stream, || node).map(drop)))
}

/// `hipMallocAsync`.
pub(crate) fn malloc_async(session: &Session, ptr: Out<Ptr>, size: usize, stream: Stream) -> HipResult<()> {
    let out = ptr.check()?;
    let stream = session.valid_handle(stream)?;
    if size == 0 {
        out.set(Ptr::NULL);
        return Ok(());
    }
    if let Some(captured) = capture(session, stream, size) {
        out.set(captured?);
        return Ok(());
    }
    // HIP API: it is memory of the stream's device.
    let device = session.streams().order.device_of(stream);
    let allocated = allocation::or_null(
        out,
        thread::with_device(device, || {
            session.worker().make_room(size as u64)?;
            let reply =
                session.worker().ask_on(stream, |stream| op::MallocAsync { size: size as u64, stream })?;
            allocation::note(session, reply.device_ptr, size, 0)
        }),
    )?;
    session.streams().put(stream, Outcome::Open);
    out.set(allocated);
    Ok(())
}

/// `hipMallocFromPoolAsync`.
pub(crate) fn malloc_from_pool_async(
    session: &Session,
    ptr: Out<Ptr>,
    size: usize,
    pool: Ptr,
    stream: Stream,
) -> HipResult<()> {
    let out = ptr.check()?;
    let device =
        session.worker().pools().get(&pool).map(|pool| pool.device).ok_or(HipError::INVALID_VALUE)?;
    let stream = session.valid_handle(stream)?;
    if size == 0 {
        out.set(Ptr::NULL);
        return Ok(());
    }
    if let Some(captured) = capture(session, stream, size) {
        out.set(captured?);
        return Ok(());
    }
    let request = |stream| op::MallocFromPoolAsync { size: size as u64, mem_pool: pool.wire(), stream };
    let allocated = allocation::or_null(
        out,
        thread::with_device(device, || {
            session.worker().make_room(size as u64)?;
            let on = session.streams().allocating_stream(session.worker(), device, stream)?;
            let reply = session.worker().ask_on(on, request)?;
            if on != stream {
                session.wait(Wait::Stream(on))?;
            }
            allocation::note(session, reply.device_ptr, size, 0)
        }),
    )?;
    session.streams().put(stream, Outcome::Open);
    out.set(allocated);
    Ok(())
}

/// `hipMallocPitch`: rows of one byte elements.
pub(crate) fn malloc_pitch(
    session: &Session,
    ptr: Out<Ptr>,
    pitch: Out<usize>,
    width: usize,
    height: usize,
) -> HipResult<()> {
    alloc_pitch(session, ptr, pitch, width, height, 4)
}

/// `hipMemAllocPitch`.
pub(crate) fn mem_alloc_pitch(
    session: &Session,
    ptr: Out<Ptr>,
    pitch: Out<usize>,
    width: usize,
    height: usize,
    element_size: u32,
) -> HipResult<()> {
    if !matches!(element_size, 4 | 8 | 16) || width == 0 || height == 0 {
        return Err(HipError::INVALID_VALUE);
    }
    alloc_pitch(session, ptr, pitch, width, height, element_size)
}

fn alloc_pitch(
    session: &Session,
    ptr: Out<Ptr>,
    pitch: Out<usize>,
    width: usize,
    height: usize,
    element_size: u32,
) -> HipResult<()> {
    let (out, pitch) = (ptr.check()?, pitch.check()?);
    if width == 0 || height == 0 {
        out.set(Ptr::NULL);
        return Ok(());
    }
    let request = op::MemAllocPitch { width_in_bytes: width as u64, height: height as u64, element_size };
    let row = request.width_in_bytes.checked_next_multiple_of(PITCH_BYTES).ok_or(HipError::INVALID_VALUE)?;
    let Some(size) = row.checked_mul(request.height) else {
        pitch.set(usize::try_from(row).map_err(|_| HipError::OUT_OF_MEMORY)?);
        return Err(HipError::OUT_OF_MEMORY);
    };
    let placed = session.worker().place(placer::Kind::Device, size, 0)?.map(|device_ptr| (device_ptr, row));
    let (device_ptr, row) = match placed {
        Some(placed) => placed,
        None => {
            let reply = session.worker().ask(&request)?;
            (reply.dptr, reply.pitch)
        }
    };
    let row = usize::try_from(row).map_err(|_| HipError::OUT_OF_MEMORY)?;
    let size = row.checked_mul(height).ok_or(HipError::OUT_OF_MEMORY)?;
    out.set(allocation::note(session, device_ptr, size, 0)?);
    pitch.set(row);
    Ok(())
}

/// `hipMalloc3D`.
pub(crate) fn malloc_3d(session: &Session, ptr: Out<hipPitchedPtr>, extent: hipExtent) -> HipResult<()> {
    let out = ptr.check()?;
    let hipExtent { width, height, depth } = extent;
    let (mut base, mut pitch) = (Ptr::NULL, 0);
    let rows = height.checked_mul(depth).ok_or(HipError::OUT_OF_MEMORY)?;
    alloc_pitch(session, Out::to(&mut base), Out::to(&mut pitch), width, rows, 4)?;
    out.set(hipPitchedPtr { ptr: base.as_mut_ptr(), pitch, xsize: width, ysize: height });
    Ok(())
}

/// `hipFree`, and `hipHostFree` of what is not pinned: memory that any function has allocated, also by a graph. HIP API: it waits for what the
/// device has to do.
pub(crate) fn free(session: &Session, ptr: Ptr) -> HipResult<()> {
    if ptr.is_null() {
        return Ok(());
    }
    session.wait_for_host_functions()?;
    if let Some(is_unused) = free_of_graph(session, ptr)? {
        let waited = session.wait(Wait::Device(thread::device()));
        return if is_unused { allocation::give_back(session, ptr).and(waited) } else { waited };
    }
    host_log::freed(ptr, free_now(session, ptr))
}

/// Frees memory that a graph has allocated; returns whether it has to be given back, `None` for other memory. The graph has it still, so that
/// the log says nothing of it.
///
/// # Errors
/// `hipErrorInvalidValue`: it is not allocated.
fn free_of_graph(session: &Session, ptr: Ptr) -> HipResult<Option<bool>> {
    let freed = session.streams().graphs.with(|tables| tables.memory.free(ptr));
    freed.map_err(|error| host_log::freed(ptr, Err(error)).err().unwrap_or(error))
}

/// Frees pinned memory, which has a function of its own; returns whether it is such memory.
fn free_pinned(session: &Session, ptr: Ptr) -> HipResult<bool> {
    let is_pinned = session.streams().mirrors.free(session.worker(), ptr, Origin::Pinned)?;
    if is_pinned {
        host_log::freed_by_other(ptr);
    }
    Ok(is_pinned)
}

fn free_now(session: &Session, ptr: Ptr) -> HipResult<()> {
    let (mirrors, worker) = (&session.streams().mirrors, session.worker());
    let device = worker.memory().find(ptr).map_or_else(thread::device, |allocation| allocation.device);
    let is_mirrored = mirrors.free(worker, ptr, Origin::Managed)?
        || mirrors.free(worker, ptr, Origin::Signal)?
        || free_pinned(session, ptr)?;
    if !is_mirrored {
        take(session, ptr)?;
        worker.release(device, Release::Device(ptr.wire()))?;
    }
    session.streams().settle_all(device);
    Ok(())
}

/// `hipFreeAsync`: where the stream captures, a node of the graph.
pub(crate) fn free_async(session: &Session, ptr: Ptr, stream: Stream) -> HipResult<()> {
    ptr.check()?;
    let stream = session.valid_handle(stream)?;
    let graphs = &session.streams().graphs;
    if graphs.with(|tables| tables.memory.has(ptr)) {
        if graphs.record(stream, || Node::new(Command::GraphFree(ptr)))? {
            return Ok(());
        }
        let is_unused = free_of_graph(session, ptr)? == Some(true);
        return if is_unused { session.submit(stream, Command::Free(ptr)) } else { Ok(()) };
    }
    let freeable = check_freeable(&session.worker().memory(), ptr);
    // HIP API: pinned and managed memory is accepted as well.
    if freeable.is_err()
        && graphs.status(stream) == Status::None
        && session.streams().mirrors.info(ptr).is_some()
    {
        return free(session, ptr);
    }
    if freeable.is_ok() && graphs.record(stream, || Node::new(Command::Free(ptr)))? {
        return Ok(());
    }
    host_log::freed(ptr, freeable)?;
    session.submit(stream, Command::Free(ptr))
}

/// Removes an allocation from the table; fails if it may not be freed.
fn take(session: &Session, ptr: Ptr) -> HipResult<()> {
    let mut memory = session.worker().memory();
    check_freeable(&memory, ptr)?;
    memory.remove(ptr);
    Ok(())
}

fn check_freeable(memory: &Memory, ptr: Ptr) -> HipResult<()> {
    match memory.find(ptr) {
        Some(found) if found.base == ptr && found.kind == Kind::Device => Ok(()),
        _ => Err(HipError::INVALID_VALUE),
    }
}

/// `hipMemGetInfo`: either number can be left out, and both.
pub(crate) fn info(session: &Session, free: Out<usize>, total: Out<usize>) -> HipResult<()> {
    let info = session.worker().memory_info()?;
    free.set(info.free_bytes as usize);
    total.set(info.total_bytes as usize);
    Ok(())
}

/// `hipIpcGetMemHandle`.
pub(crate) fn ipc_handle(session: &Session, handle: Out<hipIpcMemHandle_t>, ptr: Ptr) -> HipResult<()> {
    let out = handle.check()?;
    session.streams().share();
    let device =
        session.worker().memory().find(ptr.check()?).map_or_else(thread::device, |found| found.device);
    let reply = thread::with_device(device, || session.worker().lend(ptr.wire()))?;
    out.set(hipIpcMemHandle_t { reserved: chars_of(reply.handle) });
    Ok(())
}

/// `hipIpcOpenMemHandle`.
pub(crate) fn ipc_open(
    session: &Session,
    ptr: Out<Ptr>,
    handle: hipIpcMemHandle_t,
    flags: u32,
) -> HipResult<()> {
    let out = ptr.check()?;
    session.streams().share();
    // How large it is the worker finds out.
    session.worker().make_room(u64::MAX)?;
    let reply = session.worker().ask(&op::IpcOpenMemHandle { handle: bytes_of(handle.reserved), flags })?;
    let size = session.worker().ask(&op::MemPtrGetInfo { ptr: reply.device_ptr })?.size;
    let base = Ptr::of_memory(reply.device_ptr, size)?;
    allocation::note_kind(session, base, size as usize, Kind::Ipc, thread::device(), flags);
    out.set(base);
    Ok(())
}

/// `hipIpcCloseMemHandle`.
pub(crate) fn ipc_close(session: &Session, ptr: Ptr) -> HipResult<()> {
    let found = session.worker().memory().find(ptr);
    let open = found.filter(|found| found.kind == Kind::Ipc && found.base == ptr);
    host_log::freed(ptr, open.map(drop).ok_or(HipError::INVALID_VALUE))?;
    session.worker().memory().remove(ptr);
    let device = open.map_or_else(thread::device, |open| open.device);
    thread::with_device(device, || session.worker().tell(&op::IpcCloseMemHandle { device_ptr: ptr.wire() }))
}
