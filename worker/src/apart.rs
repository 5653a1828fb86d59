//! Work that takes long and needs nothing of the dispatch: it is done on a thread of its own, and a session waits for it.

use std::cell::OnceCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::task::Poll;
use std::thread;

use hipr_device::Waker;

type Job = Box<dyn FnOnce() + Send>;

/// The thread for work apart from the dispatch. It begins with the first work, and ends after the last when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Apart {
    /// `None` if there is no thread to be had.
    sender: OnceCell<Option<Sender<Job>>>,
}

/// The result of work, when it is over.
pub(crate) struct Outstanding<T>(Receiver<T>);

impl<T> fmt::Debug for Outstanding<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outstanding").finish_non_exhaustive()
    }
}

impl<T> Outstanding<T> {
    /// Becomes ready with the result; `None` if the work has panicked.
    pub(crate) fn poll(&self) -> Poll<Option<T>> {
        match self.0.try_recv() {
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
        self.run(Box::new(move || {
            // Without a result the other side sees that the sender is gone.
            if let Ok(result) = catch_unwind(AssertUnwindSafe(work)) {
                let _ = sender.send(result);
            }
            drop(sender);
            waker.wake();
        }));
        Outstanding(receiver)
    }

    /// Drops something that takes long to be dropped.
    pub(crate) fn discard<T: Send + 'static>(&self, what: T) {
        self.run(Box::new(move || drop(what)));
    }

    fn run(&self, job: Job) {
        let sender = self.sender.get_or_init(|| {
            let (sender, jobs) = channel::<Job>();
            let thread = thread::Builder::new().name("hipr-apart".into());
            let spawned = thread.spawn(move || jobs.into_iter().for_each(|job| job()));
            spawned.inspect_err(|error| tracing::warn!(%error, "long work is done by the dispatch")).ok()?;
            Some(sender)
        });
        match sender {
            Some(sender) => {
                if let Err(unsent) = sender.send(job) {
                    (unsent.0)();
                }
            }
            None => job(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
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
        let shared = Arc::new(());
        apart.discard(shared.clone());
        apart.begin(waker(), || ());
        wakes.recv().expect("a wake-up");
        assert_eq!(Arc::strong_count(&shared), 1);
    }
}
