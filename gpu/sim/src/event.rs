//! Events: points in streams that can be waited for and that know when they were passed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use hipr_proto::{HipError, HipResult};

use crate::executor::lock;
use crate::fence::Fence;
use crate::loan::Name;
use crate::shared::Shared;

/// hipEventDisableTiming.
const DISABLE_TIMING: u32 = 2;
/// hipEventInterprocess.
const INTERPROCESS: u32 = 4;
/// hipEventBlockingSync, hipEventDisableTiming, hipEventInterprocess and the three fence hints.
const KNOWN_FLAGS: u32 =
    1 | DISABLE_TIMING | INTERPROCESS | 0x2000_0000 | RELEASE_TO_DEVICE | RELEASE_TO_SYSTEM;
const RELEASE_TO_DEVICE: u32 = 0x4000_0000;
const RELEASE_TO_SYSTEM: u32 = 0x8000_0000;

/// One hipEventRecord.
pub(crate) struct Record {
    /// The record command's completion.
    pub(crate) fence: Arc<Fence>,
    /// Where it was recorded: in which context, and on which stream.
    context: u64,
    pub(crate) stream: u64,
    /// Other contexts that wait for it.
    observers: Mutex<Vec<Weak<Shared>>>,
    /// When it was passed, in nanoseconds since the device started.
    time_ns: AtomicU64,
}

impl Record {
    pub(crate) fn new(context: u64, stream: u64) -> Arc<Self> {
        let (fence, observers) = Default::default();
        Arc::new(Self { fence, context, stream, observers, time_ns: AtomicU64::new(0) })
    }

    /// Whether it was recorded in this context.
    pub(crate) fn is_of(&self, context: &Shared) -> bool {
        self.context == context.id
    }

    /// `context` waits for it and hears of its completion. To be called before it is asked whether it is complete.
    pub(crate) fn observe(&self, context: &Arc<Shared>) {
        if self.is_of(context) {
            return;
        }
        let (mut observers, new) = (lock(&self.observers), Arc::downgrade(context));
        if !observers.iter().any(|known| known.ptr_eq(&new)) {
            observers.push(new);
        }
    }

    /// Who waited for it, which is complete now.
    pub(crate) fn take_observers(&self) -> Vec<Weak<Shared>> {
        std::mem::take(&mut *lock(&self.observers))
    }

    /// Notes the time; the fence is completed after that.
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

/// What all have of an event that is lent.
#[derive(Debug)]
pub(crate) struct Slot {
    flags: u32,
    record: Mutex<Option<Arc<Record>>>,
    /// By which others find it.
    pub(crate) name: Name,
}

/// An event.
#[derive(Debug)]
pub(crate) struct Event(Arc<Slot>);

impl Event {
    /// # Errors
    /// `INVALID_VALUE` for flags that HIP does not have, and for two release scopes at once.
    pub(crate) fn new(flags: u32) -> HipResult<Self> {
        let scopes = RELEASE_TO_DEVICE | RELEASE_TO_SYSTEM;
        if flags & !KNOWN_FLAGS != 0 || flags & scopes == scopes {
            return Err(HipError::INVALID_VALUE);
        }
        Ok(Self::of(Arc::new(Slot { flags, record: Mutex::default(), name: Name::default() })))
    }

    /// The event of another context.
    pub(crate) fn of(slot: Arc<Slot>) -> Self {
        Self(slot)
    }

    /// To be lent.
    ///
    /// # Errors
    /// `INVALID_CONFIGURATION` for an event that was not made for other processes or that keeps time (HIP API:
    /// hipIpcGetEventHandle).
    pub(crate) fn lendable(&self) -> HipResult<&Arc<Slot>> {
        let wanted = INTERPROCESS | DISABLE_TIMING;
        if self.0.flags & wanted == wanted { Ok(&self.0) } else { Err(HipError::INVALID_CONFIGURATION) }
    }

    /// The last record, whether it was passed or not.
    pub(crate) fn record(&self) -> Option<Arc<Record>> {
        lock(&self.0.record).clone()
    }

    pub(crate) fn set_record(&self, record: Arc<Record>) {
        *lock(&self.0.record) = Some(record);
    }

    /// Milliseconds from `self` to `stop`.
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
