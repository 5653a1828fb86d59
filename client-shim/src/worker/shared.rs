//! Which memory is in the file that the worker maps as well, and where in the file memory can be placed anew.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use hipr_proto::HipResult;

/// Maximum number of freed ranges that are remembered; with more the worker is asked whether they are free.
const FREED_MAX: usize = 1024;

/// The account of the file of shared memory.
///
/// A process maps what it places at once, while the worker frees and clears what was there before in the order of its requests. So what
/// was freed is not placed anew before the worker has said that it is past that.
#[derive(Debug, Default)]
pub(super) struct Shared {
    file: File,
    /// Addresses and sizes of the allocations that client and worker both map.
    live: BTreeMap<u64, u64>,
    /// Ranges of memory that was freed, with the numbers of the frees, which the worker may not have carried out.
    freed: Vec<(u64, Range<u64>)>,
    /// Number of frees.
    pub(super) frees: u64,
}

#[derive(Debug, Default)]
enum File {
    /// The worker has not been asked for one.
    #[default]
    Unasked,
    /// There is none: memory is the process's own, and its contents are copied.
    None,
    Open(Arc<OwnedFd>),
}

/// Whether memory at an address is part of the file.
#[derive(Debug)]
pub(super) enum Part {
    /// It is not.
    None,
    /// It is part of this one.
    Of(Arc<OwnedFd>),
    /// The worker has to be asked first.
    Unknown,
}

impl Shared {
    /// Returns whether `size` bytes at an address can be part of the file, if they shall.
    pub(super) fn at(&self, device_ptr: u64, size: u64, wanted: bool) -> Part {
        if !wanted {
            return Part::None;
        }
        let end = device_ptr.saturating_add(size);
        let overlaps = |(_, range): &(u64, Range<u64>)| range.start < end && device_ptr < range.end;
        match &self.file {
            File::Unasked => Part::Unknown,
            File::None => Part::None,
            File::Open(_) if self.freed.len() >= FREED_MAX || self.freed.iter().any(overlaps) => {
                Part::Unknown
            }
            File::Open(file) => Part::Of(Arc::clone(file)),
        }
    }

    /// Adds memory that is part of the file.
    pub(super) fn add(&mut self, device_ptr: u64, size: u64) {
        self.live.insert(device_ptr, size);
    }

    /// Notes that memory is freed, if it is part of the file.
    pub(super) fn free(&mut self, device_ptr: u64) {
        if let Some(size) = self.live.remove(&device_ptr) {
            self.freed.push((self.frees, device_ptr..device_ptr.saturating_add(size)));
            self.frees += 1;
        }
    }

    /// Handles the worker's answer to a question that was asked after so many frees: the file, if it has passed one.
    pub(super) fn learn(&mut self, answer: HipResult<Option<Arc<OwnedFd>>>, frees: u64) {
        let is_over = answer.is_err();
        match (&self.file, answer.ok().flatten()) {
            (File::Unasked, Some(file)) => self.file = File::Open(file),
            (File::Unasked, None) => self.file = File::None,
            // What is there stays; a worker that does not answer has no more.
            (File::Open(_), _) if is_over => self.file = File::None,
            (File::Open(_) | File::None, _) => {}
        }
        self.freed.retain(|(number, _)| *number >= frees);
    }
}

#[cfg(test)]
mod tests {
    use hipr_proto::HipError;

    use super::*;

    fn file() -> Arc<OwnedFd> {
        Arc::new(std::fs::File::open("/dev/null").expect("a file").into())
    }

    fn is_part(shared: &Shared, at: u64, size: u64) -> Option<bool> {
        match shared.at(at, size, true) {
            Part::None => Some(false),
            Part::Of(_) => Some(true),
            Part::Unknown => None,
        }
    }

    #[test]
    fn the_worker_is_asked_once_for_the_file() {
        let mut shared = Shared::default();
        assert_eq!(is_part(&shared, 0, 10), None);
        assert!(matches!(shared.at(0, 10, false), Part::None));
        shared.learn(Ok(Some(file())), 0);
        assert_eq!(is_part(&shared, 0, 10), Some(true));
        for refused in [Ok(None), Err(HipError::OUT_OF_MEMORY)] {
            let mut shared = Shared::default();
            shared.learn(refused, 0);
            assert_eq!(is_part(&shared, 0, 10), Some(false));
        }
    }

    #[test]
    fn what_was_freed_is_used_again_when_the_worker_is_past_that() {
        let mut shared = Shared::default();
        shared.learn(Ok(Some(file())), 0);
        shared.add(100, 50);
        shared.add(200, 50);
        shared.free(100);
        shared.free(300);
        let before = shared.frees;
        shared.free(200);
        for (at, size, expected) in
            [(50, 50, Some(true)), (50, 51, None), (149, 1, None), (150, 50, Some(true)), (150, 51, None)]
        {
            assert_eq!(is_part(&shared, at, size), expected, "{at} {size}");
        }
        shared.learn(Ok(None), before);
        assert_eq!((is_part(&shared, 100, 50), is_part(&shared, 200, 1)), (Some(true), None));
        shared.learn(Ok(None), shared.frees);
        assert_eq!(is_part(&shared, 200, 1), Some(true));
    }

    #[test]
    fn not_more_than_a_number_of_freed_ranges_is_remembered() {
        let mut shared = Shared::default();
        shared.learn(Ok(Some(file())), 0);
        for at in 0..FREED_MAX as u64 {
            assert_eq!(is_part(&shared, 1 << 40, 1), Some(true));
            shared.add(at, 1);
            shared.free(at);
        }
        assert_eq!(is_part(&shared, 1 << 40, 1), None);
        shared.learn(Ok(None), shared.frees);
        assert_eq!(is_part(&shared, 1 << 40, 1), Some(true));
    }
}
