//! Tests that a client which wants to know is told when its requests were carried out, and when the device did their work.

mod common;

use common::Peer;
use hipr_proto::op::*;
use hipr_proto::{FLAG_NO_REPLY, Features, Header, HipError, Op, Opcode, Wire};
use std::io::Write;

const NEEDED: Features = Features::TRACE.union(Features::NOTIFICATIONS);

/// Takes what was told so far: entries, and how many were left out.
fn told(peer: &mut Peer) -> (Vec<TraceEntry>, u32) {
    let (mut entries, mut lost) = (Vec::new(), 0);
    for (op, fixed, tail) in peer.heard.drain(..) {
        if op == Traced::OPCODE {
            let traced = Traced::take(&mut fixed.as_slice()).expect("a whole notification");
            let mut left = tail.as_slice();
            assert!(traced.count as usize <= TRACED_MAX);
            entries.extend((0..traced.count).map(|_| TraceEntry::take(&mut left).expect("a whole entry")));
            assert!(left.is_empty());
            lost += traced.lost;
        }
    }
    (entries, lost)
}

/// Asks until something was told that comes behind the answer.
fn settle(peer: &mut Peer) -> (Vec<TraceEntry>, u32) {
    peer.call(&DeviceSynchronize {}).expect("no error");
    // What is told of that request comes before the answer to the next one.
    peer.call(&Ping {}).expect("an answer");
    told(peer)
}

#[test]
fn each_request_and_its_work_is_told_of() {
    let worker = common::worker("sim");
    let (mut peer, accepted) = Peer::offering(worker.local_addr(), NEEDED);
    assert_eq!(accepted, NEEDED);
    let stream = peer.call(&StreamCreate { flags: 1, priority: 0 }).expect("a stream").stream;
    let ptr = peer.malloc(1 << 20);
    let set = Memset { dst: ptr, value: 7, size: 1 << 20, stream };
    peer.forget(&MemsetAsync(set), &[]);
    peer.forget(&StreamDestroy { stream: 12345 }, &[]);
    let error = peer.call(&StreamSynchronize { stream });
    assert_eq!(error, Err(HipError::INVALID_HANDLE), "requests that fail are told of, too");
    peer.call(&StreamSynchronize { stream }).expect("no error");
    let (entries, lost) = settle(&mut peer);
    assert_eq!(lost, 0);
    // The last one may be told of already.
    let is_request = |entry: &&TraceEntry| entry.kind == trace_kind::REQUEST && entry.request < 10;
    let mut requests: Vec<_> = entries.iter().filter(is_request).copied().collect();
    requests.sort_by_key(|entry| entry.request);
    // INIT and the offer come before.
    let numbers: Vec<u32> = requests.iter().map(|entry| entry.request).collect();
    assert_eq!(numbers, (3..3 + 7).collect::<Vec<u32>>());
    for entry in &requests {
        assert!(entry.first_ns <= entry.begin_ns && entry.begin_ns <= entry.end_ns, "{entry:?}");
        assert_eq!((entry.stream, entry.function), (0, 0));
    }
    assert!(
        requests.is_sorted_by(|one, next| one.end_ns <= next.begin_ns),
        "one after another: {requests:?}"
    );
    let work: Vec<_> = entries.iter().filter(|entry| entry.kind == trace_kind::WORK).collect();
    let [set] = &work[..] else { panic!("one piece of work: {work:?}") };
    assert_eq!((set.request, set.stream, set.function), (5, stream, 0));
    assert!(set.first_ns <= set.begin_ns && set.begin_ns <= set.end_ns, "{set:?}");
    assert!(requests[2].begin_ns <= set.first_ns, "it was enqueued by its request");
    assert!(set.end_ns <= requests[5].end_ns, "and was waited for");
}

#[test]
fn nobody_is_told_who_does_not_want_it() {
    let worker = common::worker("sim");
    for features in [Features::TRACE, Features::NOTIFICATIONS] {
        let (mut peer, accepted) = Peer::offering(worker.local_addr(), features);
        assert_eq!(accepted, features.without(Features::TRACE));
        let ptr = peer.malloc(64);
        peer.forget(&MemsetAsync(Memset { dst: ptr, value: 7, size: 64, stream: 0 }), &[]);
        assert_eq!(settle(&mut peer), (Vec::new(), 0));
    }
}

#[test]
fn many_requests_without_an_answer_are_told_of_in_pieces() {
    let worker = common::worker("sim");
    let (mut peer, _) = Peer::offering(worker.local_addr(), NEEDED);
    let ptr = peer.malloc(64);
    const COUNT: usize = 3 * TRACED_MAX;
    for _ in 0..COUNT {
        peer.forget(&MemsetAsync(Memset { dst: ptr, value: 7, size: 64, stream: 0 }), &[]);
    }
    let (entries, lost) = settle(&mut peer);
    let count = |kind| entries.iter().filter(|entry| entry.kind == kind).count();
    let requests = count(trace_kind::REQUEST);
    assert!((COUNT + 2..=COUNT + 3).contains(&requests), "{requests}");
    assert_eq!((count(trace_kind::WORK), lost), (COUNT, 0));
}

#[test]
fn what_a_client_does_not_read_is_bounded() {
    let worker = common::worker("sim");
    let (mut peer, _) = Peer::offering(worker.local_addr(), NEEDED);
    let ptr = peer.malloc(64);
    let mut frame = Vec::new();
    for _ in 0..4096 {
        let set = MemsetAsync(Memset { dst: ptr, value: 7, size: 64, stream: 0 });
        Header::new(Opcode::MEMSET_ASYNC, 0, MemsetAsync::SIZE as u64, FLAG_NO_REPLY).put(&mut frame);
        set.put(&mut frame);
    }
    // The session stops when its peer reads nothing, as with replies.
    peer.stream.set_nonblocking(true).expect("a socket");
    let mut at = 0;
    let mut is_full = common::reads_no_more(&worker);
    common::until("the worker reads no more", || {
        if let Ok(n) = peer.stream.write(&frame[at..]) {
            at = (at + n) % frame.len();
        }
        is_full()
    });
    let unsent = worker.stats().io().sent_bytes;
    assert!(unsent < 64 << 20, "{unsent} bytes were sent to nobody");
}
