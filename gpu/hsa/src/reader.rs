//! Code object readers: where the bytes of a code object come from.
//!
//! What is in memory is read when it is loaded, so it must stay until then, as the standard says; a file is read when its reader is
//! created. After that a reader is not needed for what was loaded from it.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::fmt::Write as _;
use std::fs::File;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use hipr_code_object::IMAGE_MAX_BYTES;

use crate::pointer::{Out, Ptr};
use crate::runtime::runtime;
use crate::status::{HsaResult, Status};
use crate::types::CodeObjectReader;

/// Where a code object lies outside of this library.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// In the program's memory.
    Memory {
        /// Its first byte.
        base: Ptr,
        /// Its length in bytes.
        len_bytes: u64,
    },
    /// In a file.
    File {
        /// The program's descriptor of it.
        file: RawFd,
        /// What the system calls it.
        path: Arc<CStr>,
        /// Where the code object begins in it.
        offset: u64,
        /// The length of the code object in bytes.
        len_bytes: u64,
        /// The length of the file in bytes.
        file_bytes: u64,
    },
}

impl Origin {
    /// Returns the address of the code object as the loader extension writes it: `file://PATH` or `memory://PID`, and which bytes of that.
    pub(crate) fn uri(&self) -> String {
        match self {
            Self::Memory { base, len_bytes } => {
                format!("memory://{}#offset={:#x}&size={len_bytes}", std::process::id(), base.addr())
            }
            Self::File { path, offset, len_bytes, file_bytes, .. } => {
                let mut uri = "file://".to_owned();
                for &byte in path.to_bytes() {
                    if byte.is_ascii_alphanumeric() || b"/_.~-".contains(&byte) {
                        uri.push(char::from(byte));
                    } else {
                        // Writing to a text cannot fail.
                        let _ = write!(uri, "%{byte:02X}");
                    }
                }
                if (*offset, len_bytes) != (0, file_bytes) {
                    let _ = write!(uri, "#offset={offset}&size={len_bytes}");
                }
                uri
            }
        }
    }
}

/// A code object reader.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) origin: Origin,
    /// The bytes of a file.
    contents: Vec<u8>,
}

impl Reader {
    /// Returns the bytes of the code object.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.origin {
            // SAFETY: the program has said that these bytes are there as long as the reader is used, and are the code object.
            Origin::Memory { base, len_bytes } => unsafe { base.bytes(*len_bytes as usize) },
            Origin::File { .. } => &self.contents,
        }
    }

    /// Reads `len_bytes` bytes of a file from `offset` on; all that follow if `len_bytes` is 0.
    ///
    /// # Errors
    /// `INVALID_FILE` for what is no file that can be read, `INVALID_CODE_OBJECT` for a part that it does not have or that is empty,
    /// `OUT_OF_RESOURCES` without memory for it.
    fn of_file(file: RawFd, offset: u64, len_bytes: u64) -> HsaResult<Self> {
        let unreadable = |error: std::io::Error| {
            tracing::warn!(%error, file, "a code object's file cannot be read");
            Status::ERROR_INVALID_FILE
        };
        if file < 0 {
            return Err(Status::ERROR_INVALID_FILE);
        }
        // SAFETY: the descriptor is the program's, which keeps it open during the call; one that is not open is an error of the next line.
        let borrowed = unsafe { BorrowedFd::borrow_raw(file) };
        let own = File::from(borrowed.try_clone_to_owned().map_err(unreadable)?);
        let facts = own.metadata().map_err(unreadable)?;
        if !facts.is_file() {
            return Err(Status::ERROR_INVALID_FILE);
        }
        let file_bytes = facts.len();
        let rest = file_bytes.checked_sub(offset).ok_or(Status::ERROR_INVALID_CODE_OBJECT)?;
        let len_bytes = if len_bytes == 0 { rest } else { len_bytes };
        if len_bytes == 0 || len_bytes > rest || len_bytes > IMAGE_MAX_BYTES {
            return Err(Status::ERROR_INVALID_CODE_OBJECT);
        }
        let mut contents = Vec::new();
        contents.try_reserve_exact(len_bytes as usize).map_err(|_| Status::ERROR_OUT_OF_RESOURCES)?;
        contents.resize(len_bytes as usize, 0);
        own.read_exact_at(&mut contents, offset).map_err(unreadable)?;
        let path = std::fs::read_link(format!("/proc/self/fd/{file}")).map_err(unreadable)?;
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Status::ERROR_INVALID_FILE)?;
        let origin = Origin::File { file, path: path.into(), offset, len_bytes, file_bytes };
        Ok(Self { origin, contents })
    }
}

/// The readers that the program has.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    last: AtomicU64,
    by_handle: RwLock<HashMap<u64, Arc<Reader>>>,
}

impl Readers {
    fn add(&self, reader: Reader) -> CodeObjectReader {
        let handle = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut readers = self.by_handle.write().unwrap_or_else(PoisonError::into_inner);
        readers.insert(handle, Arc::new(reader));
        CodeObjectReader(handle)
    }

    /// Returns the reader with this handle.
    ///
    /// # Errors
    /// `INVALID_CODE_OBJECT_READER` if there is none.
    pub(crate) fn get(&self, reader: CodeObjectReader) -> HsaResult<Arc<Reader>> {
        let readers = self.by_handle.read().unwrap_or_else(PoisonError::into_inner);
        readers.get(&reader.0).map(Arc::clone).ok_or(Status::ERROR_INVALID_CODE_OBJECT_READER)
    }
}

/// `hsa_code_object_reader_create_from_memory`.
pub(crate) fn reader_from_memory(base: Ptr, len_bytes: usize, reader: Out<CodeObjectReader>) -> HsaResult {
    let runtime = runtime()?;
    if base.is_null() || len_bytes == 0 || reader.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    if len_bytes > isize::MAX as usize {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let origin = Origin::Memory { base, len_bytes: len_bytes as u64 };
    reader.put(runtime.part::<Readers>().add(Reader { origin, contents: Vec::new() }))
}

/// `hsa_code_object_reader_create_from_file`.
pub(crate) fn reader_from_file(file: i32, reader: Out<CodeObjectReader>) -> HsaResult {
    reader_from_part_of_file(file, 0, 0, reader)
}

/// `hsa_ven_amd_loader_code_object_reader_create_from_file_with_offset_size`; a length of 0 is what the file has from `offset` on.
pub(crate) fn reader_from_part_of_file(
    file: i32,
    offset: usize,
    len_bytes: usize,
    reader: Out<CodeObjectReader>,
) -> HsaResult {
    let runtime = runtime()?;
    if reader.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let made = Reader::of_file(file, offset as u64, len_bytes as u64)?;
    reader.put(runtime.part::<Readers>().add(made))
}

/// `hsa_code_object_reader_destroy`.
pub(crate) fn destroy_reader(reader: CodeObjectReader) -> HsaResult {
    let runtime = runtime()?;
    let mut readers = runtime.part::<Readers>().by_handle.write().unwrap_or_else(PoisonError::into_inner);
    let removed = readers.remove(&reader.0);
    drop(readers);
    removed.map(drop).ok_or(Status::ERROR_INVALID_CODE_OBJECT_READER)
}
