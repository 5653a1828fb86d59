//! Launch sizes that HIP refuses on every device, and the error for each.

use core::ffi::c_int;

use crate::{hipErrorInvalidConfiguration, hipErrorInvalidValue};

/// A family of functions that launch kernels. Both refuse the same sizes, each with an error of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchFamily {
    /// Functions of the runtime API: `hipLaunchKernel`, `<<<>>>` and kernels of graphs.
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

/// Returns the number of threads in a block, or None for sizes that no device takes: a dimension of 0, or more threads than 32 bits
/// count in a dimension of the whole grid.
pub const fn threads_of_block(grid: [u32; 3], block: [u32; 3]) -> Option<u64> {
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
