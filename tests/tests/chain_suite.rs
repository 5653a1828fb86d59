//! Every operation through a chain: this program, a worker whose device `hip` has loaded hipr's own client library, and the worker
//! behind that with the emulated GPU. What comes back is what the emulated GPU says without the chain, so each call of the C
//! API has taken and given what it should.

use hipr_proto::{HipError, OPS, Opcode};
use hipr_tests::suite::{self, Failure, Outcome};
use hipr_tests::{Chain, start_worker};
use std::collections::BTreeSet;
use std::path::Path;
use std::thread;

fn chain() -> Chain {
    Chain::start(Path::new(env!("CARGO_BIN_EXE_chain-worker")))
}

/// Operations whose answers are not those of the emulated GPU itself, and why.
const DIFFERENT: &[(Opcode, &str)] = &[];

fn differences(direct: &[Outcome], chained: &[Outcome]) -> Vec<String> {
    let same = |(direct, chained): &(&Outcome, &Outcome)| direct == chained;
    let excused = |op| DIFFERENT.iter().any(|(different, _)| *different == op);
    let pairs = direct.iter().zip(chained).filter(|pair| !same(pair) && !excused(pair.0.op));
    let said = pairs.map(|(direct, chained)| {
        format!("{}: {:?} without the chain, {:?} with it", direct.op, direct.result, chained.result)
    });
    said.collect()
}

#[test]
fn every_operation_says_the_same_through_the_chain() {
    let (worker, chain) = (start_worker(), chain());
    let direct = suite::run(worker.address());
    for _ in 0..2 {
        let chained = suite::run(chain.address());
        let different = differences(&direct, &chained);
        assert!(different.is_empty(), "{}", different.join("\n"));
        assert_eq!(direct.len(), chained.len(), "the whole suite");
    }
}

/// The suite has every operation of the protocol, and every one that workers carry out succeeds in it at least once.
#[test]
fn the_suite_is_complete() {
    let worker = start_worker();
    let outcomes = suite::run(worker.address());
    let of = |wanted: fn(&Outcome) -> bool| -> BTreeSet<Opcode> {
        outcomes.iter().filter(|outcome| wanted(outcome)).map(|outcome| outcome.op).collect()
    };
    let (asked, succeeded) = (of(|_| true), of(|outcome| outcome.result.is_ok()));
    let refused = of(|outcome| outcome.result == Err(Failure::Error(HipError::NOT_SUPPORTED)));
    let all: BTreeSet<Opcode> = OPS.iter().map(|info| info.code).collect();
    let names =
        |ops: &mut dyn Iterator<Item = &Opcode>| -> Vec<String> { ops.map(Opcode::to_string).collect() };
    assert_eq!(names(&mut all.difference(&asked)), Vec::<String>::new(), "operations that are not asked for");
    // One device has no peers, and the emulated one nothing to measure.
    let absent = [Opcode::DEVICE_ENABLE_PEER_ACCESS, Opcode::DEVICE_DISABLE_PEER_ACCESS].into();
    let failing = all.difference(&succeeded).filter(|op| !refused.contains(op));
    assert_eq!(failing.copied().collect::<BTreeSet<_>>(), absent, "operations that do not succeed");
}

#[test]
fn sessions_at_once_do_not_disturb_each_other() {
    let (worker, chain) = (start_worker(), chain());
    let direct = suite::run(worker.address());
    let address = chain.address();
    let sessions: Vec<_> = (0..3).map(|_| thread::spawn(move || suite::run(address))).collect();
    for session in sessions {
        let chained = session.join().expect("no panic");
        assert_eq!(differences(&direct, &chained), Vec::<String>::new());
        assert_eq!(direct.len(), chained.len(), "the whole suite");
    }
}
