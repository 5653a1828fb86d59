//! Tests that a program's workers give addresses of which none means memory of two of them (feature APART).

mod common;

use common::{Peer, emulated};
use hipr_proto::Features;
use hipr_proto::op::*;

const DEVICE_BYTES: u64 = 1 << 30;
/// `hipMemoryTypeDevice`.
const DEVICE: u32 = 2;
const NEEDED: Features = Features::APART.union(Features::PLACES);

/// Opens a session that offers APART with this part; returns it and whether the worker has accepted that.
fn offer(worker: &hipr_worker::Handle, part: u64) -> (Peer, bool) {
    let mut peer = Peer::hello(worker.local_addr());
    let accepted = peer.call(&Offer { features: NEEDED.bits(), part }).expect("an answer").features;
    assert!(Features::from_bits(accepted).contains(Features::PLACES));
    (peer, Features::from_bits(accepted).contains(Features::APART))
}

#[test]
fn only_what_is_a_part_is_accepted() {
    let worker = emulated(DEVICE_BYTES, |_| {});
    for (number, parts, expected) in [
        (0, 0, false),
        (1, 0, false),
        (0, 1, true),
        (1, 1, false),
        (1, 2, true),
        (2, 2, false),
        (255, 256, true),
        (256, 256, false),
        (0, 257, false),
        (0, u64::from(u32::MAX), false),
        (u64::from(u32::MAX), u64::from(u32::MAX), false),
    ] {
        let (mut peer, accepted) = offer(&worker, parts << 32 | number);
        assert_eq!(accepted, expected, "{number} of {parts}");
        let first = peer.call(&Malloc { size: 1000, flags: 0 }).expect("memory").device_ptr;
        let second = peer.call(&Malloc { size: 1000, flags: 0 }).expect("memory").device_ptr;
        assert!(first < second, "{number} of {parts}");
        assert_eq!(peer.call(&Free { device_ptr: first }), Ok(()));
    }
}

#[test]
fn the_addresses_of_workers_are_apart_and_their_window_is_one() {
    const WORKERS: u64 = 3;
    let mut ranges = Vec::new();
    let mut windows = Vec::new();
    for number in 0..WORKERS {
        let worker = emulated(DEVICE_BYTES, |_| {});
        // Sessions before have had windows and addresses.
        for _ in 0..number {
            let (mut other, _) = Peer::offering(worker.local_addr(), Features::PLACES);
            other.call(&MemLease { want_bytes: 1 }).expect("a lease");
            other.malloc(5000);
        }
        let (mut peer, _) = offer(&worker, WORKERS << 32 | number);
        for round in 0..3 {
            let base = peer.call(&Malloc { size: 1 << 20, flags: 0 }).expect("memory").device_ptr;
            ranges.push(base..base + (1 << 20));
            let window = peer.call(&MemLease { want_bytes: 1 << 20 }).expect("a lease");
            windows.push(window.window_start..window.window_start + window.window_bytes);
            if round == 1 {
                peer.call(&DeviceReset {}).expect("a reset");
            }
        }
        let at = windows[0].start;
        assert_eq!(peer.call(&MallocAt { device_ptr: at, size: 4096, kind: DEVICE, flags: 0 }), Ok(()));
    }
    assert!(windows.iter().all(|window| *window == windows[0] && !window.is_empty()), "{windows:x?}");
    for (place, range) in ranges.iter().enumerate() {
        assert!(!windows[0].contains(&range.start), "{range:x?}");
        let others = ranges.iter().enumerate().filter(|(other, _)| other / 3 != place / 3);
        assert!(others.into_iter().all(|(_, other)| range.end <= other.start || other.end <= range.start));
    }
}
