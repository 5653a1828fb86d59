//! The watcher: a thread that does something once a signal has a value, for queues, copies and handlers that nobody's thread waits for.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use hipr_grid::lock;

use crate::signal::{AmdSignal, BUCKETS, bucket_of};
use crate::types::{Condition, Signal, SignalValue};

/// What is done; it is given the value, or `None` if the signal is gone. It must be short.
type Action = Box<dyn FnOnce(Option<SignalValue>) + Send>;

/// Something that waits for a signal.
struct Watch {
    signal: Signal,
    /// Bits of the value that count.
    mask: SignalValue,
    condition: Condition,
    than: SignalValue,
    action: Action,
}

impl Watch {
    /// Returns `Some` when the action is to be called, with what it is given.
    fn look(&self) -> Option<Option<SignalValue>> {
        let Some(found) = AmdSignal::of(self.signal) else {
            return Some(None);
        };
        let value = found.value.load(Ordering::SeqCst);
        self.condition.holds(value & self.mask, self.than).then_some(Some(value))
    }
}

struct State {
    by_bucket: [Vec<Watch>; BUCKETS],
    has_thread: bool,
}

static STATE: Mutex<State> =
    Mutex::new(State { by_bucket: [const { Vec::new() }; BUCKETS], has_thread: false });
static WAKE: Condvar = Condvar::new();
/// Number of watches in each bucket.
static COUNTS: [AtomicU32; BUCKETS] = [const { AtomicU32::new(0) }; BUCKETS];
/// Buckets to be looked at.
static NOTICED: AtomicU64 = AtomicU64::new(0);

/// How often the watcher looks at everything by itself, because kernels may change signals without a message: soon after there is something
/// new to be watched, then less often.
const LOOK_AGAIN: [Duration; 2] = [Duration::from_micros(500), Duration::from_millis(10)];

/// Has the watcher look at these buckets, if something in them is watched.
pub(crate) fn notice(buckets: u64) {
    let watched = |(number, count): (usize, &AtomicU32)| {
        let is_meant = buckets >> number & 1 != 0 && count.load(Ordering::SeqCst) > 0;
        u64::from(is_meant) << number
    };
    let noticed = COUNTS.iter().enumerate().map(watched).fold(0, |all, bit| all | bit);
    if noticed != 0 && NOTICED.fetch_or(noticed, Ordering::SeqCst) & noticed != noticed {
        // The lock is taken so that the watcher either has seen the bits or sleeps already.
        drop(lock(&STATE));
        WAKE.notify_one();
    }
}

/// Calls `action` once the signal's bits in `mask` satisfy the condition: at once, or on the watcher's thread.
pub(crate) fn when(
    signal: Signal,
    mask: SignalValue,
    condition: Condition,
    than: SignalValue,
    action: impl FnOnce(Option<SignalValue>) + Send + 'static,
) {
    let watch = Watch { signal, mask, condition, than, action: Box::new(action) };
    if let Some(value) = watch.look() {
        (watch.action)(value);
        return;
    }
    let number = bucket_of(signal);
    let mut state = lock(&STATE);
    state.by_bucket[number].push(watch);
    COUNTS[number].fetch_add(1, Ordering::SeqCst);
    // What has changed before it was counted is looked for by the watcher.
    NOTICED.fetch_or(1 << number, Ordering::SeqCst);
    if !state.has_thread {
        state.has_thread = true;
        if let Err(error) = std::thread::Builder::new().name("hsa-watcher".to_owned()).spawn(run) {
            tracing::error!(%error, "there is no thread to watch signals");
            state.has_thread = false;
        }
    }
    drop(state);
    WAKE.notify_one();
}

/// Calls `action` once every signal was seen at 0 or is gone: at once, or on the watcher's thread, which it must not keep busy.
pub(crate) fn after(mut signals: Vec<Signal>, action: impl FnOnce() + Send + 'static) {
    after_boxed(&mut signals, Box::new(action));
}

fn after_boxed(signals: &mut Vec<Signal>, action: Box<dyn FnOnce() + Send>) {
    while let Some(signal) = signals.pop() {
        let is_open = AmdSignal::of(signal).is_some_and(|found| found.value.load(Ordering::SeqCst) != 0);
        if is_open {
            let mut rest = std::mem::take(signals);
            when(signal, !0, Condition::Eq, 0, move |_| after_boxed(&mut rest, action));
            return;
        }
    }
    action();
}

/// The watcher's thread, which lives as long as the process.
fn run() {
    let [mut pause, longest] = LOOK_AGAIN;
    let mut buckets = u64::MAX;
    loop {
        let mut due = Vec::new();
        let mut state = lock(&STATE);
        for number in (0..BUCKETS).filter(|number| buckets >> number & 1 != 0) {
            let list = &mut state.by_bucket[number];
            let mut index = 0;
            while index < list.len() {
                match list[index].look() {
                    Some(value) => {
                        let watch = list.swap_remove(index);
                        COUNTS[number].fetch_sub(1, Ordering::SeqCst);
                        due.push((watch, value));
                    }
                    None => index += 1,
                }
            }
        }
        if !due.is_empty() {
            drop(state);
            due.into_iter().for_each(|(watch, value)| (watch.action)(value));
            buckets = NOTICED.swap(0, Ordering::SeqCst);
            pause = LOOK_AGAIN[0];
            continue;
        }
        buckets = NOTICED.swap(0, Ordering::SeqCst);
        if buckets != 0 {
            pause = LOOK_AGAIN[0];
            continue;
        }
        let is_idle = state.by_bucket.iter().all(Vec::is_empty);
        if is_idle {
            drop(WAKE.wait(state).unwrap_or_else(PoisonError::into_inner));
            pause = LOOK_AGAIN[0];
            buckets = NOTICED.swap(0, Ordering::SeqCst);
        } else {
            let (state, timeout) = WAKE.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner);
            drop(state);
            buckets = NOTICED.swap(0, Ordering::SeqCst);
            if timeout.timed_out() {
                buckets = u64::MAX;
                pause = (pause * 2).min(longest);
            } else {
                pause = LOOK_AGAIN[0];
            }
        }
    }
}

/// Forgets all watches, because the runtime ends.
pub(crate) fn forget_all() {
    let mut state = lock(&STATE);
    for (list, count) in state.by_bucket.iter_mut().zip(&COUNTS) {
        count.fetch_sub(list.len() as u32, Ordering::SeqCst);
        list.clear();
    }
}
