//! Streams: queues of commands and the rules by which one command waits for another.
//!
//! A command starts when it is the first of its queue and everything that it depends on is complete. Dependencies are taken
//! when it is enqueued and always point back, so there are no cycles. Where they come from:
//!
//! - the queue itself (stream order);
//! - the null stream: a command on it waits for what blocking streams of its device hold at that moment, and a command on a blocking
//!   stream for what its device's null stream holds; non-blocking streams do neither (HIP API: hipStreamNonBlocking);
//! - hipStreamWaitEvent;
//! - a synchronous copy that is still to be done, behind which everything comes.
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
/// Handle of the legacy null stream of the current device.
pub const NULL_STREAM: u64 = 0;
/// Second handle of the legacy null stream.
pub const LEGACY_STREAM: u64 = hipr_abi::hipStreamLegacy as u64;
/// Handle of the per-thread stream of the current device, a blocking stream that always exists.
pub const PER_THREAD_STREAM: u64 = hipr_abi::hipStreamPerThread as u64;

/// The first number of those streams that every device has; handles of others are less.
const OF_DEVICES: u64 = 1 << 63;
/// How many numbers each device has for its own streams: those of device `d` begin at `OF_DEVICES + d * KINDS`.
const KINDS: u64 = 4;
/// The kind of stream on which a device frees memory behind all its work; no handle means it, and no other stream waits for it.
const HOUSEKEEPING: u64 = 1;

/// The stream in whose name jobs are done that belong to none.
pub(crate) const HOUSEKEEPING_JOBS: u64 = OF_DEVICES + HOUSEKEEPING;

/// Returns the number under which a device has one of the streams that every device has.
fn of_device(device: usize, kind: u64) -> u64 {
    OF_DEVICES + device as u64 * KINDS + kind
}

/// Returns the number of the stream that a handle means while this device is current.
pub(crate) fn number_of(handle: u64, device: usize) -> u64 {
    match handle {
        NULL_STREAM | LEGACY_STREAM => of_device(device, NULL_STREAM),
        PER_THREAD_STREAM => of_device(device, PER_THREAD_STREAM),
        other => other,
    }
}

/// Returns the handle of the stream with this number.
pub(crate) fn handle_of(number: u64) -> u64 {
    number.checked_sub(OF_DEVICES).map_or(number, |number| number % KINDS)
}

/// Returns whether this is the number of a device's null stream.
fn is_null(number: u64) -> bool {
    number >= OF_DEVICES && handle_of(number) == NULL_STREAM
}

/// Returns whether this is the number of a stream that no handle means.
fn is_housekeeping(number: u64) -> bool {
    number >= OF_DEVICES && handle_of(number) == HOUSEKEEPING
}

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
    /// The device of its stream, and its round among all commands of that.
    device: usize,
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
            device: 0,
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
    /// The device that executes its commands.
    device: usize,
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
    fn new(device: usize, flags: u32, priority: i32) -> Self {
        Self {
            device,
            flags,
            priority,
            commands: VecDeque::new(),
            running: false,
            tail: None,
            destroyed: false,
        }
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

/// The unfinished commands of one device's streams.
#[derive(Debug, Default)]
struct DeviceRounds {
    /// All commands, for what waits for the device.
    all: Rounds,
    /// Those of blocking streams but the null stream, which waits for them.
    blocking: Rounds,
}

/// A context's streams and their errors.
#[derive(Debug)]
pub(crate) struct Streams {
    /// The streams by number, which for those that a program has created is the handle.
    queues: BTreeMap<u64, Queue>,
    /// The device that is current: whose null stream the handle of the null stream means.
    current: usize,
    /// Streams whose first command may be able to start.
    ready: VecDeque<u64>,
    /// Streams whose first command waits for a fence, by the address of the fence.
    blocked: BTreeMap<usize, Vec<u64>>,
    devices: Vec<DeviceRounds>,
    errors: Errors,
    held: Held,
    /// The last command behind which all later ones come, on whatever stream. It comes behind the one before it.
    before_all: Option<Arc<Fence>>,
    /// The order of the work, if something sees it.
    orders: Option<Orders>,
    /// When the work was done.
    pub(crate) times: Times,
}

fn address(fence: &Arc<Fence>) -> usize {
    Arc::as_ptr(fence).addr()
}

impl Streams {
    /// Returns a context's streams on so many devices, of which the first is current. Their order is kept if something sees their work:
    /// `watched` is the number of the context then.
    pub(crate) fn new(devices: usize, watched: Option<u64>) -> Self {
        let always = [(NULL_STREAM, 0), (PER_THREAD_STREAM, 0), (HOUSEKEEPING, NON_BLOCKING)];
        let queues = (0..devices).flat_map(|device| {
            always.map(|(kind, flags)| (of_device(device, kind), Queue::new(device, flags, 0)))
        });
        let (current, ready, blocked, errors, held, before_all, times) = Default::default();
        let (queues, orders) = (queues.collect(), watched.map(Orders::new));
        let devices = (0..devices).map(|_| DeviceRounds::default()).collect();
        Self { queues, current, ready, blocked, devices, errors, held, before_all, orders, times }
    }

    /// Makes a device the one whose null stream the handle of the null stream means.
    pub(crate) fn set_current(&mut self, device: usize) {
        self.current = device;
    }

    /// Returns the number of the stream with this handle.
    pub(crate) fn number(&self, handle: u64) -> u64 {
        number_of(handle, self.current)
    }

    /// Returns the device of the stream with this number.
    pub(crate) fn device_of(&self, number: u64) -> usize {
        self.queues.get(&number).map_or(0, |queue| queue.device)
    }

    fn queue(&self, handle: u64) -> HipResult<&Queue> {
        let queue = self.queues.get(&self.number(handle)).filter(|queue| !queue.destroyed);
        queue.filter(|_| handle < OF_DEVICES).ok_or(HipError::INVALID_HANDLE)
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
        self.queues.insert(handle, Queue::new(self.current, flags, priority.clamp(highest, lowest)));
        Ok(())
    }

    /// Removes the handle; enqueued commands are still executed.
    ///
    /// # Errors
    /// `INVALID_HANDLE` for an unknown stream and for those that are always there.
    pub(crate) fn destroy(&mut self, stream: u64) -> HipResult<()> {
        let queue = self.queues.get_mut(&stream).filter(|queue| !queue.destroyed);
        let queue = queue.filter(|_| stream < OF_DEVICES);
        let queue = queue.ok_or(HipError::INVALID_HANDLE)?;
        queue.destroyed = true;
        if queue.commands.is_empty() {
            self.remove(stream);
        }
        Ok(())
    }

    fn remove(&mut self, stream: u64) {
        if let Some(queue) = self.queues.remove(&stream) {
            self.errors.forget(stream, of_device(queue.device, HOUSEKEEPING));
        }
    }

    /// Returns the device of the stream with this handle.
    ///
    /// # Errors
    /// `INVALID_HANDLE` for an unknown stream.
    pub(crate) fn device(&self, handle: u64) -> HipResult<usize> {
        Ok(self.queue(handle)?.device)
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
        let queue = self.queue(stream)?;
        let (device, is_blocking) = (queue.device, queue.is_blocking());
        let stream = self.number(stream);
        after.extend(self.before_all());
        let order = self.order(stream, is_blocking, &after, &fence);
        after.retain(|fence| !fence.is_done());
        if is_null(stream) {
            after.extend(self.devices[device].blocking.end());
        } else if is_blocking {
            after.extend(self.null_pending(device));
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

    /// Lets all commands that are enqueued from now on wait for what a stream has now.
    ///
    /// # Errors
    /// `INVALID_HANDLE` for an unknown stream.
    pub(crate) fn order_all_behind(&mut self, stream: u64) -> HipResult<()> {
        if let Some(last) = self.queue(stream)?.pending() {
            self.before_all = Some(last);
        }
        let stream = handle_of(self.number(stream));
        if let Some(orders) = &mut self.orders {
            orders.before_all(stream);
        }
        Ok(())
    }

    /// Returns what all commands wait for that are enqueued now.
    fn before_all(&mut self) -> Option<Arc<Fence>> {
        self.before_all.take_if(|fence| fence.is_done());
        self.before_all.clone()
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
            is_blocking && queue.is_blocking() && (is_null(stream) || is_null(**other))
        });
        Some(orders.add(handle_of(stream), others.map(|(other, _)| handle_of(*other)), after, fence))
    }

    /// Executes `work` when everything that is enqueued now is done.
    pub(crate) fn enqueue_after_all(&mut self, work: Work) {
        let mut after = Vec::new();
        // Whoever ends a round of a device has to be of its next one.
        for device in 1..self.devices.len() {
            if let Some(end) = self.devices[device].all.end() {
                let fence = Arc::default();
                after.push(Arc::clone(&fence));
                self.append(of_device(device, HOUSEKEEPING), Command::new(Work::Wait, fence, vec![end]));
            }
        }
        after.extend(self.devices[0].all.end());
        self.append(of_device(0, HOUSEKEEPING), Command::new(work, Arc::default(), after));
    }

    fn append(&mut self, stream: u64, mut command: Command) {
        let Some(queue) = self.queues.get_mut(&stream) else { return };
        self.held.commands += 1;
        self.held.bytes += command.held_bytes;
        let rounds = &mut self.devices[queue.device];
        (command.device, command.round) = (queue.device, rounds.all.join());
        command.blocking_round = (!is_null(stream) && queue.is_blocking()).then(|| rounds.blocking.join());
        queue.tail = Some(Arc::clone(&command.fence));
        if queue.commands.is_empty() {
            self.ready.push_back(stream);
            self.held.streams += u64::from(!is_housekeeping(stream));
        }
        queue.commands.push_back(command);
    }

    /// Returns the fence of the last command of a device's null stream, if it is pending.
    fn null_pending(&self, device: usize) -> Option<Arc<Fence>> {
        self.queues.get(&of_device(device, NULL_STREAM)).and_then(Queue::pending)
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
        if let Some(fence) = self.devices[command.device].all.leave(command.round) {
            watched |= self.complete_fence(&fence);
        }
        let blocking = &mut self.devices[command.device].blocking;
        if let Some(fence) = command.blocking_round.and_then(|round| blocking.leave(round)) {
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
            self.times.end(handle_of(stream), times);
        }
        self.ready.push_back(stream);
        self.note_end(stream);
        self.complete(&command)
    }

    /// Handles that a command of a stream is finished and in its queue no more.
    fn note_end(&mut self, stream: u64) {
        let is_empty = self.queues.get(&stream).is_none_or(|queue| queue.commands.is_empty());
        self.held.streams -= u64::from(is_empty && !is_housekeeping(stream));
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
        for rounds in &mut self.devices {
            for fence in rounds.all.clear().into_iter().chain(rounds.blocking.clear()) {
                fence.complete();
            }
        }
        self.ready.clear();
        self.blocked.clear();
        self.errors = Errors::default();
        self.held = Held::default();
        self.before_all = None;
        records
    }

    /// Returns whether all work of all devices has finished.
    pub(crate) fn wait_for_all(&mut self) -> Wait {
        self.devices.iter_mut().find_map(|rounds| rounds.all.pending()).into()
    }

    /// Returns whether all work that `what` covers has finished. `record` is the event's last record.
    pub(crate) fn wait(&mut self, what: WaitFor, record: Option<&Record>) -> HipResult<Wait> {
        let pending = match what {
            WaitFor::Device => self.devices[self.current].all.pending(),
            WaitFor::Stream(stream) if is_null(self.number(stream)) => return self.wait_turn(stream),
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
            None if is_null(self.number(stream)) => self.devices[self.current].blocking.pending(),
            None if queue.is_blocking() => self.null_pending(queue.device),
            pending => pending,
        };
        let pending = pending.or_else(|| self.before_all());
        let stream = self.number(stream);
        if pending.is_none()
            && let Some(orders) = &mut self.orders
        {
            let is_blocking = self.queues.get(&stream).is_some_and(Queue::is_blocking);
            for (&other, queue) in &self.queues {
                let waits = is_blocking && queue.is_blocking() && (is_null(stream) || is_null(other));
                if other == stream || waits {
                    orders.before_all(handle_of(other));
                }
            }
        }
        Ok(pending.into())
    }

    /// Takes the errors of the work that `what` covers, and returns the first of them.
    pub(crate) fn take_error(&mut self, what: WaitFor, record: Option<&Record>) -> Result<(), Failed> {
        let queues = &self.queues;
        let stream = match what {
            WaitFor::Device => {
                let device = self.current;
                return self
                    .errors
                    .take(|other| queues.get(&other).is_some_and(|queue| queue.device == device));
            }
            WaitFor::Stream(stream) => self.number(stream),
            WaitFor::Event(_) => match record {
                Some(record) => record.stream,
                None => return Ok(()),
            },
        };
        if !is_null(stream) {
            return self.errors.take_of(stream);
        }
        let device = self.device_of(stream);
        self.errors.take(|other| {
            let is_covered = |queue: &Queue| queue.is_blocking() || is_housekeeping(other);
            queues.get(&other).is_some_and(|queue| queue.device == device && is_covered(queue))
        })
    }
}

/// The first unreported error of each stream.
#[derive(Debug, Default)]
struct Errors {
    /// The errors with their numbers, by stream; those of streams that are gone are under the device's [`HOUSEKEEPING`], whose commands do
    /// not fail.
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
    fn forget(&mut self, stream: u64, housekeeping: u64) {
        let Some(gone) = self.of.remove(&stream) else { return };
        if self.of.get(&housekeeping).is_none_or(|first| gone.0 < first.0) {
            self.of.insert(housekeeping, gone);
        }
    }

    fn take_of(&mut self, stream: u64) -> Result<(), Failed> {
        self.of.remove(&stream).map_or(Ok(()), |(_, failed)| Err(failed))
    }

    /// Takes the errors of the streams for which `is_covered` returns true; returns the first.
    fn take(&mut self, is_covered: impl Fn(u64) -> bool) -> Result<(), Failed> {
        let taken = self.of.extract_if(.., |&stream, _| is_covered(stream));
        taken
            .map(|(_, numbered)| numbered)
            .min_by_key(|(number, _)| *number)
            .map_or(Ok(()), |(_, failed)| Err(failed))
    }
}
