//! Work that takes long and needs nothing of the dispatch: it is done on a thread of its own, and a session waits for it.

use std::cell::OnceCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::thread;

use hipr_device::Waker;

type Job = Box<dyn FnOnce() + Send>;
/// A job, until it begins or nobody waits for it any more.
type Slot = Arc<Mutex<Option<Job>>>;

/// The thread for work apart from the dispatch. It begins with the first work, and ends after the last when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Apart {
    /// `None` if there is no thread to be had.
    sender: OnceCell<Option<Sender<Slot>>>,
}

/// The result of work, when it is over. Work that has not begun is dropped together with this.
pub(crate) struct Outstanding<T> {
    receiver: Receiver<T>,
    slot: Slot,
}

impl<T> Drop for Outstanding<T> {
    fn drop(&mut self) {
        drop(take(&self.slot));
    }
}

fn take(slot: &Slot) -> Option<Job> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl<T> fmt::Debug for Outstanding<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outstanding").finish_non_exhaustive()
    }
}

impl<T> Outstanding<T> {
    /// Becomes ready with the result; `None` if the work has panicked.
    pub(crate) fn poll(&self) -> Poll<Option<T>> {
        match self.receiver.try_recv() {
            Ok(result) => Poll::Ready(Some(result)),
            Err(TryRecvError::Empty) => Poll::Pending,
            Err(TryRecvError::Disconnected) => Poll::Ready(None),
        }
    }
}

impl Apart {
    /// Begins `work` and calls `waker` when it is over. What it returns is dropped on that thread if nobody waits any more.
    pub(crate) fn begin<T: Send + 'static>(
        &self,
        waker: Waker,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Outstanding<T> {
        let (sender, receiver) = channel();
        let slot = self.queue(Box::new(move || {
            // Without a result the other side sees that the sender is gone.
            if let Ok(result) = catch_unwind(AssertUnwindSafe(work)) {
                let _ = sender.send(result);
            }
            drop(sender);
            waker.wake();
        }));
        Outstanding { receiver, slot }
    }

    fn queue(&self, job: Job) -> Slot {
        let sender = self.sender.get_or_init(|| {
            let (sender, slots) = channel::<Slot>();
            let thread = thread::Builder::new().name("hipr-apart".into());
            let work = move || slots.into_iter().filter_map(|slot| take(&slot)).for_each(|job| job());
            let spawned = thread.spawn(work);
            spawned.inspect_err(|error| tracing::warn!(%error, "long work is done by the dispatch")).ok()?;
            Some(sender)
        });
        let slot = Arc::new(Mutex::new(Some(job)));
        let is_sent = sender.as_ref().is_some_and(|sender| sender.send(Arc::clone(&slot)).is_ok());
        if !is_sent && let Some(job) = take(&slot) {
            job();
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn work_is_done_elsewhere_and_wakes_whoever_waits() {
        let (woken, wakes) = mpsc::channel();
        let waker = || {
            let woken = woken.clone();
            Waker::new(move || woken.send(()).expect("the test listens"))
        };
        let apart = Apart::default();
        let here = thread::current().id();
        let first = apart.begin(waker(), move || thread::current().id() != here);
        let second = apart.begin(waker(), || -> u32 { panic!("on purpose") });
        for _ in 0..2 {
            wakes.recv().expect("a wake-up for each");
        }
        assert_eq!(first.poll(), Poll::Ready(Some(true)));
        assert_eq!(second.poll(), Poll::Ready(None));
    }

    #[test]
    fn work_that_nobody_waits_for_is_given_up_before_it_begins() {
        let apart = Apart::default();
        let (go_on, held) = mpsc::channel::<()>();
        let first = apart.begin(Waker::new(|| ()), move || held.recv().is_ok());
        let shared = Arc::new(());
        let of_second = shared.clone();
        let second = apart.begin(Waker::new(|| ()), move || drop(of_second));
        assert_eq!(Arc::strong_count(&shared), 2);
        drop(second);
        assert_eq!(Arc::strong_count(&shared), 1, "what it would have worked with is gone");
        go_on.send(()).expect("the first one waits");
        while first.poll().is_pending() {
            thread::yield_now();
        }
    }
}
