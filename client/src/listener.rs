//! A thread that hears what the worker says while no thread of the program waits for a reply.
//!
//! Whoever waits for a reply reads, and hears notifications on the way. A program that computes for a while waits for nothing, and an
//! answer to the worker may be due all the same: then this thread reads. It keeps out of the way of a program that makes calls: it
//! begins to read only when nobody has read for [`IDLE`], and stops when a message has come. It also gives the answers, because whoever
//! reads may not wait for a lock that a thread has while it sends.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::flusher;

/// Time without a read after which the thread reads.
const IDLE: Duration = Duration::from_millis(20);

/// A connection that the thread listens to.
pub(crate) trait Heard: Send + Sync + 'static {
    /// Returns the listener.
    fn listener(&self) -> &Listener;
    /// Returns the number of times that a thread has begun to read.
    fn reads(&self) -> u64;
    /// Reads once, unless another thread reads; returns false when the connection is of no more use.
    fn listen(&self) -> bool;
}

/// What is to be answered.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the recall that is to be answered.
    recall: Option<u64>,
    has_started: bool,
    has_ended: bool,
}

impl Listener {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the thread, which calls `answer` with the number of each recall. Has no effect the second time.
    pub(crate) fn start(&self, connection: Weak<impl Heard>, answer: impl Fn(u64) + Send + 'static) {
        if std::mem::replace(&mut self.state().has_started, true) {
            return;
        }
        if let Err(error) = flusher::spawn("hipr-listen", move || run(&connection, &answer)) {
            tracing::warn!(
                "cannot start a thread that hears the worker: {error}; other sessions may wait for memory"
            );
        }
    }

    /// Notes that a recall is to be answered. Never waits.
    pub(crate) fn recall(&self, number: u64) {
        self.state().recall = Some(number);
        self.changed.notify_one();
    }

    /// Tells the thread to end.
    pub(crate) fn end(&self) {
        self.state().has_ended = true;
        self.changed.notify_all();
    }

    /// Answers a recall if there is one; otherwise sleeps for a while. Returns false when the thread has to end.
    fn answer_or_sleep(&self, answer: &impl Fn(u64)) -> bool {
        let mut state = self.state();
        if state.recall.is_none() && !state.has_ended {
            state = self.changed.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.has_ended {
            return false;
        }
        if let Some(number) = state.recall.take() {
            drop(state);
            answer(number);
        }
        true
    }
}

fn run(connection: &Weak<impl Heard>, answer: &impl Fn(u64)) {
    let mut reads = 0;
    while let Some(connection) = connection.upgrade() {
        if !connection.listener().answer_or_sleep(answer) {
            return;
        }
        let is_idle = std::mem::replace(&mut reads, connection.reads()) == reads;
        if is_idle && !connection.listen() {
            return;
        }
    }
}
