//! Finds changes of mirrored memory by comparing it with its twin.

use hipr_proto::HipResult;

use crate::convert::Ptr;
use crate::worker::HostMemory;

/// Number of bytes compared at once.
pub(super) const PAGE: usize = 4096;
/// Granularity, in bytes, at which changes of host and device in the same page are distinguished.
pub(super) const WORD: usize = 4;
/// Number of changed bytes collected before they are sent.
const RUN_BYTES: usize = 4 << 20;

/// Calls `send` for each run of units in which `host` differs from `twin`, and updates `twin`. The program may write while this
/// runs: what is compared is a copy, and that copy is what is sent.
///
/// # Errors
/// Those of `send`.
pub(super) fn changes(
    memory: &dyn HostMemory,
    host: Ptr,
    twin: &mut [u8],
    unit: usize,
    mut send: impl FnMut(usize, &[u8]) -> HipResult<()>,
) -> HipResult<()> {
    let mut page = [0u8; PAGE];
    // The run of changed bytes that has not been sent, and where it begins.
    let mut run: Vec<u8> = Vec::new();
    let mut start = 0;
    for (index, old) in twin.chunks_mut(PAGE).enumerate() {
        let offset = index * PAGE;
        let new = page.get_mut(..old.len()).unwrap_or_default();
        memory.read_host(host.offset(offset), new);
        if new == old {
            if !run.is_empty() {
                send(start, &run)?;
                run.clear();
            }
            continue;
        }
        for (index, (new, old)) in new.chunks(unit).zip(old.chunks(unit)).enumerate() {
            if new != old {
                if run.is_empty() {
                    start = offset + index * unit;
                }
                run.extend_from_slice(new);
            }
            if (new == old || run.len() >= RUN_BYTES) && !run.is_empty() {
                send(start, &run)?;
                run.clear();
            }
        }
        old.copy_from_slice(new);
    }
    if run.is_empty() { Ok(()) } else { send(start, &run) }
}

/// Copies the bytes that the device changed (where `device` differs from `twin`) to the host's memory, and no others, as the
/// program may be writing next to them.
pub(super) fn merge(memory: &dyn HostMemory, host: Ptr, twin: &mut [u8], device: &[u8]) {
    for (index, (old, new)) in twin.chunks_mut(PAGE).zip(device.chunks(PAGE)).enumerate() {
        if old == new {
            continue;
        }
        let differs = |(old, new): &(&u8, &u8)| old != new;
        let mut at = 0;
        loop {
            let pairs = || old.iter().zip(new).skip(at);
            let Some(same) = pairs().position(|pair| differs(&pair)) else { break };
            let run = pairs().skip(same).take_while(differs).count();
            memory.write_host(
                host.offset(index * PAGE + at + same),
                new.get(at + same..at + same + run).unwrap_or_default(),
            );
            at += same + run;
        }
        old.copy_from_slice(new);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Host memory from address 0 on, for tests.
    struct Bytes(RefCell<Vec<u8>>);

    impl HostMemory for Bytes {
        fn read_host(&self, at: Ptr, into: &mut [u8]) {
            into.copy_from_slice(&self.0.borrow()[at.0..at.0 + into.len()]);
        }

        fn write_host(&self, at: Ptr, bytes: &[u8]) {
            self.0.borrow_mut()[at.0..at.0 + bytes.len()].copy_from_slice(bytes);
        }
    }

    fn sent(host: &Bytes, twin: &mut [u8], unit: usize) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        let result = changes(host, Ptr(0), twin, unit, |offset, bytes| {
            all.push((offset, bytes.len()));
            Ok(())
        });
        assert_eq!(result, Ok(()));
        assert_eq!(*host.0.borrow(), twin, "the twin is brought up to date");
        all
    }

    fn bytes(len: usize) -> Bytes {
        Bytes(RefCell::new(vec![0; len]))
    }

    #[test]
    fn only_changes_are_sent() {
        let host = bytes(3 * PAGE + 10);
        let mut twin = host.0.borrow().clone();
        assert_eq!(sent(&host, &mut twin, PAGE), []);
        host.0.borrow_mut()[5] = 1;
        host.0.borrow_mut()[PAGE + 1] = 1;
        host.0.borrow_mut()[3 * PAGE + 9] = 1;
        assert_eq!(sent(&host, &mut twin, PAGE), [(0, 2 * PAGE), (3 * PAGE, 10)]);
        assert_eq!(sent(&host, &mut twin, PAGE), []);
    }

    #[test]
    fn words_are_sent_alone_while_the_device_works() {
        let host = bytes(2 * PAGE);
        let mut twin = host.0.borrow().clone();
        host.0.borrow_mut()[5] = 1;
        host.0.borrow_mut()[8] = 1;
        host.0.borrow_mut()[100] = 1;
        host.0.borrow_mut()[PAGE - 1] = 1;
        host.0.borrow_mut()[PAGE] = 1;
        assert_eq!(sent(&host, &mut twin, WORD), [(4, 8), (100, 4), (PAGE - 4, 8)]);
    }

    #[test]
    fn what_host_and_device_wrote_survives() {
        let host = bytes(PAGE + 8);
        let mut twin = host.0.borrow().clone();
        let mut device = host.0.borrow().clone();
        host.0.borrow_mut()[3] = 7;
        device[4] = 8;
        device[PAGE + 7] = 9;
        merge(&host, Ptr(0), &mut twin, &device);
        let now = |at: usize| host.0.borrow()[at];
        assert_eq!((now(3), now(4), now(PAGE + 7)), (7, 8, 9));
        assert_eq!(twin, device);
        assert_eq!(sent(&host, &mut twin, WORD), [(0, 4)], "the host's change is still to be sent");
    }
}
