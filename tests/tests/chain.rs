//! Tests the device `hip` with hipr's own client library as its HIP runtime, in a worker's process, with the emulated GPU behind it;
//! `hipr_tests::chained` has the expectations.

use hipr_tests::faults::Rig;
use hipr_tests::{chained, library};
use std::path::Path;
use std::process::Command;

fn front(runtime: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chain-worker"));
    command.arg(runtime);
    command
}

fn rig() -> Rig<'static> {
    Rig { runtime: library(), ..Rig::new(&front) }
}

#[test]
fn kernels_run_and_their_results_come_back() {
    chained::kernels_run_and_their_results_come_back(&rig());
}

#[test]
fn long_copies_go_both_ways() {
    chained::long_copies_go_both_ways(&rig());
}

#[test]
fn many_short_copies_share_what_there_is() {
    chained::many_short_copies_share_what_there_is(&rig());
}

#[test]
fn rows_and_slices_keep_their_gaps() {
    chained::rows_and_slices_keep_their_gaps(&rig());
}

#[test]
fn events_order_streams_and_measure_them() {
    chained::events_order_streams_and_measure_them(&rig());
}

#[test]
fn a_kernel_that_goes_on_holds_up_nobody_else() {
    chained::a_kernel_that_goes_on_holds_up_nobody_else(&rig());
}

#[test]
fn a_client_that_goes_in_the_middle_of_a_kernel_is_no_burden() {
    chained::a_client_that_goes_in_the_middle_of_a_kernel_is_no_burden(&rig());
}

#[test]
fn a_fault_is_told_to_whose_it_is() {
    chained::a_fault_is_told_to_whose_it_is(&rig());
}

#[test]
fn what_does_not_exist_is_refused() {
    chained::what_does_not_exist_is_refused(&rig());
}

#[test]
fn a_session_that_ends_leaves_nothing() {
    chained::a_session_that_ends_leaves_nothing(&rig());
}

#[test]
fn every_operation_is_carried_out_or_it_is_said_why_not() {
    chained::every_operation_is_carried_out_or_it_is_said_why_not(&rig(), false);
}
