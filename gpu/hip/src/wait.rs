//! Waits without blocking, by polling.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;

use crate::owner::{Marker, Owner};
use hipr_proto::{HipError, HipResult};

use super::poller::Poller;
use hipr_device::{WaitFor, Waker};

/// The first and shortest pause between two polls; each pause is twice as long as the one before, up to a maximum.
const PAUSE_MIN: Duration = Duration::from_micros(20);
const PAUSE_MAX: Duration = Duration::from_millis(1);

/// Schedules wake-ups with increasing pauses.
pub(super) struct Sleeper {
    poller: Arc<Poller>,
    waker: Waker,
    /// Whether a wake-up is scheduled.
    armed: Arc<AtomicBool>,
    pause: Duration,
}

impl Sleeper {
    pub(super) fn new(poller: Arc<Poller>, waker: Waker) -> Self {
        Self { poller, waker, armed: Arc::default(), pause: PAUSE_MIN }
    }

    /// Shortens the next pause, because there was progress.
    pub(super) fn refresh(&mut self) {
        self.pause = PAUSE_MIN;
    }

    /// Schedules a wake-up and returns `Pending`.
    pub(super) fn pending<T>(&mut self) -> Poll<T> {
        if !self.armed.swap(true, SeqCst) {
            let (armed, waker) = (self.armed.clone(), self.waker.clone());
            let wake = Waker::new(move || {
                armed.store(false, SeqCst);
                waker.wake();
            });
            self.poller.wake_after(self.pause, wake);
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
        Poll::Pending
    }
}

/// The work that a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A synchronization, which returns the error of the work.
    Sync(WaitFor),
    /// The arrival of the bytes of a stream's copies; errors stay for a synchronization.
    Written(u64),
    /// The work that may use memory which is to be freed; errors stay for a synchronization.
    Free,
}

/// The session's current wait; there is at most one, because requests are executed in order.
#[derive(Default)]
pub(super) struct Wait(Option<(Purpose, Vec<Marker>)>);

impl Wait {
    /// Polls whether all work of the purpose is done.
    pub(super) fn poll(
        &mut self,
        owner: &mut Owner,
        sleeper: &mut Sleeper,
        purpose: Purpose,
    ) -> Poll<HipResult<()>> {
        if let Purpose::Sync(WaitFor::Event(event)) = purpose {
            let asked = owner.event_query(event);
            return answer(owner, sleeper, asked, |owner| owner.event_synchronize(event));
        }
        if let Purpose::Sync(WaitFor::Stream(stream)) = purpose
            && owner.is_created(stream)
        {
            // A marker on a blocking stream comes behind the null stream's work, for which HIP does not wait here.
            let asked = owner.stream_query(stream);
            return answer(owner, sleeper, asked, |owner| owner.stream_synchronize(stream));
        }
        if self.0.as_ref().is_none_or(|(current, _)| *current != purpose) {
            self.forget(owner);
            sleeper.refresh();
            let markers = match purpose {
                Purpose::Sync(WaitFor::Stream(stream)) | Purpose::Written(stream) => {
                    owner.mark(stream).map(|marker| vec![marker])
                }
                Purpose::Sync(_) => owner.mark_device(),
                Purpose::Free => owner.mark_all(),
            };
            match markers {
                Ok(markers) => self.0 = Some((purpose, markers)),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        let Some((_, markers)) = &mut self.0 else { return Poll::Ready(Ok(())) };
        let reached = markers.iter().try_fold(true, |all, marker| Ok(all && owner.is_reached(marker)?));
        match reached {
            Ok(false) => sleeper.pending(),
            Ok(true) => {
                let ended = self.end(owner, matches!(purpose, Purpose::Sync(_)));
                owner.collect();
                Poll::Ready(ended)
            }
            Err(error) => {
                self.forget(owner);
                Poll::Ready(Err(error))
            }
        }
    }

    /// Releases the markers; returns their first error if `tells`.
    fn end(&mut self, owner: &mut Owner, tells: bool) -> HipResult<()> {
        let mut ended = Ok(());
        for marker in self.0.take().into_iter().flat_map(|(_, markers)| markers) {
            if tells {
                ended = ended.and(owner.finish(marker));
            } else {
                owner.discard(marker);
            }
        }
        ended
    }

    /// Abandons the wait.
    pub(super) fn forget(&mut self, owner: &mut Owner) {
        for marker in self.0.take().into_iter().flat_map(|(_, markers)| markers) {
            owner.discard(marker);
        }
    }
}

/// Handles what the library says of the work of a stream or an event itself, without a marker; `synchronize` returns the work's error.
fn answer(
    owner: &mut Owner,
    sleeper: &mut Sleeper,
    asked: HipResult<()>,
    synchronize: impl FnOnce(&mut Owner) -> HipResult<()>,
) -> Poll<HipResult<()>> {
    match asked {
        Err(HipError::NOT_READY) => sleeper.pending(),
        Ok(()) => {
            sleeper.refresh();
            owner.collect();
            Poll::Ready(synchronize(owner))
        }
        Err(error) => Poll::Ready(Err(error)),
    }
}
