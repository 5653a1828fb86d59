//! Runs seeds of the core world, and checks what they cover.

use std::collections::BTreeSet;

use hipr_proto::{Class, OPS, Tail};
use hipr_testkit::{Case, Device, Event, FaultKind, Kind, When, core_world, simulate};

const SEEDS: u64 = 3000;
/// Number of kinds of calls, devices, faults and limits that are counted below.
const KINDS: usize = 35;

#[test]
fn the_first_seeds_pass() {
    if let Some(found) = simulate::simulate(0..SEEDS, 2, core_world::check, |_| {}) {
        panic!("{found}");
    }
}

/// Checks that the first seeds cover everything: a generator that leaves out half of the protocol would pass all other
/// tests.
#[test]
fn the_first_seeds_meet_everything_there_is() {
    let mut ops = BTreeSet::new();
    let mut met = BTreeSet::new();
    for seed in 0..SEEDS {
        let case = Case::from_seed(seed);
        for call in &case.script.0 {
            let is_known = call.op.info().is_some();
            ops.extend(is_known.then_some(call.op));
            met.insert(match call.kind {
                Kind::Good if call.typed => "typed",
                Kind::Good => "raw",
                Kind::Trailing(_) => "trailing bytes",
                Kind::Unknown => "unknown",
                Kind::ShortFixed => "short fixed part",
                Kind::ShortTail => "short tail",
                Kind::LongTail => "long tail",
                Kind::TooLong => "too long",
            });
            met.insert(match call.device {
                Device::Ok => "works",
                Device::Error(_) => "fails",
                Device::Death(_) => "dies",
                Device::Hang(_) if call.hangs_for_ever(&case.options) => "hangs for ever",
                Device::Hang(_) => "hangs",
            });
            met.insert(match call.class() {
                Class::Plain => "plain",
                Class::Creates => "creates",
                Class::Synchronizes => "synchronizes",
                Class::Exempt => "exempt",
            });
            met.extend(call.surfaces.map(|(when, _)| match when {
                When::Before => "surfaces before",
                When::During => "surfaces during",
            }));
            met.extend((call.slow_ms > 0).then_some("slow"));
            met.extend((call.reply_len > 0 && call.streamed).then_some("streamed reply"));
            met.extend((call.reply_len > 0 && !call.streamed).then_some("whole reply"));
            met.extend(
                (call.copied_len > 0 && call.copied_len < call.tail_len).then_some("tail in two parts"),
            );
            met.extend(call.op.info().filter(|_| call.tail_len > 0).map(|info| match info.request.tail {
                Tail::None => "no tail",
                Tail::Small => "small tail",
                Tail::Bulk => "bulk tail",
            }));
        }
        let trace = core_world::run(&case);
        if let Some(fault) = case.options.fault.as_ref().filter(|_| trace.fault_at_byte.is_some()) {
            met.insert(match fault.kind {
                FaultKind::HalfClose => "half-close",
                FaultKind::Reset => "reset",
                FaultKind::Insert(_) => "inserted bytes",
                FaultKind::Flip(_) => "changed byte",
            });
        }
        for event in &trace.events {
            met.extend(match event {
                Event::Declined { why, .. } => Some(match why {
                    hipr_proto::Misuse::Unflushed { .. } => "client's buffer full",
                    _ => "too many calls wait",
                }),
                Event::ServerEnd(Err(_)) => Some("fatal for the server"),
                Event::ClientEnd(Err(_)) => Some("fatal for the client"),
                Event::Request { open, .. } if *open == case.options.limits.open_max => Some("server full"),
                _ => None,
            });
        }
    }
    assert_eq!(ops.len(), OPS.len(), "operations that occur");
    assert_eq!(met.len(), KINDS, "what occurs: {met:?}");
}
