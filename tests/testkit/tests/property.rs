//! The generator driven by proptest, which makes a failing case small on its own way: by making its bytes fewer and smaller.

use hipr_testkit::{Case, core_world, seed_bytes};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

/// The same cases on every run: what a change breaks is broken for everybody.
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

/// A case is its bytes, so a seed that failed once can be run again anywhere.
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
