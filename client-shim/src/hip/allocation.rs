//! Device memory of the program: allocated, noted where addresses are looked up, and given back.

use hipr_proto::{HipError, HipResult};

use crate::convert::{Out, Ptr};
use crate::host_log;
use crate::session::Session;
use crate::thread;
use crate::worker::memory::{Allocation, Kind};
use crate::worker::{Release, placer};

/// How often memory is allocated anew whose addresses another worker has given already.
const TRIES: usize = 8;

/// Allocates device memory of the current device. A worker that chooses addresses by itself may choose those of another worker's memory: what
/// it gives then is kept until it has given other ones.
pub(super) fn allocate(session: &Session, size: usize, flags: u32) -> HipResult<Ptr> {
    let worker = session.worker();
    let mut unfit = Vec::new();
    let allocated = loop {
        match worker.allocate(placer::Kind::Device, size as u64, flags) {
            Ok(device_ptr) if !claim(session, device_ptr, size) && unfit.len() < TRIES => {
                unfit.push(device_ptr);
            }
            allocated => break allocated,
        }
    };
    let release = |device_ptr| worker.release(thread::device(), Release::Device(device_ptr));
    unfit.into_iter().try_for_each(release)?;
    note(session, allocated?, size, flags)
}

/// With several workers, reserves the addresses of device memory in this process. Returns false if other memory of the program already uses some of them:
/// device memory of another worker, or memory of this process.
fn claim(session: &Session, device_ptr: u64, size: usize) -> bool {
    let (worker, device) = (session.worker(), thread::device());
    let links = worker.links();
    if !links.are_several() {
        return true;
    }
    let is_own = |other| links.are_of_one_worker(other, device);
    let (base, mut memory) = (Ptr::from_wire(device_ptr), worker.memory());
    memory.device_within(base, size, is_own).is_none() && memory.claim(base, size)
}

/// Gives device memory back, which the program does not free itself.
pub(super) fn give_back(session: &Session, ptr: Ptr) -> HipResult<()> {
    let removed = session.worker().memory().remove(ptr);
    let device = removed.map_or_else(thread::device, |allocation| allocation.device);
    host_log::freed(ptr, session.worker().release(device, Release::Device(ptr.wire())))
}

/// Adds device memory that the worker has allocated to the table.
pub(super) fn note(session: &Session, device_ptr: u64, size_bytes: usize, flags: u32) -> HipResult<Ptr> {
    let base = Ptr::of_memory(device_ptr, size_bytes as u64)?;
    if !claim(session, device_ptr, size_bytes) {
        let device = thread::device();
        let address = session.worker().connection_of(device).address();
        tracing::error!(
            "the worker at {address} has given memory of device {device} addresses ({base:?}, {size_bytes} bytes) that other memory of the \
             program has"
        );
        return Err(HipError::OUT_OF_MEMORY);
    }
    note_kind(session, base, size_bytes, Kind::Device, thread::device(), flags);
    Ok(base)
}

/// Returns the result of an allocation; sets the program's pointer to null if there was no room. HIP API: so do all functions but those of plain
/// device memory.
pub(super) fn or_null(out: Out<Ptr>, allocated: HipResult<Ptr>) -> HipResult<Ptr> {
    if allocated == Err(HipError::OUT_OF_MEMORY) {
        out.set(Ptr::NULL);
    }
    allocated
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
