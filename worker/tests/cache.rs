//! Tests of the cache of uploads: what is kept, for whom, how much of it, and what becomes of damaged files.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::*;
use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult};
use hipr_worker::{CacheConfig, CacheStats, Config, Handle, Worker};

const CHUNK: usize = CACHE_CHUNK_MIN_BYTES as usize;
const LENGTH: u64 = CACHE_CHUNK_MIN_BYTES;
const INVALID: HipError = HipError::INVALID_VALUE;
const KEY: [u8; 32] = [7; 32];
/// More than any test needs.
const PLENTY: u64 = 64 << 20;

fn start(name: &str, cache: Option<CacheConfig>) -> Handle {
    let mut config = Config::new(device(name));
    config.listen = "127.0.0.1:0".into();
    config.io = event_loop();
    config.cache = cache;
    Worker::bind(config).unwrap().spawn().unwrap()
}

fn in_memory(max_bytes: u64) -> Option<CacheConfig> {
    Some(CacheConfig { max_bytes, folder: None, folder_max_bytes: 0 })
}

fn on_disk(folder: &Path, folder_max_bytes: u64) -> Option<CacheConfig> {
    Some(CacheConfig { max_bytes: PLENTY, folder: Some(folder.to_owned()), folder_max_bytes })
}

fn name(key: &[u8; 32], bytes: &[u8]) -> [u8; 32] {
    *blake3::keyed_hash(key, bytes).as_bytes()
}

/// Returns chunk `number`.
fn chunk(number: u64) -> Vec<u8> {
    // Patterns of an even number and the next are the same.
    pattern(CHUNK, 2 * number + 1)
}

fn put(dst: u64, size: u64, offset: u64) -> CachePut {
    CachePut { dst, size, offset, length: LENGTH, stream: 0, waits: 0, reserved: 0 }
}

fn copy(chunk: [u8; 32], dst: u64, size: u64, offset: u64) -> CacheCopy {
    CacheCopy { chunk, dst, size, offset, length: LENGTH, stream: 0, waits: 0, reserved: 0 }
}

impl Peer {
    /// Opens a session that has the feature and a key.
    fn tenant(worker: &Handle, key: [u8; 32]) -> Self {
        let mut peer = Self::hello(worker.local_addr());
        let offer = Offer { features: Features::CACHE.bits(), part: 0 };
        assert_eq!(peer.call(&offer).unwrap().features, Features::CACHE.bits());
        peer.call(&CacheOpen { key }).unwrap();
        peer
    }

    /// Returns the numbers of those chunks that the cache has; the session is promised them.
    fn have(&mut self, key: &[u8; 32], numbers: &[u64]) -> Vec<u64> {
        let names: Vec<_> = numbers.iter().map(|number| name(key, &chunk(*number))).collect();
        let has = self.ask_names(&names).unwrap();
        let is_there = |index: usize| has[index / 64] >> (index % 64) & 1 == 1;
        (0..numbers.len()).filter(|index| is_there(*index)).map(|index| numbers[index]).collect()
    }

    fn ask_names(&mut self, names: &[[u8; 32]]) -> HipResult<[u64; 4]> {
        let have = CacheHave { count: names.len() as u32, reserved: 0 };
        self.call_with(&have, names.as_flattened()).map(|reply| reply.has)
    }

    /// Puts chunks into the cache, through device memory.
    fn put(&mut self, numbers: &[u64]) {
        let dst = self.malloc(LENGTH);
        for number in numbers {
            self.call_with(&put(dst, LENGTH, 0), &chunk(*number)).unwrap();
        }
        self.call(&Free { device_ptr: dst }).unwrap();
    }

    /// Copies a chunk that the session was promised and returns what device memory has then.
    fn copied(&mut self, key: &[u8; 32], number: u64) -> HipResult<Vec<u8>> {
        let dst = self.malloc(LENGTH);
        self.call(&copy(name(key, &chunk(number)), dst, LENGTH, 0))?;
        self.d2h(dst, LENGTH, 0)
    }
}

#[test]
fn what_was_uploaded_once_is_copied_by_name() {
    for device in ["sim", "script"] {
        let worker = start(device, in_memory(PLENTY));
        let mut first = Peer::tenant(&worker, KEY);
        assert_eq!(first.have(&KEY, &[1, 2]), []);
        let dst = first.malloc(2 * LENGTH + 5);
        first.forget(&put(dst, 2 * LENGTH + 5, 0), &chunk(1));
        first.forget(&put(dst, 2 * LENGTH + 5, LENGTH + 5), &chunk(2));
        let there = first.d2h(dst, 2 * LENGTH + 5, 0).unwrap();
        assert_eq!((&there[..CHUNK], &there[CHUNK + 5..]), (&chunk(1)[..], &chunk(2)[..]), "{device}");
        drop(first);
        let mut second = Peer::tenant(&worker, KEY);
        assert_eq!(second.have(&KEY, &[3, 2, 1]), [2, 1], "{device}");
        let dst = second.malloc(3 * LENGTH);
        second.forget(&copy(name(&KEY, &chunk(2)), dst, 3 * LENGTH, 2 * LENGTH), &[]);
        second.forget(&copy(name(&KEY, &chunk(1)), dst, 3 * LENGTH, LENGTH), &[]);
        let there = second.d2h(dst, 3 * LENGTH, 0).unwrap();
        assert_eq!(
            (&there[CHUNK..2 * CHUNK], &there[2 * CHUNK..]),
            (&chunk(1)[..], &chunk(2)[..]),
            "{device}"
        );
        let CacheStats { saved_bytes, kept_bytes, .. } = worker.stats().cache();
        assert_eq!((saved_bytes, kept_bytes), (2 * LENGTH, 2 * LENGTH), "{device}");
    }
}

#[test]
fn a_copy_from_the_cache_keeps_its_place_in_its_stream() {
    let worker = start("sim", in_memory(PLENTY));
    let mut peer = Peer::tenant(&worker, KEY);
    peer.put(&[1]);
    let stream = peer.stream_create();
    let (a, b) = (peer.malloc(LENGTH), peer.malloc(LENGTH));
    for waits in [0, 1] {
        assert_eq!(peer.have(&KEY, &[1]), [1]);
        peer.forget(&MemsetAsync(Memset { dst: a, value: 5, size: LENGTH, stream }), &[]);
        let one = name(&KEY, &chunk(1));
        peer.forget(&CacheCopy { stream, waits, ..copy(one, a, LENGTH, 0) }, &[]);
        peer.forget(&MemcpyAsync(Memcpy { stream, ..d2d(b, a, LENGTH, stream) }), &[]);
        peer.forget(&MemsetAsync(Memset { dst: a, value: 6, size: LENGTH, stream }), &[]);
        assert_eq!(peer.d2h(b, LENGTH, stream).unwrap(), chunk(1));
        assert_eq!(peer.d2h(a, LENGTH, stream).unwrap(), [6; CHUNK]);
    }
}

#[test]
fn tenants_do_not_find_each_others_chunks() {
    let worker = start("sim", in_memory(PLENTY));
    const OTHER: [u8; 32] = [8; 32];
    let mut owner = Peer::tenant(&worker, KEY);
    owner.put(&[1]);
    let mut other = Peer::tenant(&worker, OTHER);
    assert_eq!(other.have(&OTHER, &[1]), [], "the same bytes");
    assert_eq!(other.have(&KEY, &[1]), [], "the owner's name for them, which a network may show");
    assert_eq!(other.copied(&KEY, 1), Err(INVALID));
    other.put(&[1]);
    assert_eq!(other.have(&OTHER, &[1]), [1]);
    assert_eq!(owner.have(&KEY, &[1]), [1]);
    assert_eq!(worker.stats().cache().kept_bytes, 2 * LENGTH, "each has its own");
}

#[test]
fn a_name_is_never_taken_from_a_client() {
    let worker = start("sim", in_memory(PLENTY));
    let mut peer = Peer::tenant(&worker, KEY);
    // Asked for and then sent as something else: what is kept is named by what came.
    assert_eq!(peer.have(&KEY, &[1]), []);
    peer.put(&[2]);
    assert_eq!(peer.have(&KEY, &[1, 2]), [2]);
    assert_eq!(peer.copied(&KEY, 2).unwrap(), chunk(2));
}

#[test]
fn a_promise_is_for_one_copy() {
    let worker = start("sim", in_memory(PLENTY));
    let mut peer = Peer::tenant(&worker, KEY);
    peer.put(&[1]);
    assert_eq!(peer.copied(&KEY, 1), Err(INVALID), "nothing was promised");
    assert_eq!(peer.have(&KEY, &[1, 1]), [1, 1], "asked for twice");
    assert_eq!(peer.copied(&KEY, 1).unwrap(), chunk(1));
    assert_eq!(peer.copied(&KEY, 1).unwrap(), chunk(1));
    assert_eq!(peer.copied(&KEY, 1), Err(INVALID));
    // A question without an answer promises nothing.
    peer.forget(&CacheHave { count: 1, reserved: 0 }, &name(&KEY, &chunk(1)));
    assert_eq!(peer.copied(&KEY, 1), Err(INVALID));
}

#[test]
fn a_full_cache_forgets_and_never_fails() {
    // Room for four chunks.
    let max = 4 * (LENGTH + 1024);
    let worker = start("sim", in_memory(max));
    let mut peer = Peer::tenant(&worker, KEY);
    peer.put(&[1, 2, 3, 4]);
    assert_eq!(peer.have(&KEY, &[1]), [1]);
    assert_eq!(peer.copied(&KEY, 1).unwrap(), chunk(1), "used last");
    peer.put(&[5, 6]);
    // At most half of the cache is promised to one session.
    assert_eq!(peer.have(&KEY, &[2, 3, 1, 5, 4, 6]), [1, 5]);
    // These two stay whatever comes.
    let mut other = Peer::tenant(&worker, KEY);
    other.put(&(10..30).collect::<Vec<_>>());
    assert_eq!(peer.copied(&KEY, 1).unwrap(), chunk(1));
    assert_eq!(peer.copied(&KEY, 5).unwrap(), chunk(5));
    let stats = worker.stats().cache();
    assert!(stats.memory_bytes <= max && stats.evicted >= 20, "{stats:?}");
    // With everything promised nothing is kept, and copies go on.
    assert_eq!(other.have(&KEY, &[28, 29]), [28, 29]);
    assert_eq!(peer.have(&KEY, &[1, 5]), [1, 5]);
    let mut third = Peer::tenant(&worker, KEY);
    let dst = third.malloc(LENGTH);
    for number in 40..50 {
        third.forget(&put(dst, LENGTH, 0), &chunk(number));
    }
    assert_eq!(third.d2h(dst, LENGTH, 0).unwrap(), chunk(49));
    assert_eq!(worker.stats().cache().refused, 10);
    // What a session was promised is free when it ends.
    drop((peer, other, third));
    until("the sessions' promises end", || {
        let mut peer = Peer::tenant(&worker, KEY);
        peer.put(&[60, 61, 62, 63]);
        peer.have(&KEY, &[60]) == [60]
    });
    assert!(worker.stats().cache().memory_bytes <= max);
}

#[test]
fn a_cache_that_is_too_small_for_a_chunk_keeps_none() {
    let worker = start("sim", in_memory(LENGTH - 1));
    let mut peer = Peer::tenant(&worker, KEY);
    peer.put(&[1]);
    assert_eq!(peer.have(&KEY, &[1]), []);
    let CacheStats { kept_bytes, refused, memory_bytes, .. } = worker.stats().cache();
    assert_eq!((kept_bytes, refused, memory_bytes), (0, 1, 0));
}

#[test]
fn what_a_plain_copy_refuses_is_refused_alike() {
    let worker = start("sim", in_memory(PLENTY));
    let mut peer = Peer::tenant(&worker, KEY);
    peer.put(&[1]);
    let dst = peer.malloc(2 * LENGTH);
    let size = 2 * LENGTH;
    for (what, error, put, plain) in [
        ("behind the end", INVALID, put(dst, size + 1, 0), Some(h2d(dst, size + 1, 0))),
        ("no memory", INVALID, put(0xdead_0000, LENGTH, 0), Some(h2d(0xdead_0000, LENGTH, 0))),
        (
            "no stream",
            HipError::INVALID_HANDLE,
            CachePut { stream: 77, ..put(dst, size, 0) },
            Some(h2d(dst, size, 77)),
        ),
        ("an offset behind the copy", INVALID, put(dst, size, LENGTH + 1), None),
        ("an offset beyond numbers", INVALID, put(dst, size, u64::MAX), None),
        ("a size beyond numbers", INVALID, put(dst, u64::MAX, 0), None),
    ] {
        let before = worker.stats().cache();
        assert_eq!(peer.call_with(&put, &chunk(2)), Err(error), "{what}");
        if let Some(plain) = plain {
            let bytes = vec![0; plain.size as usize];
            let refused = peer.call_with(&MemcpyAsync(plain), &bytes).map(drop);
            assert_eq!(refused, Err(error), "{what}: as a copy without the cache");
        }
        assert_eq!(peer.have(&KEY, &[1]), [1]);
        let CachePut { dst, size, offset, length, stream, waits, reserved } = put;
        let copy =
            CacheCopy { chunk: name(&KEY, &chunk(1)), dst, size, offset, length, stream, waits, reserved };
        assert_eq!(peer.call(&copy), Err(error), "{what}: from the cache");
        assert_eq!(worker.stats().cache().kept_bytes, before.kept_bytes, "{what}: what failed is not kept");
    }
    // While a stream is captured it takes no copies from the host.
    let stream = peer.stream_create();
    peer.call(&StreamBeginCapture { stream, mode: 2 }).unwrap();
    let plain = peer.call_with(&MemcpyAsync(h2d(dst, LENGTH, stream)), &chunk(2)).map(drop);
    assert!(plain.is_err());
    assert_eq!(peer.call_with(&CachePut { stream, ..put(dst, size, 0) }, &chunk(2)), plain);
    assert_eq!(peer.have(&KEY, &[1]), [1]);
    assert_eq!(peer.call(&CacheCopy { stream, ..copy(name(&KEY, &chunk(1)), dst, size, 0) }), plain);
}

#[test]
fn sizes_and_counts_have_bounds() {
    let worker = start("sim", in_memory(PLENTY));
    let mut peer = Peer::tenant(&worker, KEY);
    let max = CACHE_CHUNK_MAX_BYTES;
    let dst = peer.malloc(2 * max);
    for length in [0, 1, LENGTH - 1, max + 1] {
        let put = CachePut { length, ..put(dst, 2 * max, 0) };
        assert_eq!(peer.call_with(&put, &vec![1; length as usize]), Err(INVALID), "{length}");
    }
    for length in [LENGTH, max] {
        let put = CachePut { length, ..put(dst, 2 * max, 0) };
        assert_eq!(peer.call_with(&put, &vec![1; length as usize]), Ok(()), "{length}");
    }
    let names = vec![[1; 32]; CACHE_NAMES_MAX + 1];
    assert_eq!(peer.ask_names(&names), Err(INVALID));
    assert_eq!(peer.ask_names(&names[1..]), Ok([0; 4]));
    assert_eq!(peer.ask_names(&[]), Ok([0; 4]));
    // The length of a chunk is part of the request that copies it.
    peer.put(&[1]);
    assert_eq!(peer.have(&KEY, &[1]), [1]);
    let copy = CacheCopy { length: LENGTH + 1, ..copy(name(&KEY, &chunk(1)), dst, 2 * max, 0) };
    assert_eq!(peer.call(&copy), Err(INVALID));
}

#[test]
fn a_session_needs_the_feature_and_one_key() {
    let worker = start("sim", in_memory(PLENTY));
    let mut peer = Peer::tenant(&worker, KEY);
    assert_eq!(peer.call(&CacheOpen { key: [9; 32] }), Err(INVALID), "one");
    let mut without = Peer::hello(worker.local_addr());
    let dst = without.malloc(LENGTH);
    let missing = Err(HipError::NOT_SUPPORTED);
    for offered in [false, true] {
        if offered {
            without.accept_notifications();
            without.call(&Offer { features: u64::MAX, part: 0 }).unwrap();
        }
        let missing = if offered { Err(INVALID) } else { missing };
        assert_eq!(without.ask_names(&[[1; 32]]).map(drop), missing);
        assert_eq!(without.call_with(&put(dst, LENGTH, 0), &chunk(1)), missing);
        assert_eq!(without.call(&copy([1; 32], dst, LENGTH, 0)), missing);
    }
    // A worker without a cache does not have the feature.
    let worker = start("sim", None);
    let mut peer = Peer::hello(worker.local_addr());
    let accepted = Features::from_bits(peer.call(&Offer { features: u64::MAX, part: 0 }).unwrap().features);
    assert!(!accepted.contains(Features::CACHE) && accepted.contains(Features::STATIC));
    assert_eq!(peer.call(&CacheOpen { key: KEY }), Err(HipError::NOT_SUPPORTED));
}

#[test]
fn a_question_neither_takes_nor_hides_a_kept_error() {
    let worker = start("sim", in_memory(PLENTY));
    let mut peer = Peer::tenant(&worker, KEY);
    peer.forget(&Free { device_ptr: 0xdead_0000 }, &[]);
    assert_eq!(peer.have(&KEY, &[1]), []);
    assert_eq!(peer.call(&GetDevice {}).map(drop), Err(INVALID));
}

/// Waits until the folder has so many chunks, and returns their files.
fn files(folder: &Path, count: usize) -> Vec<PathBuf> {
    let list = || {
        let all = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| path.extension().is_none()).collect::<Vec<_>>()
    };
    until("the chunks are in files", || list().len() == count);
    list()
}

#[test]
fn files_outlast_the_worker() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    let worker = start("sim", on_disk(&path, PLENTY));
    Peer::tenant(&worker, KEY).put(&[1, 2, 3]);
    drop(worker);
    assert_eq!(files(&path, 3).len(), 3, "all are written when the worker has ended");
    let worker = start("sim", on_disk(&path, PLENTY));
    let mut other = Peer::tenant(&worker, [8; 32]);
    assert_eq!(other.have(&[8; 32], &[1]), []);
    assert_eq!(other.have(&KEY, &[1]), [], "another tenant's");
    let mut peer = Peer::tenant(&worker, KEY);
    assert_eq!(peer.have(&KEY, &[1, 9, 3, 1]), [1, 3, 1]);
    for number in [1, 3, 1] {
        assert_eq!(peer.copied(&KEY, number).unwrap(), chunk(number));
    }
    assert_eq!(peer.copied(&KEY, 1), Err(INVALID));
    assert_eq!(worker.stats().cache().loaded, 2);
}

#[test]
fn two_workers_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = [0; 2].map(|_| start("sim", on_disk(folder.path(), PLENTY)));
    Peer::tenant(&one, KEY).put(&[1]);
    files(folder.path(), 1);
    let mut peer = Peer::tenant(&two, KEY);
    assert_eq!(peer.have(&KEY, &[1]), [1]);
    assert_eq!(peer.copied(&KEY, 1).unwrap(), chunk(1));
}

/// A way to damage a file.
type Damage = (&'static str, fn(&Path));

#[test]
fn damaged_files_are_noticed_and_removed() {
    let damages: [Damage; 6] = [
        ("a bit", |path| {
            let mut bytes = fs::read(path).unwrap();
            bytes[CHUNK / 2] ^= 1;
            fs::write(path, bytes).unwrap();
        }),
        ("the end is missing", |path| fs::write(path, &fs::read(path).unwrap()[..CHUNK - 1]).unwrap()),
        ("something follows", |path| fs::write(path, [fs::read(path).unwrap(), vec![0]].concat()).unwrap()),
        ("empty", |path| fs::write(path, []).unwrap()),
        ("longer than any chunk", |path| {
            fs::File::options().write(true).open(path).unwrap().set_len(1 << 40).unwrap()
        }),
        ("other bytes", |path| fs::write(path, chunk(99)).unwrap()),
    ];
    for (what, damage) in damages {
        let folder = tempfile::tempdir().unwrap();
        let worker = start("sim", on_disk(folder.path(), 1 << 50));
        Peer::tenant(&worker, KEY).put(&[1]);
        drop(worker);
        let file = files(folder.path(), 1).remove(0);
        damage(&file);
        let worker = start("sim", on_disk(folder.path(), 1 << 50));
        let mut peer = Peer::tenant(&worker, KEY);
        assert_eq!(peer.have(&KEY, &[1]), [], "{what}");
        assert_eq!(worker.stats().cache().damaged, 1, "{what}");
        assert!(!file.exists(), "{what}");
        // The bytes are sent again and kept again.
        peer.put(&[1]);
        assert_eq!(files(folder.path(), 1), [file], "{what}");
        assert_eq!(peer.have(&KEY, &[1]), [1], "{what}");
    }
}

#[test]
fn a_folder_has_a_bound_and_other_files_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("note.txt");
    fs::write(&note, "not a chunk").unwrap();
    let worker = start("sim", on_disk(folder.path(), 5 * LENGTH));
    let mut peer = Peer::tenant(&worker, KEY);
    peer.put(&(0..20).collect::<Vec<_>>());
    drop((peer, worker));
    let total = |folder: &Path| -> u64 {
        files(folder, 5).iter().map(|path| fs::metadata(path).unwrap().len()).sum()
    };
    assert_eq!(total(folder.path()), 5 * LENGTH);
    assert!(note.exists());
    // A smaller bound holds from the start.
    let worker = start("sim", on_disk(folder.path(), 2 * LENGTH));
    files(folder.path(), 2);
    assert!(note.exists());
    // One that is too small for a chunk keeps none, and memory has it all the same.
    drop(worker);
    let worker = start("sim", on_disk(folder.path(), LENGTH - 1));
    let mut peer = Peer::tenant(&worker, KEY);
    peer.put(&[1]);
    assert_eq!(peer.have(&KEY, &[1]), [1]);
    drop((peer, worker));
    assert_eq!(files(folder.path(), 0), Vec::<PathBuf>::new());
}

#[test]
fn a_folder_that_cannot_be_had_is_an_error_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let mut config = Config::new(device("null"));
    config.listen = "127.0.0.1:0".into();
    config.cache = on_disk(&file, PLENTY);
    let why = Worker::bind(config).expect_err("no folder").to_string();
    assert!(why.contains("cache") && why.contains("file"), "{why}");
}
