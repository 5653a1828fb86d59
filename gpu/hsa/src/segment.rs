//! Memory in a file of its own, which another process can be given without anything else.
//!
//! Behind the memory the file has a page with a label: what it is, and which pool it is from. Nobody can make the file longer or shorter,
//! so that an access never ends a process.

use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};

use hipr_isa::mem::Block;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::io::{Errno, fcntl_dupfd_cloexec, pread, pwrite};
use rustix::mm::{MapFlags, ProtFlags, mmap};

use crate::pointer::Ptr;
use crate::status::{HsaResult, Status};
use crate::types::MemoryPool;

/// Sizes of allocations are multiples of this many bytes.
pub(crate) const GRANULE_BYTES: u64 = 4096;
/// The first word of a label.
const MAGIC: u64 = u64::from_le_bytes(*b"hiprhsa1");
/// Bytes behind the memory, for the label.
const TAIL_BYTES: u64 = GRANULE_BYTES;
/// What nobody can change about the file.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// What the label says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// The pool that the memory is from.
    pub(crate) pool: MemoryPool,
    /// Length in bytes that was asked for.
    pub(crate) requested_bytes: u64,
    /// `hsa_amd_memory_type_t`.
    pub(crate) kind: u32,
}

/// A file with memory.
#[derive(Debug)]
pub(crate) struct Segment {
    file: OwnedFd,
    len_bytes: u64,
    label: Label,
    /// Numbers of device and file, which say what is the same file.
    number: (u64, u64),
}

fn refused(error: Errno) -> Status {
    tracing::warn!(%error, "the system has no file for memory");
    Status::ERROR_OUT_OF_RESOURCES
}

impl Segment {
    /// Creates a file of `len_bytes` zeros, a multiple of 4,096.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` if the system refuses.
    pub(crate) fn new(len_bytes: u64, label: Label) -> HsaResult<Self> {
        let file_bytes = len_bytes.checked_add(TAIL_BYTES).ok_or(Status::ERROR_OUT_OF_RESOURCES)?;
        let make = || {
            let file = memfd_create("hipr-hsa-part", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
            ftruncate(&file, file_bytes)?;
            let words = [MAGIC, label.pool.0, label.requested_bytes, label.kind.into()];
            pwrite(&file, words.map(u64::to_le_bytes).as_flattened(), len_bytes)?;
            fcntl_add_seals(&file, SEALS)?;
            let stat = fstat(&file)?;
            Ok((file, (stat.st_dev, stat.st_ino)))
        };
        let (file, number) = make().map_err(refused)?;
        Ok(Self { file, len_bytes, label, number })
    }

    /// Takes a file that somebody has given; `None` if it is none that [`new`](Self::new) has made.
    pub(crate) fn received(file: OwnedFd) -> Option<Self> {
        let stat = fstat(&file).ok()?;
        let has_seals = fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SEALS));
        let file_bytes = u64::try_from(stat.st_size).ok().filter(|_| has_seals)?;
        let len_bytes = file_bytes.checked_sub(TAIL_BYTES).filter(|len| len.is_multiple_of(GRANULE_BYTES))?;
        let mut bytes = [0; 32];
        let read = pread(&file, &mut bytes, len_bytes).ok()?;
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(bytes[..read].as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        let [MAGIC, pool, requested_bytes, kind] = words else { return None };
        let is_sound =
            requested_bytes > 0 && requested_bytes.checked_next_multiple_of(GRANULE_BYTES) == Some(len_bytes);
        let label = Label { pool: MemoryPool(pool), requested_bytes, kind: u32::try_from(kind).ok()? };
        is_sound.then_some(Self { file, len_bytes, label, number: (stat.st_dev, stat.st_ino) })
    }

    /// Returns the length of the memory in bytes.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Returns what the label says.
    pub(crate) fn label(&self) -> Label {
        self.label
    }

    /// Returns whether both are the same file.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.number == other.number
    }

    /// Returns the file.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Returns a new descriptor, which the caller has to close.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` if the process has no more of them.
    pub(crate) fn descriptor(&self) -> HsaResult<i32> {
        fcntl_dupfd_cloexec(&self.file, 3).map(OwnedFd::into_raw_fd).map_err(refused)
    }

    /// Maps the memory at `base`, over what is there if it `replaces` it.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` if the system refuses.
    ///
    /// # Safety
    /// With `replaces`, all of the addresses are the caller's, and what was mapped there may go or is the same memory.
    pub(crate) unsafe fn map(&self, base: u64, replaces: bool) -> HsaResult {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let fixed = if replaces { MapFlags::FIXED } else { MapFlags::FIXED_NOREPLACE };
        let flags = MapFlags::SHARED | fixed;
        // SAFETY: the caller's promise; without `replaces` the system refuses what is mapped already.
        let mapped =
            unsafe { mmap(Ptr::at(base).raw(), self.len_bytes as usize, access, flags, &self.file, 0) };
        mapped.map(drop).map_err(refused)
    }

    /// Maps the memory at `base`, where nothing is.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` if the system refuses.
    pub(crate) fn block_at(&self, base: u64) -> HsaResult<Block> {
        // SAFETY: nothing is replaced.
        unsafe { self.map(base, false) }?;
        // SAFETY: the mapping above, which is ended only when nobody has the block any more.
        unsafe { Block::over(base, self.len_bytes) }.ok_or(Status::ERROR_OUT_OF_RESOURCES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(requested_bytes: u64) -> Label {
        Label { pool: MemoryPool(0x203), requested_bytes, kind: 1 }
    }

    #[test]
    fn a_file_is_known_again() {
        let segment = Segment::new(8192, label(5000)).expect("a file");
        let again =
            Segment::received(segment.file.try_clone().expect("a descriptor")).expect("the same file");
        assert_eq!((again.len_bytes(), again.label()), (8192, label(5000)));
        assert!(segment.is_same(&again));
        assert!(!segment.is_same(&Segment::new(8192, label(5000)).expect("a file")));
        assert_eq!(ftruncate(&segment.file, 4096), Err(Errno::PERM), "nobody makes it shorter");
        assert_eq!(ftruncate(&segment.file, 1 << 20), Err(Errno::PERM), "nobody makes it longer");
    }

    #[test]
    fn other_files_are_not_taken() {
        let file = |name, len| {
            let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("a file");
            ftruncate(&file, len).expect("its length");
            file
        };
        assert!(Segment::received(file("empty", 0)).is_none());
        assert!(Segment::received(file("zeros", 3 * 4096)).is_none());
        let with = |words: [u64; 4], seals| {
            let file = file("words", 2 * 4096);
            pwrite(&file, words.map(u64::to_le_bytes).as_flattened(), 4096).expect("a label");
            fcntl_add_seals(&file, seals).expect("seals");
            Segment::received(file).is_some()
        };
        assert!(with([MAGIC, 1, 4096, 0], SEALS));
        assert!(!with([MAGIC, 1, 4096, 0], SealFlags::GROW), "somebody could make it shorter");
        assert!(!with([MAGIC + 1, 1, 4096, 0], SEALS));
        assert!(!with([MAGIC, 1, 4097, 0], SEALS), "longer than the file");
        assert!(!with([MAGIC, 1, 0, 0], SEALS));
        assert!(!with([MAGIC, 1, 4096, u64::MAX], SEALS));
        assert!(Segment::received(std::fs::File::open("/dev/null").expect("a device").into()).is_none());
    }
}
