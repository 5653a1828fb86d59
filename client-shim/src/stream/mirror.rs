//! Host memory that kernels can reach: pinned, registered and managed memory.
//!
//! Client and worker have no memory in common. Such memory therefore exists twice, once in this process and
//! once on the worker, and the two are brought together where HIP lets a program expect it:
//!
//! * **before a kernel is launched** (or memory is copied or set in place), what the program wrote since the last time
//!   goes to the worker, ahead of the launch and without waiting;
//! * **after a synchronization** (of the device, a stream or an event, a query that says "done", or a blocking copy),
//!   if work was started that is not known to have been over by the last time, what the device wrote comes here. A worker that tells
//!   which pages have changed is asked for those together with the wait or the copy, in one flight (see `questions`); behind a query, and
//!   from a worker that does not tell, of which everything is fetched, that is a flight of its own.
//!
//! What changed on either side is told by comparing with a third copy, the *twin*: the bytes that both sides last agreed
//! on. Host and device may write different bytes of the same page; both survive. Of this side only those pages are compared that the
//! program may have written since ([`WrittenPages`], `unseen`).
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

mod allocate;
mod changes;
mod diff;
mod questions;
mod region;
mod said;
mod unseen;
mod uses;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use hipr_proto::{HipError, HipResult};

use self::questions::{Fetching, Need};
use self::region::{Region, Regions};
use super::Next;
use super::order::{Order, gone, legacy};
use crate::command::Transfer;
use crate::convert::{Event, Ptr};
use crate::thread;
use crate::worker::{Ahead, ChangesAnswer, HostMemory, Port, Release, Wait, WrittenPages, lock};

pub use self::said::Advice;

pub(super) use self::questions::Waited;

/// The kind of memory at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Device memory.
    Device(u64),
    /// Mirrored memory, with its device address.
    Mirrored(u64),
    /// Memory that worker and process both map, with its device address.
    Shared(u64),
    /// Pinned or registered memory that only the host has used.
    Host,
    /// Memory unknown to HIP.
    Unknown,
}

/// How mirrored memory was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `hipHostMalloc` and its like.
    Pinned,
    /// `hipExtMallocWithFlags` with `hipMallocSignalMemory`.
    Signal,
    /// `hipMallocManaged`, or a `__managed__` variable.
    Managed,
    /// `hipHostRegister`.
    Registered,
}

/// Attributes of mirrored memory.
#[derive(Clone, Copy, Debug)]
pub struct RegionInfo {
    /// How it was allocated.
    pub origin: Origin,
    /// Address of its first byte in this process.
    pub host: Ptr,
    /// Size in bytes.
    pub len: usize,
    /// Flags of its allocation or registration.
    pub flags: u32,
    /// The device with which the memory is shared.
    pub device: i32,
}

/// Memory that is no longer mirrored.
#[derive(Clone, Copy, Debug)]
pub struct Removed {
    /// Attributes of the memory.
    pub info: RegionInfo,
    /// Whether its pages were mapped by this library.
    pub is_mapped: bool,
    /// The worker's memory that has to be freed.
    pub release: Option<Release>,
}

/// The work that the caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// All work of a device.
    Device(i32),
    /// The work of a stream.
    Stream(u64),
    /// An event.
    Event(Event),
}

/// The mirrored memory of this process.
#[derive(Debug, Default)]
pub struct Mirrors {
    regions: Mutex<Regions>,
    /// Number of regions, to skip all work if there are none. While there are none, nothing is remembered of streams and events
    /// either, so that what happens to them then need not be noted.
    count: AtomicUsize,
    /// Signalled when answers to questions have been applied.
    applied: Condvar,
}

impl Mirrors {
    /// Creates the memory of a process that has none, whose streams have this order.
    pub(super) fn new(order: &Arc<Order>) -> Self {
        let mut mirrors = Self::default();
        let regions = mirrors.regions.get_mut().unwrap_or_else(PoisonError::into_inner);
        regions.rule = Arc::clone(order);
        mirrors
    }

    fn regions(&self) -> MutexGuard<'_, Regions> {
        lock(&self.regions)
    }

    /// Returns whether there is no mirrored memory.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    fn insert(&self, regions: &mut Regions, mut region: Region) {
        regions.made += 1;
        region.number = regions.made;
        if let Some(remote) = region.remote
            && remote != region.info.host.wire()
        {
            regions.by_remote.insert(remote, region.info.host.0);
        }
        regions.by_host.insert(region.info.host.0, region);
        self.count.store(regions.by_host.len(), Ordering::Release);
    }

    /// Returns the kind of the `len` bytes at `ptr`. `is_device` decides about an address that could be either.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` when they go beyond the memory they begin in.
    pub fn place(&self, port: &dyn Port, ptr: Ptr, len: usize, is_device: Option<bool>) -> HipResult<Place> {
        let found = port.allocation(ptr);
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
            (_, Some(remote)) if region.is_shared => Place::Shared(remote + offset as u64),
            (Some(_), Some(remote)) => Place::Mirrored(remote + offset as u64),
            _ => Place::Host,
        })
    }

    /// Returns the attributes of the memory that contains `ptr`, the offset in it, and its device address if it has one.
    pub fn info(&self, ptr: Ptr) -> Option<(RegionInfo, usize, Option<u64>)> {
        let regions = self.regions();
        let (region, offset) = regions.find(ptr)?;
        Some((region.info, offset, region.remote))
    }

    /// Adds memory that the worker has at `remote` and that was mapped in this process; `release` frees the worker's.
    pub fn add(&self, info: RegionInfo, remote: u64, release: Option<Release>) {
        let region = Region::new(info, Some(remote), release, true);
        self.insert(&mut self.regions(), region);
    }

    /// Adds memory that the worker has at `remote` and this process has mapped as well; `release` frees the worker's.
    pub fn add_shared(&self, info: RegionInfo, remote: u64, release: Option<Release>) {
        let region = Region { is_shared: true, ..Region::new(info, Some(remote), release, true) };
        self.insert(&mut self.regions(), region);
    }

    /// Registers memory of the program for use by kernels.
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
        let info = RegionInfo { origin: Origin::Registered, host: ptr, len, flags, device: thread::device() };
        self.insert(&mut regions, Region::new(info, None, None, false));
        Ok(())
    }

    /// Adds the host memory of a `__managed__` variable. Its module has it at `remote`, or else expects it at the address that
    /// is returned.
    ///
    /// # Errors
    /// What the worker says.
    pub fn adopt_variable(
        &self,
        port: &dyn Port,
        host: Ptr,
        len: usize,
        remote: Option<u64>,
    ) -> HipResult<u64> {
        let mut regions = self.regions();
        if !regions.by_host.contains_key(&host.0) {
            let info = RegionInfo { origin: Origin::Managed, host, len, flags: 0, device: thread::device() };
            self.insert(&mut regions, Region::new(info, remote, None, false));
        }
        regions.remote(port, host.0)
    }

    /// Removes memory; the caller has to release what is returned. None if `ptr` is not the begin of memory of this origin.
    ///
    /// # Errors
    /// What the worker answers.
    pub fn remove(&self, port: &dyn Port, ptr: Ptr, origin: Origin) -> HipResult<Option<Removed>> {
        if self.is_empty() {
            return Ok(None);
        }
        let mut regions = self.regions();
        let is_it = |region: &Region| region.info.origin == origin;
        if !regions.by_host.get(&ptr.0).is_some_and(is_it) {
            return Ok(None);
        }
        if origin == Origin::Registered {
            // The program keeps the memory, and with it what the device wrote. What others have asked about it comes first.
            if let Some(last) = regions.questions.last() {
                regions.by_host.entry(ptr.0).and_modify(|region| region.is_leaving = true);
                regions = self.await_answers(regions, last);
            }
            if let Err(error) = regions.pull(port, Some(ptr.0)) {
                regions.by_host.entry(ptr.0).and_modify(|region| region.is_leaving = false);
                return Err(error);
            }
        }
        let Some(mut region) = regions.by_host.remove(&ptr.0) else { return Ok(None) };
        region.unseen.untrack(port);
        if regions.by_host.is_empty() {
            regions.forget_work();
        }
        self.count.store(regions.by_host.len(), Ordering::Release);
        if let Some(remote) = region.remote {
            regions.by_remote.remove(&remote);
        }
        Ok(Some(Removed { info: region.info, is_mapped: region.mapped, release: region.release }))
    }

    /// Returns the device address of host memory, making it available to kernels.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` for memory that is not on both sides.
    pub fn device_pointer(&self, port: &dyn Port, ptr: Ptr) -> HipResult<u64> {
        self.regions().tell(port, ptr.wire(), 0)?.ok_or(HipError::INVALID_VALUE)
    }

    /// Returns the device address of host memory without making it available to kernels.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` for memory that is not on both sides.
    pub fn device_address(&self, port: &dyn Port, ptr: Ptr) -> HipResult<u64> {
        let mut regions = self.regions();
        let (region, offset) = regions.find(ptr).ok_or(HipError::INVALID_VALUE)?;
        let base = region.info.host.0;
        Ok(regions.remote(port, base)? + offset as u64)
    }

    /// Makes memory available to kernels whose address is among bytes that are about to be copied to the device.
    ///
    /// # Errors
    /// What the worker says.
    pub(super) fn note_pointers(&self, port: &dyn Port, stream: u64, bytes: &[u8]) -> HipResult<()> {
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
            if let Some(remote) = regions.tell(port, address, stream)?
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

    /// Removes the memory of a device that was reset. The program's own memory stays as it is; memory allocated for it stays
    /// mapped.
    pub fn clear(&self, pages: &dyn WrittenPages, device: i32) {
        let mut regions = self.regions();
        for (_, mut region) in regions.by_host.extract_if(.., |_, region| region.info.device == device) {
            region.unseen.untrack(pages);
        }
        let Regions { by_host, by_remote, .. } = &mut *regions;
        by_remote.retain(|_, host| by_host.contains_key(host));
        regions.forget_work();
        regions.events.clear();
        regions.pull_stream = None;
        self.count.store(regions.by_host.len(), Ordering::Release);
    }

    /// Announces work that may write to mirrored memory, before [`before_launch`](Self::before_launch) or
    /// [`before_use`](Self::before_use). It has to be followed by [`sent`](Self::sent) or [`retract`](Self::retract).
    pub(super) fn announce(&self) {
        self.regions().uses.announce();
    }

    /// Notes that announced work will not be sent.
    pub(super) fn retract(&self) {
        self.regions().uses.retract();
    }

    /// Prepares an announced launch with these arguments: sends what the program wrote, and replaces host addresses by device
    /// addresses where they differ.
    ///
    /// # Errors
    /// What the worker says.
    pub(super) fn before_launch(&self, port: &dyn Port, stream: u64, args: &mut [u8]) -> HipResult<()> {
        if self.is_empty() {
            return Ok(());
        }
        let mut regions = self.regions();
        // Pointers are aligned, also in structures.
        for word in args.chunks_exact_mut(8) {
            let Ok(bytes) = <[u8; 8]>::try_from(&*word) else { continue };
            if let Some(remote) = regions.tell(port, u64::from_le_bytes(bytes), stream)? {
                word.copy_from_slice(&remote.to_le_bytes());
            }
        }
        regions.expose_known(port, stream)?;
        regions.bring(port, stream, 1)
    }

    /// Prepares an announced write to mirrored memory by something other than a kernel.
    ///
    /// # Errors
    /// What the worker says.
    pub(super) fn before_use(&self, port: &dyn Port, stream: u64) -> HipResult<()> {
        self.regions().bring(port, stream, 1)
    }

    /// Prepares a read of mirrored memory by something other than a kernel.
    ///
    /// # Errors
    /// What the worker says.
    pub(super) fn before_read(&self, port: &dyn Port, stream: u64) -> HipResult<()> {
        self.regions().bring(port, stream, 0)
    }

    /// Prepares work that uses no mirrored memory: what a synchronous copy from mirrored memory brings to the device is there when
    /// anything comes after it, on whatever stream.
    ///
    /// # Errors
    /// What the worker says.
    pub(super) fn before_other(&self, port: &dyn Port, stream: u64) -> HipResult<()> {
        if self.is_empty() { Ok(()) } else { self.regions().order(port, stream) }
    }

    /// Notes that a synchronous copy from mirrored memory has been sent. When it returns the program may change that memory, which the
    /// worker may not have read: what is sent from now on has to come behind it.
    pub(super) fn has_been_read(&self, port: &dyn Port, stream: u64) -> HipResult<()> {
        if !self.is_empty() {
            let mut regions = self.regions();
            // Another thread may have sent something on another stream since.
            regions.order(port, stream)?;
            regions.pushed(stream);
        }
        Ok(())
    }

    /// Notes that announced work has been sent.
    pub(super) fn sent(&self, stream: u64) {
        let mut regions = self.regions();
        regions.uses.begin(stream);
        regions.uses.retract();
    }

    /// Notes that an event is about to be recorded behind the work that `stream` has. Every way to record one goes through here.
    pub(super) fn event_recorded(&self, order: &Order, event: Event, stream: u64) {
        if !self.is_empty() {
            let includes = |other| order.includes(stream, other);
            self.regions().uses.record(event.wire(), stream, includes);
        }
    }

    /// Notes that another event is recorded behind what an event comes behind now.
    pub(super) fn event_copied(&self, event: Event, copy: Event) {
        if !self.is_empty() {
            self.regions().uses.copy_event(event.wire(), copy.wire());
        }
    }

    /// Notes that a stream is about to wait for an event.
    pub(super) fn event_awaited(&self, stream: u64, event: Event) {
        if !self.is_empty() {
            self.regions().uses.wait(stream, event.wire());
        }
    }

    /// Removes an event.
    pub(super) fn forget_event(&self, event: Event) {
        if !self.is_empty() {
            self.regions().uses.forget_event(event.wire());
        }
    }

    /// Returns the state that a wait needs, just before it begins.
    pub(super) fn before_wait(&self, order: &Order, target: Target) -> Waited {
        if self.is_empty() {
            return Waited::default();
        }
        let regions = self.regions();
        let (clock, pushes) = match target {
            Target::Device(device) => {
                let is_own = |stream| order.device_of(stream) == device;
                let has_all = regions.pushed_on.is_none_or(is_own);
                (regions.uses.before_all(is_own), has_all.then_some(regions.pushes))
            }
            Target::Stream(stream) => {
                let includes = |other| order.includes(stream, other);
                let has_all = regions.pushed_on.is_some_and(includes);
                (regions.uses.before(stream, includes), has_all.then_some(regions.pushes))
            }
            Target::Event(event) => (regions.uses.before_event(event.wire()), None),
        };
        Waited(Some(Box::new(Fetching { clock, pushes, ..Fetching::default() })))
    }

    /// Returns the state of a wait that was not needed because what it is for is over: what has not been fetched of that is.
    pub(super) fn instead_of_wait(&self) -> Waited {
        let is_due = !self.is_empty() && self.regions().unfetched.is_some();
        Waited(is_due.then(|| Box::new(Fetching { need: Need::Any, ..Fetching::default() })))
    }

    /// Sends a wait together with the question what the device wrote before it, if that has to be fetched. Returns what comes next: the
    /// answers to both, or the wait alone, which then has not been sent.
    ///
    /// # Errors
    /// What the worker says; a lost connection.
    pub(super) fn wait(&self, port: &dyn Port, wait: Wait, waited: &mut Waited) -> HipResult<Next> {
        let Some(fetching) = &mut waited.0 else { return Ok(Next::Wait(wait)) };
        let mut regions = self.regions();
        if regions.uses.are_over() {
            // What begins from now on is not what the wait is for.
            fetching.need = Need::Nothing;
            return Ok(Next::Wait(wait));
        }
        // What is not over for a query need not be fetched.
        if wait.is_query() {
            return Ok(Next::Wait(wait));
        }
        fetching.question = regions.ask(port, Ahead::Wait(wait), fetching)?;
        Ok(fetching.question.map_or(Next::Wait(wait), Next::Answer))
    }

    /// Sends a copy to memory of the program that is no mirror, together with the question what the device wrote before it, if that has to
    /// be fetched: what came before bytes that arrived is there as well. Returns what comes next: the answers to both, or the copy
    /// alone, which then has not been sent.
    ///
    /// # Errors
    /// What the worker says; a lost connection.
    pub(super) fn receive(&self, port: &dyn Port, copy: Transfer, waited: &mut Waited) -> HipResult<Next> {
        if let Some(fetching) = &mut waited.0
            && port.can_ask_behind(&copy)
        {
            let mut regions = self.regions();
            if !regions.uses.are_over() {
                fetching.question = regions.ask(port, Ahead::Copy(&copy), fetching)?;
            }
        }
        let question = waited.0.as_ref().and_then(|fetching| fetching.question);
        Ok(question.map_or_else(|| Next::Receive(Box::new(copy)), Next::Answer))
    }

    /// Does the next step of fetching what the device wrote, after a wait. Returns what the step waits for; `None` if everything is there.
    ///
    /// # Errors
    /// What the worker answers.
    pub(super) fn fetch(&self, port: &dyn Port, waited: &mut Waited) -> HipResult<Option<Next>> {
        let Some(fetching) = &mut waited.0 else { return Ok(None) };
        if self.is_empty() && fetching.question.is_none() {
            return Ok(None);
        }
        let mut regions = self.regions();
        if fetching.pushes.take() == Some(regions.pushes) {
            // What was sent has arrived, whatever comes next.
            regions.pushed_on = None;
        }
        if fetching.need == Need::Nothing {
            return Ok(None);
        }
        if let Some(question) = fetching.question {
            let Some(told) = regions.questions.take_told(question) else {
                return Ok(Some(Next::WaitForAnswers(question)));
            };
            fetching.question = None;
            let told = told?;
            if told.knows_all && told.left.is_empty() {
                regions.finish(fetching);
                return Ok(None);
            }
            fetching.left = told.left;
            fetching.need = Need::Any;
        }
        if fetching.need == Need::OfUses && regions.uses.are_over() {
            return Ok(None);
        }
        fetching.question = regions.ask(port, Ahead::Nothing, fetching)?;
        if let Some(question) = fetching.question {
            return Ok(Some(Next::Answer(question)));
        }
        if let Some(last) = regions.questions.last() {
            return Ok(Some(Next::WaitForAnswers(last)));
        }
        fetching.unfetched = regions.unfetched.clone();
        regions.pull(port, None)?;
        regions.finish(fetching);
        Ok(None)
    }

    /// Forgets what a wait has asked for, as it has failed.
    pub(super) fn forget(&self, waited: &Waited) {
        if let Some(question) = waited.0.as_ref().and_then(|fetching| fetching.question) {
            self.regions().questions.forget(question);
        }
    }

    /// Takes the answers to a question ([`Next::Answer`]), whatever was answered to the wait that it came with.
    pub fn answered(&self, memory: &dyn HostMemory, question: u64, answers: Vec<ChangesAnswer>) {
        self.regions().answered(memory, question, answers);
        self.applied.notify_all();
    }

    /// Returns whether the answers to a question, and to all earlier ones, have been applied.
    pub fn is_answered(&self, question: u64) -> bool {
        !self.regions().questions.is_open(question)
    }

    /// Waits until the answers to a question, and to all earlier ones, have been applied ([`Next::WaitForAnswers`]).
    pub fn wait_for_answers(&self, question: u64) {
        drop(self.await_answers(self.regions(), question));
    }

    fn await_answers<'a>(&self, regions: MutexGuard<'a, Regions>, question: u64) -> MutexGuard<'a, Regions> {
        let is_open = |regions: &mut Regions| regions.questions.is_open(question);
        self.applied.wait_while(regions, is_open).unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether no work is under way that can write to memory which the program can read.
    pub(super) fn show_nothing(&self) -> bool {
        if self.is_empty() {
            return true;
        }
        let regions = self.regions();
        // What both sides map the device may be writing by any work.
        regions.by_host.values().all(|region| !region.is_shared)
            && regions.unfetched.is_none()
            && (regions.uses.are_over() || regions.by_host.values().all(|region| region.twin.is_none()))
    }

    /// Notes that what a wait would be for is over, as an answer to something else was behind it, and that nothing was fetched.
    pub(super) fn over(&self, waited: &Waited) {
        if self.is_empty() {
            return;
        }
        let mut regions = self.regions();
        if !regions.uses.are_over() {
            // What the streams wait for by themselves is over, too, and not in the clock.
            let clock = waited.0.as_ref().map(|fetching| fetching.clock.clone());
            regions.unfetched.get_or_insert_default().extend(clock.unwrap_or_default());
        }
    }

    /// Removes a stream that is about to be destroyed.
    ///
    /// # Errors
    /// What the worker says.
    pub(super) fn forget_stream(&self, port: &dyn Port, order: &Order, stream: u64) -> HipResult<()> {
        if self.is_empty() {
            return Ok(());
        }
        let mut regions = self.regions();
        if regions.pushed_on == Some(stream) {
            // What was sent on it has arrived before whatever comes after this.
            let legacy = legacy(order.device_of(stream));
            regions.order(port, legacy)?;
            regions.pushed_on = Some(legacy);
        }
        regions.ordered.remove(&stream);
        // Its work may still be under way: it is done when that of the legacy stream is, if that waits for it, or when the device is.
        let heir = if order.is_blocking(stream) { legacy } else { gone };
        regions.uses.bequeath(stream, heir(order.device_of(stream)));
        Ok(())
    }
}

static POINTER_COPIED: AtomicBool = AtomicBool::new(false);

fn warn_once(said: &AtomicBool, warn: impl FnOnce()) {
    if !said.swap(true, Ordering::Relaxed) {
        warn();
    }
}
