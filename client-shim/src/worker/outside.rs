//! Whether something else than this process's threads may write to its memory without the kernel noting it: devices to which pages were
//! given, for direct I/O that `libaio` or io_uring has under way, for buffers that are registered with io_uring, for RDMA.
//!
//! Who can do so has a descriptor of an io_uring or of an RDMA device, or a context of Linux AIO, which is a mapping with a name. All are
//! looked for when the number of descriptors has changed, and once in a while.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::lock;

/// Time after which is looked again although there are as many descriptors as before.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What was seen of those who may write.
#[derive(Debug, Default)]
pub(super) struct Outside {
    is_found: AtomicBool,
    last: Mutex<Option<Look>>,
}

/// When was looked, and how many descriptors there were.
#[derive(Clone, Copy, Debug)]
struct Look {
    at: Instant,
    descriptors: u64,
}

impl Outside {
    /// Returns whether somebody may write. It stays so: what was under way may still be.
    pub(super) fn may_write(&self) -> bool {
        if self.is_found() {
            return true;
        }
        let mut last = lock(&self.last);
        let now = Look { at: Instant::now(), descriptors: descriptors() };
        let is_same = |last: Look| last.descriptors == now.descriptors && now.at - last.at < LOOK_AGAIN;
        if last.is_some_and(is_same) {
            return false;
        }
        *last = Some(now);
        let Some(what) = find() else { return false };
        tracing::info!(
            "host memory that exists twice is compared before each launch from now on: the process has {what}, with which devices \
             write to memory unnoticed (HIPR_DIRTY=kernel trusts the kernel all the same)"
        );
        self.is_found.store(true, Ordering::Relaxed);
        true
    }

    /// Returns whether somebody who may write was found.
    pub(super) fn is_found(&self) -> bool {
        self.is_found.load(Ordering::Relaxed)
    }
}

/// Returns the number of the process's descriptors (Linux 6.2; 0 before).
fn descriptors() -> u64 {
    fs::metadata("/proc/self/fd").map_or(0, |folder| folder.size())
}

/// Returns who may write.
fn find() -> Option<&'static str> {
    let descriptors = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let what = |entry: fs::DirEntry| of_descriptor(fs::read_link(entry.path()).ok()?.to_str()?);
    let found = descriptors.filter_map(what).next();
    // Mappings are many: they are read last.
    found.or_else(|| of_mappings(&fs::read_to_string("/proc/self/maps").ok()?))
}

/// Returns who may write by what a descriptor is of.
fn of_descriptor(link: &str) -> Option<&'static str> {
    match link {
        "anon_inode:[io_uring]" => Some("an io_uring"),
        link if link.starts_with("/dev/infiniband/uverbs") => Some("an RDMA device"),
        _ => None,
    }
}

/// Returns who may write by the kernel's list of mappings.
fn of_mappings(maps: &str) -> Option<&'static str> {
    maps.lines().any(|line| line.contains(" /[aio]")).then_some("a context of Linux AIO")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_write_is_known_by_its_descriptor_or_mapping() {
        for (link, is_found) in [
            ("anon_inode:[io_uring]", true),
            ("/dev/infiniband/uverbs0", true),
            ("anon_inode:[eventpoll]", false),
            ("/tmp/anon_inode:[io_uring]", false),
            ("socket:[1234]", false),
        ] {
            assert_eq!(of_descriptor(link).is_some(), is_found, "{link}");
        }
        let plain = "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n";
        let context = "7f0000001000-7f0000003000 rw-s 00000000 00:11 77 /[aio] (deleted)\n";
        assert_eq!(of_mappings(plain), None);
        assert!(of_mappings(&[plain, context].concat()).is_some());
    }

    #[test]
    fn the_kernel_counts_the_descriptors() {
        let outside = Outside::default();
        if outside.may_write() {
            // The test's own process has one.
            return;
        }
        let Some(looked) = *lock(&outside.last) else { panic!("it was looked for") };
        assert!(looked.descriptors > 0, "the kernel counts descriptors");
        assert!(!outside.is_found());
    }
}
