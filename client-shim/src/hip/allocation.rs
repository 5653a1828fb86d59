//! Device memory of the program: allocated, noted where addresses are looked up, and given back.

use hipr_proto::HipResult;

use crate::convert::Ptr;
use crate::host_log;
use crate::session::Session;
use crate::thread;
use crate::worker::memory::{Allocation, Kind};
use crate::worker::{Release, placer};

/// Allocates device memory of the current device.
pub(super) fn allocate(session: &Session, size: usize, flags: u32) -> HipResult<Ptr> {
    let device_ptr = session.worker().allocate(placer::Kind::Device, size as u64, flags)?;
    note(session, device_ptr, size, flags)
}

/// Gives device memory back, which the program does not free itself.
pub(super) fn give_back(session: &Session, ptr: Ptr) -> HipResult<()> {
    session.worker().memory().remove(ptr);
    host_log::freed(ptr, session.worker().release(Release::Device(ptr.wire())))
}

/// Adds device memory that the worker has allocated to the table.
pub(super) fn note(session: &Session, device_ptr: u64, size_bytes: usize, flags: u32) -> HipResult<Ptr> {
    let base = Ptr::of_memory(device_ptr, size_bytes as u64)?;
    note_kind(session, base, size_bytes, Kind::Device, thread::device(), flags);
    Ok(base)
}

/// Adds memory of this kind to the table.
pub(super) fn note_kind(
    session: &Session,
    base: Ptr,
    size_bytes: usize,
    kind: Kind,
    device: i32,
    flags: u32,
) {
    let allocation = Allocation { base, size_bytes, kind, device, flags, is_ambiguous: false };
    session.worker().memory().insert(allocation);
    host_log::allocated(base, size_bytes);
}

/// Gives memory of graphs back to the device.
pub(super) fn give_back_all(session: &Session, all: Vec<Ptr>) -> HipResult<()> {
    all.into_iter().try_for_each(|ptr| give_back(session, ptr))
}
