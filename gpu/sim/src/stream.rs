//! Streams: queues of commands and the rules by which one command waits for another.
//!
//! A command starts when it is the first of its queue and everything that it depends on is complete. Dependencies are taken
//! when it is enqueued and always point back, so there are no cycles. Where they come from:
//!
//! - the queue itself (stream order);
//! - the null stream: a command on it waits for what blocking streams hold at that moment, and a command on a blocking stream
//!   for what the null stream holds; non-blocking streams do neither (HIP API: hipStreamNonBlocking);
//! - hipStreamWaitEvent.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hipr_device::WaitFor;
use hipr_proto::{HipError, HipResult};

use crate::event::Record;
use crate::fence::Fence;
use crate::launch::Setup;
use crate::property::STREAM_PRIORITIES;
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
const HOUSEKEEPING: u64 = u64::MAX;

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

/// Work that the executor threads do.
#[derive(Debug)]
pub(crate) enum Task {
    Transfer(Transfer),
    Launch(Box<Setup>),
}

#[derive(Debug)]
struct Command {
    after: Vec<Arc<Fence>>,
    fence: Arc<Fence>,
    work: Work,
    /// Bytes of host memory that it takes until it is finished.
    held_bytes: u64,
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
        Self { after, fence, work, held_bytes: (held + carried) as u64 }
    }
}

/// The commands that are not finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Their number.
    pub(crate) commands: usize,
    /// The bytes of host memory that they take.
    pub(crate) bytes: u64,
}

impl Held {
    fn remove(&mut self, command: &Command) {
        self.commands -= 1;
        self.bytes -= command.held_bytes;
    }
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

    fn pending(&self) -> Option<&Arc<Fence>> {
        self.tail.as_ref().filter(|tail| !tail.is_done())
    }
}

/// Whether a wait is over.
pub(crate) enum Wait {
    Over,
    /// Waits until this fence is complete.
    On(Arc<Fence>),
}

/// A context's streams and their errors.
#[derive(Debug)]
pub(crate) struct Streams {
    queues: BTreeMap<u64, Queue>,
    /// The first unreported error of each stream.
    errors: Vec<(u64, HipError)>,
    held: Held,
}

fn canonical(stream: u64) -> u64 {
    if stream == LEGACY_STREAM { NULL_STREAM } else { stream }
}

impl Streams {
    pub(crate) fn new() -> Self {
        let always = [(NULL_STREAM, 0), (PER_THREAD_STREAM, 0), (HOUSEKEEPING, NON_BLOCKING)];
        Self {
            queues: always.map(|(stream, flags)| (stream, Queue::new(flags, 0))).into(),
            errors: Vec::new(),
            held: Held::default(),
        }
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
            self.queues.remove(&stream);
        }
        Ok(())
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
        after.extend(self.ordered_before(stream)?.cloned());
        after.retain(|fence| !fence.is_done());
        self.append(canonical(stream), Command::new(work, fence, after));
        Ok(())
    }

    /// Executes `work` when everything that is enqueued now is done.
    pub(crate) fn enqueue_after_all(&mut self, work: Work) {
        let after = self.queues.values().filter_map(|queue| queue.pending().cloned()).collect();
        self.append(HOUSEKEEPING, Command::new(work, Arc::default(), after));
    }

    fn append(&mut self, stream: u64, command: Command) {
        if let Some(queue) = self.queues.get_mut(&stream) {
            self.held.commands += 1;
            self.held.bytes += command.held_bytes;
            queue.tail = Some(Arc::clone(&command.fence));
            queue.commands.push_back(command);
        }
    }

    /// Returns the fences that a new command on `stream` waits for because of the null stream.
    fn ordered_before(&self, stream: u64) -> HipResult<impl Iterator<Item = &Arc<Fence>>> {
        let stream = canonical(stream);
        let blocking = self.queue(stream)?.is_blocking();
        let others = self.queues.iter().filter(move |&(&other, queue)| {
            other != stream
                && blocking
                && queue.is_blocking()
                && (stream == NULL_STREAM || other == NULL_STREAM)
        });
        Ok(others.filter_map(|(_, queue)| queue.pending()))
    }

    /// Starts the commands that wait for no other. Those that take no time are executed by `instantly`; the others are returned with
    /// their stream, and [`finish`](Self::finish) has to be called for each. Sets `watched` if a completion should wake the owner.
    pub(crate) fn start(&mut self, mut instantly: impl FnMut(&Work), watched: &mut bool) -> Vec<(u64, Task)> {
        let mut tasks = Vec::new();
        let mut progress = true;
        while progress {
            progress = false;
            for (&stream, queue) in &mut self.queues {
                while !queue.running
                    && let Some(command) = queue
                        .commands
                        .pop_front_if(|command| command.after.iter().all(|fence| fence.is_done()))
                {
                    match command.work {
                        Work::Task(task) => {
                            queue.running = true;
                            let started = Command { after: Vec::new(), work: Work::Wait, ..command };
                            queue.commands.push_front(started);
                            tasks.push((stream, task));
                        }
                        work => {
                            instantly(&work);
                            self.held.commands -= 1;
                            self.held.bytes -= command.held_bytes;
                            *watched |= command.fence.complete();
                            progress = true;
                        }
                    }
                }
            }
        }
        self.queues.retain(|_, queue| !(queue.destroyed && queue.commands.is_empty()));
        tasks
    }

    /// Notes that the task which `stream` runs has ended. `true` if somebody watches.
    pub(crate) fn finish(&mut self, stream: u64, result: HipResult<()>) -> bool {
        if let Err(error) = result
            && !self.errors.iter().any(|&(other, _)| other == stream)
        {
            self.errors.push((stream, error));
        }
        let Some(queue) = self.queues.get_mut(&stream).filter(|queue| queue.running) else { return false };
        queue.running = false;
        let Some(command) = queue.commands.pop_front() else { return false };
        self.held.remove(&command);
        command.fence.complete()
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
        self.errors.clear();
        self.held = Held::default();
        records
    }

    /// Returns whether all work that `what` covers has finished. `record` is the event's last record.
    pub(crate) fn wait(&self, what: WaitFor, record: Option<&Record>) -> HipResult<Wait> {
        let pending = match what {
            WaitFor::Device => self.queues.values().find_map(Queue::pending),
            WaitFor::Stream(stream) => match self.queue(stream)?.pending() {
                None if canonical(stream) == NULL_STREAM => self.ordered_before(stream)?.next(),
                pending => pending,
            },
            WaitFor::Event(_) => record.map(|record| &record.fence).filter(|fence| !fence.is_done()),
        };
        Ok(pending.map_or(Wait::Over, |fence| Wait::On(Arc::clone(fence))))
    }

    /// Returns the work that a command enqueued on `stream` now would wait for.
    pub(crate) fn wait_turn(&self, stream: u64) -> HipResult<Wait> {
        let pending = match self.queue(stream)?.pending() {
            None => self.ordered_before(stream)?.next(),
            pending => pending,
        };
        Ok(pending.map_or(Wait::Over, |fence| Wait::On(Arc::clone(fence))))
    }

    /// Takes the errors of the work that `what` covers, and returns the first of them.
    pub(crate) fn take_error(&mut self, what: WaitFor, record: Option<&Record>) -> HipResult<()> {
        let stream = match what {
            WaitFor::Device => None,
            WaitFor::Stream(stream) => Some(canonical(stream)),
            WaitFor::Event(_) => match record {
                Some(record) => Some(canonical(record.stream)),
                None => return Ok(()),
            },
        };
        let queues = &self.queues;
        let covered = |&mut (other, _): &mut (u64, HipError)| match stream {
            None => true,
            Some(NULL_STREAM) => queues.get(&other).is_none_or(Queue::is_blocking),
            Some(stream) => stream == other,
        };
        let first = self.errors.extract_if(.., covered).fold(None, |first, (_, error)| first.or(Some(error)));
        first.map_or(Ok(()), Err)
    }
}
