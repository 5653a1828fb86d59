//! Functions about occupancy: how many blocks of a kernel fit on a compute unit.

use std::sync::Arc;

use hipr_proto::{HipError, HipResult, op};

use super::module::{attributes_of, rules_of};
use crate::command::Function as Kernel;
use crate::convert::{Function, Out, Ptr};
use crate::session::Session;
use crate::thread;

fn active_blocks(
    session: &Session,
    out: Out<i32>,
    function: &Arc<Kernel>,
    block_size: i32,
    shared: usize,
) -> HipResult<()> {
    let out = out.check()?;
    let Some(threads) = u32::try_from(block_size).ok().filter(|threads| *threads > 0) else {
        out.set(0);
        return Err(HipError::INVALID_VALUE);
    };
    if let Some((needs, _)) = rules_of(session, function)? {
        out.set(needs.groups_per_cu(threads, shared as u64).cast_signed());
        return Ok(());
    }
    let function = function.handle;
    let request = op::OccupancyMaxActiveBlocksPerSm { function, block_size, dyn_shared_mem: shared as u64 };
    out.set(session.worker().ask(&request)?.num_blocks);
    Ok(())
}

/// Returns the kernel with this handle. HIP API: none is a wrong value here.
fn function_of(session: &Session, function: Function) -> HipResult<Arc<Kernel>> {
    if function.is_null() { Err(HipError::INVALID_VALUE) } else { session.program().function(function) }
}

/// `hipModuleOccupancyMaxActiveBlocksPerMultiprocessor`.
pub(crate) fn module_active_blocks(
    s: &Session,
    out: Out<i32>,
    f: Function,
    block: i32,
    shared: usize,
) -> HipResult<()> {
    active_blocks(s, out, &function_of(s, f)?, block, shared)
}

/// `hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`: the flags concern caches that AMD's devices do not
/// have.
pub(crate) fn module_active_blocks_flags(
    session: &Session,
    out: Out<i32>,
    function: Function,
    block: i32,
    shared: usize,
    flags: u32,
) -> HipResult<()> {
    check_flags(flags)?;
    module_active_blocks(session, out, function, block, shared)
}

/// `hipOccupancyMaxActiveBlocksPerMultiprocessor`.
pub(crate) fn kernel_active_blocks(
    s: &Session,
    out: Out<i32>,
    f: Ptr,
    block: i32,
    shared: usize,
) -> HipResult<()> {
    out.check()?;
    active_blocks(s, out, &s.find_function(f)?, block, shared)
}

/// `hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`.
pub(crate) fn kernel_active_blocks_flags(
    session: &Session,
    out: Out<i32>,
    function: Ptr,
    block: i32,
    shared: usize,
    flags: u32,
) -> HipResult<()> {
    check_flags(flags)?;
    kernel_active_blocks(session, out, function, block, shared)
}

/// Checks that all blocks of a cooperative launch run at the same time; where it does not follow from the code object, the worker does.
///
/// # Errors
/// `hipErrorCooperativeLaunchTooLarge`; what the worker answers when it is asked for the device's properties.
pub(super) fn check_cooperative(
    session: &Session,
    function: &Kernel,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u64,
) -> HipResult<()> {
    let Some((needs, device)) = rules_of(session, function)? else { return Ok(()) };
    let product = |size: [u32; 3]| size.into_iter().map(u64::from).fold(1, u64::saturating_mul);
    let threads = u32::try_from(product(block)).map_err(|_| HipError::INVALID_VALUE)?;
    let compute_units = u64::try_from(device.multi_processor_count).unwrap_or(0);
    if product(grid) > u64::from(needs.groups_per_cu(threads, shared)) * compute_units {
        return Err(HipError::COOPERATIVE_LAUNCH_TOO_LARGE);
    }
    Ok(())
}

fn check_flags(flags: u32) -> HipResult<()> {
    if flags > hipr_abi::hipOccupancyDisableCachingOverride { Err(HipError::INVALID_VALUE) } else { Ok(()) }
}

fn block_size(
    session: &Session,
    (grid, block): (Out<i32>, Out<i32>),
    function: &Arc<Kernel>,
    shared: usize,
    limit: i32,
    flags: u32,
) -> HipResult<()> {
    let (grid, block) = (grid.check()?, block.check()?);
    if let Some((needs, device)) = rules_of(session, function)? {
        let compute_units = u32::try_from(device.multi_processor_count).unwrap_or(0);
        let threads = needs.best_block_size(limit);
        grid.set(needs.groups(threads, shared as u64, compute_units).cast_signed());
        block.set(threads.cast_signed());
        return Ok(());
    }
    let function = function.handle;
    // HIP API: a limit below 0 is none, like 0; the protocol has only 0.
    let block_size_limit = limit.max(0);
    let request = op::OccupancyMaxPotentialBlockSize {
        function,
        dyn_shared_mem: shared as u64,
        block_size_limit,
        flags,
    };
    let reply = session.worker().ask(&request)?;
    grid.set(reply.min_grid_size);
    block.set(reply.block_size);
    Ok(())
}

/// `hipModuleOccupancyMaxPotentialBlockSize`.
pub(crate) fn module_block_size(
    session: &Session,
    grid: Out<i32>,
    block: Out<i32>,
    function: Function,
    shared: usize,
    limit: i32,
) -> HipResult<()> {
    block_size(session, (grid, block), &function_of(session, function)?, shared, limit, 0)
}

/// `hipModuleOccupancyMaxPotentialBlockSizeWithFlags`.
pub(crate) fn module_block_size_flags(
    session: &Session,
    grid: Out<i32>,
    block: Out<i32>,
    function: Function,
    shared: usize,
    limit: i32,
    flags: u32,
) -> HipResult<()> {
    check_flags(flags)?;
    block_size(session, (grid, block), &function_of(session, function)?, shared, limit, flags)
}

/// `hipOccupancyMaxPotentialBlockSize`.
pub(crate) fn kernel_block_size(
    session: &Session,
    grid: Out<i32>,
    block: Out<i32>,
    function: Ptr,
    shared: usize,
    limit: i32,
) -> HipResult<()> {
    grid.check()?;
    block.check()?;
    block_size(session, (grid, block), &session.find_function(function)?, shared, limit, 0)
}

/// `hipOccupancyAvailableDynamicSMemPerBlock` (HIP 7): the LDS that each of so many blocks of a compute unit can have
/// beside what the kernel declares.
pub(crate) fn available_shared_mem(
    session: &Session,
    out: Out<usize>,
    function: Ptr,
    blocks: i32,
    block_size: i32,
) -> HipResult<()> {
    let out = out.check()?;
    if blocks <= 0 || block_size <= 0 {
        return Err(HipError::INVALID_VALUE);
    }
    let function = session.find_function(function)?;
    let declared = attributes_of(session, &function)?.sharedSizeBytes as u64;
    let device = session.worker().properties(thread::device())?;
    // HIP API: no more blocks than a compute unit has threads for.
    let most = (device.max_threads_per_multi_processor / block_size).max(1);
    let each = device.shared_mem_per_block / u64::try_from(blocks.min(most)).unwrap_or(1);
    out.set(each.saturating_sub(declared) as usize);
    Ok(())
}
