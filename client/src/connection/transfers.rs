//! Copies of consecutive bytes between program and device, and parts of them.

use hipr_proto::op::{self, kind};

/// A copy of consecutive bytes to the device.
#[derive(Clone, Copy, Debug)]
pub struct Upload {
    /// The address of the destination.
    pub dst: u64,
    /// The stream.
    pub stream: u64,
    /// Whether later requests come behind the copy, on any stream.
    pub waits: bool,
    /// The device that has to be current for the request; None if it does not matter.
    pub device: Option<i32>,
}

/// A copy of consecutive bytes to the program.
#[derive(Clone, Copy, Debug)]
pub struct Download {
    /// The address of the source.
    pub src: u64,
    /// The stream.
    pub stream: u64,
    /// The device that has to be current for the request; None if it does not matter.
    pub device: Option<i32>,
}

/// A part of a copy to the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct UploadPart<'a> {
    pub(super) size: u64,
    pub(super) offset: u64,
    pub(super) bytes: &'a [u8],
    pub(super) waits: bool,
    pub(super) purpose: u32,
    pub(super) is_noted: bool,
}

impl Download {
    /// Returns the request for some of the bytes as they are.
    pub(super) fn plain(&self, offset: usize, len: usize) -> op::MemcpyAsync {
        let src = self.src.saturating_add(offset as u64);
        let (size, kind) = (len as u64, kind::DEVICE_TO_HOST);
        op::MemcpyAsync(op::Memcpy { dst: 0, src, size, kind, stream: self.stream })
    }
}
