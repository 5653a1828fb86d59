//! Real GPUs, through AMD's HIP runtime.
//!
//! ```text
//!  Context ── HipContext ──▶ crate::owner::Owner ──▶ libamdhip64
//!                │   waits, staging, kernels                ▲
//!                ├── Poller: wakes the dispatch thread       │ releases what a session left, when the device is done with it
//!                └── on its end ──▶ Leftovers ───────────────┘
//! ```
//!
//! **Waits.** A wait records a marker (an event) in each stream that it covers, and polls the markers with hipEventQuery: at
//! once, then whenever the poller wakes the dispatch thread, after 20 µs at first and 1 ms in the end. Only when a marker
//! is reached is it synchronized with, which then returns at once and says what surfaced. A host function in the stream would
//! wake earlier, but the runtime stops the stream for it. A synchronization so reports errors to the session whose streams
//! it waited for; what the runtime reports for a whole process is reported to whoever asks next.
//!
//! **What may still block the dispatch thread.** hipModuleLoadData and the first launch of a kernel take as long as the code
//! needs to get to the device; hipMalloc, hipHostMalloc and hipFree go to the kernel driver, and hipFree waits for all work of
//! the *process*, which after the session's own wait is that of other sessions. All of this ends only in time that other
//! sessions notice, not in their results, and with a process per session there are no others.
//!
//! **Copies** go through a few pinned buffers per session; the network and the device work at the same time.
//!
//! **Streams.** The null stream is the process's: sessions of one process wait for each other's work on it, as threads of one
//! program do. The per-thread stream is the session's own. Again, a process per session is what keeps them apart.
//!
//! **Pools.** A session's pools are the runtime's, also its default ones, which are made for it: those that the runtime has from the
//! start belong to the process, and what one session set of them would be another's. For the same reason the current pool of a
//! device is known to the session and not to the runtime.
//!
//! **What sessions share** (`exchange`) is found by tokens of the worker's own. The runtime opens what another process has, so it takes
//! a process per session.
//!
//! **The end of a session.** Its handles are released when the device is done with its work, by a thread that asks and never
//! waits. If that does not happen, because the device hangs or is lost, they stay until the process ends: the runtime's calls
//! would not come back.

#![deny(unsafe_code)]

mod asserted;
mod backlog;
mod context;
mod exchange;
mod kernel;
mod leftovers;
#[allow(unsafe_code, reason = "it calls the C API")]
mod owner;
mod poller;
mod printed;
mod sharing;
mod staging;
mod times;
mod wait;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use comgr_sys::Comgr;
use hipr_proto::{HipError, HipResult};

use context::HipContext;
use exchange::Exchange;
pub use exchange::clear_exchange;
use hipr_device::{Context, Device, Waker};
use kernel::Kernels;
use leftovers::Leftovers;
use owner::Owner;
use poller::Poller;
use printed::Output;
use sharing::Sharing;
use wait::Sleeper;

/// Why [`Hip::load`] failed.
#[derive(Debug)]
pub enum LoadError {
    /// No HIP runtime can be loaded: the names that were tried, with the reasons.
    Runtime(hip_sys::LoadError),
    /// A thread cannot be started.
    Thread(std::io::Error),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(why) => write!(f, "{why}"),
            Self::Thread(why) => write!(f, "{why}"),
        }
    }
}

impl std::error::Error for LoadError {}

/// The GPUs that a HIP runtime finds. On a machine without GPUs every request fails with an error that says so.
pub struct Hip {
    runtime: Arc<hip_sys::Hip>,
    comgr: Option<Arc<Comgr>>,
    poller: Arc<Poller>,
    leftovers: Arc<Leftovers>,
    exchange: Arc<Exchange>,
    /// What the runtime prints for kernels, if the process is one session's.
    output: Option<Arc<Output>>,
}

impl Hip {
    /// Loads the runtime at `library`, or under its usual names. `exchange` is the folder in which the processes of one
    /// worker exchange what their sessions share; without it all sessions are in this process, and memory is cleared before one gets it.
    ///
    /// # Errors
    /// There is none (which says what was looked for and where), or no thread can be had.
    pub fn load(library: Option<&Path>, exchange: Option<&Path>) -> Result<Self, LoadError> {
        let loaded = match library {
            Some(path) => hip_sys::Hip::load_from(path),
            None => hip_sys::Hip::load(),
        };
        let runtime = Arc::new(loaded.map_err(LoadError::Runtime)?);
        let poller = Arc::new(Poller::start().map_err(LoadError::Thread)?);
        let leftovers = Arc::new(Leftovers::start().map_err(LoadError::Thread)?);
        tracing::info!(library = %runtime.path().display(), version = ?runtime.runtime_version(), "HIP runtime loaded");
        let absent: Vec<_> = runtime.absent().collect();
        if !absent.is_empty() {
            tracing::debug!(?absent, "this HIP runtime lacks optional functions");
        }
        let comgr = match Comgr::load() {
            Ok(comgr) => Some(Arc::new(comgr)),
            Err(why) => {
                tracing::debug!(%why, "reading kernel metadata without comgr");
                None
            }
        };
        let exchange = Arc::new(Exchange::new(exchange));
        Ok(Self { runtime, comgr, poller, leftovers, exchange, output: None })
    }

    /// Makes this process's standard output what the runtime prints for kernels of the one session in it, which is told of it.
    ///
    /// # Errors
    /// What the operating system says where it gives no pipe.
    pub fn with_output(self) -> std::io::Result<Self> {
        Ok(Self { output: Some(Arc::new(Output::take()?)), ..self })
    }

    /// Returns the path under which the runtime was found.
    pub fn library(&self) -> &Path {
        self.runtime.path()
    }

    /// Returns the number of GPUs.
    ///
    /// # Errors
    /// What the runtime says, `NO_DEVICE` where there is none.
    pub fn device_count(&self) -> HipResult<i32> {
        self.runtime.device_count().map_err(|error| HipError(error.code))
    }
}

impl fmt::Debug for Hip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hip").field("library", &self.library()).finish_non_exhaustive()
    }
}

impl Device for Hip {
    fn name(&self) -> &str {
        "hip"
    }

    /// Returns true, because drivers block, for example to load a module.
    fn may_block(&self) -> bool {
        true
    }

    /// Returns whether the library has the functions. Whether a device can is for its attribute to say.
    fn can_map(&self) -> bool {
        let hip = &self.runtime;
        hip.hipMemCreate.is_some()
            && hip.hipMemAddressReserve.is_some()
            && hip.hipMemMap.is_some()
            && hip.hipMemSetAccess.is_some()
            && hip.hipMemUnmap.is_some()
    }

    fn open(&self, waker: Waker) -> HipResult<Box<dyn Context>> {
        let owner = Owner::new(self.runtime.clone(), self.exchange.is_for_one_process());
        let version = self.runtime.runtime_version().map_err(|error| HipError(error.code));
        let devices = self.device_count();
        let kernels = Kernels::new(self.comgr.clone());
        if let Some(output) = &self.output {
            output.set_waker(waker.clone());
        }
        let sleeper = Sleeper::new(self.poller.clone(), waker);
        let sharing = Sharing::new(self.exchange.clone());
        let leftovers = self.leftovers.clone();
        let mut context = HipContext::new(owner, devices, version, kernels, sleeper, leftovers, sharing);
        context.set_output(self.output.clone());
        Ok(Box::new(context))
    }
}
