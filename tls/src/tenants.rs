//! How many sessions of a tenant there are at present.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};

use crate::key::sha256;
use crate::{Bucket, FileError, Grant, Rate};

/// Where the sessions of tenants are counted.
#[derive(Debug)]
pub(crate) enum Tenants {
    /// The sessions are in this process.
    Process(Arc<Mutex<HashMap<String, u32>>>, Mutex<HashMap<String, (Rate, Bucket)>>),
    /// Each session is in a process of its own; all have this folder. Who has locked a file in it has a seat, and loses it with its end.
    Folder(PathBuf),
}

/// A client that was let in. Its tenant has a session more until this is dropped.
#[derive(Debug)]
pub struct Admission {
    grant: Grant,
    _seat: Seat,
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
    Locked {
        _file: File,
    },
    /// The tenant may have any number.
    Free,
}

impl Default for Tenants {
    fn default() -> Self {
        Self::Process(Arc::default(), Mutex::default())
    }
}

impl Tenants {
    /// Counts a connection of a tenant; returns whether it may have one more now. The time is in milliseconds of the system's clock.
    ///
    /// # Errors
    /// A file in the folder cannot be had.
    pub(crate) fn may_connect(&self, grant: &Grant, now_ms: u64) -> Result<bool, FileError> {
        let Some(rate) = grant.connections_per_second.map(Rate::per_second) else { return Ok(true) };
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
                Ok(bucket.take(rate, now_ms))
            }
            Self::Folder(folder) => {
                let path = folder.join(format!("{}-rate", file_name(&grant.tenant)));
                take_from(&path, rate, now_ms).map_err(|why| FileError::new(&path, why))
            }
        }
    }

    /// Lets a client in; `None` if its tenant has as many sessions as it may have.
    ///
    /// # Errors
    /// A file in the folder cannot be had.
    pub(crate) fn admit(&self, grant: Grant) -> Result<Option<Admission>, FileError> {
        let Some(max) = grant.sessions_max else { return Ok(Some(Admission { grant, _seat: Seat::Free })) };
        let seat = match self {
            Self::Process(counts, _) => count(counts, &grant.tenant, max),
            Self::Folder(folder) => lock(folder, &grant.tenant, max)?,
        };
        Ok(seat.map(|seat| Admission { grant, _seat: seat }))
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

/// Returns what the names of a tenant's files begin with; the tenant's own name may be longer than a file's.
fn file_name(tenant: &str) -> String {
    sha256(tenant.as_bytes()).iter().fold(String::from("tenant-"), |mut name, byte| {
        // Writing to a string does not fail.
        let _ = write!(name, "{byte:02x}");
        name
    })
}

/// Takes one from the bucket that a file has, which many processes use.
fn take_from(path: &Path, rate: Rate, now_ms: u64) -> io::Result<bool> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    let mut bytes = [0; 16];
    let mut bucket = match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => Bucket::from_bytes(bytes, now_ms),
        Err(_) => Bucket::new(rate, now_ms),
    };
    let has_one = bucket.take(rate, now_ms);
    file.write_all_at(&bucket.to_bytes(), 0)?;
    Ok(has_one)
}

fn lock(folder: &Path, tenant: &str, max: u32) -> Result<Option<Seat>, FileError> {
    let name = file_name(tenant);
    for seat in 0..max {
        let path = folder.join(format!("{name}-{seat}"));
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = file.map_err(|why| FileError::new(&path, why))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(Seat::Locked { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(why) => return Err(FileError::new(&path, why)),
        }
    }
    Ok(None)
}

impl Admission {
    /// Lets a client in that goes on with a session, which has its seat already; with any other it has to end.
    pub(crate) fn again(grant: Grant) -> Self {
        Self { grant, _seat: Seat::Free }
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
    fn a_tenant_begins_so_many_sessions_in_a_second_wherever_they_are_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        for tenants in [Tenants::default(), Tenants::Folder(folder.path().to_owned())] {
            let may = |tenant, per_second, now_ms| {
                let rated = Grant { connections_per_second: per_second, ..grant(tenant, None) };
                tenants.may_connect(&rated, now_ms).expect("the folder is there")
            };
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
                assert_eq!(may(tenant, per_second, now_ms), expected, "{tenant} at {now_ms} ms, {tenants:?}");
            }
        }
        // A clock that was set back holds nobody up for longer than its rate.
        let tenants = Tenants::Folder(folder.path().to_owned());
        let rated = Grant { connections_per_second: Some(2), ..grant("a", None) };
        for (now_ms, expected) in
            [(1_000_000, true), (1_000_000, true), (10, false), (509, false), (510, true)]
        {
            assert_eq!(tenants.may_connect(&rated, now_ms).expect("a file"), expected, "at {now_ms} ms");
        }
    }

    #[test]
    fn a_tenant_has_so_many_sessions_at_a_time_wherever_they_are_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        for tenants in [Tenants::default(), Tenants::Folder(folder.path().to_owned())] {
            let admit = |tenant, max| tenants.admit(grant(tenant, max)).expect("the folder is there");
            for _ in 0..3 {
                let mut two: Vec<_> = (0..2).map(|_| admit("a", Some(2)).expect("a seat")).collect();
                assert!(admit("a", Some(2)).is_none(), "{tenants:?}");
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
    }
}
