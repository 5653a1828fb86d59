//! What a worker that serves AMD's runtime on the emulated GPUs does for its clients: `hipr_tests::chained` has the expectations, but those of a
//! kernel that faults, which sessions.rs has.

use super::{Below, Release, with_rig};
use hipr_tests::chained;

/// The checks run one after the other: each has the worker to itself.
fn all(release: Release) {
    for isolation in ["process", "none"] {
        for check in [
            chained::kernels_run_and_their_results_come_back,
            chained::long_copies_go_both_ways,
            chained::many_short_copies_share_what_there_is,
            chained::rows_and_slices_keep_their_gaps,
            chained::events_order_streams_and_measure_them,
            chained::a_kernel_that_goes_on_holds_up_nobody_else,
            chained::a_client_that_goes_in_the_middle_of_a_kernel_is_no_burden,
            chained::what_does_not_exist_is_refused,
            chained::a_session_that_ends_leaves_nothing,
        ] {
            with_rig(release, isolation, Below::Runtime, check);
        }
        // Sessions that have processes do not copy to other workers.
        let copies = isolation == "none";
        with_rig(release, isolation, Below::Runtime, |rig| {
            chained::every_operation_is_carried_out_or_it_is_said_why_not(rig, copies);
        });
        with_rig(release, isolation, Below::Faulty, chained::an_event_whose_stream_is_destroyed_has_happened);
    }
}

#[test]
#[ignore = "takes a minute"]
fn clients_get_what_they_get_of_hiprs_runtime_on_hip_6() {
    all(Release::Hip6);
}

#[test]
#[ignore = "takes a minute"]
fn clients_get_what_they_get_of_hiprs_runtime_on_hip_7() {
    all(Release::Hip7);
}
