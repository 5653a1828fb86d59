//! Signals: 64-bit values that host and kernels change and wait for.
//!
//! A signal's handle is the address of AMD's structure, which kernels read and write themselves. The structures lie in slabs, memory that all
//! agents reach and that stays until the runtime ends, so that a handle can be checked and never leads astray.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use hipr_grid::lock;
use hipr_isa::map::PAGE_BYTES;

use crate::memory::Agents;
use crate::pointer::{In, Out, Ptr};
use crate::queue;
use crate::runtime::{Runtime, runtime};
use crate::status::{HsaResult, Status};
use crate::types::{Agent, ProfilingTime, Signal, SignalValue};
use crate::wait;

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

/// The slabs' addresses, each at the beginning of a page of its own.
static SLABS: RwLock<BTreeSet<u64>> = RwLock::new(BTreeSet::new());
/// Addresses of structures that are free.
static UNUSED: Mutex<Vec<u64>> = Mutex::new(Vec::new());

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

    /// Sets the times at which what completes the signal began and ended, in nanoseconds of the system's clock.
    fn set_times(&self, times: ProfilingTime) {
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

/// Subtracts 1 from a completion signal and wakes who waits for it; does nothing for handle 0.
pub(crate) fn complete(signal: Signal, times: ProfilingTime) {
    change(signal, |found| {
        found.set_times(times);
        found.value.fetch_sub(1, Ordering::SeqCst);
    });
}

/// Stores -1 in the completion signal of something that has failed; does nothing for handle 0.
pub(crate) fn fail(signal: Signal) {
    change(signal, |found| found.value.store(-1, Ordering::SeqCst));
}

/// Changes a signal and wakes who waits for it; a doorbell's queue looks at its packets.
fn change<R: Default>(signal: Signal, change: impl FnOnce(&AmdSignal) -> R) -> R {
    let Some(found) = AmdSignal::of(signal) else {
        if signal.0 != 0 {
            tracing::error!(signal = ?signal, "an operation on a signal that does not exist, or does not exist any more");
        }
        return R::default();
    };
    let result = change(found);
    let queue = found.queue_ptr.load(Ordering::Relaxed);
    if queue != 0 {
        queue::ring(queue);
    }
    wait::wake(signal);
    result
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

/// `hsa_signal_destroy`.
pub(crate) fn destroy(signal: Signal) -> HsaResult {
    runtime()?;
    if signal.0 == 0 {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let found = AmdSignal::of(signal).ok_or(Status::ERROR_INVALID_SIGNAL)?;
    if found.queue_ptr.load(Ordering::Relaxed) != 0 {
        return Err(Status::ERROR_INVALID_SIGNAL);
    }
    retire(signal);
    Ok(())
}

/// Makes a signal's structure free for another.
pub(crate) fn retire(signal: Signal) {
    if let Some(found) = AmdSignal::of(signal)
        && found.kind.compare_exchange(USER, FREE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    {
        // Whoever still waits for it finds that it is gone.
        wait::wake(signal);
        lock(&UNUSED).push(signal.0);
    }
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

/// `hsa_signal_store_*`.
pub(crate) fn store(signal: Signal, value: SignalValue) {
    change(signal, |found| found.value.store(value, Ordering::SeqCst));
}

/// `hsa_signal_silent_store_*`: who waits may notice later.
pub(crate) fn silent_store(signal: Signal, value: SignalValue) {
    if let Some(found) = AmdSignal::of(signal) {
        found.value.store(value, Ordering::SeqCst);
    }
}

/// `hsa_signal_exchange_*`.
pub(crate) fn exchange(signal: Signal, value: SignalValue) -> SignalValue {
    change(signal, |found| found.value.swap(value, Ordering::SeqCst))
}

/// `hsa_signal_cas_*`: returns what was there before.
pub(crate) fn cas(signal: Signal, expected: SignalValue, value: SignalValue) -> SignalValue {
    change(signal, |found| {
        let (Ok(old) | Err(old)) =
            found.value.compare_exchange(expected, value, Ordering::SeqCst, Ordering::SeqCst);
        old
    })
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $method:ident;)*) => {
        $(
            $(#[$doc])*
            pub(crate) fn $name(signal: Signal, value: SignalValue) {
                change(signal, |found| {
                    found.value.$method(value, Ordering::SeqCst);
                });
            }
        )*
    };
}

operations! {
    /// `hsa_signal_add_*`.
    add = fetch_add;
    /// `hsa_signal_subtract_*`.
    subtract = fetch_sub;
    /// `hsa_signal_and_*`.
    and = fetch_and;
    /// `hsa_signal_or_*`.
    or = fetch_or;
    /// `hsa_signal_xor_*`.
    xor = fetch_xor;
}
