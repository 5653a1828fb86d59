//! When the device did a session's work, by events around it: kept for a trace, and only if somebody wants it.
//!
//! Two events tell how much time passed between them on the device, not when that was. But no work begins before it is enqueued: of all that
//! was seen, what began soonest after it was enqueued says how the device's clock stands to the host's. So no event is said to be later than it
//! was, and all are early by what the fastest start so far has taken.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use hipr_device::{Origin, TIMES_MAX, WorkTimes};
use hipr_proto::HipResult;

use super::owner::{Marker, Owner};

/// Events tell times in milliseconds as 32-bit floats, which are exact to a microsecond for so long.
const CLOCK_MAX: Duration = Duration::from_secs(4);

/// Work between two events.
struct Open {
    origin: Origin,
    stream: u64,
    function: u64,
    enqueued: Instant,
    began: Marker,
    ended: Marker,
}

/// A device's clock.
struct Clock {
    /// An event that has happened.
    base: Marker,
    /// When it happened.
    zero: Instant,
}

/// An owner, and the times of the work that it enqueues.
pub(super) struct Timed<'a> {
    pub(super) owner: &'a mut Owner,
    pub(super) times: &'a mut Times,
}

/// The times of a context's work.
#[derive(Default)]
pub(super) struct Times {
    /// Whose commands come next.
    origin: Option<Origin>,
    /// In the order in which they were enqueued.
    open: Vec<Open>,
    clocks: BTreeMap<i32, Clock>,
    lost: u32,
}

impl Times {
    /// Says which request enqueues what comes next; times are noted from the first one on.
    pub(super) fn note(&mut self, origin: Origin) {
        self.origin = Some(origin);
    }

    /// Returns the number of events that are recorded for each piece of work.
    pub(super) fn events(&self) -> usize {
        if self.origin.is_some() { 2 } else { 0 }
    }

    /// Lets `enqueue` enqueue work on a stream, and notes its times, if they are wanted: of a kernel, or of other work if `function` is 0.
    /// Returns what `enqueue` returns.
    pub(super) fn around<T>(
        &mut self,
        owner: &mut Owner,
        stream: u64,
        function: u64,
        enqueue: impl FnOnce(&mut Owner) -> HipResult<T>,
    ) -> HipResult<T> {
        let Some(origin) = self.origin else { return enqueue(owner) };
        let enqueued = Instant::now();
        let began = if self.open.len() < TIMES_MAX { owner.mark_timed(stream).ok() } else { None };
        let result = enqueue(owner);
        let ended = began.as_ref().filter(|_| result.is_ok()).and_then(|_| owner.mark_timed(stream).ok());
        match (began, ended) {
            (Some(began), Some(ended)) => {
                self.open.push(Open { origin, stream, function, enqueued, began, ended });
            }
            (began, _) => {
                self.lost = self.lost.saturating_add(u32::from(result.is_ok()));
                began.into_iter().for_each(|marker| owner.discard(marker));
            }
        }
        result
    }

    /// Takes the times of what has ended; returns how many are lost.
    pub(super) fn take(&mut self, owner: &mut Owner, into: &mut Vec<WorkTimes>) -> u32 {
        let mut busy = BTreeSet::new();
        for open in std::mem::take(&mut self.open) {
            // What comes behind unfinished work of its stream is not asked about.
            if busy.contains(&open.stream) {
                self.open.push(open);
                continue;
            }
            let times = match owner.is_reached(&open.ended) {
                Ok(false) => {
                    busy.insert(open.stream);
                    self.open.push(open);
                    continue;
                }
                Ok(true) => self.times(owner, &open),
                Err(_) => None,
            };
            let Open { origin, stream, function, enqueued, .. } = open;
            into.extend(times.map(|(began, ended)| WorkTimes {
                origin,
                stream,
                function,
                enqueued,
                began,
                ended,
            }));
            self.close(owner, open, times.map(|(_, ended)| ended));
        }
        std::mem::take(&mut self.lost)
    }

    /// Returns when work began and ended that is done; `None` if the library does not say that.
    fn times(&mut self, owner: &mut Owner, open: &Open) -> Option<(Instant, Instant)> {
        let device = open.began.device();
        let length =
            Duration::try_from_secs_f64(owner.elapsed_s(&open.began, &open.ended).ok()?.max(0.0)).ok()?;
        let since_base = |clock: &Clock| owner.elapsed_s(&clock.base, &open.began).ok();
        let Some(since) = self.clocks.get(&device).and_then(since_base) else {
            // It is as if the work had begun at once. What ends it is the base of the next clock.
            self.clocks.remove(&device).into_iter().for_each(|clock| owner.discard(clock.base));
            return Some((open.enqueued, open.enqueued + length));
        };
        let clock = self.clocks.get_mut(&device)?;
        let distance = Duration::try_from_secs_f64(since.abs()).ok()?;
        let began =
            if since < 0.0 { clock.zero.checked_sub(distance) } else { clock.zero.checked_add(distance) }?;
        clock.zero += open.enqueued.saturating_duration_since(began);
        let began = began.max(open.enqueued);
        Some((began, began + length))
    }

    /// Releases the events of work; the last one is a clock's base from now on if the clock has none, or one that is too old. Without
    /// `ended`, its times are lost.
    fn close(&mut self, owner: &mut Owner, open: Open, ended: Option<Instant>) {
        let Open { began, ended: last, .. } = open;
        let device = began.device();
        owner.discard(began);
        let Some(zero) = ended else {
            self.lost = self.lost.saturating_add(1);
            owner.discard(last);
            return;
        };
        let is_old = |clock: &Clock| zero.saturating_duration_since(clock.zero) > CLOCK_MAX;
        if self.clocks.get(&device).is_some_and(|clock| !is_old(clock)) {
            owner.discard(last);
        } else if let Some(old) = self.clocks.insert(device, Clock { base: last, zero }) {
            owner.discard(old.base);
        }
    }

    /// Forgets all work and clocks.
    pub(super) fn forget(&mut self, owner: &mut Owner) {
        for open in std::mem::take(&mut self.open) {
            owner.discard(open.began);
            owner.discard(open.ended);
        }
        for (_, clock) in std::mem::take(&mut self.clocks) {
            owner.discard(clock.base);
        }
    }
}
