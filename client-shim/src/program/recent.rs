//! A cache of the kernels and streams that the calling thread used last, so that a launch takes no lock.
//!
//! Each thread remembers a few answers of the session's tables. When something leaves a table, [`forget`] makes all of them
//! void; what only comes in cannot make an answer wrong.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hipr_proto::HipResult;

use crate::command::Function;

/// Epoch of the caches: changes with each removal of a kernel or stream.
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// Number of kernels, and of streams, that a thread remembers; a power of two.
const PLACES: usize = 16;

/// Key of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// A `hipFunction_t`.
    Handle(usize),
    /// The host address that `<<<>>>` launches, on a device.
    Host(usize, i32),
}

#[derive(Default)]
struct Recent {
    epoch: u64,
    kernels: [Option<(Kernel, Arc<Function>)>; PLACES],
}

thread_local! {
    static KERNELS: RefCell<Recent> = RefCell::default();
    /// Handles of streams that exist, with the epoch in which each was seen.
    static STREAMS: [Cell<(usize, u64)>; PLACES] = const { [const { Cell::new((0, 0)) }; PLACES] };
}

/// Invalidates the caches of all threads, because a kernel or stream was removed.
pub(crate) fn forget() {
    EPOCH.fetch_add(1, Ordering::Release);
}

/// Returns the index in the cache for a key: handles are addresses, whose low bits are equal, or consecutive numbers.
fn place(key: usize) -> usize {
    (key ^ (key >> 4) ^ (key >> 9)) % PLACES
}

/// Returns the kernel from the cache, or from `find` and remembers it.
///
/// # Errors
/// Those of `find`.
pub(crate) fn kernel(
    kernel: Kernel,
    find: impl FnOnce() -> HipResult<Arc<Function>>,
) -> HipResult<Arc<Function>> {
    let epoch = EPOCH.load(Ordering::Acquire);
    let (Kernel::Handle(key) | Kernel::Host(key, _)) = kernel;
    let known = KERNELS.try_with(|recent| {
        let mut recent = recent.borrow_mut();
        if recent.epoch != epoch {
            *recent = Recent { epoch, ..Recent::default() };
        }
        let known = recent.kernels.get(place(key))?.as_ref();
        known.filter(|(name, _)| *name == kernel).map(|(_, function)| function.clone())
    });
    if let Ok(Some(function)) = known {
        return Ok(function);
    }
    let function = find()?;
    // At the end of a thread there is nothing to remember for.
    let _ = KERNELS.try_with(|recent| {
        let mut recent = recent.borrow_mut();
        if recent.epoch == epoch
            && let Some(entry) = recent.kernels.get_mut(place(key))
        {
            *entry = Some((kernel, function.clone()));
        }
    });
    Ok(function)
}

/// Returns whether the stream exists, from the cache or from `find`.
pub(crate) fn stream(stream: usize, find: impl FnOnce() -> bool) -> bool {
    // 0 is in no place.
    let epoch = EPOCH.load(Ordering::Acquire) + 1;
    STREAMS.with(|known| {
        let Some(entry) = known.get(place(stream)) else { return find() };
        if entry.get() == (stream, epoch) {
            return true;
        }
        let exists = find();
        if exists {
            entry.set((stream, epoch));
        }
        exists
    })
}

#[cfg(test)]
mod tests {
    use hipr_proto::HipError;

    use super::*;
    use crate::convert::Module;

    fn function(handle: u64) -> HipResult<Arc<Function>> {
        let (name, module) = (format!("k{handle}"), Module(1));
        Ok(Arc::new(Function::new(handle, name, module, None, None)))
    }

    /// A cached entry is used without a search, until something is removed.
    #[test]
    fn what_is_known_is_not_looked_for_until_something_goes() {
        let handle =
            |key, found: u64| kernel(Kernel::Handle(key), || function(found)).map(|found| found.handle);
        assert_eq!(handle(32, 1), Ok(1));
        assert_eq!(kernel(Kernel::Host(32, 0), || function(2)).map(|found| found.handle), Ok(2));
        assert_eq!(kernel(Kernel::Host(32, 1), || function(3)).map(|found| found.handle), Ok(3));
        let refused = kernel(Kernel::Handle(7), || Err(HipError::INVALID_HANDLE));
        assert_eq!(refused.map(drop), Err(HipError::INVALID_HANDLE));
        assert_eq!(handle(7, 7), Ok(7), "a refusal is not remembered");
        assert!(stream(48, || true));
        forget();
        assert_eq!(handle(7, 8), Ok(8));
        assert!(!stream(48, || false), "it is gone");
        assert!(!stream(48, || false));
        assert!(stream(48, || true));
    }
}
