//! Runs sessions in parallel through `hipr worker --device hip` on hipr's own client library, with a process for each and
//! with one for all, and compares every operation with the emulated GPU behind it.

use hipr_tests::{WorkerProcess, suite};
use std::path::Path;
use std::thread;

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
const SESSIONS: usize = 3;

fn sessions_at_once(isolation: &str) {
    let mut back = WorkerProcess::start(Path::new(HIPR), "sim");
    let expected = suite::run(back.address());
    let mut front = WorkerProcess::start_in_front(Path::new(HIPR), &back, isolation);
    let address = front.address();
    let sessions: Vec<_> = (0..SESSIONS).map(|_| thread::spawn(move || suite::run(address))).collect();
    for session in sessions {
        assert_eq!(session.join().expect("no panic"), expected, "{}", front.log());
    }
    assert!(front.lives() && back.lives(), "{}", front.log());
}

#[test]
fn sessions_with_a_process_each() {
    sessions_at_once("process");
}

#[test]
fn sessions_in_one_process() {
    sessions_at_once("none");
}
