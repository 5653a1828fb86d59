//! Events: points in streams that can be waited for and that record when they were reached.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use hipr_abi::*;
use hipr_grid::lock;
use hipr_proto::{HipError, HipResult};

use crate::fence::Fence;
use crate::name::Name;

const DISABLE_TIMING: u32 = hipEventDisableTiming;
const INTERPROCESS: u32 = hipEventInterprocess;
/// Every flag that HIP defines for events.
const KNOWN_FLAGS: u32 = hipEventBlockingSync
    | DISABLE_TIMING
    | INTERPROCESS
    | hipEventDisableSystemFence
    | RELEASE_TO_DEVICE
    | RELEASE_TO_SYSTEM;
const RELEASE_TO_DEVICE: u32 = hipEventReleaseToDevice;
const RELEASE_TO_SYSTEM: u32 = hipEventReleaseToSystem;

/// What is notified when a record is complete: a context other than the one in which it was recorded.
pub(crate) trait Observer: Send + Sync {
    /// Starts what waited for `record`, which is complete, on another thread.
    fn notify(self: Arc<Self>, record: &Arc<Record>);
}

/// One hipEventRecord.
pub(crate) struct Record {
    /// The completion of the record command.
    pub(crate) fence: Arc<Fence>,
    /// The number of the context in which it was recorded.
    context: u64,
    pub(crate) stream: u64,
    /// Other contexts that wait for it.
    observers: Mutex<Vec<Weak<dyn Observer>>>,
    /// Time at which it was reached, in nanoseconds since the device started.
    time_ns: AtomicU64,
}

impl Record {
    pub(crate) fn new(context: u64, stream: u64) -> Arc<Self> {
        let (fence, observers) = Default::default();
        Arc::new(Self { fence, context, stream, observers, time_ns: AtomicU64::new(0) })
    }

    /// Returns whether it was recorded in the context of this number.
    pub(crate) fn is_of(&self, context: u64) -> bool {
        self.context == context
    }

    /// Adds a context, by its number and itself, that is notified of its completion; has no effect for the context in which it was
    /// recorded. Has to be called before checking whether it is complete.
    pub(crate) fn observe<O: Observer + 'static>(&self, context: u64, observer: &Arc<O>) {
        if self.is_of(context) {
            return;
        }
        let new: Weak<dyn Observer> = Arc::<O>::downgrade(observer);
        let mut observers = lock(&self.observers);
        if !observers.iter().any(|known| known.ptr_eq(&new)) {
            observers.push(new);
        }
    }

    /// Returns the contexts that waited for it.
    pub(crate) fn take_observers(&self) -> Vec<Weak<dyn Observer>> {
        std::mem::take(&mut *lock(&self.observers))
    }

    /// Sets the time; the fence is completed after that.
    pub(crate) fn stamp(&self, now_ns: u64) {
        self.time_ns.store(now_ns, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record")
            .field("fence", &self.fence)
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

/// The part of an event that contexts share.
#[derive(Debug)]
pub(crate) struct Slot {
    flags: u32,
    record: Mutex<Option<Arc<Record>>>,
    /// The name by which other contexts find it.
    pub(crate) name: Name,
}

/// An event.
#[derive(Debug)]
pub(crate) struct Event(Arc<Slot>);

impl Event {
    /// Creates an event that has not been recorded.
    ///
    /// # Errors
    /// `INVALID_VALUE` for flags that HIP does not have, and for two release scopes at once.
    pub(crate) fn new(flags: u32) -> HipResult<Self> {
        let scopes = RELEASE_TO_DEVICE | RELEASE_TO_SYSTEM;
        if flags & !KNOWN_FLAGS != 0 || flags & scopes == scopes {
            return Err(HipError::INVALID_VALUE);
        }
        Ok(Self::of(Arc::new(Slot { flags, record: Mutex::default(), name: Name::default() })))
    }

    /// Creates an event of this context from another context's.
    pub(crate) fn of(slot: Arc<Slot>) -> Self {
        Self(slot)
    }

    /// Returns the part to be shared; fails if the event cannot be shared.
    ///
    /// # Errors
    /// `INVALID_CONFIGURATION` for an event that was not made for other processes or that keeps time (HIP API:
    /// hipIpcGetEventHandle).
    pub(crate) fn lendable(&self) -> HipResult<&Arc<Slot>> {
        let wanted = INTERPROCESS | DISABLE_TIMING;
        if self.0.flags & wanted == wanted { Ok(&self.0) } else { Err(HipError::INVALID_CONFIGURATION) }
    }

    /// Returns the last record, whether it was reached or not.
    pub(crate) fn record(&self) -> Option<Arc<Record>> {
        lock(&self.0.record).clone()
    }

    pub(crate) fn set_record(&self, record: Arc<Record>) {
        *lock(&self.0.record) = Some(record);
    }

    /// Returns the milliseconds from `self` to `stop`.
    ///
    /// # Errors
    /// As hipEventElapsedTime: `INVALID_HANDLE` if one was never recorded or keeps no time, `NOT_READY` if one was not passed.
    pub(crate) fn elapsed_ms(&self, stop: &Self) -> HipResult<f32> {
        let (Some(from), Some(to)) = (self.record(), stop.record()) else {
            return Err(HipError::INVALID_HANDLE);
        };
        if (self.0.flags | stop.0.flags) & DISABLE_TIMING != 0 {
            return Err(HipError::INVALID_HANDLE);
        }
        if !from.fence.is_done() || !to.fence.is_done() {
            return Err(HipError::NOT_READY);
        }
        let time = |record: &Record| record.time_ns.load(Ordering::Relaxed) as i64;
        Ok(((time(&to) - time(&from)) as f64 * 1e-6) as f32)
    }
}
