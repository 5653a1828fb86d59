//! Some thousand seeds of the core world.

use hipr_testkit::{core_world, simulate};

#[test]
fn the_first_seeds_pass() {
    if let Some(found) = simulate::simulate(0..4000, 2, core_world::check, |_| {}) {
        panic!("{found}");
    }
}
