//! A thread that sends what nobody waits for.
//!
//! Requests that are not answered gather in a buffer until something is waited for. A program that launches work
//! and then sleeps, computes or watches host memory waits for nothing, and its work has to leave all the same:
//! this thread sends what has been in the buffer for [`DELAY`]. It is started with the first request that stays in
//! the buffer, and sleeps while the buffer is empty.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use super::connection::Inner;

/// How long an unanswered request may stay in the buffer, give or take as much.
const DELAY: Duration = Duration::from_millis(2);

#[derive(Debug, Default)]
pub(super) struct Flusher {
    /// Whether the state is `Due`; changes with it, under its lock.
    is_due: AtomicBool,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
enum State {
    #[default]
    NotStarted,
    Asleep,
    /// Something is in the buffer.
    Due,
    Ended,
}

impl Flusher {
    /// Something stays in the buffer, whose lock the caller holds. The thread takes that lock after it has said that nothing is
    /// due any more: a caller who still reads the opposite has the lock before the thread, and is served.
    pub(super) fn due(&self, connection: &Weak<Inner>) {
        if self.is_due.load(Ordering::Relaxed) {
            return;
        }
        self.become_due(connection);
    }

    #[cold]
    fn become_due(&self, connection: &Weak<Inner>) {
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

    /// The thread ends when it next looks.
    pub(super) fn end(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Ended;
        self.wake.notify_all();
    }

    /// Sleeps until something is due; false at the end.
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

    /// What is due is about to leave.
    fn sleep(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if *state == State::Due {
            *state = State::Asleep;
            self.is_due.store(false, Ordering::Relaxed);
        }
    }
}

/// Starts the thread; it takes none of the program's signals.
fn start(connection: Weak<Inner>) {
    // SAFETY: `sigset_t` is plain data that sigfillset fills; the mask of this thread is restored below.
    let old = unsafe {
        let mut all: libc::sigset_t = core::mem::zeroed();
        let mut old: libc::sigset_t = core::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        old
    };
    let started = thread::Builder::new().name("hipr-flush".to_owned()).spawn(move || run(&connection));
    // SAFETY: the mask that was in force above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &old, core::ptr::null_mut()) };
    if let Err(error) = started {
        tracing::warn!(
            "no thread to send requests in the background: {error}; they leave with the next wait"
        );
    }
}

fn run(connection: &Weak<Inner>) {
    while let Some(connection) = connection.upgrade() {
        if !connection.flusher().wait() {
            return;
        }
        thread::sleep(DELAY);
        connection.flusher().sleep();
        connection.flush();
    }
}
