//! Pinned buffers: where bytes lie between this process and the device.
//!
//! A buffer belongs to the device from the copy that uses it until that copy is done; only then are its bytes looked at.

use core::ptr::null_mut;

use super::{HipCode, Marker, Owner, Rows, number, size, void};
use crate::{
    hipErrorInvalidValue, hipErrorNotReady, hipHostMallocDefault, hipMemcpyDeviceToHost,
    hipMemcpyHostToDevice,
};

#[derive(Debug)]
pub(super) struct Pinned {
    base: u64,
    len_bytes: usize,
    device: i32,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nobody's.
    Idle,
    /// The device's, until the marker.
    Busy(Marker),
    /// The device's, and nobody knows until when: the buffer is not used again.
    Lost,
}

impl Owner {
    /// A new buffer of so many bytes, by its number.
    ///
    /// # Errors
    /// Those of HIP.
    pub fn pinned_new(&mut self, len_bytes: usize) -> HipCode<usize> {
        self.enter()?;
        let mut base = null_mut();
        // SAFETY: the place outlives the call.
        self.check(unsafe { self.hip.hipHostMalloc(&mut base, len_bytes, hipHostMallocDefault) })?;
        if len_bytes > 0 && base.is_null() {
            return Err(hipErrorInvalidValue);
        }
        self.pinned.push(Pinned { base: number(base), len_bytes, device: self.device, state: State::Idle });
        Ok(self.pinned.len() - 1)
    }

    pub(super) fn unpin(&mut self, pinned: Pinned) {
        if let State::Busy(marker) = pinned.state {
            self.discard(marker);
        }
        // SAFETY: allocated by this owner, and freed once.
        let freed = self
            .enter_device(pinned.device)
            .and_then(|()| self.check(unsafe { self.hip.hipHostFree(void(pinned.base)) }));
        if let Err(code) = freed {
            tracing::debug!(code, "pinned memory of {} bytes is not freed", pinned.len_bytes);
        }
    }

    /// Whether the device is done with a buffer.
    ///
    /// # Errors
    /// Those of HIP, for example of a device that is lost.
    pub fn pinned_is_idle(&mut self, buffer: usize) -> HipCode<bool> {
        let Some(pinned) = self.pinned.get_mut(buffer) else { return Err(hipErrorInvalidValue) };
        match std::mem::replace(&mut pinned.state, State::Lost) {
            State::Idle => self.set_state(buffer, State::Idle),
            State::Lost => return Ok(false),
            State::Busy(marker) => {
                let reached = self.is_reached(&marker);
                if reached == Ok(true) {
                    self.discard(marker);
                    self.set_state(buffer, State::Idle);
                } else {
                    self.set_state(buffer, State::Busy(marker));
                    return reached;
                }
            }
        }
        Ok(true)
    }

    fn set_state(&mut self, buffer: usize, state: State) {
        if let Some(pinned) = self.pinned.get_mut(buffer) {
            pinned.state = state;
        }
    }

    /// An idle buffer's address and size.
    fn idle(&self, buffer: usize) -> HipCode<(u64, usize)> {
        let pinned = self.pinned.get(buffer).ok_or(hipErrorInvalidValue)?;
        match pinned.state {
            State::Idle => Ok((pinned.base, pinned.len_bytes)),
            State::Busy(_) | State::Lost => Err(hipErrorNotReady),
        }
    }

    /// The bytes of an idle buffer.
    ///
    /// # Errors
    /// `NOT_READY` while the device has it.
    pub fn pinned_bytes(&self, buffer: usize) -> HipCode<&[u8]> {
        let (base, len) = self.idle(buffer)?;
        // SAFETY: the allocation has this size and is the library's zeroed or written memory; the device is done with it, and
        // what starts a new copy borrows the owner mutably.
        Ok(unsafe { core::slice::from_raw_parts(void(base).cast::<u8>(), len) })
    }

    /// Puts `bytes` into an idle buffer and enqueues their copy to `rows`, which they fill in order.
    ///
    /// # Errors
    /// `NOT_READY` while the device has the buffer, `INVALID_VALUE` for bytes that do not fit it or the rows, or rows that are
    /// not allocated, `INVALID_HANDLE`; those of HIP.
    pub fn pinned_send(
        &mut self,
        buffer: usize,
        bytes: &[u8],
        rows: impl Iterator<Item = Rows>,
        stream: u64,
    ) -> HipCode {
        let (base, len) = self.idle(buffer)?;
        if bytes.len() > len {
            return Err(hipErrorInvalidValue);
        }
        // SAFETY: the allocation holds so many bytes, and the device is done with it.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), void(base).cast::<u8>(), bytes.len()) };
        self.transfer(buffer, bytes.len(), rows, stream, |owner, at, rows, stream| {
            let size = (rows.width, rows.height);
            // SAFETY: the rows are allocated; the bytes of the buffer stay until the marker.
            unsafe {
                owner.copy_rows((rows.ptr, rows.pitch), (at, rows.width), size, hipMemcpyHostToDevice, stream)
            }
        })
    }

    /// Enqueues a copy of `rows`, `len_bytes` in all, into an idle buffer.
    ///
    /// # Errors
    /// As [`Owner::pinned_send`].
    pub fn pinned_fetch(
        &mut self,
        buffer: usize,
        len_bytes: usize,
        rows: impl Iterator<Item = Rows>,
        stream: u64,
    ) -> HipCode {
        self.idle(buffer)?;
        self.transfer(buffer, len_bytes, rows, stream, |owner, at, rows, stream| {
            let size = (rows.width, rows.height);
            // SAFETY: the rows are allocated; nobody looks at the buffer before the marker.
            unsafe {
                owner.copy_rows((at, rows.width), (rows.ptr, rows.pitch), size, hipMemcpyDeviceToHost, stream)
            }
        })
    }

    /// Enqueues one copy per entry, at consecutive places of the buffer, and marks their end.
    fn transfer(
        &mut self,
        buffer: usize,
        len_bytes: usize,
        rows: impl Iterator<Item = Rows>,
        stream: u64,
        copy: impl Fn(&Self, u64, &Rows, u64) -> HipCode,
    ) -> HipCode {
        let (base, room) = self.idle(buffer)?;
        let handle = self.enter_stream(stream)?;
        let (mut at, mut left) = (base, len_bytes.min(room));
        let mut result = Ok(());
        for rows in rows {
            result = rows
                .width
                .checked_mul(rows.height)
                .and_then(|len| size(len).ok())
                .filter(|&len| len <= left)
                .ok_or(hipErrorInvalidValue)
                .and_then(|len| {
                    self.check_rows(&rows)?;
                    copy(self, at, &rows, handle)?;
                    at += len as u64;
                    left -= len;
                    Ok(())
                });
            if result.is_err() {
                break;
            }
        }
        // Copies before one that failed are on their way.
        match self.mark(stream) {
            Ok(marker) => self.set_state(buffer, State::Busy(marker)),
            Err(code) => {
                self.set_state(buffer, State::Lost);
                result = result.and(Err(code));
            }
        }
        result
    }
}
