//! What one user of the library made, and a safe way to use it.
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

mod copy;
mod device;
mod ipc;
mod memory;
mod module;
mod pinned;
mod pool;
mod stream;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;

pub use copy::{Area, Rows};
pub use device::Properties;
pub use ipc::IpcHandle;
pub use memory::{MEMORY_FLAGS_NONE, MemoryKind};
pub use module::{Arguments, Launch};
pub use stream::Marker;

use crate::{Hip, hipError_t, hipErrorInvalidValue, hipErrorNotReady, hipSuccess};
use memory::Memory;
use module::Module;
use pinned::Pinned;
use stream::Retired;

/// What a call gave: `Err` holds the `hipError_t`.
pub type HipCode<T = ()> = Result<T, hipError_t>;

thread_local! {
    /// The library and the device that this thread made current last: a thread's current device is the library's own.
    static CURRENT: Cell<(usize, i32)> = const { Cell::new((0, -1)) };
}

/// Everything that one user of the library made.
pub struct Owner {
    hip: Arc<Hip>,
    device: i32,
    memory: BTreeMap<u64, Memory>,
    /// Handle to device.
    streams: BTreeMap<u64, i32>,
    /// Device to the stream that stands for the per-thread stream.
    per_thread: BTreeMap<i32, u64>,
    /// Handle to device.
    events: BTreeMap<u64, i32>,
    modules: BTreeMap<u64, Module>,
    /// Handle to module.
    functions: BTreeMap<u64, u64>,
    /// Handle to device.
    pools: BTreeMap<u64, i32>,
    pinned: Vec<Pinned>,
    /// Markers to be used again.
    spare: Vec<Marker>,
    retired: Vec<Retired>,
    /// The devices on whose null stream something was put.
    null_used: Vec<i32>,
}

impl Owner {
    /// An owner of nothing; device 0 is current.
    pub fn new(hip: Arc<Hip>) -> Self {
        Self {
            hip,
            device: 0,
            memory: BTreeMap::new(),
            streams: BTreeMap::new(),
            per_thread: BTreeMap::new(),
            events: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            pools: BTreeMap::new(),
            pinned: Vec::new(),
            spare: Vec::new(),
            retired: Vec::new(),
            null_used: Vec::new(),
        }
    }

    /// The result of a call; the thread's last error does not outlive it.
    fn check(&self, code: hipError_t) -> HipCode {
        if code == hipSuccess {
            return Ok(());
        }
        if code != hipErrorNotReady {
            // SAFETY: no arguments.
            unsafe { self.hip.hipGetLastError() };
        }
        Err(code)
    }

    /// Makes a device this thread's current one.
    fn enter_device(&self, device: i32) -> HipCode {
        let wanted = (Arc::as_ptr(&self.hip).addr(), device);
        if CURRENT.get() != wanted {
            // SAFETY: any number may be passed.
            self.check(unsafe { self.hip.hipSetDevice(device) })?;
            CURRENT.set(wanted);
        }
        Ok(())
    }

    /// Makes the owner's device this thread's current one.
    fn enter(&self) -> HipCode {
        self.enter_device(self.device)
    }

    /// Whether everything that the owner had enqueued is done, as far as the library tells.
    ///
    /// # Errors
    /// The library's, for example of a device that is lost.
    pub fn is_idle(&mut self) -> HipCode<bool> {
        let markers = self.mark_all()?;
        let mut idle = true;
        for marker in &markers {
            idle &= self.is_reached(marker)?;
        }
        markers.into_iter().for_each(|marker| self.discard(marker));
        Ok(idle)
    }

    /// Releases everything, in the order in which one thing needs the other. To be called when [`Owner::is_idle`]: the library
    /// waits for work that uses what is released.
    pub fn release(&mut self) {
        self.retired_all();
        let streams = std::mem::take(&mut self.streams);
        let per_thread =
            std::mem::take(&mut self.per_thread).into_iter().map(|(device, stream)| (stream, device));
        for (stream, device) in streams.into_iter().chain(per_thread) {
            Self::note(self.destroy_stream(stream, device));
        }
        for (event, device) in std::mem::take(&mut self.events) {
            Self::note(self.destroy_event(event, device));
        }
        self.functions.clear();
        for (handle, module) in std::mem::take(&mut self.modules) {
            Self::note(self.unload(handle, &module));
        }
        for (ptr, memory) in std::mem::take(&mut self.memory) {
            Self::note(self.free_now(ptr, &memory));
        }
        self.release_pools();
        for pinned in std::mem::take(&mut self.pinned) {
            Self::note(self.unpin(pinned));
        }
        for marker in std::mem::take(&mut self.spare) {
            Self::note(self.destroy_event(marker.event, marker.device));
        }
        self.null_used.clear();
    }
}

impl Drop for Owner {
    /// Releases everything if the device is idle. Else everything stays where it is until the process ends: a call that
    /// releases it would wait, for ever if the device hangs.
    fn drop(&mut self) {
        match self.is_idle() {
            Ok(true) => self.release(),
            Ok(false) => {
                tracing::warn!("the device works on for a user that is gone: nothing of it is released")
            }
            Err(code) => tracing::debug!(code, "the device is lost, and what was on it"),
        }
    }
}

/// A handle or an address as the C API has it.
fn ptr<T>(number: u64) -> *mut T {
    core::ptr::with_exposed_provenance_mut(number as usize)
}

/// What the C API gave, as a number.
fn number<T>(ptr: *mut T) -> u64 {
    ptr.expose_provenance() as u64
}

/// A size of the wire as the C API has it.
fn size(bytes: u64) -> HipCode<usize> {
    usize::try_from(bytes).map_err(|_| hipErrorInvalidValue)
}

/// An address as `void *`.
fn void(number: u64) -> *mut c_void {
    ptr(number)
}
