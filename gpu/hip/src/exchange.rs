//! The exchange of memory and events that the sessions of one worker share.
//!
//! A runtime's handle is for processes that trust each other: its bytes name something of the driver's, and who makes some up may
//! name what is another's. So clients get a token instead, 64 bytes of which 56 are random, and the runtime's handle stays with the
//! worker. With a process per session the tokens are files of a folder that only the worker's user can read, and begin with
//! the number of the session's process, so that its supervisor can take them away when it is gone.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::owner::IpcHandle;
use hipr_proto::{HipError, HipResult};

/// The handle of shared memory or of a shared event that a client gets.
pub(super) type Token = [u8; 64];

/// The memory or event that a token names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shared {
    pub(super) handle: IpcHandle,
    /// Size of the memory; `None` for an event.
    pub(super) len_bytes: Option<u64>,
}

/// The size in the file of an event.
const EVENT: u64 = u64::MAX;
/// Size of a token's file: the runtime's handle and the size.
const FILE_BYTES: usize = size_of::<IpcHandle>() + size_of::<u64>();

/// The table of tokens.
#[derive(Debug)]
pub(super) struct Exchange {
    place: Place,
    /// The files of physical memory, and their lengths in bytes. A file stands for memory in this process only.
    files: Mutex<BTreeMap<Token, (Arc<OwnedFd>, u64)>>,
}

/// Where tokens of memory and events are.
#[derive(Debug)]
enum Place {
    /// A table for the sessions of this process.
    Process(Mutex<BTreeMap<Token, Shared>>),
    /// A folder for the sessions of several processes.
    Folder(PathBuf),
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Removes the files that the session process `pid` left in an exchange folder.
///
/// # Errors
/// The folder cannot be read.
pub fn clear_exchange(folder: &Path, pid: u32) -> std::io::Result<()> {
    let prefix = hex(&pid.to_le_bytes());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn failed(why: std::io::Error) -> HipError {
    tracing::warn!(%why, "cannot share memory or an event");
    HipError::OPERATING_SYSTEM
}

fn new_token() -> HipResult<Token> {
    let mut token = [0; size_of::<Token>()];
    let (number, secret) = token.split_at_mut(size_of::<u32>());
    number.copy_from_slice(&process::id().to_le_bytes());
    File::open("/dev/urandom").and_then(|mut source| source.read_exact(secret)).map_err(failed)?;
    Ok(token)
}

impl Exchange {
    /// Returns whether the sessions are in this process.
    pub(super) fn is_for_one_process(&self) -> bool {
        matches!(self.place, Place::Process(_))
    }

    /// Creates the exchange of this process, or of all processes that use the folder.
    pub(super) fn new(folder: Option<&Path>) -> Self {
        let place = match folder {
            Some(folder) => Place::Folder(folder.to_path_buf()),
            None => Place::Process(Mutex::default()),
        };
        Self { place, files: Mutex::default() }
    }

    /// Adds shared memory or a shared event; returns its token.
    pub(super) fn put(&self, shared: Shared) -> HipResult<Token> {
        let token = new_token()?;
        match &self.place {
            Place::Process(known) => {
                known.lock().unwrap_or_else(PoisonError::into_inner).insert(token, shared);
            }
            Place::Folder(folder) => {
                let len_bytes = shared.len_bytes.unwrap_or(EVENT).to_le_bytes();
                let bytes = [&shared.handle[..], &len_bytes].concat();
                fs::write(folder.join(hex(&token)), bytes).map_err(failed)?;
            }
        }
        Ok(token)
    }

    /// Returns what a token names.
    pub(super) fn find(&self, token: &Token) -> HipResult<Shared> {
        let found = match &self.place {
            Place::Process(known) => known.lock().unwrap_or_else(PoisonError::into_inner).get(token).copied(),
            Place::Folder(folder) => fs::read(folder.join(hex(token))).ok().as_deref().and_then(read),
        };
        found.ok_or(HipError::INVALID_VALUE)
    }

    /// Adds the file of physical memory of so many bytes; returns its token.
    pub(super) fn put_file(&self, file: OwnedFd, len_bytes: u64) -> HipResult<Token> {
        let token = new_token()?;
        self.files().insert(token, (Arc::new(file), len_bytes));
        Ok(token)
    }

    /// Returns the file of physical memory that a token names, and the length of that in bytes.
    pub(super) fn find_file(&self, token: &Token) -> HipResult<(Arc<OwnedFd>, u64)> {
        self.files().get(token).cloned().ok_or(HipError::INVALID_VALUE)
    }

    /// Removes the token of a file.
    pub(super) fn remove_file(&self, token: &Token) {
        self.files().remove(token);
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<Token, (Arc<OwnedFd>, u64)>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a token.
    pub(super) fn remove(&self, token: &Token) {
        match &self.place {
            Place::Process(known) => {
                known.lock().unwrap_or_else(PoisonError::into_inner).remove(token);
            }
            Place::Folder(folder) => {
                if let Err(why) = fs::remove_file(folder.join(hex(token))) {
                    tracing::debug!(%why, "cannot remove the file of a shared handle");
                }
            }
        }
    }
}

fn read(bytes: &[u8]) -> Option<Shared> {
    let bytes: &[u8; FILE_BYTES] = bytes.try_into().ok()?;
    let (handle, len_bytes) = bytes.split_first_chunk()?;
    let len_bytes = u64::from_le_bytes(*len_bytes.first_chunk()?);
    Some(Shared { handle: *handle, len_bytes: (len_bytes != EVENT).then_some(len_bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: Shared = Shared { handle: [5; 64], len_bytes: Some(4096) };
    const AN_EVENT: Shared = Shared { handle: [6; 64], len_bytes: None };

    #[test]
    fn who_has_the_token_finds_what_it_stands_for() {
        let folder = tempfile::tempdir().expect("a folder");
        for exchange in [Exchange::new(None), Exchange::new(Some(folder.path()))] {
            let tokens = [MEMORY, AN_EVENT].map(|shared| exchange.put(shared).expect("a token"));
            assert_ne!(tokens[0], tokens[1]);
            assert_eq!(tokens.map(|token| exchange.find(&token)), [Ok(MEMORY), Ok(AN_EVENT)]);
            let mut other = tokens[0];
            other[63] ^= 1;
            assert_eq!(exchange.find(&other), Err(HipError::INVALID_VALUE));
            exchange.remove(&tokens[0]);
            assert_eq!(exchange.find(&tokens[0]), Err(HipError::INVALID_VALUE));
            assert_eq!(exchange.find(&tokens[1]), Ok(AN_EVENT));
        }
    }

    #[test]
    fn what_a_process_left_is_taken_away() {
        let folder = tempfile::tempdir().expect("a folder");
        let exchange = Exchange::new(Some(folder.path()));
        let token = exchange.put(MEMORY).expect("a token");
        clear_exchange(folder.path(), process::id() ^ 1).expect("a folder");
        assert_eq!(exchange.find(&token), Ok(MEMORY), "another process");
        clear_exchange(folder.path(), process::id()).expect("a folder");
        assert_eq!(exchange.find(&token), Err(HipError::INVALID_VALUE));
    }
}
