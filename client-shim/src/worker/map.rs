//! Maps and unmaps pages of this process's address space.

use crate::convert::Ptr;

/// Maps `len` bytes of new memory at exactly `address`; returns None if something is there.
pub(crate) fn at(address: Ptr, len: usize) -> Option<Ptr> {
    exactly(address, len, libc::PROT_READ | libc::PROT_WRITE)
}

/// Reserves `len` bytes of addresses at exactly `address`; returns false if something is there.
pub(crate) fn reserve(address: Ptr, len: usize) -> bool {
    exactly(address, len, libc::PROT_NONE).is_some()
}

fn exactly(address: Ptr, len: usize, access: libc::c_int) -> Option<Ptr> {
    let got = map(address, len, access, libc::MAP_FIXED_NOREPLACE)?;
    if got == address {
        return Some(got);
    }
    // A kernel that does not know the flag takes the address for a wish.
    unmap(got, len);
    None
}

/// Maps `len` bytes of new memory at any address; returns None if out of memory.
pub(crate) fn anywhere(len: usize) -> Option<Ptr> {
    map(Ptr::NULL, len, libc::PROT_READ | libc::PROT_WRITE, 0)
}

fn map(address: Ptr, len: usize, access: libc::c_int, flags: libc::c_int) -> Option<Ptr> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | flags;
    // SAFETY: new anonymous memory; MAP_FIXED_NOREPLACE never replaces what is there.
    let got = unsafe { libc::mmap(address.as_mut_ptr(), len, access, flags, -1, 0) };
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
        let first = anywhere(4096).expect("memory");
        assert_eq!(at(first, 4096), None);
        unmap(first, 4096);
        let again = at(first, 4096);
        // Another thread may have been given it in between; it is never another address.
        assert!(again.is_none_or(|again| again == first));
        if let Some(again) = again {
            unmap(again, 4096);
        }
    }
}
