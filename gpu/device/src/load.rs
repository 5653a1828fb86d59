//! What a context's device has to do, read by others while it does it.

use std::sync::atomic::AtomicU64;

/// The work of a context that is not finished.
#[derive(Debug, Default)]
pub struct Load {
    /// Commands that were enqueued and are not finished.
    pub commands: AtomicU64,
    /// Streams that have such commands.
    pub streams: AtomicU64,
}
