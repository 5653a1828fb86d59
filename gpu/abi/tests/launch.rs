//! Tests of launch sizes against arithmetic that cannot overflow.

use hipr_abi::{LaunchFamily, hipErrorInvalidConfiguration, hipErrorInvalidValue, threads_of_block};

#[test]
fn every_size_is_judged_as_wide_arithmetic_does() {
    let sizes = [0, 1, 2, 64, 1024, 1 << 16, 1 << 31, u32::MAX];
    let all = || {
        let triple = |a| sizes.into_iter().flat_map(move |b| sizes.into_iter().map(move |c| [a, b, c]));
        sizes.into_iter().flat_map(triple)
    };
    for grid in all() {
        for block in all() {
            let fits = grid.iter().zip(block).all(|(blocks, size)| {
                (1..=u128::from(u32::MAX)).contains(&(u128::from(*blocks) * u128::from(size)))
            });
            let threads = block.iter().map(|size| u128::from(*size)).product::<u128>();
            let expected = (fits && threads <= u128::from(u64::MAX)).then_some(threads);
            assert_eq!(threads_of_block(grid, block).map(u128::from), expected, "{grid:?} of {block:?}");
        }
    }
}

#[test]
fn each_family_has_its_error() {
    assert_eq!(LaunchFamily::Runtime.size_error(), hipErrorInvalidConfiguration);
    assert_eq!(LaunchFamily::Module.size_error(), hipErrorInvalidValue);
}
