//! Physical memory: bytes of the device that have no address of their own. They are parts of a file in memory, so that they can be mapped at
//! any addresses, and at several.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};

use hipr_grid::lock;
use hipr_isa::mem::Piece;
use hipr_proto::{HipError, HipResult};
use rustix::fs::{FallocateFlags, fallocate};

use crate::budget::Reservation;
use crate::host_file::sealed_file;
use crate::name::Name;

/// The length of the file. Only pages that were written take memory.
const FILE_BYTES: u64 = 1 << 46;

/// A context's file of physical memory.
#[derive(Debug)]
pub(crate) struct PhysicalFile {
    file: OwnedFd,
    /// The parts that are in use: where each begins, and how long it is.
    used: Mutex<BTreeMap<u64, u64>>,
}

impl PhysicalFile {
    /// Creates the file.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self { file: sealed_file("hipr-physical-memory", FILE_BYTES)?, used: Mutex::default() }))
    }

    /// Takes the first part that is free and long enough, so that what is allocated one after the other lies one beside the other.
    fn take(&self, len_bytes: u64) -> Option<u64> {
        let mut used = lock(&self.used);
        let mut offset = 0;
        for (&start, &len) in used.iter() {
            if start - offset >= len_bytes {
                break;
            }
            offset = start + len;
        }
        if FILE_BYTES.checked_sub(offset)? < len_bytes {
            return None;
        }
        used.insert(offset, len_bytes);
        Some(offset)
    }

    /// Takes the memory of a part back, so that whoever has it next finds zeros.
    fn give_back(&self, offset: u64, len_bytes: u64) {
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.file, how, offset, len_bytes) {
            Ok(()) => {
                lock(&self.used).remove(&offset);
            }
            // Nobody else gets what it has.
            Err(why) => tracing::warn!("cannot take back physical memory: {why}"),
        }
    }
}

/// The bytes of physical memory, which are given back when nothing maps them any more.
#[derive(Debug)]
pub(crate) struct Part {
    file: Arc<PhysicalFile>,
    offset_bytes: u64,
    len_bytes: u64,
}

impl Part {
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Returns the bytes of the file.
    pub(crate) fn piece(&self) -> Piece<'_> {
        let len_bytes = self.len_bytes as usize;
        Piece { file: self.file.file.as_fd(), offset_bytes: self.offset_bytes, len_bytes }
    }

    /// Returns whether `next` lies right behind this in the same file.
    pub(crate) fn is_before(&self, next: &Self) -> bool {
        Arc::ptr_eq(&self.file, &next.file) && self.offset_bytes + self.len_bytes == next.offset_bytes
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.file.give_back(self.offset_bytes, self.len_bytes);
    }
}

/// Physical memory. It is free for others when no handle and no mapping has it, also where work of before still uses its bytes.
#[derive(Debug)]
pub(crate) struct Physical {
    pub(crate) part: Arc<Part>,
    /// The name by which other contexts find it.
    pub(crate) name: Name,
    _reservation: Reservation,
}

impl Physical {
    /// Allocates as many bytes as were reserved, zeros.
    ///
    /// # Errors
    /// `OUT_OF_MEMORY` if the file has no part that is long enough.
    pub(crate) fn new(file: &Arc<PhysicalFile>, reservation: Reservation) -> HipResult<Self> {
        let len_bytes = reservation.bytes();
        let offset_bytes = file.take(len_bytes).ok_or(HipError::OUT_OF_MEMORY)?;
        let part = Arc::new(Part { file: Arc::clone(file), offset_bytes, len_bytes });
        Ok(Self { part, name: Name::default(), _reservation: reservation })
    }

    pub(crate) fn len_bytes(&self) -> u64 {
        self.part.len_bytes
    }
}
