//! Maps and unmaps pages of this process's address space.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use crate::convert::Ptr;

/// Where the bytes of a mapping come from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// They are new, and this process's own.
    New,
    /// A file in memory that the worker maps, too, from this byte on.
    Shared(Arc<OwnedFd>, u64),
}

/// Maps `len` bytes at exactly `address`; returns None if something is there.
pub(crate) fn at(address: Ptr, len: usize, source: &Source) -> Option<Ptr> {
    exactly(address, len, READ_WRITE, source)
}

/// Reserves `len` bytes of addresses at exactly `address`; returns false if something is there.
pub(crate) fn reserve(address: Ptr, len: usize) -> bool {
    exactly(address, len, libc::PROT_NONE, &Source::New).is_some()
}

fn exactly(address: Ptr, len: usize, access: libc::c_int, source: &Source) -> Option<Ptr> {
    let got = map(address, len, access, libc::MAP_FIXED_NOREPLACE, source)?;
    if got == address {
        return Some(got);
    }
    // A kernel that does not know the flag takes the address for a wish.
    unmap(got, len);
    None
}

/// Maps `len` bytes at any address; returns None if out of memory.
pub(crate) fn anywhere(len: usize, source: &Source) -> Option<Ptr> {
    map(Ptr::NULL, len, READ_WRITE, 0, source)
}

const READ_WRITE: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;

fn map(address: Ptr, len: usize, access: libc::c_int, flags: libc::c_int, source: &Source) -> Option<Ptr> {
    let (kind, file, from) = match source {
        Source::New => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
        Source::Shared(file, from) => {
            (libc::MAP_SHARED, file.as_raw_fd(), libc::off_t::try_from(*from).ok()?)
        }
    };
    let flags = kind | libc::MAP_NORESERVE | flags;
    // SAFETY: a new mapping; MAP_FIXED_NOREPLACE never replaces what is there.
    let got = unsafe { libc::mmap(address.as_mut_ptr(), len, access, flags, file, from) };
    (got != libc::MAP_FAILED).then(|| Ptr(got.expose_provenance()))
}

/// Unmaps memory that `at` or `anywhere` mapped.
pub(crate) fn unmap(address: Ptr, len: usize) {
    // SAFETY: memory that was mapped here, and that the caller does not use any more.
    unsafe { libc::munmap(address.as_mut_ptr(), len) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_taken_is_not_replaced() {
        let first = anywhere(4096, &Source::New).expect("memory");
        assert_eq!(at(first, 4096, &Source::New), None);
        unmap(first, 4096);
        let again = at(first, 4096, &Source::New);
        // Another thread may have been given it in between; it is never another address.
        assert!(again.is_none_or(|again| again == first));
        if let Some(again) = again {
            unmap(again, 4096);
        }
    }
}
