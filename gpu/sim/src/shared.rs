//! The part of a context that executor threads use: memory and streams, behind one lock that is not held during work.

mod launched;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use hipr_device::{Load, MemoryKind, Room, Share, Waker};
use hipr_grid::{DeviceMemory, GridJob, Job, Owner, Residents, RunQueue, lock};
use hipr_isa::map::Map;
use hipr_isa::mem::Block;
use hipr_proto::{HipError, HipResult};

use self::launched::Launched;
use crate::alloc::Allocator;
use crate::budget::Budget;
use crate::device::Inner;
use crate::event::{Observer, Record};
use crate::hostcall::{Calls, Home, Hostcalls};
use crate::launch::Setup;
use crate::order::Order;
use crate::stream::{Failed, HOUSEKEEPING_JOBS, Streams, Task, Work, handle_of};
use crate::transfer::Transfer;
use crate::unused::Unused;
use crate::watch::{Allocated, DeviceWatch, Moved, Started};

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) allocator: Allocator,
    pub(crate) streams: Streams,
    /// The room of which some has to be free for the owner to be woken.
    wanted: Option<Room>,
}

/// The part of a context that executor threads use.
pub(crate) struct Shared {
    /// A number that identifies the context on its device.
    pub(crate) id: u64,
    run_queue: Arc<RunQueue>,
    /// The memory of the workgroups that are being executed.
    pub(crate) residents: Arc<Residents>,
    /// Number of executor threads.
    pub(crate) threads: usize,
    /// Maximum number of instructions of one launch.
    pub(crate) kernel_instructions_max: u64,
    /// Maximum time of one launch, in nanoseconds.
    kernel_timeout_ns: AtomicU64,
    /// See [`Owner`].
    tenant: AtomicU64,
    weight: AtomicU32,
    /// Time that the work has had, in nanoseconds.
    pub(crate) device_ns: Arc<AtomicU64>,
    /// Time zero of the device.
    pub(crate) epoch: Instant,
    pub(crate) waker: Waker,
    /// The calls of kernels to the host.
    pub(crate) hostcalls: Hostcalls,
    /// What sees the work, if anything does.
    pub(crate) watch: Option<Arc<dyn DeviceWatch>>,
    closed: AtomicBool,
    pub(crate) state: Mutex<State>,
    /// Commands that are not finished, as [`Streams::held`] says, to be read without the lock.
    pub(crate) load: Arc<Load>,
    held_bytes: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        gpu: &Inner,
        waker: Waker,
        allocator: Allocator,
        device_ns: Arc<AtomicU64>,
    ) -> Arc<Self> {
        let id = gpu.contexts.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self {
            id,
            run_queue: Arc::clone(&gpu.run_queue),
            residents: Residents::new(&gpu.run_queue, Arc::new(Memories(gpu.budgets.clone()))),
            threads: gpu.executors.count(),
            kernel_instructions_max: gpu.kernel_instructions_max,
            kernel_timeout_ns: AtomicU64::new(gpu.kernel_timeout.map_or(u64::MAX, nanoseconds)),
            epoch: gpu.epoch,
            waker,
            hostcalls: Hostcalls::default(),
            watch: gpu.watch.clone(),
            closed: AtomicBool::new(false),
            tenant: AtomicU64::new(id),
            weight: AtomicU32::new(1),
            device_ns,
            state: Mutex::new(State {
                allocator,
                streams: Streams::new(gpu.budgets.len(), gpu.watch.as_ref().map(|_| id)),
                wanted: None,
            }),
            load: Arc::default(),
            held_bytes: AtomicU64::new(0),
        })
    }

    /// Returns whether the context was dropped; its work then ends as soon as possible.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Returns whether other sessions wait for a thread, so that work of this one has to make room soon.
    pub(crate) fn others_wait(&self) -> bool {
        self.run_queue.others_wait(self.id)
    }

    /// Says whose time the work takes, before any is enqueued. Otherwise the context is a tenant of its own.
    pub(crate) fn set_share(&self, share: Share) {
        self.tenant.store(share.tenant, Ordering::Relaxed);
        self.weight.store(share.weight, Ordering::Relaxed);
        if let Some(timeout) = share.kernel_timeout {
            self.kernel_timeout_ns.fetch_min(nanoseconds(timeout), Ordering::Relaxed);
        }
    }

    /// Returns the maximum time of one launch.
    fn kernel_timeout(&self) -> Option<Duration> {
        let timeout_ns = self.kernel_timeout_ns.load(Ordering::Relaxed);
        (timeout_ns != u64::MAX).then(|| Duration::from_nanos(timeout_ns))
    }

    /// Returns whose time work on a stream takes.
    pub(crate) fn owner(&self, stream: u64) -> Owner {
        let (tenant, weight) = (self.tenant.load(Ordering::Relaxed), self.weight.load(Ordering::Relaxed));
        Owner { tenant, weight, session: self.id, stream }
    }

    /// Returns the current page table of the device that has the stream of this number.
    pub(crate) fn snapshot(&self, stream: u64) -> Arc<Map> {
        let state = lock(&self.state);
        state.allocator.snapshot(state.streams.device_of(stream))
    }

    /// Returns the bytes of the commands that are not finished.
    pub(crate) fn queued_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Becomes ready when the commands that are not finished leave some of `room`; when that is used up, not before half of it is
    /// free.
    pub(crate) fn poll_room(&self, room: Room) -> Poll<()> {
        let commands = usize::try_from(self.load.commands.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        if room.has_place_beside(commands, self.held_bytes.load(Ordering::Relaxed)) {
            return Poll::Ready(());
        }
        let mut state = lock(&self.state);
        let held = state.streams.held();
        if room.has_place_beside(held.commands, held.bytes) {
            return Poll::Ready(());
        }
        state.wanted = Some(room.half());
        Poll::Pending
    }

    /// Ends the task that `stream` runs, and starts what waited for it.
    pub(crate) fn finish(self: &Arc<Self>, stream: u64, result: Result<(), Failed>) {
        self.update(|state| ((), state.streams.finish(stream, result)));
    }

    /// Changes the state, starts what can start, and wakes the owner if something that it watches is complete.
    pub(crate) fn update<R>(self: &Arc<Self>, change: impl FnOnce(&mut State) -> (R, bool)) -> R {
        let mut state = lock(&self.state);
        let (result, mut watched) = change(&mut state);
        let State { allocator, streams, wanted } = &mut *state;
        let (mut freed, mut passed) = (Vec::new(), Vec::new());
        let instantly = |work: &Work| match work {
            Work::Record(record) => {
                record.stamp(self.epoch.elapsed().as_nanos() as u64);
                passed.push(Arc::clone(record));
            }
            Work::Free(ptr) => {
                self.note_freed(*ptr);
                freed.extend(allocator.finish_free(*ptr).map(Unused::Block));
            }
            Work::Wait | Work::Task(_) => {}
        };
        let tasks = streams.start(instantly, &mut watched);
        let held = streams.held();
        self.load.commands.store(held.commands as u64, Ordering::Relaxed);
        self.load.streams.store(held.streams, Ordering::Relaxed);
        self.held_bytes.store(held.bytes, Ordering::Relaxed);
        watched |= wanted.take_if(|room| room.has_place_beside(held.commands, held.bytes)).is_some();
        drop(state);
        self.discard(freed);
        Self::announce(&passed);
        for (stream, task, order) in tasks {
            match task {
                Task::Transfer(transfer) => {
                    self.note_moved(order.as_deref(), || transfer.moved());
                    let job =
                        TransferJob { shared: Arc::clone(self), stream, transfer, done: AtomicU64::new(0) };
                    self.run_queue.push_next(&(Arc::new(job) as Arc<dyn Job>), 1);
                }
                Task::Launch(setup) => {
                    let (calls, setup) = self.begin_calls(stream, *setup);
                    let Setup { dispatch, handle, origin, places: _ } = setup;
                    let shared = Arc::clone(self);
                    let started = Started {
                        context: self.id,
                        stream: handle_of(stream),
                        order: order.as_deref(),
                        dispatch: &dispatch,
                    };
                    let watch = self.watch.as_ref().and_then(|watch| watch.started(&started));
                    let job =
                        GridJob::new(Launched { shared, stream, handle, origin, watch, calls }, dispatch);
                    let entries = job.entries();
                    self.run_queue.push_next(&(job as Arc<dyn Job>), entries);
                }
            }
        }
        if watched {
            self.waker.wake();
        }
        result
    }

    /// Gives a launch what its kernel calls the host with, if it may call.
    fn begin_calls(&self, stream: u64, mut setup: Setup) -> (Option<Calls>, Setup) {
        let Setup { places, dispatch, .. } = &mut setup;
        if !places.is_some() {
            return (None, setup);
        }
        let device = lock(&self.state).streams.device_of(stream);
        // A cooperative launch is executed as a whole or not at all.
        let groups_max = dispatch.wave_sync.is_none().then_some(&mut dispatch.resident_groups);
        let calls = self.hostcalls.begin(self, device, *places, &dispatch.memory, groups_max);
        (calls, setup)
    }

    pub(crate) fn enqueue(self: &Arc<Self>, stream: u64, work: Work) -> HipResult<()> {
        self.update(|state| (state.streams.enqueue(stream, work, Arc::default(), Vec::new()), false))
    }

    /// Tells what sees the work of an allocation, which is what `allocated` returns.
    pub(crate) fn note_allocated(&self, allocated: impl FnOnce() -> Allocated) {
        if let Some(watch) = &self.watch {
            watch.allocated(&allocated());
        }
    }

    /// Tells what sees the work that memory is no longer there.
    pub(crate) fn note_freed(&self, ptr: u64) {
        if let Some(watch) = &self.watch {
            watch.freed(self.id, ptr);
        }
    }

    /// Tells what sees the work that bytes are moved, on a stream or by the program.
    pub(crate) fn note_moved(&self, order: Option<&Order>, moved: impl FnOnce() -> Moved) {
        if let Some(watch) = &self.watch {
            watch.moved(self.id, order, &moved());
        }
    }

    /// Ends all work and unmaps all memory.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        let mut state = lock(&self.state);
        let passed = state.streams.clear();
        let blocks = state.allocator.clear();
        drop(state);
        if let Some(watch) = &self.watch {
            watch.closed(self.id);
        }
        self.residents.close();
        self.discard(blocks);
        Self::announce(&passed);
    }

    /// Notifies other contexts of complete records that they wait for.
    fn announce(passed: &[Arc<Record>]) {
        for record in passed {
            for observer in record.take_observers() {
                if let Some(observer) = observer.upgrade() {
                    observer.notify(record);
                }
            }
        }
    }

    /// Releases memory, on another thread because that takes a while.
    pub(crate) fn discard(&self, unused: Vec<Unused>) {
        if unused.iter().any(|unused| unused.len_bytes() > DISCARD_AT_ONCE_BYTES) {
            let discard = Discard { owner: self.owner(HOUSEKEEPING_JOBS), unused: Mutex::new(unused) };
            self.run_queue.push(&(Arc::new(discard) as Arc<dyn Job>), 1);
        }
    }
}

impl Home for Shared {
    fn allocate(&self, device: usize, len_bytes: u64) -> Option<Arc<Block>> {
        if !self.residents.keep(len_bytes) {
            return None;
        }
        let block = lock(&self.state).allocator.allocate_on(device, len_bytes);
        if block.is_err() {
            self.residents.give_back(len_bytes);
        }
        let block = block.ok()?;
        let (context, kind) = (self.id, MemoryKind::Device);
        let (ptr, len_bytes) = (block.base(), block.len_bytes());
        let (is_shared, is_of_kernels) = (false, true);
        self.note_allocated(|| Allocated { context, ptr, len_bytes, kind, is_shared, is_of_kernels });
        Some(block)
    }

    fn free(&self, ptr: u64, len_bytes: u64) {
        let block = lock(&self.state).allocator.finish_free(ptr);
        self.residents.give_back(len_bytes);
        self.note_freed(ptr);
        self.discard(block.into_iter().map(Unused::Block).collect());
    }

    fn wake(&self) {
        self.waker.wake();
    }
}

/// The memory of all devices: workgroups need the host's, which these have together.
struct Memories(Vec<Arc<Budget>>);

impl DeviceMemory for Memories {
    fn total_bytes(&self) -> u64 {
        self.0.iter().map(|budget| budget.total_bytes()).sum()
    }

    fn available_bytes(&self) -> u64 {
        self.0.iter().map(|budget| budget.available_bytes()).sum()
    }
}

/// Size up to which memory is released directly instead of on another thread.
const DISCARD_AT_ONCE_BYTES: u64 = 1 << 20;

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Size of the blocks that are released in one turn.
const DISCARD_TURN_BYTES: u64 = 16 << 20;
/// What a small block counts.
const LEAST_DISCARD_BYTES: u64 = 64 << 10;

/// Memory to be released.
struct Discard {
    owner: Owner,
    unused: Mutex<Vec<Unused>>,
}

impl Job for Discard {
    fn owner(&self) -> Owner {
        self.owner
    }

    fn turn(&self) -> bool {
        let mut unused = lock(&self.unused);
        let mut bytes = 0;
        while bytes < DISCARD_TURN_BYTES
            && let Some(next) = unused.pop()
        {
            bytes += next.len_bytes().max(LEAST_DISCARD_BYTES);
        }
        !unused.is_empty()
    }

    fn abandon(&self) {}
}

impl Observer for Shared {
    fn notify(self: Arc<Self>, record: &Arc<Record>) {
        let nudge: Arc<dyn Job> = Arc::new(Nudge(Arc::clone(&self), Arc::clone(record)));
        self.run_queue.push(&nudge, 1);
    }
}

/// A context to be updated, because another context completed a record that it waits for.
struct Nudge(Arc<Shared>, Arc<Record>);

impl Job for Nudge {
    fn owner(&self) -> Owner {
        self.0.owner(HOUSEKEEPING_JOBS)
    }

    fn turn(&self) -> bool {
        self.0.update(|state| (state.streams.handle_complete(&self.1.fence), true));
        false
    }

    fn abandon(&self) {}
}

/// A transfer in progress.
struct TransferJob {
    shared: Arc<Shared>,
    stream: u64,
    transfer: Transfer,
    done: AtomicU64,
}

impl Job for TransferJob {
    fn owner(&self) -> Owner {
        self.shared.owner(self.stream)
    }

    fn note_time(&self, taken_ns: u64) {
        self.shared.device_ns.fetch_add(taken_ns, Ordering::Relaxed);
    }

    fn turn(&self) -> bool {
        let result = match self.transfer.advance(self.done.load(Ordering::Relaxed)) {
            Ok(done) if done < self.transfer.len_bytes() && !self.shared.is_closed() => {
                self.done.store(done, Ordering::Relaxed);
                return true;
            }
            other => other.map(|_| ()),
        };
        self.shared.finish(self.stream, result.map_err(Failed::from));
        false
    }

    fn abandon(&self) {
        self.shared.finish(self.stream, Err(HipError::LAUNCH_FAILURE.into()));
    }
}
