//! Clearing memory before its owner sees it, where sessions share a process: the runtime gives memory on that another session has freed,
//! and the driver clears only what another process had.

use std::collections::BTreeMap;

use hip_sys::hipStreamNonBlocking;
use hipr_device::MemoryKind;
use hipr_proto::HipResult;

use super::{Owner, ptr, size, void};

/// The streams in which an owner's memory is cleared, by device. They wait for nobody's work.
#[derive(Debug, Default)]
pub(super) struct Clearing {
    streams: BTreeMap<i32, u64>,
}

impl Owner {
    /// Clears new memory, and waits until it is cleared. Frees it if that fails.
    ///
    /// # Errors
    /// Those of HIP.
    pub(super) fn clear_new(&mut self, address: u64, len_bytes: u64, kind: MemoryKind) -> HipResult<()> {
        if !self.shares_process {
            return Ok(());
        }
        if kind == MemoryKind::Host {
            // SAFETY: the library has just allocated so many bytes, and nobody else has the address.
            unsafe { void(address).cast::<u8>().write_bytes(0, size(len_bytes)?) };
            return Ok(());
        }
        let cleared = self.clear_in_order(address, len_bytes, self.device);
        self.freed_unless(cleared, address)
    }

    /// Clears new memory of a pool in the order of the stream that it was allocated in. Frees it if that fails.
    ///
    /// # Errors
    /// Those of HIP.
    pub(super) fn clear_in_stream(&mut self, address: u64, len_bytes: u64, stream: u64) -> HipResult<()> {
        if !self.shares_process {
            return Ok(());
        }
        // SAFETY: allocated in this stream's order, so many bytes.
        let cleared =
            self.check(unsafe { self.hip.hipMemsetAsync(void(address), 0, size(len_bytes)?, ptr(stream)) });
        self.freed_unless(cleared, address)
    }

    /// Clears memory that `device` may access, and waits for it.
    ///
    /// # Errors
    /// Those of HIP.
    pub(super) fn clear_in_order(&mut self, address: u64, len_bytes: u64, device: i32) -> HipResult<()> {
        let stream = match self.clearing.streams.get(&device) {
            Some(&stream) => stream,
            None => {
                let current = std::mem::replace(&mut self.device, device);
                let created = self.create_stream(hipStreamNonBlocking, 0);
                self.device = current;
                let stream = created?;
                self.clearing.streams.insert(device, stream);
                stream
            }
        };
        self.enter_device(device)?;
        // SAFETY: the owner's memory, so many bytes, and a stream of its own.
        self.check(unsafe { self.hip.hipMemsetAsync(void(address), 0, size(len_bytes)?, ptr(stream)) })?;
        // SAFETY: a stream of its own.
        self.check(unsafe { self.hip.hipStreamSynchronize(ptr(stream)) })
    }

    fn freed_unless(&mut self, cleared: HipResult<()>, address: u64) -> HipResult<()> {
        if cleared.is_err() {
            // SAFETY: allocated just now, and freed once.
            Self::note(self.check(unsafe { self.hip.hipFree(void(address)) }));
        }
        cleared
    }

    /// Destroys the streams.
    pub(super) fn release_clearing(&mut self) {
        for (device, stream) in std::mem::take(&mut self.clearing.streams) {
            Self::note(self.destroy_stream(stream, device));
        }
    }
}
