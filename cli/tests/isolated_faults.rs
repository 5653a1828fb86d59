//! Fails calls of the HIP runtime in a worker with a process for each session; `hipr_tests::faults` has the expectations.
//! Only the first and the last call of each function are failed here; `tests/tests/chain_faults.rs` fails all of them.

use hipr_tests::faults::{ERRORS, Rig, check};
use std::path::Path;
use std::process::Command;

fn front(runtime: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hipr"));
    command.args(["worker", "--listen", "127.0.0.1:0", "--device", "hip", "--isolate", "process"]);
    // The runtime is hipr's own library, whose worker is reached by a socket.
    command.args(["--cache", "256M", "--sandbox", "off"]);
    command.arg("--hip-library").arg(runtime);
    command
}

#[test]
fn a_call_that_fails_is_told_to_its_session_alone() {
    check(&Rig::new(&front), |call, calls| match call {
        1 => vec![ERRORS[1]],
        last if last == calls => vec![ERRORS[0]],
        _ => Vec::new(),
    });
}
