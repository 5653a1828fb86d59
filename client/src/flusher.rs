//! A thread that sends buffered requests that no caller waits for.
//!
//! Requests that are not answered gather in a buffer until something is waited for. A program that launches work
//! and then sleeps, computes or watches host memory waits for nothing, and its work has to leave all the same:
//! this thread sends what has been in the buffer for [`DELAY`]. It is started with the first request that stays in
//! the buffer, and sleeps while the buffer is empty.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

/// Time after which the thread sends a buffered request; it may take twice as long.
const DELAY: Duration = Duration::from_millis(2);

/// A connection with a buffer that the thread empties.
pub(crate) trait Buffered: Send + Sync + 'static {
    /// Returns the buffer's flusher.
    fn flusher(&self) -> &Flusher;
    /// Sends all buffered requests.
    fn flush(&self);
}

#[derive(Debug, Default)]
pub(crate) struct Flusher {
    /// Whether the state is `Due`; changes together with the state, under its lock.
    is_due: AtomicBool,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
enum State {
    #[default]
    NotStarted,
    Asleep,
    /// The buffer holds requests.
    Due,
    Ended,
}

impl Flusher {
    /// Notes that the buffer, whose lock the caller holds, holds requests. The thread takes that lock only after it has
    /// cleared this note: a caller that still reads the old note has the lock before the thread, and its requests are sent,
    /// too.
    #[inline]
    pub(crate) fn due(&self, connection: &Weak<impl Buffered>) {
        if self.is_due.load(Ordering::Relaxed) {
            return;
        }
        self.become_due(connection);
    }

    #[cold]
    fn become_due(&self, connection: &Weak<impl Buffered>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match *state {
            State::Due | State::Ended => {}
            State::Asleep => {
                *state = State::Due;
                self.is_due.store(true, Ordering::Relaxed);
                self.wake.notify_one();
            }
            State::NotStarted => {
                *state = State::Due;
                self.is_due.store(true, Ordering::Relaxed);
                start(connection.clone());
            }
        }
    }

    /// Tells the thread to end.
    pub(crate) fn end(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Ended;
        self.wake.notify_all();
    }

    /// Sleeps until the buffer holds requests; returns false when the thread has to end.
    fn wait(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *state {
                State::Due => return true,
                State::Ended => return false,
                State::NotStarted | State::Asleep => {
                    state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Clears the note that the buffer holds requests, just before they are sent.
    fn sleep(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if *state == State::Due {
            *state = State::Asleep;
            self.is_due.store(false, Ordering::Relaxed);
        }
    }
}

/// Starts the thread.
fn start(connection: Weak<impl Buffered>) {
    if let Err(error) = spawn("hipr-flush", move || run(&connection)) {
        tracing::warn!(
            "cannot start a thread to send requests in the background: {error}; they are sent with the next call that waits"
        );
    }
}

/// Starts a thread with all signals blocked, which are the program's.
pub(crate) fn spawn(name: &str, task: impl FnOnce() + Send + 'static) -> io::Result<()> {
    // SAFETY: `sigset_t` is plain data that sigfillset fills; the mask of this thread is restored below.
    let old = unsafe {
        let mut all: libc::sigset_t = core::mem::zeroed();
        let mut old: libc::sigset_t = core::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        old
    };
    let started = thread::Builder::new().name(name.to_owned()).spawn(task);
    // SAFETY: the mask that was in force above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &old, core::ptr::null_mut()) };
    started.map(drop)
}

fn run(connection: &Weak<impl Buffered>) {
    while let Some(connection) = connection.upgrade() {
        if !connection.flusher().wait() {
            return;
        }
        thread::sleep(DELAY);
        connection.flusher().sleep();
        connection.flush();
    }
}
