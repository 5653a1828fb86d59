//! Host functions in stream order (`hipLaunchHostFunc`, `hipStreamAddCallback`), and the commands queued behind them.
//!
//! The worker cannot call the program, and the protocol has no way to let it wait for one. So a stream that has a function to call
//! goes on here until the function has returned: the function and the commands that are put on it meanwhile become the steps of a queue,
//! and a thread for this stream executes the steps one after the other; it ends with the last of them. The call that puts a step there
//! returns at once, as a function may wait for what the program does next. Only calls that wait for the stream in any case wait for its
//! steps.
//!
//! A wait for a value in memory (`hipStreamWaitValue32`) is a step, too: it is this process that looks at the value. So are fills and copies
//! of memory that the worker does not have, behind work that may not be over, and commands that concern another worker (`across`).
//!
//! Steps of other streams come before a step as well: where the legacy stream and blocking streams wait for each other, and where a stream
//! waits for an event that is recorded by a step.
//!
//! This file starts no thread and calls no function: [`HostFunctions::next`] says what the thread of a stream does next, and
//! [`HostFunctions::finished`] is told when it has.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use hipr_proto::{HipError, HipResult};

use super::Caller;
use super::order::Order;
use crate::command::Command;
use crate::convert::Event;
use crate::worker::lock;

/// The queue of commands that belong to no stream and follow everything queued, such as destroying what they use.
pub const NO_STREAM: u64 = u64::MAX;

/// A step of a queue: the command that calls a host function, or one behind it.
#[derive(Debug)]
pub struct QueuedCommand {
    /// Unique number of the step.
    pub number: u64,
    /// The device that was current in the calling thread.
    pub device: i32,
    /// The call that has queued it.
    pub call: u64,
    /// The work of the step.
    pub command: Command,
    /// The stream on which the command takes effect.
    pub stream: u64,
    /// Steps of other queues that have to finish first.
    after: Vec<u64>,
}

#[derive(Debug)]
struct Queue {
    steps: VecDeque<QueuedCommand>,
    /// The last step queued.
    last: u64,
}

#[derive(Debug, Default)]
struct State {
    /// Queues by stream; a stream has one while its thread runs.
    queues: HashMap<u64, Queue>,
    /// Unfinished steps.
    unfinished: BTreeSet<u64>,
    /// Number of steps ever queued.
    count: u64,
    /// For each event, the last unfinished step that records it.
    records: HashMap<Event, u64>,
    /// For each event, the steps that let a stream wait for it and have not been sent.
    awaits: HashMap<Event, Vec<u64>>,
}

/// The next action of a queue's thread.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub enum Next {
    /// Execute a step, then call [`HostFunctions::finished`].
    Run(QueuedCommand),
    /// Wait until a step of another stream has finished.
    Wait,
    /// End the thread: the queue is empty.
    End,
}

/// Starts threads that execute steps.
pub trait Threads {
    /// Starts the thread of a queue, which calls [`HostFunctions::next`] until it returns [`Next::End`].
    ///
    /// # Errors
    /// `hipErrorOperatingSystem`: there can be no thread.
    fn start(&self, queue: u64) -> HipResult<()>;
}

/// The queues of streams whose host functions have not returned.
#[derive(Debug, Default)]
pub struct HostFunctions {
    state: Mutex<State>,
    /// Signalled when a step has finished.
    changed: Condvar,
    /// Number of unfinished steps.
    waiting: AtomicUsize,
    /// The first error of a step that no call has reported; 0 if there is none.
    failed: AtomicI32,
}

impl State {
    /// Returns the last steps of the streams for which `is_meant`, unless they have finished.
    fn last_of(&self, is_meant: impl Fn(u64) -> bool) -> Vec<u64> {
        let queues = self.queues.iter().filter(|(other, _)| **other != NO_STREAM && is_meant(**other));
        queues.map(|(_, queue)| queue.last).filter(|last| self.unfinished.contains(last)).collect()
    }

    /// Returns the steps that new work on `stream` has to follow.
    fn behind(&self, order: &Order, stream: u64) -> Vec<u64> {
        self.last_of(|other| order.is_behind(stream, other))
    }

    /// Returns the steps that a wait for `stream` includes. Steps of the legacy stream do not count for another one, unless that has
    /// work behind them, which is a step of its own then.
    fn included(&self, order: &Order, stream: u64) -> Vec<u64> {
        self.last_of(|other| order.includes(stream, other))
    }

    fn are_over(&self, steps: &[u64]) -> bool {
        !steps.iter().any(|step| self.unfinished.contains(step))
    }
}

impl HostFunctions {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Returns whether no steps are queued.
    pub fn is_idle(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }

    /// Queues a host function, or another command that this process carries out, behind the work that `stream` has now.
    ///
    /// # Errors
    /// `hipErrorOperatingSystem`: there can be no thread for it.
    pub(super) fn add(
        &self,
        order: &Order,
        caller: &Caller<'_>,
        stream: u64,
        command: Command,
    ) -> HipResult<()> {
        let mut state = self.state();
        let mut after = state.behind(order, stream);
        let awaits = command.awaits();
        after.extend(awaits.and_then(|event| state.records.get(&event)));
        let number = self.push(&mut state, caller, stream, stream, command, after)?;
        if let Some(event) = awaits {
            state.awaits.entry(event).or_default().push(number);
        }
        Ok(())
    }

    /// Queues a command if it has to follow unfinished host functions, or a step that records one of the events; otherwise returns false,
    /// and the caller executes it now. The command lets its stream wait for `awaits`, and records `records`.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub(super) fn hold(
        &self,
        order: &Order,
        caller: &Caller<'_>,
        stream: u64,
        command: impl FnOnce() -> Command,
        awaits: Option<Event>,
        records: &[Event],
    ) -> HipResult<bool> {
        if self.is_idle() {
            return Ok(false);
        }
        let mut state = self.state();
        let mut after = state.behind(order, stream);
        after.extend(awaits.iter().chain(records).filter_map(|event| state.records.get(event)));
        if state.are_over(&after) {
            return Ok(false);
        }
        let number = self.push(&mut state, caller, stream, stream, command(), after)?;
        state.records.extend(records.iter().map(|event| (*event, number)));
        if let Some(event) = awaits {
            state.awaits.entry(event).or_default().push(number);
        }
        Ok(true)
    }

    /// Queues a command behind everything queued, such as one that destroys what queued work may use; returns false if nothing is
    /// queued.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub(super) fn hold_behind_all(
        &self,
        caller: &Caller<'_>,
        stream: u64,
        command: impl FnOnce() -> Command,
    ) -> HipResult<bool> {
        if self.is_idle() {
            return Ok(false);
        }
        let mut state = self.state();
        let after: Vec<u64> = state.queues.values().map(|queue| queue.last).collect();
        if after.is_empty() {
            return Ok(false);
        }
        self.push(&mut state, caller, NO_STREAM, stream, command(), after).map(|_| true)
    }

    /// Appends a command that takes effect on `stream` to a queue, behind the steps `after`; returns its number.
    fn push(
        &self,
        state: &mut State,
        caller: &Caller<'_>,
        queue: u64,
        stream: u64,
        command: Command,
        after: Vec<u64>,
    ) -> HipResult<u64> {
        let number = state.count;
        let step = QueuedCommand { number, device: caller.device, call: caller.call, command, stream, after };
        match state.queues.get_mut(&queue) {
            Some(queue) => {
                queue.steps.push_back(step);
                queue.last = number;
            }
            None => {
                caller.threads.start(queue)?;
                state.queues.insert(queue, Queue { steps: VecDeque::from([step]), last: number });
            }
        }
        state.count += 1;
        state.unfinished.insert(number);
        self.waiting.fetch_add(1, Ordering::AcqRel);
        Ok(number)
    }

    /// Returns the next action of a queue's thread.
    pub fn next(&self, queue: u64) -> Next {
        self.next_of(&mut self.state(), queue)
    }

    fn next_of(&self, state: &mut State, queue: u64) -> Next {
        let Some(Queue { steps, .. }) = state.queues.get(&queue) else { return Next::End };
        let Some(next) = steps.front() else {
            state.queues.remove(&queue);
            return Next::End;
        };
        if !state.are_over(&next.after) {
            return Next::Wait;
        }
        let step = state.queues.get_mut(&queue).and_then(|queue| queue.steps.pop_front());
        step.map_or(Next::End, Next::Run)
    }

    /// Notes that a step has finished; its error is reported to the next call that waits.
    pub fn finished(&self, number: u64, result: HipResult<()>) {
        if let Err(error) = result {
            let _ = self.failed.compare_exchange(0, error.0, Ordering::AcqRel, Ordering::Acquire);
        }
        let mut state = self.state();
        state.unfinished.remove(&number);
        state.records.retain(|_, step| *step != number);
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        self.changed.notify_all();
    }

    /// Waits until a queue's thread has a step to execute, and returns it; returns None at the end. For real threads.
    pub(crate) fn wait_for_next(&self, queue: u64) -> Option<QueuedCommand> {
        let mut state = self.state();
        loop {
            match self.next_of(&mut state, queue) {
                Next::Run(step) => return Some(step),
                Next::End => return None,
                Next::Wait => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Waits until these steps have finished. For real threads.
    pub(crate) fn wait_for(&self, steps: &[u64]) {
        let mut state = self.state();
        while !state.are_over(steps) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns whether these steps have finished.
    pub fn are_over(&self, steps: &[u64]) -> bool {
        self.state().are_over(steps)
    }

    /// Returns the steps that a call has to wait for whose work follows them on `stream`; steps queued later do not count.
    pub(super) fn behind(&self, order: &Order, stream: u64) -> Vec<u64> {
        if self.is_idle() { Vec::new() } else { self.state().behind(order, stream) }
    }

    /// Returns the steps that a call has to wait for which waits for the work of `stream`; steps queued later do not count.
    pub(super) fn included(&self, order: &Order, stream: u64) -> Vec<u64> {
        if self.is_idle() { Vec::new() } else { self.state().included(order, stream) }
    }

    /// Returns the last steps of all queues.
    pub fn all(&self) -> Vec<u64> {
        if self.is_idle() {
            Vec::new()
        } else {
            self.state().queues.values().map(|queue| queue.last).collect()
        }
    }

    /// Returns the last steps of the queues of a device's streams. What belongs to no stream comes behind those of all devices, so that it
    /// is among them only where no other device has any.
    pub(super) fn all_of(&self, order: &Order, device: i32) -> Vec<u64> {
        if self.is_idle() {
            return Vec::new();
        }
        let state = self.state();
        let is_own = |stream: u64| stream == NO_STREAM || order.device_of(stream) == device;
        let is_alone = state.queues.keys().all(|stream| is_own(*stream));
        let meant =
            state.queues.iter().filter(|(stream, _)| is_own(**stream) && (is_alone || **stream != NO_STREAM));
        meant.map(|(_, queue)| queue.last).collect()
    }

    /// Returns the unfinished step that records an event, if there is one.
    pub(super) fn recording(&self, event: Event) -> Vec<u64> {
        if self.is_idle() {
            return Vec::new();
        }
        self.state().records.get(&event).copied().into_iter().collect()
    }

    /// Returns the steps that let a stream wait for an event and have not been sent; only those that were queued before the step `before`,
    /// if there is one.
    pub(super) fn awaiting(&self, event: Event, before: Option<u64>) -> Vec<u64> {
        let state = self.state();
        let steps = state.awaits.get(&event).into_iter().flatten();
        steps.copied().filter(|step| before.is_none_or(|before| *step < before)).collect()
    }

    /// Notes that a step which lets a stream wait for an event has been sent, or waits for another one instead.
    pub(super) fn awaits_no_more(&self, event: Event, step: u64) {
        let mut state = self.state();
        if let Some(steps) = state.awaits.get_mut(&event) {
            steps.retain(|other| *other != step);
            if steps.is_empty() {
                state.awaits.remove(&event);
            }
        }
    }

    /// Returns whether new work on a stream has to follow queued commands.
    pub(super) fn is_busy(&self, order: &Order, stream: u64) -> bool {
        !self.behind(order, stream).is_empty()
    }

    /// Returns whether an unfinished step records an event.
    pub fn is_to_be_recorded(&self, event: Event) -> bool {
        !self.is_idle() && self.state().records.contains_key(&event)
    }

    /// Returns the first error of a step that no call has reported, and clears it.
    ///
    /// # Errors
    /// That error.
    pub fn take_error(&self) -> HipResult<()> {
        match self.failed.load(Ordering::Acquire) {
            0 => Ok(()),
            _ => match self.failed.swap(0, Ordering::AcqRel) {
                0 => Ok(()),
                error => Err(HipError(error)),
            },
        }
    }
}
