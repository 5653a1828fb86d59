//! Streams: queues of commands and the rules by which one command waits for another.
//!
//! A command starts when it is the first of its queue and everything that it depends on is complete. Dependencies are taken
//! when it is enqueued and always point back, so there are no cycles. Where they come from:
//!
//! - the queue itself (stream order);
//! - the null stream: a command on it waits for what blocking streams hold at that moment, and a command on a blocking stream
//!   for what the null stream holds; non-blocking streams do neither (HIP API: hipStreamNonBlocking);
//! - hipStreamWaitEvent.
//!
//! The first command of a queue that waits is entered under the fence that it waits for, so that only those queues are looked at in
//! which something has changed, of however many.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hipr_device::{WaitFor, WorkFailure};
use hipr_proto::{HipError, HipResult};

use crate::event::Record;
use crate::fence::Fence;
use crate::launch::Setup;
use crate::order::{Order, Orders};
use crate::property::STREAM_PRIORITIES;
use crate::rounds::Rounds;
use crate::times::{Open, Times};
use crate::transfer::Transfer;

/// The flag of a stream that does not wait for the null stream.
pub const NON_BLOCKING: u32 = hipr_abi::hipStreamNonBlocking;
/// Handle of the legacy null stream.
pub const NULL_STREAM: u64 = 0;
/// Second handle of the legacy null stream.
pub const LEGACY_STREAM: u64 = hipr_abi::hipStreamLegacy as u64;
/// Handle of the per-thread stream, a blocking stream that always exists.
pub const PER_THREAD_STREAM: u64 = hipr_abi::hipStreamPerThread as u64;
/// An internal stream for what follows all enqueued work; it is not ordered against other streams.
pub(crate) const HOUSEKEEPING: u64 = u64::MAX;

/// The work of a command.
#[derive(Debug)]
pub(crate) enum Work {
    /// Only waits for its dependencies.
    Wait,
    /// Records an event.
    Record(Arc<Record>),
    /// Unmaps the allocation that starts there.
    Free(u64),
    /// Executes a task that takes time.
    Task(Task),
}

/// An error of work, and what is known of the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) error: HipError,
    pub(crate) work: Option<Box<WorkFailure>>,
}

impl From<HipError> for Failed {
    fn from(error: HipError) -> Self {
        Self { error, work: None }
    }
}

/// Work that the executor threads do.
#[derive(Debug)]
pub(crate) enum Task {
    Transfer(Transfer),
    Launch(Box<Setup>),
}

#[derive(Debug)]
struct Command {
    /// What it waits for; those at the end that are complete are removed.
    after: Vec<Arc<Fence>>,
    fence: Arc<Fence>,
    work: Work,
    /// Bytes of host memory that it takes until it is finished.
    held_bytes: u64,
    /// Its round among all commands.
    round: u64,
    /// Its round among those that the null stream waits for, if it is one.
    blocking_round: Option<u64>,
    /// Its place among all work, if something sees the work.
    order: Option<Arc<Order>>,
    /// Its times, if somebody wants them.
    times: Option<Box<Open>>,
}

impl Command {
    fn new(work: Work, fence: Arc<Fence>, after: Vec<Arc<Fence>>) -> Self {
        let carried = match &work {
            Work::Task(Task::Transfer(transfer)) => transfer.carried_bytes(),
            Work::Task(Task::Launch(setup)) => setup.carried_bytes(),
            Work::Record(_) => size_of::<Record>(),
            Work::Wait | Work::Free(_) => 0,
        };
        let held = size_of::<Self>() + size_of::<Fence>() + after.capacity() * size_of::<Arc<Fence>>();
        Self {
            after,
            fence,
            work,
            held_bytes: (held + carried) as u64,
            round: 0,
            blocking_round: None,
            order: None,
            times: None,
        }
    }

    /// Returns the fence that it waits for, if there is one.
    fn waits_for(&mut self) -> Option<&Arc<Fence>> {
        while self.after.pop_if(|fence| fence.is_done()).is_some() {}
        self.after.last()
    }
}

/// A task that has begun: its stream, the task, and its place among all work, if something sees the work.
pub(crate) type Begun = (u64, Task, Option<Arc<Order>>);

/// The commands that are not finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Their number.
    pub(crate) commands: usize,
    /// The bytes of host memory that they take.
    pub(crate) bytes: u64,
    /// The number of streams that have some.
    pub(crate) streams: u64,
}

#[derive(Debug)]
struct Queue {
    flags: u32,
    priority: i32,
    commands: VecDeque<Command>,
    /// Whether the first command has started.
    running: bool,
    /// The completion of the last command.
    tail: Option<Arc<Fence>>,
    /// Whether it is removed when it is empty.
    destroyed: bool,
}

impl Queue {
    fn new(flags: u32, priority: i32) -> Self {
        Self { flags, priority, commands: VecDeque::new(), running: false, tail: None, destroyed: false }
    }

    fn is_blocking(&self) -> bool {
        self.flags & NON_BLOCKING == 0
    }

    fn pending(&self) -> Option<Arc<Fence>> {
        self.tail.as_ref().filter(|tail| !tail.is_done()).cloned()
    }
}

/// Whether a wait is over.
pub(crate) enum Wait {
    Over,
    /// Waits until this fence is complete.
    On(Arc<Fence>),
}

impl From<Option<Arc<Fence>>> for Wait {
    fn from(pending: Option<Arc<Fence>>) -> Self {
        pending.map_or(Self::Over, Self::On)
    }
}

/// A context's streams and their errors.
#[derive(Debug)]
pub(crate) struct Streams {
    queues: BTreeMap<u64, Queue>,
    /// Streams whose first command may be able to start.
    ready: VecDeque<u64>,
    /// Streams whose first command waits for a fence, by the address of the fence.
    blocked: BTreeMap<usize, Vec<u64>>,
    /// All commands, for what waits for the device.
    all: Rounds,
    /// Those of blocking streams but the null stream, which waits for them.
    blocking: Rounds,
    errors: Errors,
    held: Held,
    /// The order of the work, if something sees it.
    orders: Option<Orders>,
    /// When the work was done.
    pub(crate) times: Times,
}

fn canonical(stream: u64) -> u64 {
    if stream == LEGACY_STREAM { NULL_STREAM } else { stream }
}

fn address(fence: &Arc<Fence>) -> usize {
    Arc::as_ptr(fence).addr()
}

impl Streams {
    /// Returns a context's streams, whose order is kept if something sees their work: `watched` is the number of the context then.
    pub(crate) fn new(watched: Option<u64>) -> Self {
        let always = [(NULL_STREAM, 0), (PER_THREAD_STREAM, 0), (HOUSEKEEPING, NON_BLOCKING)];
        let queues = always.map(|(stream, flags)| (stream, Queue::new(flags, 0))).into();
        let (ready, blocked, all, blocking, errors, held, times) = Default::default();
        let orders = watched.map(Orders::new);
        Self { queues, ready, blocked, all, blocking, errors, held, orders, times }
    }

    fn queue(&self, stream: u64) -> HipResult<&Queue> {
        let queue = self.queues.get(&canonical(stream));
        queue.filter(|queue| stream != HOUSEKEEPING && !queue.destroyed).ok_or(HipError::INVALID_HANDLE)
    }

    /// Adds a stream under a new handle.
    ///
    /// # Errors
    /// `INVALID_VALUE` for flags that HIP does not have.
    pub(crate) fn create(&mut self, handle: u64, flags: u32, priority: i32) -> HipResult<()> {
        if flags & !NON_BLOCKING != 0 {
            return Err(HipError::INVALID_VALUE);
        }
        let (lowest, highest) = STREAM_PRIORITIES;
        self.queues.insert(handle, Queue::new(flags, priority.clamp(highest, lowest)));
        Ok(())
    }

    /// Removes the handle; enqueued commands are still executed.
    ///
    /// # Errors
    /// `INVALID_HANDLE` for an unknown stream and for those that are always there.
    pub(crate) fn destroy(&mut self, stream: u64) -> HipResult<()> {
        let queue = self.queues.get_mut(&stream).filter(|queue| !queue.destroyed);
        let queue = queue.filter(|_| stream > PER_THREAD_STREAM && stream != HOUSEKEEPING);
        let queue = queue.ok_or(HipError::INVALID_HANDLE)?;
        queue.destroyed = true;
        if queue.commands.is_empty() {
            self.remove(stream);
        }
        Ok(())
    }

    fn remove(&mut self, stream: u64) {
        self.queues.remove(&stream);
        self.errors.forget(stream);
    }

    pub(crate) fn flags(&self, stream: u64) -> HipResult<u32> {
        Ok(self.queue(stream)?.flags)
    }

    pub(crate) fn priority(&self, stream: u64) -> HipResult<i32> {
        Ok(self.queue(stream)?.priority)
    }

    /// Enqueues a command that also waits for `after` and completes `fence`.
    ///
    /// # Errors
    /// `INVALID_HANDLE` for an unknown stream.
    pub(crate) fn enqueue(
        &mut self,
        stream: u64,
        work: Work,
        fence: Arc<Fence>,
        mut after: Vec<Arc<Fence>>,
    ) -> HipResult<()> {
        let is_blocking = self.queue(stream)?.is_blocking();
        let stream = canonical(stream);
        let order = self.order(stream, is_blocking, &after, &fence);
        after.retain(|fence| !fence.is_done());
        if stream == NULL_STREAM {
            after.extend(self.blocking.end());
        } else if is_blocking {
            after.extend(self.null_pending());
        }
        let times = match &work {
            Work::Task(Task::Launch(setup)) => self.times.open(setup.handle),
            Work::Task(Task::Transfer(_)) => self.times.open(0),
            // They take no time.
            Work::Wait | Work::Record(_) | Work::Free(_) => None,
        };
        let mut command = Command { order, times, ..Command::new(work, fence, after) };
        command.held_bytes += command.times.as_ref().map_or(0, |times| size_of_val(&**times) as u64);
        self.append(stream, command);
        Ok(())
    }

    /// Numbers a command, if something sees the work. It waits for what [`enqueue`](Self::enqueue) says, done or not.
    fn order(
        &mut self,
        stream: u64,
        is_blocking: bool,
        after: &[Arc<Fence>],
        fence: &Fence,
    ) -> Option<Arc<Order>> {
        let orders = self.orders.as_mut()?;
        let others = self.queues.iter().filter(|(other, queue)| {
            is_blocking && queue.is_blocking() && (stream == NULL_STREAM || **other == NULL_STREAM)
        });
        Some(orders.add(stream, others.map(|(other, _)| *other), after, fence))
    }

    /// Executes `work` when everything that is enqueued now is done.
    pub(crate) fn enqueue_after_all(&mut self, work: Work) {
        let after = self.all.end().into_iter().collect();
        self.append(HOUSEKEEPING, Command::new(work, Arc::default(), after));
    }

    fn append(&mut self, stream: u64, mut command: Command) {
        let Some(queue) = self.queues.get_mut(&stream) else { return };
        self.held.commands += 1;
        self.held.bytes += command.held_bytes;
        command.round = self.all.join();
        command.blocking_round = (stream != NULL_STREAM && queue.is_blocking()).then(|| self.blocking.join());
        queue.tail = Some(Arc::clone(&command.fence));
        if queue.commands.is_empty() {
            self.ready.push_back(stream);
            self.held.streams += u64::from(stream != HOUSEKEEPING);
        }
        queue.commands.push_back(command);
    }

    /// Returns the fence of the null stream's last command, if it is pending.
    fn null_pending(&self) -> Option<Arc<Fence>> {
        self.queues.get(&NULL_STREAM).and_then(Queue::pending)
    }

    /// Starts the commands that wait for no other. Those that take no time are executed by `instantly`; the others are returned with
    /// their stream, and [`finish`](Self::finish) has to be called for each. Sets `watched` if a completion should wake the owner.
    pub(crate) fn start(&mut self, mut instantly: impl FnMut(&Work), watched: &mut bool) -> Vec<Begun> {
        let mut tasks = Vec::new();
        while let Some(stream) = self.ready.pop_front() {
            while let Some(command) = self.next(stream) {
                match command.work {
                    Work::Task(task) => {
                        let order = command.order;
                        let mut started =
                            Command { after: Vec::new(), work: Work::Wait, order: None, ..command };
                        if let Some(times) = &mut started.times {
                            times.begin();
                        }
                        if let Some(queue) = self.queues.get_mut(&stream) {
                            queue.running = true;
                            queue.commands.push_front(started);
                        }
                        tasks.push((stream, task, order));
                    }
                    ref work => {
                        instantly(work);
                        self.note_end(stream);
                        *watched |= self.complete(&command);
                    }
                }
            }
        }
        tasks
    }

    /// Takes the first command of a stream if it can start. If it waits, it is entered under the fence that it waits for.
    fn next(&mut self, stream: u64) -> Option<Command> {
        let queue = self.queues.get_mut(&stream).filter(|queue| !queue.running)?;
        match queue.commands.front_mut().map(Command::waits_for) {
            Some(None) => queue.commands.pop_front(),
            Some(Some(fence)) => {
                self.blocked.entry(address(fence)).or_default().push(stream);
                None
            }
            None => {
                if queue.destroyed {
                    self.remove(stream);
                }
                None
            }
        }
    }

    /// Completes a command that is in no queue any more. `true` if somebody watches.
    fn complete(&mut self, command: &Command) -> bool {
        self.held.commands -= 1;
        self.held.bytes -= command.held_bytes;
        let mut watched = self.complete_fence(&command.fence);
        if let Some(fence) = self.all.leave(command.round) {
            watched |= self.complete_fence(&fence);
        }
        if let Some(fence) = command.blocking_round.and_then(|round| self.blocking.leave(round)) {
            watched |= self.complete_fence(&fence);
        }
        watched
    }

    fn complete_fence(&mut self, fence: &Arc<Fence>) -> bool {
        let watched = fence.complete();
        self.handle_complete(fence);
        watched
    }

    /// Handles that a fence is complete, possibly one of another context.
    pub(crate) fn handle_complete(&mut self, fence: &Arc<Fence>) {
        if !self.blocked.is_empty()
            && let Some(streams) = self.blocked.remove(&address(fence))
        {
            self.ready.extend(streams);
        }
    }

    /// Notes that the task which `stream` runs has ended. `true` if somebody watches.
    pub(crate) fn finish(&mut self, stream: u64, result: Result<(), Failed>) -> bool {
        if let Err(failed) = result {
            self.errors.add(stream, failed);
        }
        let Some(queue) = self.queues.get_mut(&stream).filter(|queue| queue.running) else { return false };
        queue.running = false;
        let Some(command) = queue.commands.pop_front() else { return false };
        if let Some(times) = &command.times {
            self.times.end(stream, times);
        }
        self.ready.push_back(stream);
        self.note_end(stream);
        self.complete(&command)
    }

    /// Handles that a command of a stream is finished and in its queue no more.
    fn note_end(&mut self, stream: u64) {
        let is_empty = self.queues.get(&stream).is_none_or(|queue| queue.commands.is_empty());
        self.held.streams -= u64::from(is_empty && stream != HOUSEKEEPING);
    }

    /// Returns the commands that are not finished.
    pub(crate) fn held(&self) -> Held {
        self.held
    }

    /// Drops everything that has not started and completes it, and gives the records of that. What runs is told to stop by
    /// other means.
    pub(crate) fn clear(&mut self) -> Vec<Arc<Record>> {
        let mut records = Vec::new();
        for queue in self.queues.values_mut() {
            for command in queue.commands.drain(..) {
                command.fence.complete();
                records.extend(if let Work::Record(record) = command.work { Some(record) } else { None });
            }
            queue.running = false;
        }
        for fence in self.all.clear().into_iter().chain(self.blocking.clear()) {
            fence.complete();
        }
        self.ready.clear();
        self.blocked.clear();
        self.errors = Errors::default();
        self.held = Held::default();
        records
    }

    /// Returns whether all work that `what` covers has finished. `record` is the event's last record.
    pub(crate) fn wait(&mut self, what: WaitFor, record: Option<&Record>) -> HipResult<Wait> {
        let pending = match what {
            WaitFor::Device => self.all.pending(),
            WaitFor::Stream(stream) if canonical(stream) == NULL_STREAM => return self.wait_turn(stream),
            WaitFor::Stream(stream) => self.queue(stream)?.pending(),
            WaitFor::Event(_) => record.map(|record| &record.fence).filter(|fence| !fence.is_done()).cloned(),
        };
        if pending.is_none()
            && let Some(orders) = &mut self.orders
        {
            orders.waited(what, record);
        }
        Ok(pending.into())
    }

    /// Returns the work that a command enqueued on `stream` now would wait for.
    pub(crate) fn wait_turn(&mut self, stream: u64) -> HipResult<Wait> {
        let queue = self.queue(stream)?;
        let pending = match queue.pending() {
            None if canonical(stream) == NULL_STREAM => self.blocking.pending(),
            None if queue.is_blocking() => self.null_pending(),
            pending => pending,
        };
        if pending.is_none()
            && let Some(orders) = &mut self.orders
        {
            let stream = canonical(stream);
            let is_blocking = self.queues.get(&stream).is_some_and(Queue::is_blocking);
            for (&other, queue) in &self.queues {
                let waits =
                    is_blocking && queue.is_blocking() && (stream == NULL_STREAM || other == NULL_STREAM);
                if other == stream || waits {
                    orders.waited_for(other);
                }
            }
        }
        Ok(pending.into())
    }

    /// Takes the errors of the work that `what` covers, and returns the first of them.
    pub(crate) fn take_error(&mut self, what: WaitFor, record: Option<&Record>) -> Result<(), Failed> {
        let stream = match what {
            WaitFor::Device => return self.errors.take(|_| true),
            WaitFor::Stream(stream) => stream,
            WaitFor::Event(_) => match record {
                Some(record) => record.stream,
                None => return Ok(()),
            },
        };
        match canonical(stream) {
            NULL_STREAM => {
                let queues = &self.queues;
                self.errors.take(|other| queues.get(&other).is_none_or(Queue::is_blocking))
            }
            stream => self.errors.take_of(stream),
        }
    }
}

/// The first unreported error of each stream.
#[derive(Debug, Default)]
struct Errors {
    /// The errors with their numbers, by stream; those of streams that are gone are under [`HOUSEKEEPING`], whose commands do not fail.
    of: BTreeMap<u64, (u64, Failed)>,
    /// Number of errors so far.
    count: u64,
}

impl Errors {
    fn add(&mut self, stream: u64, failed: Failed) {
        self.count += 1;
        self.of.entry(stream).or_insert((self.count, failed));
    }

    /// Handles that a stream is gone: of all of these only the first error is kept.
    fn forget(&mut self, stream: u64) {
        let Some(gone) = self.of.remove(&stream) else { return };
        if self.of.get(&HOUSEKEEPING).is_none_or(|first| gone.0 < first.0) {
            self.of.insert(HOUSEKEEPING, gone);
        }
    }

    fn take_of(&mut self, stream: u64) -> Result<(), Failed> {
        self.of.remove(&stream).map_or(Ok(()), |(_, failed)| Err(failed))
    }

    /// Takes the errors of the streams for which `is_covered` returns true, and of those that are gone; returns the first.
    fn take(&mut self, is_covered: impl Fn(u64) -> bool) -> Result<(), Failed> {
        let taken = self.of.extract_if(.., |&stream, _| stream == HOUSEKEEPING || is_covered(stream));
        taken
            .map(|(_, numbered)| numbered)
            .min_by_key(|(number, _)| *number)
            .map_or(Ok(()), |(_, failed)| Err(failed))
    }
}
