//! A session's part of the cache: whose chunks it finds, and those that it was promised.

use std::collections::BTreeMap;
use std::sync::Arc;

use hipr_device::Waker;
use hipr_proto::op::{CACHE_KEY_BYTES, CACHE_NAME_BYTES, CACHE_NAMES_MAX};
use hipr_proto::{HipError, HipResult};

use super::store::{ChunkId, Promise, Room};
use super::{Cache, Found};

/// The tenant of a session, with its promises.
#[derive(Debug, Default)]
pub(crate) struct Tenant {
    key: Option<[u8; CACHE_KEY_BYTES]>,
    promised: BTreeMap<[u8; CACHE_NAME_BYTES], Promised>,
    promised_bytes: u64,
}

#[derive(Debug)]
struct Promised {
    chunk: Arc<Promise>,
    /// How often the session may copy it.
    times: u32,
}

/// A question which chunks there are, while files are looked for.
#[derive(Debug)]
pub(crate) struct Asked {
    names: Vec<[u8; CACHE_NAME_BYTES]>,
    has: [u64; 4],
    found: Arc<Found>,
}

impl Tenant {
    /// Sets the key; a session has one.
    pub(crate) fn open(&mut self, key: [u8; CACHE_KEY_BYTES]) -> HipResult<()> {
        if self.key.is_some() {
            return Err(HipError::INVALID_VALUE);
        }
        self.key = Some(key);
        Ok(())
    }

    /// Returns whether the session has a key.
    pub(crate) fn is_open(&self) -> bool {
        self.key.is_some()
    }

    /// Promises those of the named chunks that the cache has. Returns which these are, or what has to be asked again when the waker was
    /// called.
    pub(crate) fn have(
        &mut self,
        cache: &Cache,
        names: Vec<[u8; CACHE_NAME_BYTES]>,
        waker: impl FnOnce() -> Waker,
    ) -> HipResult<Result<[u64; 4], Asked>> {
        let key = self.key.filter(|_| names.len() <= CACHE_NAMES_MAX).ok_or(HipError::INVALID_VALUE)?;
        let (mut has, mut missing) = ([0; 4], Vec::new());
        for (index, &name) in names.iter().enumerate() {
            let id = ChunkId { tenant: tenant(&key), name };
            if self.promise_again(&name) {
                set(&mut has, index);
                continue;
            }
            match cache.store.promise(id, self.room_bytes(cache)) {
                Some(chunk) => {
                    self.promise(chunk);
                    set(&mut has, index);
                }
                None => missing.push((index, id)),
            }
        }
        let room_bytes = self.room_bytes(cache);
        Ok(match cache.load(key, missing, room_bytes, waker()) {
            Some(found) => Err(Asked { names, has, found }),
            None => Ok(has),
        })
    }

    /// Returns which chunks there are once files have been looked for.
    pub(crate) fn poll_have(&mut self, asked: Asked) -> Result<[u64; 4], Asked> {
        let Some(found) = asked.found.take() else { return Err(asked) };
        let mut has = asked.has;
        for (index, chunk) in found {
            match asked.names.get(index) {
                Some(name) if self.promise_again(name) => {}
                _ => self.promise(chunk),
            }
            set(&mut has, index);
        }
        Ok(has)
    }

    /// Returns the chunk for a copy that the session was promised.
    pub(crate) fn take(&mut self, name: &[u8; CACHE_NAME_BYTES], len_bytes: u64) -> HipResult<Arc<Promise>> {
        let promised = self.promised.get_mut(name).ok_or(HipError::INVALID_VALUE)?;
        let chunk = promised.chunk.clone();
        promised.times -= 1;
        if promised.times == 0 {
            self.promised_bytes -= chunk.bytes().len() as u64;
            self.promised.remove(name);
        }
        if chunk.bytes().len() as u64 != len_bytes {
            return Err(HipError::INVALID_VALUE);
        }
        Ok(chunk)
    }

    /// Puts a chunk that has arrived into the cache, under the name that its bytes give it.
    pub(crate) fn keep(&self, cache: &Cache, keeping: Keeping) {
        let Some(key) = &self.key else { return };
        let name = *blake3::keyed_hash(key, &keeping.bytes).as_bytes();
        cache.keep(ChunkId { tenant: tenant(key), name }, keeping);
    }

    /// Returns the bytes that the session may be promised besides those that it was: others need room, too.
    fn room_bytes(&self, cache: &Cache) -> u64 {
        (cache.store.max_bytes() / 2).saturating_sub(self.promised_bytes)
    }

    fn promise_again(&mut self, name: &[u8; CACHE_NAME_BYTES]) -> bool {
        let promised = self.promised.get_mut(name);
        promised.is_some_and(|promised| {
            promised.times = promised.times.saturating_add(1);
            true
        })
    }

    fn promise(&mut self, chunk: Promise) {
        self.promised_bytes += chunk.bytes().len() as u64;
        self.promised.insert(chunk.id().name, Promised { chunk: Arc::new(chunk), times: 1 });
    }
}

fn set(has: &mut [u64; 4], index: usize) {
    if let Some(word) = has.get_mut(index / 64) {
        *word |= 1 << (index % 64);
    }
}

/// Returns the number of a tenant, which does not tell its key.
fn tenant(key: &[u8; CACHE_KEY_BYTES]) -> [u8; 16] {
    let whole = blake3::derive_key("hipr 2026-11 upload cache, tenant", key);
    let mut id = [0; 16];
    id.iter_mut().zip(whole).for_each(|(to, from)| *to = from);
    id
}

/// A chunk that is arriving. It has room in the cache for the bytes that have arrived, or is not kept.
#[derive(Debug)]
pub(crate) struct Keeping {
    bytes: Vec<u8>,
    len: u64,
    room: Option<Room>,
}

impl Keeping {
    /// Begins a chunk of `len` bytes.
    pub(crate) fn new(cache: &Cache, len: u64) -> Self {
        Self { bytes: Vec::new(), len, room: Some(cache.store.room()) }
    }

    /// Adds bytes that have arrived.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let has_room = self.room.as_mut().is_some_and(|room| room.grow(bytes.len() as u64));
        // Its whole length at once: a vector that grows would have more than was counted.
        let len = usize::try_from(self.len).unwrap_or(usize::MAX);
        let has_memory = self.bytes.capacity() > 0 || self.bytes.try_reserve_exact(len).is_ok();
        if has_room && has_memory && self.bytes.len() + bytes.len() <= len {
            self.bytes.extend_from_slice(bytes);
        } else {
            (self.room, self.bytes) = (None, Vec::new());
        }
    }

    /// Returns the bytes and their room; `None` if there was no room for all.
    pub(super) fn into_parts(self) -> Option<(Vec<u8>, Room)> {
        let (bytes, len) = (self.bytes, self.len);
        self.room.filter(|_| bytes.len() as u64 == len).map(|room| (bytes, room))
    }
}
