//! The file in which a context keeps the memory that its client maps as well.
//!
//! Its bytes are those of the context's window of addresses, in order. Pages that nobody wrote take no memory.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hipr_isa::mem::Block;
use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fstat, ftruncate, memfd_create,
};

/// The unit in which a system may keep the file's pages.
const PAGE_MAX_BYTES: u64 = 2 << 20;

/// Number of bytes that are taken back at once: some milliseconds.
const CLEAR_BYTES: u64 = 16 << 20;

/// Creates a file in memory of this length, which nobody can change.
///
/// # Errors
/// Those of the system.
pub(crate) fn sealed_file(name: &str, len_bytes: u64) -> io::Result<OwnedFd> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, len_bytes)?;
    // Who can make it shorter could end whoever uses it by a signal.
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// A file in memory, whose length nobody can change.
#[derive(Debug)]
pub(crate) struct HostFile {
    file: OwnedFd,
    window: Range<u64>,
    /// Bytes of the blocks that are allocated in it, each rounded up to whole pages.
    block_bytes: u64,
    /// Bytes that have been cleared of the block that is being freed; there is one at a time.
    cleared_bytes: u64,
}

impl HostFile {
    /// Creates the file for a window of addresses.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn new(window: Range<u64>) -> io::Result<Self> {
        let file = sealed_file("hipr-host-memory", window.end.saturating_sub(window.start))?;
        Ok(Self { file, window, block_bytes: 0, cleared_bytes: 0 })
    }

    /// Returns a descriptor of the file for another process.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.file.as_fd().try_clone_to_owned()
    }

    /// Makes a block of the file's bytes for `len_bytes` bytes at `base`, which are in the window; `None` if the system has no memory
    /// for it, or the length is none that a block can have.
    pub(crate) fn block(&mut self, base: u64, len_bytes: u64) -> Option<Block> {
        let block = Block::shared(base, len_bytes, self.as_fd(), base.checked_sub(self.window.start)?)?;
        self.block_bytes += counted(len_bytes);
        Some(block)
    }

    /// Takes back the next memory of a block that nothing uses any more, so that whoever reads it finds zeros; returns whether there is
    /// more. It has to be called until there is none, before [`forget`](Self::forget).
    pub(crate) fn clear(&mut self, block: &Block) -> bool {
        let len = (block.len_bytes() - self.cleared_bytes).min(CLEAR_BYTES);
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let offset = block.base().saturating_sub(self.window.start) + self.cleared_bytes;
        if let Err(why) = fallocate(&self.file, how, offset, len) {
            tracing::warn!("cannot take back memory that was shared with a client: {why}");
        }
        self.cleared_bytes += len;
        let is_over = self.cleared_bytes == block.len_bytes();
        if is_over {
            self.cleared_bytes = 0;
        }
        !is_over
    }

    /// Handles that a block is gone.
    pub(crate) fn forget(&mut self, block: &Block) {
        self.block_bytes -= counted(block.len_bytes());
    }

    /// Returns whether the file has no more memory than that of its blocks and `room_bytes` more: its other users can write to all of it.
    pub(crate) fn is_within(&self, room_bytes: u64) -> bool {
        /// The unit of `st_blocks`.
        const UNIT_BYTES: u64 = 512;
        let max = self.block_bytes.saturating_add(room_bytes);
        fstat(&self.file).is_ok_and(|stat| (stat.st_blocks as u64).saturating_mul(UNIT_BYTES) <= max)
    }
}

impl AsFd for HostFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Returns the memory that a block may take.
fn counted(len_bytes: u64) -> u64 {
    len_bytes.next_multiple_of(PAGE_MAX_BYTES)
}
