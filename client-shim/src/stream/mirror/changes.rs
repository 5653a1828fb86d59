//! Brings the changed pages that the worker tells into mirrored memory.

use hipr_proto::HipResult;
use hipr_proto::op::{Changes, MemChanges, Pages};

use super::diff::{PAGE, merge};
use super::questions::Ranges;
use crate::convert::Ptr;
use crate::worker::{ChangesAnswer, HostMemory};

/// Merges the pages of an answer into the memory at `host`, whose twin is `twin`; both are those of the range that was asked about. What
/// the program has `sent` since, by host addresses, is left out. Returns the number of bytes that were told; `None` if the worker does
/// not know what has changed.
///
/// # Errors
/// What the worker answers; `hipErrorInvalidValue` if the answer makes no sense. Nothing has been written then.
pub(super) fn apply(
    memory: &dyn HostMemory,
    host: Ptr,
    twin: &mut [u8],
    request: &MemChanges,
    sent: &Ranges,
    answer: ChangesAnswer,
) -> HipResult<Option<usize>> {
    let (reply, tail) = answer?;
    let Some(changes) = Changes::parse(request, &reply, &tail)? else { return Ok(None) };
    for (start, pages) in changes.iter() {
        let start = start as usize;
        let mut take = |at: usize, bytes: &[u8]| {
            sent.outside(host.0 + at, bytes.len(), |address, len| {
                let (from, to) = (address - host.0, address - host.0 + len);
                if let (Some(twin), Some(bytes)) = (twin.get_mut(from..to), bytes.get(from - at..to - at)) {
                    merge(memory, Ptr(address), twin, bytes);
                }
            });
        };
        match pages {
            Pages::Bytes(bytes) => take(start, bytes),
            Pages::Zeros(len) => {
                const ZEROS: [u8; PAGE] = [0; PAGE];
                let len = len as usize;
                for at in (0..len).step_by(PAGE) {
                    take(start + at, ZEROS.get(..len - at).unwrap_or(&ZEROS));
                }
            }
        }
    }
    Ok(Some(reply.covered as usize))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use hipr_proto::op::{MemChangesReply, PageRun};
    use hipr_proto::{HipError, Wire};

    use super::*;

    /// Host memory that has a guard on each side of the region.
    struct Memory(RefCell<Vec<u8>>);

    const GUARD: usize = 64;
    const LEN: usize = 2 * PAGE + 100;
    const HOST: Ptr = Ptr(GUARD);

    impl HostMemory for Memory {
        fn read_host(&self, at: Ptr, into: &mut [u8]) {
            into.copy_from_slice(&self.0.borrow()[at.0..at.0 + into.len()]);
        }

        fn write_host(&self, at: Ptr, bytes: &[u8]) {
            self.0.borrow_mut()[at.0..at.0 + bytes.len()].copy_from_slice(bytes);
        }
    }

    fn memory() -> Memory {
        Memory(RefCell::new([[0xaa; GUARD].as_slice(), &[0; LEN], &[0xaa; GUARD]].concat()))
    }

    fn tail(runs: &[(u32, u32, u32)], bytes: &[u8]) -> Vec<u8> {
        let mut tail = Vec::new();
        runs.iter().for_each(|&(first, count, kind)| PageRun { first, count, kind }.put(&mut tail));
        tail.extend_from_slice(bytes);
        tail
    }

    fn reply(covered: usize, runs: usize, is_known: u32) -> MemChangesReply {
        MemChangesReply { covered: covered as u64, num_runs: runs as u32, is_known }
    }

    const REQUEST: MemChanges = MemChanges { address: 0x1000, length: LEN as u64, stream: 7 };

    #[test]
    fn what_both_sides_wrote_in_a_page_survives() {
        let (memory, mut twin) = (memory(), vec![0; LEN]);
        memory.write_host(HOST.offset(10), &[1]);
        memory.write_host(HOST.offset(2 * PAGE + 99), &[2]);
        let mut pages = vec![0; PAGE + 100];
        (pages[11], pages[PAGE + 98]) = (3, 4);
        let runs = [(0, 1, 0), (2, 1, 0)];
        let told = apply(
            &memory,
            HOST,
            &mut twin,
            &REQUEST,
            &Ranges::default(),
            Ok((reply(LEN, 2, 1), tail(&runs, &pages))),
        );
        assert_eq!(told, Ok(Some(LEN)));
        let host = memory.0.borrow();
        let at = |offset: usize| (host[GUARD + offset], twin[offset]);
        assert_eq!([at(10), at(11)], [(1, 0), (3, 3)]);
        assert_eq!([at(2 * PAGE + 98), at(2 * PAGE + 99)], [(4, 4), (2, 0)]);
    }

    #[test]
    fn what_the_program_has_sent_since_is_left_out() {
        let (memory, mut twin) = (memory(), vec![0; LEN]);
        let mut sent = Ranges::default();
        sent.add(HOST.0 + 8, 4);
        sent.add(HOST.0 + PAGE - 4, 8);
        memory.write_host(HOST.offset(8), &[7; 4]);
        twin[8..12].fill(7);
        let answer = Ok((reply(LEN, 1, 1), tail(&[(0, 3, 0)], &[5; LEN])));
        assert_eq!(apply(&memory, HOST, &mut twin, &REQUEST, &sent, answer), Ok(Some(LEN)));
        let mut expected = vec![5; LEN];
        expected[8..12].fill(7);
        expected[PAGE - 4..PAGE + 4].fill(0);
        assert_eq!(memory.0.borrow()[GUARD..GUARD + LEN], expected);
        assert_eq!(twin, expected);
    }

    #[test]
    fn a_page_of_zeros_is_a_change_like_any() {
        let (memory, mut twin) = (memory(), vec![5; LEN]);
        memory.write_host(HOST, &[5; LEN]);
        memory.write_host(HOST.offset(PAGE + 1), &[6]);
        let runs = [(1, 2, 1)];
        let told = apply(
            &memory,
            HOST,
            &mut twin,
            &REQUEST,
            &Ranges::default(),
            Ok((reply(LEN, 1, 1), tail(&runs, &[]))),
        );
        assert_eq!(told, Ok(Some(LEN)));
        let expected = [vec![5; PAGE], vec![0; LEN - PAGE]].concat();
        assert_eq!(twin, expected);
        assert_eq!(memory.0.borrow()[GUARD..GUARD + LEN], expected, "the device wrote that byte, too");
        assert_eq!(memory.0.borrow()[GUARD + LEN..], [0xaa; GUARD]);
    }

    #[test]
    fn a_reply_that_makes_no_sense_writes_nothing() {
        let whole = vec![9; LEN];
        let cases: &[(MemChangesReply, Vec<u8>)] = &[
            (reply(LEN, 1, 1), tail(&[(3, 1, 0)], &whole)),
            (reply(LEN, 1, 1), tail(&[(2, 2, 0)], &whole[..100])),
            (reply(LEN, 1, 1), tail(&[(u32::MAX, 1, 1)], &[])),
            (reply(LEN, 2, 1), tail(&[(0, 2, 1), (1, 1, 1)], &[])),
            (reply(LEN, 2, 1), tail(&[(1, 1, 1), (0, 1, 1)], &[])),
            (reply(LEN, 1, 1), tail(&[(0, 1, 0)], &whole[..PAGE - 1])),
            (reply(LEN, 1, 1), tail(&[(0, 1, 0)], &whole[..PAGE + 1])),
            (reply(LEN, 2, 1), tail(&[(0, 1, 0)], &whole[..PAGE])),
            (reply(LEN, 1, 2), tail(&[(0, 1, 0)], &whole[..PAGE])),
            (reply(LEN, 1, 0), tail(&[(0, 1, 0)], &whole[..PAGE])),
            (reply(LEN + 1, 1, 1), tail(&[(0, 1, 0)], &whole[..PAGE])),
            (reply(PAGE, 1, 1), tail(&[(1, 1, 0)], &whole[..PAGE])),
            (reply(0, 0, 1), Vec::new()),
            (reply(LEN, u32::MAX as usize, 1), Vec::new()),
        ];
        for (reply, tail) in cases {
            let (memory, mut twin) = (memory(), vec![0; LEN]);
            let before = memory.0.borrow().clone();
            let answer = Ok((*reply, tail.clone()));
            assert!(
                apply(&memory, HOST, &mut twin, &REQUEST, &Ranges::default(), answer).is_err(),
                "{reply:?}"
            );
            assert!(*memory.0.borrow() == before && twin.iter().all(|byte| *byte == 0), "{reply:?}");
        }
        let told = |answer| apply(&memory(), HOST, &mut vec![0; LEN], &REQUEST, &Ranges::default(), answer);
        assert_eq!(told(Ok((reply(0, 0, 0), Vec::new()))), Ok(None));
        assert_eq!(told(Err(HipError::LAUNCH_FAILURE)), Err(HipError::LAUNCH_FAILURE));
    }
}
