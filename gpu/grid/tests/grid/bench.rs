//! Executes kernels of literal instruction words on a few threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hipr_code_object::KernelDescriptor;
use hipr_grid::{
    Addresses, DeviceMemory, Dispatch, Executors, Failure, GridJob, GridSize, Host, Job, Owner, Residents,
    RunQueue, user_sgprs,
};
use hipr_isa::Arch;
use hipr_isa::map::{FIRST_ADDRESS, Map};
use hipr_isa::mem::Block;
use hipr_isa::simd::Level;
use hipr_isa::step::{Interrupts, Program};

/// Address of a test's code.
pub(crate) const CODE: u64 = 0x7000_0000_0000;
/// Address of a test's memory, which s[0:1] have.
pub(crate) const MEMORY: u64 = FIRST_ADDRESS;
const THREADS: usize = 3;

/// Kernarg segment pointer.
const PROPERTIES: u16 = 1 << 3;
/// Two user SGPRs, then the workgroup's ids.
const RSRC2: u32 = 2 << 1 | 7 << 7;

/// No memory but the least that a context may always have.
struct NoMemory;

impl DeviceMemory for NoMemory {
    fn total_bytes(&self) -> u64 {
        0
    }

    fn available_bytes(&self) -> u64 {
        0
    }
}

/// Threads, and the grids that they execute.
pub(crate) struct Bench {
    queue: Arc<RunQueue>,
    residents: Arc<Residents>,
    pub(crate) executors: Executors,
    pub(crate) arch: Arch,
}

/// How a grid is to be executed.
#[derive(Clone)]
pub(crate) struct Wishes {
    pub(crate) instructions_max: u64,
    pub(crate) timeout: Option<Duration>,
    pub(crate) closed: Arc<AtomicBool>,
    /// Whether its host panics when it is asked for memory.
    pub(crate) panics: bool,
    pub(crate) interrupts: Option<Arc<Told>>,
}

impl Default for Wishes {
    fn default() -> Self {
        let closed = Arc::default();
        Self { instructions_max: u64::MAX, timeout: None, closed, panics: false, interrupts: None }
    }
}

/// What interrupts said.
#[derive(Default)]
pub(crate) struct Told(pub(crate) Mutex<Vec<u32>>);

impl Interrupts for Told {
    fn interrupt(&self, m0: u32) {
        self.0.lock().unwrap().push(m0);
    }
}

/// A grid's host.
struct Grid {
    queue: Arc<RunQueue>,
    residents: Arc<Residents>,
    wishes: Wishes,
    ends: Sender<Result<(), Failure>>,
}

impl Host for Grid {
    fn owner(&self) -> Owner {
        Owner { tenant: 0, weight: 1, session: 0, stream: 0 }
    }

    fn others_wait(&self) -> bool {
        self.queue.others_wait(0)
    }

    fn is_closed(&self) -> bool {
        self.wishes.closed.load(Ordering::Relaxed)
    }

    fn threads(&self) -> usize {
        THREADS
    }

    fn instructions_max(&self) -> u64 {
        self.wishes.instructions_max
    }

    fn timeout(&self) -> Option<Duration> {
        self.wishes.timeout
    }

    fn residents(&self) -> &Arc<Residents> {
        &self.residents
    }

    fn snapshot(&self) -> Arc<Map> {
        assert!(!self.wishes.panics, "as the test wants it");
        Arc::default()
    }

    fn clock_start(&self) -> Instant {
        Instant::now()
    }

    fn interrupts(&self) -> Option<&dyn Interrupts> {
        self.wishes.interrupts.as_deref().map(|told| told as _)
    }

    fn note_time(&self, _: u64) {}

    fn finished(&self, _: &Dispatch, result: Result<(), Failure>) {
        self.ends.send(result).unwrap();
    }
}

impl Bench {
    pub(crate) fn new(arch: Arch) -> Self {
        let queue = Arc::<RunQueue>::default();
        let residents = Residents::new(&queue, Arc::new(NoMemory));
        let executors = Executors::start(&queue, THREADS, None).expect("threads");
        Self { queue, residents, executors, arch }
    }

    /// Returns the dispatch of a kernel with so much memory.
    pub(crate) fn dispatch(&self, words: &[u32], size: GridSize, memory_bytes: u64) -> Dispatch {
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let level = Level::chosen().expect("a level of this processor");
        let descriptor = KernelDescriptor {
            properties: PROPERTIES,
            rsrc2: RSRC2,
            rsrc3: 1,
            ..KernelDescriptor::default()
        };
        let addresses = Addresses { kernarg: MEMORY, ..Addresses::default() };
        Dispatch {
            name: "test".into(),
            program: Arc::new(Program::new(&code, CODE, self.arch, level)),
            entry: CODE,
            descriptor,
            vgprs: 8,
            size,
            lds_bytes: 0,
            scratch_bytes: 0,
            resident_groups: 64,
            memory: Arc::new(Block::new(MEMORY, memory_bytes).unwrap()),
            user_sgprs: user_sgprs(&descriptor, 0, &addresses),
            wave_sync: None,
        }
    }

    /// Begins a grid; what is returned learns of its end.
    pub(crate) fn begin(&self, dispatch: Dispatch, wishes: Wishes) -> Receiver<Result<(), Failure>> {
        let (ends, end) = channel();
        let (queue, residents) = (Arc::clone(&self.queue), Arc::clone(&self.residents));
        let job = GridJob::new(Grid { queue, residents, wishes, ends }, dispatch);
        let entries = job.entries();
        self.queue.push(&(job as Arc<dyn Job>), entries);
        end
    }

    /// Executes a grid; panics if its end is told more than once.
    pub(crate) fn run(&self, dispatch: Dispatch, wishes: Wishes) -> Result<(), Failure> {
        let ends = self.begin(dispatch, wishes);
        let result = ends.recv().expect("an end");
        // The sender goes when the last thread has let go of the job.
        assert!(ends.recv().is_err(), "a second end");
        result
    }
}
