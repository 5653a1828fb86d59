//! Runs the generator of scripts with proptest, which shrinks a failing case by making its bytes fewer and smaller.

use hipr_testkit::{Case, core_world, seed_bytes};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

/// Returns a runner with the same cases in every run.
fn runner(cases: u32) -> TestRunner {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

#[test]
fn any_bytes_make_a_world_in_which_everything_holds() {
    let bytes = proptest::collection::vec(any::<u8>(), 0..1500);
    runner(1500)
        .run(&bytes, |bytes| {
            let case = Case::from_bytes(&bytes);
            let fail = |failure| TestCaseError::fail(format!("{failure}\n{}\n{}", case.options, case.script));
            core_world::check(&case).map_err(fail)
        })
        .expect("everything holds");
}

/// Checks that equal bytes make equal worlds, so that a failing seed can be repeated anywhere.
#[test]
fn the_same_bytes_make_the_same_world() {
    runner(200)
        .run(&any::<u64>(), |seed| {
            let (one, other) = (Case::from_seed(seed), Case::from_bytes(&seed_bytes(seed)));
            prop_assert_eq!(&one, &other);
            prop_assert_eq!(core_world::run(&one), core_world::run(&other));
            Ok(())
        })
        .expect("nothing but the bytes decides");
}
