//! The bytes that sessions may have together: those of a worker, and within them those of a tenant.

use std::collections::HashMap;
use std::iter;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::{Grant, Lender};

/// Time for which nothing is asked for in advance after there was too little.
const DRY: Duration = Duration::from_millis(20);
/// Bytes that the loop takes in advance for what its sessions keep.
const AHEAD_BYTES: u64 = 1 << 20;

/// What some sessions have: everything that counts as their memory is in one of these.
#[derive(Debug, Default)]
struct Count {
    /// What they keep until their clients have it, or until it can be taken. Only the loop changes it.
    kept_bytes: AtomicU64,
    /// What the dispatch counts: memory, what is set aside for kernels, unfinished commands, unread replies.
    used_bytes: AtomicU64,
    /// What the dispatch has collected of requests that it needs whole.
    tail_bytes: AtomicU64,
}

impl Count {
    fn bytes(&self) -> u64 {
        let counts = [&self.kept_bytes, &self.used_bytes, &self.tail_bytes];
        counts.into_iter().fold(0, |sum, count| sum.saturating_add(count.load(Relaxed)))
    }
}

/// Notes that a part of a count that one thread alone changes was `before` and is `now`.
fn change(count: &AtomicU64, before: u64, now: u64) {
    count.store(count.load(Relaxed).saturating_sub(before).saturating_add(now), Relaxed);
}

/// A bound for the bytes that some sessions have together, and the wider one within which it is. The widest one is the worker's; that of a
/// tenant is within it. Whatever a session has counts at each of them, and it may have what the narrowest leaves.
///
/// Two threads count: the loop what its sessions keep, the dispatch everything else. The default is without bound.
#[derive(Debug)]
pub struct Budget {
    count: Arc<Count>,
    /// The most bytes; where memory is lent, what was lent.
    max_bytes: AtomicU64,
    lender: Option<Arc<dyn Lender>>,
    /// When there was too little the last time. Who holds this is the only one who takes or gives back.
    dry: Mutex<Option<Instant>>,
    /// The wider bound.
    above: Option<Arc<Budget>>,
    /// What each tenant with a bound has of the worker's, by its number, while it has a session.
    tenants: Mutex<HashMap<u64, Weak<Count>>>,
    /// What a session of a tenant with a bound has, where only such sessions are lent their memory.
    lent: Option<Arc<Budget>>,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(u64::MAX)
    }
}

impl Budget {
    fn new(max_bytes: u64) -> Self {
        let (count, lender, dry, above, tenants, lent) = Default::default();
        Self { count, max_bytes: AtomicU64::new(max_bytes), lender, dry, above, tenants, lent }
    }

    /// Creates the budget of sessions that have what they are lent; who lends it knows all bounds.
    pub fn lent_by(lender: Arc<dyn Lender>) -> Self {
        Self { lender: Some(lender), ..Self::new(0) }
    }

    /// Creates the budget of sessions that have what they are lent if their tenant has a bound, and else have none.
    pub fn lent_to_tenants_by(lender: Arc<dyn Lender>) -> Self {
        Self { lent: Some(Arc::new(Self::lent_by(lender))), ..Self::default() }
    }

    /// Returns the budget of a session that begins within this one: its tenant's, if that has a bound. All sessions of a tenant count
    /// together, each with the bound that it began with.
    pub fn of(self: &Arc<Self>, grant: Option<&Grant>) -> Arc<Self> {
        let bound = grant.and_then(|grant| Some((grant.tenant_number(), grant.memory_total_bytes?)));
        let Some((tenant, max_bytes)) = bound.filter(|_| self.lender.is_none()) else { return self.clone() };
        if let Some(lent) = &self.lent {
            return lent.clone();
        }
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        tenants.retain(|_, count| count.strong_count() > 0);
        let count = tenants.get(&tenant).and_then(Weak::upgrade).unwrap_or_default();
        tenants.insert(tenant, Arc::downgrade(&count));
        Arc::new(Self { count, above: Some(self.clone()), ..Self::new(max_bytes) })
    }

    /// Returns this bound and those within which it is, the narrowest first.
    fn levels(&self) -> impl Iterator<Item = &Self> {
        iter::successors(Some(self), |level| level.above.as_deref())
    }

    /// Returns whether there is a bound at all.
    pub fn has_bound(&self) -> bool {
        self.levels().any(|level| level.lender.is_some() || level.max_bytes() != u64::MAX)
    }

    /// Returns who lends the memory, if it is lent.
    pub fn lender(&self) -> Option<&dyn Lender> {
        self.lender.as_deref()
    }

    /// Returns the number of bytes that the sessions keep.
    pub fn kept_bytes(&self) -> u64 {
        self.count.kept_bytes.load(Relaxed)
    }

    /// Returns how many bytes there may be; where memory is lent, how many were lent.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes.load(Relaxed)
    }

    /// Sets how many bytes there may be; does nothing where memory is lent.
    pub fn set_max(&self, max_bytes: u64) {
        if self.lender.is_none() {
            self.max_bytes.store(max_bytes, Relaxed);
        }
    }

    /// Notes that the dispatch counts `now_bytes` instead of `before_bytes` for a session.
    pub fn use_bytes(&self, before_bytes: u64, now_bytes: u64) {
        self.levels().for_each(|level| change(&level.count.used_bytes, before_bytes, now_bytes));
    }

    /// Notes that a session keeps `now_bytes` instead of `before_bytes`.
    fn keep_bytes(&self, before_bytes: u64, now_bytes: u64) {
        self.levels().for_each(|level| change(&level.count.kept_bytes, before_bytes, now_bytes));
    }

    /// Notes that a session has collected `now_bytes` of a request instead of `before_bytes`.
    pub fn collect_bytes(&self, before_bytes: u64, now_bytes: u64) {
        self.levels().for_each(|level| change(&level.count.tail_bytes, before_bytes, now_bytes));
    }

    /// Returns how many more bytes of requests may be collected, if all sessions may collect `max_bytes` together, and the tenant's no more
    /// than it may have.
    pub fn collectable_bytes(&self, max_bytes: u64) -> u64 {
        let left = |level: &Self| {
            let max_bytes = if level.above.is_some() { level.max_bytes() } else { max_bytes };
            max_bytes.saturating_sub(level.count.tail_bytes.load(Relaxed))
        };
        self.levels().map(left).min().unwrap_or(0)
    }

    /// Returns how many bytes a session may have at this level for which the dispatch counts `own_bytes` now.
    fn left_beside(&self, own_bytes: u64) -> u64 {
        self.max_bytes().saturating_sub(self.count.bytes().saturating_sub(own_bytes))
    }

    /// Returns how many bytes a session may have for which the dispatch counts `own_bytes` now.
    pub fn room_beside(&self, own_bytes: u64) -> u64 {
        self.levels().map(|level| level.left_beside(own_bytes)).min().unwrap_or(0)
    }

    /// Returns how many more bytes there may be.
    pub fn room(&self) -> u64 {
        self.room_beside(0)
    }

    /// Returns the bound that leaves least, the wider one of two that leave the same: who needs memory can have it from the sessions that
    /// have this bound too, and from no others.
    pub fn narrowest(&self) -> &Self {
        let least = self.levels().reduce(|a, b| if b.left_beside(0) <= a.left_beside(0) { b } else { a });
        least.unwrap_or(self)
    }

    /// Returns the widest bound.
    pub fn widest(&self) -> &Self {
        self.levels().last().unwrap_or(self)
    }

    /// Returns whether what a session has counts at `level`, which may be a bound of another session.
    pub fn counts_at(&self, level: &Self) -> bool {
        self.levels().any(|own| Arc::ptr_eq(&own.count, &level.count))
    }

    /// Returns how many bytes are to be lent so that there is room for `room_bytes` more, with those that are used beyond what was lent.
    pub fn lacking_bytes(&self, room_bytes: u64) -> u64 {
        self.count.bytes().saturating_add(room_bytes).saturating_sub(self.max_bytes())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.dry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up to `bytes` more from the lender; returns how many it has lent.
    pub fn take(&self, bytes: u64) -> u64 {
        let Some(lender) = &self.lender else { return 0 };
        let mut dry = self.lock();
        let taken = lender.take(bytes).min(bytes);
        self.max_bytes.store(self.max_bytes().saturating_add(taken), Relaxed);
        *dry = (taken < bytes).then(Instant::now);
        taken
    }

    /// If there is room for less than `least_bytes` more, takes as many from the lender that there is room for `room_bytes` more; asks for
    /// nothing if there was too little a moment ago.
    pub fn take_ahead(&self, least_bytes: u64, room_bytes: u64) {
        let is_dry = || self.lock().is_some_and(|since| since.elapsed() < DRY);
        if self.lender.is_some() && self.room() < least_bytes && !is_dry() {
            self.take(self.lacking_bytes(room_bytes));
        }
    }

    /// Gives back to the lender all but room for `room_bytes` more.
    pub fn give_back(&self, room_bytes: u64) {
        let Some(lender) = &self.lender else { return };
        let _alone = self.lock();
        let idle = self.room().saturating_sub(room_bytes);
        if idle > 0 {
            self.max_bytes.store(self.max_bytes().saturating_sub(idle), Relaxed);
            lender.give_back(idle);
        }
    }
}

/// What one session keeps, which counts until this is dropped.
#[derive(Debug)]
pub(crate) struct KeptBySession {
    budget: Arc<Budget>,
    bytes: u64,
    /// The most bytes since some were given back to the lender.
    high_bytes: u64,
}

impl KeptBySession {
    /// Creates the part of a session that keeps nothing.
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        Self { budget, bytes: 0, high_bytes: 0 }
    }

    /// Notes what the session keeps now.
    pub(crate) fn set(&mut self, bytes: u64) {
        self.budget.keep_bytes(std::mem::replace(&mut self.bytes, bytes), bytes);
        self.high_bytes = self.high_bytes.max(bytes);
        if bytes + 2 * AHEAD_BYTES <= self.high_bytes {
            // With what was taken in advance, which was as much.
            let idle = 2 * (self.high_bytes - bytes);
            self.budget.give_back(self.budget.room().saturating_sub(idle).max(AHEAD_BYTES));
            self.high_bytes = bytes;
        }
    }

    /// Returns how many more bytes the session may keep.
    pub(crate) fn room(&self) -> usize {
        // A ring doubles when it grows.
        self.budget.take_ahead((AHEAD_BYTES + self.bytes) / 2, AHEAD_BYTES + self.bytes);
        usize::try_from(self.budget.room()).unwrap_or(usize::MAX)
    }
}

impl Drop for KeptBySession {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lack, LenderWords};
    use hipr_tls::SecretKey;

    /// Lends what it has.
    #[derive(Debug)]
    struct Purse(AtomicU64);

    impl Lender for Purse {
        fn take(&self, bytes: u64) -> u64 {
            let taken = bytes.min(self.left_bytes());
            self.0.fetch_sub(taken, Relaxed);
            taken
        }

        fn give_back(&self, bytes: u64) {
            self.0.fetch_add(bytes, Relaxed);
        }

        fn left_bytes(&self) -> u64 {
            self.0.load(Relaxed)
        }

        fn ask_others(&self, _lack: Lack) {}

        fn has_tried(&self) {}

        fn has_returned(&self) {}

        fn words(&self) -> LenderWords {
            LenderWords::default()
        }

        fn listen(&self, _wake: Box<dyn Fn() + Send + Sync>) {}
    }

    fn grant(tenant: &str, memory_total_bytes: Option<u64>) -> Grant {
        let key = SecretKey::generate().expect("random numbers").public();
        Grant { memory_total_bytes, ..Grant::new(key, tenant) }
    }

    #[test]
    fn a_session_may_have_what_the_others_leave() {
        let budget = Budget::default();
        budget.set_max(100);
        assert_eq!((budget.has_bound(), budget.room_beside(0)), (true, 100));
        budget.use_bytes(0, 30);
        budget.use_bytes(0, 50);
        assert_eq!([30, 50, 0].map(|own| budget.room_beside(own)), [50, 70, 20]);
        budget.use_bytes(30, 60);
        assert_eq!([60, 0].map(|own| budget.room_beside(own)), [50, 0]);
        budget.use_bytes(50, 0);
        assert_eq!(budget.room_beside(60), 100);
        let free = Budget::default();
        assert_eq!((free.has_bound(), free.room_beside(0)), (false, u64::MAX));
    }

    /// Each way in which something counts, counts for all sessions of the tenant and for the worker, and for no other tenant.
    #[test]
    fn what_a_session_has_counts_for_its_tenant_and_the_worker() {
        type Way = fn(&Budget, u64, u64);
        let ways: [(&str, Way); 3] =
            [("kept", Budget::keep_bytes), ("used", Budget::use_bytes), ("collected", Budget::collect_bytes)];
        // What the worker may have, then what is left for another session of the tenant, for one of it whose line says less, for
        // another tenant's and for one without a bound, once the first has 60 bytes.
        for (max_bytes, left) in
            [(1000, [40, 0, 100, 940]), (120, [40, 0, 60, 60]), (80, [20, 0, 20, 20]), (50, [0; 4])]
        {
            for (way, count) in ways {
                let worker = Arc::new(Budget::default());
                worker.set_max(max_bytes);
                let of = |tenant, bytes| worker.of(Some(&grant(tenant, bytes)));
                let first = of("a", Some(100));
                let others = [of("a", Some(100)), of("a", Some(50)), of("b", Some(100)), of("c", None)];
                let rooms = || others.each_ref().map(|budget| budget.room());
                let before = rooms();
                count(&first, 0, 60);
                assert_eq!(rooms(), left, "{way} of {max_bytes}");
                assert_eq!(worker.of(None).room(), left[3], "{way} of {max_bytes}");
                count(&first, 60, 0);
                assert_eq!(rooms(), before, "{way} of {max_bytes}");
            }
        }
    }

    /// Who needs memory asks those who have what it lacks.
    #[test]
    fn the_bound_that_leaves_least_is_that_of_the_tenant_or_the_worker() {
        for (max_bytes, used_bytes, other_bytes, is_tenants) in [
            (1000, 0, 0, true),
            (1000, 40, 899, true),
            (1000, 40, 900, false),
            (100, 60, 0, false),
            (50, 60, 0, false),
            (u64::MAX, 200, 0, true),
        ] {
            let worker = Arc::new(Budget::default());
            worker.set_max(max_bytes);
            let [a, mate, b] = ["a", "a", "b"].map(|tenant| worker.of(Some(&grant(tenant, Some(100)))));
            a.use_bytes(0, used_bytes);
            b.use_bytes(0, other_bytes);
            let asked = [&a, &mate, &b, &worker].map(|budget| budget.counts_at(a.narrowest()));
            assert_eq!(
                asked,
                [true, true, !is_tenants, !is_tenants],
                "{max_bytes}, {used_bytes}, {other_bytes}"
            );
            assert!([&a, &mate, &b, &worker].iter().all(|budget| budget.counts_at(a.widest())));
        }
    }

    #[test]
    fn a_tenant_collects_no_more_than_it_may_have_and_all_no_more_than_they_may() {
        let worker = Arc::new(Budget::default());
        let [a, b] = [50, 1000].map(|bytes| worker.of(Some(&grant(&bytes.to_string(), Some(bytes)))));
        let left = || [&a, &b, &worker].map(|budget| budget.collectable_bytes(200));
        assert_eq!(left(), [50, 200, 200]);
        a.collect_bytes(0, 30);
        assert_eq!(left(), [20, 170, 170]);
        b.collect_bytes(0, 160);
        assert_eq!(left(), [10, 10, 10]);
        a.collect_bytes(30, 0);
        assert_eq!(left(), [40, 40, 40]);
    }

    /// Where processes have sessions, who lends knows the bounds: the session's memory is lent if there is one.
    #[test]
    fn memory_is_lent_where_there_is_a_bound() {
        let lender = || Arc::new(Purse(AtomicU64::new(70)));
        for (budget, bounded, has_bound) in [
            (Budget::lent_by(lender()), None, true),
            (Budget::lent_by(lender()), Some(100), true),
            (Budget::lent_to_tenants_by(lender()), None, false),
            (Budget::lent_to_tenants_by(lender()), Some(100), true),
        ] {
            let of_session = Arc::new(budget).of(Some(&grant("a", bounded)));
            assert_eq!(of_session.has_bound(), has_bound, "{bounded:?}");
            assert_eq!(of_session.lender().map(Lender::left_bytes), has_bound.then_some(70), "{bounded:?}");
            assert_eq!(of_session.room(), if has_bound { 0 } else { u64::MAX }, "{bounded:?}");
        }
    }

    #[test]
    fn what_is_no_longer_kept_is_given_back() {
        let purse = Arc::new(Purse(AtomicU64::new(64 << 20)));
        let mut of_session = KeptBySession::new(Arc::new(Budget::lent_by(purse.clone())));
        for bytes in (0..=16).map(|mib| mib << 20) {
            of_session.set(bytes);
            assert!(of_session.room() as u64 >= (AHEAD_BYTES + bytes) / 2, "{bytes}");
        }
        assert!(purse.left_bytes() < 48 << 20);
        for bytes in (0..=16).rev().map(|mib| mib << 20) {
            of_session.set(bytes);
        }
        assert!(purse.left_bytes() >= 60 << 20, "{} bytes are free", purse.left_bytes());
    }

    #[test]
    fn what_is_lent_is_the_most_that_there_may_be() {
        let purse = Arc::new(Purse(AtomicU64::new(100)));
        let budget = Arc::new(Budget::lent_by(purse.clone()));
        budget.set_max(u64::MAX);
        assert_eq!((budget.room(), budget.take(30), budget.room()), (0, 30, 30));
        budget.use_bytes(0, 20);
        let mut of_session = KeptBySession::new(budget.clone());
        of_session.set(5);
        assert_eq!((budget.kept_bytes(), budget.room(), budget.max_bytes()), (5, 5, 30));
        budget.give_back(10);
        assert_eq!((budget.room(), purse.left_bytes()), (5, 70), "it has less than it is to keep");
        budget.take_ahead(5, 40);
        assert_eq!((budget.room(), purse.left_bytes()), (5, 70), "there is enough");
        budget.take_ahead(6, 40);
        assert_eq!((budget.room(), purse.left_bytes()), (40, 35));
        budget.give_back(10);
        assert_eq!((budget.room(), purse.left_bytes()), (10, 65));
        assert_eq!(of_session.room(), 75, "more than there is");
        assert_eq!((purse.left_bytes(), budget.max_bytes()), (0, 100));
        purse.give_back(7);
        budget.take_ahead(80, 80);
        assert_eq!(budget.room(), 75, "there was too little a moment ago");
        assert_eq!((budget.take(80), budget.room()), (7, 82), "who needs it asks all the same");
        // More is used than was lent: nothing is given back.
        budget.use_bytes(20, 200);
        budget.give_back(0);
        assert_eq!((budget.room(), purse.left_bytes(), budget.lacking_bytes(5)), (0, 0, 103));
        budget.use_bytes(200, 0);
        drop(of_session);
        budget.give_back(0);
        assert_eq!((budget.max_bytes(), purse.left_bytes()), (0, 107));
    }
}
