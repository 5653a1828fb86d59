//! Sees the work of an emulated device, and counts what its kernels do.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use hipr_grid::{Failure, GridWatch};
use hipr_sim::watch::{Allocated, DeviceWatch, Loaded, Moved, Order, Started};

use crate::group::Groups;
use crate::kernel::{Kernel, KernelProfile, Module, lock};

/// A module, and the length of its memory in bytes.
type Placed = (u64, Arc<Module>);

/// Counts what kernels do on an emulated device ([`Gpu::watched`](hipr_sim::Gpu::watched)).
#[derive(Default)]
pub struct Profiler {
    /// By context.
    modules: Mutex<HashMap<u64, Vec<Placed>>>,
    /// In the order in which they were launched first.
    kernels: Mutex<Vec<Arc<Kernel>>>,
}

impl fmt::Debug for Profiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profiler").field("kernels", &lock(&self.kernels).len()).finish_non_exhaustive()
    }
}

impl Profiler {
    /// Returns a profiler that has counted nothing yet.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Returns the kernels in the order in which they were launched first. What still runs is not in the counts.
    pub fn kernels(&self) -> Vec<KernelProfile> {
        lock(&self.kernels).iter().map(|kernel| kernel.profile()).collect()
    }

    /// Returns the module of a context that has an address.
    fn module(&self, context: u64, address: u64) -> Option<Arc<Module>> {
        let modules = lock(&self.modules);
        let found = modules.get(&context)?.iter().rev().find(|(len_bytes, module)| {
            address.checked_sub(module.base).is_some_and(|offset| offset < *len_bytes)
        });
        found.map(|(_, module)| Arc::clone(module))
    }
}

impl DeviceWatch for Profiler {
    fn allocated(&self, _memory: &Allocated) {}

    fn freed(&self, _context: u64, _ptr: u64) {}

    fn loaded(&self, module: &Loaded<'_>) {
        let known = Arc::new(Module { base: module.base, elf: module.elf.into() });
        lock(&self.modules).entry(module.context).or_default().push((module.len_bytes, known));
    }

    fn started(&self, kernel: &Started<'_>) -> Option<Arc<dyn GridWatch>> {
        let dispatch = kernel.dispatch;
        let mut kernels = lock(&self.kernels);
        // The same code at another address is another kernel: its instructions are told apart by their addresses.
        let is_same = |known: &&Arc<Kernel>| known.is(&dispatch.name, dispatch.entry);
        let known = kernels.iter().find(is_same).map(Arc::clone);
        let known = known.unwrap_or_else(|| {
            let module = self.module(kernel.context, dispatch.entry);
            let new = Arc::new(Kernel::new(dispatch, module));
            kernels.push(Arc::clone(&new));
            new
        });
        known.note_launch(dispatch);
        Some(Arc::new(Groups(known)))
    }

    fn ended(&self, _kernel: &Started<'_>, _failure: Option<&Failure>) {}

    fn moved(&self, _context: u64, _order: Option<&Order>, _moved: &Moved) {}

    fn closed(&self, context: u64) {
        lock(&self.modules).remove(&context);
    }
}
