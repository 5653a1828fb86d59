//! What changes signals, and what a change does: a doorbell's queue looks at its packets, and who waits for the signal wakes.

use std::sync::atomic::Ordering;

use crate::runtime::runtime;
use crate::signal::{self, AmdSignal, bucket_of};
use crate::status::{HsaResult, Status};
use crate::types::{ProfilingTime, Signal, SignalValue};
use crate::{doorbell, wait, watch};

/// Wakes who waits for a signal, after its value was changed.
fn wake(signal: Signal) {
    wake_buckets(1 << bucket_of(signal));
}

fn wake_buckets(buckets: u64) {
    wait::wake(buckets);
    watch::notice(buckets);
}

/// Has everybody look who waits for a signal, and all queues: a kernel has sent a message, because it changed a signal or rang a doorbell.
pub(crate) fn any_changed() {
    wake_buckets(u64::MAX);
    doorbell::ring_all();
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
    let queue = found.queue();
    if queue != 0 {
        doorbell::ring(queue);
    }
    wake(signal);
    result
}

/// `hsa_signal_destroy`.
pub(crate) fn destroy(signal: Signal) -> HsaResult {
    runtime()?;
    if signal.0 == 0 {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let found = AmdSignal::of(signal).ok_or(Status::ERROR_INVALID_SIGNAL)?;
    if found.queue() != 0 {
        return Err(Status::ERROR_INVALID_SIGNAL);
    }
    retire(signal);
    Ok(())
}

/// Makes a signal's structure free for another.
pub(crate) fn retire(signal: Signal) {
    if let Some(found) = AmdSignal::of(signal)
        && found.free()
    {
        // Whoever still waits for it finds that it is gone.
        wake(signal);
        signal::recycle(signal);
    }
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
