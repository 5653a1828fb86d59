//! What the worker was asked to tell: when a stream or an event is done of which a query found that it is not.
//!
//! The first query that finds something unfinished asks for this, with itself. Until the worker tells, later queries for that, and for
//! what comes behind it, are answered here. Nothing is told of what no query has asked for, because a program queries few of the things
//! that it waits for.
//!
//! * A watched **event** stands for a place on its stream, as long as it is not recorded anew. Whatever comes behind that place is not
//!   done before it.
//! * A watched **stream** is done when all is that the worker has been sent for it. That says nothing of the events recorded there
//!   meanwhile, so it answers for queries of the stream alone.

use smallvec::SmallVec;

use crate::convert::Event;
use crate::worker::Wait;
use hipr_proto::op::WATCHES_MAX;

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Stream(u64),
    Event(Event),
}

/// Returns what a query is about.
fn of(query: Wait) -> Option<Of> {
    match query {
        Wait::QueryStream(stream) | Wait::WatchStream(stream, _) => Some(Of::Stream(stream)),
        Wait::QueryEvent(event) | Wait::WatchEvent(event, _) => Some(Of::Event(event)),
        Wait::Device(_) | Wait::Stream(_) | Wait::Event(_) => None,
    }
}

/// Work: streams, and the numbers up to which it is theirs.
type Work = [(u64, u64)];

#[derive(Debug)]
struct Watch {
    number: u64,
    of: Of,
    /// The work that is done when the worker tells.
    covered: SmallVec<[(u64, u64); 2]>,
    /// Whether the worker has answered that it is not done, and so will tell.
    is_open: bool,
}

/// Everything that is watched.
#[derive(Debug, Default)]
pub(super) struct Watches {
    /// Number of the last watch.
    last: u64,
    all: Vec<Watch>,
}

impl Watches {
    /// Returns whether nothing is watched.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Begins to watch what a query is about, unless that is watched, or too much is; returns the number.
    pub(super) fn begin(&mut self, query: Wait, covered: &Work) -> Option<u64> {
        let of = of(query)?;
        if covered.is_empty() || self.all.len() >= WATCHES_MAX || self.all.iter().any(|watch| watch.of == of)
        {
            return None;
        }
        self.last += 1;
        self.all.push(Watch { number: self.last, of, covered: covered.into(), is_open: false });
        Some(self.last)
    }

    /// Notes that the worker will tell of a watch.
    pub(super) fn open(&mut self, number: u64) {
        self.all.iter_mut().filter(|watch| watch.number == number).for_each(|watch| watch.is_open = true);
    }

    /// Ends a watch; returns the work that it was for, if it is known here.
    pub(super) fn end(&mut self, number: u64) -> Option<SmallVec<[(u64, u64); 2]>> {
        let place = self.all.iter().position(|watch| watch.number == number)?;
        Some(self.all.swap_remove(place).covered)
    }

    /// Ends the watches of an event, which is recorded anew or destroyed.
    pub(super) fn forget_event(&mut self, event: Event) {
        self.all.retain(|watch| watch.of != Of::Event(event));
    }

    /// Ends the watches that are about a stream, which is destroyed.
    pub(super) fn forget_stream(&mut self, stream: u64) {
        self.all.retain(|watch| watch.covered.iter().all(|(other, _)| *other != stream));
    }

    /// Ends all.
    pub(super) fn clear(&mut self) {
        self.all.clear();
    }

    /// Returns whether the worker has yet to tell of something without which what a query is about is not done.
    pub(super) fn holds_up(&self, query: Wait, covered: &Work) -> bool {
        let Some(queried) = of(query) else { return false };
        let comes_behind = |watch: &Watch| match watch.of {
            Of::Stream(_) => watch.of == queried,
            Of::Event(_) => watch.covered.iter().all(|(stream, number)| {
                covered.iter().any(|(other, last)| other == stream && last >= number)
            }),
        };
        self.all.iter().any(|watch| watch.is_open && comes_behind(watch))
    }
}
