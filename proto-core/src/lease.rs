//! Memory that a client places itself: the account of a lease, kept by one rule on both sides.

use alloc::collections::BTreeMap;
use core::ops::Range;

use crate::hip_error::{HipError, HipResult};

/// The unit of addresses in a window: an allocation begins with a page of its own, and the page behind its last one stays unused, so
/// that an overrun hits nothing.
pub const PLACE_PAGE_BYTES: u64 = 2 << 20;

/// The alignment of rows in memory with a pitch (`MEM_ALLOC_PITCH`).
pub const PITCH_BYTES: u64 = 256;

/// What a session may still allocate by itself (`MEM_LEASE`), and what it has placed with that (`MALLOC_AT`).
///
/// Client and worker each keep one and apply the same requests to it in the same order, the client when it sends them, the worker
/// when it carries them out. So both have the same account at the same place of the stream of requests, without telling each other.
/// Only what a `MEM_LEASE` adds is known to the client later, with the reply: until then its account has less.
///
/// Memory that `FREE` or `FREE_HOST` frees can be placed anew at once: its bytes, its allocation and its addresses. Not so memory
/// that others may still use when the request is over: that which `FREE_ASYNC` frees, and that of which an IPC handle was asked for. Its
/// bytes and its allocation go back to where the lease came from, and its addresses are not used again.
///
/// ```
/// use hipr_proto::{HipError, Lease, PLACE_PAGE_BYTES};
///
/// let mut lease = Lease::default();
/// lease.grant(0..8 * PLACE_PAGE_BYTES, 1000, 2);
/// assert_eq!(lease.place(0, 600), Ok(()));
/// assert_eq!(lease.place(PLACE_PAGE_BYTES, 1), Err(HipError::INVALID_VALUE), "the page behind an allocation");
/// assert_eq!(lease.place(2 * PLACE_PAGE_BYTES, 401), Err(HipError::OUT_OF_MEMORY));
/// assert_eq!(lease.placed_bytes(), 600);
/// lease.free(0);
/// assert_eq!((lease.bytes(), lease.allocations(), lease.placed_bytes()), (1000, 2, 0));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    window: Range<u64>,
    bytes: u64,
    allocations: u64,
    placed_bytes: u64,
    /// The used addresses of the window, by their first one; they are apart.
    used: BTreeMap<u64, Used>,
}

/// A range of used addresses, and what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Used {
    /// The first address behind it, the unused page included.
    end: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Memory of this many bytes, which come back.
    Live(u64),
    /// Memory whose bytes do not come back.
    Lent,
    /// Nothing is there any more; the addresses are not used again.
    Gone,
}

impl Lease {
    /// Adds bytes and allocations, and sets the window, which never changes until the lease [ends](Self::end).
    pub fn grant(&mut self, window: Range<u64>, bytes: u64, allocations: u64) {
        self.window = window;
        self.bytes = self.bytes.saturating_add(bytes);
        self.allocations = self.allocations.saturating_add(allocations);
    }

    /// Returns the addresses at which memory may be placed.
    pub fn window(&self) -> Range<u64> {
        self.window.clone()
    }

    /// Returns the bytes that are left.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of allocations that are left.
    pub fn allocations(&self) -> u64 {
        self.allocations
    }

    /// Returns the bytes of the memory that was placed and comes back.
    pub fn placed_bytes(&self) -> u64 {
        self.placed_bytes
    }

    /// Returns whether an allocation of `size_bytes` bytes is left.
    pub fn covers(&self, size_bytes: u64) -> bool {
        size_bytes <= self.bytes && self.allocations > 0
    }

    /// Returns the first address from `from` on at which `size_bytes` bytes can be placed; `None` if there is none.
    pub fn gap(&self, from: u64, size_bytes: u64) -> Option<u64> {
        let len = span_bytes(size_bytes)?;
        let start = from.max(self.window.start).checked_next_multiple_of(PLACE_PAGE_BYTES)?;
        let before = self.used.range(..start).next_back();
        let mut start = before.map_or(start, |(_, used)| start.max(used.end));
        for (&base, used) in self.used.range(start..) {
            if base - start >= len {
                break;
            }
            start = used.end;
        }
        let end = start.checked_add(len)?;
        (end <= self.window.end).then_some(start)
    }

    /// Checks that `size_bytes` bytes can be placed at `base`.
    ///
    /// # Errors
    /// `INVALID_VALUE` for 0 bytes, for an address that is not the first of a page, and if the bytes or the page behind them are not in
    /// the window or used; `OUT_OF_MEMORY` if the lease does not cover them.
    pub fn check(&self, base: u64, size_bytes: u64) -> HipResult<()> {
        if size_bytes == 0
            || !base.is_multiple_of(PLACE_PAGE_BYTES)
            || self.gap(base, size_bytes) != Some(base)
        {
            return Err(HipError::INVALID_VALUE);
        }
        if self.covers(size_bytes) { Ok(()) } else { Err(HipError::OUT_OF_MEMORY) }
    }

    /// Takes an allocation of `size_bytes` bytes at `base` out of the lease.
    ///
    /// # Errors
    /// As [`check`](Self::check); nothing has changed then.
    pub fn place(&mut self, base: u64, size_bytes: u64) -> HipResult<()> {
        self.check(base, size_bytes)?;
        let end =
            span_bytes(size_bytes).and_then(|len| base.checked_add(len)).ok_or(HipError::INVALID_VALUE)?;
        self.bytes -= size_bytes;
        self.allocations -= 1;
        self.placed_bytes = self.placed_bytes.saturating_add(size_bytes);
        self.used.insert(base, Used { end, state: State::Live(size_bytes) });
        Ok(())
    }

    /// Returns whether memory was placed at `base` and is there.
    pub fn is_placed(&self, base: u64) -> bool {
        self.used.get(&base).is_some_and(|used| used.state != State::Gone)
    }

    /// Returns whether the bytes of the memory that was placed at `base` come back to the lease when it is freed.
    pub fn comes_back(&self, base: u64) -> bool {
        self.used.get(&base).is_some_and(|used| matches!(used.state, State::Live(_)))
    }

    /// Handles that an IPC handle of the memory at `base` was asked for. Other addresses are none of a lease's business, here and in
    /// what follows.
    pub fn lend(&mut self, base: u64) {
        if let Some(used) = self.used.get_mut(&base)
            && let State::Live(size_bytes) = used.state
        {
            used.state = State::Lent;
            self.placed_bytes = self.placed_bytes.saturating_sub(size_bytes);
        }
    }

    /// Frees memory at `base`, as `FREE` and `FREE_HOST` do.
    pub fn free(&mut self, base: u64) {
        match self.used.get(&base).map(|used| used.state) {
            Some(State::Live(size_bytes)) => {
                self.used.remove(&base);
                self.placed_bytes = self.placed_bytes.saturating_sub(size_bytes);
                self.bytes = self.bytes.saturating_add(size_bytes);
                self.allocations = self.allocations.saturating_add(1);
            }
            Some(State::Lent) => self.retire(base),
            Some(State::Gone) | None => {}
        }
    }

    /// Frees memory at `base` in the order of a stream, as `FREE_ASYNC` does.
    pub fn free_async(&mut self, base: u64) {
        if self.is_placed(base) {
            self.retire(base);
        }
    }

    /// Ends the use of the addresses from `base` on. Such ranges that touch become one, so that there are never more than free pages
    /// between others.
    fn retire(&mut self, mut base: u64) {
        let Some(Used { mut end, state }) = self.used.remove(&base) else { return };
        if let State::Live(size_bytes) = state {
            self.placed_bytes = self.placed_bytes.saturating_sub(size_bytes);
        }
        if let Some(behind) = self.used.get(&end).copied().filter(|behind| behind.state == State::Gone) {
            self.used.remove(&end);
            end = behind.end;
        }
        if let Some((&before, used)) = self.used.range(..base).next_back()
            && used.state == State::Gone
            && used.end == base
        {
            base = before;
        }
        self.used.insert(base, Used { end, state: State::Gone });
    }

    /// Gives unused bytes and allocations back, as `MEM_RETURN` does.
    ///
    /// # Errors
    /// `INVALID_VALUE` if there are fewer; nothing has changed then.
    pub fn give_back(&mut self, bytes: u64, allocations: u64) -> HipResult<()> {
        let left = self.bytes.checked_sub(bytes).zip(self.allocations.checked_sub(allocations));
        (self.bytes, self.allocations) = left.ok_or(HipError::INVALID_VALUE)?;
        Ok(())
    }

    /// Ends the lease and the use of the window, as `DEVICE_RESET` does.
    pub fn end(&mut self) {
        *self = Self::default();
    }
}

/// Returns the bytes of addresses that an allocation takes, with the unused page behind it; `None` for more than there are.
fn span_bytes(size_bytes: u64) -> Option<u64> {
    size_bytes.max(1).checked_next_multiple_of(PLACE_PAGE_BYTES)?.checked_add(PLACE_PAGE_BYTES)
}
