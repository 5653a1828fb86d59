//! The emulated GPU used directly: memory, kernels, waiting.

use hipr_device::{Args, Context, Launch, MemoryKind, Origin, Region, WaitFor, Waker};
use hipr_isa::simd::Level;
use hipr_proto::HipError;
use hipr_sim::watch::DeviceWatch;
use hipr_sim::{Config, Gpu, SimContext};
use std::num::NonZero;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::task::Poll;

/// The kernels, compiled by sim/build.sh.
static KERNELS: &[u8] = include_bytes!("kernels.co");

/// An emulated GPU used by this benchmark alone.
pub(super) struct Device {
    context: SimContext,
    module: u64,
    woken: Receiver<()>,
}

/// A kernel with its arguments.
pub(super) struct Call {
    function: u64,
    grid: [u32; 3],
    block: [u32; 3],
    arguments: Vec<u8>,
}

fn failed(what: &str, error: HipError) -> String {
    format!("{what}: {error:?}")
}

impl Device {
    /// Opens a device, whose work `watch` sees if there is one.
    pub(super) fn open(
        threads: NonZero<usize>,
        simd: Level,
        watch: Option<Arc<dyn DeviceWatch>>,
    ) -> Result<Self, String> {
        let config = Config { threads: Some(threads), simd: Some(simd), ..Config::default() };
        let gpu = match watch {
            Some(watch) => Gpu::watched(config, watch),
            None => Gpu::new(config),
        };
        let gpu = gpu.map_err(|why| format!("cannot start the emulated GPU: {why}"))?;
        let (waker, woken) = channel();
        let mut context = gpu.context(Waker::new(move || {
            // Once nobody waits any more, nobody has to be woken.
            let _ = waker.send(());
        }));
        let module = context.module_load(KERNELS.to_vec()).map_err(|error| failed("the kernels", error))?;
        Ok(Self { context, module, woken })
    }

    /// Allocates device memory with a copy of `bytes`.
    pub(super) fn buffer(&mut self, bytes: &[u8]) -> Result<u64, String> {
        let len_bytes = bytes.len() as u64;
        let ptr =
            self.context.malloc(len_bytes, MemoryKind::Device, 0).map_err(|error| failed("memory", error))?;
        let written = self.context.write(&Region::flat(ptr, len_bytes), 0, bytes);
        written.map_err(|error| failed("writing", error))?;
        Ok(ptr)
    }

    /// Reads `out.len()` bytes of device memory at `ptr`.
    pub(super) fn read(&mut self, ptr: u64, out: &mut [u8]) -> Result<(), String> {
        let read = self.context.read(&Region::flat(ptr, out.len() as u64), 0, out);
        read.map_err(|error| failed("reading", error))
    }

    /// Prepares a call of the kernel `name` with pointers and a number.
    pub(super) fn call(
        &mut self,
        name: &str,
        grid: [u32; 3],
        block: [u32; 3],
        pointers: &[u64],
        number: u32,
    ) -> Result<Call, String> {
        let function = self.context.function(self.module, name).map_err(|error| failed(name, error))?.handle;
        let mut arguments: Vec<u8> = pointers.iter().flat_map(|pointer| pointer.to_le_bytes()).collect();
        arguments.extend(number.to_le_bytes());
        Ok(Call { function, grid, block, arguments })
    }

    /// Runs a kernel and waits for its end.
    pub(super) fn run(&mut self, call: &Call) -> Result<(), String> {
        let launch = Launch {
            function: call.function,
            grid: call.grid,
            block: call.block,
            shared_mem_bytes: 0,
            stream: 0,
            args: Args::Flat(&call.arguments),
            start_event: None,
            stop_event: None,
            cooperative: false,
            origin: Origin::NONE,
        };
        self.context.launch(&launch).map_err(|error| failed("a launch", error))?;
        loop {
            match self.context.poll_sync(WaitFor::Stream(0)) {
                Poll::Ready(result) => return result.map_err(|error| failed("a kernel", error)),
                Poll::Pending => self.woken.recv().map_err(|_| "the emulated GPU stopped".to_owned())?,
            }
        }
    }
}
