//! Chooses addresses on a worker's device, within a lease. The rule by which the account of the lease changes is [`Lease`]'s, which the
//! worker applies as well.

use std::ops::Range;
use std::sync::Mutex;

use hipr_abi::{hipMemoryTypeDevice, hipMemoryTypeHost, hipMemoryTypeManaged};
use hipr_proto::op::MemLeaseReply;
use hipr_proto::{HipError, Lease, PLACE_PAGE_BYTES};

use super::shared::{Part, Shared};
use super::told::ToldMemory;

/// The device whose memory is placed: the one that is current when a session opens.
pub(super) const DEVICE: i32 = 0;

/// A kind of memory that the worker allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Memory of `hipMalloc`.
    Device,
    /// Memory of `hipHostMalloc`.
    Host,
    /// Memory of `hipMallocManaged`.
    Managed,
}

impl Kind {
    /// Returns the kind's number on the wire.
    pub(super) fn number(self) -> u32 {
        let number = match self {
            Self::Device => hipMemoryTypeDevice,
            Self::Host => hipMemoryTypeHost,
            Self::Managed => hipMemoryTypeManaged,
        };
        number.unsigned_abs()
    }
}

/// Chooses addresses in a window, upwards, and starts again from its beginning only at its end, so that a freed address stays invalid
/// as long as possible.
#[derive(Debug)]
pub(super) struct Placer {
    pub(super) lease: Lease,
    /// An address behind which nothing was placed yet, in this round through the window.
    next: u64,
    /// Whether the first lease has been read.
    pub(super) is_open: bool,
    /// Whether the worker has no window for this session.
    has_no_window: bool,
    /// What is placed in memory that the worker maps as well.
    pub(super) shared: Shared,
    /// Number of resets.
    pub(super) resets: u64,
    /// Which part of the window is used, and how many parts there are: each worker's link has one, so that no address means two.
    part: (u64, u64),
    /// What was told of free memory.
    pub(super) told: ToldMemory,
}

/// What a worker needs to place memory: the placer, and the right to ask for more.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) placer: Mutex<Placer>,
    /// Held while more is asked for. One thread asks at a time, so that what it misses is what the worker's account misses: nothing is on
    /// its way that another has asked for.
    pub(super) asking: Mutex<()>,
    /// Held while free memory is asked for.
    pub(super) asking_info: Mutex<()>,
}

impl Places {
    /// Returns those of a worker, the one with this number of so many.
    pub(super) fn new(number: usize, workers: usize) -> Self {
        let placer = Placer { part: (number as u64, workers as u64), ..Placer::default() };
        Self { placer: Mutex::new(placer), asking: Mutex::default(), asking_info: Mutex::default() }
    }
}

/// Where memory is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At this address.
    At(u64),
    /// Nowhere before the lease has so many bytes more, and one allocation.
    Missing(u64),
    /// Nowhere: the window has no room for it.
    Nowhere,
}

impl Default for Placer {
    fn default() -> Self {
        Self {
            lease: Lease::default(),
            next: 0,
            is_open: false,
            has_no_window: false,
            shared: Shared::default(),
            resets: 0,
            part: (0, 1),
            told: ToldMemory::default(),
        }
    }
}

impl Placer {
    /// Returns the bytes of the memory that is placed and comes back to the lease.
    pub(super) fn placed_bytes(&self) -> u64 {
        self.lease.placed_bytes()
    }

    /// Places `size` bytes.
    pub(super) fn place(&mut self, size: u64) -> Place {
        let missing = Place::Missing(size.saturating_sub(self.lease.bytes()).max(1));
        if self.has_no_window {
            return Place::Nowhere;
        }
        if self.lease.window().is_empty() {
            return missing;
        }
        let own = self.own_part();
        let gap = |from: u64| {
            let base = self.lease.gap(from.max(own.start), size)?;
            (base.saturating_add(size) <= own.end).then_some(base)
        };
        match gap(self.next).or_else(|| gap(0)).map(|base| (base, self.lease.place(base, size))) {
            Some((base, Ok(()))) => {
                self.next = base + size;
                Place::At(base)
            }
            Some((_, Err(_))) => missing,
            None => Place::Nowhere,
        }
    }

    /// Adds what the worker has granted before a number of resets. A window that cannot be one is none.
    pub(super) fn grant(&mut self, reply: &MemLeaseReply, resets: u64) {
        if resets != self.resets {
            return;
        }
        let start = reply.window_start;
        let window = start..start.saturating_add(reply.window_bytes);
        let known = self.lease.window();
        if start == 0 || window.is_empty() || !(known.is_empty() || known == window) {
            self.has_no_window = true;
            return;
        }
        self.lease.grant(window, reply.added_bytes, reply.added_allocations);
    }

    /// Returns the part of the window in which addresses are chosen.
    fn own_part(&self) -> Range<u64> {
        let (window, (number, parts)) = (self.lease.window(), self.part);
        if parts == 1 {
            return window;
        }
        let part_bytes = (window.end - window.start) / parts / PLACE_PAGE_BYTES * PLACE_PAGE_BYTES;
        let start = window.start + number * part_bytes;
        start..start + part_bytes
    }

    /// Places `size` bytes at an address.
    pub(super) fn place_there(&mut self, base: u64, size: u64) -> Place {
        if self.has_no_window {
            return Place::Nowhere;
        }
        if self.lease.window().is_empty() {
            return Place::Missing(size);
        }
        match self.lease.place(base, size) {
            Ok(()) => Place::At(base),
            Err(HipError::OUT_OF_MEMORY) => Place::Missing(size.saturating_sub(self.lease.bytes()).max(1)),
            Err(_) => Place::Nowhere,
        }
    }

    /// Takes at most so many bytes and allocations out of the lease; returns how much it took.
    pub(super) fn spare(&mut self, bytes: u64, allocations: u64) -> (u64, u64) {
        let spared = (bytes.min(self.lease.bytes()), allocations.min(self.lease.allocations()));
        // There is so much.
        let _ = self.lease.give_back(spared.0, spared.1);
        self.note_room();
        spared
    }

    /// Returns whether `size` bytes that were placed at an address can be part of the file that the worker maps as well, if they shall.
    pub(super) fn part(&self, device_ptr: u64, size: u64, wanted: bool) -> Part {
        self.shared.at(device_ptr, size, self.lease.bytes(), wanted)
    }

    /// Notes that a request is sent that changes the account.
    pub(super) fn note_room(&mut self) {
        self.shared.note_room(self.lease.bytes());
    }

    /// Takes back what was placed at an address last, of which nobody was told.
    pub(super) fn undo(&mut self, device_ptr: u64) {
        self.lease.free(device_ptr);
        self.next = device_ptr;
    }

    /// Frees memory.
    pub(super) fn free(&mut self, device_ptr: u64) {
        self.lease.free(device_ptr);
        self.shared.free(device_ptr);
    }

    /// Frees memory in the order of a stream.
    pub(super) fn free_async(&mut self, device_ptr: u64) {
        self.lease.free_async(device_ptr);
        self.shared.free(device_ptr);
    }

    /// Ends the lease. Addresses go on rising.
    pub(super) fn end(&mut self) {
        self.lease.end();
        self.shared = Shared::default();
        self.told.forget();
        self.resets += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::lock;
    use super::*;

    const PAGE: u64 = PLACE_PAGE_BYTES;

    fn granted(window_bytes: u64, added_bytes: u64) -> MemLeaseReply {
        MemLeaseReply { window_start: 8 * PAGE, window_bytes, added_bytes, added_allocations: 10 }
    }

    fn placer(pages: u64, bytes: u64) -> Placer {
        let mut placer = Placer::default();
        placer.grant(&granted(pages * PAGE, bytes), 0);
        placer
    }

    #[test]
    fn addresses_rise_and_start_again_at_the_end() {
        let mut placer = placer(7, 1000);
        let at = |page: u64| Place::At((8 + page) * PAGE);
        assert_eq!(placer.place(10), at(0));
        placer.lease.free(8 * PAGE);
        assert_eq!(placer.place(10), at(1), "not the page that was just freed");
        assert_eq!(placer.place(10), at(3));
        assert_eq!(placer.place(10), at(5));
        placer.lease.free(11 * PAGE);
        assert_eq!(placer.place(10), at(3), "from the beginning, the first that fits");
        placer.lease.free(9 * PAGE);
        placer.lease.free(13 * PAGE);
        assert_eq!(placer.place(10), at(5));
        assert_eq!(placer.place(2 * PAGE), Place::Missing(2 * PAGE - 980));
        assert_eq!(placer.place(3 * PAGE), Place::Nowhere);
    }

    #[test]
    fn each_worker_has_a_part_of_the_addresses() {
        for (number, first) in [(0, 8), (1, 11), (2, 14)] {
            let places = Places::new(number, 3);
            let mut placer = lock(&places.placer);
            placer.grant(&granted(10 * PAGE, 4 * PAGE), 0);
            assert_eq!(placer.place(10), Place::At(first * PAGE));
            assert_eq!(placer.place(2 * PAGE), Place::Nowhere, "one page is left");
            assert_eq!(placer.place_there(16 * PAGE, 10), Place::At(16 * PAGE), "that of nobody");
            assert_eq!(placer.place_there(16 * PAGE, 10), Place::Nowhere);
            assert_eq!(placer.place_there(100 * PAGE, 10), Place::Nowhere, "not in the window");
        }
    }

    #[test]
    fn what_is_missing_is_asked_for() {
        let mut placer = Placer::default();
        assert_eq!(placer.place(100), Place::Missing(100), "there is no lease yet");
        placer.grant(&granted(100 * PAGE, 60), 0);
        assert_eq!(placer.place(100), Place::Missing(40));
        placer.grant(&granted(100 * PAGE, 40), 0);
        assert_eq!(placer.place(100), Place::At(8 * PAGE));
        assert_eq!(placer.spare(50, 1), (0, 1));
        placer.lease.free(8 * PAGE);
        assert_eq!(placer.spare(70, 1), (70, 1));
        assert_eq!(placer.place(31), Place::Missing(1));
        placer.end();
        placer.grant(&granted(100 * PAGE, 1000), 0);
        assert_eq!(placer.place(10), Place::Missing(10), "what was granted before a reset is gone");
    }

    #[test]
    fn a_window_that_cannot_be_one_is_none() {
        let good = granted(10 * PAGE, 100);
        for (first, bad) in [
            (None, MemLeaseReply { window_bytes: 0, ..good }),
            (None, MemLeaseReply { window_start: 0, ..good }),
            (None, MemLeaseReply { window_start: u64::MAX, ..good }),
            (Some(good), MemLeaseReply { window_start: 9 * PAGE, ..good }),
            (Some(good), MemLeaseReply { window_bytes: 11 * PAGE, ..good }),
        ] {
            let mut placer = Placer::default();
            first.iter().for_each(|reply| placer.grant(reply, 0));
            placer.grant(&bad, 0);
            assert_eq!(placer.place(10), Place::Nowhere, "{bad:?}");
        }
        let mut endless = Placer::default();
        let all = MemLeaseReply {
            window_bytes: u64::MAX,
            added_bytes: u64::MAX,
            added_allocations: u64::MAX,
            ..good
        };
        for _ in 0..3 {
            endless.grant(&all, 0);
            assert!(matches!(endless.place(1 << 50), Place::At(_)));
            assert_eq!(endless.place(u64::MAX), Place::Nowhere);
        }
        endless.grant(&all, 0);
        endless.lease.free(8 * PAGE);
        assert!(matches!(endless.place(16), Place::At(_)));
    }
}
