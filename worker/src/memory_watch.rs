//! Who has been told how much memory is free, and whether that has changed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use hipr_device::{Device, Waker};
use hipr_io::ConnId;

/// The sessions that are told when free memory changes. Each is told once and is then none of them, so that a change costs nothing for
/// sessions that have not asked since.
#[derive(Debug, Default)]
pub(crate) struct MemoryWatch {
    told: BTreeSet<ConnId>,
    /// The device's number of changes up to which all have been told.
    seen: u64,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the device has a waker that it has not called.
    is_set: AtomicBool,
    /// Whether nobody has a turn: otherwise the end of the turn finds out what has changed.
    is_idle: AtomicBool,
}

impl MemoryWatch {
    /// Returns whether nobody is to be told of anything.
    pub(crate) fn is_idle(&self) -> bool {
        self.told.is_empty()
    }

    /// Adds a session to those that are told, or removes it.
    pub(crate) fn set_told(&mut self, conn: ConnId, is_told: bool) {
        if is_told {
            self.told.insert(conn);
        } else {
            self.told.remove(&conn);
        }
    }

    /// Returns whether free memory has changed since this was last asked.
    pub(crate) fn has_changed(&mut self, device: &dyn Device) -> bool {
        let now = device.memory_changes();
        std::mem::replace(&mut self.seen, now) != now
    }

    /// Removes all sessions but one; returns them.
    pub(crate) fn take_told(&mut self, but: Option<ConnId>) -> BTreeSet<ConnId> {
        let mut told = std::mem::take(&mut self.told);
        self.told.extend(but.filter(|conn| told.remove(conn)));
        told
    }

    /// Handles that a session has its turn.
    pub(crate) fn begin_turn(&self) {
        self.state.is_idle.store(false, SeqCst);
    }

    /// Handles that nobody has a turn: calls `wake`, with any session, when free memory changes.
    pub(crate) fn watch(&self, device: &dyn Device, wake: &Arc<dyn Fn(ConnId) + Send + Sync>) {
        let Some(&conn) = self.told.first() else { return };
        self.state.is_idle.store(true, SeqCst);
        if self.state.is_set.swap(true, SeqCst) {
            return;
        }
        let (state, wake) = (Arc::clone(&self.state), Arc::clone(wake));
        let waker = Waker::new(move || {
            state.is_set.store(false, SeqCst);
            if state.is_idle.load(SeqCst) {
                wake(conn);
            }
        });
        device.watch_memory(self.seen, waker);
    }
}
