//! Kernels and their launches.

use hipr_proto::op::Param;

use crate::Origin;

/// A kernel found in a module.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionInfo {
    /// Handle of the function.
    pub handle: u64,
    /// Size of the kernarg segment in bytes, hidden arguments included.
    pub kernarg_size_bytes: u32,
    /// The explicit parameters in order, offsets in the kernarg segment; `None` where the device has no metadata, and then
    /// nothing about arguments is checked.
    pub params: Option<Vec<Param>>,
}

/// A launch's explicit arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Args<'a> {
    /// Argument `i` is `data[table[i].offset ..][.. table[i].size]`; every entry lies inside `data`, and number and sizes
    /// agree with [`FunctionInfo::params`] where those are known. (HIP API: hipModuleLaunchKernel, kernelParams.)
    Params {
        /// The location of each argument's value in `data`.
        table: &'a [Param],
        /// The values.
        data: &'a [u8],
    },
    /// The explicit part of the kernarg segment, unchanged. (HIP API: hipModuleLaunchKernel, extra.)
    Flat(&'a [u8]),
}

/// A kernel launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Launch<'a> {
    /// The kernel: a [`FunctionInfo::handle`].
    pub function: u64,
    /// Workgroups in x, y, z.
    pub grid: [u32; 3],
    /// Work-items of a group in x, y, z.
    pub block: [u32; 3],
    /// Dynamic LDS in bytes.
    pub shared_mem_bytes: u32,
    /// The stream that it is enqueued on.
    pub stream: u64,
    /// The arguments that the program passes, without the hidden ones.
    pub args: Args<'a>,
    /// The event that records the time at which the kernel starts.
    pub start_event: Option<u64>,
    /// The event that records the time at which the kernel ends, and completes then.
    pub stop_event: Option<u64>,
    /// Whether all workgroups must be resident at once (HIP API: hipModuleLaunchCooperativeKernel).
    pub cooperative: bool,
    /// The request that it belongs to, which a device repeats that says which work has failed.
    pub origin: Origin,
}

/// The block size that uses a device best (HIP API: hipModuleOccupancyMaxPotentialBlockSize).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize {
    /// Number of workgroups that fill the device.
    pub min_grid_size: i32,
    /// Work-items of a workgroup.
    pub block_size: i32,
}
