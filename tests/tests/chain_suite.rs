//! Runs every operation through a chain: this program, a worker whose device `hip` has loaded hipr's own client library,
//! and behind it a worker with the emulated GPU. The results are compared with those of the emulated GPU without the chain,
//! which tests each call of the C API.

use hipr_proto::op::ReplyRule;
use hipr_proto::{HipError, OPS, Opcode};
use hipr_tests::suite::{self, Failure, Outcome};
use hipr_tests::{Chain, start_worker_with_cache};
use std::collections::BTreeSet;
use std::path::Path;
use std::thread;

fn chain() -> Chain {
    Chain::start(Path::new(env!("CARGO_BIN_EXE_chain-worker")))
}

fn differences(direct: &[Outcome], chained: &[Outcome]) -> Vec<String> {
    let pairs = direct.iter().zip(chained).filter(|(direct, chained)| direct != chained);
    let said = pairs.map(|(direct, chained)| {
        format!("{}: {:?} without the chain, {:?} with it", direct.op, direct.result, chained.result)
    });
    said.collect()
}

#[test]
fn every_operation_says_the_same_through_the_chain() {
    let (worker, chain) = (start_worker_with_cache(), chain());
    let direct = suite::run(worker.address());
    for _ in 0..2 {
        let chained = suite::run(chain.address());
        let different = differences(&direct, &chained);
        assert!(different.is_empty(), "{}", different.join("\n"));
        assert_eq!(direct.len(), chained.len(), "the whole suite");
    }
}

/// Operations that workers refuse, by the beginning of their names, and why.
const REFUSED: &[(&str, &str)] = &[
    ("SMI_GET_GPU_METRICS", "HIP has no function for it"),
    ("MEM_LEASE", "only an emulated GPU lets the client place memory"),
    ("MALLOC_AT", "only an emulated GPU lets the client place memory"),
    ("MEM_RETURN", "only an emulated GPU lets the client place memory"),
    ("MEM_INFO", "only an emulated GPU says when its free memory changes"),
    ("MEM_SHARE", "only an emulated GPU lets the client place memory"),
    ("CAPABILITY", "the suite does not offer the feature"),
    ("MALLOC_SHARED", "only an emulated GPU lets the client place memory"),
];
/// Operations that need two processes; cli/tests/isolation.rs tests them.
const BETWEEN_PROCESSES: [Opcode; 2] = [Opcode::IPC_OPEN_MEM_HANDLE, Opcode::IPC_CLOSE_MEM_HANDLE];
/// Operations that need a second device.
const PEERLESS: [Opcode; 3] =
    [Opcode::DEVICE_ENABLE_PEER_ACCESS, Opcode::DEVICE_DISABLE_PEER_ACCESS, Opcode::DEVICE_GET_P2P_ATTRIBUTE];

/// Checks that the suite contains every operation, and that each succeeds through the chain at least once, except for those
/// that are refused for a stated reason or need two devices or processes.
#[test]
fn the_suite_is_complete() {
    let chain = chain();
    let outcomes = suite::run(chain.address());
    let of = |wanted: fn(&Outcome) -> bool| -> BTreeSet<Opcode> {
        outcomes.iter().filter(|outcome| wanted(outcome)).map(|outcome| outcome.op).collect()
    };
    let requests = OPS.iter().filter(|info| info.reply_rule != ReplyRule::Notification);
    let all: BTreeSet<Opcode> = requests.map(|info| info.code).collect();
    assert_eq!(of(|_| true), all, "the operations that are asked for");
    let succeeded = of(|outcome| outcome.result.is_ok());
    let refused = of(|outcome| outcome.result == Err(Failure::Error(HipError::NOT_SUPPORTED)));
    let reason = |op: &Opcode| REFUSED.iter().find(|(start, _)| op.to_string().starts_with(start));
    for op in &all {
        let may_fail = PEERLESS.contains(op) || BETWEEN_PROCESSES.contains(op) || reason(op).is_some();
        assert_ne!(
            succeeded.contains(op),
            may_fail,
            "{op} is expected to {}",
            if may_fail { "fail" } else { "succeed" }
        );
        assert_eq!(
            refused.contains(op),
            reason(op).is_some(),
            "{op} is refused for a reason: {:?}",
            reason(op)
        );
    }
}

#[test]
fn sessions_at_once_do_not_disturb_each_other() {
    let (worker, chain) = (start_worker_with_cache(), chain());
    let direct = suite::run(worker.address());
    let address = chain.address();
    let sessions: Vec<_> = (0..3).map(|_| thread::spawn(move || suite::run(address))).collect();
    for session in sessions {
        let chained = session.join().expect("no panic");
        assert_eq!(differences(&direct, &chained), Vec::<String>::new());
        assert_eq!(direct.len(), chained.len(), "the whole suite");
    }
}
