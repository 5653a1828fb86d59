//! What there is from the first `hsa_init` to the last `hsa_shut_down`: agents, threads, memory, and what other modules keep.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use hipr_grid::{DeviceMemory, Executors, Residents, RunQueue};
use hipr_isa::simd::Level;

use crate::config::Config;
use crate::facts::{AgentFacts, SCRATCH_MAX_BYTES};
use crate::memory::Memory;
use crate::status::{HsaResult, Status};

/// What there is while the library is initialized.
pub(crate) struct Runtime {
    /// The host, then the GPUs.
    pub(crate) agents: Vec<AgentFacts>,
    /// The jobs that wait for a thread.
    pub(crate) run_queue: Arc<RunQueue>,
    /// The threads that execute kernels and copies. They end before the memory goes.
    pub(crate) executors: Executors,
    /// What each agent's workgroups have of registers, LDS and scratch.
    pub(crate) residents: Vec<Arc<Residents>>,
    pub(crate) memory: Memory,
    /// The SIMD level that kernels are executed on.
    pub(crate) level: Level,
    /// Time zero of the kernels' clocks.
    pub(crate) epoch: Instant,
    /// Whether the last `hsa_shut_down` was called: kernels end as soon as possible.
    is_closed: AtomicBool,
    /// What other modules keep. It goes after the executors, whose kernels may have memory of it.
    parts: [OnceLock<Part>; PARTS_MAX],
}

/// What a module keeps.
type Part = Box<dyn Any + Send + Sync>;

/// There are at most so many modules that keep something.
const PARTS_MAX: usize = 16;

static RUNTIME: RwLock<Option<Arc<Runtime>>> = RwLock::new(None);

/// Returns the runtime.
///
/// # Errors
/// `NOT_INITIALIZED` before `hsa_init` and after the last `hsa_shut_down`.
pub(crate) fn runtime() -> HsaResult<Arc<Runtime>> {
    let runtime = RUNTIME.read().unwrap_or_else(PoisonError::into_inner);
    runtime.as_ref().map(Arc::clone).ok_or(Status::ERROR_NOT_INITIALIZED)
}

/// Makes the runtime that [`runtime`] returns.
///
/// # Errors
/// `OUT_OF_RESOURCES` if the environment asks for what cannot be, or if there are no threads or no memory.
pub(crate) fn start() -> HsaResult {
    let runtime = Arc::new(Runtime::new()?);
    *RUNTIME.write().unwrap_or_else(PoisonError::into_inner) = Some(runtime);
    Ok(())
}

/// Ends the runtime for the program, and returns what was there.
pub(crate) fn end() -> Option<Arc<Runtime>> {
    let runtime = RUNTIME.write().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(runtime) = &runtime {
        runtime.is_closed.store(true, Ordering::Relaxed);
    }
    runtime
}

/// The memory that scratch is taken from: a part of the GPU's that is not in its pools.
struct Scratch;

impl DeviceMemory for Scratch {
    fn total_bytes(&self) -> u64 {
        SCRATCH_MAX_BYTES
    }

    fn available_bytes(&self) -> u64 {
        SCRATCH_MAX_BYTES
    }
}

impl Runtime {
    fn new() -> HsaResult<Self> {
        let refused = |why: String| {
            tracing::error!("{why}");
            Status::ERROR_OUT_OF_RESOURCES
        };
        let config = Config::from_env().map_err(refused)?;
        let level = Level::chosen().map_err(|error| refused(error.to_string()))?;
        let agents = AgentFacts::all(&config);
        let memory = Memory::new(agents.iter().map(|agent| agent.memory_bytes).collect())?;
        let threads =
            config.threads.or_else(|| std::thread::available_parallelism().ok()).map_or(1, Into::into);
        let run_queue = Arc::<RunQueue>::default();
        let executors =
            Executors::start(&run_queue, threads, None).map_err(|error| refused(error.to_string()))?;
        let residents = agents.iter().map(|_| Residents::new(&run_queue, Arc::new(Scratch))).collect();
        Ok(Self {
            agents,
            memory,
            run_queue,
            executors,
            residents,
            level,
            epoch: Instant::now(),
            is_closed: AtomicBool::new(false),
            parts: Default::default(),
        })
    }

    /// Returns what a module keeps while there is the runtime: the default, made when it is first asked for.
    ///
    /// # Panics
    /// If more than `PARTS_MAX` modules keep something.
    pub(crate) fn part<T: Default + Send + Sync + 'static>(&self) -> &T {
        self.parts
            .iter()
            .map(|slot| slot.get_or_init(|| Box::new(T::default())))
            .find_map(|part| part.downcast_ref())
            .expect("as many places as there are modules that keep something")
    }

    /// Returns whether the library has ended for the program.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }
}
