//! Addresses of the process that are reserved: taken from the system, given back, and kept for a while after they were freed.
//!
//! AMD's runtime 6.4.3 may still look an address up after it has freed it, on its thread for completed commands: it then finds, or forgets,
//! whatever it has reserved at the same address since, and crashes. So the addresses that were freed last are not reserved again.

use std::collections::VecDeque;
use std::ops::Range;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::foreign::is_foreign;
use crate::pointer::Ptr;
use crate::segment::GRANULE_BYTES;

/// Maximum number of freed ranges that are kept from the system.
const FREED_MAX: usize = 64;
/// Maximum length of such a range: together they leave a process most of its addresses.
const FREED_MAX_BYTES: u64 = 1 << 39;

/// What is at reserved addresses where no handle is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing that anybody may access.
    Nothing,
    /// Zeroed memory of the program, which it may access, lock and give attributes. Its length is any, its end that of a page.
    HostMemory,
}

impl Content {
    fn protection(self) -> ProtFlags {
        match self {
            Self::Nothing => ProtFlags::empty(),
            Self::HostMemory => ProtFlags::READ | ProtFlags::WRITE,
        }
    }
}

/// Gives addresses back to the system, with what is mapped there.
pub(crate) fn release_addresses(base: u64, len_bytes: u64) {
    if len_bytes == 0 {
        return;
    }
    // SAFETY: addresses that `reserve` has taken for this, which no kernel has any more.
    if let Err(error) = unsafe { munmap(Ptr::at(base).raw(), len_bytes as usize) } {
        tracing::warn!(%error, len_bytes, "reserved addresses could not be given back to the system");
    }
}

/// Maps the content of a reservation: where the system likes, or at `base`, over what is there if it `replaces` it.
///
/// # Safety
/// With `replaces`, all of the addresses are the caller's, and what was mapped there may go.
pub(crate) unsafe fn map_content(base: u64, len_bytes: u64, content: Content, replaces: bool) -> Option<u64> {
    let mut flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    if base != 0 {
        flags |= if replaces { MapFlags::FIXED } else { MapFlags::FIXED_NOREPLACE };
    }
    let len = usize::try_from(len_bytes).ok()?;
    // SAFETY: the caller's promise; without `replaces` the system refuses what is mapped already.
    let mapped = unsafe { mmap_anonymous(Ptr::at(base).raw(), len, content.protection(), flags) };
    Some(mapped.ok()?.expose_provenance() as u64)
}

/// Reserves addresses of the process, those from `wish` on if it is not 0 and they are free.
pub(crate) fn reserve(len_bytes: u64, wish: u64, align_bytes: u64, content: Content) -> Option<u64> {
    let wished = wish..wish.checked_add(len_bytes).unwrap_or(0);
    if wish.is_multiple_of(align_bytes) && is_foreign(&wished) {
        // SAFETY: nothing is replaced.
        match unsafe { map_content(wish, len_bytes, content, false) } {
            Some(base) if base == wish => return Some(base),
            // A kernel older than Linux 4.17 takes the address as a wish.
            Some(base) => release_addresses(base, len_bytes),
            None => {}
        }
    }
    // As many more that a multiple is among them, less the rest.
    let more_bytes = len_bytes.checked_add(align_bytes - GRANULE_BYTES)?;
    // SAFETY: nothing is replaced.
    let first = unsafe { map_content(0, more_bytes, content, false) }?;
    let base = first.next_multiple_of(align_bytes);
    release_addresses(first, base - first);
    release_addresses(base + len_bytes, first + more_bytes - base - len_bytes);
    if is_foreign(&(base..base + len_bytes)) {
        return Some(base);
    }
    release_addresses(base, len_bytes);
    None
}

/// Ranges of addresses that were freed last, the oldest first. Nothing is mapped there that anybody may access.
#[derive(Debug, Default)]
pub(crate) struct Freed(VecDeque<Range<u64>>);

impl Freed {
    /// Keeps addresses without content that were freed, and gives the oldest ones back for them. Those of a longer range are given back at once.
    pub(crate) fn keep(&mut self, range: Range<u64>) {
        let len_bytes = range.end - range.start;
        if len_bytes > FREED_MAX_BYTES {
            return release_addresses(range.start, len_bytes);
        }
        if self.0.len() == FREED_MAX
            && let Some(oldest) = self.0.pop_front()
        {
            release_addresses(oldest.start, oldest.end - oldest.start);
        }
        self.0.push_back(range);
    }

    /// Gives all ranges back to the system that have addresses of this one.
    pub(crate) fn give_back(&mut self, wanted: &Range<u64>) {
        self.0.retain(|range| {
            let stays = range.end <= wanted.start || wanted.end <= range.start;
            if !stays {
                release_addresses(range.start, range.end - range.start);
            }
            stays
        });
    }
}

impl Drop for Freed {
    fn drop(&mut self) {
        self.give_back(&(0..u64::MAX));
    }
}
