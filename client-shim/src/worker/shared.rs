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
/// was freed is not placed anew before the worker has said that it is past that. The worker refuses memory while the file has more bytes
/// than the session may have; so what was freed and what is there are together never more than that, at no request that the worker has
/// yet to carry out.
#[derive(Debug, Default)]
pub(super) struct Shared {
    file: File,
    /// Addresses and sizes of the allocations that client and worker both map.
    live: BTreeMap<u64, u64>,
    live_bytes: u64,
    /// Ranges of memory that was freed, with the numbers of the frees, which the worker may not have carried out.
    freed: Vec<(u64, Range<u64>)>,
    freed_bytes: u64,
    /// The fewest bytes that the file may have at a request which the worker may not have carried out; and at one behind the last question.
    /// `None` without such requests.
    room_bytes: [Option<u64>; 2],
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
    /// Returns whether `size` bytes at an address can be part of the file, if they shall, where the lease has so many bytes besides them.
    pub(super) fn at(&self, device_ptr: u64, size: u64, lease_bytes: u64, wanted: bool) -> Part {
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
            File::Open(_) if !self.freed.is_empty() && !self.has_room(size, lease_bytes) => Part::Unknown,
            File::Open(file) => Part::Of(Arc::clone(file)),
        }
    }

    /// Returns whether the worker finds no more in the file than it may have, whichever request it carries out, if `size` bytes are added.
    fn has_room(&self, size: u64, lease_bytes: u64) -> bool {
        let there = self.live_bytes.saturating_add(size);
        let room = there.saturating_add(lease_bytes);
        there.saturating_add(self.freed_bytes) <= self.room_bytes[0].map_or(room, |least| least.min(room))
    }

    /// Notes that a request is sent at which the lease has so many bytes.
    pub(super) fn note_room(&mut self, lease_bytes: u64) {
        let room = self.live_bytes.saturating_add(lease_bytes);
        for least in &mut self.room_bytes {
            *least = Some(least.map_or(room, |least| least.min(room)));
        }
    }

    /// Notes that a question is sent, whose answer says that all before it is carried out; returns the number of frees before it.
    pub(super) fn ask(&mut self) -> u64 {
        self.room_bytes[1] = None;
        self.frees
    }

    /// Adds memory that is part of the file.
    pub(super) fn add(&mut self, device_ptr: u64, size: u64) {
        self.live.insert(device_ptr, size);
        self.live_bytes = self.live_bytes.saturating_add(size);
    }

    /// Notes that memory is freed, if it is part of the file.
    pub(super) fn free(&mut self, device_ptr: u64) {
        if let Some(size) = self.live.remove(&device_ptr) {
            self.live_bytes = self.live_bytes.saturating_sub(size);
            self.freed_bytes = self.freed_bytes.saturating_add(size);
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
        self.freed_bytes = self.freed.iter().map(|(_, range)| range.end - range.start).sum();
        self.room_bytes[0] = self.room_bytes[1];
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
        match shared.at(at, size, 1 << 50, true) {
            Part::None => Some(false),
            Part::Of(_) => Some(true),
            Part::Unknown => None,
        }
    }

    #[test]
    fn the_worker_is_asked_once_for_the_file() {
        let mut shared = Shared::default();
        assert_eq!(is_part(&shared, 0, 10), None);
        assert!(matches!(shared.at(0, 10, 0, false), Part::None));
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
    fn the_file_never_has_more_than_the_session_may_have() {
        let mut shared = Shared::default();
        shared.learn(Ok(Some(file())), 0);
        let can_be =
            |shared: &Shared, size, lease| !matches!(shared.at(1 << 40, size, lease, true), Part::Unknown);
        // Of 100 bytes 60 are used and freed: there are 40 until the worker has cleared them.
        shared.add(0, 60);
        shared.note_room(40);
        shared.free(0);
        assert!(can_be(&shared, 40, 60) && !can_be(&shared, 41, 59));
        shared.learn(Ok(None), shared.frees);
        assert!(can_be(&shared, 100, 0), "nothing was freed since");
        // A request that leaves less is carried out later than one that is sent now, and earlier than one that is sent when there is more again.
        shared.add(0, 10);
        shared.note_room(90);
        shared.free(0);
        shared.note_room(15);
        assert!(can_be(&shared, 5, 95) && !can_be(&shared, 6, 94));
        let frees = shared.ask();
        shared.note_room(50);
        shared.learn(Ok(None), frees);
        shared.add(0, 20);
        shared.free(0);
        assert!(can_be(&shared, 30, 70) && !can_be(&shared, 31, 69), "what was sent behind the question");
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
