//! The emulated devices: threads and memory, shared by all contexts.

use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hipr_device::{Context, Device, Waker};
use hipr_grid::{Executors, Gate, RunQueue};
use hipr_isa::Arch;
use hipr_isa::simd::Level;
use hipr_proto::HipResult;

use crate::budget::Budget;
use crate::context::SimContext;
use crate::device::Inner;
use crate::property::Model;
use crate::watch::DeviceWatch;

/// Size of device memory if the host's memory size is unknown.
const MEMORY_FALLBACK_BYTES: u64 = 4 << 30;

/// Configuration of the emulated device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The instruction set.
    pub arch: Arch,
    /// Executor threads; by default one for each of the host's processors.
    pub threads: Option<NonZero<usize>>,
    /// Number of devices, at most [`DEVICES_MAX`](Self::DEVICES_MAX); by default one. They share the threads, whose turns they take.
    pub devices: Option<NonZero<usize>>,
    /// Memory of each device in bytes; by default its share of three quarters of the host's, at most the real one's.
    pub memory_bytes: Option<u64>,
    /// Maximum number of instructions (without waits and hints) that the waves of one launch may execute together; by default
    /// no limit. A launch that wants more fails with `LAUNCH_TIME_OUT`. Threads count what they executed after each slice, so
    /// that a launch that runs on several of them may get a slice (some ten thousand instructions) further on each; on one
    /// thread it is exact.
    pub kernel_instructions_max: Option<u64>,
    /// SIMD level that executes kernels; by default [`Level::chosen`].
    pub simd: Option<Level>,
    /// Maximum time that a launch may run from its first instruction on, while it takes turns with others; by default no limit.
    /// One that wants longer fails with `LAUNCH_TIME_OUT`.
    pub kernel_timeout: Option<Duration>,
    /// Time in nanoseconds that an instruction counts where the threads' time is shared; by default what the machine really took counts.
    /// With it, and one thread, the shares of sessions do not depend on the machine.
    pub instruction_ns: Option<u64>,
}

impl Config {
    /// Largest number of devices.
    pub const DEVICES_MAX: usize = 16;
}

/// An emulated GPU, or several. Clones are the same device; it ends when the last clone and the last context are dropped.
#[derive(Clone)]
pub struct Gpu(pub(crate) Arc<Inner>);

impl Gpu {
    /// Creates a device and starts its threads.
    ///
    /// # Errors
    /// What the operating system says when it does not give a single thread; `InvalidInput` as [`Level::chosen`] fails, and for more
    /// devices than there can be.
    pub fn new(config: Config) -> io::Result<Self> {
        Self::with_gate(config, None)
    }

    /// Creates a device as [`new`](Self::new) does, whose threads work when `gate` lets them.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_gate(config: Config, gate: Option<Arc<dyn Gate>>) -> io::Result<Self> {
        Self::with(config, gate, None)
    }

    /// Creates a device as [`new`](Self::new) does, whose work `watch` sees.
    ///
    /// # Errors
    /// As for [`new`](Self::new); `InvalidInput` for several devices, too: what sees the work knows one.
    pub fn watched(config: Config, watch: Arc<dyn DeviceWatch>) -> io::Result<Self> {
        if config.devices.is_some_and(|count| count.get() > 1) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the work of one device can be seen, not that of several",
            ));
        }
        Self::with(config, None, Some(watch))
    }

    fn with(
        config: Config,
        gate: Option<Arc<dyn Gate>>,
        watch: Option<Arc<dyn DeviceWatch>>,
    ) -> io::Result<Self> {
        let threads =
            config.threads.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZero::get);
        let level = config.simd.map_or_else(Level::chosen, Ok);
        let level = level.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let arch = config.arch;
        let run_queue = Arc::new(RunQueue::new(gate));
        let executors = Executors::start(&run_queue, threads, config.instruction_ns)?;
        let devices = config.devices.map_or(1, NonZero::get);
        if devices > Config::DEVICES_MAX {
            let text =
                format!("there can be {} emulated devices at most, not {devices}", Config::DEVICES_MAX);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let memory_bytes = config.memory_bytes.unwrap_or_else(|| default_memory_bytes(arch, devices as u64));
        let budgets = Budget::of_devices(devices, memory_bytes);
        let epoch = Instant::now();
        let kernel_instructions_max = config.kernel_instructions_max.unwrap_or(u64::MAX);
        let simd = level.name();
        tracing::debug!(%arch, devices, threads = executors.count(), memory_bytes, simd, "emulated device");
        let kernel_timeout = config.kernel_timeout;
        let (loans, contexts) = Default::default();
        Ok(Self(Arc::new(Inner {
            arch,
            run_queue,
            executors,
            budgets,
            loans,
            contexts,
            kernel_instructions_max,
            kernel_timeout,
            level,
            epoch,
            watch,
        })))
    }

    /// Opens a context: an address space, streams, events and modules of its own.
    pub fn context(&self, waker: Waker) -> SimContext {
        SimContext::new(Arc::clone(&self.0), waker)
    }

    /// Returns the SIMD level that executes kernels.
    pub fn simd(&self) -> Level {
        self.0.level
    }

    /// Returns free and total bytes of the memory of all devices.
    pub fn mem_info(&self) -> (u64, u64) {
        let sum = |bytes: fn(&Budget) -> u64| self.0.budgets.iter().map(|budget| bytes(budget)).sum();
        (sum(Budget::free_bytes), sum(Budget::total_bytes))
    }
}

impl Device for Gpu {
    fn name(&self) -> &str {
        "sim"
    }

    fn can_place(&self) -> bool {
        true
    }

    fn can_map(&self) -> bool {
        true
    }

    fn can_keep_apart(&self) -> bool {
        true
    }

    fn can_share(&self) -> bool {
        true
    }

    fn tells_failures(&self) -> bool {
        true
    }

    fn has_kernel_rules(&self) -> bool {
        true
    }

    fn memory_changes(&self) -> u64 {
        self.0.budgets[0].changes()
    }

    fn watch_memory(&self, seen: u64, waker: Waker) {
        self.0.budgets[0].watch(seen, waker);
    }

    fn loads_apart(&self) -> bool {
        true
    }

    fn open(&self, waker: Waker) -> HipResult<Box<dyn Context>> {
        Ok(Box::new(self.context(waker)))
    }
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (free_bytes, total_bytes) = self.mem_info();
        f.debug_struct("Gpu")
            .field("arch", &self.0.arch)
            .field("devices", &self.0.budgets.len())
            .field("threads", &self.0.executors.count())
            .field("free_bytes", &free_bytes)
            .field("total_bytes", &total_bytes)
            .finish()
    }
}

fn default_memory_bytes(arch: Arch, devices: u64) -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let host = host_memory_bytes(&text).unwrap_or(MEMORY_FALLBACK_BYTES);
    (host / 4 * 3 / devices).min(Model::of(arch).memory_bytes)
}

/// Parses the MemTotal line of /proc/meminfo.
fn host_memory_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::host_memory_bytes;

    #[test]
    fn memory_is_read_from_what_linux_says() {
        assert_eq!(host_memory_bytes("MemTotal:       24000 kB\nMemFree: 1 kB\n"), Some(24_000 << 10));
        assert_eq!(host_memory_bytes("MemFree: 1 kB\n"), None);
    }
}
