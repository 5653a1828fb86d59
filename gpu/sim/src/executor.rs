//! The threads that execute the device's work, shared by all contexts.
//!
//! Work is a [`Job`]: something that can be carried on a little by any thread. Jobs wait in one queue and go back to its end
//! after each turn, so that a kernel that never ends costs others their share of time and nothing else. A job that several
//! threads can work on at once (a grid) is in the queue several times.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Work that is done in turns.
pub(crate) trait Job: Send + Sync {
    /// Works for at most some milliseconds; returns true if there is more to do, so that this entry is queued again.
    fn turn(&self) -> bool;

    /// Ends the work with an error, because a turn panicked.
    fn abandon(&self);
}

/// The queue of jobs that wait for a thread.
#[derive(Default)]
pub(crate) struct RunQueue {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Arc<dyn Job>>,
    stopped: bool,
}

impl RunQueue {
    /// Queues `job` `entries` times.
    pub(crate) fn push(&self, job: &Arc<dyn Job>, entries: usize) {
        let mut state = lock(&self.state);
        if state.stopped {
            return;
        }
        state.jobs.extend(std::iter::repeat_n(job, entries).map(Arc::clone));
        drop(state);
        if entries == 1 {
            self.wake.notify_one();
        } else {
            self.wake.notify_all();
        }
    }

    fn stop(&self) {
        let mut state = lock(&self.state);
        state.stopped = true;
        let jobs = std::mem::take(&mut state.jobs);
        drop(state);
        self.wake.notify_all();
        drop(jobs);
    }

    /// Returns the next job, after queueing the job of a finished turn again; `None` when the device ends.
    fn next(&self, again: Option<Arc<dyn Job>>) -> Option<Arc<dyn Job>> {
        let mut state = lock(&self.state);
        if !state.stopped {
            state.jobs.extend(again);
        }
        loop {
            if state.stopped {
                return None;
            }
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The executor threads, which end when this is dropped.
pub(crate) struct Executors {
    queue: Arc<RunQueue>,
    threads: Vec<JoinHandle<()>>,
}

impl Executors {
    /// Starts `count` threads for `queue`, or fewer if the system refuses some; fails if there is none.
    pub(crate) fn start(queue: &Arc<RunQueue>, count: usize) -> std::io::Result<Self> {
        let mut threads = Vec::with_capacity(count);
        for index in 0..count.max(1) {
            let queue = Arc::clone(queue);
            match std::thread::Builder::new().name(format!("gpu-{index}")).spawn(move || work(&queue)) {
                Ok(thread) => threads.push(thread),
                Err(error) if threads.is_empty() => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, started = threads.len(), wanted = count, "started fewer executor threads than wanted");
                    break;
                }
            }
        }
        Ok(Self { queue: Arc::clone(queue), threads })
    }

    /// Returns the number of threads.
    pub(crate) fn count(&self) -> usize {
        self.threads.len()
    }
}

impl Drop for Executors {
    fn drop(&mut self) {
        self.queue.stop();
        let current = std::thread::current().id();
        for thread in self.threads.drain(..).filter(|thread| thread.thread().id() != current) {
            // A panic of the thread was reported when it happened.
            let _ = thread.join();
        }
    }
}

fn work(queue: &RunQueue) {
    let mut again = None;
    while let Some(job) = queue.next(again.take()) {
        match catch_unwind(AssertUnwindSafe(|| job.turn())) {
            Ok(true) => again = Some(job),
            Ok(false) => {}
            Err(_) => {
                tracing::error!("the emulator panicked; failing the current command");
                job.abandon();
            }
        }
    }
}

/// Locks a mutex whose data stays meaningful when a thread panicked while holding it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
