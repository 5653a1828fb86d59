//! Checks that network and device copy at the same time, in a worker whose sessions share a process; `hipr_tests::overlap` has the
//! expectations.

use hipr_tests::faults::Rig;
use hipr_tests::overlap;
use std::path::Path;
use std::process::Command;

fn front(runtime: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chain-worker"));
    command.arg(runtime);
    command
}

#[test]
fn bytes_are_received_while_the_device_copies_those_before_them() {
    overlap::bytes_are_received_while_the_device_copies_those_before_them(&Rig::new(&front));
}

#[test]
fn no_more_is_received_than_there_are_buffers_for() {
    overlap::no_more_is_received_than_there_are_buffers_for(&Rig::new(&front));
}

#[test]
fn the_device_copies_ahead_of_what_is_sent() {
    overlap::the_device_copies_ahead_of_what_is_sent(&Rig::new(&front));
}

#[test]
fn bytes_are_sent_while_the_device_copies_those_behind_them() {
    overlap::bytes_are_sent_while_the_device_copies_those_behind_them(&Rig::new(&front));
}
