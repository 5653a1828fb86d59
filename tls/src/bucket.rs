//! Rates: how many things may happen in a second, without a clock.

/// So many things in a second, and so many at once after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Things in a second; at least 1.
    pub per_second: u32,
    /// Things at once; at least 1.
    pub burst: u32,
}

impl Rate {
    /// Returns the rate of so many things in a second, of which those of a second may happen at once.
    pub fn per_second(per_second: u32) -> Self {
        Self { per_second: per_second.max(1), burst: per_second.max(1) }
    }
}

/// What is left of a rate: a token bucket. Times are milliseconds of any clock that only goes forward.
///
/// More may be taken than there is, once: what happens next then waits until that is made up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Thousandths of things that may happen; negative for those that are owed.
    left: i64,
    since_ms: u64,
}

impl Bucket {
    /// Creates a full bucket.
    pub fn new(rate: Rate, now_ms: u64) -> Self {
        Self { left: i64::from(rate.burst) * 1000, since_ms: now_ms }
    }

    /// Returns how many there are at least.
    pub fn room(&self) -> u64 {
        u64::try_from(self.left / 1000).unwrap_or(0)
    }

    fn fill(&mut self, rate: Rate, now_ms: u64) {
        let passed_ms = i64::try_from(now_ms.saturating_sub(self.since_ms)).unwrap_or(i64::MAX);
        self.since_ms = self.since_ms.max(now_ms);
        let more = passed_ms.saturating_mul(i64::from(rate.per_second));
        self.left = self.left.saturating_add(more).min(i64::from(rate.burst) * 1000);
    }

    /// Takes one, if there is one.
    pub fn take(&mut self, rate: Rate, now_ms: u64) -> bool {
        let has_one = self.wait_ms(rate, now_ms) == 0;
        if has_one {
            self.left -= 1000;
        }
        has_one
    }

    /// Takes up to `count`; returns how many.
    pub fn take_some(&mut self, count: u64, rate: Rate, now_ms: u64) -> u64 {
        self.fill(rate, now_ms);
        let count = count.min(self.room());
        // There are as many.
        self.left -= i64::try_from(count * 1000).unwrap_or(0);
        count
    }

    /// Takes `count`, even if there are fewer.
    pub fn owe(&mut self, count: u64, rate: Rate, now_ms: u64) {
        self.fill(rate, now_ms);
        let count = i64::try_from(count).unwrap_or(i64::MAX).saturating_mul(1000);
        self.left = self.left.saturating_sub(count);
    }

    /// Returns the time until there is one; 0 if there is one now.
    pub fn wait_ms(&mut self, rate: Rate, now_ms: u64) -> u64 {
        self.wait_for_ms(1, rate, now_ms)
    }

    /// Returns the time until there are `count`; 0 if there are as many now.
    pub fn wait_for_ms(&mut self, count: u32, rate: Rate, now_ms: u64) -> u64 {
        self.fill(rate, now_ms);
        let missing = (i64::from(count) * 1000).saturating_sub(self.left);
        let missing = u64::try_from(missing).unwrap_or(0);
        missing.div_ceil(u64::from(rate.per_second.max(1)))
    }

    /// Returns whether nothing was taken that has not been made up for, so that a new bucket is the same.
    pub fn is_full(&mut self, rate: Rate, now_ms: u64) -> bool {
        self.fill(rate, now_ms);
        self.left >= i64::from(rate.burst) * 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_at_once_and_then_so_many_in_a_second() {
        // Rate, burst, then at which times one is wanted, and whether it is there.
        type Case = (u32, u32, &'static [(u64, bool)]);
        let cases: [Case; 6] = [
            (1, 1, &[(0, true), (0, false), (999, false), (1000, true), (1000, false)]),
            (2, 1, &[(0, true), (499, false), (500, true), (999, false), (1000, true)]),
            (1, 3, &[(5, true), (5, true), (5, true), (5, false), (1005, true), (1005, false)]),
            // A long pause gives no more than the burst.
            (10, 2, &[(0, true), (0, true), (1 << 60, true), (1 << 60, true), (1 << 60, false)]),
            // Asking in vain costs nothing.
            (1, 1, &[(0, true), (300, false), (600, false), (900, false), (1000, true)]),
            // A clock that stands still or goes back gives nothing.
            (1, 1, &[(1000, true), (0, false), (500, false), (1999, false), (2000, true)]),
        ];
        for (per_second, burst, wanted) in cases {
            let rate = Rate { per_second, burst };
            let mut bucket = Bucket::new(rate, wanted[0].0);
            for (at, (now_ms, expected)) in wanted.iter().enumerate() {
                assert_eq!(bucket.take(rate, *now_ms), *expected, "{rate:?}: wish {at} at {now_ms} ms");
            }
        }
    }

    #[test]
    fn some_are_taken_and_more_are_waited_for() {
        let rate = Rate::per_second(10);
        let mut bucket = Bucket::new(rate, 0);
        // How many are wanted at which time, how many there are, and how long five more are waited for then.
        for (count, now_ms, taken, wait_ms) in
            [(4, 0, 4, 0), (7, 0, 6, 500), (1, 99, 0, 401), (9, 250, 2, 450), (u64::MAX, 1 << 40, 10, 500)]
        {
            assert_eq!(bucket.take_some(count, rate, now_ms), taken, "{count} at {now_ms} ms");
            assert_eq!(bucket.wait_for_ms(5, rate, now_ms), wait_ms, "{count} at {now_ms} ms");
        }
    }

    #[test]
    fn what_is_owed_is_made_up_for() {
        // How many were taken at 0, and when there is one again.
        for (rate, owed, wait_ms) in [
            (Rate::per_second(10), 9, 0),
            (Rate::per_second(10), 10, 100),
            (Rate::per_second(10), 25, 1600),
            (Rate::per_second(1000), 5000, 4001),
            (Rate { per_second: 3, burst: 1 }, 1, 334),
            (Rate { per_second: u32::MAX, burst: 1 }, 1, 1),
        ] {
            let mut bucket = Bucket::new(rate, 0);
            assert!(bucket.is_full(rate, 0));
            bucket.owe(owed, rate, 0);
            assert_eq!(bucket.wait_ms(rate, 0), wait_ms, "{rate:?}, {owed} owed");
            assert!(!bucket.is_full(rate, 0));
            if wait_ms > 0 {
                assert!(!bucket.take(rate, wait_ms - 1), "{rate:?}");
            }
            assert!(bucket.take(rate, wait_ms), "{rate:?}");
            assert!(bucket.is_full(rate, 1 << 40), "{rate:?}");
        }
        let (rate, mut bucket) = (Rate::per_second(1), Bucket::new(Rate::per_second(1), 0));
        bucket.owe(u64::MAX, rate, 0);
        bucket.owe(u64::MAX, rate, 0);
        assert!(bucket.wait_ms(rate, 1 << 40) > 0, "no overflow");
    }

    /// In any second between two moments at most the burst and one second's worth happen.
    #[test]
    fn no_stretch_of_time_has_more_than_its_share() {
        let rate = Rate { per_second: 7, burst: 4 };
        let mut bucket = Bucket::new(rate, 0);
        let times: Vec<u64> = (0..20_000).filter(|now_ms| bucket.take(rate, *now_ms)).collect();
        assert_eq!(times.len(), 4 + 7 * 20 - 1, "as much as there is, while somebody always wants some");
        for from in 0..times.len() {
            let within = times[from..].iter().take_while(|at| **at < times[from] + 1000).count();
            assert!(within <= 4 + 7, "{within} from {} ms on", times[from]);
        }
    }
}
