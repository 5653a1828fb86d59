use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)*) => {
        /// Counters of a loop, which any thread can read while it runs.
        #[derive(Debug, Default)]
        pub struct Stats { $($(#[doc = $doc])+ pub $name: AtomicU64,)* }

        /// The values of a loop's counters.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct StatsSnapshot { $($(#[doc = $doc])+ pub $name: u64,)* }

        impl StatsSnapshot {
            /// Returns all values, in an order that does not change while the program runs.
            pub fn values_mut(&mut self) -> impl Iterator<Item = &mut u64> {
                [$(&mut self.$name,)*].into_iter()
            }
        }

        impl Stats {
            /// Reads all counters, one after another.
            pub fn snapshot(&self) -> StatsSnapshot {
                StatsSnapshot { $($name: self.$name.load(Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Connections accepted.
    connections_opened,
    /// Connections closed.
    connections_closed,
    /// Connections refused because of the limit.
    connections_refused,
    /// Connections closed because the peer broke the protocol.
    protocol_errors,
    /// Connections closed because of a timeout in or before a message.
    timeouts,
    /// Connections that were cut whose sessions were kept.
    sessions_parked,
    /// Sessions that went on over another connection.
    sessions_resumed,
    /// Requests received.
    requests,
    /// Requests that were completed, or whose connection has ended before.
    requests_done,
    /// Bytes received.
    received_bytes,
    /// Bytes sent.
    sent_bytes,
}

impl Stats {
    /// Adds `n` to a counter.
    #[inline]
    pub fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Relaxed);
    }
}

impl StatsSnapshot {
    /// Returns the number of open connections.
    pub fn connections(&self) -> u64 {
        self.connections_opened.saturating_sub(self.connections_closed)
    }
}
