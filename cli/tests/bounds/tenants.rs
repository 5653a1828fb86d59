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

/// A session with a lease of memory that it does not use, and gives back when it is asked to.
struct Holder {
    client: WireClient,
    leased_bytes: u64,
    was_asked: bool,
}

impl Holder {
    fn open(address: SocketAddr) -> Self {
        let mut client = WireClient::open(address);
        client.hear();
        let features = Features::PLACES.union(Features::NOTIFICATIONS).bits();
        let accepted = client.call(&op::Offer { features, part: 0 });
        assert_eq!(accepted.map(|reply| reply.features), Ok(features));
        let leased = client.call(&op::MemLease { want_bytes: 64 * MIB }).expect("a lease");
        assert!(leased.added_bytes >= 64 * MIB, "{}", leased.added_bytes);
        Self { client, leased_bytes: leased.added_bytes, was_asked: false }
    }

    /// Answers what it was asked; returns whether it ever was.
    fn answer(&mut self) -> bool {
        self.client.call(&op::Ping {}).expect("an answer");
        for recall in self.client.take_recalls() {
            let bytes = if self.was_asked { 0 } else { self.leased_bytes };
            self.client.forget(&op::MemReturn { bytes, allocations: 0, recall });
            self.was_asked = true;
        }
        self.was_asked
    }
}

/// What sessions have leased and do not use is recalled for a session of the same tenant when that one's bound is short, and for everybody
/// when that of all is, or both are.
#[test]
fn only_who_has_the_bound_that_is_short_is_asked_to_give_back() {
    // What all may have, and whether that is short for what is asked for beside the leases of a session of the same tenant and of one of
    // another.
    for (memory_total, asks_all) in
        [(None, false), (Some(4096 * MIB), false), (Some(384 * MIB), true), (Some(592 * MIB), true)]
    {
        for how in ["none", "process"] {
            let what = format!("{how}, {memory_total:?}");
            let option = memory_total.map(|bytes| format!("{}M", bytes / MIB));
            let scene = Scene::start(how, true, option.as_deref());
            let [b, _] = scene.apart.expect("tenants");
            let (mut mate, mut stranger) = (Holder::open(scene.same[1]), Holder::open(b));
            let mut asking = WireClient::open(scene.same[0]);
            let size = match memory_total.filter(|_| asks_all) {
                Some(all) => all - mate.leased_bytes - stranger.leased_bytes + 6 * MIB,
                None => TOTAL - mate.leased_bytes + MIB,
            };
            // Who answers too late, on a busy machine, is asked again.
            let mut asks = || eventually("it has it", || asking.call(&op::Malloc { size, flags: 0 }).is_ok());
            thread::scope(|scope| {
                let asks = scope.spawn(&mut asks);
                eventually(&format!("{what}: what is asked for is there"), || {
                    mate.answer();
                    stranger.answer();
                    asks.is_finished()
                });
                asks.join().expect("it has it");
            });
            assert!(mate.was_asked, "{what}");
            if asks_all {
                eventually(&format!("{what}: all were asked"), || stranger.answer());
            }
            // More than the bound is refused, and that concerns nobody else either.
            let more = asking.call(&op::Malloc { size: TOTAL, flags: 0 });
            assert_eq!(more.map(|reply| reply.device_ptr), Err(HipError::OUT_OF_MEMORY), "{what}");
            assert_eq!(stranger.answer(), asks_all, "{what}");
        }
    }
}
