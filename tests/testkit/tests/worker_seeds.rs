//! Runs some seeds of the worker world; `cargo run -p hipr-tests -- simulate --world worker` runs many.

#![cfg(feature = "worker")]

use std::collections::BTreeSet;
use std::fmt::Debug;

use hipr_testkit::worker_world::plan::Act;
use hipr_testkit::worker_world::{self, Clock, Plan};
use hipr_testkit::{Choices, seed_bytes};

const SEEDS: u64 = 600;

#[test]
fn the_worker_does_what_the_model_says() {
    for seed in 0..SEEDS {
        if let Err(failure) = worker_world::check_seed(seed) {
            panic!("seed {seed}: {failure}");
        }
    }
}

/// Checks that a world without decisions, in which every actor gets its turn, comes to an end.
#[test]
fn a_world_without_decisions_comes_to_an_end() {
    if let Err(failure) = worker_world::check(&[]) {
        panic!("{failure}");
    }
}

/// Checks that the first seeds cover everything that can happen.
#[test]
fn the_first_seeds_meet_everything_there_is() {
    const REQUESTS: &str = "Down DownPacked Fill ForeignStream Free FreeAsync Function GraphCreate Init Launch Lease Load LongName Malloc MallocAt Name \
                            Offer Ping Return Short Shutdown StreamCreate StreamDestroy StreamFlags Synchronize Unknown Unload Up UpPacked";
    const FAULTS: &str = "Die Fail Hang Slow";
    const ACTS: &str = "Await AwaitEnd Bytes HalfClose Read ReadLate Reset";
    let mut met = BTreeSet::new();
    let name = |value: &dyn Debug| {
        let text = format!("{value:?}");
        text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
    };
    for seed in 0..SEEDS {
        let bytes = seed_bytes(seed);
        let plan = Plan::draw(&mut Choices::new(&bytes), Clock::Virtual);
        for act in plan.clients.iter().flat_map(|client| &client.acts) {
            met.insert(name(act));
            if let Act::Call(call) = act {
                met.insert(name(&call.request));
                met.extend(call.fault.map(|fault| name(&fault)));
            }
        }
    }
    let all = [REQUESTS, FAULTS, ACTS].map(|names| names.split_whitespace().map(str::to_owned));
    let missing: Vec<_> = all.into_iter().flatten().filter(|name| !met.contains(name)).collect();
    assert!(missing.is_empty(), "never met: {missing:?}");
}
