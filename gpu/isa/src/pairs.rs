//! Where a block's bytes are: in memory of this process, or in a file that another process maps, too.

// A mapping is made and ended by system calls, and a slice of what is there cannot be had without naming its address.
#![allow(unsafe_code)]

use std::io;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::ptr::{NonNull, null_mut, slice_from_raw_parts_mut};
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// 64-bit words that belong to the value.
pub(crate) struct Pairs {
    start: NonNull<AtomicU64>,
    len: usize,
    is_mapped: bool,
}

// SAFETY: the memory belongs to the value and not to a thread, and is accessed by atomics only.
unsafe impl Send for Pairs {}
// SAFETY: as above.
unsafe impl Sync for Pairs {}

impl Pairs {
    /// Allocates `len` zeroed words; returns `None` if there is no memory for them.
    pub(crate) fn zeroed(len: usize) -> Option<Self> {
        let words: Box<[AtomicU64]> = bytemuck::try_zeroed_slice_box(len).ok()?;
        // A box is never null, also one of nothing.
        let start = NonNull::new(Box::into_raw(words).cast())?;
        Some(Self { start, len, is_mapped: false })
    }

    /// Maps `len` words of a file from byte `offset` on, a multiple of the system's page size. Nobody can make the file shorter.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn mapped(len: usize, file: impl AsFd, offset: u64) -> io::Result<Self> {
        let len_bytes = len.checked_mul(size_of::<AtomicU64>()).ok_or(io::ErrorKind::InvalidInput)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the system chooses.
        let start = unsafe { mmap(null_mut(), len_bytes, access, MapFlags::SHARED, file, offset) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len, is_mapped: true })
    }
}

impl Deref for Pairs {
    type Target = [AtomicU64];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: as many aligned words, of which any bits are numbers, which are there as long as the value: allocated, or mapped of a
        // file that cannot become shorter. Another process that writes there changes what is read, as another thread does, and nothing else.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Pairs {
    fn drop(&mut self) {
        if self.is_mapped {
            // SAFETY: this value's own mapping, from which nothing borrows any more. It cannot fail for a mapping that is one.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len * size_of::<AtomicU64>()) };
        } else {
            // SAFETY: what `zeroed` took out of a box of this length.
            drop(unsafe { Box::from_raw(slice_from_raw_parts_mut(self.start.as_ptr(), self.len)) });
        }
    }
}
