//! How many sessions of a tenant there are at present.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Bucket, Grant, Rate};

/// Counts the sessions of tenants for the processes of a worker, each of which has one session. A call waits for the answer of whoever
/// counts. Tenants have the numbers that [`Grant::tenant_number`] returns.
pub trait TenantCounter: fmt::Debug + Send + Sync {
    /// Counts a session that a tenant begins, of which there may be `per_second` in a second; returns whether there may be one more now.
    fn may_begin(&self, tenant: u64, per_second: u32) -> bool;

    /// Takes a place for this process's session among those of a tenant, of which there may be `max`, if there is a limit; returns false if
    /// there is none. The place is free again when the process ends. From now on the process asks for this tenant and no other.
    fn take_place(&self, tenant: u64, max: Option<u32>) -> bool;
}

/// Where the sessions of tenants are counted.
#[derive(Debug)]
pub(crate) enum Tenants {
    /// The sessions are in this process.
    Process(Arc<Mutex<HashMap<String, u32>>>, Mutex<HashMap<String, (Rate, Bucket)>>),
    /// Each session is in a process of its own.
    Elsewhere(Arc<dyn TenantCounter>),
}

/// A client that was let in. Its tenant has a session more until this is dropped.
#[derive(Debug)]
pub struct Admission {
    grant: Grant,
    _seat: Seat,
    is_by_capability: bool,
}

impl Deref for Admission {
    type Target = Grant;

    fn deref(&self) -> &Grant {
        &self.grant
    }
}

#[derive(Debug)]
enum Seat {
    Counted {
        tenant: String,
        counts: Arc<Mutex<HashMap<String, u32>>>,
    },
    /// The tenant may have any number, or it is counted elsewhere.
    Free,
}

impl Default for Tenants {
    fn default() -> Self {
        Self::Process(Arc::default(), Mutex::default())
    }
}

impl Tenants {
    /// Counts a connection of a tenant; returns whether it may have one more now. The time is in milliseconds of the system's clock.
    pub(crate) fn may_connect(&self, grant: &Grant, now_ms: u64) -> bool {
        let Some(per_second) = grant.connections_per_second else { return true };
        let rate = Rate::per_second(per_second);
        match self {
            Self::Process(_, buckets) => {
                let mut buckets = buckets.lock().unwrap_or_else(PoisonError::into_inner);
                // As many as there are tenants in the file, and those that were struck off.
                buckets.retain(|tenant, (rate, bucket)| {
                    *tenant == grant.tenant || !bucket.is_full(*rate, now_ms)
                });
                let new = || (rate, Bucket::new(rate, now_ms));
                let (known, bucket) = buckets.entry(grant.tenant.clone()).or_insert_with(new);
                *known = rate;
                bucket.take(rate, now_ms)
            }
            Self::Elsewhere(counter) => counter.may_begin(grant.tenant_number(), per_second),
        }
    }

    /// Lets a client in; `None` if its tenant has as many sessions as it may have.
    pub(crate) fn admit(&self, grant: Grant) -> Option<Admission> {
        let seat = match (self, grant.sessions_max) {
            (Self::Elsewhere(counter), max) => {
                counter.take_place(grant.tenant_number(), max).then_some(Seat::Free)
            }
            (Self::Process(..), None) => Some(Seat::Free),
            (Self::Process(counts, _), Some(max)) => count(counts, &grant.tenant, max),
        };
        seat.map(|seat| Admission { grant, _seat: seat, is_by_capability: false })
    }
}

fn count(counts: &Arc<Mutex<HashMap<String, u32>>>, tenant: &str, max: u32) -> Option<Seat> {
    let mut all = counts.lock().unwrap_or_else(PoisonError::into_inner);
    let sessions = all.entry(tenant.to_owned()).or_default();
    (*sessions < max).then(|| {
        *sessions += 1;
        Seat::Counted { tenant: tenant.to_owned(), counts: counts.clone() }
    })
}

impl Admission {
    /// Lets a client in that goes on with a session, which has its seat already; with any other it has to end.
    pub(crate) fn again(grant: Grant) -> Self {
        Self { grant, _seat: Seat::Free, is_by_capability: false }
    }

    /// Lets the client do nothing else but read what a capability is for.
    pub(crate) fn by_capability(self) -> Self {
        Self { is_by_capability: true, ..self }
    }

    /// Returns whether the client was let in by a capability, and may do nothing else but read what that is for.
    pub fn is_by_capability(&self) -> bool {
        self.is_by_capability
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Self::Counted { tenant, counts } = self else { return };
        let mut all = counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sessions) = all.get_mut(tenant) {
            *sessions -= 1;
            if *sessions == 0 {
                all.remove(tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SecretKey;

    fn grant(tenant: &str, sessions_max: Option<u32>) -> Grant {
        let key = SecretKey::generate().expect("random numbers").public();
        Grant { sessions_max, ..Grant::new(key, tenant) }
    }

    #[test]
    fn a_tenant_begins_so_many_sessions_in_a_second() {
        let tenants = Tenants::default();
        for (tenant, per_second, now_ms, expected) in [
            ("a", Some(2), 5_000, true),
            ("a", Some(2), 5_000, true),
            ("a", Some(2), 5_000, false),
            ("b", Some(1), 5_000, true),
            ("b", Some(1), 5_999, false),
            ("c", None, 5_999, true),
            ("c", None, 5_999, true),
            ("a", Some(2), 5_500, true),
            ("a", Some(2), 5_999, false),
            // Another key of the tenant's may have another rate.
            ("a", Some(1000), 6_003, true),
        ] {
            let rated = Grant { connections_per_second: per_second, ..grant(tenant, None) };
            assert_eq!(tenants.may_connect(&rated, now_ms), expected, "{tenant} at {now_ms} ms");
        }
    }

    #[test]
    fn a_tenant_has_so_many_sessions_at_a_time() {
        let tenants = Tenants::default();
        let admit = |tenant, max| tenants.admit(grant(tenant, max));
        for _ in 0..3 {
            let mut two: Vec<_> = (0..2).map(|_| admit("a", Some(2)).expect("a seat")).collect();
            assert!(admit("a", Some(2)).is_none());
            // Another key of the same tenant may have another limit; others are not concerned.
            assert!(admit("a", Some(1)).is_none() && admit("a", Some(3)).is_some());
            assert!(admit("b", Some(1)).is_some() && admit("a", None).is_some());
            two.pop();
            let again = admit("a", Some(2)).expect("a seat is free");
            assert_eq!(again.tenant, "a");
            assert!(admit("a", Some(2)).is_none());
        }
        assert!(admit("a", Some(0)).is_none());
    }

    #[derive(Debug, Default)]
    struct Asked(Mutex<Vec<(u64, Option<u32>)>>);

    impl TenantCounter for Asked {
        fn may_begin(&self, tenant: u64, per_second: u32) -> bool {
            self.0.lock().expect("a list").push((tenant, Some(per_second)));
            per_second > 1
        }

        fn take_place(&self, tenant: u64, max: Option<u32>) -> bool {
            self.0.lock().expect("a list").push((tenant, max));
            max != Some(1)
        }
    }

    /// Who counts elsewhere learns of each client's tenant, also of one without limits: for that one the process asks from then on.
    #[test]
    fn who_counts_elsewhere_is_asked_for_each_client() {
        let asked = Arc::new(Asked::default());
        let tenants = Tenants::Elsewhere(asked.clone());
        let number = grant("a", None).tenant_number();
        for (max, is_in) in [(None, true), (Some(1), false), (Some(2), true)] {
            assert_eq!(tenants.admit(grant("a", max)).is_some(), is_in, "{max:?}");
        }
        for (per_second, expected) in [(None, true), (Some(1), false), (Some(2), true)] {
            let rated = Grant { connections_per_second: per_second, ..grant("a", None) };
            assert_eq!(tenants.may_connect(&rated, 0), expected, "{per_second:?}");
        }
        let all = [None, Some(1), Some(2), Some(1), Some(2)].map(|limit| (number, limit));
        assert_eq!(*asked.0.lock().expect("a list"), all);
    }
}
