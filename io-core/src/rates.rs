//! How many things each of many may do in a second.

use std::collections::HashMap;
use std::sync::Arc;

use hipr_tls::{Bucket, Rate};

use crate::{Ledger, Payer};

/// What is left to each. Whoever has done nothing for a while is forgotten. Times are milliseconds of any clock that only goes forward.
#[derive(Debug, Default)]
pub struct Rates {
    buckets: HashMap<Payer, (Rate, Bucket)>,
    /// Number of entries at which those that are full are removed.
    full_at: usize,
    /// Time before which it is not looked for them again.
    next_ms: u64,
}

impl Rates {
    /// Number of entries from which on it is looked for some that are not needed.
    const KEPT: usize = 1024;
    /// Maximum number of entries; whoever comes then shares one with others that do.
    const MAX: usize = 65_536;

    /// Creates an empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns what is left to somebody.
    pub fn of(&mut self, payer: Payer, rate: Rate, now_ms: u64) -> &mut Bucket {
        let is_new = !self.buckets.contains_key(&payer);
        let is_large = self.buckets.len() >= self.full_at.clamp(Self::KEPT, Self::MAX);
        if is_new && is_large && now_ms >= self.next_ms {
            self.buckets.retain(|_, (rate, bucket)| !bucket.is_full(*rate, now_ms));
            self.full_at = 2 * self.buckets.len();
            // Looking through that many takes some time.
            self.next_ms = now_ms + if self.buckets.len() >= Self::MAX / 2 { 1000 } else { 0 };
        }
        let has_place = !is_new || self.buckets.len() < Self::MAX;
        let payer = if has_place { payer } else { Payer::Others };
        let entry = self.buckets.entry(payer).or_insert_with(|| (rate, Bucket::new(rate, now_ms)));
        entry.0 = rate;
        &mut entry.1
    }
}

/// The requests that each may still make, counted here or by whoever counts for several processes.
#[derive(Debug, Default)]
pub(crate) struct RequestRates {
    rates: Rates,
    ledger: Option<Arc<dyn Ledger>>,
    /// Where others count: the requests of this process's session that were taken there and not made yet; negative for those that were
    /// made already.
    credit: i64,
}

/// Returns how many requests are taken at a time where others count: those of a fiftieth of a second.
fn piece(per_second: u32) -> u32 {
    (per_second / 50).max(1)
}

impl RequestRates {
    /// Creates a table in which nobody has made requests.
    pub(crate) fn new(ledger: Option<Arc<dyn Ledger>>) -> Self {
        Self { ledger, ..Self::default() }
    }

    /// Counts requests that were made; returns how many more may be made now.
    ///
    /// # Errors
    /// None: the time until there are some in milliseconds.
    pub(crate) fn charge(&mut self, payer: Payer, rate: Rate, count: u64, now_ms: u64) -> Result<u64, u64> {
        let Some(ledger) = &self.ledger else {
            let bucket = self.rates.of(payer, rate, now_ms);
            bucket.owe(count, rate, now_ms);
            let wait_ms = bucket.wait_ms(rate, now_ms);
            return if wait_ms > 0 { Err(wait_ms) } else { Ok(bucket.room()) };
        };
        self.credit = self.credit.saturating_sub(i64::try_from(count).unwrap_or(i64::MAX));
        while self.credit <= 0 {
            let wanted = self.credit.unsigned_abs().saturating_add(piece(rate.per_second).into());
            let taken = ledger.take_requests(payer, rate.per_second, wanted)?;
            self.credit = self.credit.saturating_add(i64::try_from(taken).unwrap_or(i64::MAX));
        }
        Ok(self.credit.unsigned_abs())
    }
}

impl Rates {
    /// Takes up to `count` things of somebody for another process: returns how many.
    ///
    /// # Errors
    /// There is none now: the time in milliseconds until there are as many as are taken at a time, at least 1.
    pub fn take_some(&mut self, payer: Payer, rate: Rate, count: u64, now_ms: u64) -> Result<u64, u64> {
        let bucket = self.of(payer, rate, now_ms);
        match bucket.take_some(count, rate, now_ms) {
            0 => Err(bucket.wait_for_ms(piece(rate.per_second), rate, now_ms).max(1)),
            taken => Ok(taken),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Peer;
    use std::net::SocketAddr;

    fn tcp(address: &str) -> Payer {
        Payer::of(Peer::Tcp(SocketAddr::new(address.parse().unwrap(), 1)), None)
    }

    #[test]
    fn each_has_a_rate_of_its_own() {
        let (rate, mut rates) = (Rate::per_second(1), Rates::new());
        let process = |pid, uid| Payer::of(Peer::Process { pid, uid, gid: 1 }, None);
        // What is wanted at which time, and whether it is there.
        for (payer, now_ms, expected) in [
            (tcp("10.0.0.1"), 0, true),
            (tcp("10.0.0.1"), 999, false),
            (tcp("::ffff:10.0.0.1"), 999, false),
            (tcp("10.0.0.2"), 999, true),
            (tcp("2001:db8::1"), 999, true),
            (tcp("2001:db8::2"), 999, false),
            (process(1, 7), 999, true),
            (process(2, 7), 999, false),
            (process(2, 8), 999, true),
            (tcp("10.0.0.1"), 1000, true),
        ] {
            assert_eq!(
                rates.of(payer, rate, now_ms).take(rate, now_ms),
                expected,
                "{payer:?} at {now_ms} ms"
            );
        }
    }

    #[test]
    fn who_does_nothing_is_forgotten_and_many_at_once_share() {
        let (rate, mut rates) = (Rate::per_second(1), Rates::new());
        for number in 0..200_000 {
            let now_ms = u64::from(number) * 1000;
            assert!(rates.of(Payer::User(number), rate, now_ms).take(rate, now_ms));
        }
        assert!(rates.buckets.len() <= Rates::KEPT + 1, "{}", rates.buckets.len());
        let mut at_once = Rates::new();
        let taken =
            (0..100_000).filter(|number| at_once.of(Payer::User(*number), rate, 0).take(rate, 0)).count();
        assert_eq!((taken, at_once.buckets.len()), (Rates::MAX + 1, Rates::MAX + 1));
        assert!(at_once.of(Payer::User(100_000), rate, 5000).take(rate, 5000));
        assert!(
            at_once.of(Payer::User(100_001), rate, 5000).take(rate, 5000),
            "they have places of their own again"
        );
    }
}
