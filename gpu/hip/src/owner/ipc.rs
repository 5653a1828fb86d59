//! Memory and events of other processes (HIP API: hipIpcGetMemHandle and similar functions). The library trusts its
//! handles, so the caller has to know where they come from.

use core::ffi::c_char;
use core::ptr::null_mut;

use hipr_device::MemoryKind;
use hipr_proto::{HipError, HipResult};

use super::resource::{Memory, Origin};
use super::{Owner, number, ptr, void};
use hip_sys::*;

/// The library's handle of memory or of an event for other processes: 64 opaque bytes.
pub(crate) type IpcHandle = [u8; 64];

fn to_c(handle: &IpcHandle) -> [c_char; 64] {
    handle.map(|byte| byte as c_char)
}

fn from_c(handle: [c_char; 64]) -> IpcHandle {
    handle.map(|byte| byte as u8)
}

impl Owner {
    /// Returns the handle of an allocation (HIP API: hipIpcGetMemHandle).
    ///
    /// # Errors
    /// `INVALID_VALUE` for what is not device memory that this owner allocated; `NOT_SUPPORTED` of a release without; those of
    /// HIP.
    pub(crate) fn memory_handle(&self, address: u64) -> HipResult<IpcHandle> {
        let memory =
            self.memory.get(&address).filter(|memory| memory.origin == Origin::Malloc(MemoryKind::Device));
        self.enter_device(memory.ok_or(HipError::INVALID_VALUE)?.device)?;
        let mut handle = hipIpcMemHandle_t { reserved: [0; 64] };
        // SAFETY: allocated by this owner; the place outlives the call.
        self.check(unsafe { self.hip.hipIpcGetMemHandle(&mut handle, void(address)) })?;
        Ok(from_c(handle.reserved))
    }

    /// Opens `len_bytes` bytes of another process (HIP API: hipIpcOpenMemHandle). [`Owner::free`] closes them.
    ///
    /// # Errors
    /// `INVALID_CONTEXT` for what this owner has already; `NOT_SUPPORTED` of a release without; those of HIP.
    pub(crate) fn open_memory(&mut self, handle: &IpcHandle, len_bytes: u64, flags: u32) -> HipResult<u64> {
        self.enter()?;
        let handle = hipIpcMemHandle_t { reserved: to_c(handle) };
        let mut address = null_mut();
        // SAFETY: the place outlives the call; a handle may be any bytes.
        self.check(unsafe { self.hip.hipIpcOpenMemHandle(&mut address, handle, flags) })?;
        let (address, device) = (number(address), self.device);
        let memory = Memory { len_bytes, origin: Origin::Foreign, device };
        if self.memory.contains_key(&address) {
            self.free_now(address, &memory)?;
            return Err(HipError::INVALID_CONTEXT);
        }
        self.memory.insert(address, memory);
        Ok(address)
    }

    /// Returns the handle of an event (HIP API: hipIpcGetEventHandle).
    ///
    /// # Errors
    /// `INVALID_HANDLE`; `NOT_SUPPORTED` of a release without; those of HIP.
    pub(crate) fn event_handle(&self, event: u64) -> HipResult<IpcHandle> {
        let device = self.check_event(event)?;
        self.enter_device(device)?;
        let mut handle = hipIpcEventHandle_t { reserved: [0; 64] };
        // SAFETY: the event exists, the place outlives the call.
        self.check(unsafe { self.hip.hipIpcGetEventHandle(&mut handle, ptr(event)) })?;
        Ok(from_c(handle.reserved))
    }

    /// Opens an event of another process (HIP API: hipIpcOpenEventHandle). [`Owner::event_destroy`] closes it.
    ///
    /// # Errors
    /// `NOT_SUPPORTED` of a release without; those of HIP.
    pub(crate) fn open_event(&mut self, handle: &IpcHandle) -> HipResult<u64> {
        self.enter()?;
        let handle = hipIpcEventHandle_t { reserved: to_c(handle) };
        let mut event = null_mut();
        // SAFETY: the place outlives the call; a handle may be any bytes.
        self.check(unsafe { self.hip.hipIpcOpenEventHandle(&mut event, handle) })?;
        let event = number(event);
        self.add_event(event);
        Ok(event)
    }
}
