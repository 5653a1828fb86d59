//! What a connection has done.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        #[derive(Debug, Default)]
        pub(super) struct Counters { $(pub(super) $name: AtomicU64,)* }

        /// Counts since the connection was made, its own set-up included.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Stats { $($(#[$doc])* pub $name: u64,)* }

        impl Counters {
            pub(super) fn snapshot(&self) -> Stats {
                Stats { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl Stats {
            /// Names and numbers, in a fixed order.
            pub fn entries(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Requests sent.
    frames_sent,
    /// Replies received.
    frames_received,
    /// Bytes sent, headers included.
    bytes_sent,
    /// Bytes received, headers included.
    bytes_received,
    /// Writes to the socket: how often gathered requests left.
    writes,
    /// Times a thread sent something and waited for what comes back.
    round_trips,
}

impl Counters {
    pub(super) fn add(&self, counter: impl Fn(&Self) -> &AtomicU64, n: u64) {
        counter(self).fetch_add(n, Ordering::Relaxed);
    }

    /// [`add`](Self::add) for a counter that only the holder of one lock changes.
    pub(super) fn add_locked(&self, counter: impl Fn(&Self) -> &AtomicU64, n: u64) {
        let counter = counter(self);
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }
}
