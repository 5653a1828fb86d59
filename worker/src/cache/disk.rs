//! Chunks in files: one file a chunk, named by tenant and content, which is checked when it is read.
//!
//! A thread reads and writes them, because a disk may take long. Several processes may use one folder: a file appears under its name
//! when it is complete, and is never changed then.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use hipr_device::Waker;
use hipr_proto::op::{CACHE_CHUNK_MAX_BYTES, CACHE_CHUNK_MIN_BYTES};
use tracing::{debug, warn};

use super::Counters;
use super::store::{ChunkId, Promise, Store};

/// Maximum number of jobs that wait for the thread; a chunk beyond it is not saved, one that is looked for not found.
const JOBS_MAX: usize = 1024;
/// Number of files that are written before the folder is measured again, because other processes write as well.
const MEASURE_EVERY: u32 = 64;
/// What a file is called while it is written, behind the number of its process.
const PARTIAL: &str = ".partial";

/// The files of a cache. Dropping it waits until all are written.
#[derive(Debug)]
pub(super) struct Disk {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum Job {
    Save(Promise),
    Load { key: [u8; 32], ids: Vec<(usize, ChunkId)>, room_bytes: u64, found: Arc<Found>, waker: Waker },
}

/// The chunks that were found in files, with their numbers in the question, once they have been looked for.
#[derive(Debug, Default)]
pub(crate) struct Found(Mutex<Option<Vec<(usize, Promise)>>>);

impl Found {
    /// Returns the chunks if all have been looked for.
    pub(super) fn take(&self) -> Option<Vec<(usize, Promise)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Disk {
    /// Opens the folder, which is made if there is none.
    ///
    /// # Errors
    /// It cannot be made or read; there can be no thread.
    pub(super) fn open(
        folder: &Path,
        max_bytes: u64,
        store: Arc<Store>,
        counters: Arc<Counters>,
    ) -> io::Result<Self> {
        let named = |why: io::Error| io::Error::new(why.kind(), format!("{}: {why}", folder.display()));
        // What programs upload is nobody else's business.
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(named)?;
        let mut files =
            Files { folder: folder.to_owned(), max_bytes, used_bytes: 0, written: 0, store, counters };
        files.measure().map_err(named)?;
        debug!(folder = %folder.display(), bytes = files.used_bytes, "cache of uploads");
        let (jobs, receiver) = mpsc::sync_channel(JOBS_MAX);
        let thread = thread::Builder::new().name("hipr-cache".into()).spawn(move || files.run(&receiver))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Writes a chunk into a file, later; not if too many wait for that.
    pub(super) fn save(&self, chunk: Promise) {
        self.put(Job::Save(chunk));
    }

    /// Looks for chunks of at most `room_bytes` in all; returns where they will be found. `None` if too many wait for that.
    pub(super) fn load(
        &self,
        key: [u8; 32],
        ids: Vec<(usize, ChunkId)>,
        room_bytes: u64,
        waker: Waker,
    ) -> Option<Arc<Found>> {
        let found = Arc::new(Found::default());
        let job = Job::Load { key, ids, room_bytes, found: found.clone(), waker };
        self.put(job).then_some(found)
    }

    fn put(&self, job: Job) -> bool {
        self.jobs.as_ref().is_some_and(|jobs| jobs.try_send(job).is_ok())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by its own message.
            let _ = thread.join();
        }
    }
}

/// The folder, as the thread uses it.
struct Files {
    folder: PathBuf,
    max_bytes: u64,
    /// Bytes in the folder when it was last measured, and those written since.
    used_bytes: u64,
    /// Number of files written since.
    written: u32,
    store: Arc<Store>,
    counters: Arc<Counters>,
}

impl Files {
    fn run(&mut self, jobs: &Receiver<Job>) {
        for job in jobs {
            match job {
                Job::Save(chunk) => {
                    if let Err(why) = self.save(&chunk) {
                        warn!(folder = %self.folder.display(), %why, "cannot write a chunk of the cache");
                    }
                }
                Job::Load { key, ids, mut room_bytes, found, waker } => {
                    let mut chunks = Vec::new();
                    for (index, id) in ids {
                        if let Some(chunk) = self.load(&key, id, room_bytes) {
                            room_bytes -= chunk.bytes().len() as u64;
                            chunks.push((index, chunk));
                        }
                    }
                    *found.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(chunks);
                    waker.wake();
                }
            }
        }
    }

    fn path(&self, id: ChunkId) -> PathBuf {
        self.folder.join(format!("{}-{}", hex(&id.tenant), hex(&id.name)))
    }

    fn save(&mut self, chunk: &Promise) -> io::Result<()> {
        let (path, len) = (self.path(chunk.id()), chunk.bytes().len() as u64);
        if let Ok(file) = File::open(&path) {
            return file.set_modified(SystemTime::now());
        }
        if len > self.max_bytes {
            return Ok(());
        }
        if self.used_bytes.saturating_add(len) > self.max_bytes || self.written >= MEASURE_EVERY {
            self.measure()?;
            if self.used_bytes.saturating_add(len) > self.max_bytes {
                self.make_room(len)?;
            }
        }
        let partial = self.folder.join(format!("{}{PARTIAL}", std::process::id()));
        let written = File::create(&partial)
            .and_then(|mut file| file.write_all(chunk.bytes()))
            .and_then(|()| fs::rename(&partial, &path));
        if written.is_err() {
            // Nothing is left of it if that can be had.
            let _ = fs::remove_file(&partial);
        }
        written?;
        self.used_bytes += len;
        self.written += 1;
        Ok(())
    }

    /// Returns a chunk from its file, if it has at most `room_bytes` and memory has room for it. A file with other bytes than its name
    /// says is removed.
    fn load(&self, key: &[u8; 32], id: ChunkId, room_bytes: u64) -> Option<Promise> {
        // Meanwhile it may have come another way.
        if let Some(chunk) = self.store.promise(id, room_bytes) {
            return Some(chunk);
        }
        let path = self.path(id);
        let len = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?.len();
        if !(CACHE_CHUNK_MIN_BYTES..=CACHE_CHUNK_MAX_BYTES).contains(&len) {
            self.remove_damaged(&path, "its length");
            return None;
        }
        let mut room = self.store.room();
        if len > room_bytes || !room.grow(len) {
            return None;
        }
        let mut bytes = Vec::new();
        let file = File::open(&path).ok()?;
        let read = bytes
            .try_reserve_exact(len as usize)
            .map_err(io::Error::other)
            .and_then(|()| (&file).take(len).read_to_end(&mut bytes));
        if let Err(why) = read {
            warn!(file = %path.display(), %why, "cannot read a chunk of the cache");
            return None;
        }
        if bytes.len() as u64 != len || blake3::keyed_hash(key, &bytes).as_bytes() != &id.name {
            self.remove_damaged(&path, "its bytes");
            return None;
        }
        // Used last: it is removed last. If that fails it is removed sooner.
        let _ = file.set_modified(SystemTime::now());
        let chunk = self.store.insert(id, bytes, room)?;
        self.counters.add(|c| &c.loaded, 1);
        Some(chunk)
    }

    fn remove_damaged(&self, path: &Path, what: &str) {
        self.counters.add(|c| &c.damaged, 1);
        warn!(file = %path.display(), what, "a file of the cache is damaged: removing it");
        // If it cannot be removed it is found damaged again.
        let _ = fs::remove_file(path);
    }

    /// Returns the files of the cache in the folder, with their lengths and when they were last used.
    fn list(&self) -> io::Result<Vec<(SystemTime, u64, PathBuf)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let is_ours = entry.file_name().to_str().is_some_and(is_ours);
            // Another process may have removed it.
            if let Ok(metadata) = entry.metadata()
                && is_ours
                && metadata.is_file()
            {
                let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                files.push((used, metadata.len(), entry.path()));
            }
        }
        Ok(files)
    }

    fn measure(&mut self) -> io::Result<()> {
        self.used_bytes = self.list()?.iter().map(|(_, len, _)| len).sum();
        self.written = 0;
        if self.used_bytes > self.max_bytes { self.make_room(0) } else { Ok(()) }
    }

    /// Removes the files that were not used for longest, until there is room for `len` bytes.
    fn make_room(&mut self, len: u64) -> io::Result<()> {
        let mut files = self.list()?;
        files.sort();
        self.used_bytes = files.iter().map(|(_, len, _)| len).sum();
        for (_, removed_bytes, path) in files {
            if self.used_bytes.saturating_add(len) <= self.max_bytes {
                break;
            }
            match fs::remove_file(&path) {
                // Another process was faster.
                Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
                _ => self.used_bytes -= removed_bytes,
            }
        }
        Ok(())
    }
}

/// Returns whether a file in the folder is one of a cache: others are left alone.
fn is_ours(name: &str) -> bool {
    let is_hex = |text: &str, len| {
        text.len() == len && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_chunk = name.split_once('-').is_some_and(|(tenant, name)| is_hex(tenant, 32) && is_hex(name, 64));
    let process = name.strip_suffix(PARTIAL);
    is_chunk || process.is_some_and(|process| process.bytes().all(|byte| byte.is_ascii_digit()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
