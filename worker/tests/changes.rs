//! Tests of what a worker tells of memory that its client has a copy of: with a device that notes what is written, and with one that does
//! not.

mod common;

use common::*;
use hipr_io::unpack_all;
use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult};
use hipr_worker::{Config, Handle, Worker};

const PAGE: u64 = PAGE_BYTES;
const INVALID: HipError = HipError::INVALID_VALUE;
/// Devices: one that notes what is written, one whose memory is compared.
const DEVICES: [&str; 2] = ["sim", "script"];

/// A change: the offset of a run of pages, and the bytes or the number of zeros.
#[derive(Clone, Debug, PartialEq)]
enum Change {
    Bytes(u64, Vec<u8>),
    Zeros(u64, u64),
}

/// A way to make the device write, with its name.
type Way<'a> = (&'a str, &'a dyn Fn(&mut Peer));

fn start(name: &str, configure: impl FnOnce(&mut Config)) -> Handle {
    let mut config = Config::new(device(name));
    config.listen = "127.0.0.1:0".into();
    config.io = event_loop();
    configure(&mut config);
    Worker::bind(config).unwrap().spawn().unwrap()
}

impl Peer {
    /// Opens a session that has the feature.
    fn paged(worker: &Handle) -> Self {
        let mut peer = Self::hello(worker.local_addr());
        let offer = Offer { features: Features::PAGES.bits(), part: 0 };
        assert_eq!(peer.call(&offer).unwrap().features, Features::PAGES.bits());
        peer
    }

    /// Allocates memory of which the client knows that it is zeros.
    fn watched(&mut self, length: u64) -> u64 {
        let address = self.call(&MallocHost { size: length, flags: 0 }).unwrap().device_ptr;
        self.call(&MemWatch { address, length }).unwrap();
        self.fill(address, 0, length);
        address
    }

    fn fill(&mut self, dst: u64, value: i32, size: u64) {
        self.forget(&MemsetAsync(Memset { dst, value, size, stream: 0 }), &[]);
    }

    fn push(&mut self, address: u64, bytes: &[u8]) {
        self.forget(&MemPush { address, length: bytes.len() as u64, stream: 0 }, bytes);
    }

    fn ask_changes(&mut self, address: u64, length: u64) -> HipResult<(MemChangesReply, Vec<u8>)> {
        self.call_inline(&MemChanges { address, length, stream: 0 }, &[])
    }

    /// Returns all changes of a range; asks again for what a reply does not cover. `None` if they are not known.
    fn changes(&mut self, address: u64, length: u64) -> Option<Vec<Change>> {
        let (mut all, mut done) = (Vec::new(), 0);
        while done < length {
            let request = MemChanges { address: address + done, length: length - done, stream: 0 };
            let (reply, tail) = self.call_inline(&request, &[]).unwrap();
            let changes = Changes::parse(&request, &reply, &tail).expect("a reply that makes sense")?;
            all.extend(changes.iter().map(|(start, pages)| match pages {
                Pages::Bytes(bytes) => Change::Bytes(done + start, bytes.to_vec()),
                Pages::Zeros(len) => Change::Zeros(done + start, len),
            }));
            done += reply.covered;
        }
        Some(all)
    }
}

/// Returns `len` zeros but for some bytes.
fn zeros_but(len: u64, bytes: &[(u64, u8)]) -> Vec<u8> {
    let mut all = vec![0; len as usize];
    bytes.iter().for_each(|&(at, byte)| all[at as usize] = byte);
    all
}

#[test]
fn what_the_device_writes_is_told_once_and_page_by_page() {
    for name in DEVICES {
        let worker = start(name, |_| {});
        let mut peer = Peer::paged(&worker);
        let length = 200 * PAGE + 100;
        let memory = peer.watched(length);
        assert_eq!(peer.changes(memory, length), Some(vec![]), "{name}: zeros are known");
        peer.fill(memory + 5 * PAGE - 1, 7, 2);
        peer.fill(memory + 9 * PAGE + 3, 8, 1);
        peer.fill(memory + length - 1, 9, 1);
        let expected = vec![
            Change::Bytes(4 * PAGE, zeros_but(2 * PAGE, &[(PAGE - 1, 7), (PAGE, 7)])),
            Change::Bytes(9 * PAGE, zeros_but(PAGE, &[(3, 8)])),
            Change::Bytes(200 * PAGE, zeros_but(100, &[(99, 9)])),
        ];
        assert_eq!(peer.changes(memory, length), Some(expected), "{name}");
        assert_eq!(peer.changes(memory, length), Some(vec![]), "{name}: once");
        // The same bytes again are no change.
        peer.fill(memory + 9 * PAGE + 3, 8, 1);
        peer.fill(memory + 5 * PAGE, 0, 1);
        peer.fill(memory + 4 * PAGE, 0, PAGE);
        assert_eq!(peer.changes(memory, length), Some(vec![Change::Zeros(4 * PAGE, 2 * PAGE)]), "{name}");
    }
}

#[test]
fn every_way_by_which_a_client_makes_the_device_write_is_told() {
    for name in DEVICES {
        let worker = start(name, |_| {});
        let mut peer = Peer::paged(&worker);
        let memory = peer.watched(8 * PAGE);
        let plain = peer.call(&Malloc { size: 1 << 20, flags: 0 }).unwrap().device_ptr;
        peer.fill(plain, 5, 1 << 20);
        assert_eq!(peer.changes(memory, 8 * PAGE), Some(vec![]));
        let at = memory + PAGE - 2;
        let expected = |value: u8, len: u64| {
            let pages = 2 * PAGE;
            let bytes: Vec<_> = (0..len).map(|i| (PAGE - 2 + i, value)).collect();
            Some(vec![Change::Bytes(0, zeros_but(pages, &bytes))])
        };
        let (h2d, d2d) = (kind::HOST_TO_DEVICE, kind::DEVICE_TO_DEVICE);
        let copy = |kind| Memcpy { dst: at, src: plain, size: 4, kind, stream: 0 };
        let rows = |kind| Memcpy2D {
            dst: at,
            dpitch: 2,
            src: plain,
            spitch: 2,
            width: 2,
            height: 2,
            kind,
            reserved: 0,
            stream: 0,
        };
        let set = |size| Memset { dst: at, value: 0x0505_0505, size, stream: 0 };
        let ways: [Way<'_>; 9] = [
            ("MEMCPY H2D", &|peer| peer.forget(&copy(h2d), &[5; 4])),
            ("MEMCPY_ASYNC H2D", &|peer| peer.forget(&MemcpyAsync(copy(h2d)), &[5; 4])),
            ("MEMCPY D2D", &|peer| peer.forget(&copy(d2d), &[])),
            ("MEMCPY_2D H2D", &|peer| peer.forget(&rows(h2d), &[5; 4])),
            ("MEMCPY_2D D2D", &|peer| peer.forget(&rows(d2d), &[])),
            ("MEMCPY_HTOD", &|peer| peer.forget(&MemcpyHtod(copy(h2d)), &[5; 4])),
            ("MEMSET", &|peer| peer.forget(&set(4), &[])),
            ("MEMSET_D16", &|peer| peer.forget(&MemsetD16(set(2)), &[])),
            ("MEMSET_D32", &|peer| peer.forget(&MemsetD32(set(1)), &[])),
        ];
        for (way, write) in ways {
            write(&mut peer);
            assert_eq!(peer.changes(memory, 8 * PAGE), expected(5, 4), "{name}: {way}");
            peer.fill(memory, 0, 8 * PAGE);
            assert_eq!(
                peer.changes(memory, 8 * PAGE),
                Some(vec![Change::Zeros(0, 2 * PAGE)]),
                "{name}: {way}"
            );
        }
    }
}

#[test]
fn what_the_client_sends_is_told_only_where_the_device_wrote_too() {
    for name in DEVICES {
        let worker = start(name, |_| {});
        let mut peer = Peer::paged(&worker);
        let length = 1000 * PAGE;
        let memory = peer.watched(length);
        // Few bytes, a page, and more than is collected before it is written.
        let many: Vec<u8> = (0..500 * PAGE).map(|i| (i % 251) as u8).collect();
        peer.push(memory + 10, &[1, 2, 3]);
        peer.push(memory + 3 * PAGE, &vec![4; PAGE as usize]);
        peer.push(memory + 100 * PAGE, &many);
        assert_eq!(peer.changes(memory, length), Some(vec![]), "{name}: the client knows it");
        peer.push(memory + 20, &[5]);
        peer.fill(memory + 4095, 6, 1);
        peer.fill(memory + 700 * PAGE, 7, 1);
        let first = zeros_but(PAGE, &[(10, 1), (11, 2), (12, 3), (20, 5), (4095, 6)]);
        let expected = vec![Change::Bytes(0, first), Change::Bytes(700 * PAGE, zeros_but(PAGE, &[(0, 7)]))];
        assert_eq!(peer.changes(memory, length), Some(expected), "{name}");
    }
}

#[test]
fn a_range_is_told_in_parts() {
    for name in DEVICES {
        let worker = start(name, |_| {});
        let mut peer = Peer::paged(&worker);
        // So many runs that one reply has no room for them.
        let rows = u64::from(PAGE_RUNS_MAX) + 500;
        let length = 2 * rows * PAGE;
        let memory = peer.watched(length);
        let copy = Memcpy2D {
            dst: memory + 1,
            dpitch: 2 * PAGE,
            src: 0,
            spitch: 1,
            width: 1,
            height: rows,
            kind: kind::HOST_TO_DEVICE,
            reserved: 0,
            stream: 0,
        };
        peer.forget(&copy, &vec![1; rows as usize]);
        let (reply, tail) = peer.ask_changes(memory, length).unwrap();
        assert_eq!(reply.is_known, 1);
        assert!(reply.num_runs <= PAGE_RUNS_MAX && reply.covered < length && reply.covered > length / 2);
        let runs = u64::from(reply.num_runs);
        assert_eq!((runs, tail.len() as u64), (reply.covered / PAGE / 2, runs * (12 + PAGE)), "{name}");
        let rest = peer.changes(memory + reply.covered, length - reply.covered).unwrap();
        assert_eq!(rest.len() as u64, rows - runs, "{name}");
        assert_eq!(peer.changes(memory, length), Some(vec![]));
        // A part of the range, and the rest.
        peer.fill(memory, 3, length);
        let part = |from: u64, pages: u64| Some(vec![Change::Bytes(from, vec![3; (pages * PAGE) as usize])]);
        assert_eq!(peer.changes(memory + 8 * PAGE, 2 * PAGE), part(0, 2), "{name}");
        assert_eq!(
            peer.changes(memory, 16 * PAGE).map(|all| all.len()),
            Some(2),
            "{name}: before and behind"
        );
    }
}

#[test]
fn only_a_clients_own_watched_memory_is_told() {
    for name in DEVICES {
        let worker = start(name, |_| {});
        let (mut peer, mut other) = (Peer::paged(&worker), Peer::paged(&worker));
        let mut without = Peer::hello(worker.local_addr());
        let memory = peer.watched(3 * PAGE + 5);
        let unwatched = peer.call(&Malloc { size: 100, flags: 0 }).unwrap().device_ptr;
        for (address, length) in [
            (memory + 1, 1),
            (memory + PAGE - 1, 1),
            (memory, 3 * PAGE + 6),
            (memory + 3 * PAGE, 6),
            (memory + 4 * PAGE, 0),
            (memory - PAGE, PAGE),
            (memory, u64::MAX),
            (u64::MAX, 1),
            (0, 0),
            (unwatched, 1),
        ] {
            assert_eq!(
                peer.ask_changes(address, length).map(drop),
                Err(INVALID),
                "{name}: {address:#x} {length}"
            );
        }
        assert_eq!(other.ask_changes(memory, 1).map(drop), Err(INVALID), "{name}: another session's");
        assert_eq!(other.call(&MemWatch { address: memory, length: 1 }), Err(INVALID));
        let push = MemPush { address: memory, length: 1, stream: 0 };
        assert_eq!(other.call_with(&push, &[1]), Err(INVALID));
        for (address, length) in [(memory, 3 * PAGE + 6), (memory, 0), (memory + 1, u64::MAX), (0, 8)] {
            assert_eq!(
                peer.call(&MemWatch { address, length }),
                Err(INVALID),
                "{name}: {address:#x} {length}"
            );
        }
        let pushed = MemPush { address: memory + 3 * PAGE, length: 6, stream: 0 };
        assert_eq!(peer.call_with(&pushed, &[1; 6]), Err(INVALID));
        let stream = MemChanges { address: memory, length: 1, stream: 0x1234_5678 };
        assert_eq!(peer.call_inline(&stream, &[]).map(drop), Err(HipError::INVALID_HANDLE));
        let unknown = HipError::NOT_SUPPORTED;
        let address = without.call(&MallocHost { size: 100, flags: 0 }).unwrap().device_ptr;
        assert_eq!(without.call(&MemWatch { address, length: 100 }), Err(unknown), "{name}: not agreed on");
        assert_eq!(without.ask_changes(address, 100).map(drop), Err(unknown));
        let push = MemPush { address, length: 1, stream: 0 };
        assert_eq!(without.call_with(&push, &[1]), Err(unknown));
        // Nothing of that did anything.
        assert_eq!(peer.changes(memory, 3 * PAGE + 5), Some(vec![]), "{name}");
    }
}

#[test]
fn a_watch_ends_with_the_memory() {
    for name in DEVICES {
        let worker = start(name, |_| {});
        let mut peer = Peer::paged(&worker);
        let freed = peer.watched(PAGE);
        peer.call(&FreeHost { device_ptr: freed }).unwrap();
        assert_eq!(peer.ask_changes(freed, 1).map(drop), Err(INVALID), "{name}");
        let freed = peer.call(&MallocAsync { size: PAGE, stream: 0 }).unwrap().device_ptr;
        peer.call(&MemWatch { address: freed, length: PAGE }).unwrap();
        peer.call(&FreeAsync { device_ptr: freed, stream: 0 }).unwrap();
        assert_eq!(peer.ask_changes(freed, 1).map(drop), Err(INVALID), "{name}");
        // A pool may give the same address again: it is not watched.
        let again = peer.call(&MallocAsync { size: PAGE, stream: 0 }).unwrap().device_ptr;
        assert_eq!(peer.ask_changes(again, 1).map(drop), Err(INVALID), "{name}");
        let reset = peer.watched(PAGE);
        peer.call(&DeviceReset {}).unwrap();
        assert_eq!(peer.ask_changes(reset, 1).map(drop), Err(INVALID), "{name}");
        // Another range of the same allocation replaces the first.
        let memory = peer.watched(4 * PAGE);
        peer.call(&MemWatch { address: memory + 100, length: PAGE }).unwrap();
        assert_eq!(peer.ask_changes(memory, 1).map(drop), Err(INVALID), "{name}");
        peer.fill(memory + 99, 1, 2);
        let expected = zeros_but(PAGE, &[(0, 1)]);
        assert_eq!(peer.changes(memory + 100, PAGE), Some(vec![Change::Bytes(0, expected)]), "{name}");
        peer.fill(memory, 2, 100);
        assert_eq!(peer.changes(memory + 100, PAGE), Some(vec![]), "{name}: that is not in the range");
    }
}

#[test]
fn an_error_of_an_earlier_request_loses_no_change() {
    for name in DEVICES {
        let worker = start(name, |_| {});
        let mut peer = Peer::paged(&worker);
        let memory = peer.watched(2 * PAGE);
        peer.fill(memory, 1, 1);
        peer.forget(&Free { device_ptr: 0xdead_0000 }, &[]);
        assert_eq!(peer.ask_changes(memory, 2 * PAGE).map(drop), Err(INVALID), "{name}: the kept error");
        let expected = vec![Change::Bytes(0, zeros_but(PAGE, &[(0, 1)]))];
        assert_eq!(peer.changes(memory, 2 * PAGE), Some(expected), "{name}");
        // Whoever wants no answer is told nothing, and takes nothing.
        peer.fill(memory, 2, 1);
        peer.forget(&MemChanges { address: memory, length: 2 * PAGE, stream: 0 }, &[]);
        let expected = vec![Change::Bytes(0, zeros_but(PAGE, &[(0, 2)]))];
        assert_eq!(peer.changes(memory, 2 * PAGE), Some(expected), "{name}");
    }
}

#[test]
fn changes_come_behind_the_streams_work() {
    let (worker, script) = scripted(|_| {});
    let mut peer = Peer::paged(&worker);
    let memory = peer.watched(PAGE);
    let stream = peer.call(&StreamCreate { flags: 1, priority: 0 }).unwrap().stream;
    peer.call(&DeviceSynchronize {}).unwrap();
    script.hold(0, stream);
    peer.forget(&MemsetAsync(Memset { dst: memory, value: 3, size: 1, stream }), &[]);
    assert_eq!(peer.changes(memory, PAGE), Some(vec![]), "another stream does not wait for it");
    let call =
        peer.send(&MemChanges { address: memory, length: PAGE, stream }, &[], hipr_proto::ReplyMode::Always);
    peer.flush();
    script.release(0, stream);
    let (reply, tail) = peer.reply::<MemChanges>(call.unwrap()).unwrap();
    assert_eq!((reply.covered, reply.num_runs, reply.is_known), (PAGE, 1, 1));
    assert_eq!(tail[12..], zeros_but(PAGE, &[(0, 3)]));
}

#[test]
fn a_device_that_fails_leaves_nothing_known() {
    let (worker, script) = scripted(|_| {});
    let mut peer = Peer::paged(&worker);
    let memory = peer.watched(PAGE);
    peer.fill(memory, 1, 1);
    peer.call(&DeviceSynchronize {}).unwrap();
    script.fail_next("read", HipError::LAUNCH_FAILURE);
    assert_eq!(peer.ask_changes(memory, PAGE).map(drop), Err(HipError::LAUNCH_FAILURE));
    assert_eq!(peer.changes(memory, PAGE), None, "what was taken may be lost");
    peer.call(&MemWatch { address: memory, length: PAGE }).unwrap();
    let expected = vec![Change::Bytes(0, zeros_but(PAGE, &[(0, 1)]))];
    assert_eq!(peer.changes(memory, PAGE), Some(expected), "watched anew");
}

#[test]
fn copies_of_what_the_client_knows_have_a_limit() {
    for name in DEVICES {
        let worker = start(name, |config| {
            config.session.twin_max_bytes = 3 * PAGE;
            config.session.memory_max_bytes = 40 * PAGE;
        });
        let mut peer = Peer::paged(&worker);
        let memory = peer.watched(10 * PAGE);
        peer.fill(memory, 1, 3 * PAGE);
        let expected = vec![Change::Bytes(0, vec![1; 3 * PAGE as usize])];
        assert_eq!(peer.changes(memory, 10 * PAGE), Some(expected), "{name}");
        peer.fill(memory + 5 * PAGE, 1, 1);
        assert_eq!(peer.changes(memory, 10 * PAGE), None, "{name}: a page too many");
        assert_eq!(
            peer.changes(memory, 10 * PAGE),
            None,
            "{name}: nothing is known until it is watched anew"
        );
        peer.call(&MemWatch { address: memory, length: 10 * PAGE }).unwrap();
        peer.fill(memory, 0, 10 * PAGE);
        peer.push(memory, &vec![2; 3 * PAGE as usize]);
        assert_eq!(peer.changes(memory, 10 * PAGE), Some(vec![]), "{name}");
        // Memory that the client asks for goes before.
        let most = peer.call(&Malloc { size: 30 * PAGE, flags: 0 });
        assert!(most.is_ok(), "{name}: the limit is the client's");
        assert_eq!(peer.call(&Malloc { size: 1, flags: 0 }).map(drop), Err(HipError::OUT_OF_MEMORY));
        assert_eq!(peer.changes(memory, 10 * PAGE), None, "{name}");
    }
}

#[test]
fn sessions_that_share_memory_are_each_told_of_all_changes() {
    let worker = start("sim", |_| {});
    let (mut lender, mut borrower) = (Peer::paged(&worker), Peer::paged(&worker));
    let memory = lender.call(&Malloc { size: 2 * PAGE, flags: 0 }).unwrap().device_ptr;
    lender.call(&MemWatch { address: memory, length: 2 * PAGE }).unwrap();
    lender.fill(memory, 0, 2 * PAGE);
    assert_eq!(lender.changes(memory, 2 * PAGE), Some(vec![]));
    let handle = lender.call(&IpcGetMemHandle { device_ptr: memory }).unwrap().handle;
    let there = borrower.call(&IpcOpenMemHandle { handle, flags: 1 }).unwrap().device_ptr;
    borrower.call(&MemWatch { address: there, length: 2 * PAGE }).unwrap();
    borrower.fill(there + 5, 1, 1);
    let expected = vec![Change::Bytes(0, zeros_but(PAGE, &[(5, 1)]))];
    assert_eq!(borrower.changes(there, 2 * PAGE), Some(expected.clone()));
    assert_eq!(lender.changes(memory, 2 * PAGE), Some(expected));
    lender.fill(memory + 5, 0, 1);
    let expected = vec![Change::Zeros(0, PAGE)];
    assert_eq!(lender.changes(memory, 2 * PAGE), Some(expected.clone()));
    assert_eq!(borrower.changes(there, 2 * PAGE), Some(expected));
}

/// Returns what a request for packed changes is answered, as one for plain ones, and whether pages came packed.
fn ask_packed(peer: &mut Peer, request: &MemChanges) -> (MemChangesReply, Vec<u8>, bool) {
    let &MemChanges { address, length, stream } = request;
    let (reply, tail) =
        peer.call_inline(&MemChangesPacked { address, length, stream }, &[]).expect("an answer");
    let MemChangesPackedReply { covered, num_runs, is_known, pages_length, is_packed, .. } = reply;
    let (table, pages) = tail.split_at(num_runs as usize * 12);
    let pages = if is_packed == 1 {
        assert!(pages.len() <= packed_worth_bytes(pages_length as usize) + 64, "it pays");
        unpack_all(pages, pages_length).expect("a frame of this length")
    } else {
        pages.to_vec()
    };
    assert_eq!(pages.len() as u64, pages_length);
    (MemChangesReply { covered, num_runs, is_known }, [table, &pages].concat(), is_packed == 1)
}

#[test]
fn packed_changes_say_what_plain_ones_do() {
    const FEATURES: Features = Features::PAGES.union(Features::PACKED_CHANGES);
    let noise: Vec<u8> = (0..20 * PAGE)
        .scan(1u64, |state, _| {
            *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            Some((*state >> 33) as u8)
        })
        .collect();
    let length = 40 << 20;
    for name in DEVICES {
        let worker = start(name, |config| config.session.memory_max_bytes = 1 << 30);
        let [mut plain, mut packing] = [0; 2].map(|_| Peer::offering(worker.local_addr(), FEATURES).0);
        let memory = [plain.watched(length), packing.watched(length)];
        type Write<'a> = &'a dyn Fn(&mut Peer, u64);
        let cases: [(&str, bool, u64, Write<'_>); 7] = [
            ("nothing", false, length, &|_, _| {}),
            ("one byte", true, length, &|peer, at| peer.fill(at + 5 * PAGE, 7, 1)),
            ("a short last page", false, 3 * PAGE + 100, &|peer, at| peer.fill(at + 3 * PAGE, 9, 100)),
            ("noise", false, length, &|peer, at| peer.h2d(at + 3, &noise, 0)),
            ("zeros", false, length, &|peer, at| peer.fill(at, 0, 30 * PAGE)),
            ("bytes and zeros", true, length, &|peer, at| {
                peer.fill(at + 100 * PAGE, 1, 50 * PAGE);
                peer.fill(at + 110 * PAGE, 0, PAGE);
            }),
            ("more than one answer has", true, length, &|peer, at| peer.fill(at, 3, length)),
        ];
        for (what, is_packed, length, write) in cases {
            write(&mut plain, memory[0]);
            write(&mut packing, memory[1]);
            let expected = plain.changes(memory[0], length).expect("they are known");
            let (mut all, mut done, mut came_packed) = (Vec::new(), 0, false);
            while done < length {
                let request = MemChanges { address: memory[1] + done, length: length - done, stream: 0 };
                let (reply, tail, came) = ask_packed(&mut packing, &request);
                assert!(tail.len() as u64 <= PACKED_PAGES_MAX * (PAGE + 12), "{name}, {what}");
                let changes =
                    Changes::parse(&request, &reply, &tail).expect("it makes sense").expect("known");
                for (start, pages) in changes.iter() {
                    match (pages, all.last_mut()) {
                        (Pages::Bytes(more), Some(Change::Bytes(first, bytes)))
                            if *first + bytes.len() as u64 == done + start =>
                        {
                            bytes.extend_from_slice(more);
                        }
                        (Pages::Bytes(bytes), _) => all.push(Change::Bytes(done + start, bytes.to_vec())),
                        (Pages::Zeros(len), _) => all.push(Change::Zeros(done + start, len)),
                    }
                }
                (done, came_packed) = (done + reply.covered, came_packed || came);
            }
            assert!(all == expected, "{name}, {what}");
            assert_eq!(came_packed, is_packed, "{name}, {what}");
        }
        let request = MemChangesPacked { address: memory[0] + 1, length: 1, stream: 0 };
        assert_eq!(plain.call_inline(&request, &[]).map(drop), Err(INVALID), "{name}");
        let mut other = Peer::paged(&worker);
        let address = other.watched(PAGE);
        let request = MemChangesPacked { address, length: PAGE, stream: 0 };
        assert_eq!(other.call_inline(&request, &[]).map(drop), Err(HipError::NOT_SUPPORTED), "{name}");
    }
}
