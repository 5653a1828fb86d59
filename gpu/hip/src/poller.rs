//! Wakes the dispatch thread after a delay, so that it polls again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hipr_device::Waker;

/// A thread with a list of wakers and times.
pub(super) struct Poller {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    due: BinaryHeap<Reverse<Entry>>,
    stops: bool,
}

struct Entry {
    at: Instant,
    waker: Waker,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

impl Poller {
    /// Starts the thread.
    pub(super) fn start() -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let of_thread = shared.clone();
        let thread =
            std::thread::Builder::new().name("hipr-hip-poll".into()).spawn(move || of_thread.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Calls `waker` after `delay`.
    pub(super) fn wake_after(&self, delay: Duration, waker: Waker) {
        let entry = Entry { at: Instant::now() + delay, waker };
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = state.due.peek().is_none_or(|Reverse(first)| entry.at < first.at);
        state.due.push(Reverse(entry));
        drop(state);
        if is_first {
            self.shared.changed.notify_one();
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.stops {
            let now = Instant::now();
            let left = state.due.peek().map(|Reverse(first)| first.at.saturating_duration_since(now));
            state = match left {
                Some(Duration::ZERO) => {
                    let due = state.due.pop();
                    drop(state);
                    if let Some(Reverse(entry)) = due {
                        entry.waker.wake();
                    }
                    self.state.lock().unwrap_or_else(PoisonError::into_inner)
                }
                Some(left) => {
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).stops = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that polls the device panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn wakes_come_in_the_order_of_their_times() {
        let poller = Poller::start().expect("a thread");
        let (sender, woken) = channel();
        for ms in [30, 10, 20, 0] {
            let sender = sender.clone();
            let waker = Waker::new(move || sender.send(ms).expect("the test listens"));
            poller.wake_after(Duration::from_millis(ms), waker);
        }
        drop(sender);
        assert_eq!(woken.iter().take(4).collect::<std::collections::BTreeSet<_>>(), [0, 10, 20, 30].into());
        assert!(woken.recv().is_err(), "each wakes once");
    }
}
