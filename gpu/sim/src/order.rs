//! Which work of a context comes before which: kept for what sees the work, and only if something does.

use std::collections::BTreeMap;
use std::sync::Arc;

use hipr_device::WaitFor;

use crate::before::Before;
use crate::event::Record;
use crate::fence::Fence;

/// The place of a command among all work of its context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The stream.
    pub stream: u64,
    /// The number of the command in its context, from 1 on, in the order in which they were enqueued.
    pub number: u64,
    before: Arc<Before>,
}

impl Order {
    /// Returns whether the command comes behind command `number` of `stream`: by the order of a stream, an event, the null stream, or as the
    /// program has waited for the one before it has enqueued the other.
    pub fn is_behind(&self, stream: u64, number: u64) -> bool {
        self.before.has(stream, number)
    }
}

/// The order of a context's work.
#[derive(Debug)]
pub(crate) struct Orders {
    /// Number of commands.
    count: u64,
    /// What comes before all work from now on: what the program has waited for.
    host: Before,
    /// What the last command of each stream comes behind, itself included.
    streams: BTreeMap<u64, Arc<Before>>,
}

impl Orders {
    pub(crate) fn new(context: u64) -> Self {
        Self { count: 0, host: Before::new(context), streams: BTreeMap::new() }
    }

    /// Numbers a command on `stream` that waits for these streams as well, and for these fences; notes in `fence` what is over with it.
    pub(crate) fn add(
        &mut self,
        stream: u64,
        streams: impl Iterator<Item = u64>,
        after: &[Arc<Fence>],
        fence: &Fence,
    ) -> Arc<Order> {
        let mut before = self.host.clone();
        for stream in streams.chain([stream]) {
            if let Some(last) = self.streams.get(&stream) {
                before.join(last);
            }
        }
        for over in after.iter().filter_map(|fence| fence.before()) {
            before.join(over);
        }
        self.count += 1;
        let order = Order { stream, number: self.count, before: Arc::new(before.clone()) };
        before.insert(stream, self.count);
        let before = Arc::new(before);
        fence.set_before(Arc::clone(&before));
        self.streams.insert(stream, before);
        Arc::new(order)
    }

    /// Notes that the program has waited for what `what` covers.
    pub(crate) fn waited(&mut self, what: WaitFor, record: Option<&Record>) {
        match what {
            WaitFor::Device => self.streams.values().for_each(|last| self.host.join(last)),
            WaitFor::Stream(stream) => self.before_all(stream),
            WaitFor::Event(_) => {
                if let Some(before) = record.and_then(|record| record.fence.before()) {
                    self.host.join(before);
                }
            }
        }
    }

    /// Notes that what a stream has now comes before all later work: the program has waited for it, or will not go on before it is over.
    pub(crate) fn before_all(&mut self, stream: u64) {
        if let Some(last) = self.streams.get(&stream) {
            self.host.join(last);
        }
    }
}
