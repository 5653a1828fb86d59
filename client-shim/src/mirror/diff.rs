//! What changed, told by comparing with the twin.

use hipr_proto::HipResult;

use crate::convert::Ptr;

/// What is compared at once.
pub(super) const PAGE: usize = 4096;
/// The unit in which changes are told apart while the device may be writing to the same page.
pub(super) const WORD: usize = 4;
/// How much is gathered before it is sent.
const RUN_BYTES: usize = 4 << 20;

/// Calls `send` for each run of units of `host` that are not what `twin` says, and brings `twin` up to date. The
/// program may write while this runs: what is compared is a copy, and that copy is what is sent.
///
/// # Safety
/// As many bytes as `twin` has are readable at `host`.
pub(super) unsafe fn changes(
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
        // SAFETY: inside what the caller promises.
        unsafe {
            core::ptr::copy_nonoverlapping(host.offset(offset).as_mut_ptr(), new.as_mut_ptr(), new.len())
        };
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

/// Puts what the device wrote (the bytes of `device` that are not what `twin` says) into the host's memory.
///
/// # Safety
/// As many bytes as `twin` has are writable at `host`.
pub(super) unsafe fn merge(host: Ptr, twin: &mut [u8], device: &[u8]) {
    for (index, (old, new)) in twin.chunks_mut(PAGE).zip(device.chunks(PAGE)).enumerate() {
        if old == new {
            continue;
        }
        for (i, (old, new)) in old.iter_mut().zip(new).enumerate() {
            if old != new {
                // SAFETY: inside what the caller promises. Only bytes that the device wrote are written.
                unsafe { host.offset(index * PAGE + i).as_mut_ptr::<u8>().write(*new) };
                *old = *new;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(host: &mut [u8], twin: &mut [u8], unit: usize) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        // SAFETY: `host` is as long as `twin`.
        let result = unsafe {
            changes(Ptr(host.as_mut_ptr().expose_provenance()), twin, unit, |offset, bytes| {
                all.push((offset, bytes.len()));
                Ok(())
            })
        };
        assert_eq!(result, Ok(()));
        assert_eq!(host, twin, "the twin is brought up to date");
        all
    }

    #[test]
    fn only_changes_are_sent() {
        let mut host = vec![0u8; 3 * PAGE + 10];
        let mut twin = host.clone();
        assert_eq!(sent(&mut host, &mut twin, PAGE), []);
        host[5] = 1;
        host[PAGE + 1] = 1;
        host[3 * PAGE + 9] = 1;
        assert_eq!(sent(&mut host, &mut twin, PAGE), [(0, 2 * PAGE), (3 * PAGE, 10)]);
        assert_eq!(sent(&mut host, &mut twin, PAGE), []);
    }

    #[test]
    fn words_are_sent_alone_while_the_device_works() {
        let mut host = vec![0u8; 2 * PAGE];
        let mut twin = host.clone();
        host[5] = 1;
        host[8] = 1;
        host[100] = 1;
        host[PAGE - 1] = 1;
        host[PAGE] = 1;
        assert_eq!(sent(&mut host, &mut twin, WORD), [(4, 8), (100, 4), (PAGE - 4, 8)]);
    }

    #[test]
    fn what_host_and_device_wrote_survives() {
        let mut host = vec![0u8; PAGE + 8];
        let mut twin = host.clone();
        let mut device = host.clone();
        host[3] = 7;
        device[4] = 8;
        device[PAGE + 7] = 9;
        // SAFETY: `host` is as long as `twin`.
        unsafe { merge(Ptr(host.as_mut_ptr().expose_provenance()), &mut twin, &device) };
        assert_eq!((host[3], host[4], host[PAGE + 7]), (7, 8, 9));
        assert_eq!(twin, device);
        assert_eq!(sent(&mut host, &mut twin, WORD), [(0, 4)], "the host's change is still to be sent");
    }
}
