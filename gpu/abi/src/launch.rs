//! Launch sizes that HIP refuses, and the error for each.

use core::ffi::c_int;

use crate::{hipErrorInvalidConfiguration, hipErrorInvalidValue, hipErrorLaunchFailure};

/// A family of functions that launch kernels. Both refuse the same sizes, each with an error of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchFamily {
    /// Functions of the runtime API: `hipLaunchKernel`, `<<<>>>` and kernels of graphs; also `hipExtModuleLaunchKernel`.
    Runtime,
    /// Functions of the module API: `hipModuleLaunchKernel` and others that take a `hipFunction_t`.
    Module,
}

impl LaunchFamily {
    /// Returns the `hipError_t` for a launch without threads, or with more than the device can run.
    pub const fn size_error(self) -> c_int {
        match self {
            Self::Runtime => hipErrorInvalidConfiguration,
            Self::Module => hipErrorInvalidValue,
        }
    }
}

/// The size of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchSize {
    /// Number of blocks in each dimension.
    pub grid: [u32; 3],
    /// Number of threads of a block in each dimension.
    pub block: [u32; 3],
    /// Size of a block's dynamic shared memory (LDS) in bytes.
    pub shared_mem_bytes: u64,
}

/// The largest sizes that a device and a kernel take; `None` for one that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchLimits {
    /// Threads of a block on the device.
    pub device_threads: Option<u64>,
    /// Threads of a block that the kernel was compiled for (`__launch_bounds__`).
    pub kernel_threads: Option<u64>,
    /// Dynamic shared memory of a block in bytes.
    pub shared_mem_bytes: Option<u64>,
}

impl LaunchSize {
    /// Returns the number of threads in a block.
    ///
    /// # Errors
    /// The `hipError_t` of the first rule that the launch breaks, in HIP's order: the family's
    /// [`size_error`](LaunchFamily::size_error) for a dimension of 0 and for more threads than 32 bits count in a dimension of the whole
    /// grid; `hipErrorInvalidValue` for too much shared memory; `size_error` again for more threads in a block than the device runs;
    /// `hipErrorLaunchFailure` for a block larger than the kernel was compiled for.
    #[inline]
    pub const fn check(&self, family: LaunchFamily, limits: &LaunchLimits) -> Result<u64, c_int> {
        let Some(threads) = threads_of_block(self.grid, self.block) else { return Err(family.size_error()) };
        if exceeds(self.shared_mem_bytes, limits.shared_mem_bytes) {
            return Err(hipErrorInvalidValue);
        }
        if exceeds(threads, limits.device_threads) {
            return Err(family.size_error());
        }
        if exceeds(threads, limits.kernel_threads) { Err(hipErrorLaunchFailure) } else { Ok(threads) }
    }
}

const fn exceeds(size: u64, limit: Option<u64>) -> bool {
    match limit {
        Some(limit) => size > limit,
        None => false,
    }
}

/// Returns the number of blocks in each dimension of a grid that is counted in threads, and whether they have exactly as many threads.
/// An incomplete block counts as one only if it is alone in its dimension; a dimension without threads has no block.
#[inline]
pub const fn blocks_of_threads(threads: [u32; 3], block: [u32; 3]) -> ([u32; 3], bool) {
    let (mut grid, mut exact, mut dimension) = ([0; 3], true, 0);
    while dimension < 3 {
        let (all, size) = (threads[dimension], block[dimension]);
        if all > 0 && size > 0 {
            grid[dimension] = if all < size { 1 } else { all / size };
            exact &= all % size == 0;
        }
        dimension += 1;
    }
    (grid, exact)
}

/// Returns the number of threads in a block, or None for sizes that no device takes: a dimension of 0, or more threads than 32 bits
/// count in a dimension of the whole grid.
#[inline]
const fn threads_of_block(grid: [u32; 3], block: [u32; 3]) -> Option<u64> {
    let (mut threads, mut dimension) = (1u64, 0);
    while dimension < 3 {
        let (blocks, size) = (grid[dimension], block[dimension]);
        if size == 0 || blocks == 0 || blocks.checked_mul(size).is_none() {
            return None;
        }
        threads = match threads.checked_mul(size as u64) {
            Some(threads) => threads,
            None => return None,
        };
        dimension += 1;
    }
    Some(threads)
}
