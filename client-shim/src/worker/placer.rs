//! Places memory on the worker's device, within a lease, without waiting.
//!
//! The account of the lease has to change in the order in which the requests leave: whoever does either does both, with the
//! placer locked. The rule by which it changes is [`Lease`]'s, which the worker applies as well.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use hipr_abi::{hipMemoryTypeDevice, hipMemoryTypeHost, hipMemoryTypeManaged};
use hipr_proto::op::{self, MemLeaseReply, MemShareReply};
use hipr_proto::{Features, HipError, HipResult, Lease, Op};

use super::map::Source;
use super::shared::{Part, Shared};
use super::told::ToldMemory;
use super::{Worker, lock};
use crate::thread;

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
    fn number(self) -> u32 {
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
#[derive(Debug, Default)]
pub(super) struct Placer {
    lease: Lease,
    /// An address behind which nothing was placed yet, in this round through the window.
    next: u64,
    /// Whether the first lease has been read.
    is_open: bool,
    /// Whether the worker has no window for this session.
    has_no_window: bool,
    /// What is placed in memory that the worker maps as well.
    shared: Shared,
    /// Number of resets.
    resets: u64,
    /// What was told of free memory.
    pub(super) told: ToldMemory,
}

/// What a worker needs to place memory: the placer, and the right to ask for more.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) placer: Mutex<Placer>,
    /// Held while more is asked for. One thread asks at a time, so that what it misses is what the worker's account misses: nothing is on
    /// its way that another has asked for.
    asking: Mutex<()>,
    /// Held while free memory is asked for.
    pub(super) asking_info: Mutex<()>,
}

/// Whether memory is to be one that worker and process both map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    No,
    Wanted,
}

/// Where memory is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At this address.
    At(u64),
    /// Nowhere before the lease has so many bytes more, and one allocation.
    Missing(u64),
    /// Nowhere: the window has no room for it.
    Nowhere,
}

impl Placer {
    /// Returns the bytes of the memory that is placed and comes back to the lease.
    pub(super) fn placed_bytes(&self) -> u64 {
        self.lease.placed_bytes()
    }

    /// Places `size` bytes.
    fn place(&mut self, size: u64) -> Place {
        let missing = Place::Missing(size.saturating_sub(self.lease.bytes()).max(1));
        if self.has_no_window {
            return Place::Nowhere;
        }
        if self.lease.window().is_empty() {
            return missing;
        }
        let gap = self.lease.gap(self.next, size).or_else(|| self.lease.gap(0, size));
        match gap.map(|base| (base, self.lease.place(base, size))) {
            Some((base, Ok(()))) => {
                self.next = base + size;
                Place::At(base)
            }
            Some((_, Err(_))) => missing,
            None => Place::Nowhere,
        }
    }

    /// Adds what the worker has granted before a number of resets. A window that cannot be one is none.
    fn grant(&mut self, reply: &MemLeaseReply, resets: u64) {
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

    /// Takes at most so many bytes and allocations out of the lease; returns how much it took.
    fn spare(&mut self, bytes: u64, allocations: u64) -> (u64, u64) {
        let spared = (bytes.min(self.lease.bytes()), allocations.min(self.lease.allocations()));
        // There is so much.
        let _ = self.lease.give_back(spared.0, spared.1);
        spared
    }

    /// Takes back what was placed at an address last, of which nobody was told.
    fn undo(&mut self, device_ptr: u64) {
        self.lease.free(device_ptr);
        self.next = device_ptr;
    }

    /// Frees memory.
    fn free(&mut self, device_ptr: u64) {
        self.lease.free(device_ptr);
        self.shared.free(device_ptr);
    }

    /// Frees memory in the order of a stream.
    pub(super) fn free_async(&mut self, device_ptr: u64) {
        self.lease.free_async(device_ptr);
        self.shared.free(device_ptr);
    }

    /// Ends the lease. Addresses go on rising.
    fn end(&mut self) {
        self.lease.end();
        self.shared = Shared::default();
        self.told.forget();
        self.resets += 1;
    }
}

impl Worker {
    fn can_place(&self) -> bool {
        self.features().contains(Features::PLACES)
    }

    /// Reads the first lease, which came with the first flight.
    fn open(&self, placer: &mut Placer) {
        if !std::mem::replace(&mut placer.is_open, true) {
            match self.connection.first_lease() {
                Some(Ok(reply)) => placer.grant(&reply, placer.resets),
                Some(Err(error)) => tracing::debug!("no lease with the first flight: {error}"),
                None => {}
            }
        }
    }

    /// Allocates memory of the current device; returns its address. While the lease lasts nothing is waited for.
    ///
    /// # Errors
    /// `hipErrorOutOfMemory`, or another error that the worker answers when the lease does not last; a lost connection.
    pub(crate) fn allocate(&self, kind: Kind, size: u64, flags: u32) -> HipResult<u64> {
        match self.place(kind, size, flags)? {
            Some(device_ptr) => Ok(device_ptr),
            None => self.allocate_there(kind, size, flags),
        }
    }

    /// Allocates memory of the current device at an address that the worker chooses; waits.
    fn allocate_there(&self, kind: Kind, size: u64, flags: u32) -> HipResult<u64> {
        Ok(match kind {
            Kind::Device => self.ask(&op::Malloc { size, flags })?.device_ptr,
            Kind::Host => self.ask(&op::MallocHost { size, flags })?.device_ptr,
            Kind::Managed => self.ask(&op::MallocManaged { size, flags })?.device_ptr,
        })
    }

    /// Allocates memory of the current device at an address that is chosen here; returns the address, or `None` where the worker
    /// has to choose one. While the lease lasts nothing is waited for.
    ///
    /// # Errors
    /// `hipErrorOutOfMemory`, or another error that the worker answers when the lease does not last; a lost connection.
    pub(crate) fn place(&self, kind: Kind, size: u64, flags: u32) -> HipResult<Option<u64>> {
        Ok(self.place_with(kind, size, flags, Sharing::No)?.map(|(device_ptr, _)| device_ptr))
    }

    /// Allocates host memory of the current device, of whole pages; returns its address there, and what this process has to map for it. While
    /// the lease lasts nothing is waited for, but the first time for memory that both sides map.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    pub(crate) fn allocate_host(&self, kind: Kind, size: u64, flags: u32) -> HipResult<(u64, Source)> {
        match self.place_with(kind, size, flags, Sharing::Wanted)? {
            Some(placed) => Ok(placed),
            None => Ok((self.allocate_there(kind, size, flags)?, Source::New)),
        }
    }

    fn place_with(
        &self,
        kind: Kind,
        size: u64,
        flags: u32,
        sharing: Sharing,
    ) -> HipResult<Option<(u64, Source)>> {
        if !self.can_place() {
            return Ok(None);
        }
        if self.there(thread::device()) != DEVICE {
            self.make_room(size)?;
            return Ok(None);
        }
        let shares = sharing == Sharing::Wanted && self.features().contains(Features::SHARED);
        let mut asking = None;
        loop {
            let mut placer = lock(&self.places.placer);
            self.open(&mut placer);
            match placer.place(size) {
                Place::At(device_ptr) => match placer.shared.at(device_ptr, size, shares) {
                    Part::None => {
                        // What the lease has is there.
                        self.put(&op::MallocAt { device_ptr, size, kind: kind.number(), flags })?;
                        return Ok(Some((device_ptr, Source::New)));
                    }
                    Part::Of(file) => {
                        placer.shared.add(device_ptr, size);
                        let offset = device_ptr - placer.lease.window().start;
                        self.tell(&op::MallocShared { device_ptr, size, kind: kind.number(), flags })?;
                        return Ok(Some((device_ptr, Source::Shared(file, offset))));
                    }
                    Part::Unknown => {
                        placer.undo(device_ptr);
                        if asking.is_none() {
                            drop(placer);
                            asking = Some(lock(&self.places.asking));
                            continue;
                        }
                        let (resets, frees) = (placer.resets, placer.shared.frees);
                        let window = placer.lease.window();
                        let asked = self.connection.start(&op::MemShare {}, self.extra())?;
                        drop(placer);
                        let reply = self.connection.finish(asked).map_err(HipError::from);
                        let file = reply.map(|reply| self.take_file(&reply, &window));
                        let mut placer = lock(&self.places.placer);
                        if placer.resets == resets {
                            placer.shared.learn(file, frees);
                        }
                    }
                },
                Place::Missing(_) if asking.is_none() => {
                    drop(placer);
                    asking = Some(lock(&self.places.asking));
                }
                Place::Missing(want_bytes) => {
                    let resets = placer.resets;
                    let asked = self.connection.start(&op::MemLease { want_bytes }, self.extra())?;
                    drop(placer);
                    let reply = self.connection.finish(asked)?;
                    if reply.window_bytes > 0
                        && (reply.added_bytes < want_bytes || reply.added_allocations == 0)
                    {
                        return Err(HipError::OUT_OF_MEMORY);
                    }
                    lock(&self.places.placer).grant(&reply, resets);
                }
                Place::Nowhere => {
                    drop(placer);
                    self.make_room(size)?;
                    return Ok(None);
                }
            }
        }
    }

    /// Returns the file that the worker has passed with a reply; `None` if it has passed none that can be used.
    fn take_file(&self, reply: &MemShareReply, window: &Range<u64>) -> Option<Arc<OwnedFd>> {
        let file_bytes = window.end - window.start;
        if reply.is_passed == 0 || reply.file_bytes != file_bytes {
            return None;
        }
        match self.connection.take_file(file_bytes) {
            Ok(file) => Some(Arc::new(file)),
            Err(why) => {
                tracing::warn!("pinned and managed memory is copied between program and worker: {why}");
                None
            }
        }
    }

    /// Gives as much of the lease back as a request will need that has to find `size` bytes elsewhere, so that it finds what it would
    /// find without a lease.
    ///
    /// # Errors
    /// A lost connection.
    pub(crate) fn make_room(&self, size: u64) -> HipResult<()> {
        if !self.can_place() {
            return Ok(());
        }
        self.give_back((size, 1), 0)
    }

    /// Gives back all of the lease that is not used, which the worker has asked for.
    ///
    /// # Errors
    /// A lost connection.
    pub(crate) fn answer_recall(&self, recall: u64) -> HipResult<()> {
        self.give_back((u64::MAX, u64::MAX), recall)?;
        Ok(self.connection.flush()?)
    }

    /// Gives at most so many bytes and allocations of the lease back. A recall (not 0) is answered even if there are none.
    fn give_back(&self, (bytes, allocations): (u64, u64), recall: u64) -> HipResult<()> {
        let mut placer = lock(&self.places.placer);
        self.open(&mut placer);
        match placer.spare(bytes, allocations) {
            (0, 0) if recall == 0 => Ok(()),
            (bytes, allocations) => self.tell(&op::MemReturn { bytes, allocations, recall }),
        }
    }

    /// Frees memory with a request that is not waited for. Memory that comes back to the lease is known to be there, so that this cannot fail.
    ///
    /// # Errors
    /// A lost connection.
    pub(super) fn free<O: Op>(&self, device_ptr: u64, request: &O) -> HipResult<()> {
        if !self.can_place() {
            return self.tell(request);
        }
        let mut placer = lock(&self.places.placer);
        let comes_back = placer.lease.comes_back(device_ptr);
        if !comes_back {
            // The account does not say what becomes of it.
            placer.told.forget();
        }
        placer.free(device_ptr);
        if comes_back { self.put(request) } else { self.tell(request) }
    }

    /// Changes the account of the lease by memory that does not come back, and sends the request that makes the worker change its own.
    ///
    /// # Errors
    /// As `send`.
    pub(super) fn accounted<R>(
        &self,
        change: impl FnOnce(&mut Placer),
        send: impl FnOnce() -> HipResult<R>,
    ) -> HipResult<R> {
        if !self.can_place() {
            return send();
        }
        let mut placer = lock(&self.places.placer);
        change(&mut placer);
        placer.told.forget();
        send()
    }

    /// Asks for an IPC handle of memory, which may then be in use after it was freed.
    ///
    /// # Errors
    /// What the worker answers, or a lost connection.
    pub(crate) fn lend(&self, device_ptr: u64) -> HipResult<op::IpcGetMemHandleReply> {
        self.accounted(|placer| placer.lease.lend(device_ptr), || Ok(()))?;
        self.ask(&op::IpcGetMemHandle { device_ptr })
    }

    /// Releases everything that the session has on the device.
    ///
    /// # Errors
    /// What the worker answers, or a lost connection.
    pub(crate) fn reset(&self) -> HipResult<()> {
        if !self.can_place() {
            return self.destroy_all(&op::DeviceReset {});
        }
        let mut placer = lock(&self.places.placer);
        self.open(&mut placer);
        placer.end();
        self.destroy_all(&op::DeviceReset {})
    }
}

#[cfg(test)]
mod tests {
    use hipr_proto::PLACE_PAGE_BYTES;

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
