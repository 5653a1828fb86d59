//! The bytes that sessions may have together: what the dispatch counts, and what they keep to outlive their connections.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Lender;

/// Time for which nothing is asked for in advance after there was too little.
const DRY: Duration = Duration::from_millis(20);
/// Bytes that the loop takes in advance for what its sessions keep.
const AHEAD_BYTES: u64 = 1 << 20;

/// Bytes of host memory that all sessions of a loop keep until their clients have them, or until they can be taken, and how many these may
/// be beside what the dispatch counts. The loop counts the former. The default is without limit.
#[derive(Debug)]
pub struct Kept {
    bytes: AtomicU64,
    /// What the dispatch counts.
    used: AtomicU64,
    /// The most bytes of both; where memory is lent, what was lent.
    max: AtomicU64,
    lender: Option<Arc<dyn Lender>>,
    /// When there was too little the last time. Who holds this is the only one who takes or gives back.
    dry: Mutex<Option<Instant>>,
}

impl Default for Kept {
    fn default() -> Self {
        Self::new(u64::MAX, None)
    }
}

impl Kept {
    fn new(max_bytes: u64, lender: Option<Arc<dyn Lender>>) -> Self {
        let (bytes, used, dry) = Default::default();
        Self { bytes, used, max: AtomicU64::new(max_bytes), lender, dry }
    }

    /// Creates the count of sessions that have what they are lent.
    pub fn lent_by(lender: Arc<dyn Lender>) -> Self {
        Self::new(0, Some(lender))
    }

    /// Returns who lends the memory, if it is lent.
    pub fn lender(&self) -> Option<&dyn Lender> {
        self.lender.as_deref()
    }

    /// Returns the number of bytes that sessions keep.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Returns how many bytes there may be, with those that the dispatch counts.
    pub fn max_bytes(&self) -> u64 {
        self.max.load(Relaxed)
    }

    /// Sets how many bytes there may be; does nothing where memory is lent.
    pub fn set_max(&self, max_bytes: u64) {
        if self.lender.is_none() {
            self.max.store(max_bytes, Relaxed);
        }
    }

    /// Notes what the dispatch counts.
    pub fn set_used(&self, bytes: u64) {
        self.used.store(bytes, Relaxed);
    }

    /// Returns how many more bytes there may be.
    pub fn room(&self) -> u64 {
        self.max_bytes().saturating_sub(self.used.load(Relaxed)).saturating_sub(self.bytes())
    }

    /// Returns how many bytes are to be lent so that there is room for `room_bytes` more, with those that are used beyond what was lent.
    pub fn lacking_bytes(&self, room_bytes: u64) -> u64 {
        let wanted = self.used.load(Relaxed).saturating_add(self.bytes()).saturating_add(room_bytes);
        wanted.saturating_sub(self.max_bytes())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.dry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up to `bytes` more from the lender; returns how many it has lent.
    pub fn take(&self, bytes: u64) -> u64 {
        let Some(lender) = &self.lender else { return 0 };
        let mut dry = self.lock();
        let taken = lender.take(bytes).min(bytes);
        self.max.store(self.max_bytes().saturating_add(taken), Relaxed);
        *dry = (taken < bytes).then(Instant::now);
        taken
    }

    /// If there is room for less than `least_bytes` more, takes as many from the lender that there is room for `room_bytes` more; asks for
    /// nothing if there was too little a moment ago.
    pub fn take_ahead(&self, least_bytes: u64, room_bytes: u64) {
        let is_dry = || self.lock().is_some_and(|since| since.elapsed() < DRY);
        if self.room() < least_bytes && self.lender.is_some() && !is_dry() {
            self.take(self.lacking_bytes(room_bytes));
        }
    }

    /// Gives back to the lender all but room for `room_bytes` more.
    pub fn give_back(&self, room_bytes: u64) {
        let Some(lender) = &self.lender else { return };
        let _alone = self.lock();
        let idle = self.room().saturating_sub(room_bytes);
        if idle > 0 {
            self.max.store(self.max_bytes().saturating_sub(idle), Relaxed);
            lender.give_back(idle);
        }
    }
}

/// The part of one session, which counts until this is dropped.
#[derive(Debug)]
pub(crate) struct KeptBySession {
    all: Arc<Kept>,
    bytes: u64,
    /// The most bytes since some were given back to the lender.
    high_bytes: u64,
}

impl KeptBySession {
    /// Creates the part of a session that keeps nothing.
    pub(crate) fn new(all: &Arc<Kept>) -> Self {
        Self { all: all.clone(), bytes: 0, high_bytes: 0 }
    }

    /// Notes what the session keeps now.
    pub(crate) fn set(&mut self, bytes: u64) {
        // Only the loop's thread changes it.
        let others = self.all.bytes().saturating_sub(self.bytes);
        self.all.bytes.store(others.saturating_add(bytes), Relaxed);
        self.bytes = bytes;
        self.high_bytes = self.high_bytes.max(bytes);
        if bytes + 2 * AHEAD_BYTES <= self.high_bytes {
            // With what was taken in advance, which was as much.
            let idle = 2 * (self.high_bytes - bytes);
            self.all.give_back(self.all.room().saturating_sub(idle).max(AHEAD_BYTES));
            self.high_bytes = bytes;
        }
    }

    /// Returns how many more bytes all sessions may keep.
    pub(crate) fn room(&self) -> usize {
        // A ring doubles when it grows.
        self.all.take_ahead((AHEAD_BYTES + self.bytes) / 2, AHEAD_BYTES + self.bytes);
        usize::try_from(self.all.room()).unwrap_or(usize::MAX)
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
    use crate::LenderWords;

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

        fn ask_others(&self) {}

        fn has_tried(&self) {}

        fn has_returned(&self) {}

        fn words(&self) -> LenderWords {
            LenderWords::default()
        }

        fn listen(&self, _wake: Box<dyn Fn() + Send + Sync>) {}
    }

    #[test]
    fn what_is_no_longer_kept_is_given_back() {
        let purse = Arc::new(Purse(AtomicU64::new(64 << 20)));
        let kept = Arc::new(Kept::lent_by(purse.clone()));
        let mut of_session = KeptBySession::new(&kept);
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
        let kept = Arc::new(Kept::lent_by(purse.clone()));
        kept.set_max(u64::MAX);
        assert_eq!((kept.room(), kept.take(30), kept.room()), (0, 30, 30));
        kept.set_used(20);
        let mut of_session = KeptBySession::new(&kept);
        of_session.set(5);
        assert_eq!((kept.bytes(), kept.room(), kept.max_bytes()), (5, 5, 30));
        kept.give_back(10);
        assert_eq!((kept.room(), purse.left_bytes()), (5, 70), "it has less than it is to keep");
        kept.take_ahead(5, 40);
        assert_eq!((kept.room(), purse.left_bytes()), (5, 70), "there is enough");
        kept.take_ahead(6, 40);
        assert_eq!((kept.room(), purse.left_bytes()), (40, 35));
        kept.give_back(10);
        assert_eq!((kept.room(), purse.left_bytes()), (10, 65));
        assert_eq!(of_session.room(), 75, "more than there is");
        assert_eq!((purse.left_bytes(), kept.max_bytes()), (0, 100));
        purse.give_back(7);
        kept.take_ahead(80, 80);
        assert_eq!(kept.room(), 75, "there was too little a moment ago");
        assert_eq!((kept.take(80), kept.room()), (7, 82), "who needs it asks all the same");
        // More is used than was lent: nothing is given back.
        kept.set_used(200);
        kept.give_back(0);
        assert_eq!((kept.room(), purse.left_bytes(), kept.lacking_bytes(5)), (0, 0, 103));
        kept.set_used(0);
        drop(of_session);
        kept.give_back(0);
        assert_eq!((kept.max_bytes(), purse.left_bytes()), (0, 107));
    }
}
