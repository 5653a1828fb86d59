//! Tests of packed copies through the connection's API, with real workers, with old ones and with one that breaks its word.

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hipr_client::{
    CacheUse, CallError, CompressUse, ConnectOptions, Connection, Download, Extra, Upload, UploadCache,
    WorkerAddress,
};
use hipr_io::Packer;
use hipr_proto::op::{self, GetPackedReply, PACKED_MIN_BYTES, kind};
use hipr_proto::{Features, HipError, Opcode};
use hipr_worker::device::script::Script;
use hipr_worker::{Address, Config, Handle, SessionLimits, Worker};
use support::{FakeWorker, Reaction, bytes, easy};

const TIMEOUT: Duration = Duration::from_secs(20);
const MIB: usize = 1 << 20;

fn connect(address: impl ToString, compress: CompressUse) -> Connection {
    let cache = UploadCache { when: CacheUse::Off, key_file: None };
    let address = WorkerAddress::new(&address.to_string());
    Connection::connect_with(
        &address,
        TIMEOUT,
        ConnectOptions { cache, compress, ..ConnectOptions::default() },
    )
    .expect("a worker is there")
}

fn worker(listen: Address, features: Option<Features>) -> Handle {
    let session = SessionLimits { features, ..SessionLimits::default() };
    let config = Config { listen, session, ..Config::new(Arc::new(Script::new())) };
    Worker::bind(config).and_then(Worker::spawn).expect("a worker")
}

fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn runs(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i / 100) as u8 ^ (i >> 17) as u8).collect()
}

fn to(dst: u64) -> Upload {
    Upload { dst, stream: 0, waits: true, device: None }
}

fn from(src: u64) -> Download {
    Download { src, stream: 0, device: None }
}

fn malloc(connection: &Connection, len: usize) -> u64 {
    connection.ask(&op::Malloc { size: len as u64, flags: 0 }).expect("memory").device_ptr
}

/// Reads memory as it is.
fn read(connection: &Connection, src: u64, len: usize) -> Vec<u8> {
    let mut back = vec![0; len];
    let copy = op::Memcpy { dst: 0, src, size: len as u64, kind: kind::DEVICE_TO_HOST, stream: 0 };
    connection.read(&copy, Extra::default(), &mut back).expect("read");
    back
}

#[test]
fn what_can_be_packed_is_and_the_rest_goes_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("worker");
    for address in ["127.0.0.1:0".into(), Address::Unix(path.clone()), Address::Shm(path)] {
        let worker = worker(address, SessionLimits::default().features);
        let connection = connect(worker.local_addr(), CompressUse::Always);
        assert!(connection.features().contains(Features::PACKED));
        // The last is in more parts than are asked for at a time.
        for len in [PACKED_MIN_BYTES, MIB - 1, MIB, MIB + 1, 3 * MIB + 77, 34 * MIB] {
            let dst = malloc(&connection, len);
            let mixed = [runs(len / 2), noise(len - len / 2)].concat();
            let all = [(runs(len), len / 8), (noise(len), len + len / 8), (mixed, len - len / 4)];
            for (bytes, most) in all.into_iter().take(if len > 4 * MIB { 1 } else { 3 }) {
                let before = connection.stats();
                let is_packed = connection.upload_packed(&to(dst), &bytes, false, true).expect("sent");
                if len > MIB {
                    assert!(is_packed, "{len}: in parts");
                    assert!(read(&connection, dst, len) == bytes);
                    let sent = connection.stats().bytes_sent - before.bytes_sent;
                    assert!(sent < most as u64 + 4096, "{len}: {sent} bytes");
                } else if !is_packed {
                    let extra = Extra { inline: &bytes, ..Extra::default() };
                    let copy =
                        op::Memcpy { dst, src: 0, size: len as u64, kind: kind::HOST_TO_DEVICE, stream: 0 };
                    connection.tell_with(&copy, extra).expect("sent");
                }
                let before = connection.stats();
                let mut back = vec![0; len];
                assert_eq!(connection.download_packed(&from(dst), &mut back), Ok(true));
                assert!(back == bytes, "{len}");
                let after = connection.stats();
                let received = after.bytes_received - before.bytes_received;
                assert!(received < most as u64 + 4096, "{len}: {received} bytes");
                assert_eq!(after.round_trips - before.round_trips, 1, "one wait, however many parts");
            }
            connection.tell(&op::Free { device_ptr: dst }).expect("sent");
        }
    }
}

#[test]
fn few_bytes_and_links_within_a_machine_are_left_alone() {
    let worker = worker("127.0.0.1:0".into(), SessionLimits::default().features);
    for (compress, len) in [
        (CompressUse::Always, PACKED_MIN_BYTES - 1),
        (CompressUse::Auto, 8 * MIB),
        (CompressUse::Off, 8 * MIB),
    ] {
        let connection = connect(worker.local_addr(), compress);
        assert_eq!(connection.features().contains(Features::PACKED), compress == CompressUse::Always);
        let before = connection.stats();
        assert_eq!(connection.upload_packed(&to(0), &vec![0; len], false, false), Ok(false));
        assert_eq!(connection.download_packed(&from(0), &mut vec![0; len]), Ok(false));
        assert_eq!((connection.pack(&vec![0; len]), connection.packs(len)), (None, false));
        assert_eq!(connection.stats(), before, "{compress:?}: nothing is sent");
    }
}

#[test]
fn workers_without_the_feature_are_used_as_before() {
    let all = SessionLimits::default().features.expect("features");
    for features in [None, Some(all.without(Features::PACKED))] {
        let worker = worker("127.0.0.1:0".into(), features);
        let connection = connect(worker.local_addr(), CompressUse::Always);
        assert!(!connection.features().contains(Features::PACKED));
        let before = connection.stats();
        assert_eq!(connection.upload_packed(&to(0), &runs(2 * MIB), false, false), Ok(false));
        assert_eq!(connection.download_packed(&from(0), &mut vec![0; 2 * MIB]), Ok(false));
        assert_eq!(connection.pack(&runs(2 * MIB)), None);
        assert_eq!(connection.stats(), before);
    }
}

#[test]
fn a_copy_that_fails_does_so_once() {
    let worker = worker("127.0.0.1:0".into(), SessionLimits::default().features);
    let connection = connect(worker.local_addr(), CompressUse::Always);
    let len = 3 * MIB;
    let dst = malloc(&connection, len);
    let invalid = Err(CallError::Hip(HipError::INVALID_VALUE));
    assert_eq!(connection.upload_packed(&to(dst + 8), &runs(len), false, false), Ok(true));
    assert!(connection.may_owe_errors());
    assert_eq!(connection.ask(&op::DeviceSynchronize {}), invalid.map(|_: bool| ()));
    assert_eq!(connection.ask(&op::DeviceSynchronize {}), Ok(()));
    assert_eq!(read(&connection, dst, len), vec![0; len], "nothing was written");
    // An error of an earlier request is told by the first part, once.
    connection.tell(&op::Free { device_ptr: 0x77 }).expect("sent");
    let mut back = vec![0; len];
    assert!(matches!(connection.download_packed(&from(dst), &mut back), Err(CallError::Hip(_))));
    assert_eq!(connection.download_packed(&from(dst), &mut back), Ok(true));
    for len in [len, 100 * MIB] {
        let mut back = vec![0; len];
        assert_eq!(connection.download_packed(&from(dst + 8), &mut back), invalid);
        assert_eq!(connection.ask(&op::Ping {}), Ok(()), "no reply is left over");
    }
    assert_eq!(connection.ask(&op::DeviceSynchronize {}), Ok(()));
}

/// Memory that the worker is taken to know is told so, and the last part of a copy that waits does.
#[test]
fn parts_say_what_they_are_for() {
    let worker = FakeWorker::start(|asked| match asked.op {
        Opcode::OFFER => Reaction::Good(bytes(&op::OfferReply { features: u64::MAX })),
        _ => easy(asked),
    });
    let connection = connect(worker.address, CompressUse::Always);
    let sent = [runs(MIB), noise(MIB), runs(5)].concat();
    connection.upload_packed(&to(0x1000), &sent, true, false).expect("sent");
    connection.ask(&op::Ping {}).expect("an answer");
    let asked = worker.until(Opcode::PING);
    let puts: Vec<_> = asked.iter().filter(|asked| asked.op == Opcode::PUT_PACKED).collect();
    let fields: Vec<_> = puts.iter().map(|asked| asked.as_op::<op::PutPacked>()).collect();
    let facts =
        |put: &op::PutPacked| (put.offset, put.length, put.packed < put.length, put.waits, put.purpose);
    let mib = MIB as u64;
    assert_eq!(
        fields.iter().map(facts).collect::<Vec<_>>(),
        [
            (0, mib, true, 0, op::purpose::KNOWN),
            (mib, mib, false, 0, op::purpose::KNOWN),
            (2 * mib, 5, false, 1, op::purpose::KNOWN)
        ]
    );
    assert!(fields.iter().all(|put| (put.dst, put.size) == (0x1000, sent.len() as u64)));
    assert!(puts[1].tail == sent[MIB..2 * MIB], "what cannot be packed goes as it is");
}

#[test]
fn a_worker_that_sends_other_bytes_harms_nobody() {
    let frame = |bytes: &[u8]| {
        let (mut packer, mut packed) = (Packer::new().expect("memory"), Vec::new());
        assert!(packer.pack(bytes, &mut packed));
        packed
    };
    let len = 100_000;
    let good = frame(&runs(len));
    for (what, is_packed, tail, is_right) in [
        ("what was asked for", 1, good.clone(), true),
        ("all of it, not packed", 0, runs(len), true),
        ("fewer bytes", 0, runs(len - 1), false),
        ("no bytes", 0, Vec::new(), false),
        ("a frame that is longer", 1, frame(&runs(len + 1)), false),
        ("a frame that is shorter", 1, frame(&runs(len - 1)), false),
        ("a frame of far more", 1, frame(&vec![0; 64 * MIB]), false),
        ("a frame that is cut off", 1, good[..good.len() - 1].to_vec(), false),
        ("a byte behind the frame", 1, [&good[..], b"x"].concat(), false),
        ("no frame", 1, noise(1000), false),
        ("nothing", 1, Vec::new(), false),
    ] {
        let reply = Arc::new(Mutex::new((is_packed, tail)));
        let worker = FakeWorker::start(move |asked| match asked.op {
            Opcode::OFFER => Reaction::Good(bytes(&op::OfferReply { features: u64::MAX })),
            Opcode::GET_PACKED => {
                let (is_packed, tail) = reply.lock().expect("no panic").clone();
                Reaction::GoodWith(bytes(&GetPackedReply { is_packed, reserved: 0 }), tail)
            }
            _ => easy(asked),
        });
        let connection = connect(worker.address, CompressUse::Always);
        let mut back = vec![0x33; len + 64];
        let got = connection.download_packed(&from(0x1000), &mut back[..len]);
        assert!(back[len..].iter().all(|byte| *byte == 0x33), "{what}: behind the copy");
        if is_right {
            assert_eq!(got, Ok(true), "{what}");
            assert!(back[..len] == runs(len), "{what}");
        } else {
            assert_eq!(got, Err(CallError::Hip(HipError::UNKNOWN)), "{what}");
            assert_eq!(connection.ask(&op::Ping {}), Ok(()), "{what}: the connection goes on");
        }
    }
    // More bytes than a frame of that length can have are not kept.
    let worker = FakeWorker::start(|asked| match asked.op {
        Opcode::OFFER => Reaction::Good(bytes(&op::OfferReply { features: u64::MAX })),
        Opcode::GET_PACKED => {
            Reaction::GoodWith(bytes(&GetPackedReply { is_packed: 1, reserved: 0 }), noise(200_000))
        }
        _ => easy(asked),
    });
    let connection = connect(worker.address, CompressUse::Always);
    let got = connection.download_packed(&from(0x1000), &mut vec![0; 100_000]);
    assert_eq!(got, Err(CallError::Hip(HipError::UNKNOWN)));
    assert_eq!(connection.ask(&op::Ping {}), Ok(()));
}

#[test]
fn threads_copy_at_once() {
    let worker = worker("127.0.0.1:0".into(), SessionLimits::default().features);
    let connection = connect(worker.local_addr(), CompressUse::Always);
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let connection = &connection;
            scope.spawn(move || {
                let len = 3 * MIB + seed;
                let mut sent = runs(len);
                sent[0] = seed as u8;
                let dst = malloc(connection, len);
                for _ in 0..5 {
                    assert_eq!(connection.upload_packed(&to(dst), &sent, false, false), Ok(true));
                    let mut back = vec![0; len];
                    assert_eq!(connection.download_packed(&from(dst), &mut back), Ok(true));
                    assert!(back == sent);
                }
            });
        }
    });
}
