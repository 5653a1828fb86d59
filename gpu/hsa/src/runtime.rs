//! The state of the library: from the first `hsa_init` to the last `hsa_shut_down`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use hipr_grid::{DeviceMemory, Executors, Residents, RunQueue, lock};
use hipr_isa::simd::Level;
use hipr_log::Style;

use crate::agent::{AgentFacts, SCRATCH_MAX_BYTES};
use crate::config::Config;
use crate::executable::Executables;
use crate::handlers::Handlers;
use crate::ipc::Exports;
use crate::lock::Locks;
use crate::memory::Memory;
use crate::reader::Readers;
use crate::status::{HsaResult, Status};
use crate::svm::Svm;
use crate::system::EventHandlers;
use crate::vmem::Vmem;
use crate::{queue, signal, watch};

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
    pub(crate) handlers: Handlers,
    pub(crate) events: EventHandlers,
    /// Whether the last `hsa_shut_down` was called: kernels end as soon as possible.
    is_closed: AtomicBool,
    pub(crate) readers: Readers,
    pub(crate) executables: Executables,
    pub(crate) locks: Locks,
    pub(crate) svm: Svm,
    /// After the executors, whose kernels have its memory.
    pub(crate) vmem: Vmem,
    pub(crate) exports: Exports,
}

/// How often `hsa_init` has been called without `hsa_shut_down`.
static INIT_COUNT: Mutex<u32> = Mutex::new(0);
static RUNTIME: RwLock<Option<Arc<Runtime>>> = RwLock::new(None);

/// Most calls of `hsa_init` without `hsa_shut_down`.
const INIT_COUNT_MAX: u32 = i32::MAX as u32;

/// Returns the runtime.
///
/// # Errors
/// `NOT_INITIALIZED` before `hsa_init` and after the last `hsa_shut_down`.
pub(crate) fn runtime() -> HsaResult<Arc<Runtime>> {
    let runtime = RUNTIME.read().unwrap_or_else(PoisonError::into_inner);
    runtime.as_ref().map(Arc::clone).ok_or(Status::ERROR_NOT_INITIALIZED)
}

/// `hsa_init`.
pub(crate) fn init() -> HsaResult {
    let mut count = lock(&INIT_COUNT);
    if *count >= INIT_COUNT_MAX {
        return Err(Status::ERROR_REFCOUNT_OVERFLOW);
    }
    if *count == 0 {
        hipr_log::start(Style::Named, "warn");
        let runtime = Arc::new(Runtime::new()?);
        *RUNTIME.write().unwrap_or_else(PoisonError::into_inner) = Some(runtime);
    }
    *count += 1;
    Ok(())
}

/// `hsa_shut_down`.
pub(crate) fn shut_down() -> HsaResult {
    let mut count = lock(&INIT_COUNT);
    *count = count.checked_sub(1).ok_or(Status::ERROR_NOT_INITIALIZED)?;
    if *count == 0 {
        let runtime = RUNTIME.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            runtime.is_closed.store(true, Ordering::Relaxed);
            runtime.handlers.stop();
            queue::forget_all();
            watch::forget_all();
            signal::forget_all();
        }
    }
    Ok(())
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
        let handlers = Handlers::default();
        Ok(Self {
            agents,
            memory,
            run_queue,
            executors,
            residents,
            level,
            epoch: Instant::now(),
            handlers,
            events: EventHandlers::default(),
            is_closed: AtomicBool::new(false),
            readers: Readers::default(),
            executables: Executables::default(),
            locks: Locks::default(),
            svm: Svm::default(),
            vmem: Vmem::default(),
            exports: Exports::default(),
        })
    }

    /// Returns whether the library has ended for the program.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }
}
