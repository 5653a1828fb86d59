//! Host memory that kernels can reach: pinned, registered and managed memory.
//!
//! Client and worker have no memory in common. Such memory therefore exists twice, once in this process and
//! once on the worker, and the two are brought together where HIP lets a program expect it:
//!
//! * **before a kernel is launched** (or memory is copied or set in place), what the program wrote since the last time
//!   goes to the worker, ahead of the launch and without waiting;
//! * **after a synchronization** (of the device, a stream or an event, a query that says "done", or a blocking copy),
//!   if work was started that is not known to have been over by the last time, what the device wrote comes here: one more
//!   round trip.
//!
//! What changed on either side is told by comparing with a third copy, the *twin*: the bytes that both sides last agreed
//! on. Host and device may write different bytes of the same page; both survive.
//!
//! **Addresses.** Pinned and managed memory is allocated on the worker first and then mapped here *at the same address*,
//! so that pointers to it mean the same on both sides, inside structures too. Where that address is taken here, and for
//! memory that the program registers, the two addresses differ: `hipHostGetDevicePointer` tells the device's, and a host
//! address that is passed to a kernel directly, or in a structure passed by value, is replaced. Host addresses
//! that a program writes into device memory by itself are then not replaced.
//!
//! **What does not work:** a program that looks at such memory while a kernel runs sees nothing new before
//! it synchronizes, and a kernel sees nothing that is written after its launch. Memory that is neither pinned,
//! registered nor managed cannot be reached by kernels.
//!
//! Memory costs nothing of this before a kernel can know of it: managed memory and memory pinned as mapped from the first
//! launch on; other pinned or registered memory once `hipHostGetDevicePointer` names it, or an argument, or a pointer among
//! bytes that are copied to the device.

mod diff;
mod region;
mod uses;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use hipr_proto::{HipError, HipResult, op};

use self::diff::PAGE;
use self::region::{Region, Regions, Release, free};
use self::uses::Clock;
use crate::body::stream::is_blocking;
use crate::convert::Ptr;
use crate::map;
use crate::session::{Session, lock};
use crate::state;

/// Where an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Device memory.
    Device(u64),
    /// Memory on both sides; its device address.
    Mirrored(u64),
    /// Memory that has been pinned or registered and that only the host has used.
    Host,
    /// Nothing that HIP was told of.
    Unknown,
}

/// How memory came to be on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `hipHostMalloc` and its like.
    Pinned,
    /// `hipMallocManaged`, or a `__managed__` variable.
    Managed,
    /// `hipHostRegister`.
    Registered,
}

/// What is known of such memory.
#[derive(Clone, Copy, Debug)]
pub struct RegionInfo {
    /// How it came to be.
    pub origin: Origin,
    /// Its first byte here.
    pub host: Ptr,
    /// Its size.
    pub len: usize,
    /// The flags it was made with.
    pub flags: u32,
    /// Its device.
    pub device: i32,
}

/// The memory of this process that exists on both sides.
#[derive(Debug, Default)]
pub struct Mirrors {
    regions: Mutex<Regions>,
    /// How many regions there are: none cost nothing.
    count: AtomicUsize,
}

impl Mirrors {
    fn regions(&self) -> MutexGuard<'_, Regions> {
        lock(&self.regions)
    }

    /// Whether there is no such memory.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    fn insert(&self, regions: &mut Regions, region: Region) {
        if let Some(remote) = region.remote
            && remote != region.info.host.wire()
        {
            regions.by_remote.insert(remote, region.info.host.0);
        }
        regions.by_host.insert(region.info.host.0, region);
        self.count.store(regions.by_host.len(), Ordering::Release);
    }

    /// What the `len` bytes at `ptr` are. `is_device` is what the caller says of an address that could be either.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` when they go beyond the memory they begin in.
    pub fn place(
        &self,
        session: &Session,
        ptr: Ptr,
        len: usize,
        is_device: Option<bool>,
    ) -> HipResult<Place> {
        let found = session.memory().find(ptr);
        match found {
            Some(allocation) if allocation.is_ambiguous && is_device == Some(false) => {}
            Some(allocation) if allocation.bytes_from(ptr) < len => return Err(HipError::INVALID_VALUE),
            Some(_) => return Ok(Place::Device(ptr.wire())),
            None => {}
        }
        if self.is_empty() {
            return Ok(Place::Unknown);
        }
        let regions = self.regions();
        let Some((region, offset)) = regions.find(ptr) else { return Ok(Place::Unknown) };
        if region.info.len - offset < len {
            return Err(HipError::INVALID_VALUE);
        }
        Ok(match (&region.twin, region.remote) {
            (Some(_), Some(remote)) => Place::Mirrored(remote + offset as u64),
            _ => Place::Host,
        })
    }

    /// What is known of the memory that `ptr` is in, the offset in it, and its device address if it has one by now.
    pub fn info(&self, ptr: Ptr) -> Option<(RegionInfo, usize, Option<u64>)> {
        let regions = self.regions();
        let (region, offset) = regions.find(ptr)?;
        Some((region.info, offset, region.remote))
    }

    /// Pinned memory.
    ///
    /// # Errors
    /// What the worker or the operating system says.
    pub fn allocate_pinned(&self, session: &Session, len: usize, flags: u32) -> HipResult<Ptr> {
        let size = pages(len)?;
        // The worker knows portable, mapped, write-combined and coherent; for it they mean nothing.
        let allocate = |size: usize| {
            let reply = session.ask(&op::MallocHost { size: size as u64, flags: 0 });
            reply.map(|reply| (reply.device_ptr, Release::Host(reply.device_ptr)))
        };
        self.allocate(session, len, size, flags, Origin::Pinned, allocate)
    }

    /// Managed memory.
    ///
    /// # Errors
    /// What the worker or the operating system says.
    pub fn allocate_managed(&self, session: &Session, len: usize, flags: u32) -> HipResult<Ptr> {
        let size = pages(len)?;
        let allocate = |size: usize| {
            let reply = session.ask(&op::MallocManaged { size: size as u64, flags });
            reply.map(|reply| (reply.device_ptr, Release::Device(reply.device_ptr)))
        };
        self.allocate(session, len, size, flags, Origin::Managed, allocate)
    }

    fn allocate(
        &self,
        session: &Session,
        len: usize,
        size: usize,
        flags: u32,
        origin: Origin,
        allocate: impl Fn(usize) -> HipResult<(u64, Release)>,
    ) -> HipResult<Ptr> {
        let (mut remote, mut release) = allocate(size)?;
        if remote % PAGE as u64 != 0 {
            // Pages are mapped here, so the memory there has to begin with one.
            free(session, release)?;
            let (start, whole) = allocate(size + PAGE)?;
            (remote, release) = (start.next_multiple_of(PAGE as u64), whole);
        }
        session.memory().release(Ptr::from_wire(remote), size);
        let host = match map::at(Ptr::from_wire(remote), size).or_else(|| map::anywhere(size)) {
            Some(host) => host,
            None => {
                free(session, release)?;
                return Err(HipError::OUT_OF_MEMORY);
            }
        };
        if host.wire() != remote {
            warn_once(&ADDRESS_TAKEN, || {
                tracing::warn!(
                    "host memory {host:?} has another address on the device ({remote:#x}): kernels can use it where a \
                     pointer to it is an argument, not where a pointer to it lies in device memory"
                );
            });
        }
        let info = RegionInfo { origin, host, len, flags, device: state::device() };
        let region = Region::new(info, Some(remote), Some(release), true);
        self.insert(&mut self.regions(), region);
        Ok(host)
    }

    /// Memory of the program that kernels shall reach.
    ///
    /// # Errors
    /// `hipErrorHostMemoryAlreadyRegistered`.
    pub fn register(&self, ptr: Ptr, len: usize, flags: u32) -> HipResult<()> {
        let mut regions = self.regions();
        let end = ptr.0.checked_add(len).ok_or(HipError::INVALID_VALUE)?;
        let before = regions.by_host.range(..end).next_back();
        if before.is_some_and(|(base, region)| base + region.info.len > ptr.0) {
            return Err(HipError::HOST_MEMORY_ALREADY_REGISTERED);
        }
        let info = RegionInfo { origin: Origin::Registered, host: ptr, len, flags, device: state::device() };
        self.insert(&mut regions, Region::new(info, None, None, false));
        Ok(())
    }

    /// Adds the memory of a `__managed__` variable, which its module expects at the address that is returned.
    ///
    /// # Errors
    /// What the worker says.
    pub fn adopt_variable(&self, session: &Session, host: Ptr, len: usize) -> HipResult<u64> {
        let mut regions = self.regions();
        if !regions.by_host.contains_key(&host.0) {
            let info = RegionInfo { origin: Origin::Managed, host, len, flags: 0, device: state::device() };
            self.insert(&mut regions, Region::new(info, None, None, false));
        }
        regions.remote(session, host.0)
    }

    /// Ends a registration.
    ///
    /// # Errors
    /// `hipErrorHostMemoryNotRegistered`.
    pub fn unregister(&self, session: &Session, ptr: Ptr) -> HipResult<()> {
        if !self.take(session, ptr, Origin::Registered)? {
            return Err(HipError::HOST_MEMORY_NOT_REGISTERED);
        }
        Ok(())
    }

    /// Frees pinned memory; false if it is none.
    ///
    /// # Errors
    /// A lost connection.
    pub fn free_pinned(&self, session: &Session, ptr: Ptr) -> HipResult<bool> {
        self.take(session, ptr, Origin::Pinned)
    }

    /// Frees managed memory; false if it is none.
    ///
    /// # Errors
    /// A lost connection.
    pub fn free_managed(&self, session: &Session, ptr: Ptr) -> HipResult<bool> {
        self.take(session, ptr, Origin::Managed)
    }

    fn take(&self, session: &Session, ptr: Ptr, origin: Origin) -> HipResult<bool> {
        if self.is_empty() {
            return Ok(false);
        }
        let mut regions = self.regions();
        let is_it = |region: &Region| region.info.origin == origin;
        if !regions.by_host.get(&ptr.0).is_some_and(is_it) {
            return Ok(false);
        }
        if origin == Origin::Registered {
            // The program keeps the memory, and with it what the device wrote.
            regions.pull(session)?;
        }
        let Some(region) = regions.by_host.remove(&ptr.0) else { return Ok(false) };
        self.count.store(regions.by_host.len(), Ordering::Release);
        if let Some(remote) = region.remote {
            regions.by_remote.remove(&remote);
        }
        drop(regions);
        if region.mapped {
            map::unmap(region.info.host, pages(region.info.len)?);
        }
        match region.release {
            Some(release) => free(session, release).map(|()| true),
            None => Ok(true),
        }
    }

    /// The device address of host memory, which kernels can know from now on.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` for memory that is not on both sides.
    pub fn device_pointer(&self, session: &Session, ptr: Ptr) -> HipResult<u64> {
        self.regions().tell(session, ptr.wire(), 0)?.ok_or(HipError::INVALID_VALUE)
    }

    /// The device address of host memory, which kernels are not told by this.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` for memory that is not on both sides.
    pub fn device_address(&self, session: &Session, ptr: Ptr) -> HipResult<u64> {
        let mut regions = self.regions();
        let (region, offset) = regions.find(ptr).ok_or(HipError::INVALID_VALUE)?;
        let base = region.info.host.0;
        Ok(regions.remote(session, base)? + offset as u64)
    }

    /// These bytes are about to be copied to the device: pointers among them tell kernels of memory.
    ///
    /// # Errors
    /// What the worker says.
    pub fn note_pointers(&self, session: &Session, stream: u64, bytes: &[u8]) -> HipResult<()> {
        if self.is_empty() {
            return Ok(());
        }
        let mut regions = self.regions();
        let Some((start, end)) = regions.hidden_range() else { return Ok(()) };
        for word in bytes.chunks_exact(8) {
            let Ok(word) = <[u8; 8]>::try_from(word) else { continue };
            let address = u64::from_le_bytes(word);
            if !(start..end).contains(&(address as usize)) {
                continue;
            }
            if let Some(remote) = regions.tell(session, address, stream)?
                && remote != address
            {
                warn_once(&POINTER_COPIED, || {
                    tracing::warn!(
                        "a pointer to host memory ({address:#x}) is copied to the device, where that memory has \
                         another address: a kernel that follows it fails; use hipHostGetDevicePointer"
                    );
                });
            }
        }
        Ok(())
    }

    /// What was on a device is gone. The program's own memory stays as it is; what was given to it stays mapped.
    pub fn clear(&self, device: i32) {
        let mut regions = self.regions();
        regions.by_host.retain(|_, region| region.info.device != device);
        let Regions { by_host, by_remote, .. } = &mut *regions;
        by_remote.retain(|_, host| by_host.contains_key(host));
        regions.uses.clear();
        regions.pushed_on = None;
        regions.ordered.clear();
        regions.event = None;
        regions.pull_stream = None;
        self.count.store(regions.by_host.len(), Ordering::Release);
    }

    /// A kernel with these arguments is about to be launched: sends what the program wrote, and puts device addresses in
    /// the place of host addresses where they differ.
    ///
    /// # Errors
    /// What the worker says.
    pub fn before_launch(&self, session: &Session, stream: u64, args: &mut [u8]) -> HipResult<()> {
        if self.is_empty() {
            return Ok(());
        }
        let mut regions = self.regions();
        // Pointers are aligned, also in structures.
        for word in args.chunks_exact_mut(8) {
            let Ok(bytes) = <[u8; 8]>::try_from(&*word) else { continue };
            if let Some(remote) = regions.tell(session, u64::from_le_bytes(bytes), stream)? {
                word.copy_from_slice(&remote.to_le_bytes());
            }
        }
        regions.expose_known(session, stream)?;
        regions.use_on(session, stream)
    }

    /// Memory on both sides is about to be written by something else than a kernel.
    ///
    /// # Errors
    /// What the worker says.
    pub fn before_use(&self, session: &Session, stream: u64) -> HipResult<()> {
        self.regions().use_on(session, stream)
    }

    /// Memory on both sides is about to be read, and not written, by something else than a kernel.
    ///
    /// # Errors
    /// What the worker says.
    pub fn before_read(&self, session: &Session, stream: u64) -> HipResult<()> {
        self.regions().bring(session, stream)
    }

    /// What [`before_launch`](Self::before_launch) or [`before_use`](Self::before_use) announced has been sent.
    pub fn sent(&self, stream: u64) {
        if !self.is_empty() {
            self.regions().uses.begin(stream);
        }
    }

    /// An event is about to be recorded behind the work that `stream` has. Every way to record one goes through here.
    pub fn event_recorded(&self, session: &Session, event: u64, stream: u64) {
        if !self.is_empty() {
            self.regions().uses.record(event, stream, joins(session, stream));
        }
    }

    /// A stream is about to wait for an event.
    pub fn event_awaited(&self, stream: u64, event: u64) {
        if !self.is_empty() {
            self.regions().uses.wait(stream, event);
        }
    }

    /// An event is destroyed.
    pub fn forget_event(&self, event: u64) {
        if !self.is_empty() {
            self.regions().uses.forget_event(event);
        }
    }

    /// Does `wait`, after which all work of the device is done that was sent before; then what the device wrote comes here.
    ///
    /// # Errors
    /// Those of `wait`; what the worker says.
    pub fn wait_device(&self, session: &Session, wait: impl FnOnce() -> HipResult<()>) -> HipResult<()> {
        let pushes = (!self.is_empty()).then(|| self.regions().pushes);
        self.wait(session, |regions| regions.uses.before_now(), wait)?;
        if let Some(pushes) = pushes {
            let mut regions = self.regions();
            if regions.pushes == pushes {
                // What was sent has arrived, whatever comes next.
                regions.pushed_on = None;
            }
        }
        Ok(())
    }

    /// Does `wait`, after which the work of a stream is done, and for the legacy stream that of all blocking ones; then what the
    /// device wrote comes here.
    ///
    /// # Errors
    /// Those of `wait`; what the worker says.
    pub fn wait_stream(
        &self,
        session: &Session,
        stream: u64,
        wait: impl FnOnce() -> HipResult<()>,
    ) -> HipResult<()> {
        self.wait(session, |regions| regions.uses.before(stream, joins(session, stream)), wait)
    }

    /// Does `wait`, after which an event has happened; then what the device wrote comes here.
    ///
    /// # Errors
    /// Those of `wait`; what the worker says.
    pub fn wait_event(
        &self,
        session: &Session,
        event: u64,
        wait: impl FnOnce() -> HipResult<()>,
    ) -> HipResult<()> {
        self.wait(session, |regions| regions.uses.before_event(event), wait)
    }

    fn wait(
        &self,
        session: &Session,
        before: impl FnOnce(&Regions) -> Clock,
        wait: impl FnOnce() -> HipResult<()>,
    ) -> HipResult<()> {
        let clock = if self.is_empty() { Clock::new() } else { before(&self.regions()) };
        wait()?;
        if self.is_empty() {
            return Ok(());
        }
        let mut regions = self.regions();
        if !regions.uses.are_over() {
            regions.pull(session)?;
            regions.uses.finish(&clock);
        }
        Ok(())
    }

    /// A stream is going away.
    ///
    /// # Errors
    /// What the worker says.
    pub fn forget_stream(&self, session: &Session, stream: u64) -> HipResult<()> {
        if self.is_empty() {
            return Ok(());
        }
        let mut regions = self.regions();
        if regions.pushed_on == Some(stream) {
            // What was sent on it has arrived before whatever comes after this.
            regions.order(session, 0)?;
            regions.pushed_on = Some(0);
        }
        regions.ordered.remove(&stream);
        // Its work may still be under way: it is done when the device is.
        regions.uses.bequeath(stream, 0);
        Ok(())
    }
}

/// For which other streams' work `stream` waits of itself: the legacy stream for that of all blocking ones.
fn joins(session: &Session, stream: u64) -> impl Fn(u64) -> bool {
    move |other| stream == 0 && is_blocking(session, other)
}

static ADDRESS_TAKEN: AtomicBool = AtomicBool::new(false);
static POINTER_COPIED: AtomicBool = AtomicBool::new(false);

fn warn_once(said: &AtomicBool, warn: impl FnOnce()) {
    if !said.swap(true, Ordering::Relaxed) {
        warn();
    }
}

/// `len` in whole pages.
fn pages(len: usize) -> HipResult<usize> {
    len.checked_next_multiple_of(PAGE).ok_or(HipError::OUT_OF_MEMORY)
}
