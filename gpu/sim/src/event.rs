//! Events: points in streams that can be waited for and that know when they were passed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hipr_proto::{HipError, HipResult};

use crate::fence::Fence;

/// hipEventDisableTiming.
const DISABLE_TIMING: u32 = 2;
/// hipEventBlockingSync, hipEventDisableTiming, hipEventInterprocess and the three fence hints.
const KNOWN_FLAGS: u32 = 1 | DISABLE_TIMING | 4 | 0x2000_0000 | RELEASE_TO_DEVICE | RELEASE_TO_SYSTEM;
const RELEASE_TO_DEVICE: u32 = 0x4000_0000;
const RELEASE_TO_SYSTEM: u32 = 0x8000_0000;

/// One hipEventRecord.
#[derive(Debug)]
pub(crate) struct Record {
    /// The record command's completion.
    pub(crate) fence: Arc<Fence>,
    /// Where it was recorded.
    pub(crate) stream: u64,
    /// When it was passed, in nanoseconds since the device started.
    time_ns: AtomicU64,
}

impl Record {
    pub(crate) fn new(stream: u64) -> Arc<Self> {
        Arc::new(Self { fence: Arc::default(), stream, time_ns: AtomicU64::new(0) })
    }

    /// Notes the time; the fence is completed after that.
    pub(crate) fn stamp(&self, now_ns: u64) {
        self.time_ns.store(now_ns, Ordering::Relaxed);
    }
}

/// An event.
#[derive(Debug)]
pub(crate) struct Event {
    flags: u32,
    record: Option<Arc<Record>>,
}

impl Event {
    /// # Errors
    /// `INVALID_VALUE` for flags that HIP does not have, and for two release scopes at once.
    pub(crate) fn new(flags: u32) -> HipResult<Self> {
        let scopes = RELEASE_TO_DEVICE | RELEASE_TO_SYSTEM;
        if flags & !KNOWN_FLAGS != 0 || flags & scopes == scopes {
            return Err(HipError::INVALID_VALUE);
        }
        Ok(Self { flags, record: None })
    }

    /// The last record, whether it was passed or not.
    pub(crate) fn record(&self) -> Option<&Arc<Record>> {
        self.record.as_ref()
    }

    pub(crate) fn set_record(&mut self, record: Arc<Record>) {
        self.record = Some(record);
    }

    /// Milliseconds from `self` to `stop`.
    ///
    /// # Errors
    /// As hipEventElapsedTime: `INVALID_HANDLE` if one was never recorded or keeps no time, `NOT_READY` if one was not passed.
    pub(crate) fn elapsed_ms(&self, stop: &Self) -> HipResult<f32> {
        let (Some(from), Some(to)) = (&self.record, &stop.record) else {
            return Err(HipError::INVALID_HANDLE);
        };
        if (self.flags | stop.flags) & DISABLE_TIMING != 0 {
            return Err(HipError::INVALID_HANDLE);
        }
        if !from.fence.is_done() || !to.fence.is_done() {
            return Err(HipError::NOT_READY);
        }
        let time = |record: &Record| record.time_ns.load(Ordering::Relaxed) as i64;
        Ok(((time(to) - time(from)) as f64 * 1e-6) as f32)
    }
}
