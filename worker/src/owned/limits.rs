//! What a session has of what it may have, in bytes and in number.

use std::task::Poll;

use hipr_device::Room;
use hipr_io::ConnId;
use hipr_proto::HipError;

use super::{Owned, UNASKED};
use crate::SessionLimits;
use crate::env::More;

/// Host memory that it takes to know of an allocation or a handle, here and on the device, in bytes: at most, as measured.
const NAME_BYTES: u64 = 512;
/// How much of it does not count for a session: that of 32,768 allocations and handles. So a program with fewer of them is refused memory
/// at the same byte whatever it has.
const NAMES_FREE_BYTES: u64 = 16 << 20;

/// Returns the bytes that it takes to know of so many allocations and handles.
fn names_bytes(handles: usize) -> u64 {
    (handles as u64).saturating_mul(NAME_BYTES)
}

impl Owned {
    /// Returns the bytes that count against the session's memory limit.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_bytes.saturating_add(self.pools.spare_bytes())
    }

    /// Returns the bytes of memory that the session has, and of those that it may place.
    fn placeable_bytes(&self) -> u64 {
        self.memory_bytes().saturating_add(self.reserved_bytes())
    }

    /// Returns the bytes that the session has, and those that it may place, with what it takes to know of them.
    pub(crate) fn claimed_bytes(&self) -> u64 {
        self.claimed_bytes_with(0)
    }

    /// Returns what [`claimed_bytes`](Self::claimed_bytes) would be with so many more handles or allocations.
    pub(crate) fn claimed_bytes_with(&self, count: usize) -> u64 {
        let handles = self.claimed_handles().saturating_add(count);
        self.placeable_bytes().saturating_add(names_bytes(handles).saturating_sub(NAMES_FREE_BYTES))
    }

    /// Returns what counts against what all sessions may have together, apart from replies: all that is claimed, what the device has set
    /// aside for the session's kernels, and what is kept for it.
    pub(crate) fn weight_bytes(&self) -> u64 {
        let working = self.working_max.unwrap_or(0);
        let named = names_bytes(self.claimed_handles()).min(NAMES_FREE_BYTES);
        self.claimed_bytes().saturating_add(working).saturating_add(named).saturating_add(self.kept_bytes())
    }

    /// Returns the bytes that are kept for the session besides its memory: unfinished commands, and what the client knows.
    fn kept_bytes(&self) -> u64 {
        let queued = self.context.as_ref().map_or(0, |context| context.queued_bytes());
        queued.saturating_add(self.watches.twin_bytes())
    }

    /// Returns how many bytes more the session needs soon, with what is set aside for its kernels and with as many as are kept for it.
    pub(crate) fn ahead_bytes(&self, limits: &SessionLimits) -> u64 {
        let left = limits.memory_max_bytes.saturating_sub(self.claimed_bytes());
        let working = left.min(limits.working_max_bytes).saturating_sub(self.working_max.unwrap_or(0));
        working.saturating_add(self.kept_bytes())
    }

    /// Returns the limits of the session where all sessions may have `room_bytes` besides what the others have. While there may be `more`
    /// of it, what is set aside for kernels is not used for anything else.
    pub(crate) fn limits_within(
        &self,
        room_bytes: u64,
        unsent_bytes: u64,
        limits: &SessionLimits,
        has_more: bool,
    ) -> SessionLimits {
        let named = names_bytes(self.claimed_handles()).min(NAMES_FREE_BYTES);
        let others = named.saturating_add(self.kept_bytes()).saturating_add(unsent_bytes);
        let room_bytes = room_bytes.saturating_sub(others);
        let with_working = room_bytes.min(limits.memory_max_bytes);
        let working = if has_more { self.working_max.unwrap_or(0) } else { 0 };
        let memory_max_bytes = room_bytes.saturating_sub(working).min(limits.memory_max_bytes);
        let aside_bytes = with_working - memory_max_bytes;
        let left =
            usize::try_from(memory_max_bytes.saturating_sub(self.claimed_bytes())).unwrap_or(usize::MAX);
        let unsent_max_bytes = left.max(limits.chunk_bytes).min(limits.unsent_max_bytes);
        SessionLimits { memory_max_bytes, aside_bytes, unsent_max_bytes, ..limits.clone() }
    }

    /// Returns the number of handles and allocations that the session has, and of those that it may place.
    pub(crate) fn claimed_handles(&self) -> usize {
        let placeable = usize::try_from(self.lease.allocations()).unwrap_or(usize::MAX);
        self.handles().saturating_add(placeable)
    }

    /// Returns how many more handles and allocations the session may have beside `size_bytes` more memory.
    pub(crate) fn handles_left(&self, size_bytes: u64, limits: &SessionLimits) -> usize {
        let taken = self.placeable_bytes().saturating_add(size_bytes);
        let bytes = limits.memory_max_bytes.saturating_sub(taken).saturating_add(NAMES_FREE_BYTES);
        let most = usize::try_from(bytes / NAME_BYTES).unwrap_or(usize::MAX);
        most.min(limits.handles_max).saturating_sub(self.claimed_handles())
    }

    /// Returns how many bytes the copies of what the client knows may have.
    pub(crate) fn twin_room(&self, limits: &SessionLimits) -> u64 {
        limits.memory_max_bytes.saturating_sub(self.memory_bytes()).min(limits.twin_max_bytes)
    }

    /// Becomes ready when the device may be given another command.
    pub(crate) fn poll_room(&mut self, limits: &SessionLimits) -> Poll<()> {
        if let Some(left) = self.unasked.checked_sub(1) {
            self.unasked = left;
            return Poll::Ready(());
        }
        let left = limits.with_aside_bytes().saturating_sub(self.claimed_bytes());
        let Some(context) = self.context.as_deref_mut() else { return Poll::Ready(()) };
        let working = left.min(limits.working_max_bytes);
        if self.working_max != Some(working) && context.limit_working(working) {
            self.working_max = Some(working);
        }
        let bytes = left.max(limits.queued_min_bytes).min(limits.queued_max_bytes);
        let polled = context.poll_room(Room { commands: limits.queued_max, bytes });
        if polled.is_ready() {
            self.unasked = UNASKED;
        }
        polled
    }

    /// Takes `size_bytes` for memory from what running kernels may have; returns false if they have them.
    pub(crate) fn take_working(&mut self, size_bytes: u64, limits: &SessionLimits) -> bool {
        let taken = self.claimed_bytes().saturating_add(size_bytes);
        let left = limits.with_aside_bytes().saturating_sub(taken).min(limits.working_max_bytes);
        let Some(context) = self.context.as_deref_mut() else { return true };
        let is_taken = self.working_max == Some(left) || context.limit_working(left);
        if is_taken {
            self.working_max = Some(left);
        }
        is_taken
    }

    /// Gives up the copies of what the client knows if they take the place of `size_bytes` that will be allocated.
    pub(crate) fn make_room(&mut self, size_bytes: u64, limits: &SessionLimits) {
        let left = limits.memory_max_bytes.saturating_sub(self.memory_bytes()).saturating_sub(size_bytes);
        self.watches.limit(left.min(limits.twin_max_bytes));
    }

    /// Notes bytes that the client has sent for an address of watched memory.
    pub(crate) fn learn(&mut self, address: u64, bytes: &[u8], limits: &SessionLimits) {
        if let Ok(base) = self.allocation_at(address).map(|allocation| allocation.base) {
            let room = self.twin_room(limits);
            self.watches.learn(base, address, bytes, room);
        }
    }

    /// Returns how many bytes the session lacks for `size_bytes` more; 0 if it lacks none, or has `more` for none. Its copies of what the
    /// client knows are to stay.
    pub(crate) fn lacking_bytes(&self, size_bytes: u64, limits: &SessionLimits, more: More<'_>) -> u64 {
        let wanted = self.claimed_bytes_with(1).saturating_add(size_bytes);
        if !more.is_there || wanted > more.memory_max_bytes {
            return 0;
        }
        wanted.saturating_add(self.watches.twin_bytes()).saturating_sub(limits.memory_max_bytes)
    }

    /// Returns the error for exceeding `limit`, and logs it once per session.
    pub(crate) fn refuse(&mut self, conn: ConnId, limit: &'static str, max: u64) -> HipError {
        if self.refused.insert(limit) {
            tracing::info!(%conn, limit, max, "out of memory: the session has reached a limit of the worker");
        }
        HipError::OUT_OF_MEMORY
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owned::{Allocation, Origin};
    use hipr_device::MemoryKind;

    fn with_allocations(count: u64, size_bytes: u64) -> Owned {
        let mut owned = Owned::default();
        for at in 0..count {
            let (kind, origin, base) = (MemoryKind::Device, Origin::Client, (at + 1) << 20);
            owned.add_allocation(Allocation { base, size_bytes, kind, flags: 0, device: 0, origin });
        }
        owned
    }

    #[test]
    fn what_names_many_allocations_counts_as_memory() {
        let limits = |memory_max_bytes| SessionLimits { memory_max_bytes, ..SessionLimits::default() };
        // Few cost nothing: the limit is met at the same byte.
        let free = NAMES_FREE_BYTES / NAME_BYTES;
        let few = with_allocations(free, 16);
        assert_eq!(few.claimed_bytes(), free * 16);
        assert_eq!(few.claimed_bytes_with(1), free * 16 + NAME_BYTES);
        assert_eq!(few.handles_left(0, &limits(free * 16)), 0);
        assert_eq!(few.handles_left(0, &limits(free * 16 + 10 * NAME_BYTES)), 10);
        assert_eq!(few.handles_left(9 * NAME_BYTES, &limits(free * 16 + 10 * NAME_BYTES)), 1);
        assert_eq!(few.handles_left(0, &limits(u64::MAX)), limits(0).handles_max - 32_768);
        let many = with_allocations(free + 1000, 16);
        assert_eq!(many.claimed_bytes(), (free + 1000) * 16 + 1000 * NAME_BYTES);
        assert_eq!(many.handles_left(0, &limits(1 << 20)), 0, "more than there may be");
        assert_eq!(many.memory_bytes(), (free + 1000) * 16, "what a program is told is free is memory only");
        // What a client may place counts as what it has placed.
        let mut placing = with_allocations(free, 16);
        placing.lease.grant(0..1 << 40, 160, 10);
        let before = placing.claimed_bytes();
        assert_eq!(before, (free + 10) * 16 + 10 * NAME_BYTES);
        let (kind, origin, base) = (MemoryKind::Device, Origin::Client, 1 << 39);
        placing.lease.place(base, 16).unwrap();
        placing.add_allocation(Allocation { base, size_bytes: 16, kind, flags: 0, device: 0, origin });
        assert_eq!(placing.claimed_bytes(), before);
    }

    #[test]
    fn a_session_has_what_the_others_leave() {
        let owned = with_allocations(100, 1 << 10);
        let limits = SessionLimits { memory_max_bytes: 1 << 30, ..SessionLimits::default() };
        let names = 100 * NAME_BYTES;
        assert_eq!(owned.weight_bytes(), (100 << 10) + names);
        let within = owned.limits_within(1 << 20, 7, &limits, false);
        assert_eq!(within.memory_max_bytes, (1 << 20) - names - 7);
        assert_eq!(within.unsent_max_bytes as u64, (1 << 20) - names - 7 - (100 << 10));
        let within = owned.limits_within(u64::MAX, 7, &limits, false);
        assert_eq!((within.memory_max_bytes, within.unsent_max_bytes), (1 << 30, limits.unsent_max_bytes));
        let within = owned.limits_within(0, 7, &limits, false);
        assert_eq!(
            (within.memory_max_bytes, within.unsent_max_bytes),
            (0, limits.chunk_bytes),
            "a piece at a time"
        );
    }
}
