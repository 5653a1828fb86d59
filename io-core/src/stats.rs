use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)*) => {
        /// Counters of a loop, read from any thread while it runs.
        #[derive(Debug, Default)]
        pub struct Stats { $($(#[doc = $doc])+ pub $name: AtomicU64,)* }

        /// The counters at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct StatsSnapshot { $($(#[doc = $doc])+ pub $name: u64,)* }

        impl Stats {
            /// Reads all counters. They are not read at the same instant.
            pub fn snapshot(&self) -> StatsSnapshot {
                StatsSnapshot { $($name: self.$name.load(Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Connections accepted.
    connections_opened,
    /// Connections gone.
    connections_closed,
    /// Connections refused because there were too many.
    connections_refused,
    /// Connections closed because the peer broke the protocol.
    protocol_errors,
    /// Connections closed because the peer said too little for too long.
    timeouts,
    /// Requests received.
    requests,
    /// Bytes received.
    received_bytes,
    /// Bytes sent.
    sent_bytes,
}

impl Stats {
    /// Adds to a counter.
    #[inline]
    pub fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Relaxed);
    }
}

impl StatsSnapshot {
    /// Connections open now.
    pub fn connections(&self) -> u64 {
        self.connections_opened.saturating_sub(self.connections_closed)
    }
}
