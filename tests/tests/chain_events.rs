//! Checks what is asked about events whose stream is destroyed; `hipr_tests::chained` has the expectations.

use hipr_tests::chained;
use hipr_tests::faults::Rig;
use std::path::Path;
use std::process::Command;

fn front(runtime: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chain-worker"));
    command.arg(runtime);
    command
}

#[test]
fn an_event_whose_stream_is_destroyed_has_happened() {
    chained::an_event_whose_stream_is_destroyed_has_happened(&Rig::new(&front));
}
