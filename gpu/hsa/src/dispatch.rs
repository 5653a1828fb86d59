//! Kernel dispatches: from a packet to a grid on the executors' threads, and what becomes of its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hipr_code_object::rules::KernelNeeds;
use hipr_grid::model::{LDS_BYTES, Model, SCRATCH_MAX_BYTES, THREADS_PER_GROUP};
use hipr_grid::{Addresses, Dispatch, Failure, GridJob, GridSize, Host, Job, Owner, Residents, user_sgprs};
use hipr_isa::fault::Cause;
use hipr_isa::gws::WaveSync;
use hipr_isa::map::Map;
use hipr_isa::mem::Newer;
use hipr_isa::step::Interrupts;

use crate::event::EventHandlers;
use crate::executable::kernel_at;
use crate::facts::AgentIndex;
use crate::handlers::Handlers;
use crate::loaded::LoadedKernel;
use crate::packet::DispatchPacket;
use crate::runtime::Runtime;
use crate::status::{HsaResult, Status};
use crate::types::{ProfilingTime, Signal};
use crate::{clock, signal_op};

/// How a dispatch has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Complete,
    /// By an error of its queue.
    Failed(Status),
}

/// The queue that a dispatch comes from.
pub(crate) trait Origin: Send + Sync {
    fn agent(&self) -> AgentIndex;

    /// Returns the address of the queue's structure, for kernels.
    fn addr(&self) -> u64;

    /// Returns whose work it is.
    fn owner(&self) -> Owner;

    /// Returns the barriers between workgroups of cooperative launches, if the queue has them.
    fn wave_sync(&self) -> Option<Arc<WaveSync>>;

    /// Is told that a dispatch of the queue has ended.
    fn ended(&self, ended: Ended);
}

/// A dispatch that is being executed: what its grid asks of the runtime.
struct Running {
    runtime: Arc<Runtime>,
    queue: Arc<dyn Origin>,
    kernel: Arc<LoadedKernel>,
    completion: Signal,
    /// When its first workgroup began, in nanoseconds of the system's clock; 0 before.
    begun_ns: AtomicU64,
}

/// Begins the dispatch of packet number `index`, which lies at `packet_addr`. Its end is told to the queue and to the completion signal.
///
/// # Errors
/// What the queue ends with: `INVALID_CODE_OBJECT` if the packet names no kernel that is loaded for the queue's agent; `INVALID_ALLOCATION`
/// for more LDS or scratch than a workgroup can have.
pub(crate) fn start(
    runtime: Arc<Runtime>,
    queue: Arc<dyn Origin>,
    packet: &DispatchPacket,
    packet_addr: u64,
    index: u64,
    completion: Signal,
) -> HsaResult {
    let kernel = kernel_at(&runtime, queue.agent(), packet.kernel_object).ok_or_else(|| {
        let kernel_object = format_args!("{:#x}", packet.kernel_object);
        tracing::error!(kernel_object, "a dispatch names a kernel that is not loaded");
        Status::ERROR_INVALID_CODE_OBJECT
    })?;
    let descriptor = &kernel.descriptor;
    let lds_bytes = packet.group_bytes.max(descriptor.group_segment_bytes);
    let scratch_bytes = packet.private_bytes.max(descriptor.private_segment_bytes);
    if lds_bytes > LDS_BYTES || u64::from(scratch_bytes) > SCRATCH_MAX_BYTES {
        tracing::error!(
            kernel = &*kernel.name,
            lds_bytes,
            scratch_bytes,
            "a dispatch wants more LDS or scratch than a workgroup can have"
        );
        return Err(Status::ERROR_INVALID_ALLOCATION);
    }
    let size = GridSize::new(packet.grid, packet.workgroup.map(u32::from))
        .ok_or(Status::ERROR_INVALID_PACKET_FORMAT)?;
    let needs = KernelNeeds {
        named_vgprs: kernel.vgprs,
        vgprs: kernel.vgprs,
        lds_bytes,
        private_bytes: scratch_bytes,
        max_block_size: THREADS_PER_GROUP,
    };
    let threads = size.group().iter().product();
    let compute_units = runtime.agents[queue.agent()].arch.map_or(1, |arch| Model::of(arch).compute_units);
    let addresses = Addresses {
        dispatch_packet: packet_addr,
        queue: queue.addr(),
        kernarg: packet.kernarg,
        dispatch_id: index,
    };
    let dispatch = Dispatch {
        name: Arc::clone(&kernel.name),
        program: Arc::clone(&kernel.program),
        entry: kernel.entry,
        descriptor: *descriptor,
        vgprs: kernel.vgprs,
        size,
        lds_bytes,
        scratch_bytes,
        resident_groups: needs.groups(threads, 0, compute_units).max(1),
        memory: Arc::clone(&kernel.block),
        user_sgprs: user_sgprs(descriptor, scratch_bytes, &addresses),
        wave_sync: queue.wave_sync(),
    };
    let run_queue = Arc::clone(&runtime.run_queue);
    let running = Running { runtime, queue, kernel, completion, begun_ns: AtomicU64::new(0) };
    let grid = GridJob::new(running, dispatch);
    let entries = grid.entries();
    run_queue.push(&(grid as Arc<dyn Job>), entries);
    Ok(())
}

/// The page table of an agent as it is now: AMD's runtime allocates for kernels while they run.
struct Current {
    runtime: Arc<Runtime>,
    agent: AgentIndex,
}

impl Newer for Current {
    fn newer(&self) -> Arc<Map> {
        self.runtime.memory.snapshot(self.agent)
    }
}

impl Interrupts for Running {
    fn interrupt(&self, _m0: u32) {
        signal_op::any_changed();
    }
}

impl Host for Running {
    fn owner(&self) -> Owner {
        self.queue.owner()
    }

    fn others_wait(&self) -> bool {
        self.runtime.run_queue.others_wait(self.queue.owner().session)
    }

    fn is_closed(&self) -> bool {
        self.runtime.is_closed()
    }

    fn threads(&self) -> usize {
        self.runtime.executors.count()
    }

    fn instructions_max(&self) -> u64 {
        u64::MAX
    }

    fn timeout(&self) -> Option<Duration> {
        None
    }

    fn residents(&self) -> &Arc<Residents> {
        &self.runtime.residents[self.queue.agent()]
    }

    fn snapshot(&self) -> Arc<Map> {
        // A turn begins: the first of them is the beginning of the dispatch.
        if self.begun_ns.load(Ordering::Relaxed) == 0 {
            let _ = self.begun_ns.compare_exchange(0, clock::now(), Ordering::Relaxed, Ordering::Relaxed);
        }
        self.runtime.memory.snapshot(self.queue.agent())
    }

    fn newer(&self) -> Option<Arc<dyn Newer>> {
        let (runtime, agent) = (Arc::clone(&self.runtime), self.queue.agent());
        Some(Arc::new(Current { runtime, agent }))
    }

    fn clock_start(&self) -> Instant {
        self.runtime.epoch
    }

    fn interrupts(&self) -> Option<&dyn Interrupts> {
        Some(self)
    }

    fn note_time(&self, _taken_ns: u64) {}

    fn finished(&self, _dispatch: &Dispatch, result: Result<(), Failure>) {
        match result {
            Ok(()) => {
                let times = ProfilingTime { start: self.begun_ns.load(Ordering::Relaxed), end: clock::now() };
                signal_op::complete(self.completion, times);
                self.queue.ended(Ended::Complete);
            }
            // Nobody waits for it any more.
            Err(Failure::Closed) => self.queue.ended(Ended::Complete),
            Err(failure) => self.queue.ended(Ended::Failed(self.report(failure))),
        }
    }
}

impl Running {
    /// Tells what a dispatch has ended by, and returns what its queue ends with.
    fn report(&self, failure: Failure) -> Status {
        let (agent, kernel) = (self.queue.agent(), &self.kernel.name);
        let fault = match failure {
            Failure::Fault(fault) => fault,
            failure => {
                tracing::error!(%failure, kernel = &**kernel, agent, "a kernel could not be executed");
                return match failure {
                    Failure::NoMemory { .. } => Status::ERROR_OUT_OF_RESOURCES,
                    _ => Status::ERROR,
                };
            }
        };
        let status = match fault.cause {
            Cause::IllegalAddress { .. } | Cause::MisalignedAtomic { .. } => Status::ERROR_MEMORY_FAULT,
            Cause::Unknown { .. } | Cause::BadPc | Cause::NoGlobalWaveSync(_) => {
                Status::ERROR_ILLEGAL_INSTRUCTION
            }
            Cause::Trap(_) | Cause::InstructionLimit(_) | Cause::TimeOut(_) => Status::ERROR_EXCEPTION,
        };
        // The log has the reason before anyone is told, who may end the process.
        let fault = fault.in_kernel(Arc::clone(kernel));
        tracing::error!(%fault, agent, "kernel failed");
        if let Cause::IllegalAddress { access, .. } = &fault.cause {
            let (runtime, addr) = (Arc::clone(&self.runtime), access.addr);
            self.runtime
                .part::<Handlers>()
                .push(Box::new(move || runtime.part::<EventHandlers>().tell_memory_fault(agent, addr)));
        }
        status
    }
}
