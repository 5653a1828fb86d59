//! Real GPUs, through AMD's HIP runtime.
//!
//! ```text
//!  Context ── HipContext ──▶ hip_sys::owner::Owner ──▶ libamdhip64
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

mod context;
mod exchange;
mod kernel;
mod leftovers;
mod poller;
mod sharing;
mod staging;
mod wait;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use comgr_sys::Comgr;
use hip_sys::owner::{HipCode, Owner};
use hipr_proto::{HipError, HipResult};

use super::{Context, Device, NoDevice, Waker};
use context::HipContext;
use exchange::Exchange;
pub use exchange::clear_exchange;
use kernel::Kernels;
use leftovers::Leftovers;
use poller::Poller;
use sharing::Sharing;
use wait::Sleeper;

/// The GPUs that a HIP runtime finds. None is found on a machine without: then every request is answered with that.
pub struct Hip {
    runtime: Arc<hip_sys::Hip>,
    comgr: Option<Arc<Comgr>>,
    poller: Arc<Poller>,
    leftovers: Arc<Leftovers>,
    exchange: Arc<Exchange>,
}

impl Hip {
    /// Loads the runtime at that path, or the one that is found under the usual names. The folder is where processes of one worker
    /// tell each other what their sessions share.
    ///
    /// # Errors
    /// There is none (which says what was looked for and where), or no thread can be had.
    pub fn load(library: Option<&Path>, exchange: Option<&Path>) -> Result<Self, NoDevice> {
        let loaded = match library {
            Some(path) => hip_sys::Hip::load_from(path),
            None => hip_sys::Hip::load(),
        };
        let runtime = Arc::new(loaded.map_err(NoDevice::NoRuntime)?);
        let system = |why| NoDevice::System("hip", why);
        let poller = Arc::new(Poller::start().map_err(system)?);
        let leftovers = Arc::new(Leftovers::start().map_err(system)?);
        tracing::info!(library = %runtime.path().display(), version = ?runtime.version(), "HIP runtime loaded");
        let absent: Vec<_> = runtime.absent().collect();
        if !absent.is_empty() {
            tracing::debug!(?absent, "functions that this HIP runtime lacks");
        }
        let comgr = match Comgr::load() {
            Ok(comgr) => Some(Arc::new(comgr)),
            Err(why) => {
                tracing::debug!(%why, "kernel metadata is read without comgr");
                None
            }
        };
        let exchange = Arc::new(Exchange::new(exchange));
        Ok(Self { runtime, comgr, poller, leftovers, exchange })
    }

    /// The name under which the runtime was found.
    pub fn library(&self) -> &Path {
        self.runtime.path()
    }

    /// How many GPUs there are.
    ///
    /// # Errors
    /// What the runtime says, `NO_DEVICE` where there is none.
    pub fn device_count(&self) -> HipResult<i32> {
        result(self.runtime.count_devices())
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

    /// A driver does, for example to load a module.
    fn may_block(&self) -> bool {
        true
    }

    fn open(&self, waker: Waker) -> HipResult<Box<dyn Context>> {
        let owner = Owner::new(self.runtime.clone());
        let version = result(self.runtime.version());
        let devices = self.device_count();
        let kernels = Kernels::new(self.comgr.clone());
        let sleeper = Sleeper::new(self.poller.clone(), waker);
        let sharing = Sharing::new(self.exchange.clone());
        let leftovers = self.leftovers.clone();
        Ok(Box::new(HipContext::new(owner, devices, version, kernels, sleeper, leftovers, sharing)))
    }
}

/// A HIP call's result in the worker's words.
fn result<T>(code: HipCode<T>) -> HipResult<T> {
    code.map_err(HipError)
}
