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
//! **Several workers.** Each has a copy, with a twin of its own (`side`). What one worker's kernels wrote comes here after a
//! synchronization, and goes to another worker like what the program wrote.
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
mod side;
mod unseen;
mod uses;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};

use hipr_proto::{HipError, HipResult};

use self::region::{Region, Regions};
use super::order::Order;
use crate::convert::{Event, Ptr};
use crate::thread;
use crate::worker::{ChangesAnswer, HostMemory, Port, Release, WrittenPages};

pub use self::said::Advice;

pub(super) use self::questions::Waited;
pub(super) use self::side::Side;

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
#[derive(Clone, Debug)]
pub struct Removed {
    /// Attributes of the memory.
    pub info: RegionInfo,
    /// Whether its pages were mapped by this library.
    pub is_mapped: bool,
    /// The workers' memory that has to be freed, each with its device.
    pub releases: Vec<(i32, Release)>,
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
#[derive(Debug)]
pub struct Mirrors {
    /// One for each worker, at least one.
    sides: Box<[Side]>,
    /// The worker of each device, by number; empty if there is one worker.
    workers: Vec<usize>,
}

impl Default for Mirrors {
    fn default() -> Self {
        Self::new(&Arc::default(), Vec::new())
    }
}

impl Mirrors {
    /// Creates the memory of a process that has none, whose streams have this order. `workers` says of each device which worker has it, if
    /// there are several.
    pub(super) fn new(order: &Arc<Order>, workers: Vec<usize>) -> Self {
        let count = workers.iter().max().map_or(1, |last| last + 1);
        let home = |number: usize| workers.iter().position(|worker| *worker == number).unwrap_or(0);
        let side = |number| Side::new(order, number, i32::try_from(home(number)).unwrap_or(0));
        Self { sides: (0..count).map(side).collect(), workers }
    }

    /// Returns the memory as the worker of a device has it.
    #[inline]
    pub(super) fn of_device(&self, device: i32) -> &Side {
        self.of(|| device)
    }

    /// Does what [`of_device`](Self::of_device) does with a device that is only looked up if there are several workers.
    #[inline]
    pub(super) fn of(&self, device: impl FnOnce() -> i32) -> &Side {
        match &*self.sides {
            [only] => only,
            sides => &sides[self.worker_of(device())],
        }
    }

    /// Returns whether there are several workers.
    #[inline]
    pub(super) fn are_several(&self) -> bool {
        self.sides.len() > 1
    }

    /// Returns one device of each worker: `device` of its own.
    pub(crate) fn a_device_each(&self, device: i32) -> impl Iterator<Item = i32> {
        let own = self.worker_of(device);
        self.sides().enumerate().map(move |(number, side)| if number == own { device } else { side.home() })
    }

    /// Returns the memory as each worker has it.
    pub(super) fn sides(&self) -> impl Iterator<Item = &Side> {
        self.sides.iter()
    }

    /// Returns the worker of a device; the first one for what is no device.
    pub(super) fn worker_of(&self, device: i32) -> usize {
        let worker = usize::try_from(device).ok().and_then(|device| self.workers.get(device));
        worker.copied().unwrap_or(0)
    }

    /// Returns what all sides have in common, as the first one has it.
    fn first(&self) -> &Side {
        &self.sides[0]
    }

    /// Returns whether there is no mirrored memory.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first().is_empty()
    }

    /// Adds a region: the worker of its device has it as `own`, the others do not have it yet.
    fn insert(&self, own: Region) {
        self.insert_with(self.first().regions(), own);
    }

    /// Does what [`insert`](Self::insert) does while the first side is locked, which is unlocked when all sides have the region.
    fn insert_with(&self, mut first: MutexGuard<'_, Regions>, own: Region) {
        let (info, mapped, worker) = (own.info, own.mapped, self.worker_of(own.info.device));
        let mut own = Some(own);
        let mut insert = |number: usize, side: &Side, regions: &mut Regions| {
            let known = if number == worker { own.take() } else { None };
            let bare = Region { device: regions.home, ..Region::new(info, None, None, mapped) };
            side.insert(regions, known.unwrap_or(bare));
        };
        for (number, side) in self.sides.iter().enumerate().skip(1) {
            insert(number, side, &mut side.regions());
        }
        insert(0, self.first(), &mut first);
    }

    /// Returns the kind of the `len` bytes at `ptr`, as the worker of the calling thread's device has them. `is_device` decides about an
    /// address that could be either.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` when they go beyond the memory they begin in.
    pub fn place(&self, port: &dyn Port, ptr: Ptr, len: usize, is_device: Option<bool>) -> HipResult<Place> {
        self.of(thread::device).place(port, ptr, len, is_device)
    }

    /// Returns the attributes of the memory that contains `ptr`, the offset in it, and its address on the calling thread's device if it has
    /// one.
    pub fn info(&self, ptr: Ptr) -> Option<(RegionInfo, usize, Option<u64>)> {
        let own = self.of(thread::device).info(ptr);
        // Its address on another device may be another one.
        own.or_else(|| self.sides().find_map(|side| side.info(ptr)))
    }

    /// Adds memory that the worker of its device has at `remote` and that was mapped in this process; `release` frees the worker's.
    pub fn add(&self, info: RegionInfo, remote: u64, release: Option<Release>) {
        self.insert(Region::new(info, Some(remote), release, true));
    }

    /// Adds memory that the worker has at `remote` and this process has mapped as well; `release` frees the worker's.
    pub fn add_shared(&self, info: RegionInfo, remote: u64, release: Option<Release>) {
        self.insert(Region { is_shared: true, ..Region::new(info, Some(remote), release, true) });
    }

    /// Registers memory of the program for use by kernels.
    ///
    /// # Errors
    /// `hipErrorHostMemoryAlreadyRegistered`.
    pub fn register(&self, ptr: Ptr, len: usize, flags: u32) -> HipResult<()> {
        let end = ptr.0.checked_add(len).ok_or(HipError::INVALID_VALUE)?;
        let regions = self.first().regions();
        let before = regions.by_host.range(..end).next_back();
        if before.is_some_and(|(base, region)| base + region.info.len > ptr.0) {
            return Err(HipError::HOST_MEMORY_ALREADY_REGISTERED);
        }
        let info = RegionInfo { origin: Origin::Registered, host: ptr, len, flags, device: thread::device() };
        self.insert_with(regions, Region::new(info, None, None, false));
        Ok(())
    }

    /// Adds the host memory of a `__managed__` variable. Its module, which is for the calling thread's device, has it at `remote`, or else
    /// expects it at the address that is returned.
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
        let device = thread::device();
        let regions = self.first().regions();
        if !regions.by_host.contains_key(&host.0) {
            let info = RegionInfo { origin: Origin::Managed, host, len, flags: 0, device };
            self.insert_with(regions, Region::new(info, remote, None, false));
        } else {
            drop(regions);
        }
        self.of_device(device).remote(port, host, device)
    }

    /// Removes memory; the caller has to release what is returned. None if `ptr` is not the begin of memory of this origin.
    ///
    /// # Errors
    /// What the worker answers.
    pub fn remove(&self, port: &dyn Port, ptr: Ptr, origin: Origin) -> HipResult<Option<Removed>> {
        if self.is_empty() {
            return Ok(None);
        }
        let is_it = |region: &Region| region.info.origin == origin;
        if !self.first().regions().by_host.get(&ptr.0).is_some_and(is_it) {
            return Ok(None);
        }
        if origin == Origin::Registered {
            // The program keeps the memory, and with it what the devices wrote.
            let settled = self.sides().try_for_each(|side| side.settle(port, ptr));
            if settled.is_err() {
                self.sides().for_each(|side| side.keep(ptr));
                settled?;
            }
        }
        // Of several callers the one that has it from the first side has it.
        let Some(first) = self.first().remove(port, ptr, origin) else { return Ok(None) };
        let (info, is_mapped) = (first.info, first.mapped);
        let others = self.sides().skip(1).filter_map(|side| side.remove(port, ptr, origin));
        let all = std::iter::once(first).chain(others);
        let releases = all.filter_map(|region| Some((region.device, region.release?))).collect();
        Ok(Some(Removed { info, is_mapped, releases }))
    }

    /// Returns the address of host memory for the calling thread's device, making it available to kernels.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` for memory that is not on both sides.
    pub fn device_pointer(&self, port: &dyn Port, ptr: Ptr) -> HipResult<u64> {
        let device = thread::device();
        self.of_device(device).device_pointer(port, ptr, device)
    }

    /// Returns the address of host memory for the calling thread's device without making it available to kernels.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` for memory that is not on both sides.
    pub fn device_address(&self, port: &dyn Port, ptr: Ptr) -> HipResult<u64> {
        let device = thread::device();
        self.of_device(device).device_address(port, ptr, device)
    }

    /// Removes the memory of a device that was reset. The program's own memory stays as it is; memory allocated for it stays
    /// mapped.
    pub fn clear(&self, pages: &dyn WrittenPages, device: i32) {
        self.sides().for_each(|side| side.clear(pages, device));
    }

    /// Removes an event.
    pub(super) fn forget_event(&self, event: Event) {
        self.sides().for_each(|side| side.forget_event(event));
    }

    /// Takes the answers to a question ([`Next::Answer`](super::Next::Answer)), whatever was answered to the wait that it came with.
    pub fn answered(&self, memory: &dyn HostMemory, question: u64, answers: Vec<ChangesAnswer>) {
        self.asked(question).answered(memory, question, answers);
    }

    /// Returns whether the answers to a question, and to all earlier ones, have been applied.
    pub fn is_answered(&self, question: u64) -> bool {
        self.asked(question).is_answered(question)
    }

    /// Waits until the answers to a question, and to all earlier ones, have been applied ([`Next::WaitForAnswers`](super::Next::WaitForAnswers)).
    pub fn wait_for_answers(&self, question: u64) {
        self.asked(question).wait_for_answers(question);
    }

    /// Returns the side that has asked a question.
    fn asked(&self, question: u64) -> &Side {
        self.sides.get(questions::side_of(question)).unwrap_or(self.first())
    }

    /// Returns whether no work is under way that can write to memory which the program can read.
    pub(super) fn show_nothing(&self) -> bool {
        self.sides().all(Side::show_nothing)
    }
}

fn warn_once(said: &AtomicBool, warn: impl FnOnce()) {
    if !said.swap(true, Ordering::Relaxed) {
        warn();
    }
}
