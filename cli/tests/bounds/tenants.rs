//! A tenant at its bound beside others: both its bound and that of all hold, and whoever has not what is short is not asked for it.

use crate::scene::{IDLE, MIB, Scene, TOTAL, fits, most};
use crate::total::take_all;
use hipr_proto::op::{self, kind};
use hipr_proto::{Features, HipError};
use hipr_tests::{WireClient, eventually};
use std::net::SocketAddr;
use std::thread;

/// A tenant's sessions, of both its keys, have no more together than the tenant and all may have. Another tenant has what is left of its
/// own bound and of that of all. Commands and replies of who has used up everything go on.
#[test]
fn a_tenant_has_what_its_bound_and_that_of_all_leave() {
    // What all may have; then what one tenant gets, and what another can have beside it.
    for (memory_total, takes, leaves) in
        [(None, TOTAL, TOTAL), (Some("768M"), TOTAL, 256 * MIB), (Some("384M"), 384 * MIB, 0)]
    {
        for how in ["none", "process"] {
            let what = format!("{how}, {memory_total:?}");
            let scene = Scene::start(how, true, memory_total);
            let [b, c] = scene.apart.expect("tenants");
            let mut sessions: Vec<_> = scene.same.iter().map(|address| WireClient::open(*address)).collect();
            let read = sessions[0].call(&op::Malloc { size: 16 * MIB, flags: 0 }).expect("memory").device_ptr;
            take_all(&mut sessions, takes - 16 * MIB);
            // One after another: what is set aside for a session's kernels stays with it.
            let mut other = WireClient::open(b);
            eventually("the other tenant has what is left", || most(&mut other) + IDLE >= leaves);
            assert!(most(&mut other) <= leaves, "{what}");
            drop(other);
            let mut other = WireClient::open(c);
            let unbounded = if memory_total.is_some() { leaves } else { 4 * TOTAL };
            let least = unbounded.saturating_sub(IDLE);
            let has_left = || least == 0 || fits(&mut other, least);
            eventually(&format!("{what}: who has no bound too"), has_left);
            drop(other);
            let size = 16 * MIB;
            let fill = op::Memset { dst: read, value: 7, size, stream: 0 };
            sessions[0].forget(&fill);
            let copy = op::Memcpy { dst: 0, src: read, size, kind: kind::DEVICE_TO_HOST, stream: 0 };
            let replied = sessions[0].call_with(&copy, &[], None);
            assert_eq!((replied.result.is_ok(), replied.inline), (true, vec![7; size as usize]), "{what}");
            drop(sessions);
            let mut last = WireClient::open(scene.same[1]);
            let free = takes.min(TOTAL) - IDLE;
            eventually("all of it is free again", || fits(&mut last, free));
        }
    }
}

/// Opens a session with a lease of memory that it does not use; returns it with the bytes of the lease.
fn holder(address: SocketAddr) -> (WireClient, u64) {
    let mut client = WireClient::open(address);
    client.hear();
    let features = Features::PLACES.union(Features::NOTIFICATIONS).bits();
    let accepted = client.call(&op::Offer { features, reserved: 0 });
    assert_eq!(accepted.map(|reply| reply.features), Ok(features));
    let leased = client.call(&op::MemLease { want_bytes: 64 * MIB }).expect("a lease");
    assert!(leased.added_bytes >= 64 * MIB, "{}", leased.added_bytes);
    (client, leased.added_bytes)
}

/// Returns the numbers of the recalls that a session has got.
fn recalls(client: &mut WireClient) -> Vec<u64> {
    client.call(&op::Ping {}).expect("an answer");
    client.take_recalls()
}

/// What sessions have leased and do not use is recalled for a session of the same tenant when that one's bound is reached, and for
/// everybody when that of all is.
#[test]
fn only_who_has_the_bound_that_is_short_is_asked_to_give_back() {
    for (memory_total, asks_all) in [(None, false), (Some("4G"), false), (Some("384M"), true)] {
        for how in ["none", "process"] {
            let what = format!("{how}, {memory_total:?}");
            let scene = Scene::start(how, true, memory_total);
            let [b, _] = scene.apart.expect("tenants");
            let (mut mate, leased) = holder(scene.same[1]);
            let (mut stranger, stranger_leased) = holder(b);
            let mut asking = WireClient::open(scene.same[0]);
            // More than is left beside the leases.
            let all = if asks_all { 384 * MIB - stranger_leased } else { TOTAL };
            let size = all - leased + MIB;
            let made = thread::scope(|scope| {
                let asking = scope.spawn(|| asking.call(&op::Malloc { size, flags: 0 }));
                let (mut number, mut strangers) = (None, None);
                eventually("the tenant's session is asked", || {
                    number = number.or(recalls(&mut mate).pop());
                    strangers = strangers.or(recalls(&mut stranger).pop());
                    number.is_some() && (strangers.is_some() || !asks_all)
                });
                let give_back = |client: &mut WireClient, number: Option<u64>, bytes| {
                    number.into_iter().for_each(|recall| {
                        client.forget(&op::MemReturn { bytes, allocations: 0, recall });
                    });
                };
                give_back(&mut mate, number, leased);
                give_back(&mut stranger, strangers, stranger_leased);
                let made = asking.join().expect("no panic");
                assert_eq!(strangers.is_some(), asks_all, "{what}");
                made
            });
            assert!(made.is_ok(), "{what}: {made:?}");
            // More than the bound is refused, and that concerns nobody else either.
            let more = asking.call(&op::Malloc { size: TOTAL, flags: 0 });
            assert_eq!(more.map(|reply| reply.device_ptr), Err(HipError::OUT_OF_MEMORY), "{what}");
            assert!(asks_all || recalls(&mut stranger).is_empty(), "{what}");
        }
    }
}
