//! Counters of a connection.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        #[derive(Debug, Default)]
        pub(crate) struct Counters { $(pub(crate) $name: AtomicU64,)* }

        /// Counters since the connection was opened, including its handshake.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Stats { $($(#[$doc])* pub $name: u64,)* }

        impl Counters {
            pub(crate) fn snapshot(&self) -> Stats {
                Stats { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl Stats {
            /// Returns the sums of two connections' counters.
            #[must_use]
            pub fn plus(self, other: Self) -> Self {
                Self { $($name: self.$name + other.$name,)* }
            }

            /// Returns names and values in a fixed order.
            pub fn entries(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Number of requests sent.
    frames_sent,
    /// Number of replies received.
    frames_received,
    /// Number of bytes sent, headers included.
    bytes_sent,
    /// Number of bytes received, headers included.
    bytes_received,
    /// Number of writes to the socket, each of which may carry many requests.
    writes,
    /// Number of times that a thread sent requests and waited for a reply.
    round_trips,
    /// Number of bytes of copies to the device that were not sent because the worker's cache had them.
    cache_bytes_saved,
    /// Number of bytes of copies and code objects that were not sent or received because they were packed.
    packed_bytes_saved,
}

impl Counters {
    #[inline]
    pub(crate) fn add(&self, counter: impl Fn(&Self) -> &AtomicU64, n: u64) {
        counter(self).fetch_add(n, Ordering::Relaxed);
    }

    /// Adds to a counter that only the holder of one lock changes, as [`add`](Self::add) does but without an atomic update.
    #[inline]
    pub(crate) fn add_locked(&self, counter: impl Fn(&Self) -> &AtomicU64, n: u64) {
        let counter = counter(self);
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }
}
