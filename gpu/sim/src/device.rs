//! What all contexts of the emulated devices share: threads, memory, limits.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use hipr_grid::{Executors, RunQueue};
use hipr_isa::Arch;
use hipr_isa::simd::Level;

use crate::budget::Budget;
use crate::loan::Loans;
use crate::watch::DeviceWatch;

/// The state that all contexts of the emulated devices share.
pub(crate) struct Inner {
    pub(crate) arch: Arch,
    pub(crate) run_queue: Arc<RunQueue>,
    pub(crate) executors: Executors,
    /// The memory of each of the GPUs, of which there are so many.
    pub(crate) budgets: Vec<Arc<Budget>>,
    pub(crate) loans: Loans,
    /// Number of contexts opened so far.
    pub(crate) contexts: AtomicU64,
    pub(crate) kernel_instructions_max: u64,
    pub(crate) level: Level,
    pub(crate) kernel_timeout: Option<Duration>,
    /// Time zero of the device.
    pub(crate) epoch: Instant,
    /// What sees its work, if anything does.
    pub(crate) watch: Option<Arc<dyn DeviceWatch>>,
}
