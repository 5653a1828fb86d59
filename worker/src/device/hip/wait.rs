//! Waits that do not block.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;

use hip_sys::owner::{HipCode, Marker, Owner};
use hipr_proto::{HipError, HipResult};

use super::poller::Poller;
use super::result;
use crate::device::{WaitFor, Waker};

/// The first pause between two questions, and the last one; in between each is twice as long as the one before.
const PAUSE_MIN: Duration = Duration::from_micros(20);
const PAUSE_MAX: Duration = Duration::from_millis(1);

/// Asks to be woken, later the longer it takes.
pub(super) struct Sleeper {
    poller: Arc<Poller>,
    waker: Waker,
    /// Whether a wake-up is on its way.
    armed: Arc<AtomicBool>,
    pause: Duration,
}

impl Sleeper {
    pub(super) fn new(poller: Arc<Poller>, waker: Waker) -> Self {
        Self { poller, waker, armed: Arc::default(), pause: PAUSE_MIN }
    }

    /// Something went on: the next pause is short again.
    pub(super) fn refresh(&mut self) {
        self.pause = PAUSE_MIN;
    }

    /// To be asked again.
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

/// What a session waits for, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A synchronization: what surfaced is its result.
    Sync(WaitFor),
    /// Bytes of the stream's copies are to have arrived; what surfaced is for a synchronization to tell.
    Written(u64),
    /// Memory is to be freed; likewise.
    Free,
}

/// The wait that a session is in: one at a time, as it waits in the order of its requests.
#[derive(Default)]
pub(super) struct Wait(Option<(Purpose, Vec<Marker>)>);

impl Wait {
    /// Whether all work that the purpose covers is done.
    pub(super) fn poll(
        &mut self,
        owner: &mut Owner,
        sleeper: &mut Sleeper,
        purpose: Purpose,
    ) -> Poll<HipResult<()>> {
        if let Purpose::Sync(WaitFor::Event(event)) = purpose {
            return poll_event(owner, sleeper, event);
        }
        if self.0.as_ref().is_none_or(|(current, _)| *current != purpose) {
            self.forget(owner);
            sleeper.refresh();
            let markers = match purpose {
                Purpose::Sync(WaitFor::Stream(stream)) | Purpose::Written(stream) => {
                    owner.mark(stream).map(|marker| vec![marker])
                }
                Purpose::Sync(_) | Purpose::Free => owner.mark_all(),
            };
            match markers {
                Ok(markers) => self.0 = Some((purpose, markers)),
                Err(code) => return Poll::Ready(Err(HipError(code))),
            }
        }
        let Some((_, markers)) = &mut self.0 else { return Poll::Ready(Ok(())) };
        let reached = markers.iter().try_fold(true, |all, marker| Ok(all && owner.is_reached(marker)?));
        match reached {
            Ok(false) => sleeper.pending(),
            Ok(true) => {
                let ended = self.end(owner, matches!(purpose, Purpose::Sync(_)));
                owner.collect();
                Poll::Ready(result(ended))
            }
            Err(code) => {
                self.forget(owner);
                Poll::Ready(Err(HipError(code)))
            }
        }
    }

    /// The first error of the markers, if it is wanted.
    fn end(&mut self, owner: &mut Owner, tells: bool) -> HipCode {
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

    /// Nobody waits any more.
    pub(super) fn forget(&mut self, owner: &mut Owner) {
        for marker in self.0.take().into_iter().flat_map(|(_, markers)| markers) {
            owner.discard(marker);
        }
    }
}

fn poll_event(owner: &mut Owner, sleeper: &mut Sleeper, event: u64) -> Poll<HipResult<()>> {
    match result(owner.event_query(event)) {
        Err(HipError::NOT_READY) => sleeper.pending(),
        Ok(()) => {
            sleeper.refresh();
            owner.collect();
            Poll::Ready(result(owner.event_synchronize(event)))
        }
        Err(error) => Poll::Ready(Err(error)),
    }
}
