//! Launches.
//!
//! What a launch can be refused for is judged here, so that the error comes at once; what happens on the device comes
//! with a later answer. Arguments are laid out as the kernel's metadata says, since C passes no sizes.

mod arguments;

use std::sync::{Arc, OnceLock};

use hipr_proto::op::{self, LaunchKernel};
use hipr_proto::{HipError, HipResult};

pub(crate) use arguments::Encoded;
use arguments::{Arguments, Given};

use super::event::note_recorded;
use super::module::by_handle;
use crate::callbacks::{Role, Work};
use crate::client::Extra;
use crate::convert::{Event, Function, In, Ptr, Stream};
use crate::graphs::Task;
use crate::module::LoadedFunction;
use crate::register;
use crate::session::Session;
use crate::state;
use smallvec::SmallVec;

use crate::types::{Dim3, DrvLaunchConfig, KernelNodeParams, LaunchConfig};

/// `hipLaunchAttributeCooperative`.
const ATTRIBUTE_COOPERATIVE: i32 = 2;

/// Everything of a launch but kernel and arguments.
#[derive(Clone, Copy, Debug)]
struct How {
    /// Blocks.
    grid: [u32; 3],
    /// Threads of a block.
    block: [u32; 3],
    /// Dynamic LDS in bytes.
    shared_mem: usize,
    stream: Stream,
    start: Event,
    stop: Event,
    ext_flags: u32,
    is_cooperative: bool,
    /// What HIP returns for a grid or block without threads: the runtime's functions have another error than the
    /// module's.
    empty: HipError,
}

impl How {
    fn runtime(grid: Dim3, block: Dim3, shared_mem: usize, stream: Stream) -> Self {
        Self {
            grid: [grid.x, grid.y, grid.z],
            block: [block.x, block.y, block.z],
            shared_mem,
            stream,
            start: Event::NULL,
            stop: Event::NULL,
            ext_flags: 0,
            is_cooperative: false,
            empty: HipError::INVALID_CONFIGURATION,
        }
    }

    fn module(grid: [u32; 3], block: [u32; 3], shared_mem: usize, stream: Stream) -> Self {
        let any = Self::runtime(Dim3::default(), Dim3::default(), shared_mem, stream);
        Self { grid, block, empty: HipError::INVALID_VALUE, ..any }
    }

    fn check(&self, session: &Session, function: &LoadedFunction) -> HipResult<()> {
        if self.grid.contains(&0) || self.block.contains(&0) {
            return Err(self.empty);
        }
        // HIP API: the number of threads in each dimension has 32 bits.
        let fits = |(grid, block): (&u32, &u32)| grid.checked_mul(*block).is_some();
        if !self.grid.iter().zip(&self.block).all(fits) {
            return Err(self.empty);
        }
        // A device that does not tell its limits, with 0, judges for itself.
        let properties = session.properties(state::device())?;
        let threads = self.block.iter().map(|n| u64::from(*n)).product::<u64>();
        let most = u64::try_from(properties.max_threads_per_block).unwrap_or(0);
        if most > 0 && threads > most {
            return Err(HipError::INVALID_CONFIGURATION);
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
}

/// A launch with its arguments.
#[derive(Clone, Debug)]
pub(crate) struct KernelTask {
    function: Arc<LoadedFunction>,
    how: How,
    arguments: Encoded,
    /// Made when the program asks for it.
    given: OnceLock<Arc<Given>>,
}

impl KernelTask {
    fn new(function: Arc<LoadedFunction>, how: How, arguments: Encoded) -> Self {
        Self { function, how, arguments, given: OnceLock::new() }
    }

    /// The parameters of a node that does this. The kernel is what the program launches, if the compiler registered it, else its
    /// `hipFunction_t`; arguments are this task's as long as there is a node that does it.
    pub(crate) fn node_params(&self, session: &Session) -> KernelNodeParams {
        let given = self.given.get_or_init(|| Arc::new(self.arguments.given(&self.function.params)));
        let dim = |[x, y, z]: [u32; 3]| Dim3 { x, y, z };
        KernelNodeParams {
            block_dim: dim(self.how.block),
            extra: given.extra(),
            func: register::launched_as(session, &self.function),
            grid_dim: dim(self.how.grid),
            kernel_params: given.kernel_params(),
            shared_mem_bytes: u32::try_from(self.how.shared_mem).unwrap_or(u32::MAX),
        }
    }

    /// The launch of a graph's node: `func` is what `hipLaunchKernel` takes, or a `hipFunction_t`.
    ///
    /// # Errors
    /// Those of a launch.
    pub(crate) fn of_node(session: &Session, node: &KernelNodeParams) -> HipResult<Self> {
        let function = by_handle(session, Function(node.func.0));
        let function = function.or_else(|_| register::find_function(session, node.func.check()?))?;
        let how = How::runtime(node.grid_dim, node.block_dim, node.shared_mem_bytes as usize, Stream::NULL);
        let arguments = Arguments::of(In::at_address(node.kernel_params), In::at_address(node.extra))?;
        how.check(session, &function)?;
        let arguments = arguments.encode(&function)?;
        Ok(Self::new(function, how, arguments))
    }

    /// Launches it on a stream.
    ///
    /// # Errors
    /// What the worker says.
    pub(crate) fn enqueue(&self, session: &Session, stream: u64) -> HipResult<()> {
        self.send(session, stream, &self.arguments(session, stream)?)
    }

    /// Holds the launch back behind functions of the program, if there are any. `false`: there are none.
    ///
    /// # Errors
    /// `hipErrorInvalidHandle`: it has an event that there is not.
    pub(crate) fn hold(self, session: &Session, stream: u64) -> HipResult<bool> {
        let events = [self.how.start, self.how.stop];
        let events: SmallVec<[Event; 2]> = events.into_iter().filter(|event| !event.is_null()).collect();
        events.iter().try_for_each(|event| note_recorded(session, *event, Stream::from_wire(stream)))?;
        let work = || -> Work { Box::new(move |session| self.enqueue(session, stream)) };
        session.callbacks().hold(session, stream, Role::Records(&events), work)
    }

    /// Whether events take its times.
    pub(crate) fn is_timed(&self) -> bool {
        !self.how.start.is_null() || !self.how.stop.is_null()
    }

    /// Its arguments for a launch on this stream now; what the program wrote to memory that kernels share goes to the worker.
    ///
    /// # Errors
    /// What the worker says.
    pub(crate) fn arguments(&self, session: &Session, stream: u64) -> HipResult<Encoded> {
        let mut arguments = self.arguments.clone();
        session.mirrors().before_launch(session, stream, arguments.data())?;
        Ok(arguments)
    }

    /// Launches it on a stream with these arguments.
    ///
    /// # Errors
    /// What the worker says.
    pub(crate) fn send(&self, session: &Session, stream: u64, arguments: &Encoded) -> HipResult<()> {
        self.how.send(session, &self.function, arguments, stream)
    }
}

impl How {
    /// Launches a kernel.
    fn enqueue(
        &self,
        session: &Session,
        function: &LoadedFunction,
        mut arguments: Encoded,
        stream: u64,
    ) -> HipResult<()> {
        session.mirrors().before_launch(session, stream, arguments.data())?;
        self.send(session, function, &arguments, stream)
    }

    fn send(
        &self,
        session: &Session,
        function: &LoadedFunction,
        arguments: &Encoded,
        stream: u64,
    ) -> HipResult<()> {
        let how = self;
        let [grid_dim_x, grid_dim_y, grid_dim_z] = how.grid;
        let [block_dim_x, block_dim_y, block_dim_z] = how.block;
        let request = LaunchKernel {
            function: function.handle,
            grid_dim_x,
            grid_dim_y,
            grid_dim_z,
            block_dim_x,
            block_dim_y,
            block_dim_z,
            shared_mem: u32::try_from(how.shared_mem).map_err(|_| HipError::INVALID_VALUE)?,
            stream,
            num_args: arguments.num_args,
            launch_flags: arguments.launch_flags,
            start_event: how.start.wire(),
            stop_event: how.stop.wire(),
            ext_flags: how.ext_flags,
        };
        for event in [how.start, how.stop] {
            if !event.is_null() {
                note_recorded(session, event, Stream::from_wire(stream))?;
            }
        }
        tracing::trace!("launch {} {:?} x {:?}", function.name, how.grid, how.block);
        let extra = Extra { tail: &arguments.tail, ..session.extra() };
        let connection = session.connection();
        if how.is_cooperative {
            connection.call(&op::LaunchCooperativeKernel(request), extra)?;
        } else if request.is_timed() || how.ext_flags != 0 {
            connection.call(&op::ModuleLaunchKernel(request), extra)?;
        } else {
            connection.call(&request, extra)?;
        }
        session.mirrors().sent(stream);
        Ok(())
    }
}

fn launch(
    session: &Session,
    function: &Arc<LoadedFunction>,
    how: How,
    arguments: Arguments,
) -> HipResult<()> {
    let stream = session.stream(how.stream)?;
    how.check(session, function)?;
    let arguments = arguments.encode(function)?;
    let task = || KernelTask::new(function.clone(), how, arguments.clone());
    if session.graphs().record(stream, || Task::Kernel(Arc::new(task())))? {
        return Ok(());
    }
    if session.callbacks().is_waiting(session, stream) && task().hold(session, stream)? {
        return Ok(());
    }
    how.enqueue(session, function, arguments, stream)
}

/// `hipLaunchKernel`: also what `<<<>>>` becomes.
pub(crate) fn kernel(
    session: &Session,
    function: Ptr,
    grid: Dim3,
    block: Dim3,
    args: In<Ptr>,
    shared_mem: usize,
    stream: Stream,
) -> HipResult<()> {
    let function = register::find_function(session, function)?;
    launch(session, &function, How::runtime(grid, block, shared_mem, stream), Arguments::Each(args))
}

/// `hipExtLaunchKernel`.
#[allow(clippy::too_many_arguments, reason = "the C function's parameters")]
pub(crate) fn ext_kernel(
    session: &Session,
    function: Ptr,
    grid: Dim3,
    block: Dim3,
    args: In<Ptr>,
    shared_mem: usize,
    stream: Stream,
    start: Event,
    stop: Event,
    flags: i32,
) -> HipResult<()> {
    let function = register::find_function(session, function)?;
    let how = How {
        start,
        stop,
        ext_flags: flags.cast_unsigned(),
        ..How::runtime(grid, block, shared_mem, stream)
    };
    launch(session, &function, how, Arguments::Each(args))
}

/// `hipLaunchCooperativeKernel`.
pub(crate) fn cooperative_kernel(
    session: &Session,
    function: Ptr,
    grid: Dim3,
    block: Dim3,
    args: In<Ptr>,
    shared_mem: u32,
    stream: Stream,
) -> HipResult<()> {
    let function = register::find_function(session, function)?;
    let how = How { is_cooperative: true, ..How::runtime(grid, block, shared_mem as usize, stream) };
    launch(session, &function, how, Arguments::Each(args))
}

/// Whether launch attributes ask for a cooperative launch; the others are wishes.
fn is_cooperative(attributes: Ptr, count: u32) -> bool {
    /// `hipLaunchAttribute`, as far as it is read.
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Attribute {
        id: i32,
        pad: i32,
        value: i32,
        rest: [u8; 60],
    }
    const _: () = assert!(size_of::<Attribute>() == 72);
    let attributes = In::<Attribute>::at_address(attributes);
    (0..count as usize)
        .filter_map(|index| attributes.at(index))
        .any(|attribute| attribute.id == ATTRIBUTE_COOPERATIVE && attribute.value != 0)
}

/// `hipLaunchKernelExC` (HIP 7).
pub(crate) fn kernel_ex(
    session: &Session,
    config: In<LaunchConfig>,
    function: Ptr,
    args: In<Ptr>,
) -> HipResult<()> {
    let c = config.check()?;
    let function = register::find_function(session, function)?;
    let how = How::runtime(c.grid_dim, c.block_dim, c.dynamic_smem_bytes, c.stream);
    let how = How { is_cooperative: is_cooperative(c.attrs, c.num_attrs), ..how };
    launch(session, &function, how, Arguments::Each(args))
}

/// `hipDrvLaunchKernelEx` (HIP 7).
pub(crate) fn drv_kernel_ex(
    session: &Session,
    config: In<DrvLaunchConfig>,
    function: Function,
    params: In<Ptr>,
    extra: In<Ptr>,
) -> HipResult<()> {
    let c = config.check()?;
    let function = by_handle(session, function)?;
    let grid = [c.grid_dim_x, c.grid_dim_y, c.grid_dim_z];
    let block = [c.block_dim_x, c.block_dim_y, c.block_dim_z];
    let how = How::module(grid, block, c.shared_mem_bytes as usize, c.h_stream);
    let how = How { is_cooperative: is_cooperative(c.attrs, c.num_attrs), ..how };
    launch(session, &function, how, Arguments::of(params, extra)?)
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
    let function = by_handle(session, function)?;
    let how = How::module([grid_x, grid_y, grid_z], [block_x, block_y, block_z], shared_mem as usize, stream);
    launch(session, &function, how, Arguments::of(params, extra)?)
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
    let function = by_handle(session, function)?;
    let how = How::module([grid_x, grid_y, grid_z], [block_x, block_y, block_z], shared_mem as usize, stream);
    launch(session, &function, How { is_cooperative: true, ..how }, Arguments::Each(params))
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
    let function = by_handle(session, function)?;
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
    let how = How { start, stop, ext_flags: flags, ..How::module(grid, block, shared_mem, stream) };
    launch(session, &function, how, Arguments::of(params, extra)?)
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
