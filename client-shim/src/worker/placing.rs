//! Places memory on the program's workers without waiting, and asks a worker for more when its lease is used up.
//!
//! The account of a lease has to change in the order in which the requests leave. So the placer is locked while the account changes and the
//! request is sent.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, MutexGuard};

use hipr_client::{Connection, Extra};
use hipr_proto::op::{self, MemLeaseReply, MemShareReply};
use hipr_proto::{Features, HipError, HipResult, Op};

use super::links::Link;
use super::map::Source;
use super::placer::{DEVICE, Kind, Place, Placer};
use super::shared::Part;
use super::{Worker, lock};
use crate::thread;

/// Whether memory is to be one that worker and process both map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    No,
    Wanted,
}

impl Worker {
    fn can_place(&self) -> bool {
        self.features().contains(Features::PLACES)
    }

    /// Reads the first lease of a worker, which came with the first flight.
    fn open(link: &Link, placer: &mut Placer) {
        if !std::mem::replace(&mut placer.is_open, true) {
            match link.connection.first_lease() {
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
        // Memory that all devices reach is any device's; at an address of the window the other workers can have it there, too.
        let is_everyones = kind != Kind::Device && self.links().are_several();
        if self.there(thread::device()) != DEVICE && !is_everyones {
            self.make_room(size)?;
            return Ok(None);
        }
        let link = self.link();
        let shares = sharing == Sharing::Wanted && self.features().contains(Features::SHARED);
        let mut asking = None;
        loop {
            let mut placer = lock(&link.places.placer);
            Self::open(link, &mut placer);
            match placer.place(size) {
                Place::At(device_ptr) => match placer.part(device_ptr, size, shares) {
                    Part::None => {
                        placer.note_room();
                        send_place(link, kind, device_ptr, size, flags)?;
                        return Ok(Some((device_ptr, Source::New)));
                    }
                    Part::Of(file) => {
                        placer.shared.add(device_ptr, size);
                        placer.note_room();
                        let offset = device_ptr - placer.lease.window().start;
                        let request = op::MallocShared { device_ptr, size, kind: kind.number(), flags };
                        link.connection.tell_with(&request, on_device())?;
                        return Ok(Some((device_ptr, Source::Shared(file, offset))));
                    }
                    Part::Unknown => {
                        placer.undo(device_ptr);
                        if asking.is_none() {
                            drop(placer);
                            asking = Some(lock(&link.places.asking));
                            continue;
                        }
                        let (resets, frees) = (placer.resets, placer.shared.ask());
                        let window = placer.lease.window();
                        let asked = link.connection.start(&op::MemShare {}, on_device())?;
                        drop(placer);
                        let reply = link.connection.finish(asked).map_err(HipError::from);
                        let file = reply.map(|reply| take_file(&link.connection, &reply, &window));
                        let mut placer = lock(&link.places.placer);
                        if placer.resets == resets {
                            placer.shared.learn(file, frees);
                        }
                    }
                },
                Place::Missing(_) if asking.is_none() => {
                    drop(placer);
                    asking = Some(lock(&link.places.asking));
                }
                Place::Missing(want_bytes) => {
                    let (reply, resets) = ask_for_more(link, placer, want_bytes)?;
                    if reply.window_bytes > 0
                        && (reply.added_bytes < want_bytes || reply.added_allocations == 0)
                    {
                        return Err(HipError::OUT_OF_MEMORY);
                    }
                    lock(&link.places.placer).grant(&reply, resets);
                }
                Place::Nowhere => {
                    drop(placer);
                    self.make_room(size)?;
                    return Ok(None);
                }
            }
        }
    }

    /// Allocates memory that all devices of the current one's worker reach, at an address, which is that of the program's memory or of another
    /// worker's; returns false if there can be none. While the lease lasts nothing is waited for.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    pub(crate) fn place_at(&self, kind: Kind, device_ptr: u64, size: u64, flags: u32) -> HipResult<bool> {
        if !self.can_place() {
            return Ok(false);
        }
        let link = self.link();
        let _asking = lock(&link.places.asking);
        // The second time the lease has grown.
        for _ in 0..2 {
            let mut placer = lock(&link.places.placer);
            Self::open(link, &mut placer);
            match placer.place_there(device_ptr, size) {
                Place::At(device_ptr) => {
                    placer.note_room();
                    send_place(link, kind, device_ptr, size, flags)?;
                    return Ok(true);
                }
                Place::Missing(want_bytes) => {
                    let (reply, resets) = ask_for_more(link, placer, want_bytes)?;
                    lock(&link.places.placer).grant(&reply, resets);
                }
                Place::Nowhere => return Ok(false),
            }
        }
        Ok(false)
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
        self.give_back(self.link(), (size, 1), 0)
    }

    /// Gives back all of the lease of a worker that is not used, which the worker has asked for.
    ///
    /// # Errors
    /// A lost connection.
    pub(crate) fn answer_recall(&self, link: &Link, recall: u64) -> HipResult<()> {
        self.give_back(link, (u64::MAX, u64::MAX), recall)?;
        Ok(link.connection.flush()?)
    }

    /// Gives at most so many bytes and allocations of the lease back. A recall (not 0) is answered even if there are none.
    fn give_back(&self, link: &Link, (bytes, allocations): (u64, u64), recall: u64) -> HipResult<()> {
        let mut placer = lock(&link.places.placer);
        Self::open(link, &mut placer);
        match placer.spare(bytes, allocations) {
            (0, 0) if recall == 0 => Ok(()),
            (bytes, allocations) => {
                let request = op::MemReturn { bytes, allocations, recall };
                Ok(link.connection.tell(&request)?)
            }
        }
    }

    /// Frees memory of the current device with a request that is not waited for. Memory that comes back to the lease is known to be there, so
    /// that freeing it cannot fail.
    ///
    /// # Errors
    /// A lost connection.
    pub(super) fn free<O: Op>(&self, device_ptr: u64, request: &O) -> HipResult<()> {
        if !self.can_place() {
            return self.tell(request);
        }
        let link = self.link();
        let mut placer = lock(&link.places.placer);
        let comes_back = placer.lease.comes_back(device_ptr);
        if !comes_back {
            // The account does not say what becomes of it.
            placer.told.forget();
        }
        placer.free(device_ptr);
        if comes_back { self.put(request) } else { self.tell(request) }
    }

    /// Changes the account of a worker's lease by memory that does not come back, and sends the request that makes the worker change its own.
    ///
    /// # Errors
    /// As `send`.
    pub(super) fn accounted<R>(
        &self,
        link: &Link,
        change: impl FnOnce(&mut Placer),
        send: impl FnOnce() -> HipResult<R>,
    ) -> HipResult<R> {
        if !self.can_place() {
            return send();
        }
        let mut placer = lock(&link.places.placer);
        change(&mut placer);
        placer.told.forget();
        send()
    }

    /// Asks for an IPC handle of memory of the current device, which may then be in use after it was freed.
    ///
    /// # Errors
    /// What the worker answers, or a lost connection.
    pub(crate) fn lend(&self, device_ptr: u64) -> HipResult<op::IpcGetMemHandleReply> {
        self.accounted(self.link(), |placer| placer.lease.lend(device_ptr), || Ok(()))?;
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
        let link = self.link();
        let mut placer = lock(&link.places.placer);
        Self::open(link, &mut placer);
        placer.end();
        self.destroy_all(&op::DeviceReset {})
    }
}

/// Returns the part of a request for the device whose memory is placed.
fn on_device<'a>() -> Extra<'a> {
    Extra { device: Some(DEVICE), ..Extra::default() }
}

/// Sends the request that allocates memory at an address that the lease has, so that it is there.
fn send_place(link: &Link, kind: Kind, device_ptr: u64, size: u64, flags: u32) -> HipResult<()> {
    let request = op::MallocAt { device_ptr, size, kind: kind.number(), flags };
    Ok(link.connection.tell_with(&request, Extra { is_noted: true, ..on_device() })?)
}

/// Asks a worker for more of the lease, with the placer unlocked while it answers; returns the answer, and how many resets there were when
/// it was asked.
fn ask_for_more(
    link: &Link,
    placer: MutexGuard<'_, Placer>,
    want_bytes: u64,
) -> HipResult<(MemLeaseReply, u64)> {
    let resets = placer.resets;
    let asked = link.connection.start(&op::MemLease { want_bytes }, on_device())?;
    drop(placer);
    Ok((link.connection.finish(asked)?, resets))
}

/// Returns the file that the worker has passed with a reply; `None` if it has passed none that can be used.
fn take_file(connection: &Connection, reply: &MemShareReply, window: &Range<u64>) -> Option<Arc<OwnedFd>> {
    let file_bytes = window.end - window.start;
    if reply.is_passed == 0 || reply.file_bytes != file_bytes {
        return None;
    }
    match connection.take_file(file_bytes) {
        Ok(file) => Some(Arc::new(file)),
        Err(why) => {
            tracing::warn!("pinned and managed memory is copied between program and worker: {why}");
            None
        }
    }
}
