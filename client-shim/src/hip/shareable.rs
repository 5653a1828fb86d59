//! File descriptors by which processes share what is on a worker: files in memory that have the worker's name of it.

use std::fs::File;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, IntoRawFd, RawFd};
use std::os::unix::fs::FileExt;

use hipr_proto::{HipError, HipResult};

use crate::convert::{In, Ptr};

/// What a file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shared {
    /// Physical memory.
    Physical,
}

/// Length of a worker's name of something.
const NAME_BYTES: usize = 64;
/// Length of what is before the name in a file.
const HEAD_BYTES: usize = 16;

impl Shared {
    /// Returns what a file begins with, which tells it from all others.
    fn head(self) -> &'static [u8; HEAD_BYTES] {
        match self {
            Self::Physical => b"hipr physical  \n",
        }
    }
}

/// Makes a file with a name; returns its descriptor, which is the program's.
///
/// # Errors
/// `hipErrorOutOfMemory` if the system has none.
pub(super) fn file_of(what: Shared, name: &[u8; NAME_BYTES]) -> HipResult<RawFd> {
    let failed = |why: std::io::Error| {
        tracing::warn!("cannot make a file to share memory by: {why}");
        HipError::OUT_OF_MEMORY
    };
    // SAFETY: a text that ends with a NUL.
    let descriptor = unsafe { libc::memfd_create(c"hipr-shared".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(failed(std::io::Error::last_os_error()));
    }
    // SAFETY: a new descriptor, which nobody else has.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(what.head()).and_then(|()| file.write_all(name)).map_err(failed)?;
    Ok(file.into_raw_fd())
}

/// Returns the name in a file. Releases before 7.1 take the address of a descriptor, later ones the descriptor in place of the address.
///
/// # Errors
/// `hipErrorInvalidValue` for what is no such file.
pub(super) fn name_in(what: Shared, shareable: Ptr) -> HipResult<[u8; NAME_BYTES]> {
    /// Addresses below this one are none: no system maps them, and descriptors are smaller.
    const FIRST_ADDRESS: usize = 1 << 16;
    let descriptor = match RawFd::try_from(shareable.0) {
        Ok(descriptor) if shareable.0 < FIRST_ADDRESS => descriptor,
        _ => In::<RawFd>::at_address(shareable).check()?,
    };
    if descriptor < 0 {
        return Err(HipError::INVALID_VALUE);
    }
    // SAFETY: it is only read, and not closed; a number that is no descriptor fails to be read.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
    let mut bytes = [0; HEAD_BYTES + NAME_BYTES];
    file.read_exact_at(&mut bytes, 0).map_err(|_| HipError::INVALID_VALUE)?;
    let (head, name) = bytes.split_first_chunk().ok_or(HipError::INVALID_VALUE)?;
    if head != what.head() {
        return Err(HipError::INVALID_VALUE);
    }
    name.try_into().map_err(|_| HipError::INVALID_VALUE)
}
