//! Chunks in memory, within one budget of bytes: the chunk that was not used for longest makes room for others.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Counters;

/// The tenant and the name of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ChunkId {
    pub(super) tenant: [u8; 16],
    pub(super) name: [u8; 32],
}

/// Bytes that a chunk counts for in addition to its own: its entry in the tables.
const ENTRY_BYTES: u64 = 512;

/// Chunks in memory.
pub(super) struct Store {
    max_bytes: u64,
    state: Mutex<State>,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct State {
    /// Bytes of all chunks and of all room.
    used_bytes: u64,
    chunks: BTreeMap<ChunkId, Entry>,
    /// The chunks that nobody was promised, by their last use.
    idle: BTreeMap<u64, ChunkId>,
    /// Number of uses so far.
    uses: u64,
}

struct Entry {
    bytes: Arc<Vec<u8>>,
    counted_bytes: u64,
    last_use: u64,
    promises: u32,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("max_bytes", &self.max_bytes).finish_non_exhaustive()
    }
}

impl Store {
    pub(super) fn new(max_bytes: u64, counters: Arc<Counters>) -> Self {
        Self { max_bytes, state: Mutex::default(), counters }
    }

    /// Returns the budget in bytes.
    pub(super) fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// What a panic leaves behind is as good as any state: it is changed in single steps.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns room for a chunk, which begins with none.
    pub(super) fn room(self: &Arc<Self>) -> Room {
        Room { store: self.clone(), bytes: 0 }
    }

    /// Puts a chunk in; `None` if there is no room for its entry. `room` has its bytes.
    pub(super) fn insert(self: &Arc<Self>, id: ChunkId, bytes: Vec<u8>, mut room: Room) -> Option<Promise> {
        if let Some(there) = self.promise(id, u64::MAX) {
            return Some(there);
        }
        if !room.grow(ENTRY_BYTES) {
            return None;
        }
        let bytes = Arc::new(bytes);
        let entry = Entry { bytes: bytes.clone(), counted_bytes: room.bytes, last_use: 0, promises: 1 };
        // From here on the entry counts for these bytes.
        room.bytes = 0;
        let mut state = self.state();
        if let Some(replaced) = state.chunks.insert(id, entry) {
            // Another thread was faster: its promises are for the same bytes.
            state.used_bytes -= replaced.counted_bytes;
            state.idle.remove(&replaced.last_use);
            if let Some(entry) = state.chunks.get_mut(&id) {
                entry.promises += replaced.promises;
            }
            self.counted(&state);
        }
        drop(state);
        Some(Promise { store: self.clone(), id, bytes })
    }

    /// Returns a chunk of at most `max_bytes`, which stays as long as the promise; `None` if it is not there or longer.
    pub(super) fn promise(self: &Arc<Self>, id: ChunkId, max_bytes: u64) -> Option<Promise> {
        let mut state = self.state();
        let entry = state.chunks.get_mut(&id).filter(|entry| entry.bytes.len() as u64 <= max_bytes)?;
        entry.promises += 1;
        let (bytes, last_use) = (entry.bytes.clone(), entry.last_use);
        state.idle.remove(&last_use);
        drop(state);
        Some(Promise { store: self.clone(), id, bytes })
    }

    fn release(&self, id: ChunkId) {
        let mut guard = self.state();
        let state = &mut *guard;
        let Some(entry) = state.chunks.get_mut(&id) else { return };
        entry.promises -= 1;
        if entry.promises == 0 {
            state.uses += 1;
            entry.last_use = state.uses;
            state.idle.insert(state.uses, id);
        }
    }

    fn counted(&self, state: &State) {
        self.counters.memory_bytes.store(state.used_bytes, Relaxed);
    }
}

/// Room in the budget for a chunk that is arriving; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Room {
    store: Arc<Store>,
    bytes: u64,
}

impl Room {
    /// Adds bytes, in place of chunks if need be; returns false if there is no room for them.
    pub(super) fn grow(&mut self, bytes: u64) -> bool {
        let store = &self.store;
        let mut guard = store.state();
        let state = &mut *guard;
        // Nothing is forgotten for a chunk that has no room even so.
        let idle = state.idle.values().filter_map(|id| state.chunks.get(id));
        let mut fits = state.used_bytes.saturating_add(bytes) <= store.max_bytes;
        if !fits {
            let (mut left, mut victims) = (state.used_bytes, 0);
            for entry in idle {
                left -= entry.counted_bytes;
                victims += 1;
                fits = left.saturating_add(bytes) <= store.max_bytes;
                if fits {
                    break;
                }
            }
            if fits {
                for _ in 0..victims {
                    let Some((_, id)) = state.idle.pop_first() else { break };
                    if let Some(entry) = state.chunks.remove(&id) {
                        state.used_bytes -= entry.counted_bytes;
                    }
                }
                store.counters.add(|c| &c.evicted, victims);
            }
        }
        if fits {
            state.used_bytes += bytes;
            self.bytes += bytes;
            store.counted(state);
        }
        fits
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut state = self.store.state();
        state.used_bytes -= self.bytes;
        self.store.counted(&state);
    }
}

/// A chunk that stays in memory until this is dropped.
pub(crate) struct Promise {
    store: Arc<Store>,
    id: ChunkId,
    bytes: Arc<Vec<u8>>,
}

impl fmt::Debug for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Promise").field("len_bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl Promise {
    /// Returns the bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the tenant and the name.
    pub(super) fn id(&self) -> ChunkId {
        self.id
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.store.release(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: u64 = 64 << 10;
    /// Room for three chunks.
    const BUDGET: u64 = 3 * (CHUNK + ENTRY_BYTES);

    fn store() -> Arc<Store> {
        Arc::new(Store::new(BUDGET, Arc::default()))
    }

    fn id(number: u8) -> ChunkId {
        ChunkId { tenant: [0; 16], name: [number; 32] }
    }

    fn put(store: &Arc<Store>, number: u8) -> Option<Promise> {
        let mut room = store.room();
        if !room.grow(CHUNK) {
            return None;
        }
        store.insert(id(number), vec![number; CHUNK as usize], room)
    }

    fn has(store: &Arc<Store>, number: u8) -> bool {
        store.state().chunks.contains_key(&id(number))
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let store = store();
        for number in 0..3 {
            assert!(put(&store, number).is_some());
        }
        drop(store.promise(id(0), u64::MAX));
        assert!(put(&store, 3).is_some());
        assert_eq!([0, 1, 2, 3].map(|number| has(&store, number)), [true, false, true, true]);
        assert_eq!(store.counters.snapshot().evicted, 1);
        assert_eq!(store.counters.snapshot().memory_bytes, BUDGET);
    }

    #[test]
    fn what_was_promised_stays_and_nothing_is_forgotten_in_vain() {
        let store = store();
        let promises = [0, 1].map(|number| put(&store, number));
        assert!(put(&store, 2).is_some());
        assert!(!store.room().grow(2 * CHUNK), "one chunk could go");
        assert!(has(&store, 2), "it did not help");
        assert!(put(&store, 3).is_some());
        assert_eq!([0, 1, 2, 3].map(|number| has(&store, number)), [true, true, false, true]);
        drop(promises);
        assert!(put(&store, 4).is_some() && put(&store, 5).is_some() && put(&store, 6).is_some());
        assert_eq!([0, 1, 2, 3].map(|number| has(&store, number)), [false; 4]);
        assert_eq!(store.state().used_bytes, BUDGET);
    }

    #[test]
    fn room_is_given_back() {
        let store = store();
        let mut room = store.room();
        assert!(room.grow(BUDGET) && !room.grow(1));
        assert!(put(&store, 0).is_none());
        drop(room);
        let first = put(&store, 0);
        let again = put(&store, 0);
        assert!(first.is_some() && again.is_some());
        assert_eq!(store.state().used_bytes, CHUNK + ENTRY_BYTES, "once");
        drop((first, again));
        let tables = |state: &State| (state.idle.len(), state.chunks.len());
        assert_eq!(tables(&store.state()), (1, 1));
        assert!(store.promise(id(0), CHUNK - 1).is_none(), "longer than asked for");
    }
}
