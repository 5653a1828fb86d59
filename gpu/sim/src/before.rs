//! Which work of a context is over before a command starts.

use std::collections::BTreeMap;

/// The work that is over before a command starts: of each stream, all commands up to this number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Before {
    /// The number of the context.
    context: u64,
    streams: BTreeMap<u64, u64>,
}

impl Before {
    /// Makes one that nothing comes before.
    pub(crate) fn new(context: u64) -> Self {
        Self { context, streams: BTreeMap::new() }
    }

    /// Returns whether command `number` of `stream` comes before.
    pub(crate) fn has(&self, stream: u64, number: u64) -> bool {
        self.streams.get(&stream).is_some_and(|&last| number <= last)
    }

    /// Notes that the work of `stream` up to command `number` comes before.
    pub(crate) fn insert(&mut self, stream: u64, number: u64) {
        let own = self.streams.entry(stream).or_default();
        *own = (*own).max(number);
    }

    /// Adds what comes before something else of the same context.
    pub(crate) fn join(&mut self, other: &Self) {
        if self.context == other.context {
            for (&stream, &number) in &other.streams {
                self.insert(stream, number);
            }
        }
    }
}
