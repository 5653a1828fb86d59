//! Wakes the dispatch when a wait may be over.

use std::fmt;
use std::sync::Arc;

/// Tells the dispatch that a pending wait of one context may be over. It can be called on any thread and any number of
/// times; a superfluous call costs one poll.
#[derive(Clone)]
pub struct Waker(Arc<dyn Fn() + Send + Sync>);

impl Waker {
    /// Creates a waker that calls `wake`.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(wake))
    }

    /// Creates a waker that does nothing.
    pub fn noop() -> Self {
        Self::new(|| {})
    }

    /// Wakes the dispatch.
    pub fn wake(&self) {
        (self.0)();
    }

    /// Returns the function, for a device that has its own waker type.
    pub fn into_inner(self) -> Arc<dyn Fn() + Send + Sync> {
        self.0
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waker")
    }
}
