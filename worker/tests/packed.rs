//! Tests of packed copies and code objects: what comes back, what is refused, what damaged frames do, and what memory is counted.

mod common;

use common::*;
use hipr_io::{Packer, unpack_all};
use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult, Wire};
use hipr_worker::{CacheConfig, Config, Handle, SessionLimits, Worker};

const INVALID: HipError = HipError::INVALID_VALUE;
const MISSING: HipError = HipError::NOT_SUPPORTED;
const MAX: usize = PACKED_PART_MAX_BYTES as usize;
/// What a worker reads and writes at a time.
const CHUNK: usize = 128 << 10;
/// The demo's kernels.
static KERNELS: &[u8] = include_bytes!("../../cli/demo/kernels.co");

fn start(name: &str, limits: SessionLimits) -> Handle {
    let mut config = Config::new(device(name));
    config.listen = "127.0.0.1:0".into();
    config.io = event_loop();
    config.session = limits;
    config.cache = Some(CacheConfig { max_bytes: 64 << 20, folder: None, folder_max_bytes: 0 });
    Worker::bind(config).unwrap().spawn().unwrap()
}

/// Opens a session with these features.
fn session(worker: &Handle, features: Features) -> Peer {
    let mut peer = Peer::hello(worker.local_addr());
    let accepted = peer.call(&Offer { features: features.bits(), part: 0 }).unwrap().features;
    assert_eq!(Features::from_bits(accepted), features);
    peer
}

fn all_features() -> Features {
    Features::PACKED.union(Features::PAGES).union(Features::CACHE).union(Features::NAMES)
}

/// Bytes that can be packed: runs, other ones in each piece.
fn runs(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i / 100) as u8 ^ (i / CHUNK) as u8).collect()
}

/// A frame, whether or not that pays.
fn frame(bytes: &[u8]) -> Vec<u8> {
    let (mut packer, mut packed) = (Packer::new().unwrap(), Vec::new());
    packer.begin(bytes.len() as u64).unwrap();
    packer.push(bytes, &mut packed).unwrap();
    packer.finish(&mut packed).unwrap();
    packed
}

fn put(dst: u64, length: usize, packed: usize) -> PutPacked {
    let (length, packed) = (length as u64, packed as u64);
    PutPacked { dst, size: length, offset: 0, length, packed, stream: 0, waits: 0, purpose: purpose::WRITTEN }
}

fn get(src: u64, length: usize) -> GetPacked {
    GetPacked { src, size: length as u64, offset: 0, length: length as u64, stream: 0 }
}

/// Gets a part, unpacked; returns whether it was packed.
fn got(peer: &mut Peer, get: &GetPacked) -> HipResult<(bool, Vec<u8>)> {
    let (reply, inline) = peer.call_inline(get, &[])?;
    let is_packed = reply.is_packed == 1;
    let bytes = if is_packed { unpack_all(&inline, get.length).expect("a whole frame") } else { inline };
    assert_eq!(bytes.len() as u64, get.length);
    Ok((is_packed, bytes))
}

#[test]
fn copies_of_every_size_go_both_ways() {
    for device in ["sim", "script"] {
        let worker = start(device, SessionLimits::default());
        let mut peer = session(&worker, all_features());
        let dst = peer.malloc(MAX as u64 + 1);
        for len in [1, 2, 4095, 4096, CHUNK - 1, CHUNK, CHUNK + 1, 1 << 20, MAX - 1, MAX, MAX + 1] {
            for (packs, bytes) in [(true, runs(len)), (false, pattern(len, len as u64)), (true, vec![0; len])]
            {
                let packed = frame(&bytes);
                for (waits, purpose) in [(0, purpose::WRITTEN), (1, purpose::WRITTEN), (0, purpose::KNOWN)] {
                    peer.call(&Memset { dst, value: 0x55, size: len as u64, stream: 0 }).unwrap();
                    let is_packed = packs && packed.len() < len;
                    let sent = if is_packed { &packed } else { &bytes };
                    let put = PutPacked { waits, purpose, ..put(dst, len, sent.len()) };
                    let done = peer.call_with(&put, sent);
                    if len > MAX {
                        assert_eq!(done, Err(INVALID), "{device}: {len}");
                        assert_eq!(got(&mut peer, &get(dst, len)), Err(INVALID), "{device}: {len}");
                        continue;
                    }
                    assert_eq!(done, Ok(()), "{device}: {len}, {purpose}");
                    assert!(peer.d2h(dst, len as u64, 0).unwrap() == bytes, "{device}: {len}, {purpose}");
                    let (was_packed, back) = got(&mut peer, &get(dst, len)).unwrap();
                    assert!(back == bytes, "{device}: {len} back");
                    assert_eq!(was_packed, packs && len >= 4095, "{device}: {len}");
                }
            }
        }
    }
}

#[test]
fn parts_make_a_whole_copy() {
    let worker = start("sim", SessionLimits::default());
    let mut peer = session(&worker, all_features());
    let bytes = [runs(300_000), pattern(300_000, 3), runs(77)].concat();
    let size = bytes.len() as u64;
    let dst = peer.malloc(size + 8) + 8;
    let mut offset = 0;
    for part in bytes.chunks(100_000) {
        let packed = frame(part);
        let sent = if packed.len() < part.len() { &packed[..] } else { part };
        peer.forget(&PutPacked { size, offset, ..put(dst, part.len(), sent.len()) }, sent);
        offset += part.len() as u64;
    }
    assert!(peer.d2h(dst, size, 0).unwrap() == bytes);
    let parts = (0..size).step_by(70_000).map(|offset| {
        let length = 70_000.min(size - offset);
        got(&mut peer, &GetPacked { size, offset, length, ..get(dst, 0) }).unwrap().1
    });
    assert!(parts.flatten().collect::<Vec<_>>() == bytes);
}

/// Frames that are none, by what is wrong with them.
fn damaged(bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let whole = frame(bytes);
    let mut list = vec![
        ("one byte", vec![0x28]),
        ("no frame", pattern(64, 1)),
        ("a byte behind it", [&whole[..], b"x"].concat()),
        ("two frames", [frame(&bytes[..bytes.len() / 2]), frame(&bytes[bytes.len() / 2..])].concat()),
        ("a frame that is skipped", [&[0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0], &whole[..]].concat()),
        ("too few bytes", frame(&bytes[1..])),
        ("too many bytes", frame(&[bytes, b"x"].concat())),
        ("a window of 2 MiB", [&[0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58], &whole[..]].concat()),
    ];
    for cut in [1, 4, whole.len() / 2, whole.len() - 1] {
        list.push(("cut off", whole[..cut].to_vec()));
    }
    list
}

#[test]
fn damaged_frames_fail_their_request_and_no_other() {
    for device in ["sim", "script"] {
        let worker = start(device, SessionLimits::default());
        let mut peer = session(&worker, all_features());
        peer.call(&CacheOpen { key: [1; 32] }).unwrap();
        for len in [CACHE_CHUNK_MIN_BYTES as usize, 5 * CHUNK + 3] {
            let bytes = runs(len);
            let dst = peer.malloc(len as u64);
            for (what, packed) in damaged(&bytes) {
                for purpose in [purpose::WRITTEN, purpose::KNOWN, purpose::KEPT] {
                    let put = PutPacked { purpose, ..put(dst, len, packed.len()) };
                    assert_eq!(peer.call_with(&put, &packed), Err(INVALID), "{device}: {what}, {purpose}");
                }
                let load = ModuleLoadPacked { data_size: len as u64, packed: packed.len() as u64 };
                assert_eq!(peer.call_with(&load, &packed).map(drop), Err(INVALID), "{device}: {what}");
                // Unanswered, the next answer has the error, once.
                peer.forget(&put(dst, len, packed.len()), &packed);
                assert_eq!(peer.call(&DeviceSynchronize {}), Err(INVALID), "{device}: {what}");
                let good = frame(&bytes);
                assert_eq!(peer.call_with(&put(dst, len, good.len()), &good), Ok(()), "{device}: {what}");
                assert!(peer.d2h(dst, len as u64, 0).unwrap() == bytes, "{device}: {what}");
            }
        }
        assert_eq!(worker.stats().cache().kept_bytes, 0, "nothing of that is kept");
    }
}

/// Changed bits may be noticed or not, as there is no checksum but TCP's; nothing else happens.
#[test]
fn changed_bits_harm_nobody() {
    let worker = start("sim", SessionLimits::default());
    let mut peer = session(&worker, all_features());
    let bytes = runs(3 * CHUNK);
    let dst = peer.malloc(2 * bytes.len() as u64);
    let behind = dst + bytes.len() as u64;
    peer.call(&Memset { dst: behind, value: 0x77, size: bytes.len() as u64, stream: 0 }).unwrap();
    let whole = frame(&bytes);
    for at in (0..whole.len()).step_by(whole.len() / 97 + 1) {
        for bit in [0, 3, 7] {
            let mut changed = whole.clone();
            changed[at] ^= 1 << bit;
            let done = peer.call_with(&put(dst, bytes.len(), changed.len()), &changed);
            assert!(matches!(done, Ok(()) | Err(INVALID)), "{at}: {done:?}");
        }
    }
    let there = peer.d2h(behind, bytes.len() as u64, 0).unwrap();
    assert!(there.iter().all(|byte| *byte == 0x77), "nothing behind the copy is written");
}

#[test]
fn what_a_plain_copy_refuses_is_refused_alike() {
    let worker = start("sim", SessionLimits::default());
    let mut peer = session(&worker, all_features());
    let bytes = runs(CHUNK);
    let (size, packed) = (CHUNK as u64, frame(&bytes));
    let dst = peer.malloc(size);
    let good = put(dst, CHUNK, packed.len());
    for (what, error, put) in [
        ("behind the end", INVALID, PutPacked { size: size + 1, ..good }),
        ("no memory", INVALID, PutPacked { dst: 0xdead_0000, ..good }),
        ("no stream", HipError::INVALID_HANDLE, PutPacked { stream: 77, ..good }),
        ("an offset behind the copy", INVALID, PutPacked { offset: 1, ..good }),
        ("an offset beyond numbers", INVALID, PutPacked { offset: u64::MAX, ..good }),
        ("a size beyond numbers", INVALID, PutPacked { size: u64::MAX, ..good }),
        ("no purpose", INVALID, PutPacked { purpose: 3, ..good }),
        ("kept without a key", INVALID, PutPacked { purpose: purpose::KEPT, ..good }),
        ("fewer bytes than packed ones", INVALID, PutPacked { length: good.packed - 1, ..good }),
        ("no bytes", INVALID, PutPacked { length: 0, ..good }),
    ] {
        assert_eq!(peer.call_with(&put, &packed), Err(error), "{what}");
        let PutPacked { dst: src, size, offset, length, stream, .. } = put;
        if put.purpose == purpose::WRITTEN && length >= good.packed {
            let get = GetPacked { src, size, offset, length, stream };
            assert_eq!(peer.call(&get).map(drop), Err(error), "{what}: to the program");
        }
    }
    assert_eq!(peer.call(&get(dst, 0)).map(drop), Err(INVALID));
    assert!(peer.d2h(dst, size, 0).unwrap().iter().all(|byte| *byte == 0), "nothing was written");
    let stream = peer.stream_create();
    peer.call(&StreamBeginCapture { stream, mode: 2 }).unwrap();
    let plain = peer.call_with(&MemcpyAsync(h2d(dst, size, stream)), &bytes).map(drop);
    assert!(plain.is_err());
    assert_eq!(peer.call_with(&PutPacked { stream, ..good }, &packed), plain);
    assert_eq!(peer.call(&GetPacked { stream, ..get(dst, CHUNK) }).map(drop), plain);
}

#[test]
fn a_session_needs_the_features() {
    let worker = start("sim", SessionLimits::default());
    let packed = frame(&runs(CHUNK));
    let load = ModuleLoadPacked { data_size: CHUNK as u64, packed: packed.len() as u64 };
    for (features, fail) in [
        (Features::NONE, [true, true, true]),
        (all_features().without(Features::PACKED), [true, true, true]),
        (Features::PACKED, [false, true, true]),
        (Features::PACKED.union(Features::PAGES), [false, false, true]),
    ] {
        let mut peer = session(&worker, features);
        let dst = peer.malloc(CHUNK as u64);
        for (purpose, fails) in (0..).zip(fail) {
            let put = PutPacked { purpose, ..put(dst, CHUNK, packed.len()) };
            let expected = if fails { Err(MISSING) } else { Ok(()) };
            assert_eq!(peer.call_with(&put, &packed), expected, "{features}: {purpose}");
        }
        let without = !features.contains(Features::PACKED);
        assert_eq!(peer.call(&get(dst, CHUNK)).is_err(), without);
        let refused = peer.call_with(&load, &packed).expect_err("runs are no code object");
        assert_eq!(refused == MISSING, without, "{features}: {refused}");
    }
    // A client of HIPR 1.0 offers nothing.
    let mut old = Peer::hello(worker.local_addr());
    let dst = old.malloc(CHUNK as u64);
    assert_eq!(old.call_with(&put(dst, CHUNK, packed.len()), &packed), Err(MISSING));
    assert_eq!(old.call(&get(dst, CHUNK)).map(drop), Err(MISSING));
}

#[test]
fn packed_chunks_are_kept_by_the_cache() {
    let worker = start("sim", SessionLimits::default());
    let mut peer = session(&worker, all_features());
    let (key, bytes) = ([5; 32], runs(CHUNK));
    peer.call(&CacheOpen { key }).unwrap();
    let dst = peer.malloc(CHUNK as u64);
    let packed = frame(&bytes);
    let kept = PutPacked { purpose: purpose::KEPT, ..put(dst, CHUNK, packed.len()) };
    assert_eq!(peer.call_with(&kept, &packed), Ok(()));
    let name = *blake3::keyed_hash(&key, &bytes).as_bytes();
    let has = peer.call_with(&CacheHave { count: 1, reserved: 0 }, &name).unwrap().has;
    assert_eq!(has[0], 1, "under the name of the bytes as they are unpacked");
    let short = PutPacked { purpose: purpose::KEPT, ..put(dst, 4096, 4096) };
    assert_eq!(peer.call_with(&short, &bytes[..4096]), Err(INVALID), "no chunk is so short");
}

#[test]
fn packed_code_is_loaded() {
    for device in ["sim", "script"] {
        let worker = start(device, SessionLimits::default());
        let mut peer = session(&worker, all_features());
        let packed = frame(KERNELS);
        let size = KERNELS.len() as u64;
        let load = ModuleLoadPacked { data_size: size, packed: packed.len() as u64 };
        let module = peer.call_with(&load, &packed).unwrap().module;
        let name = ClientName::new(0, 0).unwrap().number();
        peer.forget(&Name { name }, &[]);
        peer.forget(&load, &packed);
        if device == "sim" {
            assert_ne!(peer.function(module, "saxpy"), 0);
            assert_ne!(peer.function(name, "saxpy"), 0);
        }
        assert_eq!(peer.call(&ModuleUnload { module: name }), Ok(()));
        for (what, data_size) in [("longer", size + 1), ("shorter", size - 1), ("beyond", 1 << 29)] {
            let load = ModuleLoadPacked { data_size, ..load };
            assert_eq!(peer.call_with(&load, &packed).map(drop), Err(INVALID), "{device}: {what}");
        }
        let load = ModuleLoadPacked { data_size: packed.len() as u64, ..load };
        assert_eq!(peer.call_with(&load, &packed).map(drop), Err(INVALID), "{device}: not fewer");
        let load = ModuleLoadPacked { data_size: u64::MAX, ..load };
        assert_eq!(peer.call_with(&load, &packed).map(drop), Err(HipError::OUT_OF_MEMORY), "{device}");
    }
}

/// What code is unpacked to counts before it is unpacked; a copy, which has bounds of its own, does not fail for what others collect.
#[test]
fn what_is_unpacked_is_counted() {
    let packed = frame(KERNELS);
    let limits =
        SessionLimits { collect_total_max_bytes: KERNELS.len() + (1 << 20), ..SessionLimits::default() };
    let worker = start("sim", limits);
    let mut peer = session(&worker, all_features());
    let load = ModuleLoadPacked { data_size: KERNELS.len() as u64, packed: packed.len() as u64 };
    for _ in 0..3 {
        assert_eq!(peer.call_with(&load, &packed).map(drop), Err(HipError::OUT_OF_MEMORY));
        let bytes = runs(MAX);
        let dst = peer.malloc(MAX as u64);
        let packed = frame(&bytes);
        assert_eq!(peer.call_with(&put(dst, MAX, packed.len()), &packed), Ok(()));
        let (was_packed, back) = got(&mut peer, &get(dst, MAX)).unwrap();
        assert!(!was_packed && back == bytes, "without room nothing is packed");
        let plain = ModuleLoadData { data_size: KERNELS.len() as u64 };
        let module = peer.call_with(&plain, KERNELS).expect("all of it was given back").module;
        peer.call(&ModuleUnload { module }).unwrap();
    }
}

/// Announces are read from the fixed part: a request that is shorter than that is refused, and the connection goes on.
#[test]
fn short_requests_are_refused() {
    let worker = start("sim", SessionLimits::default());
    let mut peer = session(&worker, all_features());
    let mut fixed = Vec::new();
    put(0, 10, 5).put(&mut fixed);
    use std::io::Write;
    peer.stream.write_all(&message(Opcode::PUT_PACKED, 900, 8, &fixed[..fixed.len() - 1])).unwrap();
    peer.stream.write_all(&message(Opcode::PUT_PACKED, 901, 8, &[&fixed[..], b"abc"].concat())).unwrap();
    assert_eq!(peer.call(&DeviceSynchronize {}), Err(INVALID));
    assert_eq!(peer.call(&DeviceSynchronize {}), Ok(()));
}
