//! Tests that memory which a session has leased and does not use is there for others: what one is refused is what it would be refused
//! if nobody had a lease.

mod common;

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use common::{PATIENCE, Peer};
use hipr_proto::op::*;
use hipr_proto::{Call, Features, HipError, HipResult, Op, PLACE_PAGE_BYTES, Wire};
use hipr_worker::{Config, Handle, Worker};

const MIB: u64 = 1 << 20;
const TOTAL: u64 = 1024 * MIB;
const DEVICE: u32 = 2;

fn worker(change: impl FnOnce(&mut Config)) -> Handle {
    let gpu = hipr_sim::Gpu::new(hipr_sim::Config { memory_bytes: Some(TOTAL), ..Default::default() });
    let mut config = Config::new(std::sync::Arc::new(gpu.expect("the emulated GPU")));
    config.listen = "127.0.0.1:0".into();
    config.io = common::event_loop();
    change(&mut config);
    Worker::bind(config).and_then(Worker::spawn).expect("a worker")
}

/// Opens a session that can have a lease and hears recalls.
fn tenant(worker: &Handle) -> Peer {
    let features = Features::PLACES.union(Features::NOTIFICATIONS).bits();
    let mut peer = Peer::connect(worker.local_addr());
    peer.accept_notifications();
    peer.call(&Init {}).expect("a session");
    let accepted = peer.call(&Offer { features, part: 0 });
    assert_eq!(accepted.map(|reply| reply.features), Ok(features));
    peer
}

fn lease(peer: &mut Peer, want_bytes: u64) -> MemLeaseReply {
    peer.call(&MemLease { want_bytes }).expect("a lease")
}

/// Waits for a recall; returns its number.
fn recalled(peer: &mut Peer) -> u64 {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        peer.call(&Ping {}).expect("an answer");
        if let Some((op, fixed, _)) = peer.heard.pop() {
            assert_eq!(op, MemRecall::OPCODE);
            return MemRecall::take(&mut fixed.as_slice()).expect("a whole recall").number;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("nothing is recalled");
}

/// Asks for memory in a thread of its own; returns the address or error, and the session.
fn asks(mut peer: Peer, size: u64) -> JoinHandle<(HipResult<u64>, Peer)> {
    thread::spawn(move || (peer.call(&Malloc { size, flags: 0 }).map(|reply| reply.device_ptr), peer))
}

fn give_back(peer: &mut Peer, bytes: u64, recall: u64) {
    peer.forget(&MemReturn { bytes, allocations: 0, recall }, &[]);
    peer.flush();
}

/// Returns the request that places memory in one of the window's parts of 64 pages each.
fn at(got: &MemLeaseReply, part: u64, size: u64) -> MallocAt {
    MallocAt { device_ptr: got.window_start + part * 64 * PLACE_PAGE_BYTES, size, kind: DEVICE, flags: 0 }
}

/// Asks for the bytes of the window's first 64 MiB, which nobody reads: the session stands still, with what follows.
fn stand_still(holder: &mut Peer, got: &MemLeaseReply) -> Call {
    let copy =
        Memcpy { dst: 0, src: got.window_start, size: 64 * MIB, kind: kind::DEVICE_TO_HOST, stream: 0 };
    let copied = holder.send(&copy, &[], hipr_proto::ReplyMode::Always).expect("it is answered");
    holder.flush();
    copied
}

/// Reads what [`stand_still`] has asked for.
fn go_on(holder: &mut Peer, copied: Call) {
    let (_, bytes) = holder.reply::<Memcpy>(copied).expect("zeros");
    assert_eq!(bytes.len() as u64, 64 * MIB);
}

#[test]
fn what_is_not_used_is_there_for_others_to_the_byte() {
    for (used, size, fits) in [
        (0, TOTAL, true),
        (0, TOTAL + 1, false),
        (100 * MIB, TOTAL - 100 * MIB, true),
        (100 * MIB, TOTAL - 100 * MIB + 1, false),
    ] {
        let worker = worker(|_| {});
        let mut holder = tenant(&worker);
        let got = lease(&mut holder, 0);
        assert_eq!(got.added_bytes, TOTAL / 2);
        if used > 0 {
            let at = MallocAt { device_ptr: got.window_start, size: used, kind: DEVICE, flags: 0 };
            assert_eq!(holder.call(&at), Ok(()));
        }
        let asking = asks(tenant(&worker), size);
        let number = recalled(&mut holder);
        give_back(&mut holder, got.added_bytes - used, number);
        let (result, _peer) = asking.join().expect("no panic");
        assert_eq!(result.is_ok(), fits, "{size} bytes beside {used} that are used: {result:?}");
        assert!(fits || result == Err(HipError::OUT_OF_MEMORY));
        holder.call(&Ping {}).expect("an answer");
        assert!(holder.heard.is_empty(), "it is asked once");
    }
}

#[test]
fn whoever_has_memory_left_asks_nobody() {
    let worker = worker(|_| {});
    let mut holder = tenant(&worker);
    lease(&mut holder, 0);
    let (result, _peer) = asks(tenant(&worker), TOTAL / 2).join().expect("no panic");
    assert!(result.is_ok());
    holder.call(&Ping {}).expect("an answer");
    assert!(holder.heard.is_empty());
}

#[test]
fn an_answer_is_heard_before_the_work_that_is_in_its_way() {
    let worker = worker(|_| {});
    let mut holder = tenant(&worker);
    let got = lease(&mut holder, 0);
    assert_eq!(holder.call(&at(&got, 0, 64 * MIB)), Ok(()));
    let asking = asks(tenant(&worker), TOTAL / 2 + 300 * MIB);
    let number = recalled(&mut holder);
    let copied = stand_still(&mut holder, &got);
    holder.forget(&at(&got, 1, 100 * MIB), &[]);
    give_back(&mut holder, got.added_bytes - 164 * MIB, number);
    let (result, mut other) = asking.join().expect("no panic");
    assert!(result.is_ok(), "{result:?}");
    go_on(&mut holder, copied);
    assert_eq!(holder.call(&Ping {}), Ok(()));
    assert_eq!(
        holder.call(&Free { device_ptr: at(&got, 1, 0).device_ptr }),
        Ok(()),
        "what was placed before is there"
    );
    // Nothing is counted twice: what is left fits, and not one byte more.
    let left = TOTAL / 2 - 300 * MIB - 64 * MIB;
    let (more, none) = (Malloc { size: left - 100 * MIB, flags: 0 }, Malloc { size: 1, flags: 0 });
    assert!(other.call(&more).is_ok());
    let asking = thread::spawn(move || other.call(&none).map(drop));
    let number = recalled(&mut holder);
    give_back(&mut holder, 0, number);
    assert_eq!(asking.join().expect("no panic"), Err(HipError::OUT_OF_MEMORY));
}

#[test]
fn an_answer_before_its_turn_is_counted_once_whatever_is_asked_meanwhile() {
    let worker = worker(|_| {});
    let mut holder = tenant(&worker);
    let got = lease(&mut holder, 0);
    assert_eq!(holder.call(&at(&got, 0, 64 * MIB)), Ok(()));
    let copied = stand_still(&mut holder, &got);
    // The first two recalls of this worker: some is given back, then nothing.
    give_back(&mut holder, 100 * MIB, 1);
    let (first, _first) = asks(tenant(&worker), TOTAL / 2 + 100 * MIB).join().expect("no panic");
    assert!(first.is_ok(), "{first:?}");
    give_back(&mut holder, 0, 2);
    let (second, _second) = asks(tenant(&worker), 1).join().expect("no panic");
    assert_eq!(second, Err(HipError::OUT_OF_MEMORY));
    go_on(&mut holder, copied);
    let left = got.added_bytes - 164 * MIB;
    assert_eq!(holder.call(&at(&got, 1, left)), Ok(()), "the rest of the lease");
    assert_eq!(holder.call(&at(&got, 200, 1)), Err(HipError::OUT_OF_MEMORY), "and not one byte more");
}

#[test]
fn a_session_that_ends_or_has_nothing_left_answers_by_that() {
    let worker = worker(|_| {});
    let mut holder = tenant(&worker);
    lease(&mut holder, 0);
    let asking = asks(tenant(&worker), TOTAL);
    recalled(&mut holder);
    drop(holder);
    assert!(asking.join().expect("no panic").0.is_ok());
}

#[test]
fn whoever_does_not_answer_holds_up_nobody_for_long() {
    let worker = worker(|_| {});
    let mut holder = tenant(&worker);
    let got = lease(&mut holder, 0);
    let (result, mut peer) = asks(tenant(&worker), TOTAL).join().expect("no panic");
    assert_eq!(result, Err(HipError::OUT_OF_MEMORY));
    // It keeps what it has been promised.
    let at = MallocAt { device_ptr: got.window_start, size: got.added_bytes, kind: DEVICE, flags: 0 };
    assert_eq!(holder.call(&at), Ok(()));
    assert!(peer.call(&Malloc { size: TOTAL / 2, flags: 0 }).is_ok());
}

#[test]
fn a_session_gets_its_own_lease_back() {
    let worker = worker(|config| config.session.memory_max_bytes = 600 * MIB);
    let mut holder = tenant(&worker);
    let got = lease(&mut holder, 0);
    assert_eq!(got.added_bytes, 300 * MIB);
    let call = holder.send(&Malloc { size: 600 * MIB, flags: 0 }, &[], hipr_proto::ReplyMode::Always);
    holder.flush();
    // The first recall of this worker.
    give_back(&mut holder, got.added_bytes, 1);
    assert!(holder.reply::<Malloc>(call.expect("it is answered")).is_ok());
    assert_eq!(holder.heard.len(), 1);
}

#[test]
fn all_kinds_of_memory_are_found() {
    type Ask = fn(&mut Peer) -> HipResult<()>;
    const SIZE: u64 = TOTAL - 10 * MIB;
    let kinds: [(&str, Ask); 8] = [
        ("MALLOC", |peer| peer.call(&Malloc { size: SIZE, flags: 0 }).map(drop)),
        ("MALLOC_HOST", |peer| peer.call(&MallocHost { size: SIZE, flags: 0 }).map(drop)),
        ("MALLOC_MANAGED", |peer| peer.call(&MallocManaged { size: SIZE, flags: 1 }).map(drop)),
        ("MALLOC_ASYNC", |peer| peer.call(&MallocAsync { size: SIZE, stream: 0 }).map(drop)),
        ("MEM_ALLOC_PITCH", |peer| {
            peer.call(&MemAllocPitch { width_in_bytes: MIB, height: SIZE / MIB, element_size: 4 }).map(drop)
        }),
        ("HOST_REGISTER", |peer| peer.call(&HostRegister { host_ptr: 0x1000, size_bytes: SIZE, flags: 0 })),
        ("MEM_LEASE", |peer| peer.call(&MemLease { want_bytes: SIZE }).map(drop)),
        ("MALLOC_BATCH", |peer| {
            let mut sizes = [0; 64];
            sizes[..2].copy_from_slice(&[SIZE / 2, SIZE / 2]);
            peer.call(&MallocBatch { count: 2, pad: 0, sizes }).map(drop)
        }),
    ];
    for (name, ask) in kinds {
        let worker = worker(|_| {});
        let mut holder = tenant(&worker);
        let got = lease(&mut holder, 0);
        let mut peer = tenant(&worker);
        let asking = thread::spawn(move || (ask(&mut peer), peer));
        let number = recalled(&mut holder);
        give_back(&mut holder, got.added_bytes, number);
        let (result, _peer) = asking.join().expect("no panic");
        assert_eq!(result, Ok(()), "{name}");
    }
}

/// What all sessions may have together is shared in the same way as what the device has.
#[test]
fn what_all_may_have_is_there_for_others_although_somebody_has_leased_it() {
    // A 16th is set aside for the holder's kernels.
    for (used, beside, fits) in
        [(0, 600 * MIB, true), (100 * MIB, 500 * MIB, true), (100 * MIB, 600 * MIB, false)]
    {
        let total = 700 * MIB;
        let worker = worker(|config| config.session.memory_total_bytes = total);
        let mut holder = tenant(&worker);
        let got = lease(&mut holder, 0);
        assert!(got.added_bytes > 300 * MIB && got.added_bytes <= total / 2, "{}", got.added_bytes);
        if used > 0 {
            let at = MallocAt { device_ptr: got.window_start, size: used, kind: DEVICE, flags: 0 };
            assert_eq!(holder.call(&at), Ok(()));
        }
        let asking = asks(tenant(&worker), beside);
        let number = recalled(&mut holder);
        give_back(&mut holder, got.added_bytes - used, number);
        let (result, _peer) = asking.join().expect("no panic");
        assert_eq!(result.is_ok(), fits, "{beside} bytes beside {used} that are used: {result:?}");
    }
}
