//! Checks that event loops are interchangeable: the same plan gives the same transcript, whichever loop serves the sockets,
//! and in the simulator, which has neither sockets nor threads.
//!
//! One body, [`conforms`], runs the named cases and plans drawn from seeds on one carrier. What a right worker makes of a plan
//! is known before it runs, so every carrier is held against that, and through it against all others. What of a transcript is
//! comparable, and what depends on who is faster, is said in `hipr_testkit::worker_world::plan`.

#[path = "loop_conformance/cases.rs"]
mod cases;
#[path = "loop_conformance/sockets.rs"]
mod sockets;

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

use hipr_testkit::invariants::Violation;
use hipr_testkit::worker_world::{self, Clock, Plan, Transcript};
use hipr_testkit::{Choices, seed_bytes};
use hipr_worker::{Address, DispatchOn, Io};

/// Number of plans drawn for each loop with sockets; each has its own worker.
const SEEDS_OVER_SOCKETS: u64 = 200;
/// Number of plans drawn for the simulator.
const SEEDS_IN_MEMORY: u64 = 400;
/// Number of schedules with which the simulator runs each named case.
const SCHEDULES: u64 = 3;

/// Runs all plans with `carry_out`, which also gets bytes for its own decisions.
fn conforms(
    carrier: &str,
    seeds: u64,
    schedules: u64,
    carry_out: impl Fn(&Plan, &[u8]) -> Result<Transcript, Violation>,
) {
    let check = |name: &str, plan: &Plan, bytes: &[u8]| {
        let seen = carry_out(plan, bytes);
        let same = seen.and_then(|transcript| worker_world::compare(&transcript, &plan.expected()));
        if let Err(Violation { invariant, what, .. }) = same {
            panic!("{carrier}, {name}: {invariant}: {what}\n{plan}");
        }
    };
    for (name, plan) in cases::all() {
        for schedule in 0..schedules {
            check(name, &plan, &seed_bytes(schedule));
        }
    }
    for seed in 0..seeds {
        let bytes = seed_bytes(seed);
        let mut choices = Choices::new(&bytes);
        let plan = Plan::draw(&mut choices, Clock::Real);
        check(&format!("seed {seed}"), &plan, choices.rest());
    }
}

/// Errors which say that io_uring is not available here: the kernel lacks it or does not allow it.
const CANNOT_BE_HAD: [ErrorKind; 2] = [ErrorKind::Unsupported, ErrorKind::PermissionDenied];

/// Runs all plans on an event loop with sockets of one kind, or prints why that is not possible.
fn event_loop_conforms(io: Io, dispatch: DispatchOn, listen: &Address) {
    match sockets::probe(io, listen) {
        Ok(()) => conforms(&format!("{io}, {dispatch}, {listen}"), SEEDS_OVER_SOCKETS, 1, |plan, _| {
            sockets::run(plan, io, dispatch, listen)
        }),
        // Past the test harness, which shows what is printed only of tests that fail.
        Err(why) if io == Io::Uring && CANNOT_BE_HAD.contains(&why.kind()) => {
            writeln!(io::stderr(), "loop conformance of {io} at {listen} is SKIPPED: {why}")
                .expect("standard error is open");
        }
        Err(why) => panic!("{io} at {listen}: {why}"),
    }
}

fn conforms_over_tcp(io: Io, dispatch: DispatchOn) {
    event_loop_conforms(io, dispatch, &"127.0.0.1:0".into());
}

fn conforms_at_a_path(io: Io, dispatch: DispatchOn, kind: fn(PathBuf) -> Address) {
    let folder = tempfile::tempdir().expect("a folder");
    event_loop_conforms(io, dispatch, &kind(folder.path().join("worker")));
}

#[test]
fn the_mio_loop_conforms() {
    conforms_over_tcp(Io::Mio, DispatchOn::Inline);
}

#[test]
fn the_mio_loop_conforms_with_a_dispatch_thread() {
    conforms_over_tcp(Io::Mio, DispatchOn::Thread);
}

#[test]
fn the_mio_loop_conforms_over_unix_sockets() {
    conforms_at_a_path(Io::Mio, DispatchOn::Inline, Address::Unix);
}

#[test]
fn the_mio_loop_conforms_over_shared_memory() {
    conforms_at_a_path(Io::Mio, DispatchOn::Inline, Address::Shm);
}

#[test]
fn the_mio_loop_conforms_over_shared_memory_with_a_dispatch_thread() {
    conforms_at_a_path(Io::Mio, DispatchOn::Thread, Address::Shm);
}

#[test]
fn the_io_uring_loop_conforms() {
    conforms_over_tcp(Io::Uring, DispatchOn::Inline);
}

#[test]
fn the_io_uring_loop_conforms_with_a_dispatch_thread() {
    conforms_over_tcp(Io::Uring, DispatchOn::Thread);
}

#[test]
fn the_io_uring_loop_conforms_over_unix_sockets() {
    conforms_at_a_path(Io::Uring, DispatchOn::Inline, Address::Unix);
}

#[test]
fn the_io_uring_loop_conforms_over_shared_memory() {
    conforms_at_a_path(Io::Uring, DispatchOn::Inline, Address::Shm);
}

#[test]
fn the_io_uring_loop_conforms_over_shared_memory_with_a_dispatch_thread() {
    conforms_at_a_path(Io::Uring, DispatchOn::Thread, Address::Shm);
}

#[test]
fn the_simulator_conforms() {
    conforms("simulator", SEEDS_IN_MEMORY, SCHEDULES, |plan, bytes| {
        worker_world::run(plan, &mut Choices::new(bytes))
    });
}
