//! Tests of uploads by name through the connection's API, with real workers and with one that breaks its word.

mod support;

use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use hipr_client::{
    CacheUse, CallError, ConnectOptions, Connection, Extra, UPLOAD_MIN_BYTES, Upload, UploadCache,
    WorkerAddress,
};
use hipr_proto::op::{self, kind};
use hipr_proto::{Features, HipError, Opcode, Wire};
use hipr_worker::device::script::Script;
use hipr_worker::{Address, CacheConfig, Config, Handle, Worker};
use support::{FakeWorker, Reaction, easy};

const TIMEOUT: Duration = Duration::from_secs(20);
const MIB: usize = UPLOAD_MIN_BYTES;

fn with_cache(listen: Address) -> Handle {
    let cache = CacheConfig { max_bytes: 64 << 20, folder: None, folder_max_bytes: 0 };
    let config = Config { listen, cache: Some(cache), ..Config::new(Arc::new(Script::new())) };
    Worker::bind(config).and_then(Worker::spawn).expect("a worker")
}

fn connect(address: impl ToString, folder: &Path, when: CacheUse) -> Connection {
    let cache = UploadCache { when, key_file: Some(folder.join("key")) };
    let address = WorkerAddress::new(&address.to_string());
    Connection::connect_with(&address, TIMEOUT, ConnectOptions { cache, ..ConnectOptions::default() })
        .expect("a worker is there")
}

fn noise(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i as u32).wrapping_mul(2_654_435_761).to_le_bytes()[3] ^ seed).collect()
}

fn to(dst: u64) -> Upload {
    Upload { dst, stream: 0, waits: true, device: None }
}

fn read(connection: &Connection, src: u64, len: usize) -> Result<Vec<u8>, CallError> {
    let mut back = vec![0; len];
    let copy = op::Memcpy { dst: 0, src, size: len as u64, kind: kind::DEVICE_TO_HOST, stream: 0 };
    connection.read(&copy, Extra::default(), &mut back).map(|()| back)
}

#[test]
fn what_is_there_is_not_sent_and_the_rest_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("worker");
    for address in [Address::new("127.0.0.1:0"), Address::Unix(path.clone()), Address::Shm(path)] {
        let worker = with_cache(address);
        let connection = connect(worker.local_addr(), folder.path(), CacheUse::On);
        assert!(connection.features().contains(Features::CACHE));
        let len = 5 * MIB + 77;
        let dst = connection.ask(&op::Malloc { size: len as u64, flags: 0 }).expect("memory").device_ptr;
        let mut bytes = noise(len, 0);
        for (saved, changed) in
            [(0, None), (len, None), (4 * MIB + 77, Some(MIB + 3)), (4 * MIB, Some(len - 1))]
        {
            if let Some(at) = changed {
                bytes[at] ^= 1;
            }
            let before = connection.stats();
            assert_eq!(connection.upload(&to(dst), &bytes), Ok(true));
            assert_eq!(read(&connection, dst, len).expect("read"), bytes);
            let after = connection.stats();
            let sent = after.bytes_sent - before.bytes_sent;
            assert_eq!(after.cache_bytes_saved - before.cache_bytes_saved, saved as u64);
            assert!(sent >= (len - saved) as u64 && sent < (len - saved + 4096) as u64, "{sent} bytes");
            assert_eq!(after.round_trips - before.round_trips, 2, "one asks, one reads");
        }
    }
}

#[test]
fn a_copy_that_fails_does_so_once_and_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let worker = with_cache("127.0.0.1:0".into());
    let connection = connect(worker.local_addr(), folder.path(), CacheUse::On);
    let dst = connection.ask(&op::Malloc { size: 3 * MIB as u64, flags: 0 }).expect("memory").device_ptr;
    let bytes = noise(4 * MIB, 1);
    for len in [4 * MIB, 3 * MIB] {
        // The second time some of it is there.
        assert_eq!(connection.upload(&to(dst + 8), &bytes[..len]), Ok(true));
        assert_eq!(connection.ask(&op::DeviceSynchronize {}), Err(CallError::Hip(HipError::INVALID_VALUE)));
        assert_eq!(connection.ask(&op::DeviceSynchronize {}), Ok(()));
        assert_eq!(read(&connection, dst, 3 * MIB).expect("read"), vec![0; 3 * MIB], "nothing was written");
        assert_eq!(connection.upload(&to(dst), &bytes[..3 * MIB]), Ok(true));
        assert_eq!(connection.ask(&op::Memset { dst, value: 0, size: 3 * MIB as u64, stream: 0 }), Ok(()));
    }
}

#[test]
fn threads_upload_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let worker = with_cache("127.0.0.1:0".into());
    let connection = connect(worker.local_addr(), folder.path(), CacheUse::On);
    let (start, rounds) = (Barrier::new(4), 6);
    thread::scope(|scope| {
        for seed in 0..4 {
            let (connection, start) = (&connection, &start);
            scope.spawn(move || {
                // Two threads have the same bytes.
                let bytes = noise(3 * MIB + 5, seed / 2);
                let size = bytes.len() as u64;
                let dst = connection.ask(&op::Malloc { size, flags: 0 }).expect("memory").device_ptr;
                start.wait();
                for _ in 0..rounds {
                    assert_eq!(connection.upload(&to(dst), &bytes), Ok(true));
                    assert!(read(connection, dst, bytes.len()).expect("read") == bytes);
                }
            });
        }
    });
    assert!(connection.stats().cache_bytes_saved >= (4 * (rounds - 1) * 3 * MIB) as u64);
}

#[test]
fn small_copies_and_links_within_a_machine_are_not_asked_about() {
    let folder = tempfile::tempdir().expect("a folder");
    let worker = with_cache("127.0.0.1:0".into());
    for (when, len) in [(CacheUse::On, MIB - 1), (CacheUse::Auto, 8 * MIB), (CacheUse::Off, 8 * MIB)] {
        let connection = connect(worker.local_addr(), folder.path(), when);
        assert_eq!(connection.features().contains(Features::CACHE), when != CacheUse::Off);
        let before = connection.stats();
        assert_eq!(connection.upload(&to(0), &vec![0; len]), Ok(false), "{when:?}");
        assert_eq!(connection.stats(), before, "{when:?}: nothing is sent");
    }
    assert!(!folder.path().join("key").exists());
}

#[test]
fn a_worker_that_does_not_answer_right_is_not_asked_again() {
    let has_nothing = || {
        let mut reply = Vec::new();
        op::CacheHaveReply { has: [0; 4] }.put(&mut reply);
        reply
    };
    for breaks in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let worker = FakeWorker::start(move |asked| match asked.op {
            Opcode::OFFER => {
                let mut reply = Vec::new();
                op::OfferReply { features: u64::MAX }.put(&mut reply);
                Reaction::Good(reply)
            }
            Opcode::CACHE_HAVE if breaks => Reaction::Bad(HipError::UNKNOWN),
            Opcode::CACHE_HAVE => Reaction::Good(has_nothing()),
            _ => easy(asked),
        });
        let connection = connect(worker.address, folder.path(), CacheUse::On);
        let bytes = noise(2 * MIB, 9);
        for _ in 0..2 {
            assert_eq!(connection.upload(&to(0x1000), &bytes), Ok(!breaks));
        }
        connection.ask(&op::Ping {}).expect("an answer");
        let all = worker.until(Opcode::PING);
        let count = |op| all.iter().filter(|asked| asked.op == op).count();
        assert_eq!(count(Opcode::CACHE_OPEN), 1);
        assert_eq!(count(Opcode::CACHE_HAVE), if breaks { 1 } else { 2 });
        assert_eq!(count(Opcode::CACHE_PUT), if breaks { 0 } else { 4 });
    }
}
