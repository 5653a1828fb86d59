//! Tests the account of a lease: that of the client, that of the worker, and a device that two sessions share.

use std::collections::VecDeque;

use hipr_proto::{HipError, Lease, PLACE_PAGE_BYTES};

const PAGE: u64 = PLACE_PAGE_BYTES;
const FULL: Result<(), HipError> = Err(HipError::OUT_OF_MEMORY);
const INVALID: Result<(), HipError> = Err(HipError::INVALID_VALUE);

fn lease(pages: u64, bytes: u64, allocations: u64) -> Lease {
    let mut lease = Lease::default();
    lease.grant(10 * PAGE..(10 + pages) * PAGE, bytes, allocations);
    lease
}

#[test]
fn what_is_refused_changes_nothing() {
    let mut lease = lease(8, 5 * PAGE, 3);
    lease.place(12 * PAGE, PAGE + 1).unwrap();
    // 10 and 11 are free, 12 and 13 used, 14 is behind them, 15, 16 and 17 are free.
    let before = lease.clone();
    for (base, size, expected) in [
        (10 * PAGE, 0, INVALID),
        (10 * PAGE + 1, 1, INVALID),
        (10 * PAGE + PAGE / 2, 1, INVALID),
        (9 * PAGE, 1, INVALID),
        (0, 1, INVALID),
        (10 * PAGE, PAGE + 1, INVALID),
        (11 * PAGE, 1, INVALID),
        (12 * PAGE, 1, INVALID),
        (13 * PAGE, 1, INVALID),
        (14 * PAGE, 1, INVALID),
        (15 * PAGE, 2 * PAGE + 1, INVALID),
        (17 * PAGE, 1, INVALID),
        (18 * PAGE, 1, INVALID),
        (u64::MAX - PAGE + 1, 1, INVALID),
        (10 * PAGE, u64::MAX, INVALID),
    ] {
        assert_eq!(lease.place(base, size), expected, "{base:#x} {size:#x}");
        assert_eq!(lease, before, "{base:#x} {size:#x}");
    }
    assert_eq!(lease.check(15 * PAGE, 2 * PAGE), Ok(()), "the last bytes of the window");
    lease.give_back(3 * PAGE - 2, 0).unwrap();
    assert_eq!(lease.bytes(), PAGE + 1);
    assert_eq!(lease.check(15 * PAGE, PAGE + 1), Ok(()), "the last byte of the lease");
    assert_eq!(lease.check(15 * PAGE, PAGE + 2), FULL, "one more");
    lease.give_back(0, 2).unwrap();
    assert_eq!(lease.check(10 * PAGE, 1), FULL, "no allocation is left");
    let before = lease.clone();
    assert_eq!((lease.give_back(PAGE + 2, 0), lease.give_back(0, 1)), (INVALID, INVALID));
    assert_eq!(lease, before);
}

#[test]
fn what_others_may_use_does_not_come_back() {
    let mut lease = lease(100, 1000, 10);
    let base = |at: u64| (10 + 2 * at) * PAGE;
    for at in 0..5 {
        lease.place(base(at), 100).unwrap();
    }
    assert_eq!(lease.placed_bytes(), 500);
    lease.lend(base(1));
    assert_eq!(lease.placed_bytes(), 400, "what is lent is no longer the account's");
    assert!(lease.comes_back(base(0)) && lease.is_placed(base(1)) && !lease.comes_back(base(1)));
    lease.free(base(0));
    assert_eq!((lease.bytes(), lease.allocations(), lease.placed_bytes()), (600, 6, 300));
    lease.free(base(1));
    lease.free_async(base(3));
    lease.free_async(base(2));
    assert_eq!((lease.bytes(), lease.allocations()), (600, 6));
    for at in 1..4 {
        assert!(!lease.is_placed(base(at)));
        assert_eq!(lease.check(base(at), 1), INVALID, "its address is not used again");
        lease.free(base(at));
        lease.free_async(base(at));
        lease.lend(base(at));
    }
    assert_eq!((lease.bytes(), lease.allocations()), (600, 6), "freed twice, it does not come back either");
    assert_eq!(lease.placed_bytes(), 100);
    assert_eq!(lease.gap(0, 1), Some(base(0)));
    assert_eq!(lease.gap(base(0) + 1, 1), Some(base(5)));
    lease.free(base(4));
    assert_eq!(lease.gap(base(0), PAGE + 1), Some(base(4)));
    lease.end();
    assert_eq!(lease, Lease::default());
}

/// A generator of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A request of a session; `Grant` is the part of its reply that the client learns later.
#[derive(Clone, Copy, Debug)]
enum Request {
    Ask,
    Place(u64, u64),
    Free(u64),
    FreeAsync(u64),
    Lend(u64),
    Return(u64, u64),
    Reset,
}

/// Both ends of a session: what the client has sent arrives later, and so does what the worker grants.
#[derive(Default)]
struct Session {
    client: Lease,
    worker: Lease,
    requests: VecDeque<Request>,
    /// What was granted, and how many resets came before.
    grants: VecDeque<(u64, u64, u64)>,
    resets: u64,
    client_resets: u64,
    /// What the client has placed, by address.
    placed: Vec<(u64, u64)>,
    /// What the worker knows to be placed, by address, and whether it comes back.
    held: Vec<(u64, u64, bool)>,
    cursor: u64,
}

/// Total bytes, and those that are used and not those of a lease.
struct Device {
    total: u64,
    used: u64,
}

const WINDOW: std::ops::Range<u64> = 10 * PAGE..40 * PAGE;

impl Session {
    fn used(&self) -> u64 {
        self.held.iter().map(|(_, size, _)| size).sum()
    }

    /// Lets the client do something.
    fn act(&mut self, numbers: &mut Numbers) {
        let at = usize::try_from(numbers.below(self.placed.len().max(1) as u64)).unwrap();
        let chosen = self.placed.get(at).copied();
        let request = match (numbers.below(12), chosen) {
            (0, _) => Request::Ask,
            (1, _) if numbers.below(20) == 0 => {
                self.client.end();
                self.placed.clear();
                self.client_resets += 1;
                Request::Reset
            }
            (2, _) => {
                let bytes = numbers.below(self.client.bytes() + 1);
                let allocations = numbers.below(self.client.allocations() + 1);
                self.client.give_back(bytes, allocations).unwrap();
                Request::Return(bytes, allocations)
            }
            (3, Some((base, _))) => {
                self.client.lend(base);
                Request::Lend(base)
            }
            (4..6, Some((base, _))) => {
                self.placed.remove(at);
                if numbers.below(3) == 0 {
                    self.client.free_async(base);
                    Request::FreeAsync(base)
                } else {
                    self.client.free(base);
                    Request::Free(base)
                }
            }
            _ => {
                let size = 1 + numbers.below(3 * PAGE);
                let from = self.client.gap(self.cursor, size).or_else(|| self.client.gap(0, size));
                match from.filter(|_| self.client.covers(size)) {
                    Some(base) => {
                        self.client.place(base, size).unwrap();
                        self.cursor = base + size;
                        self.placed.push((base, size));
                        Request::Place(base, size)
                    }
                    None => Request::Ask,
                }
            }
        };
        self.requests.push_back(request);
    }

    /// Lets the worker carry out the next request.
    fn carry_out(&mut self, device: &mut Device, numbers: &mut Numbers) {
        let Some(request) = self.requests.pop_front() else { return };
        let take = |held: &mut Vec<(u64, u64, bool)>, base| {
            let at = held.iter().position(|(held, ..)| *held == base).expect("it is there");
            held.remove(at)
        };
        match request {
            Request::Ask => {
                let bytes = numbers.below(device.total - device.used + 1);
                device.used += bytes;
                self.worker.grant(WINDOW, bytes, 2);
                self.grants.push_back((bytes, 2, self.resets));
            }
            Request::Place(base, size) => {
                assert!(self.worker.covers(size), "the client has never more than the worker");
                self.worker.place(base, size).expect("the client knows what is free");
                let pages = |base, size: u64| base..base + size.next_multiple_of(PAGE) + PAGE;
                let new = pages(base, size);
                let apart = |&(base, size, _): &(u64, u64, bool)| {
                    let old = pages(base, size);
                    old.end <= new.start || new.end <= old.start
                };
                assert!(self.held.iter().all(apart), "no address is given out twice");
                self.held.push((base, size, true));
            }
            Request::Free(base) => {
                let (_, size, comes_back) = take(&mut self.held, base);
                assert_eq!(self.worker.comes_back(base), comes_back);
                device.used -= if comes_back { 0 } else { size };
                self.worker.free(base);
            }
            Request::FreeAsync(base) => {
                device.used -= take(&mut self.held, base).1;
                self.worker.free_async(base);
            }
            Request::Lend(base) => {
                self.worker.lend(base);
                self.held.iter_mut().filter(|held| held.0 == base).for_each(|held| held.2 = false);
            }
            Request::Return(bytes, allocations) => {
                self.worker.give_back(bytes, allocations).expect("the client has it");
                device.used -= bytes;
            }
            Request::Reset => {
                device.used -= self.used() + self.worker.bytes();
                self.held.clear();
                self.worker.end();
                self.resets += 1;
            }
        }
    }

    /// Lets the client learn what was granted. What a reset came behind is gone.
    fn learn(&mut self) {
        let Some((bytes, allocations, resets)) = self.grants.pop_front() else { return };
        if resets == self.client_resets {
            self.client.grant(WINDOW, bytes, allocations);
        }
    }
}

#[test]
fn no_byte_is_promised_twice_and_both_sides_agree() {
    let (mut placed, mut full, mut returned) = (0, 0, 0);
    for seed in 0..2000 {
        let mut numbers = Numbers(seed);
        let mut device = Device { total: 1 + numbers.below(40 * PAGE), used: 0 };
        let mut sessions = [Session::default(), Session::default()];
        for _ in 0..300 {
            let session = &mut sessions[usize::try_from(numbers.below(2)).unwrap()];
            match numbers.below(3) {
                0 => session.act(&mut numbers),
                1 => session.carry_out(&mut device, &mut numbers),
                _ => session.learn(),
            }
            full += u64::from(device.used == device.total);
            let promised: u64 = sessions.iter().map(|session| session.used() + session.worker.bytes()).sum();
            assert_eq!(promised, device.used, "seed {seed}: every byte is somebody's, once");
            assert!(promised <= device.total, "seed {seed}");
            for session in &sessions {
                let sent: u64 = session.placed.iter().map(|(_, size)| size).sum();
                placed += session.held.len();
                returned += usize::from(session.worker.bytes() > session.client.bytes() + sent);
            }
        }
        for session in &mut sessions {
            while !(session.requests.is_empty() && session.grants.is_empty()) {
                session.carry_out(&mut device, &mut numbers);
                session.learn();
            }
            assert_eq!(session.client, session.worker, "seed {seed}: when all has arrived");
        }
    }
    assert!(placed > 10_000 && full > 0 && returned > 0, "{placed} {full} {returned}");
}
