//! Functions that launch kernels.
//!
//! What a launch can be refused for is judged here, so that the error comes at once; what happens on the device comes
//! with a later answer. Arguments are laid out as the kernel's metadata says, since C passes no sizes.

use std::collections::BTreeSet;
use std::sync::Arc;

use hipr_abi::*;
use hipr_proto::{HipError, HipResult};

use super::occupancy::check_cooperative;
use super::stream::device_of;
use super::symbol::symbol_error;
use crate::command::{self, KernelLaunch, LaunchConfiguration, PassedArguments};
use crate::convert::{Event, Function, In, Out, Ptr, Stream, cooperative};
use crate::host_log;
use crate::session::Session;
use crate::thread::{self, Configuration};

/// Largest number of blocks in each dimension for `hipModuleLaunchKernel`.
const MODULE_GRID_MAX: [u32; 3] = [i32::MAX.cast_unsigned(), 65_536, 65_536];

/// Largest number of bytes of arguments that `hipSetupArgument` sets; no kernel takes as many.
const ARGUMENT_BYTES_MAX: usize = 1 << 20;

/// Parameters of a launch besides kernel and arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchParams {
    /// Number of blocks in each dimension.
    grid: [u32; 3],
    /// Number of threads of a block in each dimension.
    block: [u32; 3],
    /// Whether the grid was counted in threads and ends with incomplete blocks.
    has_partial_blocks: bool,
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
    /// Returns the parameters of a runtime function's launch.
    pub(crate) fn runtime(grid: dim3, block: dim3, shared_mem: usize, stream: Stream) -> Self {
        let (grid, block) = ([grid.x, grid.y, grid.z], [block.x, block.y, block.z]);
        Self { family: LaunchFamily::Runtime, ..Self::module(grid, block, shared_mem, stream) }
    }

    /// Returns the parameters of a module function's launch.
    pub(crate) fn module(grid: [u32; 3], block: [u32; 3], shared_mem: usize, stream: Stream) -> Self {
        Self {
            grid,
            block,
            has_partial_blocks: false,
            shared_mem,
            stream,
            start: Event::NULL,
            stop: Event::NULL,
            ext_flags: 0,
            is_cooperative: false,
            family: LaunchFamily::Module,
        }
    }

    /// Returns the parameters of a module function's launch whose grid is counted in threads. Since HIP 7 the errors for wrong sizes are those
    /// of a runtime function.
    pub(crate) fn threads(threads: [u32; 3], block: [u32; 3], shared_mem: usize, stream: Stream) -> Self {
        let (grid, is_exact) = blocks_of_threads(threads, block);
        let family = LaunchFamily::Runtime;
        Self { has_partial_blocks: !is_exact, family, ..Self::module(grid, block, shared_mem, stream) }
    }

    /// Sets the events that record when the kernel starts and ends, and the flags of `hipExt` functions.
    pub(crate) fn with_events(self, start: Event, stop: Event, ext_flags: u32) -> Self {
        Self { start, stop, ext_flags, ..self }
    }

    /// Sets whether all blocks have to run at the same time.
    pub(crate) fn cooperative(self, is_cooperative: bool) -> Self {
        Self { is_cooperative, ..self }
    }

    /// Checks the sizes, with the number of threads that the kernel was compiled for if it is known.
    fn check_size(&self, session: &Session, kernel_threads: Option<u64>) -> HipResult<()> {
        // A device that does not tell its limits, with 0, judges for itself.
        let known = |limit: &u64| *limit > 0;
        let properties = session.worker().properties(thread::device())?;
        let limits = LaunchLimits {
            device_threads: u64::try_from(properties.max_threads_per_block).ok().filter(known),
            kernel_threads: kernel_threads.filter(known),
            shared_mem_bytes: Some(properties.shared_mem_per_block).filter(known),
        };
        let (grid, block, shared_mem_bytes) = (self.grid, self.block, self.shared_mem as u64);
        // HIP API: with more shared memory than a compute unit has, no block of hipLaunchCooperativeKernel fits.
        if self.is_cooperative
            && self.family == LaunchFamily::Runtime
            && limits.shared_mem_bytes.is_some_and(|most| shared_mem_bytes > most)
        {
            let threads = block.into_iter().map(u64::from).fold(1, u64::saturating_mul);
            let is_too_large = limits.device_threads.is_some_and(|most| threads > most);
            let size_error = HipError(self.family.size_error());
            return Err(if is_too_large { size_error } else { HipError::COOPERATIVE_LAUNCH_TOO_LARGE });
        }
        LaunchSize { grid, block, shared_mem_bytes }.check(self.family, &limits).map_err(HipError)?;
        Ok(())
    }

    fn check(&self, session: &Session, function: &command::Function) -> HipResult<()> {
        self.check_size(session, function.max_threads().map(u64::from))?;
        if self.has_partial_blocks {
            tracing::warn!(
                "kernel {}: a grid that ends with incomplete blocks cannot be launched: the protocol counts whole blocks",
                function.name
            );
            return Err(HipError::NOT_SUPPORTED);
        }
        if self.is_cooperative {
            let fits = check_cooperative(session, function, self.grid, self.block, self.shared_mem as u64);
            if fits == Err(HipError::COOPERATIVE_LAUNCH_TOO_LARGE) {
                host_log::too_large(&function.name);
            }
            fits?;
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
    let stream = session.handle(params.stream)?;
    // HIP API: hipModuleLaunchKernel of a kernel that another device has loaded.
    if function.device != session.streams().order.device_of(stream) {
        return Err(HipError::INVALID_DEVICE);
    }
    params.check(session, &function)?;
    let arguments = arguments.encode(&function)?;
    let kernel = KernelLaunch::new(function, params.config()?, arguments);
    session.submit_launch(stream, kernel)
}

/// `hipLaunchKernel`, which is also what `<<<>>>` becomes, and the runtime functions with more parameters.
pub(crate) fn kernel(session: &Session, function: Ptr, params: LaunchParams, args: In<Ptr>) -> HipResult<()> {
    // HIP 7: also by the handle of a library's kernel.
    let by_handle = |error| session.program().function(Function(function.0)).map_err(|_| error);
    let known = session.find_function_of(device_of(session, params.stream), function).or_else(by_handle)?;
    launch(session, known, params, PassedArguments::Each(args))
}

/// `hipLaunchCooperativeKernel`. HIP API: an address that is no kernel is a wrong symbol.
pub(crate) fn cooperative_kernel(
    session: &Session,
    function: Ptr,
    params: LaunchParams,
    args: In<Ptr>,
) -> HipResult<()> {
    let launched = kernel(session, function, params, args);
    launched.map_err(|error| symbol_error(function, error))
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
    let c = config.check().map_err(|_| HipError::INVALID_CONFIGURATION)?;
    let config = LaunchParams::runtime(c.gridDim, c.blockDim, c.dynamicSmemBytes, c.stream.into());
    // HIP API: a null kernel is refused before the sizes are checked, an unknown one after.
    function.check().map_err(|_| HipError::INVALID_DEVICE_FUNCTION)?;
    config.check_size(session, None)?;
    let function = session.find_function_of(device_of(session, c.stream.into()), function)?;
    let config = config.cooperative(is_cooperative(c.attrs, c.numAttrs));
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
    let function = session.program().function(function)?;
    let c = config.check()?;
    let grid = [c.gridDimX, c.gridDimY, c.gridDimZ];
    let block = [c.blockDimX, c.blockDimY, c.blockDimZ];
    let config = LaunchParams::module(grid, block, c.sharedMemBytes as usize, c.hStream.into());
    if let Err(error) = config.check_size(session, None) {
        // HIP API: a wrong size is a wrong configuration, except that of shared memory.
        let most = session.worker().properties(thread::device())?.shared_mem_per_block;
        let is_empty = grid.contains(&0) || block.contains(&0);
        let is_shared_mem = !is_empty && most > 0 && u64::from(c.sharedMemBytes) > most;
        return Err(if is_shared_mem { error } else { HipError::INVALID_CONFIGURATION });
    }
    let config = config.cooperative(is_cooperative(c.attrs, c.numAttrs));
    launch(session, function, config, PassedArguments::of(params, extra)?)
}

/// `hipModuleLaunchKernel`.
pub(crate) fn module_kernel(
    session: &Session,
    function: Function,
    launch: LaunchParams,
    params: In<Ptr>,
    extra: In<Ptr>,
) -> HipResult<()> {
    // HIP API: only this function has limits for the blocks of a grid; all others count its threads, which have 32 bits.
    if launch.grid.iter().zip(MODULE_GRID_MAX).any(|(blocks, most)| *blocks > most) {
        return Err(HipError::INVALID_VALUE);
    }
    let known = session.program().function(function)?;
    self::launch(session, known, launch, PassedArguments::of(params, extra)?)
}

/// `hipExtModuleLaunchKernel`, `hipHccModuleLaunchKernel` and `hipModuleLaunchCooperativeKernel`.
pub(crate) fn function(
    session: &Session,
    function: Function,
    launch: LaunchParams,
    params: In<Ptr>,
    extra: In<Ptr>,
) -> HipResult<()> {
    let function = session.program().function(function)?;
    self::launch(session, function, launch, PassedArguments::of(params, extra)?)
}

/// Checks the list of a launch on several devices, whose streams are of a device each.
///
/// # Errors
/// `hipErrorInvalidValue`; `hipErrorInvalidHandle` for the null stream, which is no device's own.
fn check_launches(
    session: &Session,
    count: usize,
    streams: impl Iterator<Item = Stream>,
    flags: u32,
) -> HipResult<()> {
    const FLAGS: u32 = hipCooperativeLaunchMultiDeviceNoPreSync | hipCooperativeLaunchMultiDeviceNoPostSync;
    let devices = usize::try_from(session.worker().device_count()?).unwrap_or(0);
    if count == 0 || count > devices || flags & !FLAGS != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    let mut seen = BTreeSet::new();
    for stream in streams {
        if stream.is_null() {
            return Err(HipError::INVALID_HANDLE);
        }
        session.valid_handle(stream)?;
        if !seen.insert(device_of(session, stream)) {
            return Err(HipError::INVALID_DEVICE);
        }
    }
    Ok(())
}

/// `hipLaunchCooperativeKernelMultiDevice`, `hipExtLaunchMultiKernelMultiDevice`.
pub(crate) fn on_devices(
    session: &Session,
    list: Out<hipLaunchParams>,
    count: i32,
    flags: u32,
    is_cooperative: bool,
) -> HipResult<()> {
    let list = list.check()?;
    let count = usize::try_from(count).map_err(|_| HipError::INVALID_VALUE)?;
    let streams = (0..count).filter_map(|index| list.value_at(index)).map(|launch| launch.stream.into());
    check_launches(session, count, streams, flags)?;
    for launch in (0..count).filter_map(|index| list.value_at(index)) {
        let stream = Stream::from(launch.stream);
        let params = LaunchParams::runtime(launch.gridDim, launch.blockDim, launch.sharedMem, stream);
        thread::with_device(device_of(session, stream), || {
            let function = Ptr::from(launch.func).check().map_err(|_| HipError::INVALID_SYMBOL)?;
            kernel(session, function, params.cooperative(is_cooperative), In::at_address(launch.args.into()))
        })?;
    }
    Ok(())
}

/// `hipModuleLaunchCooperativeKernelMultiDevice`.
pub(crate) fn functions_on_devices(session: &Session, list: Ptr, count: u32, flags: u32) -> HipResult<()> {
    let list = Out::<hipFunctionLaunchParams>::at_address(list).check()?;
    let count = count as usize;
    let streams = (0..count).filter_map(|index| list.value_at(index)).map(|launch| launch.hStream.into());
    check_launches(session, count, streams, flags)?;
    for launch in (0..count).filter_map(|index| list.value_at(index)) {
        let stream = Stream::from(launch.hStream);
        let grid = [launch.gridDimX, launch.gridDimY, launch.gridDimZ];
        let block = [launch.blockDimX, launch.blockDimY, launch.blockDimZ];
        let params =
            LaunchParams::module(grid, block, launch.sharedMemBytes as usize, stream).cooperative(true);
        thread::with_device(device_of(session, stream), || {
            let (called, arguments) =
                (Function(Ptr::from(launch.function).0), In::at_address(launch.kernelParams.into()));
            function(session, called, params, arguments, In::at_address(Ptr::NULL))
        })?;
    }
    Ok(())
}

/// `hipConfigureCall`.
pub(crate) fn configure(grid: dim3, block: dim3, shared_mem: usize, stream: Stream) -> HipResult<()> {
    thread::push_configuration(Configuration { grid, block, shared_mem, stream, arguments: Vec::new() });
    Ok(())
}

/// `hipSetupArgument`: sets the bytes of an argument, where the kernel's layout has it.
pub(crate) fn set_argument(argument: Ptr, size: usize, offset: usize) -> HipResult<()> {
    let end = offset.checked_add(size).filter(|end| *end <= ARGUMENT_BYTES_MAX);
    let end = end.ok_or(HipError::INVALID_VALUE)?;
    if size > 0 {
        argument.check()?;
    }
    let is_configured = thread::change_configuration(|configuration| {
        let arguments = &mut configuration.arguments;
        arguments.resize(arguments.len().max(end), 0);
        if let Some(place) = arguments.get_mut(offset..end) {
            // SAFETY: HIP API: the argument has the size that is passed with it.
            place.copy_from_slice(unsafe { argument.host_bytes(size) });
        }
    });
    if is_configured { Ok(()) } else { Err(HipError::MISSING_CONFIGURATION) }
}

/// `hipLaunchByPtr`: launches with the thread's last configuration that was not launched yet, and its arguments.
pub(crate) fn by_ptr(session: &Session, function: Ptr) -> HipResult<()> {
    let Configuration { grid, block, shared_mem, stream, arguments } =
        thread::pop_configuration().ok_or(HipError::MISSING_CONFIGURATION)?;
    let (grid, block) = ([grid.x, grid.y, grid.z], [block.x, block.y, block.z]);
    let passed = PassedArguments::Buffer(Ptr::from(arguments.as_ptr()), arguments.len());
    launch(
        session,
        session.find_function_of(device_of(session, stream), function)?,
        LaunchParams::module(grid, block, shared_mem, stream),
        passed,
    )
}
