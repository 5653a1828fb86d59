//! Tests of the rule of launch sizes against arithmetic that cannot overflow, for every combination of sizes and limits.

use hipr_abi::{
    LaunchFamily, LaunchLimits, LaunchSize, blocks_of_threads, hipErrorInvalidConfiguration,
    hipErrorInvalidValue, hipErrorLaunchFailure,
};

/// Returns all triples of some sizes.
fn triples(sizes: &[u32]) -> Vec<[u32; 3]> {
    let pairs = || sizes.iter().flat_map(|a| sizes.iter().map(move |b| (*a, *b)));
    pairs().flat_map(|(a, b)| sizes.iter().map(move |c| [a, b, *c])).collect()
}

/// Returns the number of threads of a block that some device may run.
fn threads_of(grid: [u32; 3], block: [u32; 3]) -> Option<u64> {
    let counts = grid.iter().zip(block).map(|(blocks, size)| u128::from(*blocks) * u128::from(size));
    let fits = counts.into_iter().all(|count| (1..=u128::from(u32::MAX)).contains(&count));
    let threads = block.iter().map(|size| u128::from(*size)).product::<u128>();
    u64::try_from(threads).ok().filter(|_| fits)
}

#[test]
fn every_size_is_judged_as_wide_arithmetic_does() {
    let sizes = triples(&[0, 1, 2, 64, 1024, 1 << 16, 1 << 31, u32::MAX]);
    for grid in &sizes {
        for block in &sizes {
            let size = LaunchSize { grid: *grid, block: *block, shared_mem_bytes: u64::MAX };
            let expected = threads_of(*grid, *block).ok_or(hipErrorInvalidValue);
            assert_eq!(size.check(LaunchFamily::Module, &LaunchLimits::default()), expected, "{size:?}");
        }
    }
}

#[test]
fn the_first_rule_that_is_broken_gives_the_error() {
    let limits = [None, Some(0), Some(63), Some(64), Some(65), Some(u64::MAX)];
    for (family, wrong_size) in
        [(LaunchFamily::Runtime, hipErrorInvalidConfiguration), (LaunchFamily::Module, hipErrorInvalidValue)]
    {
        for block in triples(&[0, 1, 8, 64]) {
            for shared_mem_bytes in [0, 63, 64, 65] {
                for device_threads in limits {
                    for kernel_threads in limits {
                        for shared in limits {
                            let size = LaunchSize { grid: [3, 1, 2], block, shared_mem_bytes };
                            let known =
                                LaunchLimits { device_threads, kernel_threads, shared_mem_bytes: shared };
                            let within = |value, limit: Option<u64>| limit.is_none_or(|limit| value <= limit);
                            let threads = threads_of([3, 1, 2], block);
                            let expected = match threads {
                                None => Err(wrong_size),
                                Some(_) if !within(shared_mem_bytes, shared) => Err(hipErrorInvalidValue),
                                Some(threads) if !within(threads, device_threads) => Err(wrong_size),
                                Some(threads) if !within(threads, kernel_threads) => {
                                    Err(hipErrorLaunchFailure)
                                }
                                Some(threads) => Ok(threads),
                            };
                            assert_eq!(size.check(family, &known), expected, "{family:?} {size:?} {known:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_grid_counted_in_threads_has_its_whole_blocks() {
    let sizes = [0, 1, 2, 3, 64, 100, 1024, u32::MAX - 1, u32::MAX];
    for threads in sizes {
        for size in sizes {
            let (grid, is_exact) = blocks_of_threads([64, threads, 9], [64, size, 3]);
            let (has_threads, has_size) = (threads > 0, size > 0);
            let expected = if has_threads && has_size { (threads / size).max(1) } else { 0 };
            assert_eq!(grid, [1, expected, 3], "{threads} threads in blocks of {size}");
            assert_eq!(is_exact, !has_threads || !has_size || threads % size == 0, "{threads} by {size}");
            // What is wrong with a dimension is found in its blocks, whether or not the last one is complete.
            let judged = LaunchSize { grid, block: [64, size, 3], shared_mem_bytes: 0 };
            let is_right = judged.check(LaunchFamily::Module, &LaunchLimits::default()).is_ok();
            assert_eq!(is_right, has_threads && has_size, "{threads} by {size}");
        }
    }
}
