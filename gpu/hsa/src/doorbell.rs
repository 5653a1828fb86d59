//! Doorbells: what has a queue look at its packets.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// What a doorbell belongs to.
pub(crate) trait Doorbell: Send + Sync {
    /// Returns whether there is something that was not begun.
    fn has_work(&self) -> bool;

    /// Begins what there is, on another thread.
    fn ring(&self);
}

/// What is rung by the addresses of the queues' structures.
static DOORBELLS: RwLock<BTreeMap<u64, Arc<dyn Doorbell>>> = RwLock::new(BTreeMap::new());

/// Makes a queue's doorbell ring.
pub(crate) fn connect(addr: u64, doorbell: Arc<dyn Doorbell>) {
    DOORBELLS.write().unwrap_or_else(PoisonError::into_inner).insert(addr, doorbell);
}

/// Makes a queue's doorbell silent.
pub(crate) fn disconnect(addr: u64) {
    DOORBELLS.write().unwrap_or_else(PoisonError::into_inner).remove(&addr);
}

/// Makes all doorbells silent, because the runtime ends.
pub(crate) fn disconnect_all() {
    // What is rung is dropped without the lock, because it may ring others.
    let all = std::mem::take(&mut *DOORBELLS.write().unwrap_or_else(PoisonError::into_inner));
    drop(all);
}

/// Rings the doorbell of the queue at this address, if there is one.
pub(crate) fn ring(addr: u64) {
    let found = DOORBELLS.read().unwrap_or_else(PoisonError::into_inner).get(&addr).map(Arc::clone);
    if let Some(found) = found {
        found.ring();
    }
}

/// Rings all doorbells behind which there is work.
pub(crate) fn ring_all() {
    let all: Vec<_> =
        DOORBELLS.read().unwrap_or_else(PoisonError::into_inner).values().map(Arc::clone).collect();
    all.iter().filter(|doorbell| doorbell.has_work()).for_each(|doorbell| doorbell.ring());
}
