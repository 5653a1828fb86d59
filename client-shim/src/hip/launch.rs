//! Functions that launch kernels.
//!
//! What a launch can be refused for is judged here, so that the error comes at once; what happens on the device comes
//! with a later answer. Arguments are laid out as the kernel's metadata says, since C passes no sizes.

use std::sync::Arc;

use hipr_abi::*;
use hipr_proto::{HipError, HipResult};

use crate::command::{self, KernelLaunch, LaunchConfiguration, PassedArguments};
use crate::convert::{Event, Function, In, Ptr, Stream, cooperative};
use crate::session::Session;
use crate::thread;

/// Largest number of blocks in each dimension for `hipModuleLaunchKernel`.
const MODULE_GRID_MAX: [u32; 3] = [i32::MAX.cast_unsigned(), 65_536, 65_536];

/// Parameters of a launch besides kernel and arguments.
#[derive(Clone, Copy, Debug)]
struct LaunchParams {
    /// Number of blocks in each dimension.
    grid: [u32; 3],
    /// Number of threads of a block in each dimension.
    block: [u32; 3],
    /// Size of dynamic shared memory (LDS) in bytes.
    shared_mem: usize,
    stream: Stream,
    start: Event,
    stop: Event,
    ext_flags: u32,
    is_cooperative: bool,
    /// The family of the launching function: runtime and module functions return different errors for wrong sizes.
    family: LaunchFamily,
}

impl LaunchParams {
    fn runtime(grid: dim3, block: dim3, shared_mem: usize, stream: Stream) -> Self {
        Self {
            grid: [grid.x, grid.y, grid.z],
            block: [block.x, block.y, block.z],
            shared_mem,
            stream,
            start: Event::NULL,
            stop: Event::NULL,
            ext_flags: 0,
            is_cooperative: false,
            family: LaunchFamily::Runtime,
        }
    }

    fn module(grid: [u32; 3], block: [u32; 3], shared_mem: usize, stream: Stream) -> Self {
        let any = Self::runtime(dim3::default(), dim3::default(), shared_mem, stream);
        Self { grid, block, family: LaunchFamily::Module, ..any }
    }

    fn check(&self, session: &Session, function: &command::Function) -> HipResult<()> {
        let wrong_size = HipError(self.family.size_error());
        let threads = threads_of_block(self.grid, self.block).ok_or(wrong_size)?;
        // A device that does not tell its limits, with 0, judges for itself.
        let properties = session.worker().properties(thread::device())?;
        let most = u64::try_from(properties.max_threads_per_block).unwrap_or(0);
        if most > 0 && threads > most {
            return Err(wrong_size);
        }
        // HIP API: a block larger than the kernel was compiled for.
        if function.max_threads.is_some_and(|most| most > 0 && threads > u64::from(most)) {
            return Err(HipError::LAUNCH_FAILURE);
        }
        if properties.shared_mem_per_block > 0 && self.shared_mem as u64 > properties.shared_mem_per_block {
            return Err(HipError::INVALID_VALUE);
        }
        Ok(())
    }

    /// Checks the parameters and returns the launch configuration.
    fn config(&self) -> HipResult<LaunchConfiguration> {
        Ok(LaunchConfiguration {
            grid: self.grid,
            block: self.block,
            shared_mem_bytes: u32::try_from(self.shared_mem).map_err(|_| HipError::INVALID_VALUE)?,
            start: self.start,
            stop: self.stop,
            ext_flags: self.ext_flags,
            is_cooperative: self.is_cooperative,
        })
    }
}

/// Returns the launch of a graph node, whose `func` is an argument of `hipLaunchKernel` or a `hipFunction_t`.
///
/// # Errors
/// Those of a launch.
pub(super) fn of_node(session: &Session, node: &hipKernelNodeParams) -> HipResult<KernelLaunch> {
    let func = Ptr::from(node.func);
    let function = session.program().function(Function(func.0));
    let function = function.or_else(|_| session.find_function(func.check()?))?;
    let params =
        LaunchParams::runtime(node.gridDim, node.blockDim, node.sharedMemBytes as usize, Stream::NULL);
    let arguments =
        PassedArguments::of(In::at_address(node.kernelParams.into()), In::at_address(node.extra.into()))?;
    params.check(session, &function)?;
    let arguments = arguments.encode(&function)?;
    Ok(KernelLaunch::new(function, params.config()?, arguments))
}

fn launch(
    session: &Session,
    function: Arc<command::Function>,
    params: LaunchParams,
    arguments: PassedArguments,
) -> HipResult<()> {
    let stream = session.stream(params.stream)?;
    params.check(session, &function)?;
    let arguments = arguments.encode(&function)?;
    let kernel = KernelLaunch::new(function, params.config()?, arguments);
    session.submit_launch(stream, kernel)
}

/// `hipLaunchKernel`: also what `<<<>>>` becomes.
pub(crate) fn kernel(
    session: &Session,
    function: Ptr,
    grid: dim3,
    block: dim3,
    args: In<Ptr>,
    shared_mem: usize,
    stream: Stream,
) -> HipResult<()> {
    let function = session.find_function(function)?;
    launch(
        session,
        function,
        LaunchParams::runtime(grid, block, shared_mem, stream),
        PassedArguments::Each(args),
    )
}

/// `hipExtLaunchKernel`.
#[allow(clippy::too_many_arguments, reason = "the C function's parameters")]
pub(crate) fn ext_kernel(
    session: &Session,
    function: Ptr,
    grid: dim3,
    block: dim3,
    args: In<Ptr>,
    shared_mem: usize,
    stream: Stream,
    start: Event,
    stop: Event,
    flags: i32,
) -> HipResult<()> {
    let function = session.find_function(function)?;
    let config = LaunchParams {
        start,
        stop,
        ext_flags: flags.cast_unsigned(),
        ..LaunchParams::runtime(grid, block, shared_mem, stream)
    };
    launch(session, function, config, PassedArguments::Each(args))
}

/// `hipLaunchCooperativeKernel`.
pub(crate) fn cooperative_kernel(
    session: &Session,
    function: Ptr,
    grid: dim3,
    block: dim3,
    args: In<Ptr>,
    shared_mem: u32,
    stream: Stream,
) -> HipResult<()> {
    let function = session.find_function(function)?;
    let config = LaunchParams {
        is_cooperative: true,
        ..LaunchParams::runtime(grid, block, shared_mem as usize, stream)
    };
    launch(session, function, config, PassedArguments::Each(args))
}

/// Returns whether launch attributes ask for a cooperative launch; other attributes are only hints.
fn is_cooperative(attributes: *mut hipLaunchAttribute, count: u32) -> bool {
    let attributes = In::<hipLaunchAttribute>::at_address(attributes.into());
    (0..count as usize)
        .filter_map(|index| attributes.at(index))
        .any(|attribute| attribute.id == hipLaunchAttributeCooperative && cooperative(&attribute.value) != 0)
}

/// `hipLaunchKernelExC` (HIP 7).
pub(crate) fn kernel_ex(
    session: &Session,
    config: In<hipLaunchConfig_t>,
    function: Ptr,
    args: In<Ptr>,
) -> HipResult<()> {
    let c = config.check()?;
    let function = session.find_function(function)?;
    let config = LaunchParams::runtime(c.gridDim, c.blockDim, c.dynamicSmemBytes, c.stream.into());
    let config = LaunchParams { is_cooperative: is_cooperative(c.attrs, c.numAttrs), ..config };
    launch(session, function, config, PassedArguments::Each(args))
}

/// `hipDrvLaunchKernelEx` (HIP 7).
pub(crate) fn drv_kernel_ex(
    session: &Session,
    config: In<HIP_LAUNCH_CONFIG>,
    function: Function,
    params: In<Ptr>,
    extra: In<Ptr>,
) -> HipResult<()> {
    let c = config.check()?;
    let function = session.program().function(function)?;
    let grid = [c.gridDimX, c.gridDimY, c.gridDimZ];
    let block = [c.blockDimX, c.blockDimY, c.blockDimZ];
    let config = LaunchParams::module(grid, block, c.sharedMemBytes as usize, c.hStream.into());
    let config = LaunchParams { is_cooperative: is_cooperative(c.attrs, c.numAttrs), ..config };
    launch(session, function, config, PassedArguments::of(params, extra)?)
}

/// `hipModuleLaunchKernel`.
#[allow(clippy::too_many_arguments, reason = "the C function's parameters")]
pub(crate) fn module_kernel(
    session: &Session,
    function: Function,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    shared_mem: u32,
    stream: Stream,
    params: In<Ptr>,
    extra: In<Ptr>,
) -> HipResult<()> {
    let function = session.program().function(function)?;
    // HIP API: only this function has limits for the blocks of a grid; all others count its threads, which have 32 bits.
    if grid_x > MODULE_GRID_MAX[0] || grid_y > MODULE_GRID_MAX[1] || grid_z > MODULE_GRID_MAX[2] {
        return Err(HipError::INVALID_VALUE);
    }
    let config = LaunchParams::module(
        [grid_x, grid_y, grid_z],
        [block_x, block_y, block_z],
        shared_mem as usize,
        stream,
    );
    launch(session, function, config, PassedArguments::of(params, extra)?)
}

/// `hipModuleLaunchCooperativeKernel`.
#[allow(clippy::too_many_arguments, reason = "the C function's parameters")]
pub(crate) fn module_cooperative(
    session: &Session,
    function: Function,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    shared_mem: u32,
    stream: Stream,
    params: In<Ptr>,
) -> HipResult<()> {
    let function = session.program().function(function)?;
    let config = LaunchParams::module(
        [grid_x, grid_y, grid_z],
        [block_x, block_y, block_z],
        shared_mem as usize,
        stream,
    );
    launch(session, function, LaunchParams { is_cooperative: true, ..config }, PassedArguments::Each(params))
}

/// `hipExtModuleLaunchKernel`: the grid is counted in threads.
#[allow(clippy::too_many_arguments, reason = "the C function's parameters")]
pub(crate) fn ext_module(
    session: &Session,
    function: Function,
    global_x: u32,
    global_y: u32,
    global_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    shared_mem: usize,
    stream: Stream,
    params: In<Ptr>,
    extra: In<Ptr>,
    start: Event,
    stop: Event,
    flags: u32,
) -> HipResult<()> {
    let function = session.program().function(function)?;
    let (global, block) = ([global_x, global_y, global_z], [block_x, block_y, block_z]);
    if block.contains(&0) {
        return Err(HipError::INVALID_VALUE);
    }
    let mut grid = [0; 3];
    for ((grid, global), block) in grid.iter_mut().zip(global).zip(block) {
        if global % block != 0 {
            tracing::warn!(
                "kernel {}: a grid of {global} threads in blocks of {block} cannot be launched: the protocol counts \
                 whole blocks",
                function.name
            );
            return Err(HipError::NOT_SUPPORTED);
        }
        *grid = global / block;
    }
    let config = LaunchParams {
        start,
        stop,
        ext_flags: flags,
        ..LaunchParams::module(grid, block, shared_mem, stream)
    };
    launch(session, function, config, PassedArguments::of(params, extra)?)
}

/// `hipHccModuleLaunchKernel`: `hipExtModuleLaunchKernel` without flags.
#[allow(clippy::too_many_arguments, reason = "the C function's parameters")]
pub(crate) fn hcc_module(
    session: &Session,
    function: Function,
    global_x: u32,
    global_y: u32,
    global_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    shared_mem: usize,
    stream: Stream,
    params: In<Ptr>,
    extra: In<Ptr>,
    start: Event,
    stop: Event,
) -> HipResult<()> {
    ext_module(
        session, function, global_x, global_y, global_z, block_x, block_y, block_z, shared_mem, stream,
        params, extra, start, stop, 0,
    )
}
