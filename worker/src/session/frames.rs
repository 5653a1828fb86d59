//! How far a session is that unpacks or packs the bytes of a copy.

use hipr_device::Region;
use hipr_io::{PackError, Packer, Unpacker};

use super::counted::Counted;

/// Packed bytes on their way to the device.
#[derive(Debug)]
pub(super) struct Unpacking {
    pub(super) packed: Vec<u8>,
    /// Number of packed bytes that have been unpacked.
    pub(super) at: usize,
    pub(super) unpacker: Unpacker,
    /// The last piece that was unpacked, and how much of it the device has taken.
    pub(super) piece: Vec<u8>,
    pub(super) taken: usize,
    /// Counts the memory of all this.
    pub(super) counted: Option<Counted>,
}

impl Unpacking {
    /// Begins to unpack a frame.
    pub(super) fn new(packed: Vec<u8>, unpacker: Unpacker) -> Self {
        Self { packed, at: 0, unpacker, piece: Vec::new(), taken: 0, counted: None }
    }

    /// Returns bytes that the device has not taken, unpacking at most `max_bytes` more if it has all.
    pub(super) fn piece(&mut self, max_bytes: usize) -> Result<&[u8], PackError> {
        if self.taken == self.piece.len() {
            self.piece.resize(max_bytes, 0);
            let mut rest = self.packed.get(self.at..).unwrap_or_default();
            let len = self.unpacker.unpack(&mut rest, &mut self.piece)?;
            self.piece.truncate(len);
            (self.at, self.taken) = (self.packed.len() - rest.len(), 0);
        }
        Ok(self.piece.get(self.taken..).unwrap_or_default())
    }
}

/// Bytes of the device that are being packed for a reply.
#[derive(Debug)]
pub(super) struct Packing {
    pub(super) src: Region,
    pub(super) stream: u64,
    /// Number of bytes that have been read.
    pub(super) offset: u64,
    pub(super) packer: Packer,
    pub(super) packed: Vec<u8>,
    /// Counts the memory of all this.
    pub(super) counted: Counted,
}

/// A frame that is being sent, or what comes ahead of it and the frame.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) bytes: Vec<u8>,
    /// Counts the memory of all this.
    pub(super) _counted: Counted,
}
