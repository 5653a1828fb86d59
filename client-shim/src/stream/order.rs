//! Implicit order between streams: **the** rule of the legacy null stream, and which device a stream is of.
//!
//! The legacy stream of a device and a blocking stream of that device wait for each other: work on either comes behind what the other had.
//! Streams that were made with `hipStreamNonBlocking` wait for no other stream, nor does the legacy stream wait for them. Everything else in
//! this crate that has to know asks here.
//!
//! Every device has a legacy stream and a per-thread stream. On the wire both have one handle, which means those of the current device; in
//! this crate each has a number, and `on_wire` tells what that is on the wire.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

/// The legacy null stream's handle on the wire, and the number of that of the first device.
pub const LEGACY: u64 = 0;
/// The handle of `hipStreamPerThread` on the wire, and the number of that of the first device; it is a blocking stream.
pub const PER_THREAD: u64 = hipr_abi::hipStreamPerThread as u64;

/// The first number of streams that devices have by themselves. Handles are less.
const OF_DEVICES: u64 = 1 << 63;
/// How many numbers each device has for its own streams: those of device `d` begin at `OF_DEVICES + d * KINDS`.
const KINDS: u64 = 4;
/// The kind of number that stands for destroyed streams of a device that its legacy stream does not wait for.
const GONE: u64 = 1;

fn of_device(device: i32, kind: u64) -> u64 {
    OF_DEVICES + u64::from(device.unsigned_abs()) * KINDS + kind
}

/// Returns the number of a device's legacy stream.
pub fn legacy(device: i32) -> u64 {
    if device == 0 { LEGACY } else { of_device(device, LEGACY) }
}

/// Returns the number of a device's per-thread stream.
pub fn per_thread(device: i32) -> u64 {
    if device == 0 { PER_THREAD } else { of_device(device, PER_THREAD) }
}

/// Returns what stands for the streams of a device that are gone and that its legacy stream does not wait for.
pub(super) fn gone(device: i32) -> u64 {
    of_device(device, GONE)
}

/// Returns the device that has a stream by itself; `None` for one that a program has created.
fn owner(stream: u64) -> Option<i32> {
    match stream.checked_sub(OF_DEVICES) {
        Some(number) => i32::try_from(number / KINDS).ok(),
        None => (stream <= PER_THREAD).then_some(0),
    }
}

/// Returns whether this is the legacy stream of a device.
pub fn is_legacy(stream: u64) -> bool {
    stream == LEGACY || stream >= OF_DEVICES && (stream - OF_DEVICES) % KINDS == LEGACY
}

/// Returns the handle of a stream on the wire, and the device that has to be current for it; any may be for one that a program has created.
pub(crate) fn on_wire(stream: u64) -> (u64, Option<i32>) {
    let handle = stream.checked_sub(OF_DEVICES).map_or(stream, |number| number % KINDS);
    (handle, owner(stream))
}

/// The streams that programs have created, as far as they differ from blocking ones of the first device.
#[derive(Debug, Default)]
struct Known {
    non_blocking: BTreeSet<u64>,
    /// The device of each stream that is not of the first one.
    devices: BTreeMap<u64, i32>,
}

/// Which streams wait for the legacy stream of which device.
#[derive(Debug, Default)]
pub struct Order {
    known: RwLock<Known>,
    /// Number of such streams, so that nothing is locked while there are none.
    count: AtomicUsize,
}

impl Order {
    /// Adds a stream of a device.
    pub fn add(&self, stream: u64, is_blocking: bool, device: i32) {
        if is_blocking && device == 0 {
            return;
        }
        self.change(|known| {
            if !is_blocking {
                known.non_blocking.insert(stream);
            }
            if device != 0 {
                known.devices.insert(stream, device);
            }
        });
    }

    /// Removes a stream.
    pub fn remove(&self, stream: u64) {
        self.change(|known| {
            known.non_blocking.remove(&stream);
            known.devices.remove(&stream);
        });
    }

    /// Removes the streams for which `keep` returns false.
    pub fn retain(&self, keep: impl Fn(u64) -> bool) {
        self.change(|known| {
            known.non_blocking.retain(|stream| keep(*stream));
            known.devices.retain(|stream, _| keep(*stream));
        });
    }

    fn change(&self, change: impl FnOnce(&mut Known)) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut known);
        self.count.store(known.non_blocking.len() + known.devices.len(), Ordering::Release);
    }

    /// Returns what `look` finds, or `usual` if no stream is in the lists.
    fn look<T>(&self, usual: T, look: impl FnOnce(&Known) -> T) -> T {
        match self.count.load(Ordering::Acquire) {
            0 => usual,
            _ => look(&self.known.read().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Returns whether a stream is blocking: it and the legacy stream of its device wait for each other. Streams that are not known do.
    pub fn is_blocking(&self, stream: u64) -> bool {
        self.look(true, |known| !known.non_blocking.contains(&stream))
    }

    /// Returns the device of a stream; the first one for streams that are not known.
    pub fn device_of(&self, stream: u64) -> i32 {
        owner(stream)
            .unwrap_or_else(|| self.look(0, |known| known.devices.get(&stream).copied().unwrap_or(0)))
    }

    /// Returns whether new work on `stream` has to follow the work of `other`.
    pub fn is_behind(&self, stream: u64, other: u64) -> bool {
        stream == other || self.includes(stream, other) || self.includes(other, stream)
    }

    /// Returns whether a wait for `stream` also waits for the present work of `other`. What the legacy stream has may have come
    /// behind the last work of a blocking one.
    pub fn includes(&self, stream: u64, other: u64) -> bool {
        stream == other
            || (is_legacy(stream)
                && self.is_blocking(other)
                && self.device_of(stream) == self.device_of(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legacy_stream_and_blocking_streams_wait_for_each_other() {
        let order = Order::default();
        order.add(5, true, 0);
        order.add(7, false, 0);
        let streams = [LEGACY, PER_THREAD, 5, 7];
        let behind = |stream: u64| streams.map(|other| order.is_behind(stream, other));
        assert_eq!(behind(LEGACY), [true, true, true, false]);
        assert_eq!(behind(PER_THREAD), [true, true, false, false]);
        assert_eq!(behind(5), [true, false, true, false]);
        assert_eq!(behind(7), [false, false, false, true]);
        let includes = |stream: u64| streams.map(|other| order.includes(stream, other));
        assert_eq!(includes(LEGACY), [true, true, true, false]);
        assert_eq!(includes(5), [false, false, true, false]);
        order.remove(7);
        assert!(order.is_behind(7, LEGACY), "nothing is known of a handle that is given anew");
    }

    /// Every stream of two devices against every other one.
    #[test]
    fn streams_of_different_devices_do_not_wait_for_each_other() {
        let order = Order::default();
        order.add(5, true, 0);
        order.add(7, false, 0);
        order.add(15, true, 1);
        order.add(17, false, 1);
        let streams =
            [[legacy(0), per_thread(0), 5, 7, gone(0)], [legacy(1), per_thread(1), 15, 17, gone(1)]];
        for (device, own) in (0..).zip(streams) {
            for (place, stream) in own.into_iter().enumerate() {
                assert_eq!(order.device_of(stream), device, "{stream:#x}");
                assert_eq!(is_legacy(stream), place == 0, "{stream:#x}");
                for (other_place, other) in own.into_iter().enumerate() {
                    let counterpart = streams[0];
                    let of_first = order.is_behind(counterpart[place], counterpart[other_place]);
                    assert_eq!(order.is_behind(stream, other), of_first, "{stream:#x} {other:#x}");
                }
                let others = streams.into_iter().filter(|others| *others != own).flatten();
                for other in others {
                    assert!(!order.is_behind(stream, other) && !order.includes(stream, other));
                }
            }
        }
        let wire =
            streams.map(|streams| streams[..4].iter().map(|stream| on_wire(*stream)).collect::<Vec<_>>());
        assert_eq!(wire[0], [(0, Some(0)), (2, Some(0)), (5, None), (7, None)]);
        assert_eq!(wire[1], [(0, Some(1)), (2, Some(1)), (15, None), (17, None)]);
        order.remove(15);
        order.remove(17);
        assert_eq!([order.device_of(15), order.device_of(17)], [0, 0]);
    }
}
