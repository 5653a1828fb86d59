//! The most frequent commands, in one phase instead of many.
//!
//! Most programs capture nothing, have no host functions, and share no memory with their kernels. Then the phases of a
//! [`Call`](super::Call) before sending have nothing to do, and launches, copies to or within the device, and fills are sent without
//! them; a call that is driven phase by phase does the same in its first. What is asked and what is sent is the same either way.

use std::borrow::Cow;

use hipr_proto::op::kind;
use hipr_proto::{HipError, HipResult};

use super::Streams;
use super::mirror::Place;
use super::pending::Outcome;
use crate::command::{KernelLaunch, MemoryCopy, MemoryFill, Transfer};
use crate::convert::Ptr;
use crate::worker::Port;

impl Streams {
    /// Returns whether the phases of a call before sending have nothing to do: no stream captures, no host function is unfinished,
    /// and no memory is mirrored.
    #[inline]
    pub(super) fn are_unhindered(&self) -> bool {
        !self.graphs.has_captures() && self.host_functions.is_idle() && self.mirrors.is_empty()
    }

    /// Launches a kernel; returns None and does nothing if that needs a call with all its phases.
    #[inline]
    pub(crate) fn launch_at_once(
        &self,
        port: &dyn Port,
        kernel: &KernelLaunch,
        stream: u64,
    ) -> Option<HipResult<()>> {
        let is_simple = self.are_unhindered() && !kernel.is_timed();
        is_simple.then(|| {
            port.launch(kernel, &kernel.arguments, stream)?;
            self.put(stream, Outcome::Open);
            Ok(())
        })
    }

    /// Copies to or within the device; returns None and does nothing if that needs a call with all its phases.
    #[inline]
    pub(crate) fn copy_at_once(
        &self,
        port: &dyn Port,
        copy: &MemoryCopy,
        stream: u64,
        is_blocking: bool,
    ) -> Option<HipResult<()>> {
        // Where the kind does not say that the destination is the device, its place would be looked up twice.
        if !self.are_unhindered() || copy.dst.is_device != Some(true) {
            return None;
        }
        self.try_copy(port, copy, stream, is_blocking).transpose()
    }

    /// Copies `len` bytes of the program to memory of the device whose address `send` does without; returns None and does nothing if that
    /// needs a call with all its phases.
    pub(crate) fn copy_to_at_once(
        &self,
        port: &dyn Port,
        src: Ptr,
        len: usize,
        stream: u64,
        is_blocking: bool,
        send: impl FnOnce(&[u8]) -> HipResult<()>,
    ) -> Option<HipResult<()>> {
        // Memory that HIP knows may be the device's.
        let is_simple = self.are_unhindered() && port.allocation(src).is_none();
        is_simple.then(|| {
            send(&port.host_bytes(src, len))?;
            if is_blocking {
                self.pending.put_and_settle(&self.order, stream);
            } else {
                self.put(stream, Outcome::Decided);
            }
            Ok(())
        })
    }

    /// Fills device memory; returns None and does nothing if that needs a call with all its phases.
    #[inline]
    pub(crate) fn fill_at_once(
        &self,
        port: &dyn Port,
        fill: &MemoryFill,
        stream: u64,
    ) -> Option<HipResult<()>> {
        if !self.are_unhindered() {
            return None;
        }
        if self.reaches_another(port, &[fill.dst], stream) {
            return None;
        }
        match self.place_of_fill(port, fill, stream) {
            Ok(Some(Place::Device(address))) => Some(send_fill(port, fill, address, stream).map(|()| {
                self.put(stream, Outcome::Decided);
            })),
            Ok(Some(_)) => None,
            Ok(None) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        }
    }

    /// Copies; returns None if memory of the process takes part that HIP knows.
    fn try_copy(
        &self,
        port: &dyn Port,
        copy: &MemoryCopy,
        stream: u64,
        is_blocking: bool,
    ) -> HipResult<Option<()>> {
        if copy.check_shape()? == 0 {
            return Ok(Some(()));
        }
        if self.reaches_another(port, &[copy.dst.at, copy.src.at], stream) {
            return Ok(None);
        }
        let places = self.places(port, copy, stream)?;
        let (kind, to, from) = match places {
            [Place::Device(to), Place::Device(from)] => (kind::DEVICE_TO_DEVICE, to, from),
            [Place::Device(to), Place::Unknown] => (kind::HOST_TO_DEVICE, to, copy.src.at.wire()),
            _ => return Ok(None),
        };
        let transfer = Transfer { kind, to, from, copy: *copy, stream, is_blocking };
        send_copy(self, port, &transfer)?;
        if settles(places, is_blocking) {
            // A copy to the device.
            self.pending.put_and_settle(&self.order, stream);
        } else {
            self.put(stream, outcome_of_copy(&transfer));
        }
        Ok(Some(()))
    }
}

/// Sends a fill of memory that the device has at `address`.
#[inline]
pub(super) fn send_fill(port: &dyn Port, fill: &MemoryFill, address: u64, stream: u64) -> HipResult<()> {
    let row = |y| port.fill(address + (y * fill.pitch) as u64, fill.pattern, fill.width, stream);
    (0..fill.height).try_for_each(row)
}

/// Returns whether a copy whose ranges were checked can still show something or fail: one to the device has its bytes read here.
#[inline]
pub(super) fn outcome_of_copy(transfer: &Transfer) -> Outcome {
    if transfer.kind == kind::HOST_TO_DEVICE { Outcome::Decided } else { Outcome::Open }
}

/// Returns whether, as HIP documents, the stream has finished when a copy between these places returns: copies within the device are
/// not waited for, those within the host always are.
#[inline]
pub(super) fn settles(places: [Place; 2], is_blocking: bool) -> bool {
    let on_device = places.map(|place| matches!(place, Place::Device(_)));
    if is_blocking { on_device != [true, true] } else { on_device == [false, false] }
}

/// Sends a copy to or within the device.
#[inline]
pub(super) fn send_copy(streams: &Streams, port: &dyn Port, transfer: &Transfer) -> HipResult<()> {
    if transfer.kind != kind::HOST_TO_DEVICE {
        return port.copy(transfer, &[]);
    }
    let MemoryCopy { src, size, .. } = &transfer.copy;
    let bytes = if src.is_packed(*size) {
        port.host_bytes(src.at, size.bytes().ok_or(HipError::INVALID_VALUE)?)
    } else {
        Cow::Owned(packed(port, &transfer.copy)?)
    };
    streams.mirror(transfer.stream).note_pointers(port, transfer.stream, &bytes)?;
    port.copy(transfer, &bytes)
}

/// Returns the bytes of a copy's source, without the gaps between rows.
fn packed(port: &dyn Port, copy: &MemoryCopy) -> HipResult<Vec<u8>> {
    let MemoryCopy { src, size, .. } = *copy;
    let mut rows = Vec::with_capacity(size.bytes().ok_or(HipError::INVALID_VALUE)?);
    let slice = src.slice().ok_or(HipError::INVALID_VALUE)?;
    for z in 0..size.depth {
        for y in 0..size.height {
            rows.extend_from_slice(&port.host_bytes(src.at.offset(z * slice + y * src.pitch), size.width));
        }
    }
    Ok(rows)
}
