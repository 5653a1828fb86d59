//! Receive buffers shared by all connections: the kernel picks one when bytes arrive, so that idle connections hold none.

use std::alloc::{self, Layout};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering::Release};

use hipr_io::Config;
use io_uring::types::BufRingEntry;

use crate::refusal;
use crate::ring::Ring;

/// The kernel's number for this group of buffers.
pub(crate) const GROUP: u16 = 0;
/// Number of buffers, a power of two: as many small messages can arrive in one turn before a receive has to be restarted.
const COUNT: u16 = 256;
/// Size of a buffer in bytes: reads up to this size are copied anyway, so that the buffer is free again at once.
pub(crate) const LEN_BYTES: usize = Config::SMALL_READ_BYTES;

/// The ring of buffers that are offered to the kernel.
pub(crate) struct Buffers {
    /// The ring's entries: page-aligned memory that the kernel reads.
    entries: NonNull<BufRingEntry>,
    /// Number of buffers offered so far.
    tail: u16,
    buffers: Vec<Vec<u8>>,
}

// SAFETY: the memory belongs to this value alone, and is written through `&mut self`.
unsafe impl Send for Buffers {}

impl Buffers {
    /// Allocates the buffers and offers them to the ring's kernel. They have to outlive the ring's requests.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn new(ring: &Ring) -> io::Result<Self> {
        // SAFETY: the layout has a size.
        let memory = unsafe { alloc::alloc_zeroed(Self::layout()) };
        let entries = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut made = Self { entries, tail: 0, buffers: vec![Vec::new(); COUNT.into()] };
        let at = entries.as_ptr() as u64;
        // SAFETY: there are so many entries, and they live until `made` is dropped, which outlives the ring.
        unsafe { ring.submitter().register_buf_ring_with_flags(at, COUNT, GROUP, 0) }
            .map_err(|why| refusal::explain(&why))?;
        (0..COUNT).for_each(|number| made.offer(number));
        Ok(made)
    }

    fn layout() -> Layout {
        let page = rustix::param::page_size();
        let len = usize::from(COUNT) * size_of::<BufRingEntry>();
        Layout::from_size_align(len, page).unwrap_or_else(|_| Layout::new::<BufRingEntry>())
    }

    /// Returns a buffer that the kernel filled; it has to be offered again.
    pub(crate) fn filled(&mut self, number: u16) -> Option<&mut Vec<u8>> {
        self.buffers.get_mut(usize::from(number))
    }

    /// Offers a buffer to the kernel.
    pub(crate) fn offer(&mut self, number: u16) {
        let Some(buffer) = self.buffers.get_mut(usize::from(number)) else { return };
        if buffer.len() < LEN_BYTES {
            // Only when it is used the first time.
            *buffer = vec![0; LEN_BYTES];
        }
        let at = usize::from(self.tail & (COUNT - 1));
        // SAFETY: `at` is below the number of entries; the kernel does not read this one before the tail passes it, and never
        // writes it. The tail lies where no setter writes.
        let entry = unsafe { &mut *self.entries.as_ptr().add(at) };
        entry.set_addr(buffer.as_mut_ptr() as u64);
        entry.set_len(LEN_BYTES as u32);
        entry.set_bid(number);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail of the ring's own memory, aligned, which only this writes.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.entries.as_ptr()).cast_mut()) };
        tail.store(self.tail, Release);
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { alloc::dealloc(self.entries.as_ptr().cast(), Self::layout()) }
    }
}
