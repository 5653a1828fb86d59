//! Runs seeds of the world of sessions that outlive their connections, and checks what they cover.

use hipr_testkit::resume_world::{self, Met, play};
use hipr_testkit::{seed_bytes, simulate};

const SEEDS: u64 = 5000;

#[test]
fn the_first_seeds_pass() {
    if let Some((seed, failure)) = simulate::first_failure(0..SEEDS, 2, resume_world::check_seed, |_| {}) {
        panic!("seed {seed}: {failure}");
    }
}

#[test]
fn the_first_seeds_meet_everything_there_is() {
    let mut all = Met::default();
    for seed in 0..SEEDS {
        let met = play(&seed_bytes(seed)).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        all.resumed += met.resumed;
        all.cut += met.cut;
        all.half_open += met.half_open;
        all.late += met.late;
        all.strange += met.strange;
        all.full += met.full;
        all.again_bytes += met.again_bytes;
        all.stowed_bytes += met.stowed_bytes;
        all.lost += met.lost;
        all.complete += met.complete;
    }
    let Met { resumed, cut, half_open, late, strange, full, again_bytes, stowed_bytes, lost, complete } = all;
    println!("{all:?}");
    for (what, count) in [
        ("resumed", resumed),
        ("cut", cut),
        ("half open", half_open),
        ("late", late),
        ("strange", strange),
        ("full", full),
        ("lost", lost),
        ("complete", complete),
    ] {
        assert!(count > 200, "{what}: {count}");
    }
    assert!(again_bytes > 50_000 && stowed_bytes > 50_000, "{again_bytes} sent again, {stowed_bytes} stowed");
}
