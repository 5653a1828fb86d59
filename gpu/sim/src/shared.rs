//! What the executor threads see of a context: memory and streams, behind one lock that nobody holds while working.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hipr_proto::{HipError, HipResult};

use crate::alloc::Allocator;
use crate::context::Waker;
use crate::event::Record;
use crate::executor::{Job, RunQueue, lock};
use crate::gpu::Inner;
use crate::grid::GridJob;
use crate::map::Map;
use crate::mem::Block;
use crate::stream::{Streams, Task, Work};
use crate::transfer::Transfer;

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) allocator: Allocator,
    pub(crate) streams: Streams,
}

/// What executor threads see of a context.
pub(crate) struct Shared {
    /// No other context of the device has it.
    pub(crate) id: u64,
    run_queue: Arc<RunQueue>,
    /// How many executor threads there are.
    pub(crate) threads: usize,
    /// Instructions that one launch may execute.
    pub(crate) kernel_instructions_max: u64,
    /// How long one launch may run.
    pub(crate) kernel_timeout: Option<Duration>,
    /// Zero of the device's times.
    pub(crate) epoch: Instant,
    pub(crate) waker: Waker,
    closed: AtomicBool,
    pub(crate) state: Mutex<State>,
}

impl Shared {
    pub(crate) fn new(gpu: &Inner, waker: Waker, allocator: Allocator) -> Arc<Self> {
        Arc::new(Self {
            id: gpu.contexts.fetch_add(1, Ordering::Relaxed),
            run_queue: Arc::clone(&gpu.run_queue),
            threads: gpu.executors.count(),
            kernel_instructions_max: gpu.kernel_instructions_max,
            kernel_timeout: gpu.kernel_timeout,
            epoch: gpu.epoch,
            waker,
            closed: AtomicBool::new(false),
            state: Mutex::new(State { allocator, streams: Streams::new() }),
        })
    }

    /// The context is gone; work for it ends as soon as it notices.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// The page table as it is now.
    pub(crate) fn snapshot(&self) -> Arc<Map> {
        lock(&self.state).allocator.snapshot()
    }

    /// The task that `stream` runs has ended; what waited for it starts.
    pub(crate) fn finish(self: &Arc<Self>, stream: u64, result: HipResult<()>) {
        self.update(|state| ((), state.streams.finish(stream, result)));
    }

    /// Changes the state, starts what can start then, and wakes the owner if something that it watches has completed.
    pub(crate) fn update<R>(self: &Arc<Self>, change: impl FnOnce(&mut State) -> (R, bool)) -> R {
        let mut state = lock(&self.state);
        let (result, mut watched) = change(&mut state);
        let State { allocator, streams } = &mut *state;
        let (mut freed, mut passed) = (Vec::new(), Vec::new());
        let instantly = |work: &Work| match work {
            Work::Record(record) => {
                record.stamp(self.epoch.elapsed().as_nanos() as u64);
                passed.push(Arc::clone(record));
            }
            Work::Free(ptr) => freed.extend(allocator.finish_free(*ptr)),
            Work::Wait | Work::Task(_) => {}
        };
        let tasks = streams.start(instantly, &mut watched);
        drop(state);
        self.discard(freed);
        self.announce(&passed);
        for (stream, task) in tasks {
            match task {
                Task::Transfer(transfer) => {
                    let job =
                        TransferJob { shared: Arc::clone(self), stream, transfer, done: AtomicU64::new(0) };
                    self.run_queue.push(&(Arc::new(job) as Arc<dyn Job>), 1);
                }
                Task::Launch(grid) => {
                    let job = GridJob::new(self, stream, *grid);
                    let entries = job.entries();
                    self.run_queue.push(&(Arc::new(job) as Arc<dyn Job>), entries);
                }
            }
        }
        if watched {
            (self.waker)();
        }
        result
    }

    pub(crate) fn enqueue(self: &Arc<Self>, stream: u64, work: Work) -> HipResult<()> {
        self.update(|state| (state.streams.enqueue(stream, work, Arc::default(), Vec::new()), false))
    }

    /// Ends all work and unmaps all memory.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        let mut state = lock(&self.state);
        let passed = state.streams.clear();
        let blocks = state.allocator.clear();
        drop(state);
        self.discard(blocks);
        self.announce(&passed);
    }

    /// Tells other contexts of records that they wait for and that are complete.
    fn announce(&self, passed: &[Arc<Record>]) {
        for observer in passed.iter().flat_map(|record| record.take_observers()) {
            if let Some(observer) = observer.upgrade() {
                self.run_queue.push(&(Arc::new(Nudge(observer)) as Arc<dyn Job>), 1);
            }
        }
    }

    /// Lets go of memory. Giving pages back takes a while, which is not for the owner's thread to wait for.
    pub(crate) fn discard(&self, blocks: Vec<Arc<Block>>) {
        if blocks.iter().any(|block| block.len_bytes() > DISCARD_AT_ONCE_BYTES) {
            self.run_queue.push(&(Arc::new(Discard(Mutex::new(blocks))) as Arc<dyn Job>), 1);
        }
    }
}

/// Freeing a block of at most this many bytes is not worth another thread.
const DISCARD_AT_ONCE_BYTES: u64 = 1 << 20;

/// Memory that is not used any more.
struct Discard(Mutex<Vec<Arc<Block>>>);

impl Job for Discard {
    fn turn(&self) -> bool {
        let blocks = std::mem::take(&mut *lock(&self.0));
        drop(blocks);
        false
    }

    fn abandon(&self) {}
}

/// A context whose streams or owner wait for what another context has done.
struct Nudge(Arc<Shared>);

impl Job for Nudge {
    fn turn(&self) -> bool {
        self.0.update(|_| ((), true));
        false
    }

    fn abandon(&self) {}
}

/// A transfer under way.
struct TransferJob {
    shared: Arc<Shared>,
    stream: u64,
    transfer: Transfer,
    done: AtomicU64,
}

impl Job for TransferJob {
    fn turn(&self) -> bool {
        let result = match self.transfer.advance(self.done.load(Ordering::Relaxed)) {
            Ok(done) if done < self.transfer.len_bytes() && !self.shared.is_closed() => {
                self.done.store(done, Ordering::Relaxed);
                return true;
            }
            other => other.map(|_| ()),
        };
        self.shared.finish(self.stream, result);
        false
    }

    fn abandon(&self) {
        self.shared.finish(self.stream, Err(HipError::LAUNCH_FAILURE));
    }
}
