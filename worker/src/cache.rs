//! The cache of uploads: chunks of what clients have sent, so that nobody sends them again.
//!
//! A chunk belongs to a tenant: whoever knows a key of 32 secret bytes. Its name is the keyed hash of its bytes, which the worker computes
//! by itself from the bytes that arrive, so that no client can put other bytes under a name; and it is found only by sessions with the
//! same key, so that no tenant learns what another has sent.
//!
//! Memory has one budget for all sessions ([`store`]). With a folder, chunks are also kept in files ([`disk`]), which outlast the worker
//! and which the processes of `--isolate process` share; files are read and written by a thread of their own.

mod disk;
mod store;
mod tenant;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use disk::Disk;
use hipr_device::Waker;

pub(crate) use disk::Found;
pub(crate) use store::Promise;
use store::{ChunkId, Store};
pub(crate) use tenant::{Asked, Keeping, Tenant};

/// Options of the cache of uploads.
#[derive(Clone, Debug)]
pub struct CacheConfig {
    /// Maximum bytes of chunks in memory, for all sessions together.
    pub max_bytes: u64,
    /// The folder in which chunks are kept as well; without it the cache ends with the worker.
    pub folder: Option<PathBuf>,
    /// Maximum bytes of chunks in the folder.
    pub folder_max_bytes: u64,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        #[derive(Debug, Default)]
        pub(crate) struct Counters { $($name: AtomicU64,)* }

        /// Counters of the cache of uploads since the worker was started.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct CacheStats { $($(#[$doc])* pub $name: u64,)* }

        impl CacheStats {
            /// Returns all values, in an order that does not change while the program runs.
            pub fn values_mut(&mut self) -> impl Iterator<Item = &mut u64> {
                [$(&mut self.$name,)*].into_iter()
            }
        }

        impl Counters {
            pub(crate) fn snapshot(&self) -> CacheStats {
                CacheStats { $($name: self.$name.load(Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Bytes that clients did not send because the cache had them.
    saved_bytes,
    /// Bytes of chunks that clients sent and the cache took.
    kept_bytes,
    /// Bytes of chunks that are in memory, with what is arriving.
    memory_bytes,
    /// Number of chunks that made room for others in memory.
    evicted,
    /// Number of chunks that were not kept because everything in memory was in use.
    refused,
    /// Number of chunks that were read from files.
    loaded,
    /// Number of files that did not have the bytes that their name says, and were removed.
    damaged,
}

impl Counters {
    fn add(&self, counter: impl Fn(&Self) -> &AtomicU64, n: u64) {
        counter(self).fetch_add(n, Relaxed);
    }
}

/// The cache of a worker.
#[derive(Debug)]
pub(crate) struct Cache {
    store: Arc<Store>,
    disk: Option<Disk>,
    counters: Arc<Counters>,
}

impl Cache {
    /// Creates an empty cache, with what is in the folder if there is one.
    ///
    /// # Errors
    /// The folder cannot be made or read; there can be no thread.
    pub(crate) fn open(config: &CacheConfig, counters: Arc<Counters>) -> io::Result<Self> {
        let store = Arc::new(Store::new(config.max_bytes, counters.clone()));
        let disk = match &config.folder {
            Some(folder) => {
                Some(Disk::open(folder, config.folder_max_bytes, store.clone(), counters.clone())?)
            }
            None => None,
        };
        Ok(Self { store, disk, counters })
    }

    /// Puts a chunk into memory and, if there is a folder, into a file.
    fn keep(&self, id: ChunkId, keeping: Keeping) {
        let Some((bytes, room)) = keeping.into_parts() else {
            self.counters.add(|c| &c.refused, 1);
            return;
        };
        let len = bytes.len() as u64;
        let Some(promise) = self.store.insert(id, bytes, room) else {
            self.counters.add(|c| &c.refused, 1);
            return;
        };
        self.counters.add(|c| &c.kept_bytes, len);
        if let Some(disk) = &self.disk {
            disk.save(promise);
        }
    }

    /// Counts bytes that a client did not send.
    pub(crate) fn count_saved(&self, bytes: u64) {
        self.counters.add(|c| &c.saved_bytes, bytes);
    }

    /// Looks for chunks in files; `None` if there are none. `waker` is called when they are found.
    fn load(
        &self,
        key: [u8; 32],
        ids: Vec<(usize, ChunkId)>,
        room_bytes: u64,
        waker: Waker,
    ) -> Option<Arc<Found>> {
        self.disk.as_ref().filter(|_| !ids.is_empty())?.load(key, ids, room_bytes, waker)
    }
}
