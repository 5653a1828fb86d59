//! Calls of AMD's runtime on the emulated GPUs that fail as planned, the order of its calls while bytes are copied, and what its new memory has
//! in it: `hipr_tests::faults`, `hipr_tests::overlap` and `hipr_tests::soiled` have the expectations.

use super::{Below, Release, with_rig};
use hipr_tests::faults::{self, ERRORS};
use hipr_tests::{overlap, soiled};

/// Fails the first and the last call of each function. Each session has a process, as the last operation of all ends one.
fn failures(release: Release) {
    with_rig(release, "process", Below::Faulty, |rig| {
        faults::check(rig, |call, calls| match call {
            1 => vec![ERRORS[1]],
            last if last == calls => vec![ERRORS[0]],
            _ => Vec::new(),
        });
    });
}

#[test]
#[ignore = "takes minutes"]
fn a_call_that_fails_is_told_to_its_session_alone_on_hip_6() {
    failures(Release::Hip6);
}

#[test]
#[ignore = "takes minutes"]
fn a_call_that_fails_is_told_to_its_session_alone_on_hip_7() {
    failures(Release::Hip7);
}

/// The checks run one after the other: each has the worker to itself.
fn copies_overlap(release: Release) {
    for check in [
        overlap::bytes_are_received_while_the_device_copies_those_before_them,
        overlap::no_more_is_received_than_there_are_buffers_for,
        overlap::the_device_copies_ahead_of_what_is_sent,
        overlap::bytes_are_sent_while_the_device_copies_those_behind_them,
    ] {
        with_rig(release, "none", Below::Faulty, check);
    }
}

#[test]
fn network_and_device_copy_at_the_same_time_on_hip_6() {
    copies_overlap(Release::Hip6);
}

#[test]
fn network_and_device_copy_at_the_same_time_on_hip_7() {
    copies_overlap(Release::Hip7);
}

fn new_memory_has_nothing_of_another_session(release: Release) {
    for (isolation, is_cleared) in [("none", true), ("process", false)] {
        with_rig(release, isolation, Below::Faulty, |rig| soiled::check(rig, is_cleared));
    }
}

#[test]
fn new_memory_has_nothing_of_another_session_on_hip_6() {
    new_memory_has_nothing_of_another_session(Release::Hip6);
}

#[test]
fn new_memory_has_nothing_of_another_session_on_hip_7() {
    new_memory_has_nothing_of_another_session(Release::Hip7);
}
