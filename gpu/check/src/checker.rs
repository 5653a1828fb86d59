//! The checker of a device: its contexts, their memory, their launches.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use hipr_grid::{Failure, GridWatch};
use hipr_sim::watch::{Allocated, DeviceWatch, Loaded, Moved, Order, Started};

use crate::context::Context;
use crate::finding::{Finding, Tool};
use crate::group::Groups;
use crate::launch::Launch;
use crate::lock::{Lock, lock};
use crate::module::Module;
use crate::race;
use crate::report::Report;

/// What a checker looks for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The checks that are made.
    pub tools: BTreeSet<Tool>,
    /// The number of findings that are kept; what is found after them is left out.
    pub findings_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { tools: Tool::ALL.into(), findings_max: 1000 }
    }
}

/// Finds mistakes in the work of an emulated device ([`Gpu::watched`](hipr_sim::Gpu::watched)).
pub struct Checker {
    options: Options,
    report: Arc<Report>,
    contexts: Lock<HashMap<u64, Arc<Context>>>,
    /// The launches that are executed, by context and stream.
    running: Lock<HashMap<(u64, u64), Arc<Launch>>>,
}

impl fmt::Debug for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checker").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Checker {
    /// Returns a checker that has found nothing yet.
    pub fn new(options: Options) -> Arc<Self> {
        let report = Arc::new(Report::new(options.findings_max));
        let (contexts, running) = Default::default();
        Arc::new(Self { options, report, contexts, running })
    }

    /// Returns what was found, in the order in which it was found first.
    pub fn findings(&self) -> Vec<Finding> {
        self.report.findings()
    }

    fn context(&self, id: u64) -> Arc<Context> {
        let new = || Arc::new(Context::new(id));
        Arc::clone(lock(&self.contexts).entry(id).or_insert_with(new))
    }
}

impl DeviceWatch for Checker {
    fn allocated(&self, memory: &Allocated) {
        let context = self.context(memory.context);
        context.map.allocated(memory);
        context.marks.allocated(memory);
        context.shadow.forget(memory.ptr, memory.len_bytes);
    }

    fn freed(&self, context: u64, ptr: u64) {
        let context = self.context(context);
        context.map.freed(ptr);
        context.marks.freed(ptr);
    }

    fn loaded(&self, module: &Loaded<'_>) {
        let known = Arc::new(Module::new(module.base, module.elf));
        self.context(module.context).map.loaded(module.base, module.len_bytes, known);
    }

    fn started(&self, kernel: &Started<'_>) -> Option<Arc<dyn GridWatch>> {
        let context = self.context(kernel.context);
        let (tools, report) = (self.options.tools.clone(), Arc::clone(&self.report));
        let order = kernel.order.cloned();
        let launch = Launch::new(Arc::clone(&context), tools, report, kernel.dispatch, order);
        let launch = Arc::new(launch);
        context.note_stream(launch.kernel.launch, kernel.stream);
        context.note_kernel(&launch.kernel);
        lock(&self.running).insert((kernel.context, kernel.stream), Arc::clone(&launch));
        Some(Arc::new(Groups(launch)))
    }

    fn ended(&self, kernel: &Started<'_>, failure: Option<&Failure>) {
        let launch = lock(&self.running).remove(&(kernel.context, kernel.stream));
        let Some(launch) = launch else { return };
        launch.settle();
        if let Some(failure) = failure {
            launch.failed(failure);
        }
    }

    fn moved(&self, context: u64, order: Option<&Order>, moved: &Moved) {
        let context = self.context(context);
        context.marks.moved(moved);
        let Some(order) = order.filter(|_| self.options.tools.contains(&Tool::Race)) else { return };
        // The order of one stream leaves nothing to find.
        if !context.note_stream(order.number as u32, order.stream) {
            return;
        }
        for side in context.transfers.note(order, moved) {
            race::check_transfer(&context, &self.report, &side);
        }
    }

    fn closed(&self, context: u64) {
        lock(&self.contexts).remove(&context);
    }
}
