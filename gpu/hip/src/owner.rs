//! The resources that one user of the library has created, and a safe way to use them.
//!
//! The C API trusts its caller: a handle that is stale, or an address that is not the device's, is undefined behaviour in the
//! process that passes it. An [`Owner`] knows what it made, refuses everything else with the error that HIP has for it, and
//! calls the library on plain numbers. It never waits for work: what ends later is asked for through a [`Marker`], and what can
//! only be released when work is over is retired until then.
//!
//! What a *kernel* does is out of any library's hands: it runs with the process's own access to device and pinned
//! memory. Who loads foreign kernels does so in a process that has nothing else to lose.
//!
//! Stream numbers 0 and 1 are the null stream of the current device, 2 is a stream of the owner's that stands for the
//! per-thread stream; all others were made by [`Owner::stream_create`].

mod clear;
mod copy;
mod device;
mod ipc;
mod mapping;
mod memory;
mod module;
mod peer;
mod pinned;
mod pool;
mod resource;
mod stream;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::sync::Arc;

pub(crate) use ipc::IpcHandle;
pub(crate) use stream::Marker;

use hip_sys::{Hip, hipError_t, hipSuccess};
use hipr_proto::{HipError, HipResult};

use clear::Clearing;
use mapping::{Physical, Range};
use pinned::Pinned;
use resource::{Memory, Module};
use stream::{Event, Retired};

thread_local! {
    /// The library and the device that this thread made current last, because the current device belongs to the thread.
    static CURRENT: Cell<(usize, i32)> = const { Cell::new((0, -1)) };
}

/// Everything that one user of the library has created.
pub(crate) struct Owner {
    hip: Arc<Hip>,
    /// Whether other owners may be in this process, whose freed memory the library gives on.
    shares_process: bool,
    clearing: Clearing,
    device: i32,
    memory: BTreeMap<u64, Memory>,
    /// Reserved addresses by the first.
    ranges: BTreeMap<u64, Range>,
    physical: BTreeMap<u64, Physical>,
    /// Device of each stream.
    streams: BTreeMap<u64, i32>,
    /// Number of each stream that the program has created and that is not destroyed yet, by handle; and the last number that was given.
    created: BTreeMap<u64, u64>,
    last_created: u64,
    /// For each device, the stream that serves as its per-thread stream.
    per_thread: BTreeMap<i32, u64>,
    events: BTreeMap<u64, Event>,
    modules: BTreeMap<u64, Module>,
    /// Module of each function.
    functions: BTreeMap<u64, u64>,
    /// Device of each pool.
    pools: BTreeMap<u64, i32>,
    pinned: Vec<Pinned>,
    /// Markers for reuse.
    spare: Vec<Marker>,
    retired: Vec<Retired>,
    /// The devices whose null stream has been used.
    null_used: Vec<i32>,
    /// Pairs of devices of which the first may access the memory of the second (HIP API: hipDeviceEnablePeerAccess).
    peers: BTreeSet<(i32, i32)>,
}

impl Owner {
    /// Creates an owner without resources; device 0 is current. If others may be in this process, its memory is cleared before it sees it.
    pub(crate) fn new(hip: Arc<Hip>, shares_process: bool) -> Self {
        Self {
            hip,
            shares_process,
            clearing: Clearing::default(),
            device: 0,
            memory: BTreeMap::new(),
            ranges: BTreeMap::new(),
            physical: BTreeMap::new(),
            streams: BTreeMap::new(),
            created: BTreeMap::new(),
            last_created: 0,
            per_thread: BTreeMap::new(),
            events: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            pools: BTreeMap::new(),
            pinned: Vec::new(),
            spare: Vec::new(),
            retired: Vec::new(),
            null_used: Vec::new(),
            peers: BTreeSet::new(),
        }
    }

    /// Converts the result of a call, and clears the thread's last error.
    fn check(&self, code: hipError_t) -> HipResult<()> {
        if code == hipSuccess {
            return Ok(());
        }
        let error = HipError(code);
        if error != HipError::NOT_READY {
            // SAFETY: no arguments.
            unsafe { self.hip.hipGetLastError() };
        }
        Err(error)
    }

    /// Makes a device the thread's current device.
    fn enter_device(&self, device: i32) -> HipResult<()> {
        let wanted = (Arc::as_ptr(&self.hip).addr(), device);
        if CURRENT.get() != wanted {
            // SAFETY: any number may be passed.
            self.check(unsafe { self.hip.hipSetDevice(device) })?;
            CURRENT.set(wanted);
        }
        Ok(())
    }

    /// Makes the owner's device the thread's current device.
    fn enter(&self) -> HipResult<()> {
        self.enter_device(self.device)
    }

    /// Returns whether everything that the owner enqueued is done, as far as the library can tell.
    ///
    /// # Errors
    /// The library's, for example of a device that is lost.
    pub(crate) fn is_idle(&mut self) -> HipResult<bool> {
        let markers = self.mark_all()?;
        self.are_reached(markers)
    }

    /// Returns whether everything that the owner enqueued on the current device is done.
    ///
    /// # Errors
    /// As for [`is_idle`](Self::is_idle).
    pub(crate) fn is_device_idle(&mut self) -> HipResult<bool> {
        let markers = self.mark_device()?;
        self.are_reached(markers)
    }

    fn are_reached(&mut self, markers: Vec<Marker>) -> HipResult<bool> {
        let mut idle = true;
        for marker in &markers {
            idle &= self.is_reached(marker)?;
        }
        markers.into_iter().for_each(|marker| self.discard(marker));
        Ok(idle)
    }

    /// Releases everything, dependent resources first. Should be called when [`Owner::is_idle`], because the library waits
    /// for work that uses what is released.
    pub(crate) fn release(&mut self) {
        self.retired_all();
        let streams = std::mem::take(&mut self.streams);
        let per_thread =
            std::mem::take(&mut self.per_thread).into_iter().map(|(device, stream)| (stream, device));
        for (stream, device) in streams.into_iter().chain(per_thread) {
            Self::note(self.destroy_stream(stream, device));
        }
        self.release_clearing();
        for (event, Event { device, .. }) in std::mem::take(&mut self.events) {
            Self::note(self.destroy_event(event, device));
        }
        self.functions.clear();
        for (handle, module) in std::mem::take(&mut self.modules) {
            Self::note(self.unload(handle, &module));
        }
        for (ptr, memory) in std::mem::take(&mut self.memory) {
            Self::note(self.free_now(ptr, &memory));
        }
        self.release_mapped();
        self.release_pools();
        self.release_peers();
        for pinned in std::mem::take(&mut self.pinned) {
            Self::note(self.unpin(pinned));
        }
        for marker in std::mem::take(&mut self.spare) {
            Self::note(self.destroy_event(marker.event, marker.info.device));
        }
        self.null_used.clear();
    }
}

impl Drop for Owner {
    /// Releases everything if the device is idle; otherwise leaks it, because releasing would wait, for ever if the device
    /// hangs.
    fn drop(&mut self) {
        match self.is_idle() {
            Ok(true) => self.release(),
            Ok(false) => {
                tracing::warn!("the device still works for an ended session; leaking its resources")
            }
            Err(error) => tracing::debug!(%error, "the device is lost with everything on it"),
        }
    }
}

/// Converts a handle or an address to a C pointer.
fn ptr<T>(number: u64) -> *mut T {
    core::ptr::with_exposed_provenance_mut(number as usize)
}

/// Converts a C pointer to a number.
fn number<T>(ptr: *mut T) -> u64 {
    ptr.expose_provenance() as u64
}

/// Converts a size of the wire to a C size.
fn size(bytes: u64) -> HipResult<usize> {
    usize::try_from(bytes).map_err(|_| HipError::INVALID_VALUE)
}

/// Converts an address to `void *`.
fn void(number: u64) -> *mut c_void {
    ptr(number)
}
