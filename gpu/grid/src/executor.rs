//! The threads that execute a device's work, shared by all who have some.
//!
//! Work is a [`Job`]: something that can be carried on a little by any thread. Jobs wait in one queue, in which tenants get time by their
//! weights, of a tenant's time its sessions the same, and of a session's time its streams, and go back there after each turn: so a kernel
//! that never ends costs others their share of time and nothing else, and so do a thousand of them in one session. A job that several threads can work on at once (a grid) is in
//! the queue several times.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::fair::{self, Fair};
use crate::gate::Gate;

/// Whose work a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Whose time it is first of all.
    pub tenant: u64,
    /// How much time the tenant gets in relation to others.
    pub weight: u32,
    /// The session, or context, of the tenant; at most `u64::MAX - 2`.
    pub session: u64,
    /// The stream, or queue, of the session.
    pub stream: u64,
}

/// Work that is done in turns.
pub trait Job: Send + Sync {
    /// Returns whose time it takes.
    fn owner(&self) -> Owner;

    /// Works for at most some milliseconds, and not for long if [`RunQueue::others_wait`]; returns true if there is more to do, so that
    /// this entry is queued again.
    fn turn(&self) -> bool;

    /// Returns the number of instructions that were executed for it so far.
    fn executed(&self) -> u64 {
        0
    }

    /// Notes that a turn has taken so long. What is nobody's work notes nothing.
    fn note_time(&self, _taken_ns: u64) {}

    /// Ends the work with an error, because a turn panicked.
    fn abandon(&self);
}

/// The queue of jobs that wait for a thread.
pub struct RunQueue {
    state: Mutex<State>,
    wake: Condvar,
    /// The sessions whose jobs wait, as [`Fair::waiting`] says it.
    waiting: AtomicU64,
    /// Who lets the threads work; `None` if no other process wants the processors.
    gate: Option<Arc<dyn Gate>>,
}

/// The jobs of a session, by stream.
type Streams = Fair<VecDeque<Arc<dyn Job>>>;

#[derive(Default)]
struct State {
    /// By tenant, then by session.
    jobs: Fair<Fair<Streams>>,
    stopped: bool,
    /// Number of threads that sleep, and of those that were woken and do not know it yet.
    asleep: usize,
    woken: usize,
}

impl State {
    fn push(&mut self, job: &Arc<dyn Job>, entries: usize) {
        let Owner { tenant, weight, session, stream } = job.owner();
        let entries = std::iter::repeat_n(job, entries).map(Arc::clone);
        self.jobs.add(tenant, weight, |sessions| {
            sessions.add(session, 1, |streams| streams.add(stream, 1, |jobs| jobs.extend(entries)));
        });
    }

    fn pop(&mut self) -> Option<Arc<dyn Job>> {
        self.jobs.begin(|sessions| {
            let job = sessions.begin(|streams| {
                let job = streams.begin(|jobs| (jobs.pop_front(), !jobs.is_empty()));
                (job, !streams.is_empty())
            });
            (job, !sessions.is_empty())
        })
    }

    /// Returns how many threads have to be woken for so many entries.
    fn wake(&mut self, entries: usize) -> usize {
        let count = entries.min(self.asleep.saturating_sub(self.woken));
        self.woken += count;
        count
    }

    fn charge(&mut self, Owner { tenant, session, stream, .. }: Owner, taken_ns: u64) {
        self.jobs.charge(tenant, taken_ns, |sessions| {
            sessions.charge(session, taken_ns, |streams| streams.charge(stream, taken_ns, |_| ()));
        });
    }
}

impl Default for RunQueue {
    fn default() -> Self {
        Self::new(None)
    }
}

impl RunQueue {
    /// Creates a queue without jobs, whose threads work when `gate` lets them, or at any time.
    pub fn new(gate: Option<Arc<dyn Gate>>) -> Self {
        let state = State::default();
        let waiting = AtomicU64::new(state.jobs.waiting());
        Self { state: Mutex::new(state), wake: Condvar::new(), waiting, gate }
    }

    /// Queues `job` `entries` times: so many threads may work on it at once. A queue whose [`Executors`] have ended takes nothing.
    pub fn push(&self, job: &Arc<dyn Job>, entries: usize) {
        self.push_with(job, entries, entries);
    }

    /// Queues `job` as [`push`](Self::push) does, from a job's turn that is about to end: the thread takes an entry next, so that none is woken
    /// for that. Other threads may call it, too.
    pub fn push_next(&self, job: &Arc<dyn Job>, entries: usize) {
        let keeps = KEEPS.with(|keeps| {
            let may_keep = keeps.get() == Keeps::None(std::ptr::from_ref(self));
            if may_keep {
                keeps.set(Keeps::One);
            }
            usize::from(may_keep)
        });
        self.push_with(job, entries, entries.saturating_sub(keeps));
    }

    /// Queues `job`, and wakes threads for so many of its entries.
    fn push_with(&self, job: &Arc<dyn Job>, entries: usize, awake: usize) {
        let mut state = lock(&self.state);
        if state.stopped {
            return;
        }
        state.push(job, entries);
        self.note_waiting(&state);
        let count = state.wake(awake);
        drop(state);
        self.notify(count);
    }

    fn notify(&self, count: usize) {
        (0..count).for_each(|_| self.wake.notify_one());
    }

    fn stop(&self) {
        let mut state = lock(&self.state);
        state.stopped = true;
        let jobs = std::mem::take(&mut state.jobs);
        drop(state);
        self.wake.notify_all();
        drop(jobs);
    }

    /// Returns whether work of other sessions waits for a thread, or another process for this one.
    pub fn others_wait(&self, session: u64) -> bool {
        fair::others_wait(self.waiting.load(Ordering::Relaxed), session)
            || self.gate.as_ref().is_some_and(|gate| gate.others_wait())
    }

    fn note_waiting(&self, state: &State) {
        self.waiting.store(state.jobs.waiting(), Ordering::Relaxed);
    }

    /// Returns the next job, after the end of a turn; `None` when the device ends.
    fn next(&self, done: Option<Done>) -> Option<Arc<dyn Job>> {
        let mut state = lock(&self.state);
        if let Some(Done { job, is_left, taken_ns }) = done
            && !state.stopped
        {
            // In this order, as whoever has nothing to do is forgotten with what it owes.
            if is_left {
                state.push(&job, 1);
            }
            state.charge(job.owner(), taken_ns);
        }
        let mut is_in = None;
        loop {
            if state.stopped {
                drop(state);
                self.gate.iter().for_each(|gate| gate.leave());
                return None;
            }
            let has_jobs = !state.jobs.is_empty();
            if let Some(gate) = self.gate.as_ref().filter(|_| is_in != Some(has_jobs)) {
                // Without a job: others may do it meanwhile.
                self.note_waiting(&state);
                drop(state);
                if has_jobs {
                    gate.enter();
                } else {
                    gate.leave();
                }
                is_in = Some(has_jobs);
                state = lock(&self.state);
                continue;
            }
            if let Some(job) = state.pop() {
                self.note_waiting(&state);
                // It may be another one than that for which nobody was woken.
                let is_kept = KEEPS.with(|keeps| keeps.replace(Keeps::None(self)) == Keeps::One);
                let count = if is_kept && !state.jobs.is_empty() { state.wake(1) } else { 0 };
                drop(state);
                self.notify(count);
                return Some(job);
            }
            self.note_waiting(&state);
            state.asleep += 1;
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.asleep -= 1;
            state.woken = state.woken.saturating_sub(1);
        }
    }
}

/// What a thread keeps for itself of what it queues in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    /// It works on no queue.
    Nothing,
    /// It works on this queue, and keeps nothing yet.
    None(*const RunQueue),
    /// One entry.
    One,
}

thread_local! {
    static KEEPS: Cell<Keeps> = const { Cell::new(Keeps::Nothing) };
}

/// A turn that is over.
struct Done {
    job: Arc<dyn Job>,
    /// Whether there is more to do.
    is_left: bool,
    taken_ns: u64,
}

/// The executor threads, which end when this is dropped.
pub struct Executors {
    queue: Arc<RunQueue>,
    threads: Vec<JoinHandle<()>>,
}

impl Executors {
    /// Starts `count` threads for `queue`, or fewer if the system refuses some. With `instruction_ns` a turn counts by its instructions,
    /// each for so many nanoseconds, else by its time.
    ///
    /// # Errors
    /// That of the system if it refuses the first thread.
    pub fn start(queue: &Arc<RunQueue>, count: usize, instruction_ns: Option<u64>) -> std::io::Result<Self> {
        let mut threads = Vec::with_capacity(count);
        for index in 0..count.max(1) {
            let queue = Arc::clone(queue);
            match std::thread::Builder::new()
                .name(format!("gpu-{index}"))
                .spawn(move || work(&queue, instruction_ns))
            {
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
    pub fn count(&self) -> usize {
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

fn work(queue: &RunQueue, instruction_ns: Option<u64>) {
    let mut done = None;
    while let Some(job) = queue.next(done.take()) {
        let (begun, before) = (Instant::now(), job.executed());
        let is_left = catch_unwind(AssertUnwindSafe(|| job.turn())).unwrap_or_else(|_| {
            tracing::error!("the emulator panicked; failing the current command");
            job.abandon();
            false
        });
        let taken_ns = match instruction_ns {
            Some(each_ns) => job.executed().saturating_sub(before).saturating_mul(each_ns),
            None => u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
        };
        job.note_time(taken_ns);
        done = Some(Done { job, is_left, taken_ns });
    }
}

/// Locks a mutex whose data stays meaningful when a thread panicked while holding it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
