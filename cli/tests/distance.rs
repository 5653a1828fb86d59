//! Holds the demo to its committed bound of round trips and bytes (`tests/distance.tsv`).

use std::process::Command;

use hipr_tests::Link;
use hipr_tests::distance::{assert_bound, run};

#[test]
fn the_demo_keeps_to_its_bound() {
    let run = run(Command::new(env!("CARGO_BIN_EXE_hipr")).arg("demo-program"), Link::default());
    let (traffic, _) = run.unwrap_or_else(|why| panic!("{why}"));
    assert_bound("hipr demo", "-", &traffic);
}
