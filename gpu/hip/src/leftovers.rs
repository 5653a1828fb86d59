//! Releases what ended sessions left on the device.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::owner::{Marker, Owner};
use hipr_proto::HipResult;

/// Interval between queries whether the device has finished.
const ASK: Duration = Duration::from_millis(2);
/// How long the end of the device waits for work of ended sessions.
const GRACE: Duration = Duration::from_secs(5);

/// A thread that releases the resources of ended sessions when their work is done.
pub(super) struct Leftovers {
    sender: Option<Sender<Owner>>,
    thread: Option<JoinHandle<()>>,
}

impl Leftovers {
    /// Starts the thread.
    pub(super) fn start() -> io::Result<Self> {
        let (sender, owners) = channel();
        let thread = std::thread::Builder::new().name("hipr-hip-free".into()).spawn(move || run(&owners))?;
        Ok(Self { sender: Some(sender), thread: Some(thread) })
    }

    /// Takes the resources of an ended session.
    pub(super) fn take(&self, owner: Owner) {
        if let Some(sender) = &self.sender {
            // Without the thread the owner comes back with the error, and what it owns goes if that needs no waiting.
            let _ = sender.send(owner);
        }
    }
}

/// The resources of an ended session, and markers at the end of its work.
struct Leftover {
    owner: Owner,
    markers: Vec<Marker>,
}

impl Leftover {
    /// Marks the end of the work; returns `None` for a lost device, which dropping the owner logs.
    fn new(mut owner: Owner) -> Option<Self> {
        let markers = owner.mark_all().ok()?;
        Some(Self { owner, markers })
    }

    fn is_over(&self) -> HipResult<bool> {
        self.markers.iter().try_fold(true, |over, marker| Ok(over && self.owner.is_reached(marker)?))
    }

    fn release(&mut self) {
        self.markers.drain(..).for_each(|marker| self.owner.discard(marker));
        self.owner.release();
    }
}

fn run(owners: &Receiver<Owner>) {
    let mut waiting: Vec<Leftover> = Vec::new();
    let mut ends = None;
    loop {
        if ends.is_none() {
            let next = if waiting.is_empty() {
                owners.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                owners.recv_timeout(ASK)
            };
            match next {
                Ok(owner) => waiting.extend(Leftover::new(owner)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => ends = Some(Instant::now() + GRACE),
            }
        } else {
            std::thread::sleep(ASK);
        }
        waiting.retain_mut(|leftover| match leftover.is_over() {
            Ok(true) => {
                leftover.release();
                false
            }
            Ok(false) => true,
            Err(_) => false,
        });
        if ends.is_some_and(|end| waiting.is_empty() || Instant::now() > end) {
            return;
        }
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that releases what sessions left panicked");
        }
    }
}
