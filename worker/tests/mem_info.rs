//! Tests that a client which was told of free memory is told when that no longer holds: before it can know otherwise, and once.

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::{PATIENCE, Peer, emulated, scripted};
use hipr_proto::op::*;
use hipr_proto::{Features, HipError, Lease, Op, Opcode, ReplyMode, Wire};
use hipr_worker::Handle;

const MIB: u64 = 1 << 20;
const TOTAL: u64 = 256 * MIB;
const DEVICE: u32 = 2;
const NEEDED: Features = Features::MEM_INFO.union(Features::PLACES).union(Features::NOTIFICATIONS);

/// A client that reckons from what it was told.
struct Reckoner {
    peer: Peer,
    lease: Lease,
    number: u64,
    /// What was told: free bytes, and bytes that were placed.
    told: Option<(u64, u64)>,
    /// Number of the last question that a notification has ended.
    ended: u64,
}

impl Reckoner {
    fn new(worker: &Handle) -> Self {
        let mut peer = Peer::connect(worker.local_addr());
        peer.accept_notifications();
        peer.call(&Init {}).expect("a session");
        let accepted = peer.call(&Offer { features: NEEDED.bits(), part: 0 });
        assert_eq!(accepted.map(|reply| reply.features), Ok(NEEDED.bits()));
        let got = peer.call(&MemLease { want_bytes: 0 }).expect("a lease");
        let mut lease = Lease::default();
        let window = got.window_start..got.window_start + got.window_bytes;
        lease.grant(window, got.added_bytes, got.added_allocations);
        Self { peer, lease, number: 0, told: None, ended: 0 }
    }

    /// Asks for free memory, and to be told when it changes.
    fn ask(&mut self) -> u64 {
        self.number += 1;
        let free_bytes = self.peer.call(&MemInfo { number: self.number }).expect("free memory").free_bytes;
        self.told = Some((free_bytes, self.lease.placed_bytes()));
        self.hear();
        free_bytes
    }

    /// Takes in the notifications that came with the replies so far; returns how many.
    fn hear(&mut self) -> usize {
        let is_change = |(op, ..): &(Opcode, _, _)| *op == MemInfoChanged::OPCODE;
        let heard: Vec<_> = self.peer.heard.drain(..).filter(is_change).collect();
        for (_, fixed, _) in &heard {
            let changed = MemInfoChanged::take(&mut fixed.as_slice()).expect("a whole notification");
            assert!(changed.number <= self.number, "one that was asked for");
            assert!(changed.number > self.ended, "it is told once");
            self.ended = changed.number;
            if changed.number == self.number {
                self.told = None;
            }
        }
        heard.len()
    }

    /// Checks what the client reckons against what the worker says; returns whether it reckoned.
    fn check(&mut self, when: &str) -> bool {
        let info = self.peer.call(&MemGetInfo {}).expect("free memory");
        self.hear();
        let Some((free_bytes, placed_bytes)) = self.told else { return false };
        assert_eq!(free_bytes + placed_bytes - self.lease.placed_bytes(), info.free_bytes, "{when}");
        true
    }

    fn place(&mut self, size: u64) -> u64 {
        let base = self.lease.gap(0, size).expect("a gap");
        self.lease.place(base, size).expect("a lease that lasts");
        self.peer.forget(&MallocAt { device_ptr: base, size, kind: DEVICE, flags: 0 }, &[]);
        base
    }

    fn free(&mut self, base: u64) {
        self.lease.free(base);
        self.peer.forget(&Free { device_ptr: base }, &[]);
    }

    /// Waits for notifications, without sending anything.
    fn listen(&mut self) {
        // The next reply is read when this has come: only then is there something to ask for.
        let mut byte = [0];
        assert_eq!(self.peer.stream.peek(&mut byte).expect("a notification"), 1);
        self.peer.call(&Ping {}).expect("an answer");
        assert_eq!(self.hear(), 1);
    }

    /// Asks nothing that says free memory; returns the number of notifications until now.
    fn heard(&mut self) -> usize {
        self.peer.call(&Ping {}).expect("an answer");
        self.hear()
    }
}

#[test]
fn without_what_it_needs_it_is_refused() {
    let worker = emulated(TOTAL, |_| {});
    for lacking in [Features::MEM_INFO, Features::PLACES, Features::NOTIFICATIONS] {
        let offered = NEEDED.without(lacking);
        let mut peer = Peer::connect(worker.local_addr());
        peer.accept_notifications();
        peer.call(&Init {}).expect("a session");
        let accepted = peer.call(&Offer { features: offered.bits(), part: 0 }).expect("an answer");
        assert_eq!(accepted.features, offered.without(Features::MEM_INFO).bits());
        assert_eq!(peer.call(&MemInfo { number: 1 }).map(drop), Err(HipError::NOT_SUPPORTED), "{lacking}");
        assert_eq!(peer.call(&MemInfoChanged { number: 1 }), Err(HipError::NOT_SUPPORTED));
    }
}

/// What a session can do between two questions, by name; whether what it reckons still holds, `None` if that depends on when the device
/// frees memory.
type Deed = (&'static str, Option<bool>, fn(&mut Reckoner));

const DEEDS: &[Deed] = &[
    ("nothing", Some(true), |_| {}),
    ("place", Some(true), |it| {
        it.place(3 * MIB);
    }),
    ("place and free", Some(true), |it| {
        let base = it.place(5 * MIB);
        it.free(base);
    }),
    ("free what was placed before", Some(true), |it| {
        let base = it.lease.window().start;
        it.free(base);
    }),
    ("lease and return", Some(true), |it| {
        let got = it.peer.call(&MemLease { want_bytes: MIB }).expect("more");
        it.lease.grant(it.lease.window(), got.added_bytes, got.added_allocations);
        it.lease.give_back(MIB, 0).expect("it is there");
        it.peer.forget(&MemReturn { bytes: MIB, allocations: 0, recall: 0 }, &[]);
    }),
    ("fill, wait", Some(true), |it| {
        let dst = it.lease.window().start;
        it.peer.forget(&Memset { dst, value: 1, size: 100, stream: 0 }, &[]);
        it.peer.call(&DeviceSynchronize {}).expect("an answer");
    }),
    ("streams and events", Some(true), |it| {
        let (stream, event) = (it.peer.stream_create(), it.peer.event_create());
        it.peer.forget(&EventRecord { event, stream }, &[]);
        it.peer.call(&EventSynchronize { event }).expect("an answer");
        it.peer.forget(&StreamDestroy { stream }, &[]);
    }),
    ("MALLOC", Some(false), |it| {
        it.peer.malloc(MIB);
    }),
    ("MALLOC, FREE", Some(false), |it| {
        let device_ptr = it.peer.malloc(MIB);
        it.peer.forget(&Free { device_ptr }, &[]);
    }),
    ("MALLOC_HOST", Some(false), |it| {
        it.peer.call(&MallocHost { size: MIB, flags: 0 }).expect("memory");
    }),
    ("MALLOC_ASYNC", Some(false), |it| {
        it.peer.call(&MallocAsync { size: MIB, stream: 0 }).expect("memory");
    }),
    ("FREE_ASYNC of what was placed", None, |it| {
        let base = it.lease.window().start;
        it.lease.free_async(base);
        it.peer.forget(&FreeAsync { device_ptr: base, stream: 0 }, &[]);
        it.peer.call(&DeviceSynchronize {}).expect("an answer");
    }),
    ("HOST_REGISTER", Some(false), |it| {
        it.peer.call(&HostRegister { host_ptr: 0x1000, size_bytes: MIB, flags: 0 }).expect("memory");
    }),
    ("a MALLOC_AT that fails", Some(false), |it| {
        it.peer.forget(&MallocAt { device_ptr: 1, size: 1, kind: DEVICE, flags: 0 }, &[]);
        assert_eq!(it.peer.call(&GetDevice {}).map(drop), Err(HipError::INVALID_VALUE));
    }),
    ("a MALLOC_SHARED that fails", Some(false), |it| {
        it.peer.forget(&MallocShared { device_ptr: 1, size: 4096, kind: 1, flags: 0 }, &[]);
        assert!(it.peer.call(&GetDevice {}).is_err());
    }),
    ("a FREE that fails", Some(false), |it| {
        it.peer.forget(&Free { device_ptr: 1 }, &[]);
        assert_eq!(it.peer.call(&GetDevice {}).map(drop), Err(HipError::INVALID_VALUE));
    }),
    ("lend, free", Some(false), |it| {
        let device_ptr = it.lease.window().start;
        it.peer.call(&IpcGetMemHandle { device_ptr }).expect("a handle");
        it.lease.lend(device_ptr);
        it.free(device_ptr);
    }),
    ("reset", Some(false), |it| {
        it.peer.call(&DeviceReset {}).expect("an answer");
        it.lease.end();
        // The client knows by itself.
        it.told = None;
    }),
];

#[test]
fn what_the_client_reckons_is_what_it_would_be_told() {
    for limit in [u64::MAX, 100 * MIB] {
        for (name, holds, deed) in DEEDS {
            let worker = emulated(TOTAL, |config| config.session.memory_max_bytes = limit);
            let mut it = Reckoner::new(&worker);
            it.place(MIB);
            let before = it.ask();
            assert_eq!(before, TOTAL.min(limit) - MIB);
            deed(&mut it);
            let held = it.check(name);
            assert!(holds.is_none_or(|holds| holds == held), "{name}: {held}");
            // Again, from what is true now.
            it.ask();
            assert!(it.check(name), "{name}");
        }
    }
}

/// Waits until the session hears a notification; the program has nothing else to do.
fn until_told(it: &mut Reckoner) {
    let end = Instant::now() + PATIENCE;
    while it.heard() == 0 {
        assert!(Instant::now() < end, "it is never told");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_others_do_is_told_once() {
    let worker = emulated(TOTAL, |_| {});
    let (mut it, mut silent, mut other) =
        (Reckoner::new(&worker), Reckoner::new(&worker), Reckoner::new(&worker));
    it.ask();
    for _ in 0..10 {
        let base = other.place(MIB);
        other.free(base);
        other.place(MIB);
        other.peer.call(&Ping {}).expect("an answer");
    }
    it.listen();
    other.place(MIB);
    other.peer.malloc(MIB);
    assert_eq!((it.heard(), silent.heard(), other.heard()), (0, 0, 0), "nobody asked again");
    assert_eq!(it.ask(), TOTAL - 12 * MIB);
    // A session that ends frees its memory.
    drop(other);
    until_told(&mut it);
    let end = Instant::now() + PATIENCE;
    while it.ask() != TOTAL {
        assert!(Instant::now() < end, "it is never free");
    }
}

#[test]
fn who_is_told_comes_before_who_is_answered() {
    let worker = emulated(TOTAL, |_| {});
    let mut other = Reckoner::new(&worker);
    let mut many: Vec<_> = (0..40).map(|_| Reckoner::new(&worker)).collect();
    let mut last = 0;
    for round in 1..20 {
        many.iter_mut().for_each(|it| last = it.ask());
        assert_eq!(last, TOTAL - (round - 1) * MIB);
        other.place(MIB);
        other.peer.call(&Ping {}).expect("an answer");
        assert!(many.iter_mut().all(|it| it.heard() == 1), "round {round}");
        assert_eq!(other.heard(), 0);
    }
}

#[test]
fn what_the_device_does_by_itself_is_told_without_being_asked() {
    let (worker, script) = scripted(|_| {});
    let mut it = Reckoner::new(&worker);
    let base = it.peer.malloc(MIB);
    script.hold(0, 0);
    it.peer.forget(&FreeAsync { device_ptr: base, stream: 0 }, &[]);
    let before = it.ask();
    assert!(it.check("it is held"));
    script.release(0, 0);
    it.listen();
    assert_eq!(it.ask(), before + MIB);
}

#[test]
fn a_wait_that_frees_memory_tells_before_it_is_answered() {
    let (worker, script) = scripted(|_| {});
    let mut it = Reckoner::new(&worker);
    for round in 0..10 {
        let base = it.peer.malloc(MIB);
        script.hold(0, 0);
        it.peer.forget(&FreeAsync { device_ptr: base, stream: 0 }, &[]);
        it.ask();
        let wait = it.peer.send(&DeviceSynchronize {}, &[], ReplyMode::Always).expect("it is answered");
        it.peer.flush();
        script.release(0, 0);
        it.peer.reply::<DeviceSynchronize>(wait).expect("an answer");
        assert_eq!((it.hear(), it.told), (1, None), "round {round}");
    }
}

#[test]
fn sessions_that_did_not_ask_cost_nothing() {
    let looks = |silent: usize| {
        let (worker, script) = scripted(|_| {});
        let _silent: Vec<_> = (0..silent).map(|_| Reckoner::new(&worker)).collect();
        let mut it = Reckoner::new(&worker);
        it.ask();
        let before = script.calls("mem_info");
        for _ in 0..10 {
            let base = it.place(1000);
            it.free(base);
            it.peer.call(&Ping {}).expect("an answer");
        }
        assert_eq!(it.heard(), 0);
        script.calls("mem_info") - before
    };
    // Batches may be cut anywhere: a look for each turn and each reply is the most.
    let max = 2 * (30 + 11);
    for silent in [0, 30] {
        let count = looks(silent);
        assert!(count <= max, "{count} looks beside {silent} sessions");
    }
}

#[test]
fn the_next_question_takes_the_place_of_the_last() {
    let worker = emulated(TOTAL, |_| {});
    let (mut it, mut other) = (Reckoner::new(&worker), Reckoner::new(&worker));
    for _ in 0..3 {
        assert_eq!(it.ask(), TOTAL);
    }
    other.place(MIB);
    other.peer.call(&Ping {}).expect("an answer");
    assert_eq!((it.heard(), it.told), (1, None), "for the last one");
}

/// A generator of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A session, the memory that it has placed, and other memory that it has.
struct Party {
    it: Reckoner,
    placed: Vec<u64>,
    plain: Vec<u64>,
}

impl Party {
    fn new(worker: &Handle) -> Self {
        Self { it: Reckoner::new(worker), placed: Vec::new(), plain: Vec::new() }
    }

    fn act(&mut self, numbers: &mut Numbers) {
        let Self { it, placed, plain } = self;
        let size = 1 + numbers.below(100_000);
        match numbers.below(9) {
            0 | 1 if it.lease.covers(size) => placed.push(it.place(size)),
            2 | 3 if !placed.is_empty() => {
                it.free(placed.swap_remove(numbers.below(placed.len() as u64) as usize));
            }
            4 if !placed.is_empty() => {
                let device_ptr = placed.swap_remove(numbers.below(placed.len() as u64) as usize);
                it.lease.free_async(device_ptr);
                it.told = None;
                it.peer.forget(&FreeAsync { device_ptr, stream: 0 }, &[]);
            }
            5 => {
                it.told = None;
                plain.push(it.peer.malloc(size));
            }
            6 => {
                it.told = None;
                plain.push(it.peer.call(&MallocAsync { size, stream: 0 }).expect("memory").device_ptr);
            }
            7 if !plain.is_empty() => {
                it.told = None;
                let device_ptr = plain.swap_remove(numbers.below(plain.len() as u64) as usize);
                match numbers.below(2) {
                    0 => it.peer.forget(&Free { device_ptr }, &[]),
                    _ => it.peer.forget(&FreeAsync { device_ptr, stream: 0 }, &[]),
                }
            }
            _ => it.peer.call(&DeviceSynchronize {}).expect("an answer"),
        }
    }
}

#[test]
fn whatever_sessions_do_no_reply_contradicts_what_was_told() {
    for (limit, seeds) in [(u64::MAX, 0..3), (3 * MIB, 3..6)] {
        let worker = emulated(TOTAL, |config| config.session.memory_max_bytes = limit);
        for seed in seeds {
            let mut numbers = Numbers(seed);
            let mut parties: Vec<_> = (0..3).map(|_| Party::new(&worker)).collect();
            let mut reckoned = 0;
            for step in 0..150 {
                let chosen = numbers.below(3) as usize;
                if numbers.below(60) == 0 {
                    parties[chosen] = Party::new(&worker);
                }
                let party = &mut parties[chosen];
                if numbers.below(4) == 0 {
                    party.it.ask();
                } else if party.plain.len() + party.placed.len() < 10 {
                    party.act(&mut numbers);
                } else {
                    party.it.told = None;
                    party
                        .plain
                        .drain(..)
                        .for_each(|device_ptr| party.it.peer.forget(&Free { device_ptr }, &[]));
                    party.placed.drain(..).for_each(|device_ptr| party.it.free(device_ptr));
                }
                // What was sent is carried out before others are asked.
                party.it.heard();
                for (number, party) in parties.iter_mut().enumerate() {
                    let when = format!("seed {seed}, step {step}, session {number} after {chosen}");
                    reckoned += u32::from(party.it.check(&when));
                }
            }
            assert!(reckoned > 50, "seed {seed}: {reckoned}");
        }
    }
}
