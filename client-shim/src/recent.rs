//! What the calling thread has used lately, so that a launch takes no lock and no map to find its kernel and its stream.
//!
//! Each thread remembers a few answers of the session's tables. When something leaves a table, [`forget`] makes all of them
//! void; what only comes in cannot make an answer wrong.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hipr_proto::HipResult;

use crate::module::LoadedFunction;

/// Changes with each removal from a table.
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// Kernels and streams that a thread remembers, each. A power of two.
const PLACES: usize = 16;

/// What names a kernel for the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// A `hipFunction_t`.
    Handle(usize),
    /// The address that `<<<>>>` launches, on a device.
    Host(usize, i32),
}

#[derive(Default)]
struct Recent {
    epoch: u64,
    kernels: [Option<(Kernel, Arc<LoadedFunction>)>; PLACES],
}

thread_local! {
    static KERNELS: RefCell<Recent> = RefCell::default();
    /// Handles of streams that exist, and the epoch that they were seen in.
    static STREAMS: Cell<[(usize, u64); PLACES]> = const { Cell::new([(0, 0); PLACES]) };
}

/// Something has left the session's tables of kernels or streams.
pub(crate) fn forget() {
    EPOCH.fetch_add(1, Ordering::Release);
}

/// Handles are addresses or count up: the low bits of the former are the same.
fn place(key: usize) -> usize {
    (key ^ (key >> 4) ^ (key >> 9)) % PLACES
}

/// The kernel, as `find` says unless that is known.
///
/// # Errors
/// Those of `find`.
pub(crate) fn kernel(
    kernel: Kernel,
    find: impl FnOnce() -> HipResult<Arc<LoadedFunction>>,
) -> HipResult<Arc<LoadedFunction>> {
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

/// Whether the stream exists, as `find` says unless that is known.
pub(crate) fn stream(stream: usize, find: impl FnOnce() -> bool) -> bool {
    // 0 is in no place.
    let epoch = EPOCH.load(Ordering::Acquire) + 1;
    let at = place(stream);
    let mut known = STREAMS.get();
    let Some(entry) = known.get_mut(at) else { return find() };
    if *entry == (stream, epoch) {
        return true;
    }
    let exists = find();
    if exists {
        *entry = (stream, epoch);
        STREAMS.set(known);
    }
    exists
}

#[cfg(test)]
mod tests {
    use hipr_proto::HipError;

    use super::*;
    use crate::convert::Module;

    fn function(handle: u64) -> HipResult<Arc<LoadedFunction>> {
        let (name, module) = (format!("k{handle}"), Module(1));
        Ok(Arc::new(LoadedFunction { handle, name, params: Vec::new(), max_threads: None, module }))
    }

    /// One test: others would change the epoch meanwhile, which only costs a look.
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
