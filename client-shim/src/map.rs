//! Pages of this process's address space.

use crate::convert::Ptr;

/// `len` bytes of fresh memory at exactly `address`, if nothing is there.
pub(crate) fn at(address: Ptr, len: usize) -> Option<Ptr> {
    exactly(address, len, libc::PROT_READ | libc::PROT_WRITE)
}

/// Keeps `len` bytes at exactly `address` from being used for anything, if nothing is there.
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

/// `len` bytes of fresh memory wherever there is room.
pub(crate) fn anywhere(len: usize) -> Option<Ptr> {
    map(Ptr::NULL, len, libc::PROT_READ | libc::PROT_WRITE, 0)
}

fn map(address: Ptr, len: usize, access: libc::c_int, flags: libc::c_int) -> Option<Ptr> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | flags;
    // SAFETY: new anonymous memory; MAP_FIXED_NOREPLACE never replaces what is there.
    let got = unsafe { libc::mmap(address.as_mut_ptr(), len, access, flags, -1, 0) };
    (got != libc::MAP_FAILED).then(|| Ptr(got.expose_provenance()))
}

/// Gives memory back that `at` or `anywhere` gave.
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
