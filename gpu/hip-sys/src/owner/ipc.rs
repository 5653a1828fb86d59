//! Memory and events of other processes (HIP API: hipIpcGetMemHandle and its kin). A handle of the library's is as good as what it
//! names: whoever gets one from elsewhere has to know where it is from.

use core::ffi::c_char;
use core::ptr::null_mut;

use super::memory::Memory;
use super::{HipCode, MemoryKind, Owner, number, ptr, void};
use crate::types::*;
use crate::{hipErrorInvalidContext, hipErrorInvalidValue};

/// What one process tells another of memory or an event: 64 bytes whose meaning is the library's.
pub type IpcHandle = [u8; 64];

fn to_c(handle: &IpcHandle) -> [c_char; 64] {
    handle.map(|byte| byte as c_char)
}

fn from_c(handle: [c_char; 64]) -> IpcHandle {
    handle.map(|byte| byte as u8)
}

impl Owner {
    /// The handle of an allocation (HIP API: hipIpcGetMemHandle).
    ///
    /// # Errors
    /// `INVALID_VALUE` for what is not device memory that this owner allocated; `NOT_SUPPORTED` of a release without; those of
    /// HIP.
    pub fn memory_handle(&self, address: u64) -> HipCode<IpcHandle> {
        let memory = self.memory.get(&address).filter(|memory| memory.kind == MemoryKind::Device);
        self.enter_device(memory.ok_or(hipErrorInvalidValue)?.device)?;
        let mut handle = hipIpcMemHandle_t { reserved: [0; 64] };
        // SAFETY: allocated by this owner; the place outlives the call.
        self.check(unsafe { self.hip.hipIpcGetMemHandle(&mut handle, void(address)) })?;
        Ok(from_c(handle.reserved))
    }

    /// Opens the `len_bytes` bytes that another process has told of (HIP API: hipIpcOpenMemHandle). [`Owner::free`] closes them.
    ///
    /// # Errors
    /// `INVALID_CONTEXT` for what this owner has already; `NOT_SUPPORTED` of a release without; those of HIP.
    pub fn open_memory(&mut self, handle: &IpcHandle, len_bytes: u64, flags: u32) -> HipCode<u64> {
        self.enter()?;
        let handle = hipIpcMemHandle_t { reserved: to_c(handle) };
        let mut address = null_mut();
        // SAFETY: the place outlives the call; a handle may be any bytes.
        self.check(unsafe { self.hip.hipIpcOpenMemHandle(&mut address, handle, flags) })?;
        let (address, device) = (number(address), self.device);
        let memory = Memory { len_bytes, kind: MemoryKind::Foreign, device };
        if self.memory.contains_key(&address) {
            self.free_now(address, &memory)?;
            return Err(hipErrorInvalidContext);
        }
        self.memory.insert(address, memory);
        Ok(address)
    }

    /// The handle of an event (HIP API: hipIpcGetEventHandle).
    ///
    /// # Errors
    /// `INVALID_HANDLE`; `NOT_SUPPORTED` of a release without; those of HIP.
    pub fn event_handle(&self, event: u64) -> HipCode<IpcHandle> {
        let device = self.check_event(event)?;
        self.enter_device(device)?;
        let mut handle = hipIpcEventHandle_t { reserved: [0; 64] };
        // SAFETY: the event exists, the place outlives the call.
        self.check(unsafe { self.hip.hipIpcGetEventHandle(&mut handle, ptr(event)) })?;
        Ok(from_c(handle.reserved))
    }

    /// Opens the event that another process has told of (HIP API: hipIpcOpenEventHandle). [`Owner::event_destroy`] closes it.
    ///
    /// # Errors
    /// `NOT_SUPPORTED` of a release without; those of HIP.
    pub fn open_event(&mut self, handle: &IpcHandle) -> HipCode<u64> {
        self.enter()?;
        let handle = hipIpcEventHandle_t { reserved: to_c(handle) };
        let mut event = null_mut();
        // SAFETY: the place outlives the call; a handle may be any bytes.
        self.check(unsafe { self.hip.hipIpcOpenEventHandle(&mut event, handle) })?;
        let event = number(event);
        self.events.insert(event, self.device);
        Ok(event)
    }
}
