//! Signals: 64-bit values that host and kernels change and wait for.
//!
//! A signal's handle is the address of AMD's structure, which kernels read and write themselves. The structures lie in slabs, memory that all
//! agents reach and that stays until the runtime ends, so that a handle can be checked and never leads astray.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use hipr_grid::lock;
use hipr_isa::map::PAGE_BYTES;

use crate::facts::Agents;
use crate::pointer::{In, Out, Ptr};
use crate::runtime::{Runtime, runtime};
use crate::status::{HsaResult, Status};
use crate::types::{Agent, ProfilingTime, Signal, SignalValue};

/// `amd_signal_t`.
#[repr(C, align(64))]
pub(crate) struct AmdSignal {
    /// [`FREE`] or [`USER`].
    kind: AtomicI64,
    pub(crate) value: AtomicI64,
    /// Where a kernel stores `event_id` before it sends its message; 0 if it is to send none.
    event_mailbox_ptr: AtomicU64,
    event_id: AtomicU32,
    reserved1: u32,
    start_ns: AtomicU64,
    end_ns: AtomicU64,
    /// The queue whose doorbell it is, or 0.
    queue_ptr: AtomicU64,
    reserved3: [u32; 2],
}

/// Size of the structure in bytes.
const SIGNAL_BYTES: u64 = size_of::<AmdSignal>() as u64;
const _: () = assert!(SIGNAL_BYTES == 64);

/// `AMD_SIGNAL_KIND_INVALID`.
const FREE: i64 = 0;
/// `AMD_SIGNAL_KIND_USER`.
const USER: i64 = 1;

/// Signals of a slab, the first of which is its mailbox.
const SLAB_SIGNALS: u64 = 1024;

/// Signals are in buckets by their addresses: who waits for a signal sleeps in its bucket, and the watcher looks at whole buckets.
pub(crate) const BUCKETS: usize = 64;

/// The slabs' addresses, each at the beginning of a page of its own.
static SLABS: RwLock<BTreeSet<u64>> = RwLock::new(BTreeSet::new());
/// Addresses of structures that are free.
static UNUSED: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Returns the number of a signal's bucket.
pub(crate) fn bucket_of(signal: Signal) -> usize {
    (signal.0 >> 6) as usize % BUCKETS
}

impl AmdSignal {
    /// Returns the signal with this handle; `None` if there is none.
    pub(crate) fn of(signal: Signal) -> Option<&'static Self> {
        let slab = signal.0 & !(PAGE_BYTES - 1);
        let number = (signal.0 - slab) / SIGNAL_BYTES;
        let is_place = signal.0.is_multiple_of(SIGNAL_BYTES) && (1..SLAB_SIGNALS).contains(&number);
        if !is_place || !SLABS.read().unwrap_or_else(PoisonError::into_inner).contains(&slab) {
            return None;
        }
        // SAFETY: a place in a slab, which stays mapped while it is in the list; the structure consists of atomics.
        let found: &'static Self = unsafe { &*Ptr::at(signal.0).raw().cast() };
        (found.kind.load(Ordering::Relaxed) == USER).then_some(found)
    }

    /// Returns the address of the queue whose doorbell it is, or 0.
    pub(crate) fn queue(&self) -> u64 {
        self.queue_ptr.load(Ordering::Relaxed)
    }

    /// Makes the structure free for another signal; returns false if it was.
    pub(crate) fn free(&self) -> bool {
        self.kind.compare_exchange(USER, FREE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Sets the times at which what completes the signal began and ended, in nanoseconds of the system's clock.
    pub(crate) fn set_times(&self, times: ProfilingTime) {
        self.start_ns.store(times.start, Ordering::Relaxed);
        self.end_ns.store(times.end, Ordering::Relaxed);
    }
}

impl Runtime {
    /// Creates a signal. With `is_silent` kernels that change it send no message, so that who waits has to look.
    pub(crate) fn new_signal(
        &self,
        value: SignalValue,
        is_silent: bool,
        queue_ptr: u64,
    ) -> HsaResult<Signal> {
        let mut unused = lock(&UNUSED);
        if unused.is_empty() {
            let slab =
                self.memory.allocate(SLAB_SIGNALS * SIGNAL_BYTES, 0, None, crate::pool::FINE, Agents::ALL)?;
            SLABS.write().unwrap_or_else(PoisonError::into_inner).insert(slab);
            unused.extend((1..SLAB_SIGNALS).rev().map(|number| slab + number * SIGNAL_BYTES));
        }
        let addr = unused.pop().ok_or(Status::ERROR_OUT_OF_RESOURCES)?;
        drop(unused);
        // SAFETY: a structure of a slab that nobody else has.
        let found: &'static AmdSignal = unsafe { &*Ptr::at(addr).raw().cast() };
        let mailbox = if is_silent { 0 } else { addr & !(PAGE_BYTES - 1) };
        found.value.store(value, Ordering::Relaxed);
        found.event_mailbox_ptr.store(mailbox, Ordering::Relaxed);
        found.event_id.store((addr & (PAGE_BYTES - 1)) as u32 / SIGNAL_BYTES as u32, Ordering::Relaxed);
        found.set_times(ProfilingTime::default());
        found.queue_ptr.store(queue_ptr, Ordering::Relaxed);
        found.kind.store(USER, Ordering::Release);
        Ok(Signal(addr))
    }
}

/// Lets the structure of a signal that [was freed](AmdSignal::free) be used again.
pub(crate) fn recycle(signal: Signal) {
    lock(&UNUSED).push(signal.0);
}

/// Forgets all signals, because the memory that they are in goes.
pub(crate) fn forget_all() {
    SLABS.write().unwrap_or_else(PoisonError::into_inner).clear();
    lock(&UNUSED).clear();
}

/// Checks that a handle is a signal's.
///
/// # Errors
/// `INVALID_SIGNAL` if it is not, also for 0.
pub(crate) fn check(signal: Signal) -> HsaResult {
    AmdSignal::of(signal).map(drop).ok_or(Status::ERROR_INVALID_SIGNAL)
}

/// Returns the times of what completed the signal last.
///
/// # Errors
/// `INVALID_SIGNAL` if there is no such signal.
pub(crate) fn times(signal: Signal) -> HsaResult<ProfilingTime> {
    let found = AmdSignal::of(signal).ok_or(Status::ERROR_INVALID_SIGNAL)?;
    let load = |time: &AtomicU64| time.load(Ordering::Relaxed);
    Ok(ProfilingTime { start: load(&found.start_ns), end: load(&found.end_ns) })
}

/// `hsa_signal_create`.
pub(crate) fn create(value: SignalValue, count: u32, consumers: In<Agent>, signal: Out<Signal>) -> HsaResult {
    amd_create(value, count, consumers, 0, signal)
}

/// `HSA_AMD_SIGNAL_AMD_GPU_ONLY`.
const GPU_ONLY: u64 = 1;
/// `HSA_AMD_SIGNAL_IPC`.
const IPC: u64 = 2;

/// `hsa_amd_signal_create`.
pub(crate) fn amd_create(
    value: SignalValue,
    count: u32,
    consumers: In<Agent>,
    attributes: u64,
    signal: Out<Signal>,
) -> HsaResult {
    let runtime = runtime()?;
    if signal.is_null() || (count > 0 && consumers.is_null()) || attributes & !(GPU_ONLY | IPC) != 0 {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let consumers = consumers.list(count as usize)?;
    for (index, agent) in consumers.iter().enumerate() {
        runtime.agent(*agent)?;
        if consumers[..index].contains(agent) {
            return Err(Status::ERROR_INVALID_ARGUMENT);
        }
    }
    signal.put(runtime.new_signal(value, attributes & GPU_ONLY != 0, 0)?)
}

/// `hsa_amd_signal_value_pointer`.
pub(crate) fn value_pointer(signal: Signal, pointer: Out<Out<SignalValue>>) -> HsaResult {
    runtime()?;
    let found = AmdSignal::of(signal).ok_or(Status::ERROR_INVALID_ARGUMENT)?;
    pointer.put(Out::at(found.value.as_ptr().expose_provenance() as u64))
}

/// `hsa_signal_load_*`.
pub(crate) fn load(signal: Signal) -> SignalValue {
    AmdSignal::of(signal).map_or(0, |found| found.value.load(Ordering::SeqCst))
}
