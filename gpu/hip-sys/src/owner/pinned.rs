//! Pinned buffers: where bytes lie between this process and the device.
//!
//! A buffer belongs to the device from the copy that uses it until that copy is done; only then are its bytes looked at. Several
//! copies to the device, in the order of one stream, may lie in one buffer side by side.

use core::ptr::null_mut;

use super::{HipCode, Marker, Owner, Rows, number, void};
use crate::{
    hipErrorInvalidValue, hipErrorNotReady, hipHostMallocDefault, hipMemcpyDeviceToHost,
    hipMemcpyHostToDevice,
};

/// What is put into a buffer starts at multiples of this many bytes.
const ALIGN: usize = 64;

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
    Busy {
        until: Marker,
        /// Bytes from the start that are in use.
        used: usize,
        /// The stream whose copies to the device are in it.
        stream: Option<u64>,
    },
    /// The device's, and no marker says until when.
    Unmarked,
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

    pub(super) fn unpin(&mut self, pinned: Pinned) -> HipCode {
        if let State::Busy { until, .. } = pinned.state {
            self.discard(until);
        }
        self.enter_device(pinned.device)?;
        // SAFETY: allocated by this owner, and freed once.
        self.check(unsafe { self.hip.hipHostFree(void(pinned.base)) })
    }

    /// Whether the device is done with a buffer.
    ///
    /// # Errors
    /// Those of HIP, for example of a device that is lost.
    pub fn pinned_is_idle(&mut self, buffer: usize) -> HipCode<bool> {
        let Some(pinned) = self.pinned.get_mut(buffer) else { return Err(hipErrorInvalidValue) };
        match std::mem::replace(&mut pinned.state, State::Unmarked) {
            State::Idle => self.set_state(buffer, State::Idle),
            // Also of a stream that is destroyed when its work is done.
            State::Unmarked => {
                if !self.retired.is_empty() || !self.is_idle()? {
                    return Ok(false);
                }
                self.set_state(buffer, State::Idle);
            }
            State::Busy { until, used, stream } => {
                let reached = self.is_reached(&until);
                if reached == Ok(true) {
                    self.discard(until);
                    self.set_state(buffer, State::Idle);
                } else {
                    self.set_state(buffer, State::Busy { until, used, stream });
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

    /// Bytes that can be put into a buffer for a copy in the order of `stream`; 0 where the device has it for something else.
    pub fn pinned_room(&self, buffer: usize, stream: u64) -> usize {
        let Some(pinned) = self.pinned.get(buffer) else { return 0 };
        match &pinned.state {
            State::Idle => pinned.len_bytes,
            State::Busy { used, stream: of, .. } if *of == Some(stream) => {
                pinned.len_bytes.saturating_sub(*used)
            }
            State::Busy { .. } | State::Unmarked => 0,
        }
    }

    /// An idle buffer's address and size.
    fn idle(&self, buffer: usize) -> HipCode<(u64, usize)> {
        let pinned = self.pinned.get(buffer).ok_or(hipErrorInvalidValue)?;
        match pinned.state {
            State::Idle => Ok((pinned.base, pinned.len_bytes)),
            State::Busy { .. } | State::Unmarked => Err(hipErrorNotReady),
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

    /// Puts `bytes` into a buffer that has [room](Owner::pinned_room) for them, and enqueues their copy to `rows`, which they fill
    /// in order.
    ///
    /// # Errors
    /// `NOT_READY` without room, `INVALID_VALUE` for bytes that do not fit the rows, or rows that are not allocated,
    /// `INVALID_HANDLE`; those of HIP.
    pub fn pinned_send(
        &mut self,
        buffer: usize,
        bytes: &[u8],
        rows: impl Iterator<Item = Rows>,
        stream: u64,
    ) -> HipCode {
        if bytes.len() > self.pinned_room(buffer, stream) {
            return Err(hipErrorNotReady);
        }
        self.enter_stream(stream)?;
        let pinned = self.pinned.get(buffer).ok_or(hipErrorInvalidValue)?;
        let start = if let State::Busy { used, .. } = pinned.state { used } else { 0 };
        let at = pinned.base + start as u64;
        // SAFETY: the allocation holds so many bytes from there on, and the device has no use for them.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), void(at).cast::<u8>(), bytes.len()) };
        let result = self.enqueue(at, bytes.len(), rows, stream, |owner, at, rows, stream| {
            let size = (rows.width, rows.height);
            // SAFETY: the rows are allocated; the bytes of the buffer stay until the marker.
            unsafe {
                owner.copy_rows((rows.ptr, rows.pitch), (at, rows.width), size, hipMemcpyHostToDevice, stream)
            }
        });
        let used = (start + bytes.len()).next_multiple_of(ALIGN);
        result.and(self.hand_over(buffer, used, stream, Some(stream)))
    }

    /// Enqueues a copy of `rows`, `len_bytes` in all, into an idle buffer.
    ///
    /// # Errors
    /// `NOT_READY` while the device has the buffer; else as [`Owner::pinned_send`].
    pub fn pinned_fetch(
        &mut self,
        buffer: usize,
        len_bytes: usize,
        rows: impl Iterator<Item = Rows>,
        stream: u64,
    ) -> HipCode {
        let (base, room) = self.idle(buffer)?;
        if len_bytes > room {
            return Err(hipErrorInvalidValue);
        }
        self.enter_stream(stream)?;
        let result = self.enqueue(base, len_bytes, rows, stream, |owner, at, rows, stream| {
            let size = (rows.width, rows.height);
            // SAFETY: the rows are allocated; nobody looks at the buffer before the marker.
            unsafe {
                owner.copy_rows((at, rows.width), (rows.ptr, rows.pitch), size, hipMemcpyDeviceToHost, stream)
            }
        });
        result.and(self.hand_over(buffer, room, stream, None))
    }

    /// Enqueues one copy per entry, at consecutive places from `at` on.
    fn enqueue(
        &mut self,
        mut at: u64,
        len_bytes: usize,
        rows: impl Iterator<Item = Rows>,
        stream: u64,
        copy: impl Fn(&Self, u64, &Rows, u64) -> HipCode,
    ) -> HipCode {
        let handle = self.enter_stream(stream)?;
        let mut left = len_bytes as u64;
        for rows in rows {
            let len =
                rows.width.checked_mul(rows.height).filter(|&len| len <= left).ok_or(hipErrorInvalidValue)?;
            self.check_rows(&rows)?;
            copy(self, at, &rows, handle)?;
            at += len;
            left -= len;
        }
        Ok(())
    }

    /// The buffer is the device's until what the stream has to do now is done; that holds after an error as well, because copies
    /// before the one that failed are on their way.
    fn hand_over(&mut self, buffer: usize, used: usize, stream: u64, sends: Option<u64>) -> HipCode {
        let (state, result) = match self.mark(stream) {
            Ok(until) => (State::Busy { until, used, stream: sends }, Ok(())),
            Err(code) => (State::Unmarked, Err(code)),
        };
        if let Some(pinned) = self.pinned.get_mut(buffer)
            && let State::Busy { until, .. } = std::mem::replace(&mut pinned.state, state)
        {
            self.discard(until);
        }
        result
    }
}
