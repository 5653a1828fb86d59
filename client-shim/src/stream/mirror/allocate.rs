//! Allocates and frees mirrored memory, with a real worker.

use std::sync::atomic::AtomicBool;

use hipr_proto::{HipError, HipResult};

use super::diff::PAGE;
use super::{Mirrors, Origin, RegionInfo, warn_once};
use crate::convert::Ptr;
use crate::thread;
use crate::worker::map::Source;
use crate::worker::placer::Kind;
use crate::worker::{Release, Worker, map};

static ADDRESS_TAKEN: AtomicBool = AtomicBool::new(false);

impl Mirrors {
    /// Allocates pinned memory.
    ///
    /// # Errors
    /// What the worker or the operating system says.
    pub(crate) fn allocate_pinned(&self, worker: &Worker, len: usize, flags: u32) -> HipResult<Ptr> {
        self.allocate_host(worker, len, flags, Origin::Pinned)
    }

    /// Allocates memory for a signal, which the program and the device write and streams wait for.
    ///
    /// # Errors
    /// What the worker or the operating system says.
    pub(crate) fn allocate_signal(&self, worker: &Worker, len: usize, flags: u32) -> HipResult<Ptr> {
        self.allocate_host(worker, len, flags, Origin::Signal)
    }

    fn allocate_host(&self, worker: &Worker, len: usize, flags: u32, origin: Origin) -> HipResult<Ptr> {
        // The worker knows portable, mapped, write-combined and coherent; for it they mean nothing.
        let allocate = |size: usize| {
            let (device_ptr, source) = worker.allocate_host(Kind::Host, size as u64, 0)?;
            Ok((device_ptr, Release::Host(device_ptr), source))
        };
        self.allocate(worker, len, flags, origin, allocate)
    }

    /// Allocates managed memory.
    ///
    /// # Errors
    /// What the worker or the operating system says.
    pub(crate) fn allocate_managed(&self, worker: &Worker, len: usize, flags: u32) -> HipResult<Ptr> {
        let allocate = |size: usize| {
            let (device_ptr, source) = worker.allocate_host(Kind::Managed, size as u64, flags)?;
            Ok((device_ptr, Release::Device(device_ptr), source))
        };
        self.allocate(worker, len, flags, Origin::Managed, allocate)
    }

    fn allocate(
        &self,
        worker: &Worker,
        len: usize,
        flags: u32,
        origin: Origin,
        allocate: impl Fn(usize) -> HipResult<(u64, Release, Source)>,
    ) -> HipResult<Ptr> {
        let size = pages(len)?;
        let (mut remote, mut release, mut source) = allocate(size)?;
        Ptr::of_memory(remote, size as u64)?;
        if remote % PAGE as u64 != 0 {
            // Pages are mapped here, so the memory there has to begin with one.
            worker.release(thread::device(), release)?;
            let more = size.checked_add(PAGE).ok_or(HipError::OUT_OF_MEMORY)?;
            let (start, whole, from) = allocate(more)?;
            Ptr::of_memory(start, more as u64)?;
            (remote, release, source) = (start.next_multiple_of(PAGE as u64), whole, from);
        }
        let info = RegionInfo { origin, host: Ptr::NULL, len, flags, device: thread::device() };
        match self.map(worker, remote, info, Some(release), &source) {
            Some(host) => Ok(host),
            None => {
                worker.release(thread::device(), release)?;
                Err(HipError::OUT_OF_MEMORY)
            }
        }
    }

    /// Maps host memory for an allocation of the worker, at the same address if possible; returns None if out of memory. The address
    /// in `info` is the one that is found.
    fn map(
        &self,
        worker: &Worker,
        remote: u64,
        info: RegionInfo,
        release: Option<Release>,
        source: &Source,
    ) -> Option<Ptr> {
        let size = pages(info.len).ok()?;
        worker.memory().release(Ptr::from_wire(remote), size);
        let is_page = remote.is_multiple_of(PAGE as u64);
        let same = if is_page { map::at(Ptr::from_wire(remote), size, source) } else { None };
        let host = same.or_else(|| map::anywhere(size, source))?;
        if host.wire() != remote {
            warn_once(&ADDRESS_TAKEN, || {
                tracing::warn!(
                    "host memory {host:?} has another address on the device ({remote:#x}): kernels can use it where a \
                     pointer to it is an argument, not where a pointer to it lies in device memory"
                );
            });
        }
        let info = RegionInfo { host, ..info };
        match source {
            Source::New => self.add(info, remote, release),
            Source::Shared(..) => self.add_shared(info, remote, release),
        }
        Some(host)
    }

    /// Adds the memory that the worker's runtime has given to a `__managed__` variable.
    ///
    /// # Errors
    /// `hipErrorOutOfMemory`.
    pub(crate) fn adopt_memory(&self, worker: &Worker, remote: u64, len: usize) -> HipResult<Ptr> {
        Ptr::of_memory(remote, len as u64)?;
        let (origin, host) = (Origin::Managed, Ptr::NULL);
        let info = RegionInfo { origin, host, len, flags: 0, device: thread::device() };
        self.map(worker, remote, info, None, &Source::New).ok_or(HipError::OUT_OF_MEMORY)
    }

    /// Frees mirrored memory of this origin; returns false if `ptr` is not the beginning of any.
    ///
    /// # Errors
    /// A lost connection.
    pub(crate) fn free(&self, worker: &Worker, ptr: Ptr, origin: Origin) -> HipResult<bool> {
        let Some(removed) = self.remove(worker, ptr, origin)? else { return Ok(false) };
        if removed.is_mapped {
            map::unmap(removed.info.host, pages(removed.info.len)?);
        }
        removed.releases.into_iter().try_for_each(|(device, release)| worker.release(device, release))?;
        Ok(true)
    }
}

/// Returns `len` rounded up to whole pages.
fn pages(len: usize) -> HipResult<usize> {
    len.checked_next_multiple_of(PAGE).ok_or(HipError::OUT_OF_MEMORY)
}
