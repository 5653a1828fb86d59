//! The host memory of the workgroups that are being executed. A group begins only with its share reserved.
//!
//! Scratch is memory of a real GPU, too. Registers and LDS are not, so they count only where a session's memory has a limit that
//! is less than the device's.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::executor::{Job, RunQueue, lock};

/// The memory of a device, of which the scratch of workgroups is a part.
pub trait DeviceMemory: Send + Sync {
    /// Returns the size of the memory in bytes.
    fn total_bytes(&self) -> u64;

    /// Returns the bytes that nobody uses or has reserved.
    fn available_bytes(&self) -> u64;
}

/// The host memory that workgroups need while they are executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Bytes of registers and LDS.
    pub chip_bytes: u64,
    /// Bytes of scratch.
    pub scratch_bytes: u64,
}

impl Needs {
    /// Returns what so many groups need.
    pub(crate) fn times(self, groups: u64) -> Self {
        Self {
            chip_bytes: self.chip_bytes.saturating_mul(groups),
            scratch_bytes: self.scratch_bytes.saturating_mul(groups),
        }
    }
}

/// Bytes that the groups of a context may have even if its session's memory is used up: what is on the chip of a real GPU.
const MIN_BYTES: u64 = 32 << 20;

/// What the workgroups of a context have, and which grids wait for some of it.
pub struct Residents {
    run_queue: Arc<RunQueue>,
    device: Arc<dyn DeviceMemory>,
    state: Mutex<State>,
}

struct State {
    used: Needs,
    /// Bytes that kernels have for longer than a group is executed, as their heap.
    kept_bytes: u64,
    /// The most that the session allows; `None` if it allows as much as the device has.
    max_bytes: Option<u64>,
    /// Entries of jobs whose first group waits, and what it needs.
    waiting: Vec<(Arc<dyn Job>, Needs)>,
}

/// Bytes that were reserved for one group, or for all of a grid that has to be executed as a whole; given back when dropped.
pub(crate) struct Share {
    of: Arc<Residents>,
    needs: Needs,
}

impl std::fmt::Debug for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Share").field("needs", &self.needs).finish()
    }
}

/// The answer to a job that asks for the share of its first group.
pub(crate) enum First {
    Has(Share),
    /// The entry of the job is queued again when there may be enough.
    Waits,
    /// There is not enough although nobody else has any.
    Never,
}

impl Residents {
    /// Creates those of a context that has none. Grids that have waited are queued again in `run_queue`.
    pub fn new(run_queue: &Arc<RunQueue>, device: Arc<dyn DeviceMemory>) -> Arc<Self> {
        let state = State { used: Needs::default(), kept_bytes: 0, max_bytes: None, waiting: Vec::new() };
        Arc::new(Self { run_queue: Arc::clone(run_queue), device, state: Mutex::new(state) })
    }

    /// Sets the most that groups may have in bytes; returns false if they have more, and then nothing changes.
    pub fn limit(&self, max_bytes: u64) -> bool {
        let max_bytes = (max_bytes < self.device.total_bytes()).then_some(max_bytes.max(MIN_BYTES));
        let mut state = lock(&self.state);
        let Needs { chip_bytes, scratch_bytes } = state.used;
        let bytes = chip_bytes.saturating_add(scratch_bytes).saturating_add(state.kept_bytes);
        if max_bytes.is_some_and(|max| bytes > max) {
            return false;
        }
        state.max_bytes = max_bytes;
        self.queue(state);
        true
    }

    /// Reserves the share of one more group of a grid that has some; at most half of what is free, so that others can begin.
    pub(crate) fn reserve_more(self: &Arc<Self>, needs: Needs) -> Option<Share> {
        let mut state = lock(&self.state);
        self.has_room(&state, needs.times(2)).then(|| self.take(&mut state, needs))
    }

    /// Reserves the share of the first group of a grid; `entry` waits if others have too much.
    pub(crate) fn reserve_first(self: &Arc<Self>, needs: Needs, entry: Option<Arc<dyn Job>>) -> First {
        let mut state = lock(&self.state);
        if self.has_room(&state, needs) {
            return First::Has(self.take(&mut state, needs));
        }
        match entry {
            Some(entry) if state.used != Needs::default() => {
                state.waiting.push((entry, needs));
                First::Waits
            }
            _ => First::Never,
        }
    }

    /// Takes bytes of the device's memory that kernels have until they are [given back](Self::give_back); returns false if the session has not
    /// so many for its kernels.
    pub fn keep(&self, bytes: u64) -> bool {
        let mut state = lock(&self.state);
        let has_room = self.has_room(&state, Needs { chip_bytes: bytes, scratch_bytes: 0 });
        if has_room {
            state.kept_bytes = state.kept_bytes.saturating_add(bytes);
        }
        has_room
    }

    /// Gives bytes back that were kept.
    pub fn give_back(&self, bytes: u64) {
        let mut state = lock(&self.state);
        state.kept_bytes = state.kept_bytes.saturating_sub(bytes);
        self.queue(state);
    }

    /// Queues all grids that wait, because the context ends.
    pub fn close(&self) {
        let waiting = std::mem::take(&mut lock(&self.state).waiting);
        waiting.into_iter().for_each(|(job, _)| self.run_queue.push(&job, 1));
    }

    fn take(self: &Arc<Self>, state: &mut State, needs: Needs) -> Share {
        state.used.chip_bytes += needs.chip_bytes;
        state.used.scratch_bytes += needs.scratch_bytes;
        Share { of: Arc::clone(self), needs }
    }

    /// Returns whether there is room for `needs` beside what is used.
    fn has_room(&self, state: &State, needs: Needs) -> bool {
        let (max_bytes, bytes) = match state.max_bytes {
            Some(max_bytes) => {
                let chip_bytes = needs.chip_bytes.saturating_add(state.used.chip_bytes);
                let scratch_bytes = state.used.scratch_bytes.saturating_add(state.kept_bytes);
                (max_bytes, chip_bytes.saturating_add(scratch_bytes))
            }
            None if needs.scratch_bytes == 0 => return true,
            None => (self.device.available_bytes().max(MIN_BYTES), state.used.scratch_bytes),
        };
        bytes.saturating_add(needs.scratch_bytes) <= max_bytes
    }

    /// Queues those who wait for what there is now, or for something that there never will be.
    fn queue(&self, mut state: MutexGuard<'_, State>) {
        if state.waiting.is_empty() {
            return;
        }
        let (waiting, is_idle) = (std::mem::take(&mut state.waiting), state.used == Needs::default());
        let (woken, waiting): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|(_, needs)| is_idle || self.has_room(&state, *needs));
        state.waiting = waiting;
        drop(state);
        woken.into_iter().for_each(|(job, _)| self.run_queue.push(&job, 1));
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = lock(&self.of.state);
        state.used.chip_bytes = state.used.chip_bytes.saturating_sub(self.needs.chip_bytes);
        state.used.scratch_bytes = state.used.scratch_bytes.saturating_sub(self.needs.scratch_bytes);
        self.of.queue(state);
    }
}
