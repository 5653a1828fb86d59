//! Tests that a client which asks to be told the times between events is told, right ahead of the next reply, what it would be answered.

mod common;

use common::{Peer, scripted};
use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult, Op, Wire};

const NEEDED: Features = Features::TIMES.union(Features::NOTIFICATIONS).union(Features::NAMES);

/// Returns a request for the times of pairs, and its tail.
fn request(number: u64, pairs: &[(u64, u64)]) -> (EventTimes, Vec<u8>) {
    let mut tail = Vec::new();
    pairs.iter().for_each(|&(start, stop)| EventPair { start, stop }.put(&mut tail));
    (EventTimes { number, count: pairs.len() as u32, reserved: 0 }, tail)
}

/// Asks for times without an answer.
fn ask(peer: &mut Peer, number: u64, pairs: &[(u64, u64)]) {
    let (request, tail) = request(number, pairs);
    peer.forget(&request, &tail);
}

/// Returns what was told so far, by the numbers of the requests.
fn told(peer: &mut Peer) -> Vec<(u64, Vec<HipResult<f32>>)> {
    let told = peer.heard.drain(..).filter(|(op, ..)| *op == TimesTold::OPCODE).map(|(_, fixed, list)| {
        let told = TimesTold::take(&mut fixed.as_slice()).expect("a whole notification");
        let mut rest = list.as_slice();
        let times = (0..told.count).map(|_| EventTime::take(&mut rest).expect("as many as it says"));
        let result = |time: EventTime| match time.error_code {
            0 => Ok(time.milliseconds),
            error => Err(HipError(error)),
        };
        let times = times.map(result).collect();
        assert!(rest.is_empty());
        (told.number, times)
    });
    told.collect()
}

/// Returns what the worker answers for a pair.
fn answer(peer: &mut Peer, (start_event, stop_event): (u64, u64)) -> HipResult<f32> {
    peer.call(&EventElapsedTime { start_event, stop_event }).map(|reply| reply.milliseconds)
}

#[test]
fn times_are_told_ahead_of_the_reply_that_waits_for_the_events() {
    let (worker, script) = scripted(|_| {});
    let mut peer = Peer::offering(worker.local_addr(), NEEDED).0;
    let stream = peer.stream_create();
    let [first, second, late, named] = [0, 0, 0, ClientName::FIRST];
    let mut create = |event: u64| match event {
        0 => peer.call(&EventCreate { flags: 0 }).expect("an event").event,
        name => {
            peer.forget(&Name { name }, &[]);
            peer.forget(&EventCreate { flags: 0 }, &[]);
            name
        }
    };
    let [first, second, late, named] = [first, second, late, named].map(&mut create);
    script.hold(0, stream);
    peer.forget(&EventRecord { event: first, stream }, &[]);
    let other = peer.call(&StreamCreate { flags: 1, priority: 0 }).expect("a stream").stream;
    for event in [second, named] {
        peer.forget(&EventRecord { event, stream: other }, &[]);
    }
    let pairs = [(second, named), (named, first), (0x1234, second), (second, late), (named, named)];
    ask(&mut peer, 3, &pairs);
    assert_eq!(peer.call(&Ping {}), Ok(()));
    let [(3, times)] = &told(&mut peer)[..] else { panic!("one is told") };
    assert!(times[0].is_ok() && times[4] == Ok(0.0), "{times:?}");
    assert_eq!(times[1..3], [Err(HipError::NOT_READY), Err(HipError::INVALID_HANDLE)]);
    let asked: Vec<_> = pairs.iter().map(|pair| answer(&mut peer, *pair)).collect();
    assert_eq!(*times, asked);
    // The last request counts, and is told once.
    ask(&mut peer, 4, &[(second, named)]);
    ask(&mut peer, 5, &[(second, first)]);
    script.release(0, stream);
    assert_eq!(peer.call(&EventSynchronize { event: first }), Ok(()));
    let [(5, times)] = &told(&mut peer)[..] else { panic!("one is told") };
    assert_eq!(times[..], [answer(&mut peer, (second, first))]);
    assert!(times[0].is_ok());
    assert_eq!(told(&mut peer), []);
    // An event that is gone by then.
    ask(&mut peer, 6, &[(second, first)]);
    peer.forget(&EventDestroy { event: second }, &[]);
    assert_eq!(peer.call(&Ping {}), Ok(()));
    assert_eq!(told(&mut peer), [(6, vec![Err(HipError::INVALID_HANDLE)])]);
    ask(&mut peer, 7, &[]);
    assert_eq!(peer.call(&Ping {}), Ok(()));
    assert_eq!(told(&mut peer), [(7, vec![])]);
}

#[test]
fn more_pairs_than_one_request_may_have_are_refused() {
    let (worker, _script) = scripted(|_| {});
    let mut peer = Peer::offering(worker.local_addr(), NEEDED).0;
    let event = peer.call(&EventCreate { flags: 0 }).expect("an event").event;
    let all = [(event, event); TIMES_MAX + 1];
    let (most, tail) = request(1, &all[1..]);
    assert_eq!(peer.call_with(&most, &tail), Ok(()));
    assert_eq!(told(&mut peer)[0].1.len(), TIMES_MAX);
    let (more, tail) = request(2, &all);
    assert_eq!(peer.call_with(&more, &tail), Err(HipError::INVALID_VALUE));
    assert_eq!(told(&mut peer), []);
}

#[test]
fn without_what_it_needs_it_is_refused() {
    let (worker, _script) = scripted(|_| {});
    for features in [Features::TIMES, Features::NOTIFICATIONS] {
        let (mut peer, accepted) = Peer::offering(worker.local_addr(), features);
        assert_eq!(accepted, features.without(Features::TIMES));
        let (request, tail) = request(1, &[(1, 2)]);
        assert_eq!(peer.call_with(&request, &tail), Err(HipError::NOT_SUPPORTED));
        assert_eq!(told(&mut peer), []);
    }
}

#[test]
fn the_emulated_gpu_tells_what_it_says_when_it_is_asked() {
    let worker = common::worker("sim");
    let mut peer = Peer::offering(worker.local_addr(), NEEDED).0;
    let dst = peer.malloc(1 << 20);
    let events: Vec<u64> =
        (0..8).map(|_| peer.call(&EventCreate { flags: 0 }).expect("an event").event).collect();
    for &event in &events {
        peer.forget(&EventRecord { event, stream: 0 }, &[]);
        peer.forget(&MemsetAsync(Memset { dst, value: 7, size: 1 << 20, stream: 0 }), &[]);
    }
    let pairs: Vec<_> = events.iter().flat_map(|start| events.iter().map(|stop| (*start, *stop))).collect();
    ask(&mut peer, 1, &pairs);
    assert_eq!(peer.call(&DeviceSynchronize {}), Ok(()));
    let asked: Vec<_> = pairs.iter().map(|pair| answer(&mut peer, *pair)).collect();
    assert_eq!(told(&mut peer), [(1, asked.clone())]);
    assert!(asked.iter().all(Result::is_ok), "{asked:?}");
}
