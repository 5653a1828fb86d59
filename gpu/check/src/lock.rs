//! A mutex that no panic poisons: what it guards is notes about a program, of which each is whole.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) type Lock<T> = Mutex<T>;

/// Locks the mutex.
pub(crate) fn lock<T>(mutex: &Lock<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
