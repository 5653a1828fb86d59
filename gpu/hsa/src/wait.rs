//! Waiting for signals without burning a core.
//!
//! Whoever waits sleeps in the bucket of its signal's address. Changes by the host and messages of kernels wake the bucket; what a kernel
//! changes without a message is noticed by looking again from time to time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hipr_grid::lock;
use rustix::thread::futex;

use crate::pointer::{In, Out};
use crate::runtime::runtime;
use crate::signal::{self, AmdSignal, BUCKETS, bucket_of};
use crate::status::{HsaResult, Status};
use crate::types::{Agent, Condition, Signal, SignalGroup, SignalValue};

/// Where threads sleep that wait for signals of a bucket.
struct Bucket {
    /// Changes when the bucket is woken.
    turn: AtomicU32,
    sleepers: AtomicU32,
}

static SLEEP: [Bucket; BUCKETS] =
    [const { Bucket { turn: AtomicU32::new(0), sleepers: AtomicU32::new(0) } }; BUCKETS];

/// How long a thread sleeps before it looks by itself, at first and at most.
const LOOK_AGAIN: [Duration; 2] = [Duration::from_micros(500), Duration::from_millis(10)];

/// Wakes who sleeps in these buckets, a bit for each.
pub(crate) fn wake(buckets: u64) {
    (0..BUCKETS).filter(|number| buckets >> number & 1 != 0).for_each(wake_bucket);
}

fn wake_bucket(number: usize) {
    let bucket = &SLEEP[number];
    // After the change and before the sleepers are counted; who sleeps counts itself before it looks.
    std::sync::atomic::fence(Ordering::SeqCst);
    if bucket.sleepers.load(Ordering::SeqCst) > 0 {
        bucket.turn.fetch_add(1, Ordering::SeqCst);
        // It fails for no address that is one.
        let _ = futex::wake(&bucket.turn, futex::Flags::PRIVATE, i32::MAX as u32);
    }
}

/// What somebody waits for.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    signal: Signal,
    condition: Condition,
    than: SignalValue,
}

impl Wanted {
    /// Returns the value if it is what is wanted; a signal that is gone is not waited for.
    fn look(&self) -> Result<Option<SignalValue>, Gone> {
        let found = AmdSignal::of(self.signal).ok_or(Gone)?;
        let value = found.value.load(Ordering::SeqCst);
        Ok(self.condition.holds(value, self.than).then_some(value))
    }
}

/// A signal that does not exist (any more).
struct Gone;

/// Sleeps until `look` returns something or the time is over.
fn sleep_until<R>(wanted: &[Wanted], timeout_ns: u64, mut look: impl FnMut() -> Option<R>) -> Option<R> {
    if let Some(found) = look() {
        return Some(found);
    }
    let end = (timeout_ns != u64::MAX)
        .then(|| Instant::now().checked_add(Duration::from_nanos(timeout_ns)))
        .flatten();
    // Of several buckets the first is slept in, and the others are looked at more often.
    let bucket = &SLEEP[wanted.first().map_or(0, |wanted| bucket_of(wanted.signal))];
    let is_one = wanted.iter().all(|other| bucket_of(other.signal) == bucket_of(wanted[0].signal));
    let [mut pause, longest] = LOOK_AGAIN;
    bucket.sleepers.fetch_add(1, Ordering::SeqCst);
    let result = loop {
        let turn = bucket.turn.load(Ordering::SeqCst);
        std::sync::atomic::fence(Ordering::SeqCst);
        if let Some(found) = look() {
            break Some(found);
        }
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            break None;
        }
        let sleep = left.map_or(pause, |left| left.min(pause));
        let time = rustix::time::Timespec {
            tv_sec: sleep.as_secs() as i64,
            tv_nsec: i64::from(sleep.subsec_nanos()),
        };
        // Whatever ends the sleep: the value is looked at again.
        let _ = futex::wait(&bucket.turn, futex::Flags::PRIVATE, turn, Some(&time));
        pause = if is_one { (pause * 2).min(longest) } else { LOOK_AGAIN[0] };
    };
    bucket.sleepers.fetch_sub(1, Ordering::SeqCst);
    result
}

/// `hsa_signal_wait_*`: returns the value that ended the wait, or the last one when the time is over. Times are nanoseconds.
pub(crate) fn signal(
    signal: Signal,
    condition: u32,
    than: SignalValue,
    timeout_ns: u64,
    _wait_state: u32,
) -> SignalValue {
    let Some(condition) = Condition::of(condition) else {
        return 0;
    };
    let wanted = Wanted { signal, condition, than };
    let found = sleep_until(&[wanted], timeout_ns, || match wanted.look() {
        Ok(found) => found,
        Err(Gone) => Some(0),
    });
    found.unwrap_or_else(|| signal::load(signal))
}

/// Reads the lists of `hsa_amd_signal_wait_any` and `_all`.
fn wanted(
    count: u32,
    signals: Out<Signal>,
    conditions: Out<u32>,
    values: Out<SignalValue>,
) -> HsaResult<Vec<Wanted>> {
    let count = count as usize;
    let (signals, conditions, values) = (signals.list(count)?, conditions.list(count)?, values.list(count)?);
    let lists = signals.into_iter().zip(conditions).zip(values);
    lists
        .map(|((signal, condition), than)| {
            let condition = Condition::of(condition).ok_or(Status::ERROR_INVALID_ARGUMENT)?;
            Ok(Wanted { signal, condition, than })
        })
        .collect()
}

/// `hsa_amd_signal_wait_any`: returns the index of the first signal in the list that has its value, or `u32::MAX`. Signals with handle 0 are
/// not waited for.
pub(crate) fn any(
    count: u32,
    signals: Out<Signal>,
    conditions: Out<u32>,
    values: Out<SignalValue>,
    timeout_ns: u64,
    _wait_state: u32,
    satisfying: Out<SignalValue>,
) -> u32 {
    let Ok(list) = wanted(count, signals, conditions, values) else {
        return u32::MAX;
    };
    let found = sleep_until(&list, timeout_ns, || {
        let mut there = false;
        for (index, wanted) in list.iter().enumerate() {
            match wanted.look() {
                Ok(Some(value)) => return Some((index as u32, value)),
                Ok(None) => there = true,
                Err(Gone) => {}
            }
        }
        (!there).then_some((u32::MAX, 0))
    });
    let (index, value) = found.unwrap_or((u32::MAX, 0));
    if index != u32::MAX && !satisfying.is_null() {
        let _ = satisfying.put(value);
    }
    index
}

/// `hsa_amd_signal_wait_all`: returns 0 when all have their values at one time, or `u32::MAX`.
pub(crate) fn all(
    count: u32,
    signals: Out<Signal>,
    conditions: Out<u32>,
    values: Out<SignalValue>,
    timeout_ns: u64,
    _wait_state: u32,
    satisfying: Out<SignalValue>,
) -> u32 {
    let Ok(list) = wanted(count, signals, conditions, values) else {
        return u32::MAX;
    };
    let found = sleep_until(&list, timeout_ns, || {
        let look = |wanted: &Wanted| wanted.look().unwrap_or(Some(0));
        list.iter().map(look).collect::<Option<Vec<_>>>()
    });
    let Some(found) = found else {
        return u32::MAX;
    };
    if !satisfying.is_null() {
        for (index, value) in found.into_iter().enumerate() {
            let _ = satisfying.offset(index).put(value);
        }
    }
    0
}

/// Groups of signals by their numbers.
static GROUPS: Mutex<BTreeMap<u64, Arc<Vec<Signal>>>> = Mutex::new(BTreeMap::new());
static NEXT_GROUP: AtomicU64 = AtomicU64::new(1);

/// `hsa_signal_group_create`.
pub(crate) fn group_create(
    count: u32,
    signals: In<Signal>,
    consumer_count: u32,
    consumers: In<Agent>,
    group: Out<SignalGroup>,
) -> HsaResult {
    let runtime = runtime()?;
    if count == 0 || group.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let signals = signals.list(count as usize)?;
    signals.iter().try_for_each(|&signal| signal::check(signal))?;
    for agent in consumers.list(consumer_count as usize)? {
        runtime.agent(agent)?;
    }
    let number = NEXT_GROUP.fetch_add(1, Ordering::Relaxed);
    lock(&GROUPS).insert(number, Arc::new(signals));
    group.put(SignalGroup(number))
}

/// `hsa_signal_group_destroy`.
pub(crate) fn group_destroy(group: SignalGroup) -> HsaResult {
    runtime()?;
    lock(&GROUPS).remove(&group.0).map(drop).ok_or(Status::ERROR_INVALID_SIGNAL_GROUP)
}

/// `hsa_signal_group_wait_any_*`.
pub(crate) fn group_any(
    group: SignalGroup,
    conditions: In<u32>,
    values: In<SignalValue>,
    _wait_state: u32,
    signal: Out<Signal>,
    value: Out<SignalValue>,
) -> HsaResult {
    runtime()?;
    let signals = lock(&GROUPS).get(&group.0).map(Arc::clone).ok_or(Status::ERROR_INVALID_SIGNAL_GROUP)?;
    if signal.is_null() || value.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let (conditions, values) = (conditions.list(signals.len())?, values.list(signals.len())?);
    let lists = signals.iter().zip(conditions).zip(values);
    let list = lists
        .map(|((&signal, condition), than)| {
            let condition = Condition::of(condition).ok_or(Status::ERROR_INVALID_ARGUMENT)?;
            Ok(Wanted { signal, condition, than })
        })
        .collect::<HsaResult<Vec<_>>>()?;
    let found = sleep_until(&list, u64::MAX, || {
        list.iter().find_map(|wanted| match wanted.look() {
            Ok(found) => found.map(|value| Ok((wanted.signal, value))),
            Err(Gone) => Some(Err(Status::ERROR_INVALID_SIGNAL)),
        })
    });
    let (which, found) = found.ok_or(Status::ERROR)??;
    signal.put(which)?;
    value.put(found)
}
