//! Determines the memory that copies and fills access: host, device or mirrored.

use hipr_proto::{HipError, HipResult};

use super::Streams;
use super::mirror::Place;
use crate::command::{Command, MemoryBox, MemoryCopy, MemoryFill, ValueOp};
use crate::worker::Port;

impl Streams {
    /// Returns the kinds of memory at the destination and source of a copy that is not empty, for work of a stream: its worker may have
    /// memory on both sides at another address than others, or not yet.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: an end goes beyond the memory it begins in, or is said to be device memory and is not.
    #[inline]
    pub(super) fn places(&self, port: &dyn Port, copy: &MemoryCopy, stream: u64) -> HipResult<[Place; 2]> {
        let find = |place: MemoryBox| -> HipResult<Place> {
            let span = place.span(copy.size).ok_or(HipError::INVALID_VALUE)?;
            match self.mirror(stream).place(port, place.at, span, place.is_device)? {
                // HIP API: hipMemcpy refuses what is said to be device memory and is not.
                Place::Unknown if place.is_device == Some(true) => Err(HipError::INVALID_VALUE),
                found => Ok(found),
            }
        };
        Ok([find(copy.dst)?, find(copy.src)?])
    }

    /// Checks that a copy could be executed now.
    ///
    /// # Errors
    /// Those of a copy that are known before a byte is moved.
    pub fn check_copy(&self, port: &dyn Port, copy: &MemoryCopy, stream: u64) -> HipResult<()> {
        if copy.check_shape()? > 0 { self.places(port, copy, stream).map(drop) } else { Ok(()) }
    }

    /// Returns whether an asynchronous copy may return before it is executed. HIP API: not with host memory that HIP does not
    /// know, whose bytes are read, or there, when it returns.
    ///
    /// # Errors
    /// Those of [`check_copy`](Self::check_copy).
    pub(super) fn may_come_later(&self, port: &dyn Port, copy: &MemoryCopy, stream: u64) -> HipResult<bool> {
        let is_known = |place: &Place| !matches!(place, Place::Unknown);
        Ok(copy.check_shape()? > 0 && self.places(port, copy, stream)?.iter().all(is_known))
    }

    /// Returns whether both ends of a copy are device memory only.
    ///
    /// # Errors
    /// Those of [`check_copy`](Self::check_copy).
    pub(super) fn is_copy_on_device(
        &self,
        port: &dyn Port,
        copy: &MemoryCopy,
        stream: u64,
    ) -> HipResult<bool> {
        let is_device = |place: MemoryBox| -> HipResult<bool> {
            let span = place.span(copy.size).ok_or(HipError::INVALID_VALUE)?;
            let place = self.mirror(stream).place(port, place.at, span, place.is_device)?;
            Ok(matches!(place, Place::Device(_)))
        };
        Ok(copy.size.bytes().is_some_and(|bytes| bytes > 0) && is_device(copy.dst)? && is_device(copy.src)?)
    }

    /// Returns whether a copy is from device memory to memory of the same device.
    ///
    /// # Errors
    /// Those of [`is_copy_on_device`](Self::is_copy_on_device).
    pub(super) fn is_copy_within_a_device(
        &self,
        port: &dyn Port,
        copy: &MemoryCopy,
        stream: u64,
    ) -> HipResult<bool> {
        let device = |end: MemoryBox| port.allocation(end.at).map(|allocation| allocation.device);
        Ok(self.is_copy_on_device(port, copy, stream)? && device(copy.dst) == device(copy.src))
    }

    /// Returns the memory that a fill writes to; None if there is nothing to fill.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: it is not aligned, or not memory that can be filled.
    #[inline]
    pub(super) fn place_of_fill(
        &self,
        port: &dyn Port,
        fill: &MemoryFill,
        stream: u64,
    ) -> HipResult<Option<Place>> {
        if fill.width == 0 || fill.height == 0 {
            return Ok(None);
        }
        let len = fill.span()?;
        if !fill.is_aligned() {
            return Err(HipError::INVALID_VALUE);
        }
        match self.mirror(stream).place(port, fill.dst.check()?, len, Some(true))? {
            Place::Unknown => Err(HipError::INVALID_VALUE),
            place => Ok(Some(place)),
        }
    }

    /// Returns whether a fill may be executed after its call has returned: if there is such memory.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: it goes beyond the memory it begins in.
    pub(super) fn may_fill_later(&self, port: &dyn Port, fill: &MemoryFill, stream: u64) -> HipResult<bool> {
        let len = fill.span()?;
        Ok(len > 0 && !matches!(self.mirror(stream).place(port, fill.dst, len, Some(true))?, Place::Unknown))
    }

    /// Returns the commands of an operation on a value. In memory that the worker does not have it is this process that writes the value, and
    /// not before the work of the stream that is ahead of it: others may wait for the value.
    pub(crate) fn value_commands(&self, port: &dyn Port, op: &ValueOp, stream: u64) -> Vec<Command> {
        let (at, len) = op.place();
        let place = self.mirror(stream).place(port, at, len, Some(true));
        op.commands(!matches!(place, Ok(Place::Host)))
    }

    /// Returns whether a fill writes to device memory only.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: it goes beyond the memory it begins in.
    pub(super) fn is_fill_on_device(
        &self,
        port: &dyn Port,
        fill: &MemoryFill,
        stream: u64,
    ) -> HipResult<bool> {
        let len = fill.span()?;
        let place = self.mirror(stream).place(port, fill.dst, len, Some(true))?;
        Ok(len > 0 && matches!(place, Place::Device(_)))
    }

    /// Returns whether the worker can execute a command at any time without this process.
    ///
    /// # Errors
    /// Those of carrying it out.
    pub(super) fn needs_only_the_worker(
        &self,
        port: &dyn Port,
        command: &Command,
        stream: u64,
    ) -> HipResult<bool> {
        match command {
            Command::Kernel(kernel) => Ok(!kernel.is_timed() && self.other_device(command, stream).is_none()),
            Command::Copy(copy) => self.is_copy_on_device(port, copy, stream),
            Command::Fill(fill) => self.is_fill_on_device(port, fill, stream),
            _ => Ok(false),
        }
    }
}
