//! Implicit order between streams: **the** rule of the legacy null stream.
//!
//! The legacy stream and a blocking stream wait for each other: work on either comes behind what the other had. Streams that were made
//! with `hipStreamNonBlocking` wait for no other stream, nor does the legacy stream wait for them. Everything else in this crate that has
//! to know asks here.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

/// The legacy null stream's handle on the wire.
pub const LEGACY: u64 = 0;
/// The handle of `hipStreamPerThread` on the wire; it is a blocking stream.
pub const PER_THREAD: u64 = hipr_abi::hipStreamPerThread as u64;

/// The streams that do not wait for the legacy stream.
#[derive(Debug, Default)]
pub struct Order {
    non_blocking: RwLock<BTreeSet<u64>>,
    /// Number of such streams, so that nothing is locked while there are none.
    count: AtomicUsize,
}

impl Order {
    /// Adds a stream.
    pub fn add(&self, stream: u64, is_blocking: bool) {
        if !is_blocking {
            self.change(|non_blocking| non_blocking.insert(stream));
        }
    }

    /// Removes a stream.
    pub fn remove(&self, stream: u64) {
        self.change(|non_blocking| non_blocking.remove(&stream));
    }

    /// Removes the streams for which `keep` returns false.
    pub fn retain(&self, keep: impl Fn(u64) -> bool) {
        self.change(|non_blocking| non_blocking.retain(|stream| keep(*stream)));
    }

    fn change<T>(&self, change: impl FnOnce(&mut BTreeSet<u64>) -> T) {
        let mut non_blocking = self.non_blocking.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut non_blocking);
        self.count.store(non_blocking.len(), Ordering::Release);
    }

    /// Returns whether a stream is blocking: it and the legacy stream wait for each other. Streams that are not known do.
    pub fn is_blocking(&self, stream: u64) -> bool {
        self.count.load(Ordering::Acquire) == 0
            || !self.non_blocking.read().unwrap_or_else(PoisonError::into_inner).contains(&stream)
    }

    /// Returns whether new work on `stream` has to follow the work of `other`.
    pub fn is_behind(&self, stream: u64, other: u64) -> bool {
        stream == other
            || (stream == LEGACY && self.is_blocking(other))
            || (other == LEGACY && self.is_blocking(stream))
    }

    /// Returns whether a wait for `stream` also waits for the present work of `other`. What the legacy stream has may have come
    /// behind the last work of a blocking one.
    pub fn includes(&self, stream: u64, other: u64) -> bool {
        stream == other || (stream == LEGACY && self.is_blocking(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legacy_stream_and_blocking_streams_wait_for_each_other() {
        let order = Order::default();
        order.add(5, true);
        order.add(7, false);
        let streams = [LEGACY, PER_THREAD, 5, 7];
        let behind = |stream: u64| streams.map(|other| order.is_behind(stream, other));
        assert_eq!(behind(LEGACY), [true, true, true, false]);
        assert_eq!(behind(PER_THREAD), [true, true, false, false]);
        assert_eq!(behind(5), [true, false, true, false]);
        assert_eq!(behind(7), [false, false, false, true]);
        let includes = |stream: u64| streams.map(|other| order.includes(stream, other));
        assert_eq!(includes(LEGACY), [true, true, true, false]);
        assert_eq!(includes(5), [false, false, true, false]);
        order.remove(7);
        assert!(order.is_behind(7, LEGACY), "nothing is known of a handle that is given anew");
    }
}
