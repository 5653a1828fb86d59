//! What executors ask before they work where several processes execute on the same processors.

/// Whoever lets the threads of this process work, so that all processes together use as many threads as there are processors. It is
/// asked by executor threads, each for itself, once for each turn.
pub trait Gate: Send + Sync {
    /// Waits until this thread may work, which it then may until it leaves. A thread that may work already gives way to other processes if
    /// it has had its time.
    fn enter(&self);

    /// Notes that this thread has nothing to do, and needs to be let in again.
    fn leave(&self);

    /// Returns whether this thread has had its time and other processes wait, so that its turn has to end soon.
    fn others_wait(&self) -> bool;
}
