//! Fails each call of the HIP runtime once, in a worker whose sessions share a process; `hipr_tests::faults` has the
//! expectations.
//!
//! The calls take turns with the two kinds of errors; each call with each of them is
//! `cargo test -p hipr-tests --test chain_faults -- --ignored`.

use hipr_tests::faults::{ERRORS, Rig, check};
use std::path::Path;
use std::process::Command;

fn front(runtime: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chain-worker"));
    command.arg(runtime);
    command
}

#[test]
fn a_call_that_fails_is_told_to_its_session_alone() {
    check(&Rig::new(&front), |call, _| vec![ERRORS[usize::from(call % 2 == 0)]]);
}

#[test]
#[ignore = "twice as long: every call with every error"]
fn a_call_that_fails_in_any_way_is_told_to_its_session_alone() {
    check(&Rig::new(&front), |_, _| ERRORS.to_vec());
}
