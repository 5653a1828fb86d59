//! Host memory that kernels can reach: pinned, registered and managed memory.
//!
//! Client and worker have no memory in common. Such memory therefore exists twice, once in this process and
//! once on the worker, and the two are brought together where HIP lets a program expect it:
//!
//! * **before a kernel is launched** (or memory is copied or set in place), what the program wrote since the last time
//!   goes to the worker, ahead of the launch and without waiting;
//! * **after a synchronization** (of the device, a stream or an event, a query that says "done", or a blocking copy),
//!   if work was started since the last time, what the device wrote comes here: one more round trip.
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
//! launch on, other pinned or registered memory once `hipHostGetDevicePointer` or an argument names it.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use hipr_proto::op::{self, kind};
use hipr_proto::{HipError, HipResult};

use crate::client::{Extra, Rows};
use crate::convert::Ptr;
use crate::map;
use crate::session::{Session, lock};
use crate::state;

/// What is compared at once.
const PAGE: usize = 4096;
/// The unit in which changes are told apart while the device may be writing to the same page.
const WORD: usize = 4;
/// `hipHostMallocMapped`.
const MAPPED: u32 = 2;

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

/// Memory on the worker that has to be given back.
#[derive(Clone, Copy, Debug)]
enum Release {
    /// `FREE`.
    Device(u64),
    /// `FREE_HOST`.
    Host(u64),
}

#[derive(Debug)]
struct Region {
    info: RegionInfo,
    /// Address on the worker; None before it is needed.
    remote: Option<u64>,
    release: Option<Release>,
    /// Pages to be unmapped in the end.
    mapped: bool,
    /// What both sides last agreed on; None as long as only the host uses the memory.
    twin: Option<Vec<u8>>,
}

impl Region {
    fn contains(&self, address: usize) -> bool {
        (self.info.host.0..self.info.host.0 + self.info.len).contains(&address)
    }
}

#[derive(Debug, Default)]
struct Regions {
    by_host: BTreeMap<usize, Region>,
    /// Device address to host address, where they differ.
    by_remote: BTreeMap<u64, usize>,
    /// Streams that were given work since the last pull.
    touched: HashSet<u64>,
    /// The stream on which changes left last, and the streams that have to come after it no more.
    pushed_on: Option<u64>,
    ordered: HashSet<u64>,
    /// Orders streams after a push; made when first needed.
    event: Option<u64>,
    /// The stream on which changes are fetched; made when first needed.
    pull_stream: Option<u64>,
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

    fn is_empty(&self) -> bool {
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

    /// What the `len` bytes at `ptr` are.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` when they go beyond the memory they begin in.
    pub fn place(&self, session: &Session, ptr: Ptr, len: usize) -> HipResult<Place> {
        if session.memory().check_range(ptr, len)?.is_some() {
            return Ok(Place::Device(ptr.wire()));
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
        let region = Region { info, remote: Some(remote), release: Some(release), mapped: true, twin: None };
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
        self.insert(&mut regions, Region { info, remote: None, release: None, mapped: false, twin: None });
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
            self.insert(
                &mut regions,
                Region { info, remote: None, release: None, mapped: false, twin: None },
            );
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
        let mut regions = self.regions();
        let (region, offset) = regions.find(ptr).ok_or(HipError::INVALID_VALUE)?;
        let base = region.info.host.0;
        let remote = regions.remote(session, base)?;
        regions.expose(session, base, 0)?;
        Ok(remote + offset as u64)
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
            let Some((region, offset)) = regions.find_host(u64::from_le_bytes(bytes) as usize) else {
                continue;
            };
            let base = region.info.host.0;
            let remote = regions.remote(session, base)?;
            regions.expose(session, base, stream)?;
            word.copy_from_slice(&(remote + offset as u64).to_le_bytes());
        }
        let hidden: Vec<usize> = regions
            .by_host
            .iter()
            .filter(|(_, region)| region.twin.is_none() && is_known_to_kernels(region))
            .map(|(base, _)| *base)
            .collect();
        for base in hidden {
            regions.remote(session, base)?;
            regions.expose(session, base, stream)?;
        }
        regions.use_on(session, stream)
    }

    /// Memory on both sides is about to be used by something else than a kernel.
    ///
    /// # Errors
    /// What the worker says.
    pub fn before_use(&self, session: &Session, stream: u64) -> HipResult<()> {
        self.regions().use_on(session, stream)
    }

    /// All work of the device is done.
    ///
    /// # Errors
    /// What the worker says.
    pub fn after_device(&self, session: &Session) -> HipResult<()> {
        self.after(session, |regions| {
            regions.touched.clear();
            regions.pushed_on = None;
        })
    }

    /// All work of a stream is done; for the legacy stream, that of all blocking streams.
    ///
    /// # Errors
    /// What the worker says.
    pub fn after_stream(&self, session: &Session, stream: u64) -> HipResult<()> {
        self.after(session, |regions| {
            if stream == 0 {
                let streams = session.streams();
                let is_free = |s: &u64| {
                    streams.get(&crate::convert::Stream::from_wire(*s)).is_some_and(|i| i.flags == 1)
                };
                regions.touched.retain(is_free);
            } else {
                regions.touched.remove(&stream);
            }
        })
    }

    /// The work before an event is done; there may be more behind it.
    ///
    /// # Errors
    /// What the worker says.
    pub fn after_event(&self, session: &Session, _stream: u64) -> HipResult<()> {
        self.after(session, |_| {})
    }

    fn after(&self, session: &Session, done: impl FnOnce(&mut Regions)) -> HipResult<()> {
        if self.is_empty() {
            return Ok(());
        }
        let mut regions = self.regions();
        if regions.touched.is_empty() {
            return Ok(());
        }
        regions.pull(session)?;
        done(&mut regions);
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
        if regions.touched.remove(&stream) {
            regions.touched.insert(0);
        }
        Ok(())
    }
}

static ADDRESS_TAKEN: AtomicBool = AtomicBool::new(false);

fn warn_once(said: &AtomicBool, warn: impl FnOnce()) {
    if !said.swap(true, Ordering::Relaxed) {
        warn();
    }
}

/// Whether kernels can know of memory although no argument names it.
fn is_known_to_kernels(region: &Region) -> bool {
    match region.info.origin {
        Origin::Managed => true,
        Origin::Pinned | Origin::Registered => region.info.flags & MAPPED != 0,
    }
}

/// `len` in whole pages.
fn pages(len: usize) -> HipResult<usize> {
    len.checked_next_multiple_of(PAGE).ok_or(HipError::OUT_OF_MEMORY)
}

fn free(session: &Session, release: Release) -> HipResult<()> {
    match release {
        Release::Device(device_ptr) => session.tell(&op::Free { device_ptr }),
        Release::Host(device_ptr) => session.tell(&op::FreeHost { device_ptr }),
    }
}

impl Regions {
    /// The region that `ptr`, a host or a device address, is in, and the offset in it.
    fn find(&self, ptr: Ptr) -> Option<(&Region, usize)> {
        if let Some(found) = self.find_host(ptr.0) {
            return Some(found);
        }
        let (remote, host) = self.by_remote.range(..=ptr.wire()).next_back()?;
        let region = self.by_host.get(host)?;
        let offset = usize::try_from(ptr.wire() - remote).ok()?;
        (offset < region.info.len).then_some((region, offset))
    }

    fn find_host(&self, address: usize) -> Option<(&Region, usize)> {
        let (base, region) = self.by_host.range(..=address).next_back()?;
        region.contains(address).then_some((region, address - base))
    }

    /// The device address of a region, which gets one if it has none.
    fn remote(&mut self, session: &Session, base: usize) -> HipResult<u64> {
        let region = self.by_host.get_mut(&base).ok_or(HipError::INVALID_VALUE)?;
        if let Some(remote) = region.remote {
            return Ok(remote);
        }
        let remote = session.ask(&op::Malloc { size: region.info.len as u64, flags: 0 })?.device_ptr;
        region.remote = Some(remote);
        region.release = Some(Release::Device(remote));
        self.by_remote.insert(remote, base);
        Ok(remote)
    }

    /// From now on the device may use a region: both sides begin with zeros, and what the host has is a change.
    fn expose(&mut self, session: &Session, base: usize, stream: u64) -> HipResult<()> {
        let region = self.by_host.get_mut(&base).ok_or(HipError::INVALID_VALUE)?;
        if region.twin.is_some() {
            return Ok(());
        }
        let Some(remote) = region.remote else { return Err(HipError::INVALID_VALUE) };
        let zeros = op::Memset { dst: remote, value: 0, size: region.info.len as u64, stream };
        session.tell(&op::MemsetAsync(zeros))?;
        region.twin = Some(vec![0; region.info.len]);
        self.pushed(stream);
        Ok(())
    }

    /// The device is about to use what it may use, on a stream.
    fn use_on(&mut self, session: &Session, stream: u64) -> HipResult<()> {
        self.push(session, stream)?;
        self.order(session, stream)?;
        self.touched.insert(stream);
        Ok(())
    }

    fn pushed(&mut self, stream: u64) {
        self.pushed_on = Some(stream);
        self.ordered.clear();
        self.ordered.insert(stream);
    }

    /// Makes `stream` come after the changes that were sent on another one.
    fn order(&mut self, session: &Session, stream: u64) -> HipResult<()> {
        let Some(other) = self.pushed_on else { return Ok(()) };
        if !self.ordered.insert(stream) {
            return Ok(());
        }
        let event = match self.event {
            Some(event) => event,
            // hipEventDisableTiming.
            None => *self.event.insert(session.ask(&op::EventCreate { flags: 2 })?.event),
        };
        session.tell(&op::EventRecord { event, stream: other })?;
        session.tell(&op::StreamWaitEvent { stream, event, flags: 0 })
    }

    /// Sends what the program wrote.
    fn push(&mut self, session: &Session, stream: u64) -> HipResult<()> {
        // While nothing is under way the device has what the twin has, and whole pages may go.
        let unit = if self.touched.is_empty() { PAGE } else { WORD };
        let mut sent = false;
        for region in self.by_host.values_mut() {
            let (Some(twin), Some(remote)) = (&mut region.twin, region.remote) else { continue };
            // SAFETY: memory that was given to the program or registered by it, and not freed: `take` removes it
            // from the table first, under the lock that is held here.
            unsafe {
                changes(region.info.host, twin, unit, |offset, bytes| {
                    sent = true;
                    let request = op::Memcpy {
                        dst: remote + offset as u64,
                        src: region.info.host.wire() + offset as u64,
                        size: bytes.len() as u64,
                        kind: kind::HOST_TO_DEVICE,
                        stream,
                    };
                    let extra = Extra { inline: bytes, ..session.extra() };
                    Ok(session.connection().tell_with(&op::MemcpyAsync(request), extra)?)
                })?;
            }
        }
        if sent {
            self.pushed(stream);
        }
        Ok(())
    }

    /// Fetches what the device wrote.
    fn pull(&mut self, session: &Session) -> HipResult<()> {
        let exposed: Vec<(u64, usize)> = self
            .by_host
            .values()
            .filter(|region| region.twin.is_some())
            .filter_map(|region| Some((region.remote?, region.info.len)))
            .collect();
        if exposed.is_empty() {
            return Ok(());
        }
        let stream = match self.pull_stream {
            Some(stream) => stream,
            // Of its own and not blocking, so that it waits for nothing: what matters is done.
            None => {
                *self.pull_stream.insert(session.ask(&op::StreamCreate { flags: 1, priority: 0 })?.stream)
            }
        };
        let mut copies: Vec<Vec<u8>> = exposed.iter().map(|(_, len)| vec![0; *len]).collect();
        let reads: Vec<_> = exposed
            .iter()
            .zip(&mut copies)
            .map(|((remote, len), copy)| {
                let size = *len as u64;
                let request = op::Memcpy { dst: 0, src: *remote, size, kind: kind::DEVICE_TO_HOST, stream };
                (op::MemcpyAsync(request), Rows::one(copy.as_mut_ptr(), *len))
            })
            .collect();
        // SAFETY: the copies are ours during the call.
        unsafe { session.connection().read_all(&reads) }?;
        let regions = self.by_host.values_mut().filter(|region| region.twin.is_some());
        for (region, copy) in regions.zip(&copies) {
            let Some(twin) = &mut region.twin else { continue };
            // SAFETY: as in `push`.
            unsafe { merge(region.info.host, twin, copy) };
        }
        Ok(())
    }
}

/// Calls `send` for each run of units of `host` that are not what `twin` says, and brings `twin` up to date. The
/// program may write while this runs: what is compared is a copy, and that copy is what is sent.
///
/// # Safety
/// As many bytes as `twin` has are readable at `host`.
unsafe fn changes(
    host: Ptr,
    twin: &mut [u8],
    unit: usize,
    mut send: impl FnMut(usize, &[u8]) -> HipResult<()>,
) -> HipResult<()> {
    let mut page = [0u8; PAGE];
    // The run of changed bytes that has not been sent, and where it begins.
    let mut run: Vec<u8> = Vec::new();
    let mut start = 0;
    for (index, old) in twin.chunks_mut(PAGE).enumerate() {
        let offset = index * PAGE;
        let new = page.get_mut(..old.len()).unwrap_or_default();
        // SAFETY: inside what the caller promises.
        unsafe {
            core::ptr::copy_nonoverlapping(host.offset(offset).as_mut_ptr(), new.as_mut_ptr(), new.len())
        };
        if new == old {
            if !run.is_empty() {
                send(start, &run)?;
                run.clear();
            }
            continue;
        }
        for (index, (new, old)) in new.chunks(unit).zip(old.chunks(unit)).enumerate() {
            if new != old {
                if run.is_empty() {
                    start = offset + index * unit;
                }
                run.extend_from_slice(new);
            }
            if (new == old || run.len() >= RUN_BYTES) && !run.is_empty() {
                send(start, &run)?;
                run.clear();
            }
        }
        old.copy_from_slice(new);
    }
    if run.is_empty() { Ok(()) } else { send(start, &run) }
}

/// How much is gathered before it is sent.
const RUN_BYTES: usize = 4 << 20;

/// Puts what the device wrote (the bytes of `device` that are not what `twin` says) into the host's memory.
///
/// # Safety
/// As many bytes as `twin` has are writable at `host`.
unsafe fn merge(host: Ptr, twin: &mut [u8], device: &[u8]) {
    for (index, (old, new)) in twin.chunks_mut(PAGE).zip(device.chunks(PAGE)).enumerate() {
        if old == new {
            continue;
        }
        for (i, (old, new)) in old.iter_mut().zip(new).enumerate() {
            if old != new {
                // SAFETY: inside what the caller promises. Only bytes that the device wrote are written.
                unsafe { host.offset(index * PAGE + i).as_mut_ptr::<u8>().write(*new) };
                *old = *new;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(host: &mut [u8], twin: &mut [u8], unit: usize) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        // SAFETY: `host` is as long as `twin`.
        let result = unsafe {
            changes(Ptr(host.as_mut_ptr().expose_provenance()), twin, unit, |offset, bytes| {
                all.push((offset, bytes.len()));
                Ok(())
            })
        };
        assert_eq!(result, Ok(()));
        assert_eq!(host, twin, "the twin is brought up to date");
        all
    }

    #[test]
    fn only_changes_are_sent() {
        let mut host = vec![0u8; 3 * PAGE + 10];
        let mut twin = host.clone();
        assert_eq!(sent(&mut host, &mut twin, PAGE), []);
        host[5] = 1;
        host[PAGE + 1] = 1;
        host[3 * PAGE + 9] = 1;
        assert_eq!(sent(&mut host, &mut twin, PAGE), [(0, 2 * PAGE), (3 * PAGE, 10)]);
        assert_eq!(sent(&mut host, &mut twin, PAGE), []);
    }

    #[test]
    fn words_are_sent_alone_while_the_device_works() {
        let mut host = vec![0u8; 2 * PAGE];
        let mut twin = host.clone();
        host[5] = 1;
        host[8] = 1;
        host[100] = 1;
        host[PAGE - 1] = 1;
        host[PAGE] = 1;
        assert_eq!(sent(&mut host, &mut twin, WORD), [(4, 8), (100, 4), (PAGE - 4, 8)]);
    }

    #[test]
    fn what_host_and_device_wrote_survives() {
        let mut host = vec![0u8; PAGE + 8];
        let mut twin = host.clone();
        let mut device = host.clone();
        host[3] = 7;
        device[4] = 8;
        device[PAGE + 7] = 9;
        // SAFETY: `host` is as long as `twin`.
        unsafe { merge(Ptr(host.as_mut_ptr().expose_provenance()), &mut twin, &device) };
        assert_eq!((host[3], host[4], host[PAGE + 7]), (7, 8, 9));
        assert_eq!(twin, device);
        assert_eq!(sent(&mut host, &mut twin, WORD), [(0, 4)], "the host's change is still to be sent");
    }
}
