//! The threads that do the device's work, shared by all contexts.
//!
//! Work is a [`Job`]: something that can be carried on a little by any thread. Jobs wait in one queue and go back to its end
//! after each turn, so that a kernel that never ends costs others their share of time and nothing else. A job that several
//! threads can work on at once (a grid) is in the queue several times.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Work in turns.
pub(crate) trait Job: Send + Sync {
    /// Works a while (some milliseconds at most). `true` if there is more to do and this entry should be queued again.
    fn turn(&self) -> bool;

    /// The work cannot go on because a turn of it panicked: report that and complete.
    fn abandon(&self);
}

/// Where jobs wait for a thread.
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

    /// The next job; a finished turn's job goes to the end of the queue first. `None` when the device is gone.
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

/// The threads; they end with this.
pub(crate) struct Executors {
    queue: Arc<RunQueue>,
    threads: Vec<JoinHandle<()>>,
}

impl Executors {
    /// Starts `count` threads that work on `queue`. Fewer if the system refuses some, none is an error.
    pub(crate) fn start(queue: &Arc<RunQueue>, count: usize) -> std::io::Result<Self> {
        let mut threads = Vec::with_capacity(count);
        for index in 0..count.max(1) {
            let queue = Arc::clone(queue);
            match std::thread::Builder::new().name(format!("gpu-{index}")).spawn(move || work(&queue)) {
                Ok(thread) => threads.push(thread),
                Err(error) if threads.is_empty() => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, started = threads.len(), wanted = count, "fewer executor threads");
                    break;
                }
            }
        }
        Ok(Self { queue: Arc::clone(queue), threads })
    }

    /// How many threads there are.
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
                tracing::error!("the emulator panicked; the command that it worked on has failed");
                job.abandon();
            }
        }
    }
}

/// Locks a mutex whose data stays meaningful when a thread panicked while holding it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
