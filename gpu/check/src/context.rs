//! What is known of a context: its memory, and its work.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::init::memory::Marks;
use crate::kernel::Kernel;
use crate::lock::{Lock, lock};
use crate::map::Map;
use crate::race::shadow::Shadow;
use crate::race::transfer::Transfers;

/// The number of launches of which the names of kernels are kept for those that race with them.
const KERNELS_MAX: usize = 4096;

/// What is known of a context.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) id: u64,
    pub(crate) map: Map,
    /// Accesses to device memory, for races.
    pub(crate) shadow: Shadow,
    pub(crate) transfers: Transfers,
    /// Bytes that nobody wrote.
    pub(crate) marks: Arc<Marks>,
    work: Lock<Work>,
}

/// The work of a context.
#[derive(Debug, Default)]
struct Work {
    /// The stream of each launch and transfer by its number.
    streams: HashMap<u32, u64>,
    /// Whether there is work on several streams.
    has_streams: bool,
    /// The kernels of the last launches by the launches' numbers.
    kernels: BTreeMap<u32, Arc<Kernel>>,
}

impl Context {
    pub(crate) fn new(id: u64) -> Self {
        let (map, shadow, transfers, marks, work) = Default::default();
        Self { id, map, shadow, transfers, marks, work }
    }

    /// Returns the stream of a launch or transfer.
    pub(crate) fn stream(&self, number: u32) -> Option<u64> {
        lock(&self.work).streams.get(&number).copied()
    }

    /// Returns the kernel of one of the last launches.
    pub(crate) fn kernel(&self, launch: u32) -> Option<Arc<Kernel>> {
        lock(&self.work).kernels.get(&launch).cloned()
    }

    /// Notes the stream of work; returns whether there is work on several streams.
    pub(crate) fn note_stream(&self, number: u32, stream: u64) -> bool {
        let mut work = lock(&self.work);
        let other = work.streams.values().next().is_some_and(|&first| first != stream);
        work.has_streams |= other;
        work.streams.insert(number, stream);
        work.has_streams
    }

    /// Notes the kernel of a launch.
    pub(crate) fn note_kernel(&self, kernel: &Arc<Kernel>) {
        let mut work = lock(&self.work);
        work.kernels.insert(kernel.launch, Arc::clone(kernel));
        if work.kernels.len() > KERNELS_MAX {
            work.kernels.pop_first();
        }
    }
}
