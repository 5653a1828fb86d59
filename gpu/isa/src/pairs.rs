//! Where a block's bytes are: in memory of this process, in a file that another process maps, too, or in memory that somebody else has
//! mapped.

// A mapping is made and ended by system calls, and a slice of what is there cannot be had without naming its address.
#![allow(unsafe_code)]

use std::any::Any;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{NonNull, null_mut, slice_from_raw_parts_mut, with_exposed_provenance_mut};
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::param::page_size;

/// Bytes of a file: whole pages.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The file.
    pub file: BorrowedFd<'a>,
    /// Where they begin, a multiple of the system's page size.
    pub offset_bytes: u64,
    /// How many there are, more than 0.
    pub len_bytes: usize,
}

/// 64-bit words that are there as long as the value.
pub(crate) struct Pairs {
    start: NonNull<AtomicU64>,
    len: usize,
    origin: Origin,
}

/// Where the words come from, which says how they are given back.
enum Origin {
    /// A box of them.
    Boxed,
    /// A mapping that the value has made.
    Mapped,
    /// Mappings that the value has made, one beside the other, and what their memory needs.
    Joined { _keep: Box<dyn Any + Send + Sync> },
    /// Memory of somebody else, who keeps it.
    Lent,
}

// SAFETY: the memory belongs to no thread, and is accessed by atomics only.
unsafe impl Send for Pairs {}
// SAFETY: as above.
unsafe impl Sync for Pairs {}

impl Pairs {
    /// Allocates `len` zeroed words; returns `None` if there is no memory for them.
    pub(crate) fn zeroed(len: usize) -> Option<Self> {
        let words: Box<[AtomicU64]> = bytemuck::try_zeroed_slice_box(len).ok()?;
        // A box is never null, also one of nothing.
        let start = NonNull::new(Box::into_raw(words).cast())?;
        Some(Self { start, len, origin: Origin::Boxed })
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
        Ok(Self { start, len, origin: Origin::Mapped })
    }

    /// Maps pieces of files one beside the other, `len` words in all. Nobody can make the files shorter. What is kept is dropped when nothing
    /// is mapped any more.
    ///
    /// # Errors
    /// `InvalidInput` if they are not whole pages, or not so many words; else those of the system.
    pub(crate) fn joined(
        len: usize,
        pieces: &[Piece<'_>],
        keep: Box<dyn Any + Send + Sync>,
    ) -> io::Result<Self> {
        let len_bytes = len.checked_mul(size_of::<AtomicU64>()).ok_or(io::ErrorKind::InvalidInput)?;
        let lens = || pieces.iter().map(|piece| piece.len_bytes);
        let fits = lens().try_fold(0, usize::checked_add) == Some(len_bytes);
        if len_bytes == 0 || !fits || !lens().all(|len| len > 0 && len.is_multiple_of(page_size())) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: a new mapping at an address that the system chooses.
        let start = unsafe {
            mmap_anonymous(null_mut(), len_bytes, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE)
        }?;
        let start = NonNull::new(start.cast::<AtomicU64>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // From here on the value unmaps all of it, also where a piece fails; nobody has seen its words then.
        let pairs = Self { start, len, origin: Origin::Joined { _keep: keep } };
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
        let mut at_bytes = 0;
        for piece in pieces {
            let at = start.as_ptr().cast::<u8>().wrapping_add(at_bytes).cast();
            // SAFETY: it replaces a part of the mapping that this function has just made, in which nobody has an address.
            unsafe { mmap(at, piece.len_bytes, access, flags, piece.file, piece.offset_bytes) }?;
            at_bytes += piece.len_bytes;
        }
        Ok(pairs)
    }

    /// Maps `len` zeroed words at address `base`.
    ///
    /// # Errors
    /// `InvalidInput` if they are not whole pages; `AlreadyExists` if something is mapped there already; else those of the system.
    pub(crate) fn mapped_at(base: u64, len: usize) -> io::Result<Self> {
        let len_bytes = len.checked_mul(size_of::<AtomicU64>()).ok_or(io::ErrorKind::InvalidInput)?;
        let wanted = usize::try_from(base).map_err(|_| io::ErrorKind::InvalidInput)?;
        if len_bytes == 0 || ![wanted, len_bytes].iter().all(|bytes| bytes.is_multiple_of(page_size())) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
        // SAFETY: a new mapping, which replaces none.
        let start = unsafe { mmap_anonymous(with_exposed_provenance_mut(wanted), len_bytes, access, flags) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let pairs = Self { start, len, origin: Origin::Mapped };
        // A kernel older than Linux 4.17 takes the address as a wish.
        if start.as_ptr().addr() == wanted { Ok(pairs) } else { Err(io::ErrorKind::AlreadyExists.into()) }
    }

    /// Takes `len` words at address `base`; returns `None` if `base` is 0 or no multiple of 8, or if they would wrap around.
    ///
    /// # Safety
    /// These bytes are mapped, readable and writable, as long as the value lives. They may change at any time.
    pub(crate) unsafe fn lent(base: u64, len: usize) -> Option<Self> {
        let base = usize::try_from(base).ok().filter(|base| base.is_multiple_of(align_of::<AtomicU64>()))?;
        let len_bytes =
            len.checked_mul(size_of::<AtomicU64>()).filter(|&bytes| isize::try_from(bytes).is_ok())?;
        base.checked_add(len_bytes)?;
        let start = NonNull::new(with_exposed_provenance_mut(base))?;
        Some(Self { start, len, origin: Origin::Lent })
    }
}

impl Deref for Pairs {
    type Target = [AtomicU64];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: as many aligned words, of which any bits are numbers, which are there as long as the value: allocated, mapped, of
        // a file that cannot become shorter, or lent by somebody who has promised it. Who else writes there changes what is read, as
        // another thread does, and nothing else.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Pairs {
    fn drop(&mut self) {
        match self.origin {
            Origin::Boxed => {
                // SAFETY: what `zeroed` took out of a box of this length.
                drop(unsafe { Box::from_raw(slice_from_raw_parts_mut(self.start.as_ptr(), self.len)) })
            }
            Origin::Mapped | Origin::Joined { .. } => {
                // SAFETY: this value's own mapping, from which nothing borrows any more. It cannot fail for a mapping that is one.
                let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len * size_of::<AtomicU64>()) };
            }
            Origin::Lent => {}
        }
    }
}
