//! Functions of the program that run in the order of a stream, `hipLaunchHostFunc` and `hipStreamAddCallback`, and the work behind them.
//!
//! The worker cannot call the program, and the protocol has no way to let it wait for one. So a stream that has a function to call
//! goes on here until the function has returned: what is put on it meanwhile becomes a step of a queue, and a thread for this
//! stream does the steps one after the other; it ends with the last of them. The call that puts work there returns at once, as a function may
//! wait for what the program does next. Only calls that wait for the stream in any case wait for its steps (see
//! [`Callbacks::gate`]).
//!
//! Steps of other streams come before a step as well: where the legacy stream and blocking streams wait for each other, and where a stream
//! waits for an event that is recorded by a step.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use hipr_proto::{HipError, HipResult, op};

use crate::body::stream::is_blocking;
use crate::convert::Event;
use crate::session::{Session, lock};
use crate::state;

/// A function of the program and what it is given. It is told whether the work before it went well, and gives back what the program
/// has not been told.
pub(crate) type Function = Box<dyn FnOnce(HipResult<()>) -> HipResult<()> + Send>;

/// What a call puts on a stream. It does not ask again whether it has to be held.
pub(crate) type Work = Box<dyn FnOnce(&Session) -> HipResult<()> + Send>;

/// The queue of what belongs to no stream and comes behind everything: the end of what steps use.
const NO_STREAM: u64 = u64::MAX;

enum What {
    Function(Function),
    Work(Work),
}

struct Step {
    number: u64,
    /// Steps that come first. Those before it in its own queue do so anyway.
    after: Vec<u64>,
    /// The current device of the thread that put it there.
    device: i32,
    what: What,
}

struct Queue {
    steps: VecDeque<Step>,
    /// The last step that was put here.
    last: u64,
}

#[derive(Default)]
struct State {
    /// By stream. A stream is in here as long as its thread runs.
    queues: HashMap<u64, Queue>,
    /// Steps that are not over.
    unfinished: BTreeSet<u64>,
    /// How many steps there have been.
    count: u64,
    /// The unfinished steps that record events, the last one of each event.
    records: HashMap<Event, u64>,
}

/// What an event has to do with work.
#[derive(Clone, Copy)]
pub(crate) enum Role<'a> {
    /// The work records these.
    Records(&'a [Event]),
    /// The work waits for this one.
    Waits(Event),
}

/// The streams that go on here.
#[derive(Default)]
pub(crate) struct Callbacks {
    state: Mutex<State>,
    /// A step is over.
    finished: Condvar,
    /// Steps that are not over.
    waiting: AtomicUsize,
    /// The first error of a step that nobody was told of; 0 is none.
    failed: AtomicI32,
}

impl core::fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Callbacks").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

thread_local! {
    /// Whether this thread does steps: it must not wait for itself.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether work on a stream has to wait for what was put on another.
fn concerns(session: &Session, stream: u64, other: u64) -> bool {
    if stream == other {
        return true;
    }
    if other == NO_STREAM {
        return false;
    }
    (stream == 0 && is_blocking(session, other)) || (other == 0 && is_blocking(session, stream))
}

impl State {
    /// The steps that work on `stream` comes behind.
    fn behind(&self, session: &Session, stream: u64) -> Vec<u64> {
        let queues = self.queues.iter().filter(|(other, _)| concerns(session, stream, **other));
        queues.map(|(_, queue)| queue.last).collect()
    }

    /// All steps.
    fn all(&self) -> Vec<u64> {
        self.queues.values().map(|queue| queue.last).collect()
    }

    fn are_over(&self, steps: &[u64]) -> bool {
        !steps.iter().any(|step| self.unfinished.contains(step))
    }
}

impl Step {
    fn run(self, session: &Session, stream: u64) -> HipResult<()> {
        state::set_device(self.device);
        match self.what {
            What::Function(function) => {
                // Whatever comes behind the function is still here: all that the stream has comes before it.
                let wait = || session.ask(&op::StreamSynchronize { stream });
                function(session.mirrors().wait_stream(session, stream, wait))
            }
            What::Work(work) => work(session),
        }
    }
}

impl Callbacks {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Calls `function` behind the work that `stream` has now.
    ///
    /// # Errors
    /// `hipErrorOperatingSystem`: there can be no thread for it.
    pub(crate) fn add(&self, session: &Session, stream: u64, function: Function) -> HipResult<()> {
        let mut state = self.state();
        let after = state.behind(session, stream);
        self.push(&mut state, stream, after, What::Function(function)).map(drop)
    }

    /// Holds work back that comes behind functions which have not returned. `false`: it does not, and is to be done now.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub(crate) fn hold(
        &self,
        session: &Session,
        stream: u64,
        role: Role<'_>,
        work: impl FnOnce() -> Work,
    ) -> HipResult<bool> {
        if self.waiting.load(Ordering::Acquire) == 0 {
            return Ok(false);
        }
        let mut state = self.state();
        let mut after = state.behind(session, stream);
        let (records, waits) = match &role {
            Role::Records(events) => (*events, *events),
            Role::Waits(event) => (&[][..], core::slice::from_ref(event)),
        };
        after.extend(waits.iter().filter_map(|event| state.records.get(event)));
        if state.are_over(&after) {
            return Ok(false);
        }
        let number = self.push(&mut state, stream, after, What::Work(work()))?;
        state.records.extend(records.iter().map(|event| (*event, number)));
        Ok(true)
    }

    /// Does something in the order of a stream: now, or behind functions that have not returned, as [`hold`](Self::hold).
    ///
    /// # Errors
    /// As [`add`](Self::add), and those of `work` if it is done now.
    pub(crate) fn in_order(
        &self,
        session: &Session,
        stream: u64,
        role: Role<'_>,
        work: impl FnOnce(&Session) -> HipResult<()> + Copy + Send + 'static,
    ) -> HipResult<()> {
        if self.hold(session, stream, role, || Box::new(work))? { Ok(()) } else { work(session) }
    }

    /// Does something that must come behind all that is held back: the end of what that may use.
    ///
    /// # Errors
    /// As [`add`](Self::add), and those of `work`.
    pub(crate) fn after_all(
        &self,
        session: &Session,
        work: impl FnOnce(&Session) -> HipResult<()> + Send + 'static,
    ) -> HipResult<()> {
        if self.waiting.load(Ordering::Acquire) > 0 {
            let mut state = self.state();
            let after = state.all();
            if !after.is_empty() {
                return self.push(&mut state, NO_STREAM, after, What::Work(Box::new(work))).map(drop);
            }
        }
        work(session)
    }

    /// Puts a step at the end of a queue; its number.
    fn push(&self, state: &mut State, stream: u64, after: Vec<u64>, what: What) -> HipResult<u64> {
        let number = state.count;
        let step = Step { number, after, device: state::device(), what };
        match state.queues.get_mut(&stream) {
            Some(queue) => {
                queue.steps.push_back(step);
                queue.last = number;
            }
            None => {
                let session = state::session()?;
                let thread = thread::Builder::new().name("hipr-host-func".to_owned());
                thread.spawn(move || session.callbacks().run(session, stream)).map_err(|error| {
                    tracing::error!("no thread to call a host function: {error}");
                    HipError::OPERATING_SYSTEM
                })?;
                state.queues.insert(stream, Queue { steps: VecDeque::from([step]), last: number });
            }
        }
        state.count += 1;
        state.unfinished.insert(number);
        self.waiting.fetch_add(1, Ordering::AcqRel);
        Ok(number)
    }

    fn run(&self, session: &Session, stream: u64) {
        INSIDE.set(true);
        let mut state = self.state();
        while let Some(queue) = state.queues.get(&stream) {
            let Some(next) = queue.steps.front() else {
                state.queues.remove(&stream);
                break;
            };
            if !state.are_over(&next.after) {
                state = self.finished.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let Some(step) = state.queues.get_mut(&stream).and_then(|queue| queue.steps.pop_front()) else {
                continue;
            };
            drop(state);
            let number = step.number;
            // A function that unwinds must not leave the stream blocked for ever.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| step.run(session, stream)));
            match done {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    let _ = self.failed.compare_exchange(0, error.0, Ordering::AcqRel, Ordering::Acquire);
                }
                Err(_) => tracing::error!("a host function did not return"),
            }
            state = self.state();
            state.unfinished.remove(&number);
            state.records.retain(|_, step| *step != number);
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            self.finished.notify_all();
        }
    }

    /// Waits for the steps that work on `stream` comes behind.
    ///
    /// # Errors
    /// What a step failed with; it is told once.
    pub(crate) fn gate(&self, session: &Session, stream: u64) -> HipResult<()> {
        self.wait_for(|state| state.behind(session, stream));
        self.take_error()
    }

    /// Waits for all steps.
    ///
    /// # Errors
    /// As [`gate`](Self::gate).
    pub(crate) fn gate_all(&self) -> HipResult<()> {
        self.wait_for(State::all);
        self.take_error()
    }

    /// Waits until an event that a step records has been recorded.
    pub(crate) fn gate_event(&self, event: Event) {
        self.wait_for(|state| state.records.get(&event).copied().into_iter().collect());
    }

    /// Whether work on `stream` would be held back.
    pub(crate) fn is_waiting(&self, session: &Session, stream: u64) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
            && self.state().queues.keys().any(|other| concerns(session, stream, *other))
    }

    /// Whether an event is yet to be recorded by a step.
    pub(crate) fn is_to_be_recorded(&self, event: Event) -> bool {
        self.waiting.load(Ordering::Acquire) > 0 && self.state().records.contains_key(&event)
    }

    fn take_error(&self) -> HipResult<()> {
        match self.failed.load(Ordering::Acquire) {
            0 => Ok(()),
            _ => match self.failed.swap(0, Ordering::AcqRel) {
                0 => Ok(()),
                error => Err(HipError(error)),
            },
        }
    }

    /// Waits for steps that were put there before; those that come meanwhile do not prolong it.
    fn wait_for(&self, steps: impl FnOnce(&State) -> Vec<u64>) {
        if self.waiting.load(Ordering::Acquire) == 0 || INSIDE.get() {
            return;
        }
        let mut state = self.state();
        let steps = steps(&state);
        while !state.are_over(&steps) {
            state = self.finished.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
