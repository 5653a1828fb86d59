//! Which call of the program a request belongs to.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Number of requests that are remembered. The caller of an older one is not known any more.
const KEPT: usize = 16 << 10;

#[derive(Debug, Default)]
struct Slot {
    /// Number of the request; 0 while the slot is empty or being written.
    request: AtomicU32,
    caller: AtomicU64,
}

/// The callers of the last requests.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    kept: OnceLock<Kept>,
}

#[derive(Debug)]
struct Kept {
    slots: Box<[Slot]>,
    caller: fn() -> u64,
}

impl Callers {
    /// Begins to note callers: `caller` returns a number for the calling thread's call. Has no effect the second time.
    pub(crate) fn start(&self, caller: fn() -> u64) {
        self.kept.get_or_init(|| Kept { slots: (0..KEPT).map(|_| Slot::default()).collect(), caller });
    }

    /// Notes who makes the request with this number. Only by one thread at a time.
    #[inline]
    pub(crate) fn note(&self, request: u32) {
        let Some(kept) = self.kept.get() else { return };
        let Some(slot) = kept.slots.get(request as usize % KEPT) else { return };
        slot.request.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        slot.caller.store((kept.caller)(), Ordering::Relaxed);
        slot.request.store(request, Ordering::Release);
    }

    /// Returns who has made the request with this number, unless that was too long ago.
    pub(crate) fn find(&self, request: u32) -> Option<u64> {
        let slot = self.kept.get()?.slots.get(request as usize % KEPT)?;
        let is_it = slot.request.load(Ordering::Acquire) == request && request != 0;
        let caller = slot.caller.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        (is_it && slot.request.load(Ordering::Relaxed) == request).then_some(caller)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static CALL: Cell<u64> = const { Cell::new(0) };
    }

    #[test]
    fn the_callers_of_the_last_requests_are_known() {
        let callers = Callers::default();
        callers.note(1);
        assert_eq!(callers.find(1), None, "nobody notes them");
        callers.start(|| CALL.with(Cell::get));
        let last = KEPT as u32 + 3;
        for request in 1..=last {
            CALL.with(|call| call.set(u64::from(request) * 10));
            callers.note(request);
        }
        for (request, known) in
            [(last, true), (4, true), (3, false), (1, false), (0, false), (last + 1, false)]
        {
            let caller = known.then_some(u64::from(request) * 10);
            assert_eq!(callers.find(request), caller, "request {request}");
        }
    }
}
