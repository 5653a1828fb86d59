//! Tests that a client which was told that a stream or an event is not done is told when it is: without asking, before it can know otherwise,
//! and once.

mod common;

use common::{Peer, scripted};
use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult, Op, Opcode, Wire};
use hipr_worker::Handle;
use hipr_worker::device::script::Script;

const NEEDED: Features = Features::WATCHES.union(Features::NOTIFICATIONS);
const NOT_READY: HipError = HipError::NOT_READY;

/// A session with a scripted device, of which a stream is held, and memory to work on.
struct Watcher {
    peer: Peer,
    _worker: Handle,
    script: Script,
    stream: u64,
    ptr: u64,
}

impl Watcher {
    fn new() -> Self {
        let (worker, script) = scripted(|_| {});
        let (mut peer, accepted) = Peer::offering(worker.local_addr(), NEEDED);
        assert_eq!(accepted, NEEDED);
        let stream = peer.call(&StreamCreate { flags: 1, priority: 0 }).expect("a stream").stream;
        let ptr = peer.malloc(64);
        script.hold(0, stream);
        Self { peer, _worker: worker, script, stream, ptr }
    }

    fn work(&mut self) {
        let set = Memset { dst: self.ptr, value: 7, size: 64, stream: self.stream };
        self.peer.forget(&MemsetAsync(set), &[]);
    }

    fn event(&mut self) -> u64 {
        self.peer.call(&EventCreate { flags: 0 }).expect("an event").event
    }

    /// Records an event behind work of the held stream.
    fn recorded(&mut self) -> u64 {
        let event = self.event();
        self.work();
        self.peer.forget(&EventRecord { event, stream: self.stream }, &[]);
        event
    }

    fn watch_stream(&mut self, number: u64) -> HipResult<()> {
        self.peer.call(&StreamWatch { stream: self.stream, number })
    }

    fn watch_event(&mut self, event: u64, number: u64) -> HipResult<()> {
        self.peer.call(&EventWatch { event, number })
    }

    /// Returns what was told so far: numbers and errors.
    fn told(&mut self) -> Vec<(u64, i32)> {
        let is_told = |(op, ..): &(Opcode, _, _)| *op == WatchOver::OPCODE;
        let told = self.peer.heard.drain(..).filter(is_told).map(|(_, fixed, _)| {
            let over = WatchOver::take(&mut fixed.as_slice()).expect("a whole notification");
            (over.number, over.error_code)
        });
        let mut told: Vec<_> = told.collect();
        told.sort_unstable();
        told
    }

    /// Returns what is told without any request, and with an answer that reports nothing.
    fn listen(&mut self) -> Vec<(u64, i32)> {
        let mut byte = [0];
        assert_eq!(self.peer.stream.peek(&mut byte).expect("a notification"), 1);
        self.heard()
    }

    fn heard(&mut self) -> Vec<(u64, i32)> {
        self.peer.call(&Ping {}).expect("an answer");
        self.told()
    }

    fn release(&mut self) {
        self.script.release(0, self.stream);
    }
}

#[test]
fn without_what_it_needs_it_is_refused() {
    let (worker, _) = scripted(|_| {});
    for features in [Features::WATCHES, Features::NOTIFICATIONS] {
        let (mut peer, accepted) = Peer::offering(worker.local_addr(), features);
        assert_eq!(accepted, features.without(Features::WATCHES));
        assert_eq!(peer.call(&StreamWatch { stream: 0, number: 1 }), Err(HipError::NOT_SUPPORTED));
        assert_eq!(peer.call(&EventWatch { event: 0, number: 1 }), Err(HipError::NOT_SUPPORTED));
    }
    let (mut peer, _) = Peer::offering(worker.local_addr(), NEEDED);
    let over = WatchOver { number: 1, error_code: 0, reserved: 0 };
    assert_eq!(peer.call(&over), Err(HipError::NOT_SUPPORTED), "only the worker sends it");
    assert_eq!(peer.call(&StreamWatch { stream: 99, number: 1 }), Err(HipError::INVALID_HANDLE));
    assert_eq!(peer.call(&EventWatch { event: 99, number: 1 }), Err(HipError::INVALID_HANDLE));
}

#[test]
fn what_is_done_is_told_unasked_and_once() {
    let mut it = Watcher::new();
    assert_eq!(it.watch_stream(1), Ok(()), "what is done is not watched");
    let event = it.event();
    assert_eq!(it.watch_event(event, 2), Ok(()));
    let event = it.recorded();
    assert_eq!((it.watch_stream(3), it.watch_event(event, 4)), (Err(NOT_READY), Err(NOT_READY)));
    assert_eq!(it.heard(), [], "nothing is done");
    it.release();
    let mut told = it.listen();
    told.extend(it.heard());
    told.sort_unstable();
    assert_eq!(told, [(3, 0), (4, 0)]);
    assert_eq!((it.watch_stream(5), it.watch_event(event, 6), it.heard()), (Ok(()), Ok(()), vec![]));
}

#[test]
fn a_reply_never_comes_before_what_it_is_later_than() {
    // The wait ends in the turn in which the session finds out that the event is done.
    let mut it = Watcher::new();
    let event = it.recorded();
    assert_eq!(it.watch_event(event, 2), Err(NOT_READY));
    let wait = it.peer.send(&EventSynchronize { event }, &[], hipr_proto::ReplyMode::Always);
    it.peer.flush();
    it.release();
    assert_eq!(it.peer.reply::<EventSynchronize>(wait.expect("a reply")).map(drop), Ok(()));
    assert_eq!(it.told(), [(2, 0)]);
}

#[test]
fn a_later_request_takes_the_place_of_an_earlier_one() {
    let mut it = Watcher::new();
    let event = it.recorded();
    for number in 1..=200 {
        assert_eq!(it.watch_stream(number), Err(NOT_READY));
        assert_eq!(it.watch_event(event, 1000 + number), Err(NOT_READY));
    }
    assert_eq!(it.heard(), []);
    it.release();
    let mut told = it.listen();
    told.extend(it.heard());
    told.sort_unstable();
    assert_eq!(told, [(200, 0), (1200, 0)]);
}

#[test]
fn what_cannot_be_watched_is_told_at_once() {
    let mut it = Watcher::new();
    let events: Vec<u64> = (0..WATCHES_MAX + 3).map(|_| it.recorded()).collect();
    for (number, event) in (1..).zip(&events) {
        assert_eq!(it.watch_event(*event, number), Err(NOT_READY));
        let refused: &[(u64, i32)] = &[(number, NOT_READY.0)];
        let expected = if number as usize > WATCHES_MAX { refused } else { &[] };
        assert_eq!(it.told(), expected, "event {number}");
    }
    let refused: Vec<u64> = (500..700).collect();
    for number in &refused {
        it.peer.forget(&EventWatch { event: events[WATCHES_MAX], number: *number }, &[]);
    }
    // Its errors are kept for a request that reports them.
    let told = it.heard();
    assert_eq!(told.iter().map(|(number, _)| *number).collect::<Vec<_>>(), refused);
    assert_eq!(it.peer.call(&GetDevice {}).map(drop), Err(NOT_READY));
    it.release();
    let mut told = it.listen();
    told.extend(it.heard());
    assert_eq!(told.len(), WATCHES_MAX);
}

#[test]
fn an_error_of_the_work_stays_for_a_wait() {
    let mut it = Watcher::new();
    it.work();
    assert_eq!(it.watch_stream(1), Err(NOT_READY));
    it.script.surface(0, it.stream, HipError::ILLEGAL_ADDRESS);
    it.release();
    assert_eq!(it.listen(), [(1, 0)]);
    let wait = StreamSynchronize { stream: it.stream };
    assert_eq!(it.peer.call(&wait), Err(HipError::ILLEGAL_ADDRESS));
    assert_eq!(it.peer.call(&wait), Ok(()));
}

#[test]
fn an_event_that_is_recorded_anew_is_watched_until_that_is_done() {
    let mut it = Watcher::new();
    let event = it.recorded();
    assert_eq!(it.watch_event(event, 1), Err(NOT_READY));
    let other = it.peer.call(&StreamCreate { flags: 1, priority: 0 }).expect("a stream").stream;
    it.script.hold(0, other);
    it.peer.forget(&EventRecord { event, stream: other }, &[]);
    assert_eq!(it.heard(), []);
    it.script.release(0, other);
    it.release();
    let mut told = it.heard();
    while told.is_empty() {
        told = it.listen();
    }
    assert_eq!(told, [(1, 0)]);
}

#[test]
fn a_reset_ends_all_without_a_word() {
    let mut it = Watcher::new();
    it.work();
    assert_eq!(it.watch_stream(1), Err(NOT_READY));
    let reset = it.peer.send(&DeviceReset {}, &[], hipr_proto::ReplyMode::Always);
    it.peer.flush();
    it.release();
    assert_eq!(it.peer.reply::<DeviceReset>(reset.expect("a reply")).map(drop), Ok(()));
    it.told();
    assert_eq!(it.heard(), []);
    assert_eq!(it.peer.call(&StreamWatch { stream: it.stream, number: 2 }), Err(HipError::INVALID_HANDLE));
}

/// With an emulated GPU, too: much work, watched in between.
#[test]
fn an_emulated_gpu_wakes_its_session() {
    let worker = common::worker("sim");
    let (mut peer, accepted) = Peer::offering(worker.local_addr(), NEEDED);
    assert_eq!(accepted, NEEDED);
    const SIZE: u64 = 64 << 20;
    let ptr = peer.malloc(SIZE);
    let event = peer.call(&EventCreate { flags: 0 }).expect("an event").event;
    let mut watched = Vec::new();
    for number in 0..20 {
        peer.forget(&MemsetAsync(Memset { dst: ptr, value: 1, size: SIZE, stream: 0 }), &[]);
        peer.forget(&EventRecord { event, stream: 0 }, &[]);
        let result = peer.call(&EventWatch { event, number });
        if result == Err(NOT_READY) {
            watched.push(number);
            peer.wait_for_bytes();
            peer.call(&Ping {}).expect("an answer");
        }
        let told: Vec<u64> = peer
            .heard
            .drain(..)
            .map(|(_, fixed, _)| WatchOver::take(&mut fixed.as_slice()).expect("a notification").number)
            .collect();
        assert_eq!(told, if result == Err(NOT_READY) { vec![number] } else { vec![] });
    }
    assert!(!watched.is_empty(), "sets of {SIZE} bytes take time");
}
