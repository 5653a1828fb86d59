//! Memory of the program that the runtime has not made: whether it is there, and bytes of it.

use std::fs::File;
use std::io::{BufRead, BufReader, Error};
use std::ops::Range;
use std::ptr::copy;

use crate::pointer::Ptr;

/// What is wanted of memory of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// That it is mapped.
    Mapped,
    /// That it can be read and written.
    Writable,
}

/// Returns whether all of these addresses are mapped in that way. A kernel that touches what is not would end the process.
pub(crate) fn is(wanted: Wanted, range: &Range<u64>) -> bool {
    let Ok(file) = File::open("/proc/self/maps") else {
        tracing::warn!("/proc/self/maps cannot be read: what memory the program has is not known");
        return false;
    };
    // A line begins as in `55d0c0a00000-55d0c0a21000 rw-p`; lines are in the order of the addresses.
    let mut known_to = range.start;
    for line in BufReader::new(file).lines().map_while(Result::ok) {
        let mut words = line.split(' ');
        let bounds = words.next().and_then(|word| word.split_once('-'));
        let number = |text| u64::from_str_radix(text, 16).ok();
        let Some((Some(start), Some(end))) = bounds.map(|(start, end)| (number(start), number(end))) else {
            continue;
        };
        if end <= known_to {
            continue;
        }
        let is_writable = words.next().is_some_and(|access| access.starts_with("rw"));
        if start > known_to || (wanted == Wanted::Writable && !is_writable) {
            return false;
        }
        known_to = end;
        if known_to >= range.end {
            return true;
        }
    }
    false
}

/// There is no memory at an address, or it cannot be accessed as it was to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoMemory(pub(crate) u64);

/// Returns whether a sandbox keeps the process from having the system copy its own memory.
fn is_forbidden(error: &Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EACCES))
}

/// Reads bytes of the program.
///
/// # Errors
/// [`NoMemory`] if some of them are not there; the process lives on.
pub(crate) fn read(addr: u64, out: &mut [u8]) -> Result<(), NoMemory> {
    // SAFETY: a list with the one piece that `out` is.
    let call = |pid, own, other| unsafe { libc::process_vm_readv(pid, own, 1, other, 1, 0) };
    // SAFETY: the program's bytes, which only it vouches for where the system may not check them.
    let plain = |at, into: *mut u8, len| unsafe { copy(Ptr::at(at).raw().cast_const().cast(), into, len) };
    transfer(addr, out.as_mut_ptr(), out.len(), call, plain)
}

/// Writes bytes of the program.
///
/// # Errors
/// [`NoMemory`] if some of them are not there or cannot be written; the process lives on.
pub(crate) fn write(addr: u64, bytes: &[u8]) -> Result<(), NoMemory> {
    // SAFETY: a list with the one piece that `bytes` is, which is only read.
    let call = |pid, own, other| unsafe { libc::process_vm_writev(pid, own, 1, other, 1, 0) };
    // SAFETY: as above.
    let plain = |at, from: *mut u8, len| unsafe { copy(from.cast_const(), Ptr::at(at).raw().cast(), len) };
    transfer(addr, bytes.as_ptr().cast_mut(), bytes.len(), call, plain)
}

/// Has the system move bytes between a buffer and the program's memory, which it checks as it goes; `plain` does it where it may not.
fn transfer(
    addr: u64,
    buffer: *mut u8,
    len_bytes: usize,
    call: impl Fn(libc::pid_t, *const libc::iovec, *const libc::iovec) -> isize,
    plain: impl Fn(u64, *mut u8, usize),
) -> Result<(), NoMemory> {
    // SAFETY: it has no conditions.
    let pid = unsafe { libc::getpid() };
    let mut done = 0;
    while done < len_bytes {
        let at = addr.wrapping_add(done as u64);
        let own = libc::iovec { iov_base: buffer.wrapping_add(done).cast(), iov_len: len_bytes - done };
        let other = libc::iovec { iov_base: Ptr::at(at).raw(), iov_len: len_bytes - done };
        match call(pid, &raw const own, &raw const other) {
            moved @ 1.. => done += moved as usize,
            -1 if is_forbidden(&Error::last_os_error()) => {
                plain(at, buffer.wrapping_add(done), len_bytes - done);
                return Ok(());
            }
            _ => return Err(NoMemory(at)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    static CONSTANT: [u8; 64] = [7; 64];

    #[test]
    fn memory_of_the_program_is_known() {
        let heap = vec![0u8; 3 << 20];
        let addr = |bytes: &[u8]| bytes.as_ptr().expose_provenance() as u64;
        let range = |bytes: &[u8]| addr(bytes)..addr(bytes) + bytes.len() as u64;
        let stack = [0u8; 64];
        assert!(is(Wanted::Writable, &range(&heap)));
        assert!(is(Wanted::Writable, &range(&stack)));
        assert!(is(Wanted::Mapped, &range(&CONSTANT)));
        assert!(!is(Wanted::Writable, &range(&CONSTANT)), "constants cannot be written");
        assert!(!is(Wanted::Mapped, &(addr(&heap)..addr(&heap) + (1 << 46))));
        assert!(!is(Wanted::Mapped, &(4096..8192)));
    }

    #[test]
    fn bytes_that_are_not_there_are_an_error() {
        let addr = |bytes: &[u8]| bytes.as_ptr().expose_provenance() as u64;
        let mut memory = vec![1u8; 100_000];
        let from: Vec<u8> = (0..100_000u32).map(|number| number as u8).collect();
        assert_eq!(write(memory.as_mut_ptr().expose_provenance() as u64, &from), Ok(()));
        assert_eq!(memory, from);
        let mut out = vec![0; 100_000];
        assert_eq!(read(addr(&from), &mut out), Ok(()));
        assert_eq!(out, from);
        assert_eq!(read(4096, &mut out), Err(NoMemory(4096)));
        assert_eq!(write(4096, &from), Err(NoMemory(4096)));
        assert_eq!(write(addr(&CONSTANT), &[1]), Err(NoMemory(addr(&CONSTANT))));
        assert_eq!(read(u64::MAX - 10, &mut out[..5]), Err(NoMemory(u64::MAX - 10)));
    }
}
