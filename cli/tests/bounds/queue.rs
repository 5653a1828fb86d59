//! Commands that the device does not finish: they have bounds, and beyond these the session is not read until commands end.

use crate::attacker::{Attack, front, loops, request, worker};
use hipr_proto::op;
use hipr_tests::attack::large_launch;
use hipr_tests::{WorkerProcess, args};

/// More bytes than the buffers of a connection, on both sides, and the commands within the bounds together hold: recent versions of Linux let a
/// receive buffer grow to 32 MiB, and the commands may have as much.
const FLOOD_BYTES: usize = 128 << 20;

/// Returns the same request over and over.
fn flood(one: &[u8]) -> Vec<u8> {
    one.iter().copied().cycle().take(FLOOD_BYTES / one.len() * one.len()).collect()
}

/// The requests that stand for commands, each as often as it fits the flood.
fn floods(attack: &mut Attack<'_>) -> Vec<(&'static str, Vec<u8>)> {
    let to = attack.stop.part(8, 8);
    let (dst, src) = (to.address(), attack.stop.address());
    let wire = attack.gpu.wire();
    let event = wire.call(&op::EventCreate { flags: 0 }).expect("an event").event;
    let stream = wire.call(&op::StreamCreate { flags: 0, priority: 0 }).expect("a stream").stream;
    let set = op::MemsetAsync(op::Memset { dst, value: 1, size: 1, stream: 0 });
    let copy = op::Memcpy { dst, src, size: 4, kind: op::kind::DEVICE_TO_DEVICE, stream };
    vec![
        ("sets", request(&set, &[])),
        ("copies", request(&copy, &[])),
        ("records", request(&op::EventRecord { event, stream }, &[])),
        ("launches", large_launch(&mut attack.gpu)),
    ]
}

/// Number of [`floods`].
const KINDS: usize = 4;

fn attack(worker: &WorkerProcess, kinds: impl IntoIterator<Item = usize>) {
    for kind in kinds {
        let mut attack = Attack::begin(worker);
        attack.spin();
        let (name, one) = floods(&mut attack).swap_remove(kind);
        let bytes = flood(&one);
        assert!(attack.send(&bytes) < bytes.len(), "{name}: the session is not read");
        attack.check_memory();
        attack.leave();
    }
}

#[test]
fn commands_behind_an_endless_kernel_have_bounds() {
    loops().iter().for_each(|worker| attack(worker, 0..KINDS));
}

#[test]
fn commands_behind_an_endless_kernel_have_bounds_on_the_device_hip() {
    attack(&front(&worker(&[]), "process"), [0, KINDS - 1]);
    // The sessions of one process share a runtime, and with it what it leaves of the first one.
    attack(&front(&worker(&[]), "none"), [0]);
}

/// Checks that more commands than there is room for are carried out, all of them and in their order.
#[test]
fn a_session_at_its_bounds_goes_on_when_commands_end() {
    const COUNT: u32 = 40_000;
    for worker in loops() {
        let mut attack = Attack::begin(&worker);
        let total = attack.gpu.zeroed::<u32>(1);
        for n in 0..COUNT {
            attack.gpu.launch("count", 1, 1, 0, args![total]);
            if n == COUNT / 2 {
                assert_eq!(attack.gpu.download(total), [n + 1]);
            }
        }
        assert_eq!(attack.gpu.download(total), [COUNT]);
        attack.check_memory();
    }
}
