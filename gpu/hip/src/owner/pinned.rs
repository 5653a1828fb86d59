//! Pinned buffers for copies between this process and the device.
//!
//! A buffer belongs to the device from the copy that uses it until that copy is done; only then are its bytes looked at. Several
//! copies to the device, in the order of one stream, may lie in one buffer side by side.

use core::ptr::null_mut;

use hipr_device::Region;
use hipr_proto::{HipError, HipResult};

use super::{Marker, Owner, number, void};
use hip_sys::{hipHostMallocDefault, hipMemcpyDeviceToHost, hipMemcpyHostToDevice};

/// Alignment of data in a buffer.
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
    /// Nothing uses the buffer.
    Idle,
    /// The device uses the buffer until a marker is reached.
    Busy {
        until: Marker,
        /// Number of bytes in use, from the start.
        used: usize,
        /// The stream whose copies to the device are in the buffer.
        stream: Option<u64>,
    },
    /// The device uses the buffer for an unknown time, because no marker could be set.
    Unmarked,
}

impl Owner {
    /// Allocates a buffer of `len_bytes`; returns its number.
    ///
    /// # Errors
    /// Those of HIP.
    pub(crate) fn pinned_new(&mut self, len_bytes: usize) -> HipResult<usize> {
        self.enter()?;
        let mut base = null_mut();
        // SAFETY: the place outlives the call.
        self.check(unsafe { self.hip.hipHostMalloc(&mut base, len_bytes, hipHostMallocDefault) })?;
        if len_bytes > 0 && base.is_null() {
            return Err(HipError::INVALID_VALUE);
        }
        self.pinned.push(Pinned { base: number(base), len_bytes, device: self.device, state: State::Idle });
        Ok(self.pinned.len() - 1)
    }

    pub(super) fn unpin(&mut self, pinned: Pinned) -> HipResult<()> {
        if let State::Busy { until, .. } = pinned.state {
            self.discard(until);
        }
        self.enter_device(pinned.device)?;
        // SAFETY: allocated by this owner, and freed once.
        self.check(unsafe { self.hip.hipHostFree(void(pinned.base)) })
    }

    /// Returns whether the device has finished with a buffer.
    ///
    /// # Errors
    /// Those of HIP, for example of a device that is lost.
    pub(crate) fn pinned_is_idle(&mut self, buffer: usize) -> HipResult<bool> {
        let Some(pinned) = self.pinned.get_mut(buffer) else { return Err(HipError::INVALID_VALUE) };
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

    /// Returns how many bytes can be added to a buffer for a copy in the order of `stream`; 0 if the device uses it for
    /// something else.
    pub(crate) fn pinned_room(&self, buffer: usize, stream: u64) -> usize {
        let Some(pinned) = self.pinned.get(buffer) else { return 0 };
        match &pinned.state {
            State::Idle => pinned.len_bytes,
            State::Busy { used, stream: of, .. } if *of == Some(stream) => {
                pinned.len_bytes.saturating_sub(*used)
            }
            State::Busy { .. } | State::Unmarked => 0,
        }
    }

    /// Returns address and size of an idle buffer.
    fn idle(&self, buffer: usize) -> HipResult<(u64, usize)> {
        let pinned = self.pinned.get(buffer).ok_or(HipError::INVALID_VALUE)?;
        match pinned.state {
            State::Idle => Ok((pinned.base, pinned.len_bytes)),
            State::Busy { .. } | State::Unmarked => Err(HipError::NOT_READY),
        }
    }

    /// Returns the bytes of an idle buffer.
    ///
    /// # Errors
    /// `NOT_READY` while the device has it.
    pub(crate) fn pinned_bytes(&self, buffer: usize) -> HipResult<&[u8]> {
        let (base, len) = self.idle(buffer)?;
        // SAFETY: the allocation has this size and is the library's zeroed or written memory; the device is done with it, and
        // what starts a new copy borrows the owner mutably.
        Ok(unsafe { core::slice::from_raw_parts(void(base).cast::<u8>(), len) })
    }

    /// Puts `bytes` into a buffer that has [room](Owner::pinned_room) for them, and enqueues their copy to `rows` (regions of one
    /// slice), which they fill in order.
    ///
    /// # Errors
    /// `NOT_READY` without room, `INVALID_VALUE` for bytes that do not fit the rows, or rows that are not allocated,
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn pinned_send(
        &mut self,
        buffer: usize,
        bytes: &[u8],
        rows: impl Iterator<Item = Region>,
        stream: u64,
    ) -> HipResult<()> {
        if bytes.len() > self.pinned_room(buffer, stream) {
            return Err(HipError::NOT_READY);
        }
        self.enter_stream(stream)?;
        let pinned = self.pinned.get(buffer).ok_or(HipError::INVALID_VALUE)?;
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
    pub(crate) fn pinned_fetch(
        &mut self,
        buffer: usize,
        len_bytes: usize,
        rows: impl Iterator<Item = Region>,
        stream: u64,
    ) -> HipResult<()> {
        let (base, room) = self.idle(buffer)?;
        if len_bytes > room {
            return Err(HipError::INVALID_VALUE);
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

    /// Enqueues one copy per entry, at consecutive positions from `at` on.
    fn enqueue(
        &mut self,
        mut at: u64,
        len_bytes: usize,
        rows: impl Iterator<Item = Region>,
        stream: u64,
        copy: impl Fn(&Self, u64, &Region, u64) -> HipResult<()>,
    ) -> HipResult<()> {
        let handle = self.enter_stream(stream)?;
        let mut left = len_bytes as u64;
        for rows in rows {
            let len = rows
                .width
                .checked_mul(rows.height)
                .filter(|&len| len <= left)
                .ok_or(HipError::INVALID_VALUE)?;
            self.check_region(&rows)?;
            copy(self, at, &rows, handle)?;
            at += len;
            left -= len;
        }
        Ok(())
    }

    /// Marks a buffer as used by the device until the stream's current work is done; also after an error, because earlier
    /// copies may be in progress.
    fn hand_over(&mut self, buffer: usize, used: usize, stream: u64, sends: Option<u64>) -> HipResult<()> {
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
