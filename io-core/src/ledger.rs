//! What is counted for whole tenants: sessions without a connection, and who counts where each session has a process of its own.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use crate::Payer;

/// Counts for the processes of a worker, each of which has one session, what their sessions have together. A call waits for the answer of
/// whoever counts, and for nothing that other sessions do.
pub trait Ledger: fmt::Debug + Send + Sync {
    /// Takes a place for this process's session, which has lost its connection, among those of the payer, of which there may be `max`.
    /// Returns false if there is none.
    fn park(&self, payer: Payer, max: u32) -> bool;

    /// Gives the place back: the session goes on over another connection.
    fn unpark(&self);

    /// Takes up to `count` of the payer's requests, of which there are `per_second` in a second: returns how many.
    ///
    /// # Errors
    /// There is none now: the time in milliseconds until there are some, at least 1.
    fn take_requests(&self, payer: Payer, per_second: u32, count: u64) -> Result<u64, u64>;
}

/// How many places each payer has taken of those that it may have: of sessions, or of those without a connection.
#[derive(Debug, Default)]
pub struct Places(HashMap<Payer, u32>);

impl Places {
    /// Takes one of the `max` places of a payer; returns false if it has as many already.
    pub fn take(&mut self, payer: Payer, max: u32) -> bool {
        let count = self.0.get(&payer).copied().unwrap_or(0);
        let has_place = count < max;
        if has_place {
            self.0.insert(payer, count + 1);
        }
        has_place
    }

    /// Gives a place back that was taken.
    pub fn give_back(&mut self, payer: Payer) {
        if let Entry::Occupied(mut count) = self.0.entry(payer) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_payer_has_so_many_places_and_none_is_lost() {
        let mut places = Places::default();
        let (a, b) = (Payer::Tenant(1), Payer::User(1));
        for _ in 0..3 {
            assert!(places.take(a, 2) && places.take(a, 2) && !places.take(a, 2));
            assert!(places.take(b, 1) && !places.take(b, 1) && places.take(b, 2));
            // Another key of the same tenant may have another limit.
            assert!(places.take(a, 3) && !places.take(a, 1));
            places.give_back(a);
            places.give_back(a);
            assert!(places.take(a, 2) && !places.take(a, 2));
            [a, a, b, b].into_iter().for_each(|payer| places.give_back(payer));
            assert!(places.0.is_empty());
            places.give_back(a);
        }
        assert!(!places.take(a, 0));
    }
}
