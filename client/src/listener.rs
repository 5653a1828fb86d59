//! A thread that hears what the worker says while no thread of the program waits for a reply.
//!
//! Whoever waits for a reply reads, and hears notifications on the way. A program that computes for a while waits for nothing, and an
//! answer to the worker may be due all the same: then this thread reads. It keeps out of the way of a program that makes calls: it
//! begins to read only when nobody has read for [`IDLE`], and stops when a message has come. It also gives the answers, because whoever
//! reads may not wait for a lock that a thread has while it sends.

use std::sync::{Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

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

type Answer = Box<dyn Fn(u64) + Send + Sync>;

/// What is to be answered, and by whom.
#[derive(Default)]
pub(crate) struct Listener {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The number of the recall that is to be answered.
    recall: Option<u64>,
    answer: Option<std::sync::Arc<Answer>>,
    has_ended: bool,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

impl Listener {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the thread, which calls `answer` with the number of each recall. Has no effect the second time.
    pub(crate) fn start(&self, connection: Weak<impl Heard>, answer: Answer) {
        let mut state = self.state();
        if state.answer.is_some() {
            return;
        }
        state.answer = Some(std::sync::Arc::new(answer));
        drop(state);
        if let Err(error) = crate::flusher::spawn("hipr-listen", move || run(&connection)) {
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
    fn answer_or_sleep(&self) -> bool {
        let mut state = self.state();
        if state.recall.is_none() && !state.has_ended {
            state = self.changed.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.has_ended {
            return false;
        }
        if let (Some(number), Some(answer)) = (state.recall.take(), state.answer.clone()) {
            drop(state);
            answer(number);
        }
        true
    }
}

fn run(connection: &Weak<impl Heard>) {
    let mut reads = 0;
    while let Some(connection) = connection.upgrade() {
        if !connection.listener().answer_or_sleep() {
            return;
        }
        let is_idle = std::mem::replace(&mut reads, connection.reads()) == reads;
        if is_idle && !connection.listen() {
            return;
        }
    }
}
