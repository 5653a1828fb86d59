//! Functions of the program that run in the order of a stream: `hipLaunchHostFunc`, `hipStreamAddCallback`.
//!
//! The worker cannot call the program. A thread here waits for the work before the function and then calls it; there is one
//! such thread per stream that has functions to call, and it ends with the last of them. Work that is put on the stream
//! behind the function has to wait for it: the call that puts it there waits (see [`Callbacks::gate`]), since the
//! protocol has no way to let the worker do so.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use hipr_proto::{HipError, HipResult, op};

use crate::session::{Session, lock};
use crate::state;

/// A function of the program and what it is given; told whether the work before it went well.
pub(crate) type Function = Box<dyn FnOnce(HipResult<()>) + Send>;

struct Task {
    /// Recorded behind the work that the function waits for.
    event: u64,
    device: i32,
    function: Function,
}

#[derive(Default)]
struct State {
    /// What is to be called, by stream. A stream is in here as long as its thread runs.
    queues: HashMap<u64, VecDeque<Task>>,
    /// Events that can be used again.
    events: Vec<u64>,
}

/// The functions that wait for their streams.
#[derive(Default)]
pub(crate) struct Callbacks {
    state: Mutex<State>,
    /// A function has returned.
    returned: Condvar,
    /// Functions that have not returned.
    waiting: AtomicUsize,
}

impl core::fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Callbacks").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

thread_local! {
    /// Whether this thread is in a function of the program's: it must not wait for itself.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Which streams work on a stream has to wait for.
fn concerns(session: &Session, stream: u64, other: u64) -> bool {
    if stream == other {
        return true;
    }
    // The legacy stream and blocking streams wait for each other.
    let is_blocking = |stream: u64| {
        let info = session.streams().get(&crate::convert::Stream::from_wire(stream)).copied();
        info.is_none_or(|info| info.flags == 0)
    };
    (stream == 0 && is_blocking(other)) || (other == 0 && is_blocking(stream))
}

impl Callbacks {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Calls `function` behind the work that `stream` has now.
    ///
    /// # Errors
    /// What the worker says.
    pub(crate) fn add(&self, session: &'static Session, stream: u64, function: Function) -> HipResult<()> {
        let known = self.state().events.pop();
        let event = match known {
            Some(event) => event,
            // hipEventDisableTiming.
            None => session.ask(&op::EventCreate { flags: 2 })?.event,
        };
        session.mirrors().event_recorded(session, event, stream);
        session.tell(&op::EventRecord { event, stream })?;
        let task = Task { event, device: state::device(), function };
        let mut all = self.state();
        self.waiting.fetch_add(1, Ordering::AcqRel);
        if let Some(queue) = all.queues.get_mut(&stream) {
            queue.push_back(task);
            return Ok(());
        }
        all.queues.insert(stream, VecDeque::from([task]));
        drop(all);
        let thread = thread::Builder::new().name("hipr-host-func".to_owned());
        thread.spawn(move || session.callbacks().run(session, stream)).map(drop).map_err(|error| {
            tracing::error!("no thread to call a host function: {error}");
            let lost = self.state().queues.remove(&stream).map_or(0, |queue| queue.len());
            self.waiting.fetch_sub(lost, Ordering::AcqRel);
            self.returned.notify_all();
            HipError::OPERATING_SYSTEM
        })
    }

    fn run(&self, session: &Session, stream: u64) {
        INSIDE.set(true);
        loop {
            let task = {
                let mut all = self.state();
                match all.queues.get_mut(&stream).and_then(VecDeque::pop_front) {
                    Some(task) => task,
                    None => {
                        all.queues.remove(&stream);
                        return;
                    }
                }
            };
            state::set_device(task.device);
            let event = task.event;
            let happens = || session.ask(&op::EventSynchronize { event });
            let waited = session.mirrors().wait_event(session, event, happens);
            // A function that unwinds must not leave the stream blocked for ever.
            let called = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (task.function)(waited)));
            if called.is_err() {
                tracing::error!("a host function did not return");
            }
            let mut all = self.state();
            all.events.push(task.event);
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            if all.queues.get(&stream).is_some_and(VecDeque::is_empty) {
                all.queues.remove(&stream);
                self.returned.notify_all();
                return;
            }
            self.returned.notify_all();
        }
    }

    /// Waits until the functions have returned that work on `stream` has to come after.
    pub(crate) fn gate(&self, session: &Session, stream: u64) {
        self.wait_while(|state| state.queues.keys().any(|other| concerns(session, stream, *other)));
    }

    /// Waits until all functions have returned.
    pub(crate) fn gate_all(&self) {
        self.wait_while(|state| !state.queues.is_empty());
    }

    /// Whether functions that belong to `stream` have not returned.
    pub(crate) fn is_waiting(&self, session: &Session, stream: u64) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
            && self.state().queues.keys().any(|other| concerns(session, stream, *other))
    }

    fn wait_while(&self, is_busy: impl Fn(&State) -> bool) {
        if self.waiting.load(Ordering::Acquire) == 0 || INSIDE.get() {
            return;
        }
        let mut state = self.state();
        while is_busy(&state) {
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
