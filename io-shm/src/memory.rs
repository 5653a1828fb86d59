//! The memory mapping that both sides share: the only unsafe code of the crate.

use std::ffi::c_void;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{NonNull, copy_nonoverlapping, null_mut};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Seals that fix the size of the mapping's file, so that neither side can make the other access memory that does not
/// exist.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Checks that a file in memory has `len_bytes` bytes, and that nobody can change that: so none of them can be missing when it is mapped.
///
/// # Errors
/// [`ErrorKind::InvalidData`] if not; those of the system.
pub fn check_sealed(file: impl AsFd, len_bytes: u64) -> io::Result<()> {
    let is_sealed = fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SEALS));
    if is_sealed && u64::try_from(fstat(&file)?.st_size) == Ok(len_bytes) {
        return Ok(());
    }
    Err(io::Error::new(ErrorKind::InvalidData, "the shared memory has the wrong size or is not sealed"))
}

/// Memory that another process may read and write at any time. It is accessed through atomic words and by copying; no
/// reference to its bytes exists.
#[derive(Debug)]
pub(crate) struct Memory {
    start: NonNull<c_void>,
    len: usize,
}

// SAFETY: the mapping belongs to the value and not to a thread; all access is by atomics and copies.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Creates shared memory; returns it with the descriptor to pass on.
    pub(crate) fn make(len: usize) -> io::Result<(Self, OwnedFd)> {
        let file = memfd_create("hipr-rings", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, len as u64)?;
        fcntl_add_seals(&file, SEALS)?;
        Ok((Self::map(&file, len, ProtFlags::READ | ProtFlags::WRITE)?, file))
    }

    /// Creates memory that others can only read; returns it with the descriptor to pass on.
    pub(crate) fn make_to_read(len: usize) -> io::Result<(Self, OwnedFd)> {
        let file = memfd_create("hipr-number", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, len as u64)?;
        let memory = Self::map(&file, len, ProtFlags::READ | ProtFlags::WRITE)?;
        fcntl_add_seals(&file, SEALS | SealFlags::FUTURE_WRITE)?;
        Ok((memory, file))
    }

    /// Maps memory that another process made and alone writes. Only loads may follow.
    ///
    /// # Errors
    /// As of [`take`](Self::take).
    pub(crate) fn take_to_read(file: &OwnedFd, len: usize) -> io::Result<Self> {
        check_sealed(file, len as u64)?;
        Self::map(file, len, ProtFlags::READ)
    }

    /// Maps memory that the other side created.
    ///
    /// # Errors
    /// It is not of that size, or could be made shorter.
    pub(crate) fn take(file: &OwnedFd, len: usize) -> io::Result<Self> {
        check_sealed(file, len as u64)?;
        Self::map(file, len, ProtFlags::READ | ProtFlags::WRITE)
    }

    fn map(file: &impl AsFd, len: usize, access: ProtFlags) -> io::Result<Self> {
        // SAFETY: a new mapping at an address that the system chooses.
        let start = unsafe { mmap(null_mut(), len, access, MapFlags::SHARED, file, 0) }?;
        let start = NonNull::new(start).ok_or(ErrorKind::OutOfMemory)?;
        Ok(Self { start, len })
    }

    /// Returns the address of `len` bytes at offset `at`.
    ///
    /// # Panics
    /// They are not all in the mapping.
    fn address(&self, at: usize, len: usize) -> *mut u8 {
        assert!(
            at.checked_add(len).is_some_and(|end| end <= self.len),
            "{len} bytes at offset {at} of {}",
            self.len
        );
        self.start.as_ptr().cast::<u8>().wrapping_add(at)
    }

    /// Returns the word at offset `at`, a multiple of 4.
    pub(crate) fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(align_of::<AtomicU32>()), "words are aligned");
        // SAFETY: aligned and in the mapping (checked), which lives as long as `self`; zeroed when made, and nothing but atomic
        // access happens to words here. Another process that does otherwise changes what is read and nothing else.
        unsafe { AtomicU32::from_ptr(self.address(at, size_of::<AtomicU32>()).cast()) }
    }

    /// Returns the number at offset `at`, a multiple of 8.
    pub(crate) fn number(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(align_of::<AtomicU64>()), "numbers are aligned");
        // SAFETY: as for `word`. Memory that can only be read is only loaded from.
        unsafe { AtomicU64::from_ptr(self.address(at, size_of::<AtomicU64>()).cast()) }
    }

    /// Copies bytes into the mapping.
    pub(crate) fn copy_in(&self, at: usize, bytes: &[u8]) {
        let place = self.address(at, bytes.len());
        // SAFETY: the place is in the mapping (checked), which no slice of this process lies in. That the other process may read or
        // write there at the same time makes the bytes arbitrary, which they are to it anyway.
        unsafe { copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
    }

    /// Copies bytes out of the mapping.
    pub(crate) fn copy_out(&self, at: usize, into: &mut [u8]) {
        let place = self.address(at, into.len());
        // SAFETY: as for `copy_in`; what arrives may be any bytes.
        unsafe { copy_nonoverlapping(place, into.as_mut_ptr(), into.len()) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: this value's own mapping; nothing borrows from it any more. It cannot fail for a mapping that is one.
        let _ = unsafe { munmap(self.start.as_ptr(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_final() {
        let (_memory, file) = Memory::make(8192).unwrap();
        assert!(ftruncate(&file, 4096).is_err(), "cutting it short would end the other side by a signal");
        assert!(ftruncate(&file, 16384).is_err());
        assert!(fcntl_add_seals(&file, SealFlags::WRITE).is_err());
        assert!(Memory::take(&file, 8192).is_ok());
        assert_eq!(Memory::take(&file, 16384).unwrap_err().kind(), ErrorKind::InvalidData);
        let open = memfd_create("open", MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&open, 8192).unwrap();
        assert_eq!(Memory::take(&open, 8192).unwrap_err().kind(), ErrorKind::InvalidData, "not sealed");
    }

    #[test]
    #[should_panic(expected = "of 4096")]
    fn nothing_outside_is_touched() {
        let (memory, _) = Memory::make(4096).unwrap();
        memory.copy_in(4090, b"1234567");
    }
}
